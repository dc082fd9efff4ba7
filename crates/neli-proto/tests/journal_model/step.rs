//! The steps of a world.

use neli_proto::record::Offset;

use crate::setup::{Faults, Who};

/// A possible next step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The answer to the first query arrives.
    Answer(Who),
    /// A delayed answer arrives.
    AnswerLate(Who),
    /// An append reaches the log.
    Append(usize),
    /// A fact reaches its topic.
    AppendFact(usize),
    /// A delayed fact reaches its topic.
    AppendFactLate(usize),
    /// A delayed append reaches the log.
    AppendLate(usize),
    /// The periodic query for the log's bounds is sent; the answer is under way.
    Ask(Who),
    /// A candidate begins.
    Begin(Who),
    /// A new embedded broker serves, with an empty log.
    BrokerBegins,
    /// The embedded broker ends, and its log with it.
    BrokerEnds,
    /// The broker answers the first query; the answer is delayed.
    Capture(Who),
    /// The process that a job's main process left ends.
    ChildEnds(Who),
    /// A record is deleted.
    Compact(Offset),
    /// A supervisor gets SIGKILL.
    Crash(Who),
    /// The beginning of the log is deleted.
    Cut,
    /// An append is delayed.
    Delay(usize),
    /// The recording of a fact is delayed.
    DelayFact(usize),
    /// A machine dies.
    Die(Who),
    /// An append reaches the log, and will reach it again.
    Double(usize),
    /// An operator ends the election.
    End,
    /// A supervisor handles what is due.
    Fire(Who),
    /// A guard handles what is due, or its supervisor's death.
    GuardActs(Who),
    /// A guard reads an order.
    GuardReads(Who),
    /// A dead guard has been waited for.
    GuardWaited(Who),
    /// An operator forgets the key.
    Forget,
    /// A health command succeeds.
    HealthEnds(Who),
    /// A health command fails.
    HealthFails(Who),
    /// A supervisor reads an answer of its guard, or a delivery report.
    Receive(Who),
    /// A hook ends.
    HookEnds(Who),
    /// A broker reports the topic's id.
    Identify(Who),
    /// R0 is judged, and the topic is suitable.
    Judge(Who),
    /// A guard gets SIGKILL.
    KillGuard(Who),
    /// A reader is delayed.
    Lag(Who),
    /// An append is lost.
    Lose(usize),
    /// A job's main process ends.
    MainEnds(Who),
    /// A transaction's marker is appended.
    Marker,
    /// From now on no broker reports the topic's id to this machine.
    Mute(Who),
    /// An undecodable record is written under the election's key.
    Nonsense,
    /// A record is written under another key.
    Other,
    /// A supervisor is stopped.
    Pause(Who),
    /// A guard is stopped.
    PauseGuard(Who),
    /// A reader delivers the next entry.
    Read(Who),
    /// The topic of facts is read to its end.
    ReadFacts(Who),
    /// A broker that leads the topic of facts no longer, and lacks the last one, is asked for the facts.
    ReadOldFacts(Who),
    /// A delayed reader delivers the next entry.
    ReadLate(Who),
    /// The topic is deleted and created again, and readers keep their positions.
    RemakeUnnoticed,
    /// An operator asks this machine's candidate to resign.
    Resign(Who),
    /// A supervisor continues.
    Resume(Who),
    /// A guard continues.
    ResumeGuard(Who),
    /// A guard that waits for its start is started.
    StartGuard(Who),
    /// SIGTERM to `neli-run`.
    Stop(Who),
    /// SIGTSTP to `neli-run`.
    Suspend(Who),
    /// The time advances to the next due event.
    Tick,
}

impl Step {
    /// Whether the step happens before the time advances.
    pub(crate) fn is_prompt(self) -> bool {
        match self {
            Self::Answer(_)
            | Self::Append(_)
            | Self::AppendFact(_)
            | Self::Fire(_)
            | Self::GuardActs(_)
            | Self::GuardReads(_)
            | Self::GuardWaited(_)
            | Self::Receive(_)
            | Self::Identify(_)
            | Self::Read(_)
            | Self::ReadFacts(_) => true,
            Self::AnswerLate(_)
            | Self::AppendFactLate(_)
            | Self::AppendLate(_)
            | Self::Ask(_)
            | Self::Begin(_)
            | Self::BrokerBegins
            | Self::BrokerEnds
            | Self::Capture(_)
            | Self::ChildEnds(_)
            | Self::Compact(_)
            | Self::Crash(_)
            | Self::Cut
            | Self::Delay(_)
            | Self::DelayFact(_)
            | Self::Die(_)
            | Self::Double(_)
            | Self::End
            | Self::Forget
            | Self::HealthEnds(_)
            | Self::HealthFails(_)
            | Self::HookEnds(_)
            | Self::Judge(_)
            | Self::KillGuard(_)
            | Self::ReadOldFacts(_)
            | Self::Lag(_)
            | Self::Lose(_)
            | Self::MainEnds(_)
            | Self::Marker
            | Self::Mute(_)
            | Self::Nonsense
            | Self::Other
            | Self::Pause(_)
            | Self::PauseGuard(_)
            | Self::ReadLate(_)
            | Self::RemakeUnnoticed
            | Self::Resign(_)
            | Self::Resume(_)
            | Self::ResumeGuard(_)
            | Self::StartGuard(_)
            | Self::Stop(_)
            | Self::Suspend(_)
            | Self::Tick => false,
        }
    }

    /// Whether the step ends a process or removes a record or another part of the world.
    pub(crate) fn is_an_end(self) -> bool {
        matches!(
            self,
            Self::Crash(_)
                | Self::Cut
                | Self::Die(_)
                | Self::KillGuard(_)
                | Self::MainEnds(_)
                | Self::Nonsense
                | Self::Resign(_)
                | Self::Stop(_)
        )
    }
}

impl Faults {
    /// The counter of this step's fault; `None` if the step is not a fault.
    pub(crate) fn of(&mut self, step: Step) -> Option<&mut u8> {
        Some(match step {
            Step::Ask(_) => &mut self.questions,
            Step::Begin(_) => &mut self.begins,
            Step::BrokerEnds => &mut self.broker_ends,
            Step::Capture(_) => &mut self.slow_answers,
            Step::Compact(_) => &mut self.compactions,
            Step::Crash(_) => &mut self.crashes,
            Step::Cut => &mut self.cuts,
            Step::Delay(_) => &mut self.delays,
            Step::DelayFact(_) => &mut self.fact_delays,
            Step::Die(_) => &mut self.deaths,
            Step::Double(_) => &mut self.doubles,
            Step::End => &mut self.ends,
            Step::Forget => &mut self.forgets,
            Step::HealthFails(_) => &mut self.failed_health_checks,
            Step::KillGuard(_) => &mut self.guard_deaths,
            Step::Lag(_) => &mut self.lags,
            Step::Lose(_) => &mut self.losses,
            Step::MainEnds(_) => &mut self.exits,
            Step::Marker => &mut self.markers,
            Step::Mute(_) => &mut self.mutes,
            Step::Nonsense => &mut self.nonsense,
            Step::Other => &mut self.others,
            Step::Pause(_) => &mut self.pauses,
            Step::PauseGuard(_) => &mut self.guard_pauses,
            Step::ReadOldFacts(_) => &mut self.old_facts,
            Step::RemakeUnnoticed => &mut self.unnoticed_remakes,
            Step::Resign(_) => &mut self.resigns,
            Step::Stop(_) => &mut self.stops,
            Step::Suspend(_) => &mut self.suspensions,
            Step::Answer(_)
            | Step::AnswerLate(_)
            | Step::Append(_)
            | Step::AppendFact(_)
            | Step::AppendFactLate(_)
            | Step::AppendLate(_)
            | Step::BrokerBegins
            | Step::ChildEnds(_)
            | Step::Fire(_)
            | Step::GuardActs(_)
            | Step::GuardReads(_)
            | Step::GuardWaited(_)
            | Step::HealthEnds(_)
            | Step::Receive(_)
            | Step::HookEnds(_)
            | Step::Identify(_)
            | Step::Judge(_)
            | Step::Read(_)
            | Step::ReadFacts(_)
            | Step::ReadLate(_)
            | Step::Resume(_)
            | Step::ResumeGuard(_)
            | Step::StartGuard(_)
            | Step::Tick => return None,
        })
    }
}
