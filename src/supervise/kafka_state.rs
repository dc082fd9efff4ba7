//! Whether Kafka answers this process, and which appends it refuses.

use std::time::Duration;

use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;

use crate::report::notes::Trouble;

/// Whether Kafka answers this process.
#[derive(Default)]
pub(super) struct KafkaState {
    /// No broker answers.
    pub(super) outage: Reminder,
    /// The group does not take this process's member.
    pub(super) group: Reminder,
    /// Appends that Kafka refuses, by Kafka's reasons.
    pub(super) refused_appends: Reminders,
    /// The time without a heartbeat after which a broker counts as dead; set when the lease was compared with it.
    pub(super) broker_session: Option<Duration>,
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

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let reminders = [&self.outage, &self.group].map(Reminder::poll_timeout);
        reminders.into_iter().chain([self.refused_appends.poll_timeout()]).flatten().min()
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
}
