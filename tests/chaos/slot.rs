//! A place that always has a candidate: when one is gone, another comes.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::install;
use harness::machine::Machine;
use harness::process::{Process, waits_of};
use harness::wait;
use harness::witness::Witness;
use nix::sys::signal::Signal;

use crate::axis::{Axis, nanos};
use crate::fault::Dice;
use crate::keys::{KeyedJob, RETRIES};
use crate::named::{Limits, Named};
use crate::windows::{Windows, job_of_a_window};

/// What every candidate is told.
pub(crate) struct Terms<'a> {
    pub(crate) program: &'a Path,
    pub(crate) group: &'a str,
    pub(crate) elector: Elector,
    /// The mutant that is on in it.
    pub(crate) mutant: Option<&'a str>,
    /// The file that sets the wall clock of the candidate that has one of its own.
    pub(crate) clock: &'a Path,
    /// Jobs end of their own accord sooner.
    pub(crate) changes: bool,
    /// No job ends by itself, nor when it is asked to.
    pub(crate) stubborn: bool,
    /// The run, where it has a name.
    pub(crate) named: Option<Named>,
    /// For how long a leader that is to stop keeps its job running beside its successor's.
    pub(crate) overlap: Option<Duration>,
    /// The key for which the job is run once.
    pub(crate) once: Option<KeyedJob>,
    /// The windows in each of which the job runs once.
    pub(crate) windows: Option<Windows>,
    /// Where the witnesses of each role write, one directory each.
    pub(crate) runs: &'a Path,
}

/// The slot whose wall clock is its own.
pub(crate) const SLOT_WITH_A_CLOCK: usize = 1;

/// The leases of the slots: mostly a second, and one that waits for others as long as they lead, not as long as it would.
pub(crate) const LEASES_MS: [u64; 5] = [1000, 2000, 1000, 1000, 1000];

/// The lease of a slot's candidates.
pub(crate) fn lease_ms(named: Option<Named>, slot: usize) -> u64 {
    named.map_or_else(|| LEASES_MS[slot], |named| u64::try_from(named.lease().as_millis()).expect("seconds"))
}

/// The witness as the job's main process, where one of many roles is told apart by its directory.
fn job_of_a_role(witness: &Witness, runs: &Path) -> Vec<OsString> {
    const BECOME: &str = r#"witness=$1 file=$0/$NELI_ROLE/$2; shift 2; exec "$witness" "$file" "$@""#;
    let beside = ["sh", "-c", BECOME].map(OsString::from).into_iter().chain([runs.into()]);
    beside.chain(witness.command()).collect()
}

/// The witness as the job's main process, with what runs beside it.
fn job(witness: &Witness, beside: &str) -> Vec<OsString> {
    if beside.is_empty() {
        return witness.command();
    }
    let beside = ["sh".to_owned(), "-c".to_owned(), format!("{beside} exec \"$@\""), "sh".to_owned()];
    beside.into_iter().map(OsString::from).chain(witness.command()).collect()
}

/// How long either half of a candidate is let alone when the other was struck: by then it has made good for it.
const HEALS_WITHIN: Duration = Duration::from_secs(1);

/// The same where it has many guards, whose absence does not tell.
const MANY_HEAL_WITHIN: Duration = Duration::from_secs(3);

/// A candidate that came so long ago can be expected to lead.
const GROWN_UP: Duration = Duration::from_millis(1500);

/// The halves of a candidate, of which one at a time may be out of action (assumption 3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Half {
    Guard,
    Supervisor,
}

/// One of the slots.
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// How many roles its candidates stand for.
    roles: usize,
    pub(crate) running: Option<Running>,
    /// What dies as one, where that can be had.
    machine: Option<Machine>,
    /// How many candidates there have been.
    pub(crate) lives: usize,
    /// When the present one came, or the last one went.
    pub(crate) since: u64,
    /// SIGSTOP was sent to its supervisor.
    pub(crate) is_stopped: bool,
    /// Which half was struck last, and when.
    struck: Option<(Half, u64)>,
    /// How often it had led when that was last looked at.
    pub(crate) leads: usize,
    /// When a lead of its candidates was last over for another reason than that shares are to be fair.
    pub(crate) lost_at: u64,
    /// How many roles its candidates have handed over for fair shares.
    pub(crate) handed_over: usize,
    /// How many of its events are on the axis already.
    noted: usize,
}

/// What the file of a run is called, before its term: by its slot, and by which of the candidates there it is.
pub(crate) fn life_of(slot: usize, life: usize) -> String {
    format!("{slot}.{life}.")
}

/// The process that a message of the log is about, by its `(pid N)`.
fn pid_in(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("(pid ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Slot {
    pub(crate) fn new(index: usize, roles: usize) -> Self {
        Self {
            index,
            roles,
            running: None,
            machine: None,
            lives: 0,
            since: wait::now(),
            is_stopped: false,
            struck: None,
            leads: 0,
            lost_at: 0,
            handed_over: 0,
            noted: 0,
        }
    }

    /// Starts a candidate.
    pub(crate) fn start(&mut self, terms: &Terms<'_>, brokers: &str, dice: &mut Dice) {
        let file = life_of(self.index, self.lives);
        let (file, pause_us) =
            if self.roles > 1 { (file.into(), 10_000) } else { (terms.runs.join("0").join(file), 4_000) };
        let mut witness = Witness::new(&file).set("--every-us", pause_us).set("--limit-ms", 3_600_000);
        for kind in ["--child", "--session", "--daemon"] {
            witness = witness.with(kind);
        }
        for _ in 0..terms.named.map_or(0, Named::leakers) {
            witness = witness.with("--leaker");
        }
        if dice.chance(0.4) || terms.stubborn {
            witness = witness.with("--ignore-stop");
        }
        let lives_long = terms.named.is_some_and(Named::lives_long);
        // One in three ends by itself, and leaves the rest of its tree behind.
        if let Some(once) = &terms.once {
            witness =
                witness.set("--end-ms", once.ends_after_ms).set("--status", u64::from(once.status.unsigned_abs()));
        } else if let Some(windows) = terms.windows {
            let (after_ms, status) = windows.end(dice);
            witness = witness.set("--end-ms", after_ms).set("--status", u64::from(status.unsigned_abs()));
        } else if dice.chance(0.33) && !terms.stubborn && !lives_long {
            let millis = 500 + u64::try_from(dice.below(if terms.changes { 2000 } else { 4000 })).expect("a few");
            witness = witness.set("--end-ms", millis);
        }
        let mut candidate = Candidate::new(terms.program)
            .option("--group", terms.group)
            .option("--brokers", brokers)
            .option("--elect", terms.elector.name())
            .option("--name", format!("c{}.{}", self.index, self.lives))
            .option("--stop-timeout", "300ms");
        candidate = if self.roles > 1 {
            // A job that has ended is none that nobody runs.
            let at_once = candidate.option("--restart-delay", "0s").option("--restart-limit", "none");
            at_once.option("--roles", self.roles.to_string()).job(job_of_a_role(&witness, terms.runs))
        } else if let Some(windows) = terms.windows {
            windows.candidate(candidate).job(job_of_a_window(&witness))
        } else {
            candidate.job(job(&witness, terms.named.map_or("", Named::beside_the_job)))
        };
        // That the default is long enough is shown with the default.
        if !terms.named.is_some_and(Named::is_undisturbed) {
            candidate = candidate.lease(&format!("{}ms", lease_ms(terms.named, self.index)));
        }
        if let Some(overlap) = terms.overlap {
            candidate = candidate.option("--overlap", humantime::format_duration(overlap).to_string());
        }
        if let Some(once) = &terms.once {
            candidate = candidate.option("--once", &once.key).option("--retries", RETRIES);
        }
        if let Some(mutant) = terms.mutant {
            candidate = candidate.variable("NELI_MUTANT", mutant);
        }
        if self.index == SLOT_WITH_A_CLOCK {
            let library = install::stepped_clock();
            candidate = candidate.variable("LD_PRELOAD", library).variable("STEPPED_CLOCK", terms.clock);
        }
        // One whose connections are closed by itself whenever they are idle for a moment, and by the clients' own impatience. The group
        // takes one that holds a partition for dead every 6 s then, and what it assigns would never be at rest.
        let keeps_its_place = self.roles > 1 && terms.elector == Elector::Group;
        if dice.chance(0.2) && !lives_long && !keeps_its_place {
            candidate = candidate.property("connections.max.idle.ms", "150").property("socket.max.fails", "1");
        }
        // Before the next is made: it has the same name.
        self.machine = None;
        self.machine = Machine::make(&format!("{}.{}.{}", terms.group, self.index, self.lives));
        let mut enter = Vec::new();
        let Limits { memory, processor } = terms.named.map(Named::limits).unwrap_or_default();
        if memory.is_some() || processor.is_some() {
            let machine =
                self.machine.as_mut().expect("limits take root's rights, and cgroup v2 to end what is limited");
            memory
                .map(|bytes| machine.limit_memory(bytes))
                .transpose()
                .expect("a memory controller that is ours to use");
            processor
                .map(|share| machine.limit_processor(share))
                .transpose()
                .expect("a processor controller that is ours to use");
        }
        enter.extend(self.machine.iter().flat_map(Machine::enter));
        if processor.is_some() {
            // Inherited by all: no right to real-time scheduling, whoever is root.
            enter.extend(["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"].map(str::to_owned));
        }
        let enter: Vec<&str> = enter.iter().map(String::as_str).collect();
        self.running = Some(candidate.start_behind(&enter));
        (self.lives, self.since, self.is_stopped, self.leads, self.noted) = (self.lives + 1, wait::now(), false, 0, 0);
        self.struck = None;
    }

    /// Whether it can be expected to lead.
    pub(crate) fn is_able(&self) -> bool {
        self.running.is_some() && !self.is_stopped && self.since + nanos(GROWN_UP) < wait::now()
    }

    /// Whether one half may be struck: not while the other is out of action, or may be.
    pub(crate) fn can_lose(&self, half: Half) -> bool {
        let heals_within = if self.roles > 1 { MANY_HEAL_WITHIN } else { HEALS_WITHIN };
        let other_heals =
            self.struck.is_some_and(|(struck, at)| struck != half && wait::now() < at + nanos(heals_within));
        let guards = self.guards();
        let other_is_out = match half {
            Half::Guard => self.is_stopped,
            // One that was killed has been made good for when there is another.
            Half::Supervisor => {
                let has_none = self.roles == 1 && guards.is_empty();
                self.struck.is_some() && (has_none || guards.into_iter().any(Process::is_stopped))
            }
        };
        !(other_heals || other_is_out)
    }

    /// One half is struck, or goes on only now.
    pub(crate) fn was_struck(&mut self, half: Half) {
        self.struck = Some((half, wait::now()));
    }

    /// Takes down what it has said since.
    pub(crate) fn note(&mut self, axis: &mut Axis) {
        let Some(running) = &self.running else { return };
        for event in running.history_from(self.noted) {
            self.noted += 1;
            let is_spread = ["spread", "revoked"].contains(&event.text("why"));
            match event.name() {
                "released" if is_spread => self.handed_over += 1,
                "fenced" | "released" => self.lost_at = event.at,
                _ => {}
            }
            let mut fields = event.fields.clone();
            for known in ["event", "group", "level", "role"].into_iter().take(if self.roles > 1 { 3 } else { 4 }) {
                fields.as_object_mut().map(|fields| fields.remove(known));
            }
            axis.note_at(event.at, &self.name(), format!("{} {fields}", event.name()));
            // A guard that does not answer, or does not die, may be held by the kernel: where, only this moment tells.
            let message = event.fields.get("message").and_then(|message| message.as_str()).unwrap_or_default();
            if let Some(pid) = pid_in(message) {
                axis.note(&self.name(), format!("{pid}: {}", waits_of(pid)));
            }
        }
    }

    /// Its status, when it has ended since.
    pub(crate) fn ended(&mut self, axis: &mut Axis) -> Option<i32> {
        let status = self.running.as_mut()?.ended()?;
        self.note(axis);
        axis.note(&self.name(), format!("ended with {status}"));
        if let Some(running) = self.running.take() {
            for line in running.strange_lines() {
                axis.note(&self.name(), format!("said: {line}"));
            }
        }
        self.since = wait::now();
        Some(status)
    }

    /// How the axis calls it.
    pub(crate) fn name(&self) -> String {
        format!("c{}.{}", self.index, self.lives.saturating_sub(1))
    }

    /// The supervisor, while there is one.
    pub(crate) fn supervisor(&self) -> Option<Process> {
        self.running.as_ref().map(Running::process).filter(|process| process.lives())
    }

    /// The guards, while there are any: one, or one for each role that is led.
    pub(crate) fn guards(&self) -> Vec<Process> {
        let children = self.supervisor().map(Process::children).unwrap_or_default();
        children.into_iter().filter(|child| child.name().as_deref() == Some("neli-guard")).collect()
    }

    /// The guard of the job whose main process is this, or any, while there is one.
    pub(crate) fn guard(&self, main: Option<i32>) -> Option<Process> {
        let parent = main.and_then(Process::find).and_then(Process::parent);
        let guards = self.guards();
        guards.iter().find(|guard| Some(guard.pid) == parent).or(guards.first()).copied()
    }

    /// Whether it has led anew since this was last asked.
    pub(crate) fn leads_anew(&mut self) -> bool {
        let leads = self.running.as_ref().map_or(0, |running| running.count("leading"));
        std::mem::replace(&mut self.leads, leads) < leads
    }

    /// What a power cut does: all of it, at once. Where there is no control group, the job is stopped first, while both halves can still put an end to it, so
    /// that it says nothing any more however long the rest takes here: only together may they be out of action.
    pub(crate) fn kill_machine(&self) {
        let Some(supervisor) = self.supervisor() else { return };
        if let Some(machine) = &self.machine {
            return machine.die();
        }
        let guards = self.guards();
        let mut job: Vec<Process> = Vec::new();
        loop {
            let is_new = |process: &Process| !guards.contains(process) && !job.contains(process);
            let new: Vec<Process> = supervisor.descendants().into_iter().filter(is_new).collect();
            if new.is_empty() {
                break;
            }
            for process in new {
                process.signal(Signal::SIGSTOP);
                job.push(process);
            }
        }
        for process in [supervisor].into_iter().chain(guards).chain(job) {
            process.signal(Signal::SIGKILL);
        }
    }
}
