//! Steps as text.

use neli_proto::time::Time;

use crate::kafka::Slot;
use crate::machine::Reading;
use crate::setup::NAMES;
use crate::step::Step;
use crate::world::World;

impl World {
    /// The line about the next step.
    pub(super) fn describe(&self, step: Step) -> String {
        let flight = |index: usize| self.flying[index].record.to_string();
        let end = self.log.part.end();
        match step {
            Step::Answer(who) => format!("{} is told that the log holds {:?}", NAMES[who], self.bounds()),
            Step::AnswerLate(who) => {
                let machine = self.machine(who);
                let first = machine.and_then(|machine| machine.reader.answer);
                let later = machine.and_then(|machine| machine.late_answer).map(|(_, bounds)| bounds);
                format!("{} is told late that the log held {:?}", NAMES[who], first.or(later))
            }
            Step::Append(index) => format!("[{end}] {}", flight(index)),
            Step::AppendLate(index) => format!("[{end}] late: {}", flight(index)),
            Step::AppendFact(_) => "a fact reaches its topic".to_owned(),
            Step::AppendFactLate(_) => "a delayed fact reaches its topic".to_owned(),
            Step::Ask(who) => {
                format!("{} asks where the log ends; the answer {:?} is under way", NAMES[who], self.bounds())
            }
            Step::Begin(who) => format!("{} begins", NAMES[who]),
            Step::BrokerBegins => "a new embedded broker serves, with an empty log".to_owned(),
            Step::BrokerEnds => "the embedded broker ends, and its log with it".to_owned(),
            Step::Capture(who) => format!("the answer {:?} to {} is under way", self.bounds(), NAMES[who]),
            Step::ChildEnds(who) => format!("what {}'s job left ends", NAMES[who]),
            Step::Compact(offset) => format!("[{offset}] is deleted"),
            Step::Crash(who) => format!("{}'s supervisor is SIGKILLed", NAMES[who]),
            Step::Cut => {
                format!("the log's head is cut: {:?}", self.log.part.start_after_cut(self.now, self.cuts_young()))
            }
            Step::Delay(index) => format!("delayed: {}", flight(index)),
            Step::DelayFact(_) => "a fact is delayed".to_owned(),
            Step::Die(who) => format!("{}'s machine dies", NAMES[who]),
            Step::Double(index) => format!("[{end}] and not for the last time: {}", flight(index)),
            Step::End => format!("[{end}] the election is ended"),
            Step::Fire(who) => format!("{} does what is due", NAMES[who]),
            Step::GuardActs(who) => format!("{}'s guard does what is due", NAMES[who]),
            Step::GuardReads(who) => format!("{}'s guard reads an order", NAMES[who]),
            Step::GuardWaited(who) => format!("{} has waited for its dead guard", NAMES[who]),
            Step::Forget => "an operator has the key forgotten".to_owned(),
            Step::HealthEnds(who) => format!("{}'s health command finds its job well", NAMES[who]),
            Step::HealthFails(who) => format!("{}'s health command finds its job unhealthy", NAMES[who]),
            Step::HookEnds(who) => format!("{}'s hook ends", NAMES[who]),
            Step::Receive(who) => format!("{} receives an event of its guard or its producer", NAMES[who]),
            Step::Judge(who) => format!("{} is told that the topic may carry an election", NAMES[who]),
            Step::Identify(who) => format!("{} is told which topic this is: number {}", NAMES[who], self.remakes),
            Step::KillGuard(who) => format!("{}'s guard is SIGKILLed", NAMES[who]),
            Step::ReadFacts(who) => format!("{} is handed what its topic of facts holds", NAMES[who]),
            Step::ReadOldFacts(who) => {
                format!("{} is handed what its topic of facts held before the last fact", NAMES[who])
            }
            Step::Lag(who) => format!("{}'s reader lags from now on", NAMES[who]),
            Step::Lose(index) => format!("lost: {}", flight(index)),
            Step::MainEnds(who) => format!("{}'s job ends", NAMES[who]),
            Step::Marker => format!("[{end}] a transaction's marker"),
            Step::Mute(who) => format!("nobody tells {} any more which topic this is", NAMES[who]),
            Step::Nonsense => format!("[{end}] nonsense under the election's key"),
            Step::Other => format!("[{end}] a record of another key"),
            Step::Pause(who) => format!("{}'s supervisor is stopped", NAMES[who]),
            Step::PauseGuard(who) => format!("{}'s guard is stopped", NAMES[who]),
            Step::Read(who) | Step::ReadLate(who) => {
                let reading = self.machine(who).and_then(|machine| machine.to_read(&self.log.part));
                match reading {
                    Some(Reading::Record(offset, Slot::Record(record))) => {
                        format!("{} reads [{offset}] {record}", NAMES[who])
                    }
                    Some(Reading::Record(offset, _)) => format!("{} reads [{offset}]", NAMES[who]),
                    Some(Reading::End(next)) => format!("{} reads to the end, {next}", NAMES[who]),
                    Some(Reading::OutOfRange) => format!("{} finds its place cut away", NAMES[who]),
                    None => format!("{} reads nothing", NAMES[who]),
                }
            }
            Step::RemakeUnnoticed => "the topic is deleted and made again".to_owned(),
            Step::Resign(who) => format!("[{end}] {} is asked to resign", NAMES[who]),
            Step::Resume(who) => format!("{}'s supervisor goes on", NAMES[who]),
            Step::ResumeGuard(who) => format!("{}'s guard goes on", NAMES[who]),
            Step::StartGuard(who) => format!("it is the turn of {}'s guard to be started", NAMES[who]),
            Step::Stop(who) => format!("TERM to {}", NAMES[who]),
            Step::Suspend(who) => format!("TSTP to {}", NAMES[who]),
            Step::Tick => "time passes".to_owned(),
        }
    }
}

/// The line, with the times that `Debug` prints counted from `begin`.
pub(super) fn with_times_since(begin: Time, line: &str) -> String {
    let mut parts = line.split("Time(");
    let before = parts.next().unwrap_or_default().to_owned();
    let shown = parts.map(|part| {
        let (nanos, rest) = part.split_once(')').unwrap_or((part, ""));
        let time = Time::from_nanos(nanos.parse().unwrap_or(0));
        format!("{:.3} s{rest}", time.since(begin).as_secs_f64())
    });
    before + &shown.collect::<String>()
}
