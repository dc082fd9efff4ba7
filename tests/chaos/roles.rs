//! Candidates with many roles: each role has its own history, and at the end all roles must be spread fairly.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::judge::shares::{Fairness, RoleHistory, Seen, Verdict, excuse};
use harness::judge::{Counts, History, JobRun, Latest};
use harness::wait;

use crate::false_records;
use crate::report::{journal, load, tolerance};
use crate::run::Run;
use crate::slot::Slot;
use crate::stranger::Action;

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
        (latest(|history| &history.after_deadline), latest(|history| &history.after_term))
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
            self.disturb_for(2 * self.parameters.longest_lease());
        }
        if !self.has_many_roles() {
            return self.stranger.ask(Action::Write(0, false_records::resign(&self.group, term)));
        }
        let kafka = self.environment.cluster().kafka();
        let mut resign = Command::new(&self.parameters.program);
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
        let mut fairness = Fairness::new(from);
        let handed_over_before = self.handed_over();
        while self.violations.is_empty() && !self.environment.is_given_up() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            let seen = Seen {
                held: self.held(),
                roles: self.histories.len(),
                lost_at: self.slots.iter().map(|slot| slot.lost_at).max().unwrap_or_default(),
                moves: self.handed_over() - handed_over_before,
                tolerance: tolerance(load()),
            };
            let held = format!("{:?}", seen.held);
            let verdict = fairness.look(wait::now(), seen);
            self.shares.clone_from(&fairness.shares);
            match verdict {
                Verdict::NotYet => {}
                Verdict::Fair => return,
                Verdict::Late => {
                    let bound = fairness.allow(self.excuse(from));
                    self.axis.note("chaos", format!("{held} is not fair; it must be within {bound:?}"));
                }
                Verdict::Unfair(violation) => self.violations.push(violation),
            }
        }
    }

    /// How long after `from` shares may be unfair, according to the journals of the present candidates.
    fn excuse(&self, from: u64) -> Duration {
        let names: Vec<String> = self.slots.iter().map(Slot::name).collect();
        let histories = self.histories.iter().enumerate();
        let roles: Vec<_> = histories
            .map(|(role, history)| RoleHistory { lines: journal(self, role).0, job_runs: &history.job_runs })
            .collect();
        excuse(from, &roles, &names)
    }
}
