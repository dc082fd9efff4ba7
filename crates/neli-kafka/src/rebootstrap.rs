//! Gives a client the brokers of `bootstrap.servers` again when it has lost all that it knew.
//!
//! librdkafka forgets each broker that an answer about the cluster does not name, those of `bootstrap.servers` too. A cluster of one broker that
//! has just come back names none for a moment. librdkafka 2.12 takes up `bootstrap.servers` again by a timer, which the same answer may stop; it
//! is then never started again, and the client never connects again (librdkafka's issue 5301). While a known broker refuses connections, that timer
//! also makes librdkafka try 80 times a second, whatever `reconnect.backoff.ms` says (measured). So the timer is off
//! (`metadata.recovery.strategy=none`), and this does its work.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::client::{Client, ClientContext};

use crate::clock;
use crate::librdkafka::add_brokers;
use crate::threads::locked;

/// The pause after the first time of a series. It doubles each time, because librdkafka keeps a copy of the list each time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// When one client is given its brokers again: at once when librdkafka reports that all brokers are down, and from time to time while
/// questions have no answer, in case that report was lost or came too early.
pub(super) struct Rebootstrap {
    /// As in `bootstrap.servers`.
    brokers: String,
    /// librdkafka has reported that all brokers are down, and the client has not been given any since.
    are_all_down: AtomicBool,
    /// The times after reports that all brokers are down.
    reported: Mutex<Series>,
    /// The times after questions without an answer.
    unanswered: Mutex<Series>,
}

/// Of the times since the last answer the next one at the earliest, and the pause before it; none before the first.
type Series = Option<(Time, Duration)>;

impl Rebootstrap {
    /// For a client with these `bootstrap.servers`.
    pub(super) fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            are_all_down: AtomicBool::new(false),
            reported: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    /// librdkafka has reported that all brokers are down: the next [`Self::after_poll`] acts on it.
    pub(super) fn all_down(&self) {
        self.are_all_down.store(true, Ordering::Relaxed);
    }

    /// Called by the thread that polls the client, after each event. Returns the time after which it is to be called again, even if there is no
    /// other event; none if there is no such time.
    pub(super) fn after_poll(&self, client: &Client<impl ClientContext>) -> Option<Duration> {
        if !self.are_all_down.load(Ordering::Relaxed) {
            return None;
        }
        let now = clock::now();
        let mut reported = locked(&self.reported);
        if !is_due(&mut reported, now) {
            return reported.map(|(at, _)| at.since(now));
        }
        self.are_all_down.store(false, Ordering::Relaxed);
        add_brokers(client, &self.brokers);
        None
    }

    /// A question had no answer because no broker was reached.
    pub(super) fn unanswered(&self, client: &Client<impl ClientContext>) {
        if is_due(&mut locked(&self.unanswered), clock::now()) {
            add_brokers(client, &self.brokers);
        }
    }

    /// A broker has answered.
    pub(super) fn answered(&self) {
        *locked(&self.reported) = None;
        *locked(&self.unanswered) = None;
    }
}

/// Whether the client is to be given its brokers now; if so, the series goes on.
fn is_due(series: &mut Series, now: Time) -> bool {
    let is_due = series.is_none_or(|(at, _)| now >= at);
    if is_due {
        let pause = series.map_or(PAUSE, |(_, pause)| (pause * 2).min(LONGEST));
        *series = Some((now + pause, pause));
    }
    is_due
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, Producer};
    use rdkafka::{ClientConfig, config::FromClientConfig};

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn the_brokers_are_given_again_ever_more_seldom() {
        let mut series = None;
        let times: Vec<u64> =
            (0..=300).filter(|second| is_due(&mut series, Time::ZERO + Duration::from_secs(*second))).collect();
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    }

    /// A client without brokers, as after an answer that names none.
    fn client() -> BaseProducer {
        BaseProducer::from_config(&ClientConfig::new()).unwrap()
    }

    #[test]
    fn a_client_without_brokers_connects_to_those_that_it_is_given() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("here", 1, 1).unwrap();
        for by_report in [false, true] {
            let (client, rebootstrap) = (client(), Rebootstrap::new(&cluster.bootstrap_servers()));
            let look = |limit| client.client().fetch_metadata(Some("here"), limit);
            rebootstrap.after_poll(client.client());
            assert!(look(Duration::from_millis(100)).is_err());
            // Brokers that are known are not added again.
            for _ in 0..2 {
                if by_report {
                    rebootstrap.all_down();
                    rebootstrap.after_poll(client.client());
                } else {
                    rebootstrap.unanswered(client.client());
                }
                rebootstrap.answered();
                assert_eq!(look(LONG).unwrap().topics()[0].partitions().len(), 1);
            }
        }
    }

    /// A report between two times of the series is acted on later.
    #[test]
    fn a_report_is_not_lost() {
        let (client, rebootstrap) = (client(), Rebootstrap::new("127.0.0.1:9"));
        let report = || {
            rebootstrap.all_down();
            rebootstrap.after_poll(client.client());
            rebootstrap.are_all_down.load(Ordering::Relaxed)
        };
        assert_eq!((report(), report()), (false, true));
        assert!(rebootstrap.after_poll(client.client()).is_some_and(|again| again <= PAUSE));
        rebootstrap.answered();
        assert_eq!(rebootstrap.after_poll(client.client()), None);
        assert!(!rebootstrap.are_all_down.load(Ordering::Relaxed));
    }
}
