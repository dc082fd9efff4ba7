//! Candidates with many roles: each role has its own history, and at the end all roles must be spread fairly.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::candidate::Elector;
use harness::wait;
use serde_json::Value;

use crate::axis::nanos;
use crate::history::History;
use crate::job_run::{Counts, JobRun, Latest};
use crate::lies;
use crate::report::{journal, load, tolerance};
use crate::run::Run;
use crate::slot::Slot;
use crate::stranger::Action;

/// The time within which shares are fair after the last change (docs/protocol.md, Many roles in one process), if no role is withheld and no candidate is
/// barred.
pub(crate) const FAIR_WITHIN: Duration = Duration::from_secs(60);

/// Shares that were fair for this time count as stable.
const STAYS_FAIR: Duration = Duration::from_secs(2);

/// A candidate that did not take a role gets none from the one that handed it over for this time, doubled at each repetition.
const BARRED: Duration = Duration::from_secs(60);

/// A role that the group's member did not take is withheld from it for this time, doubled at each repetition, up to the limit above.
const KEPT: Duration = Duration::from_secs(30);
const KEPT_AT_MOST: Duration = Duration::from_secs(600);

/// A role that was resigned is handed over only when nothing else has changed for this time, one role after another.
const SETTLED: Duration = Duration::from_secs(10);

/// The result of the check for fair shares.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// The number of roles that each slot leads.
    pub(crate) held: Vec<usize>,
    /// The time since all roles had leaders again.
    pub(crate) after: Duration,
    /// The time limit.
    pub(crate) bound: Duration,
    /// The number of roles that were handed over meanwhile.
    pub(crate) moves: usize,
}

impl Run<'_> {
    /// Whether candidates stand for more than one role.
    pub(crate) fn has_many_roles(&self) -> bool {
        self.histories.len() > 1
    }

    /// Whether a job of every role runs.
    pub(crate) fn is_led(&self) -> bool {
        self.histories.iter().all(|history| history.current().is_some())
    }

    /// The name of a role in messages, if there are several roles.
    pub(crate) fn called(&self, role: usize) -> String {
        if self.has_many_roles() { format!("role {role}: ") } else { String::new() }
    }

    /// The counters of all histories.
    pub(crate) fn counts(&self) -> Counts {
        self.histories.iter().fold(Counts::default(), |counts, history| counts.and(&history.counts()))
    }

    /// How often the leader of a role changed to another candidate.
    pub(crate) fn changes(&self) -> usize {
        self.histories.iter().map(History::changes).sum()
    }

    /// The latest beats after a deadline, and after a deadline or a term's end.
    pub(crate) fn latest(&self) -> (Latest, Latest) {
        let latest = |of: fn(&History) -> &Latest| {
            self.histories.iter().map(of).max_by_key(|latest| latest.by).cloned().unwrap_or_default()
        };
        (latest(|history| &history.after_deadline), latest(|history| &history.after_right))
    }

    fn handed_over(&self) -> usize {
        self.slots.iter().map(|slot| slot.handed_over).sum()
    }

    /// The number of roles that each slot leads.
    fn held(&self) -> Vec<usize> {
        let mut held = vec![0; self.slots.len()];
        for history in &self.histories {
            if let Some(job_run) = history.current() {
                held[history.job_runs[job_run].slot] += 1;
            }
        }
        held
    }

    /// Asks a role's leader to resign; with many roles by the program, as an operator would, without waiting for it.
    pub(crate) fn ask_to_resign(&mut self, role: usize, leader: usize) {
        let JobRun { term, slot, .. } = self.histories[role].job_runs[leader];
        // A leader that resigned backs off for two leases, and may be the only candidate.
        if !self.slots.iter().any(|other| other.index != slot && other.is_able()) {
            self.disturb_for(2 * self.orders.longest_lease());
        }
        if !self.has_many_roles() {
            return self.stranger.ask(Action::Write(0, lies::resign(&self.group, term)));
        }
        let kafka = self.ground.cluster().kafka();
        let mut resign = Command::new(&self.orders.program);
        resign.args(["resign", "--role", &role.to_string(), "--group", &self.group, "--brokers", kafka.address()]);
        resign.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.askers.push((role, resign.spawn().expect("the program is there")));
    }

    /// Notes the requests that have been answered.
    pub(crate) fn look_at_askers(&mut self) {
        let axis = &mut self.axis;
        self.askers.retain_mut(|(role, asker): &mut (usize, Child)| {
            let status = asker.try_wait().expect("a child of ours");
            if let Some(status) = status {
                axis.note("chaos", format!("resign --role {role} has ended: {status}"));
            }
            status.is_none()
        });
    }

    /// Runs the loop until the shares are fair and stay so, at most until the time limit.
    pub(crate) fn await_fair(&mut self) {
        let from = wait::now();
        let handed_over_before = self.handed_over();
        let (mut bound, mut is_excused) = (FAIR_WITHIN, false);
        let mut fair_since = None;
        while self.violations.is_empty() && !self.ground.is_given_up() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            let now = wait::now();
            let (held, moves) = (self.held(), self.handed_over() - handed_over_before);
            let (least, most) =
                (self.histories.len() / self.slots.len(), self.histories.len().div_ceil(self.slots.len()));
            if self.is_led() && held.iter().all(|held| (least..=most).contains(held)) {
                let since = *fair_since.get_or_insert(now);
                self.shares = Some(Shares { held, after: Duration::from_nanos(since - from), bound, moves });
                if since + nanos(STAYS_FAIR) <= now {
                    return;
                }
                continue;
            }
            fair_since = None;
            // A lost lead restarts the time, because a busy machine loses some leads. The number of restarts is limited.
            let loss = self.slots.iter().map(|slot| slot.lost_at).max().unwrap_or_default();
            let begins = loss.max(from).min(from + nanos(bound.mul_f64(tolerance(load()) - 1.0)));
            if now <= begins + nanos(bound) {
                continue;
            }
            if !is_excused {
                is_excused = true;
                bound += self.excuse(from);
                self.axis.note("chaos", format!("{held:?} is not fair; it must be within {bound:?}"));
                continue;
            }
            self.violations.push(format!("shares are {held:?}, and not fair within {bound:?}"));
            self.shares = Some(Shares { held, after: Duration::from_nanos(now - from), bound, moves });
        }
    }

    /// How long after `from` a role may be withheld from a candidate, or a candidate may get none, according to the journals of the
    /// present candidates.
    fn excuse(&self, from: u64) -> Duration {
        let names: Vec<String> = self.slots.iter().map(Slot::name).collect();
        let mut bars: HashMap<(String, String), (u32, u64)> = HashMap::new();
        let mut until = from;
        let mut resigned = 0;
        for (role, history) in self.histories.iter().enumerate() {
            let mut release = Value::Null;
            let mut refusals: HashMap<String, u32> = HashMap::new();
            let mut last = (None, String::new());
            for line in journal(self, role).0.iter().filter(|line| line["verdict"] == "effective") {
                let record = &line["record"];
                let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
                if record["kind"] == "release" {
                    release = record.clone();
                }
                if record["kind"] != "claim" {
                    continue;
                }
                let (why, successor) = (release["why"].take(), release["successor"].take());
                let led = history.job_runs.iter().rev().find(|job_run| Some(job_run.term) == line["offset"].as_u64());
                let at = led.map_or(0, |job_run| job_run.span.0);
                let name = text("name");
                let mut kept = None;
                if why == "spread"
                    && let (Elector::Log, Some(to)) = (self.orders.elector, successor.as_str())
                {
                    let giver = release["name"].as_str().unwrap_or_default().to_owned();
                    let bar = bars.entry((giver, to.to_owned())).or_default();
                    *bar = if to == text("member") { (0, 0) } else { (bar.0 + 1, at + nanos(twice(BARRED, bar.0))) };
                } else if why == "spread" {
                    let count = refusals.entry(name.clone()).or_default();
                    kept = Some(at + nanos(twice(KEPT, *count).min(KEPT_AT_MOST)));
                    *count += 1;
                } else if why == "resigned" {
                    kept = Some(at + nanos(KEPT));
                }
                last = (kept, name);
                resigned += u32::from(why == "resigned");
            }
            if let Some(kept) = last.0.filter(|_| names.contains(&last.1)) {
                until = until.max(kept);
            }
        }
        let barred = bars.iter().filter(|((giver, _), _)| names.contains(giver)).map(|(_, (_, until))| *until);
        let until = barred.max().unwrap_or_default().max(until);
        let roles = u32::try_from(self.histories.len()).expect("a few");
        Duration::from_nanos(until - from)
            + SETTLED * resigned.min(roles) * u32::from(self.orders.elector == Elector::Group)
    }
}

/// A duration doubled this many times.
fn twice(span: Duration, times: u32) -> Duration {
    span.saturating_mul(1 << times.min(6))
}
