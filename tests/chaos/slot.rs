//! A slot always has a candidate: when one ends, another one is started.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::install;
use harness::judge::{Axis, life_of, nanos};
use harness::machine::Machine;
use harness::process::{Process, waits_of};
use harness::wait;
use harness::witness::Witness;
use nix::sys::signal::Signal;

use crate::fault::Dice;
use crate::keys::{KeyedJob, RETRIES};
use crate::special_runs::{Limits, SpecialRun};
use crate::windows::{Windows, job_of_a_window};

/// The parameters of every candidate.
pub(crate) struct Terms<'a> {
    pub(crate) program: &'a Path,
    pub(crate) group: &'a str,
    pub(crate) elector: Elector,
    /// Its active mutant.
    pub(crate) mutant: Option<&'a str>,
    /// The file that sets the wall clock of the candidate with a separate clock.
    pub(crate) clock: &'a Path,
    /// Whether jobs end by themselves sooner.
    pub(crate) changes: bool,
    /// Whether no job ends by itself, nor at a stop signal.
    pub(crate) stubborn: bool,
    /// The run, if it has a name.
    pub(crate) special_run: Option<SpecialRun>,
    /// How long a leader that stops keeps its job running beside its successor's.
    pub(crate) overlap: Option<Duration>,
    /// The key for which the job runs once.
    pub(crate) once: Option<KeyedJob>,
    /// The windows in each of which the job runs once.
    pub(crate) windows: Option<Windows>,
    /// The witnesses' directories, one per role.
    pub(crate) runs: &'a Path,
}

/// The slot with a separate wall clock.
pub(crate) const SLOT_WITH_A_CLOCK: usize = 1;

/// The leases of the slots: mostly a second. One is longer, to show that a candidate waits for the leader's lease and not for its own.
pub(crate) const LEASES_MS: [u64; 5] = [1000, 2000, 1000, 1000, 1000];

/// The lease of a slot's candidates.
pub(crate) fn lease_ms(special_run: Option<SpecialRun>, slot: usize) -> u64 {
    special_run.map_or_else(
        || LEASES_MS[slot],
        |special_run| u64::try_from(special_run.lease().as_millis()).expect("a small number"),
    )
}

/// The witness as the job's main process, in its role's directory.
fn job_of_a_role(witness: &Witness, runs: &Path) -> Vec<OsString> {
    const BECOME: &str = r#"witness=$1 file=$0/$NELI_ROLE/$2; shift 2; exec "$witness" "$file" "$@""#;
    let beside = ["sh", "-c", BECOME].map(OsString::from).into_iter().chain([runs.into()]);
    beside.chain(witness.command()).collect()
}

/// The witness as the job's main process, with the commands that run beside it.
fn job(witness: &Witness, beside: &str) -> Vec<OsString> {
    if beside.is_empty() {
        return witness.command();
    }
    let beside = ["sh".to_owned(), "-c".to_owned(), format!("{beside} exec \"$@\""), "sh".to_owned()];
    beside.into_iter().map(OsString::from).chain(witness.command()).collect()
}

/// How long the other of a candidate's two processes is spared after one was struck. By then that one has been replaced.
const HEALS_WITHIN: Duration = Duration::from_secs(1);

/// The same time for a candidate with many guards, whose replacement can't be observed.
const MANY_HEAL_WITHIN: Duration = Duration::from_secs(3);

/// A candidate that is at least this old can be expected to lead.
const GROWN_UP: Duration = Duration::from_millis(1500);

/// The two processes of a candidate. Only one of them at a time may be out of action (assumption 3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Half {
    Guard,
    Supervisor,
}

/// One of the slots.
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// The number of roles of its candidates.
    roles: usize,
    pub(crate) running: Option<Running>,
    /// The control group whose processes die together, if one can be created.
    machine: Option<Machine>,
    /// The number of candidates so far.
    pub(crate) lives: usize,
    /// When the present candidate was started, or the last one ended.
    pub(crate) since: u64,
    /// Whether SIGSTOP was sent to its supervisor.
    pub(crate) is_stopped: bool,
    /// Which process was struck last, and when.
    struck: Option<(Half, u64)>,
    /// How often it had led at the last check.
    pub(crate) leads: usize,
    /// When a lead of its candidates last ended for another reason than fair shares.
    pub(crate) lost_at: u64,
    /// How many roles its candidates have handed over for fair shares.
    pub(crate) handed_over: usize,
    /// How many of its events are in the timeline already.
    noted: usize,
}

/// The pid in a log message with `(pid N)`.
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
        for _ in 0..terms.special_run.map_or(0, SpecialRun::leakers) {
            witness = witness.with("--leaker");
        }
        if dice.chance(0.4) || terms.stubborn {
            witness = witness.with("--ignore-stop");
        }
        let lives_long = terms.special_run.is_some_and(SpecialRun::lives_long);
        // A third of the jobs end by themselves and leave their processes behind.
        if let Some(once) = &terms.once {
            witness =
                witness.set("--end-ms", once.ends_after_ms).set("--status", u64::from(once.status.unsigned_abs()));
        } else if let Some(windows) = terms.windows {
            let (after_ms, status) = windows.end(dice);
            witness = witness.set("--end-ms", after_ms).set("--status", u64::from(status.unsigned_abs()));
        } else if dice.chance(0.33) && !terms.stubborn && !lives_long {
            let millis =
                500 + u64::try_from(dice.below(if terms.changes { 2000 } else { 4000 })).expect("a small number");
            witness = witness.set("--end-ms", millis);
        }
        let mut candidate = Candidate::new(terms.program)
            .option("--group", terms.group)
            .option("--brokers", brokers)
            .option("--elect", terms.elector.name())
            .option("--name", format!("c{}.{}", self.index, self.lives))
            .option("--stop-timeout", "300ms");
        for (name, value) in terms.special_run.map_or(&[][..], SpecialRun::options) {
            candidate = candidate.option(name, value);
        }
        candidate = if self.roles > 1 {
            // A job that is restarted at once leaves no time without a job.
            let at_once = candidate.option("--restart-delay", "0s").option("--restart-limit", "none");
            at_once.option("--roles", self.roles.to_string()).job(job_of_a_role(&witness, terms.runs))
        } else if let Some(windows) = terms.windows {
            windows.candidate(candidate).job(job_of_a_window(&witness))
        } else {
            candidate.job(job(&witness, terms.special_run.map_or("", SpecialRun::beside_the_job)))
        };
        // This run tests whether the default lease is long enough.
        if !terms.special_run.is_some_and(SpecialRun::is_undisturbed) {
            candidate = candidate.lease(&format!("{}ms", lease_ms(terms.special_run, self.index)));
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
        // The idle connections of one candidate are closed after a moment, by the candidate itself and by the clients' time limits. With
        // the group elector such a member counts as dead every 6 s while it holds a partition.
        if dice.chance(0.2) && !lives_long {
            candidate = candidate.property("connections.max.idle.ms", "150").property("socket.max.fails", "1");
        }
        // It is dropped before the next one is created, because that one has the same name.
        self.machine = None;
        self.machine = Machine::make(&format!("{}.{}.{}", terms.group, self.index, self.lives));
        let mut enter = Vec::new();
        let Limits { memory, processor } = terms.special_run.map(SpecialRun::limits).unwrap_or_default();
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
            // All processes inherit this: they have no right to real-time scheduling, even as root.
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

    /// Whether one process may be struck. It may not while the other one is or may be out of action.
    pub(crate) fn can_lose(&self, half: Half) -> bool {
        let heals_within = if self.roles > 1 { MANY_HEAL_WITHIN } else { HEALS_WITHIN };
        let other_heals =
            self.struck.is_some_and(|(struck, at)| struck != half && wait::now() < at + nanos(heals_within));
        let guards = self.guards();
        let other_is_out = match half {
            Half::Guard => self.is_stopped,
            // A killed process counts as replaced when there is another one.
            Half::Supervisor => {
                let has_none = self.roles == 1 && guards.is_empty();
                self.struck.is_some() && (has_none || guards.into_iter().any(Process::is_stopped))
            }
        };
        !(other_heals || other_is_out)
    }

    /// Notes that a process was struck, or is continued only now.
    pub(crate) fn was_struck(&mut self, half: Half) {
        self.struck = Some((half, wait::now()));
    }

    /// Adds its new log lines to the timeline.
    pub(crate) fn note(&mut self, axis: &mut Axis) {
        let Some(running) = &self.running else { return };
        for event in running.history_from(self.noted) {
            self.noted += 1;
            match event.name() {
                "released" if event.text("why") == "spread" => self.handed_over += 1,
                "fenced" | "released" => self.lost_at = event.at,
                _ => {}
            }
            let mut fields = event.fields.clone();
            for known in ["event", "group", "level", "role"].into_iter().take(if self.roles > 1 { 3 } else { 4 }) {
                fields.as_object_mut().map(|fields| fields.remove(known));
            }
            axis.note_at(event.at, &self.name(), format!("{} {fields}", event.name()));
            // A guard that does not answer or die may be blocked in the kernel. The place can only be seen now.
            let message = event.fields.get("message").and_then(|message| message.as_str()).unwrap_or_default();
            if let Some(pid) = pid_in(message) {
                axis.note(&self.name(), format!("{pid}: {}", waits_of(pid)));
            }
        }
    }

    /// Its exit status, if it has ended.
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

    /// Its name in the timeline.
    pub(crate) fn name(&self) -> String {
        format!("c{}.{}", self.index, self.lives.saturating_sub(1))
    }

    /// The supervisor, if it is alive.
    pub(crate) fn supervisor(&self) -> Option<Process> {
        self.running.as_ref().map(Running::process).filter(|process| process.lives())
    }

    /// The living guards: one, or one for each role that is led.
    pub(crate) fn guards(&self) -> Vec<Process> {
        let children = self.supervisor().map(Process::children).unwrap_or_default();
        children.into_iter().filter(|child| child.name().as_deref() == Some("neli-guard")).collect()
    }

    /// The guard of the job with this main process, or any guard, if it is alive.
    pub(crate) fn guard(&self, main: Option<i32>) -> Option<Process> {
        let parent = main.and_then(Process::find).and_then(Process::parent);
        let guards = self.guards();
        guards.iter().find(|guard| Some(guard.pid) == parent).or(guards.first()).copied()
    }

    /// Whether it has begun to lead since the last call.
    pub(crate) fn leads_anew(&mut self) -> bool {
        let leads = self.running.as_ref().map_or(0, |running| running.count("leading"));
        std::mem::replace(&mut self.leads, leads) < leads
    }

    /// Kills all processes at once, as a power cut would. Without a control group the job is stopped first, while supervisor and guard
    /// could still kill it. Then it writes nothing until the last process is killed: supervisor and guard may be out of action only
    /// together.
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
