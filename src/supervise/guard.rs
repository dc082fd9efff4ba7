//! The main loop's part in a role's guard: sends orders, receives answers, and starts a new guard.

use std::os::fd::OwnedFd;
use std::{io, mem};

use neli_kafka::{EVENTS_TOGETHER, Host, clock};
use neli_proto::node;
use neli_proto::supervisor::Event;
use nix::unistd::Pid;

use crate::exit::is_shortage;
use crate::guard::{Answer, CommandKind, GuardHandle, Order};
use crate::process::held::HeldProcess;
use crate::process::procfs;
use crate::release::ReleaseConfig;
use crate::report::events;
use crate::supervise::commands::health_ended;
use crate::supervise::job::StartGuard;
use crate::supervise::{MainLoop, start};
use crate::text::why_not_started;

impl MainLoop {
    pub(super) fn order(&mut self, role: usize, order: &Order) {
        if let Order::Spawn { .. } = order {
            self.shell.terminal.forget_job();
            if self.nodes.roles[role].job.as_ref().is_some_and(|job| job.config.foreground) {
                self.shell.terminal.about_to_hand_on();
            }
        } else if let Order::HandOn = order {
            self.shell.terminal.about_to_hand_on();
        } else if let Order::Command { kind: CommandKind::Health, id, .. } = order {
            return self.check_health(role, *id, order);
        }
        if let Some(job) = &self.nodes.roles[role].job {
            job.send(order, None);
        } else if let Order::Over { .. } = order {
            // No job of that term has run, because a job needs a guard.
            self.guard_starts.remove(role);
        }
    }

    /// Sends the orders that are queued for a role's guard. If the guard does not read them, the supervisor notices the missing answers.
    pub(super) fn send_queued_orders(&mut self, role: usize) {
        self.nodes.roles[role].job.iter().for_each(|job| drop(job.guard.flush()));
        self.nodes.touch(role);
    }

    /// Handles the answers of a role's guard that have come: more than its socket contains, but not without end.
    pub(super) fn handle_answers(&mut self, role: usize) {
        for _ in 0..EVENTS_TOGETHER {
            let Some(job) = &mut self.nodes.roles[role].job else { return };
            // The answer to a start contains the job's descriptor, which must not be lost at the limit of open files.
            match self.reserve.lent(|| job.guard.receive()) {
                Ok(Some((answer, descriptor))) => self.handle_answer(role, answer, descriptor),
                // The end of file is a reason to kill, but never to release: only the guard's death is.
                Ok(None) => {
                    job.is_silent = true;
                    job.is_killed_alive |= !job.guard.is_dead && !procfs::is_ending(job.guard.pid());
                    return self.kill_guard(role);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return,
            }
        }
        self.is_unfinished = true;
    }

    fn handle_answer(&mut self, role: usize, answer: Answer, descriptor: Option<OwnedFd>) {
        if !matches!(answer, Answer::Accepted { .. } | Answer::Ready) {
            // Its job has started, or will not start: the next guard may start.
            self.guard_starts.remove(role);
        }
        self.note_terminal(role, &answer);
        if let Answer::Started { pid } | Answer::StartedUnseen { pid } = answer {
            let main = descriptor.map(|pidfd| HeldProcess { pid: Pid::from_raw(pid), pidfd: Some(pidfd) });
            if let Some(job) = &mut self.nodes.roles[role].job
                && mem::replace(&mut job.main, main).is_some()
            {
                // The guard's answer replaced the descriptor of the previous run, which was closed.
                self.reserve.regain(1);
            }
        }
        if let Answer::LeftBehind { processes, count, killed } = &answer {
            self.nodes.roles[role].logger.event(&events::left_behind(
                processes,
                *count,
                *killed,
                self.config.job.stop.timeout,
            ));
        }
        let event = if let Answer::CommandEnded { kind: CommandKind::Health, id, end } = answer {
            health_ended(&mut self.nodes.roles[role].health_output, id, end, |line| self.stderr.pass_on(line))
        } else {
            node::Event::Guard(answer)
        };
        self.tell(role, event);
        self.perform();
    }

    /// Passes an event about a role's job to its node.
    pub(super) fn job_event(&mut self, role: usize, event: Event) {
        self.tell(role, node::Event::Job(event));
    }

    /// Requests a guard for a role that has none; it starts when it is its turn.
    pub(super) fn need_guard(&mut self, role: usize) {
        if self.nodes.roles[role].job.is_none() {
            self.guard_starts.want(role, clock::now());
        }
    }

    /// Starts the next guard whose turn it is, if any. It starts only one, so that all other due work comes before the next one.
    pub(super) fn start_next_guard(&mut self) {
        let Some(role) = self.guard_starts.next(clock::now()) else { return };
        self.start_first_guard(role);
        // In each turn guards' answers are handled before Kafka's events. With many guards, no heartbeat would be read without this call.
        self.handle_session_events();
        self.perform();
    }

    fn start_first_guard(&mut self, role: usize) {
        let (election, release) = (&self.nodes.roles[role].election, self.release_config(role));
        let guard_config = self.job_maker.guard_config(&self.config, election, Some(release));
        match self.reserve.lent(|| self.job_maker.start_job(guard_config, GuardHandle::begin)) {
            Ok(job) => {
                self.nodes.roles[role].job = Some(job);
                self.job_event(role, Event::HasGuard(true));
            }
            Err(error) => self.guard_refused(role, "the guard can't be started", &error),
        }
    }

    fn release_config(&self, role: usize) -> ReleaseConfig {
        let (access, member) = (self.nodes.session.access(), &self.job_maker.member);
        let (election, hello) = (&self.nodes.roles[role].election, self.nodes.hello_after_death());
        start::release_config(&self.config, access, election, member, hello.as_ref())
    }

    /// Gives a new guard its configuration: it has no term yet.
    pub(super) fn renew_guard(&mut self, role: usize) {
        let release = self.release_config(role);
        if let Some(job) = &mut self.nodes.roles[role].job {
            job.config.release = Some(release);
            self.start_guard(role);
        }
    }

    pub(super) fn start_guard(&mut self, role: usize) {
        let Some(job) = &mut self.nodes.roles[role].job else {
            // One that could not be started before.
            self.guard_starts.remove(role);
            return self.start_first_guard(role);
        };
        // Several guards may have died together. Waiting for the exec of each would delay the other roles' heartbeats.
        let is_one_of_many = self.config.elections.are_many();
        let start: StartGuard = if is_one_of_many { GuardHandle::begin } else { GuardHandle::start };
        if let Err(error) = self.reserve.lent(|| job.start_guard(start)) {
            self.guard_refused(role, "the guard can't be started again", &error);
        }
    }

    /// Without a guard no job can run here. The term is released, so that another candidate takes over at once; for lack of descriptors, processes
    /// or memory this one tries again, and otherwise exits.
    fn guard_refused(&mut self, role: usize, what: &str, error: &io::Error) {
        self.guard_starts.remove(role);
        let again = is_shortage(error);
        self.job_event(role, Event::GuardNotStarted { again });
        let error = format!("{what}: {}", why_not_started(error));
        if !again {
            return self.nodes.tell_all(&node::Event::Refused(error.into()));
        }
        let now = clock::now();
        let (of, fewer) = if self.config.elections.are_many() {
            (format!("role {}: ", self.nodes.roles[role].election.label()), ", or lead fewer roles (--max-roles)")
        } else {
            (String::new(), "")
        };
        let warning = format!(
            "{of}{error}; until one can be, which is tried each 5s, it is not led here: raise the limit{fewer}"
        );
        self.lack_of_guards.begin(now, warning);
        if let Some((warning, _)) = self.lack_of_guards.poll(now) {
            self.logger.warn(warning);
        }
    }
}
