//! Whether Kafka answers this process, and which appends it refuses.

use std::time::Duration;

use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;

use crate::report::notes::Trouble;

/// Whether Kafka answers this process, and whether an empty log is reliable.
#[derive(Default)]
pub(super) struct KafkaState {
    /// No broker answers.
    pub(super) outage: Reminder,
    /// The group does not take this process's member.
    pub(super) group: Reminder,
    /// Appends that Kafka refuses, by Kafka's reasons.
    pub(super) refused_appends: Reminders,
    /// The time from which the empty log of an embedded broker that follows a killed one is reliable; `None` once it is.
    trusted_from: Option<Time>,
    /// The time without a heartbeat after which a broker counts as dead; set when the lease was compared with it.
    pub(super) broker_session: Option<Duration>,
}

/// Whether an empty log is a new one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trust {
    Full,
    /// From this time on; `is_known` if this was the previous answer too.
    From {
        at: Time,
        is_known: bool,
    },
}

impl KafkaState {
    /// One line for each kind of refusal, and again every 30 s. While no broker answers, the outage is logged instead.
    pub(super) fn append_was_refused(&mut self, now: Time, error: String) {
        if self.outage.trouble().is_none() {
            self.refused_appends.begin(now, error);
        }
    }

    /// The problem with Kafka, and since when it lasts.
    pub(super) fn trouble(&self) -> Option<(Time, Trouble)> {
        let down = self.outage.trouble().map(|(since, error)| (since, Trouble::NoBroker(error.to_owned())));
        let refused =
            || self.refused_appends.trouble().map(|(since, error)| (since, Trouble::Refused(error.to_owned())));
        let group = || self.group.trouble().map(|(since, error)| (since, Trouble::Group(error.to_owned())));
        down.or_else(refused).or_else(group)
    }

    /// Whether an empty log is a new one. That of an embedded broker that follows a killed one is not before `trusted_from`.
    pub(super) fn trust_in_log(&mut self, now: Time, trusted_from: Time) -> Trust {
        if now >= trusted_from {
            return Trust::Full;
        }
        Trust::From { at: trusted_from, is_known: self.trusted_from.replace(trusted_from) == Some(trusted_from) }
    }

    /// Whether a log that was not reliable is so from now on; returns true once.
    pub(super) fn log_becomes_trusted(&mut self, now: Time) -> bool {
        self.trusted_from.take_if(|from| now >= *from).is_some()
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let reminders = [&self.outage, &self.group].map(Reminder::poll_timeout);
        let timeouts = reminders.into_iter().chain([self.refused_appends.poll_timeout(), self.trusted_from]);
        timeouts.flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSAL: &str = "Not enough in-sync replicas";

    #[test]
    fn a_refused_append_is_the_trouble_while_brokers_answer() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut state = KafkaState::default();
        state.append_was_refused(at(1), REFUSAL.to_owned());
        let refused = Some((at(1), Trouble::Refused(REFUSAL.to_owned())));
        assert_eq!(state.trouble(), refused);
        assert_eq!(state.poll_timeout(), Some(at(1)));
        assert!(state.refused_appends.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)), "it is logged again");

        state.outage.begin(at(2), "refused".to_owned());
        assert_eq!(state.trouble(), Some((at(2), Trouble::NoBroker("refused".to_owned()))));
        // The outage is reported, so a record that is given up for lack of an answer gets no line.
        state.append_was_refused(at(3), "no acknowledgement within 5000 ms".to_owned());
        state.outage.end(at(4));
        assert_eq!(state.trouble(), refused);
    }

    #[test]
    fn a_refusal_by_the_group_is_the_last_trouble_and_is_logged_again() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut state = KafkaState::default();
        state.group.begin(at(1), "it is full".to_owned());
        assert_eq!(state.trouble(), Some((at(1), Trouble::Group("it is full".to_owned()))));
        assert!(state.group.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)));
        state.append_was_refused(at(2), REFUSAL.to_owned());
        assert_eq!(state.trouble(), Some((at(2), Trouble::Refused(REFUSAL.to_owned()))));
    }

    #[test]
    fn the_log_after_a_killed_broker_is_trusted_from_a_time_on() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut state = KafkaState::default();
        assert_eq!(state.trust_in_log(at(100), Time::ZERO), Trust::Full);
        assert!(!state.log_becomes_trusted(at(100)), "it was trusted before");
        assert_eq!(state.trust_in_log(at(100), at(161)), Trust::From { at: at(161), is_known: false });
        assert_eq!(
            state.trust_in_log(at(101), at(161)),
            Trust::From { at: at(161), is_known: true },
            "it is logged once"
        );
        assert_eq!(state.trust_in_log(at(102), at(162)), Trust::From { at: at(162), is_known: false }, "a new broker");
        assert_eq!(state.poll_timeout(), Some(at(162)));
        assert!(!state.log_becomes_trusted(at(161)));
        assert!(state.log_becomes_trusted(at(162)));
        assert!(!state.log_becomes_trusted(at(162)), "that is reported once");
        assert_eq!(state.trust_in_log(at(162), at(162)), Trust::Full);
    }
}
