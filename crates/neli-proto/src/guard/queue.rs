//! The messages that wait for the guard's socket: the supervisor's orders, and the guard's answers. None may be lost when the socket is full: if a stop
//! were dropped, its job would continue; and a supervisor that was stopped gets the end of each job when it continues.

use alloc::collections::VecDeque;
use core::mem;

use super::message::{Answer, Order};

/// Messages in the order in which they are sent, each with an optional descriptor (`D`), and how often it is sent. The list stays short: a guard that
/// does not answer is killed within a lease, a run has few answers, and of a message that may be repeated only the last one is kept.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Queue<M, D> {
    waiting: VecDeque<(M, Option<D>, u64)>,
}

impl<M: Clone, D> Queue<M, D> {
    /// The message that is sent next.
    pub fn first(&self) -> Option<(&M, Option<&D>)> {
        self.waiting.front().map(|(message, along, _)| (message, along.as_ref()))
    }

    /// Drops the descriptor of the next message, because it can't be sent and the later messages must not wait for it. Returns whether there was
    /// one.
    pub fn give_up_descriptor(&mut self) -> bool {
        self.waiting.front_mut().is_some_and(|(_, along, _)| along.take().is_some())
    }

    /// Removes the message that is sent next, and returns it.
    pub fn take_first(&mut self) -> Option<M> {
        match self.waiting.front_mut() {
            Some((message, _, times @ 2..)) => {
                *times -= 1;
                Some(message.clone())
            }
            Some(_) | None => self.waiting.pop_front().map(|(message, ..)| message),
        }
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<M, D> Default for Queue<M, D> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

/// The kernel's first real-time signal. Real-time signals are queued, and lower ones are merged.
const FIRST_REAL_TIME: i32 = 32;

impl<D> Queue<Order, D> {
    /// Adds an order. The signals to pass on come after all others, so that Stop and Kill never wait for signals. They are merged as the kernel merges a
    /// process's pending signals: a standard signal is pending once, even if it was sent several times; each real-time signal counts. So memory is
    /// limited, and the job gets the same signals as it would get directly.
    pub fn put(&mut self, order: &Order, along: Option<D>) {
        if let Order::Signal { signal, .. } = order {
            let same = self.waiting.iter_mut().find(|(waiting, ..)| waiting == order);
            if let Some((.., times)) = same.filter(|_| *signal >= FIRST_REAL_TIME) {
                *times += 1;
            } else {
                // One that is pending moves to the end, because the later one of a stop and a SIGCONT decides.
                self.waiting.retain(|(waiting, ..)| waiting != order);
                self.waiting.push_back((*order, along, 1));
            }
            return;
        }
        if let Order::Spawn { .. } = order {
            // The waiting signals were meant for the previous run.
            self.waiting.retain(|(waiting, ..)| !is_signal(waiting));
        } else if let Order::Command { kind, .. } = order {
            // If a command is ordered again, the earlier order was given up.
            let is_same = |waiting: &Order| matches!(waiting, Order::Command { kind: waiting, .. } if waiting == kind);
            self.waiting.retain(|(waiting, ..)| !is_same(waiting));
        }
        let before_signals = self.waiting.iter().take_while(|(waiting, ..)| !is_signal(waiting)).count();
        self.waiting.insert(before_signals, (*order, along, 1));
    }
}

const fn is_signal(order: &Order) -> bool {
    matches!(order, Order::Signal { .. })
}

impl<D> Queue<Answer, D> {
    /// Adds an answer at the end.
    pub fn put(&mut self, answer: Answer, along: Option<D>) {
        if may_come_often(&answer) {
            self.waiting.retain(|(waiting, ..)| mem::discriminant(waiting) != mem::discriminant(&answer));
        }
        self.waiting.push_back((answer, along, 1));
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
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::guard::message::{CommandKind, Grant, Target};
    use crate::time::Time;

    const SIGUSR1: i32 = 10;
    const SIGCONT: i32 = 18;
    const SIGTTIN: i32 = 21;

    const fn signal(signal: i32, to: Target) -> Order {
        Order::Signal { signal, to }
    }

    /// The orders that a guard without earlier orders receives.
    fn taken_after(given: &[Order]) -> Vec<Order> {
        let mut orders = Queue::<Order, ()>::default();
        for order in given {
            orders.put(order, None);
        }
        let taken = core::iter::from_fn(|| {
            let first = orders.first().map(|(first, _)| *first);
            assert_eq!((first.is_none(), first), (orders.is_empty(), orders.take_first()));
            first
        });
        taken.collect()
    }

    #[test]
    fn a_signal_for_an_earlier_run_is_not_sent_to_the_next() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let spawn = Order::Spawn { grant, run: 2, attempt: 2, window: None };
        let passed_on = signal(SIGUSR1, Target::Main);
        assert_eq!(taken_after(&[passed_on, spawn]), core::slice::from_ref(&spawn));
        assert_eq!(taken_after(&[spawn, passed_on]), [spawn, passed_on]);
    }

    #[test]
    fn of_a_command_the_last_order_counts() {
        let command = |kind, id| Order::Command { kind, id, kill_at: Time::from_nanos(1) };
        let (lead, health) = (command(CommandKind::Lead, 1), |id| command(CommandKind::Health, id));
        assert_eq!(taken_after(&[health(1), lead, health(2)]), [lead, health(2)]);
    }

    #[test]
    fn a_standard_signal_waits_once_and_a_real_time_one_as_often_as_it_was_sent() {
        let mut given = vec![signal(SIGUSR1, Target::Main); 1_000];
        given.extend([signal(40, Target::Main); 3]);
        given.push(signal(SIGUSR1, Target::Group));
        given.extend([31, 31, FIRST_REAL_TIME, FIRST_REAL_TIME].map(|number| signal(number, Target::Main)));
        let expected = [(SIGUSR1, 1, Target::Main), (40, 3, Target::Main), (SIGUSR1, 1, Target::Group)];
        let expected = expected.into_iter().chain([(31, 1, Target::Main), (32, 2, Target::Main)]);
        let expected: Vec<_> = expected.flat_map(|(number, times, to)| vec![signal(number, to); times]).collect();
        assert_eq!(taken_after(&given), expected);
    }

    #[test]
    fn of_a_stop_and_a_continuation_the_later_one_decides() {
        let taken = taken_after(&[SIGTTIN, SIGCONT, SIGTTIN].map(|number| signal(number, Target::Group)));
        assert_eq!(taken.last(), Some(&signal(SIGTTIN, Target::Group)));
    }

    #[test]
    fn of_a_thousand_extensions_the_last_is_kept_and_so_is_every_end() {
        let mut answers = Queue::<Answer, ()>::default();
        for nanos in 0..1_000 {
            answers.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        answers.put(Answer::Gone, None);
        answers.put(Answer::Gone, None);
        let extended = Answer::Extended { until: Time::from_nanos(999) };
        assert_eq!(answers.first(), Some((&extended, None)));
        assert!(!answers.is_empty());
        let taken: [_; 4] = core::array::from_fn(|_| answers.take_first());
        assert_eq!(taken, [Some(extended), Some(Answer::Gone), Some(Answer::Gone), None]);
        assert!(answers.is_empty());
    }

    #[test]
    fn a_message_that_gives_up_its_descriptor_stays_first() {
        let mut answers = Queue::<Answer, _>::default();
        assert!(!answers.give_up_descriptor(), "no answer waits");
        answers.put(Answer::StartedUnseen { pid: 7 }, Some("pidfd"));
        answers.put(Answer::Gone, None);
        assert!(answers.give_up_descriptor());
        assert_eq!(answers.first(), Some((&Answer::StartedUnseen { pid: 7 }, None)));
        assert!(!answers.give_up_descriptor(), "it has given it up already");
    }
}
