//! Whether Kafka answers this process: for the log, the service manager and HTTP.

use std::time::Duration;

use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;

/// A lasting problem with Kafka: since when it lasts, what it is, and why.
pub(crate) type Trouble = (Time, &'static str, String);

/// Whether Kafka answers this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct KafkaState {
    /// Whether the journals were read to their ends once.
    pub(crate) was_reached: bool,
    /// No broker answers.
    pub(crate) outage: Reminder,
    /// The group does not take this process's member.
    pub(crate) group: Reminder,
    /// Appends that Kafka refuses, by Kafka's reasons.
    pub(crate) refused_appends: Reminders,
    /// The time without a heartbeat after which a broker counts as dead; set when the lease was compared with it.
    pub(crate) broker_session: Option<Duration>,
}

impl KafkaState {
    /// One line for each kind of refusal, and again every 30 s. While no broker answers, the outage is logged instead.
    pub(crate) fn append_was_refused(&mut self, now: Time, error: String) {
        if self.answers() {
            self.refused_appends.begin(now, error);
        }
    }

    /// Whether a broker answers, as far as this process knows.
    pub(crate) fn answers(&self) -> bool {
        self.outage.trouble().is_none()
    }

    /// Whether a broker answers, and the journals were read.
    pub(crate) fn is_up(&self) -> bool {
        self.was_reached && self.answers()
    }

    /// The problem with Kafka.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let all = [
            (self.outage.trouble(), "no broker reached"),
            (self.refused_appends.trouble(), "Kafka refuses its records"),
            (self.group.trouble(), "without precedence"),
        ];
        all.into_iter().find_map(|(trouble, what)| trouble.map(|(since, why)| (since, what, why.to_owned())))
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
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
        let refused = Some((at(1), "Kafka refuses its records", REFUSAL.to_owned()));
        assert_eq!(state.trouble(), refused);
        assert_eq!(state.poll_timeout(), Some(at(1)));
        assert!(state.refused_appends.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)), "it is logged again");

        state.outage.begin(at(2), "refused".to_owned());
        assert_eq!(state.trouble(), Some((at(2), "no broker reached", "refused".to_owned())));
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
        assert_eq!(state.trouble(), Some((at(1), "without precedence", "it is full".to_owned())));
        assert!(state.group.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)));
        state.append_was_refused(at(2), REFUSAL.to_owned());
        assert_eq!(state.trouble(), Some((at(2), "Kafka refuses its records", REFUSAL.to_owned())));
    }
}
