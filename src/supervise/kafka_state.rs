//! Whether Kafka answers this process, and which appends it refuses.

use std::time::Duration;

use neli::program::Access;
use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;

use crate::report::notes::Trouble;

/// Whether Kafka answers this process, and whether an empty log is reliable.
#[derive(Default)]
pub(super) struct KafkaState {
    /// No broker answers.
    pub(super) outage: Reminder,
    /// Appends that Kafka refuses, by Kafka's reasons.
    pub(super) refused_appends: Reminders,
    /// The time from which the empty log of an embedded broker that follows a killed one is reliable; `None` once it is.
    trusted_from: Option<Time>,
    /// The time without a heartbeat after which a broker counts as dead; set when the lease was compared with it.
    pub(super) broker_session: Option<Duration>,
}

/// Whether an empty log is a new one.
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
        down.or_else(refused)
    }

    /// Whether an empty log is a new one. For a while, that of an embedded broker that follows a killed one is not.
    pub(super) fn trust_in_log(&mut self, now: Time, access: &Access) -> Trust {
        let trusted_from = access.embedded.as_ref().map_or(Time::ZERO, |broker| broker.trusted_from());
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
        let timeouts = [self.outage.poll_timeout(), self.refused_appends.poll_timeout(), self.trusted_from];
        timeouts.into_iter().flatten().min()
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
        // Whatever is given up for lack of an answer is not worth another line.
        state.append_was_refused(at(3), "no acknowledgement within 5000 ms".to_owned());
        state.outage.end(at(4));
        assert_eq!(state.trouble(), refused);
    }
}
