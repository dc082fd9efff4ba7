//! Waits until the topic exists.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::consumer::Consumer;

use super::{Asker, RETRY};
use crate::clock;
use crate::event::SessionEvent;
use crate::librdkafka::AdminError;
use crate::source::{IfMissing, Source};
use crate::topic::{self, Presence, TopicError};

/// A broker may not know a topic for this long after it was created.
const NEW_WITHIN: Duration = Duration::from_millis(500);
/// The time between two questions for a topic that Kafka does not make now, and between two warnings for one reason.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const TELL_AGAIN: Duration = Duration::from_secs(30);
/// The time between two checks of a topic that was just created, or is about to be.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Asker {
    /// Waits until the topic exists, or until this reading is over. Creates the topic if that is allowed.
    pub(super) fn find_topic(&mut self) {
        let reading = Arc::clone(&self.reading);
        let Source { access, elections, if_missing, .. } = &reading.source;
        let (mut missing_since, mut coming_since) = (None, None);
        // The brokers that were up when this process created the topic.
        let mut created_with = None;
        let mut told = None;
        let mut is_new = || {
            let since = *coming_since.get_or_insert_with(clock::now);
            clock::now().since(since) < NEW_WITHIN
        };
        while !self.reading.is_over() {
            let (limit, asked) = (self.answer_limit.ask(), clock::now());
            let presence = topic::look(self.consumer.consumer().client(), elections, limit);
            let presence = presence.and_then(|there| self.admit(asked).map(|()| there).map_err(TopicError::Refused));
            let trouble = match presence {
                Ok(Presence::There(found)) if found.is_whole || !is_new() => {
                    if let Some(brokers) = created_with {
                        self.reading.send(SessionEvent::Created { replicas: found.replicas(), brokers });
                    }
                    self.reading.found(found.partitions);
                    self.leaders = Some(found.into_leaders());
                    return;
                }
                Ok(Presence::There(_)) => {
                    pause(LOOK_AGAIN);
                    continue;
                }
                Ok(Presence::Coming) => {
                    let is_new = is_new();
                    if !is_new {
                        let none =
                            format!("topic \"{}\": no partition has a leader; are its brokers up?", elections.topic);
                        self.reading.down(none);
                    }
                    pause(if is_new { LOOK_AGAIN } else { RETRY });
                    continue;
                }
                Ok(Presence::Missing { brokers }) if *if_missing == IfMissing::Create => {
                    match topic::create(self.consumer.consumer().client(), access, elections, &brokers, limit) {
                        Ok(is_created) => {
                            created_with = is_created.then_some(brokers.len()).or(created_with);
                            continue;
                        }
                        Err(TopicError::Transient(error)) if !error.is_missing_answer() => {
                            self.not_made_yet(&error, &mut told);
                            continue;
                        }
                        Err(trouble) => trouble,
                    }
                }
                Ok(Presence::Missing { .. }) if *if_missing == IfMissing::Await => {
                    let topic = &elections.topic;
                    reading.down(format!(
                        "topic \"{topic}\": it does not exist yet; waiting until a candidate creates it"
                    ));
                    pause(RETRY);
                    continue;
                }
                Ok(Presence::Missing { .. }) if reading.source.is_for_display => {
                    let since = *missing_since.get_or_insert_with(clock::now);
                    if clock::now().since(since) < NEW_WITHIN {
                        pause(LOOK_AGAIN);
                        continue;
                    }
                    TopicError::Refused(topic::missing(self.consumer.consumer().client(), elections, limit))
                }
                Ok(Presence::Missing { .. }) => TopicError::Refused(topic::must_be_created(&elections.topic)),
                Err(trouble) => trouble,
            };
            match trouble {
                TopicError::Refused(error) => self.reading.refuse(error),
                TopicError::Transient(error) => {
                    let is_perhaps_slow = self.is_perhaps_slow(error.code);
                    let why = self.no_answer(&error);
                    if !is_perhaps_slow {
                        self.reading.down(why);
                    }
                }
            }
            pause(RETRY);
        }
    }

    /// Kafka has answered that it does not make the topic now. Says why, unless it has said that shortly before, and waits a little.
    fn not_made_yet(&self, error: &AdminError, told: &mut Option<(String, Time)>) {
        let now = clock::now();
        if !told.as_ref().is_some_and(|(text, at)| *text == error.text && now.since(*at) < TELL_AGAIN) {
            *told = Some((error.text.clone(), now));
            let topic = &self.reading.source.elections.topic;
            self.reading.warn(format!(
                "topic \"{topic}\": Kafka does not make it now ({}){}; this candidate asks again every second",
                error.text,
                error.cause()
            ));
        }
        pause(ASK_AGAIN);
    }
}

fn pause(span: Duration) {
    thread::park_timeout(span);
}
