//! Several causes, the first that applies (interface.md, Exit status): every pair of causes, at every moment of a run,
//! against the page's own order. Candidate and supervisor are the real ones; Kafka answers at once, or not at all, and the
//! guard does as it is told.

use std::collections::VecDeque;
use std::time::Duration;

use neli_run::logic::candidate::{self, Candidate, Elector, Identity, Patience, Right, Timings};
use neli_run::logic::precedence::Standing;
use neli_run::logic::record::{Body, MemberId, Offset, Record, What, Why};
use neli_run::logic::restart::{Limit, Restart, RestartPolicy};
use neli_run::logic::supervision::{Action, Ending, Event, JobStatus, Lost, OnLoss, Order, Policy, StopPolicy};
use neli_run::logic::supervisor::Supervisor;
use neli_run::logic::time::Time;

/// Something that ends a run, a term or all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    End,
    FenceWarning,
    GuardDied,
    LeaseOver,
    Resigned,
    Revoked,
    SecondTerm,
    Stuck,
    Superseded,
    Term,
    Unhealthy,
}

const CAUSES: [Cause; 11] = [
    Cause::End,
    Cause::FenceWarning,
    Cause::GuardDied,
    Cause::LeaseOver,
    Cause::Resigned,
    Cause::Revoked,
    Cause::SecondTerm,
    Cause::Stuck,
    Cause::Superseded,
    Cause::Term,
    Cause::Unhealthy,
];

/// What the first cause finds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Moment {
    /// The guard was told to start the job, and has not said that it runs.
    Ordered,
    /// The main process has ended with 5, and a daemon of its is being stopped.
    Leftover,
    /// The run before ended with 5, and the next one is not due yet.
    Pause,
    Running,
}

const MOMENTS: [Moment; 4] = [Moment::Ordered, Moment::Leftover, Moment::Pause, Moment::Running];

/// What the job makes of the stop signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Manner {
    /// It ends with 3.
    Obeys,
    /// It must be killed.
    Stubborn,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    Exit(u8),
    StandsBy,
}

const BY_ITSELF: u8 = 5;
const OBEYING: u8 = 3;
const KILLED: JobStatus = JobStatus::Signaled(9);

const LEASE: Duration = Duration::from_secs(5);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The page's words, in its order.
fn expected(causes: &[Cause], moment: Moment, manner: Manner, on_loss: OnLoss) -> Outcome {
    let any = |those: &[Cause]| causes.iter().any(|cause| those.contains(cause));
    if let (Moment::Pause, [first, second]) = (moment, causes)
        && *first != Cause::GuardDied
    {
        // Nothing was alive: the term was over before the second came, and at most the release still waits for Kafka.
        let alone = expected(&[*first], moment, manner, on_loss);
        let waits = *first == Cause::FenceWarning;
        return match second {
            _ if alone != Outcome::StandsBy && !waits => alone,
            Cause::Term | Cause::SecondTerm => Outcome::Exit(143),
            Cause::End | Cause::Stuck => expected(&[*second], moment, manner, on_loss),
            Cause::FenceWarning
            | Cause::GuardDied
            | Cause::LeaseOver
            | Cause::Resigned
            | Cause::Revoked
            | Cause::Superseded
            | Cause::Unhealthy => alone,
        };
    }
    let alive = moment != Moment::Pause;
    let fenced = any(&[Cause::GuardDied, Cause::LeaseOver, Cause::Superseded]);
    let killed_in_barrier = manner == Manner::Stubborn || any(&[Cause::SecondTerm]);
    if any(&[Cause::Stuck]) {
        return Outcome::Exit(85);
    }
    if any(&[Cause::End]) {
        return Outcome::Exit(0);
    }
    if any(&[Cause::Term, Cause::SecondTerm]) {
        return Outcome::Exit(match moment {
            Moment::Leftover | Moment::Pause => BY_ITSELF,
            Moment::Ordered | Moment::Running if fenced || killed_in_barrier => 137,
            Moment::Ordered | Moment::Running => OBEYING,
        });
    }
    match on_loss {
        OnLoss::Standby => Outcome::StandsBy,
        OnLoss::Exit if !alive => Outcome::Exit(80),
        OnLoss::Exit if fenced => Outcome::Exit(82),
        OnLoss::Exit if killed_in_barrier => Outcome::Exit(81),
        OnLoss::Exit => Outcome::Exit(80),
    }
}

#[test]
fn the_first_that_applies() {
    let mut looked_at = 0;
    for on_loss in [OnLoss::Standby, OnLoss::Exit] {
        for restart in [Restart::No, Restart::OnFailure, Restart::Always] {
            for moment in MOMENTS {
                if moment == Moment::Pause && restart == Restart::No {
                    continue;
                }
                for manner in [Manner::Obeys, Manner::Stubborn] {
                    for causes in tuples() {
                        let mut scene = Scene::begin(on_loss, restart, None);
                        scene.go_to(moment);
                        for cause in &causes {
                            scene.happens(*cause);
                        }
                        let outcome = scene.finish(manner);
                        let wanted = expected(&causes, moment, manner, on_loss);
                        assert_eq!(outcome, wanted, "{causes:?} {moment:?} {manner:?} {restart:?} {on_loss:?}");
                        looked_at += 1;
                    }
                }
            }
        }
    }
    assert_eq!(looked_at, 2 * (3 * 4 - 1) * 2 * tuples().len());
}

/// Each cause alone, and each two in both orders.
fn tuples() -> Vec<Vec<Cause>> {
    let alone = CAUSES.map(|cause| vec![cause]);
    let pairs = CAUSES.iter().flat_map(|one| CAUSES.iter().map(|other| vec![*one, *other]));
    alone.into_iter().chain(pairs.filter(|pair| pair[0] != pair[1])).collect()
}

/// The job's own end, and the limit, where nothing else comes; and what comes when it is all over but the release.
#[test]
fn the_end_of_its_own_comes_last() {
    for on_loss in [OnLoss::Standby, OnLoss::Exit] {
        for (restart, limit, wanted) in
            [(Restart::No, None, BY_ITSELF), (Restart::OnFailure, Some(0), 84), (Restart::Always, Some(0), 84)]
        {
            for moment in [Moment::Running, Moment::Leftover] {
                for manner in [Manner::Obeys, Manner::Stubborn] {
                    let mut scene = Scene::begin(on_loss, restart, limit);
                    scene.go_to(moment);
                    if moment == Moment::Running {
                        scene.main_ends(JobStatus::Exited(BY_ITSELF), false);
                    }
                    assert_eq!(scene.finish(manner), Outcome::Exit(wanted), "{restart:?} {moment:?} {manner:?}");
                }
            }
            // While the release waits for Kafka, the job is no more.
            for (cause, wanted) in [(Cause::Term, 143), (Cause::SecondTerm, 143), (Cause::LeaseOver, wanted)] {
                let mut scene = Scene::begin(on_loss, restart, limit);
                scene.go_to(Moment::Running);
                scene.kafka_answers = false;
                scene.main_ends(JobStatus::Exited(BY_ITSELF), false);
                scene.happens(cause);
                assert_eq!(scene.finish(Manner::Obeys), Outcome::Exit(wanted), "{cause:?} {restart:?}");
            }
        }
    }
}

/// After a loss it stands by: a stop is none of a job's.
#[test]
fn after_a_loss_a_stop_has_its_own_status() {
    for cause in [Cause::Revoked, Cause::Resigned, Cause::Unhealthy, Cause::FenceWarning, Cause::LeaseOver] {
        let mut scene = Scene::begin(OnLoss::Standby, Restart::No, None);
        scene.go_to(Moment::Running);
        scene.happens(cause);
        assert_eq!(scene.finish(Manner::Obeys), Outcome::StandsBy, "{cause:?}");
        scene.happens(Cause::Term);
        assert_eq!(scene.finish(Manner::Obeys), Outcome::Exit(143), "{cause:?}");
    }
}

// ---- the scene ----------------------------------------------------------------------------------------------------

/// One machine, and a Kafka of its own.
struct Scene {
    now: Time,
    candidate: Candidate,
    supervisor: Supervisor,
    guard: Guard,
    /// Otherwise what is sent reaches nobody.
    kafka_answers: bool,
    /// Where the next record goes.
    end: Offset,
    /// Appended and not read yet.
    unread: VecDeque<Record>,
    exit: Option<Ending>,
}

/// A guard that does as it is told.
#[derive(Default)]
struct Guard {
    deadline: Option<Time>,
    run: Option<Run>,
    /// It does not say yet that the job runs.
    holds_start: bool,
    /// It is dead, and what it left is being killed.
    is_dead: bool,
}

#[derive(Clone, Copy, Default)]
struct Run {
    main_is_gone: bool,
    kill_at: Option<Time>,
    /// It was sent SIGKILL, and is not gone yet: what will be said then.
    dying: Option<Dying>,
}

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Dying {
    Killed,
    Fenced,
}

impl Scene {
    /// A leader whose job the guard was told to start.
    fn begin(on_loss: OnLoss, restart: Restart, limit: Option<u32>) -> Self {
        let now = Time::from_nanos(1_000_000_000_000);
        let member = MemberId::from("me");
        let hello = Body::Hello { host: None, pid: None, version: None, elector: None };
        let timings = Timings {
            lease: LEASE,
            heartbeat_interval: LEASE / 5,
            kill_margin: LEASE / 50,
            fence_warning: LEASE / 4,
            claim_delay: Duration::ZERO,
            elector: Elector::Group(Patience::For(Duration::from_millis(500))),
        };
        let policy = Policy {
            stop: StopPolicy { signal: 15, timeout: STOP_TIMEOUT, kill_margin: timings.kill_margin },
            restart: RestartPolicy {
                restart,
                delay: Duration::from_secs(20),
                limit: limit.map(|restarts| Limit { restarts, within: Duration::from_secs(60) }),
            },
            on_loss,
            health: None,
        };
        let identity = Identity { member, name: "me".into(), hello };
        let mut scene = Self {
            now,
            candidate: Candidate::new(now, identity, timings, 1, (now, None)),
            supervisor: Supervisor::new(policy),
            guard: Guard { holds_start: true, ..Guard::default() },
            kafka_answers: true,
            end: 0,
            unread: VecDeque::new(),
            exit: None,
        };
        scene.tell(candidate::Event::TopicJudged { cut_is_harmless: true });
        scene.tell(candidate::Event::Answered { asked: now, start: 0, end: 0, trusted: true });
        scene.tell(candidate::Event::StandingChanged(Standing::Assigned));
        assert!(scene.guard.run.is_some(), "it leads");
        scene
    }

    fn go_to(&mut self, moment: Moment) {
        if moment == Moment::Ordered {
            return;
        }
        self.say_started();
        match moment {
            Moment::Ordered | Moment::Running => {}
            Moment::Leftover => self.main_ends(JobStatus::Exited(BY_ITSELF), true),
            Moment::Pause => self.main_ends(JobStatus::Exited(BY_ITSELF), false),
        }
    }

    fn happens(&mut self, cause: Cause) {
        match cause {
            Cause::End => self.append(None, Body::Request { what: What::End, term: None, by: None, reason: None }),
            // Whatever comes after it, the beats come back again.
            Cause::FenceWarning => self.without_kafka(LEASE * 3 / 4),
            Cause::GuardDied => self.guard_dies(),
            Cause::LeaseOver => self.without_kafka(LEASE),
            Cause::Resigned => {
                let (term, by, reason) = (self.candidate.leads(), None, None);
                self.append(None, Body::Request { what: What::Resign, term, by, reason });
            }
            Cause::Revoked => self.tell(candidate::Event::Revoked),
            Cause::SecondTerm => {
                self.signal_term();
                self.pass(Duration::from_millis(600));
                self.signal_term();
            }
            Cause::Stuck => self.hear(Event::Stuck { pids: vec![77] }),
            Cause::Superseded => {
                let after = self.end - 1;
                self.append(Some("other"), Body::Claim { after, lease_ms: 5_000 });
            }
            Cause::Term => self.signal_term(),
            Cause::Unhealthy => self.tell(candidate::Event::StandDown { why: Why::Unhealthy, leaving: false }),
        }
    }

    /// What is left of the job ends, and what is left of the lead: beyond the last cool-off nothing changes any more.
    fn finish(&mut self, manner: Manner) -> Outcome {
        if self.guard.run.is_some() && self.guard.holds_start {
            self.say_started();
        }
        match (self.guard.run, manner) {
            (Some(Run { dying: None, main_is_gone: true, .. }), Manner::Obeys) => self.gone(),
            (Some(Run { dying: None, .. }), Manner::Obeys) => self.main_ends(JobStatus::Exited(OBEYING), false),
            (Some(Run { dying: None, .. }), Manner::Stubborn) => self.pass(STOP_TIMEOUT),
            (None | Some(Run { dying: Some(_), .. }), _) => {}
        }
        self.die();
        if self.guard.is_dead {
            self.hear(Event::Gone);
        }
        if self.exit.is_none() {
            // Another leads from now on, so that this one stands by.
            self.happens(Cause::Superseded);
        }
        self.pass(LEASE);
        self.exit.map_or(Outcome::StandsBy, |ending| Outcome::Exit(code(ending)))
    }

    // ---- time, Kafka ------------------------------------------------------------------------------------------------

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.exit.is_none() {
            let guard = [self.guard.deadline, self.guard.run.and_then(|run| run.kill_at)];
            let logic = [self.candidate.poll_timeout(), self.supervisor.poll_timeout()];
            let Some(next) = guard.into_iter().chain(logic).flatten().min().filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            self.guard_acts();
            self.supervisor.handle_timeout(self.now);
            self.candidate.handle_timeout(self.now);
            self.perform();
        }
        self.now = self.now.max(until);
    }

    fn without_kafka(&mut self, span: Duration) {
        let before = std::mem::replace(&mut self.kafka_answers, false);
        self.pass(span);
        self.kafka_answers = before;
    }

    fn append(&mut self, by: Option<&str>, body: Body) {
        self.unread.push_back(Record { member: by.map(MemberId::from), name: None, seq: None, body });
        self.perform();
    }

    // ---- the guard --------------------------------------------------------------------------------------------------

    fn obey(&mut self, order: Order) {
        match order {
            Order::Extend(right) => self.hold_until(right),
            Order::Kill => self.kill(),
            Order::Over { .. } => self.guard.deadline = None,
            Order::Signal { .. } => {}
            Order::Spawn { right, .. } => {
                assert!(self.guard.run.is_none(), "one at a time");
                self.guard.run = Some(Run::default());
                self.hold_until(right);
                if !self.guard.holds_start {
                    self.supervisor.handle(self.now, Event::Started { pid: 7 });
                }
            }
            Order::Stop { kill_at, .. } => self.guard.run.iter_mut().for_each(|run| run.kill_at = Some(kill_at)),
        }
    }

    fn hold_until(&mut self, right: Right) {
        self.guard.deadline = self.guard.deadline.max(Some(right.until));
        self.supervisor.handle(self.now, Event::Answered { until: right.until });
    }

    fn say_started(&mut self) {
        self.guard.holds_start = false;
        self.hear(Event::Started { pid: 7 });
    }

    fn guard_acts(&mut self) {
        if self.guard.deadline.is_some_and(|deadline| self.now >= deadline) {
            self.guard.deadline = None;
            match &mut self.guard.run {
                Some(run) => run.dying = Some(Dying::Fenced),
                None => self.hear(Event::Fenced { term: self.supervisor.term() }),
            }
        } else if self.guard.run.and_then(|run| run.kill_at).is_some_and(|at| self.now >= at) {
            self.kill();
        }
    }

    fn kill(&mut self) {
        if let Some(run) = self.guard.run.as_mut().filter(|run| run.dying.is_none()) {
            (run.dying, run.kill_at) = (Some(Dying::Killed), None);
            self.hear(Event::KilledAtTimeout);
        }
    }

    /// What was sent SIGKILL is gone.
    fn die(&mut self) {
        let Some(run) = self.guard.run.filter(|run| run.dying.is_some()) else { return };
        self.guard.run = None;
        if !run.main_is_gone {
            self.hear(Event::MainExited { status: KILLED, left: false });
        }
        self.hear(match run.dying {
            Some(Dying::Fenced) => Event::Fenced { term: self.supervisor.term() },
            Some(Dying::Killed) | None => Event::Gone,
        });
    }

    fn guard_dies(&mut self) {
        self.guard = Guard { is_dead: true, ..Guard::default() };
        self.supervisor.handle(self.now, Event::GuardDied);
        self.perform();
    }

    fn main_ends(&mut self, status: JobStatus, left: bool) {
        self.guard.run.iter_mut().for_each(|run| run.main_is_gone = true);
        self.hear(Event::MainExited { status, left });
        if !left {
            self.gone();
        }
    }

    fn gone(&mut self) {
        self.guard.run = None;
        self.hear(Event::Gone);
    }

    // ---- as run.rs does ---------------------------------------------------------------------------------------------

    fn signal_term(&mut self) {
        self.supervisor.handle_signal(self.now, 15);
        self.perform();
    }

    fn hear(&mut self, event: Event) {
        self.supervisor.handle(self.now, event);
        self.perform();
    }

    fn tell(&mut self, event: candidate::Event) {
        self.candidate.handle(self.now, event);
        self.perform();
    }

    fn perform(&mut self) {
        while self.exit.is_none() {
            if let Some(action) = self.supervisor.poll_action() {
                self.perform_for_supervisor(action);
            } else if let Some(action) = self.candidate.poll_action() {
                self.perform_for_candidate(action);
            } else if let Some(record) = self.unread.pop_front() {
                let offset = self.end;
                self.end += 1;
                let event = match &record.body {
                    Body::Hello { .. } => candidate::Event::ReadOther { offset, hello: None },
                    Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => {
                        candidate::Event::Read { offset, record: Some(record) }
                    }
                };
                self.candidate.handle(self.now, event);
            } else {
                return;
            }
        }
    }

    fn perform_for_supervisor(&mut self, action: Action) {
        match action {
            Action::Exit(ending) => self.exit = Some(ending),
            Action::GiveUpWaiting => self.candidate.give_up(self.now),
            // It is given little time to kill at the lease's end.
            Action::KillGuard => self.guard_dies(),
            Action::CheckHealth { .. } | Action::KillOrphans | Action::Note(_) => {}
            Action::StartGuard => self.guard = Guard::default(),
            Action::Order(order) => self.obey(order),
            Action::Tell(event) => self.candidate.handle(self.now, event),
        }
    }

    fn perform_for_candidate(&mut self, action: candidate::Action) {
        use candidate::Action;
        let event = match action {
            Action::Depart(departure) => Event::Departed(departure),
            Action::Extend(right) => Event::Extended(right),
            Action::Kill(loss) => Event::Killed(loss),
            Action::Lead(right) => Event::Led(right),
            Action::Send { record } => {
                if self.kafka_answers {
                    self.unread.push_back(record);
                }
                return;
            }
            Action::StopJob(why) => Event::StoppedFor(why),
            // Whoever asks anew is told nothing: it is to stand by, and not to lead again.
            Action::Ask
            | Action::ForgetTerms
            | Action::JoinGroup
            | Action::LeaveGroup
            | Action::Note(_)
            | Action::ReadFrom(_) => return,
        };
        self.supervisor.handle(self.now, event);
    }
}

fn code(ending: Ending) -> u8 {
    match ending {
        Ending::Ended => 0,
        Ending::Job(status) => status.code(),
        Ending::Lost(Lost::Fenced) => 82,
        Ending::Lost(Lost::Killed) => 81,
        Ending::Lost(Lost::Stopped) => 80,
        Ending::RestartLimit => 84,
        Ending::StoppedBy(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        Ending::Stuck => 85,
        Ending::WaitedEnough => 75,
    }
}
