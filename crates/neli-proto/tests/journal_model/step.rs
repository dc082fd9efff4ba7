//! What can happen, one thing at a time.

use neli_proto::record::Offset;

use crate::setup::{Faults, Who};

/// What can happen next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The broker's answer to the first question arrives.
    Answer(Who),
    /// A late answer arrives.
    AnswerLate(Who),
    /// An append reaches the log.
    Append(usize),
    /// A fact reaches its topic.
    AppendFact(usize),
    /// A delayed fact reaches its topic.
    AppendFactLate(usize),
    /// A delayed append reaches the log.
    AppendLate(usize),
    /// The question of every 20 s is asked and answered; the answer is under way.
    Ask(Who),
    /// A candidate begins.
    Begin(Who),
    /// The broker answers the first question; the answer takes its time.
    Capture(Who),
    /// What a job's main process left ends.
    ChildEnds(Who),
    /// A record is deleted.
    Compact(Offset),
    /// A supervisor is sent SIGKILL.
    Crash(Who),
    /// The log's head is cut.
    Cut,
    /// An append takes its time.
    Delay(usize),
    /// A fact takes its time.
    DelayFact(usize),
    /// A machine dies.
    Die(Who),
    /// An append reaches the log, and will again.
    Double(usize),
    /// An operator ends the election.
    End,
    /// A supervisor does what is due.
    Fire(Who),
    /// A guard does what is due, or outlives its supervisor.
    GuardActs(Who),
    /// A guard reads an order.
    GuardReads(Who),
    /// A dead guard has been waited for.
    GuardWaited(Who),
    /// An operator has the key forgotten.
    Forget,
    /// A health command ends well.
    HealthEnds(Who),
    /// A health command fails.
    HealthFails(Who),
    /// A supervisor hears its guard, or its producer.
    Hear(Who),
    /// A hook ends.
    HookEnds(Who),
    /// A broker says which topic stands under the name.
    Identify(Who),
    /// R0 is judged, and the topic may carry an election.
    Judge(Who),
    /// A guard is sent SIGKILL.
    KillGuard(Who),
    /// A reader takes its time.
    Lag(Who),
    /// An append is lost.
    Lose(usize),
    /// A job's main process ends.
    MainEnds(Who),
    /// A transaction's marker is appended.
    Marker,
    /// From now on no broker tells this machine which topic stands under the name.
    Mute(Who),
    /// Somebody writes nonsense under the election's key.
    Nonsense,
    /// Somebody writes under another key.
    Other,
    /// A supervisor is stopped.
    Pause(Who),
    /// A guard is stopped.
    PauseGuard(Who),
    /// A reader hands over what is next.
    Read(Who),
    /// The topic of facts is read to its end.
    ReadFacts(Who),
    /// A reader that takes its time hands over what is next.
    ReadLate(Who),
    /// The broker dies, and a new one begins with an empty log.
    Remake,
    /// The topic is deleted and made again, and readers go on where they were.
    RemakeUnnoticed,
    /// An operator asks the leader of this machine to resign.
    Resign(Who),
    /// A supervisor goes on.
    Resume(Who),
    /// A guard goes on.
    ResumeGuard(Who),
    /// A guard that waits for it is started.
    StartGuard(Who),
    /// TERM to `neli-run`.
    Stop(Who),
    /// TSTP to `neli-run`.
    Suspend(Who),
    /// The time goes on to what is due next.
    Tick,
}

impl Step {
    /// Whether it comes before the time goes on.
    pub(crate) fn is_prompt(self) -> bool {
        match self {
            Self::Answer(_)
            | Self::Append(_)
            | Self::AppendFact(_)
            | Self::Fire(_)
            | Self::GuardActs(_)
            | Self::GuardReads(_)
            | Self::GuardWaited(_)
            | Self::Hear(_)
            | Self::Identify(_)
            | Self::Read(_)
            | Self::ReadFacts(_) => true,
            Self::AnswerLate(_)
            | Self::AppendFactLate(_)
            | Self::AppendLate(_)
            | Self::Ask(_)
            | Self::Begin(_)
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
            | Self::Remake
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

    /// Whether somebody or something is gone afterwards.
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
    /// Which of them this step is; none that is none.
    pub(crate) fn of(&mut self, step: Step) -> Option<&mut u8> {
        Some(match step {
            Step::Ask(_) => &mut self.questions,
            Step::Begin(_) => &mut self.begins,
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
            Step::Remake => &mut self.remakes,
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
            | Step::ChildEnds(_)
            | Step::Fire(_)
            | Step::GuardActs(_)
            | Step::GuardReads(_)
            | Step::GuardWaited(_)
            | Step::HealthEnds(_)
            | Step::Hear(_)
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
