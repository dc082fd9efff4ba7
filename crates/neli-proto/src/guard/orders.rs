//! The orders that the guard has not received yet. None may be lost when the socket is full: if a stop were dropped, its job would
//! continue.

use alloc::collections::VecDeque;
use core::mem;

use super::message::{Answer, Order};
use crate::guard::message::Target;

/// Messages that wait to be sent, each with an optional descriptor (`D`).
pub trait Waiting<D> {
    /// A message.
    type Message;
    /// The message that is sent next.
    fn first(&self) -> Option<(Self::Message, Option<&D>)>;
    /// Drops the descriptor of the next message, because it can't be sent and the later messages must not wait for it. Returns whether there was
    /// one.
    fn give_up_descriptor(&mut self) -> bool;
    /// Removes the message that is sent next.
    fn drop_first(&mut self);
    /// Whether no message waits.
    fn is_empty(&self) -> bool;
}

/// Orders in the order in which they were given, each with an optional descriptor (`D`). After them come the signals to pass on, so that
/// Stop and Kill never wait for signals. The list stays short: a guard that does not answer is killed within a lease, and of repeated
/// orders for a command only the last one is kept.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Orders<D> {
    waiting: VecDeque<(Order, Option<D>)>,
    signals: Forwarded,
    /// The term that the guard must release if the supervisor dies.
    owed: Option<i64>,
}

impl<D> Orders<D> {
    /// Adds an order at the end.
    pub fn put(&mut self, order: &Order, along: Option<D>) {
        match order {
            Order::Signal { signal, to } => return self.signals.put(*signal, *to),
            // The waiting signals were meant for the previous run.
            Order::Spawn { grant, .. } => {
                self.signals.clear();
                self.owed = Some(grant.term);
            }
            // Before the first run too.
            Order::Lease(grant) => self.owed = Some(grant.term),
            Order::Released { term } => drop(self.owed.take_if(|owed| *owed <= *term)),
            Order::Command { kind, .. } => {
                // If a command is ordered again, the earlier order was given up.
                let is_same =
                    |waiting: &Order| matches!(waiting, Order::Command { kind: waiting, .. } if waiting == kind);
                self.waiting.retain(|(waiting, _)| !is_same(waiting));
            }
            Order::HandOn | Order::Kill | Order::Over { .. } | Order::Stop { .. } | Order::TakeBack => {}
        }
        self.waiting.push_back((*order, along));
    }

    /// Whether the guard got a term that it must release if the supervisor dies. This is so until an order reports that the term was
    /// released.
    pub const fn owes_release(&self) -> bool {
        self.owed.is_some()
    }
}

impl<D> Waiting<D> for Orders<D> {
    type Message = Order;

    fn first(&self) -> Option<(Order, Option<&D>)> {
        match self.waiting.front() {
            Some((order, along)) => Some((*order, along.as_ref())),
            None => self.signals.first().map(|(signal, to)| (Order::Signal { signal, to }, None)),
        }
    }

    fn give_up_descriptor(&mut self) -> bool {
        self.waiting.front_mut().is_some_and(|(_, along)| along.take().is_some())
    }

    fn drop_first(&mut self) {
        if self.waiting.pop_front().is_none() {
            self.signals.take_first();
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.signals.is_empty()
    }
}

impl<D> Default for Orders<D> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), signals: Forwarded::default(), owed: None }
    }
}

// ---- signals for the job that can't be delivered yet ---------------------------------------------------------------

/// The kernel's first real-time signal. Real-time signals are queued, and lower ones are merged.
const FIRST_REAL_TIME: i32 = 32;

/// Waiting signals, merged as the kernel merges a process's pending signals. A standard signal is pending once, even if it was sent several
/// times; each real-time signal counts. So memory is limited, and the job gets the same signals as it would get directly.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Forwarded {
    /// Each signal and target once, in the order of their last sending, with the number of times.
    waiting: VecDeque<(i32, Target, u64)>,
}

impl Forwarded {
    /// Adds a signal. A standard signal that is pending moves to the end, because the later one of a stop and a SIGCONT decides.
    pub(super) fn put(&mut self, signal: i32, to: Target) {
        let same = self.waiting.iter().position(|(waiting, target, _)| (*waiting, *target) == (signal, to));
        if let Some((.., count)) = same.and_then(|at| self.waiting.get_mut(at)).filter(|_| signal >= FIRST_REAL_TIME) {
            *count += 1;
            return;
        }
        if let Some(at) = same {
            self.waiting.remove(at);
        }
        self.waiting.push_back((signal, to, 1));
    }

    /// The signal that is sent next.
    pub(super) fn first(&self) -> Option<(i32, Target)> {
        self.waiting.front().map(|(signal, to, _)| (*signal, *to))
    }

    /// Removes the signal that is sent next.
    pub(super) fn take_first(&mut self) -> Option<(i32, Target)> {
        let first = self.first();
        match self.waiting.front_mut() {
            Some((.., count @ 2..)) => *count -= 1,
            Some(_) | None => drop(self.waiting.pop_front()),
        }
        first
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Whether no signal waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The answers that the supervisor has not received yet, in their order, each with an optional descriptor (`D`): a stopped supervisor does not
/// block the guard, and gets the end of each job when it continues. The queue stays short: a run has few answers, and of an answer that may be
/// repeated only the last one is kept.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Answers<D> {
    waiting: VecDeque<(Answer, Option<D>)>,
}

impl<D> Answers<D> {
    /// Adds an answer at the end.
    pub fn put(&mut self, answer: Answer, along: Option<D>) {
        if may_come_often(&answer) {
            self.waiting.retain(|(waiting, _)| mem::discriminant(waiting) != mem::discriminant(&answer));
        }
        self.waiting.push_back((answer, along));
    }

    /// Removes the answer that is sent next, and returns it.
    pub fn take_first(&mut self) -> Option<(Answer, Option<D>)> {
        self.waiting.pop_front()
    }
}

impl<D> Waiting<D> for Answers<D> {
    type Message = Answer;

    fn first(&self) -> Option<(Answer, Option<&D>)> {
        self.waiting.front().map(|(answer, along)| (answer.clone(), along.as_ref()))
    }

    fn give_up_descriptor(&mut self) -> bool {
        let Some((answer, along)) = self.waiting.front_mut() else { return false };
        if let Answer::Started { pid } = *answer {
            *answer = Answer::StartedUnseen { pid };
        }
        along.take().is_some()
    }

    fn drop_first(&mut self) {
        self.waiting.pop_front();
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<D> Default for Answers<D> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

const fn may_come_often(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Extended { .. }
            | Answer::Fenced { .. }
            | Answer::NoRun { .. }
            | Answer::StillKilling
            | Answer::Stopped { .. }
    )
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::guard::message::{CommandKind, Grant, Target};
    use crate::time::Time;

    const SIGNAL: Order = Order::Signal { signal: 10, to: Target::Main };

    /// The orders that a guard without earlier orders receives.
    fn taken_after(given: &[Order]) -> Vec<Order> {
        let mut orders = Orders::<()>::default();
        for order in given {
            orders.put(order, None);
        }
        let taken = core::iter::from_fn(|| {
            let (first, _) = orders.first()?;
            assert!(!orders.is_empty());
            orders.drop_first();
            Some(first)
        });
        let taken = taken.collect();
        assert!(orders.is_empty());
        taken
    }

    #[test]
    fn a_signal_for_an_earlier_run_is_not_sent_to_the_next() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let spawn = Order::Spawn { grant, run: 2, attempt: 2, window: None };
        assert_eq!(taken_after(&[SIGNAL, spawn]), core::slice::from_ref(&spawn));
        assert_eq!(taken_after(&[spawn, SIGNAL]), [spawn, SIGNAL]);
    }

    #[test]
    fn a_release_is_owed_from_the_first_order_with_the_term_until_an_order_settles_it() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let mut orders = Orders::<()>::default();
        assert!(!orders.owes_release());
        orders.put(&Order::Lease(grant), None);
        assert!(orders.owes_release(), "before the first run");
        orders.put(&Order::Released { term: 1 }, None);
        assert!(!orders.owes_release());
        orders.put(&Order::Spawn { grant, run: 1, attempt: 1, window: None }, None);
        assert!(orders.owes_release());
        orders.put(&Order::Released { term: 0 }, None);
        assert!(orders.owes_release(), "that was an earlier term");
        while orders.first().is_some() {
            orders.drop_first();
        }
        orders.put(&Order::Over { term: 1 }, None);
        assert!(orders.owes_release());
        orders.put(&Order::Released { term: 1 }, None);
        assert!(!orders.owes_release());
    }

    #[test]
    fn an_order_that_gives_up_its_descriptor_stays_first() {
        let mut orders = Orders::default();
        assert!(!orders.give_up_descriptor(), "no order waits");
        orders.put(&Order::Released { term: 1 }, Some("terminal"));
        assert!(orders.give_up_descriptor());
        assert_eq!(orders.first(), Some((Order::Released { term: 1 }, None)));
        assert!(!orders.give_up_descriptor(), "it has given it up already");
    }

    #[test]
    fn of_a_command_the_last_order_counts() {
        let command = |kind, id| Order::Command { kind, id, kill_at: Time::from_nanos(1) };
        let (lead, health) = (command(CommandKind::Lead, 1), |id| command(CommandKind::Health, id));
        assert_eq!(taken_after(&[health(1), lead, health(2)]), [lead, health(2)]);
    }
}

#[cfg(test)]
mod tests_of_forwarded {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const SIGUSR1: i32 = 10;
    const SIGCONT: i32 = 18;
    const SIGTTIN: i32 = 21;

    fn taken(mut forwarded: Forwarded) -> Vec<(i32, Target)> {
        core::iter::from_fn(|| forwarded.take_first()).collect()
    }

    #[test]
    fn a_standard_signal_waits_once_and_a_real_time_one_as_often_as_it_was_sent() {
        let mut forwarded = Forwarded::default();
        for _ in 0..1_000 {
            forwarded.put(SIGUSR1, Target::Main);
        }
        for _ in 0..3 {
            forwarded.put(40, Target::Main);
        }
        forwarded.put(SIGUSR1, Target::Group);
        for signal in [31, 31, FIRST_REAL_TIME, FIRST_REAL_TIME] {
            forwarded.put(signal, Target::Main);
        }
        let expected = [(SIGUSR1, 1, Target::Main), (40, 3, Target::Main), (SIGUSR1, 1, Target::Group)];
        let expected = expected.into_iter().chain([(31, 1, Target::Main), (32, 2, Target::Main)]);
        let expected: Vec<_> = expected.flat_map(|(signal, times, to)| vec![(signal, to); times]).collect();
        assert_eq!(taken(forwarded), expected);
    }

    #[test]
    fn of_a_stop_and_a_continuation_the_later_one_decides() {
        let mut forwarded = Forwarded::default();
        for signal in [SIGTTIN, SIGCONT, SIGTTIN] {
            forwarded.put(signal, Target::Group);
        }
        assert_eq!(taken(forwarded).last(), Some(&(SIGTTIN, Target::Group)));
    }
}

#[cfg(test)]
mod tests_of_answers {
    use super::*;
    use crate::time::Time;

    #[test]
    fn of_a_thousand_extensions_the_last_is_kept_and_so_is_every_end() {
        let mut answers = Answers::<()>::default();
        for nanos in 0..1_000 {
            answers.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        answers.put(Answer::Gone, None);
        answers.put(Answer::Gone, None);
        assert_eq!(answers.first(), Some((Answer::Extended { until: Time::from_nanos(999) }, None)));
        assert!(!answers.is_empty());
        let taken: [_; 4] = core::array::from_fn(|_| answers.take_first().map(|(answer, _)| answer));
        let extended = Answer::Extended { until: Time::from_nanos(999) };
        assert_eq!(taken, [Some(extended), Some(Answer::Gone), Some(Answer::Gone), None]);
        assert!(answers.is_empty());
    }

    #[test]
    fn an_answer_that_gives_up_its_descriptor_stays_first() {
        let mut answers = Answers::default();
        assert!(!answers.give_up_descriptor(), "no answer waits");
        answers.put(Answer::Started { pid: 7 }, Some("pidfd"));
        answers.put(Answer::Gone, None);
        assert!(answers.give_up_descriptor());
        assert_eq!(answers.take_first(), Some((Answer::StartedUnseen { pid: 7 }, None)));
        assert!(!answers.give_up_descriptor(), "the answer came without one");
        assert_eq!(answers.take_first(), Some((Answer::Gone, None)));
    }
}
