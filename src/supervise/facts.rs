//! The main loop's part in the topic of facts: reads and judges it, and appends facts.

use neli_kafka::{FactsEvent as KafkaFacts, WantedFacts, clock};
use neli_proto::fact::Fact;
use neli_proto::node::{Event, FactsEvent};
use neli_proto::time::Time;
use neli_proto::topic::{self, TopicFacts};

use crate::report::events;
use crate::supervise::main_loop::MainLoop;
use crate::text::reason;

impl MainLoop {
    /// Passes the window of the wall clock to the node, if it has changed or if `anyway`.
    pub(super) fn tell_window(&mut self, at: usize, now: Time, anyway: bool) {
        let wall_clock = self.nodes.roles[at].facts.as_mut().and_then(|facts| facts.wall_clock.as_mut());
        let window = wall_clock.and_then(|wall_clock| wall_clock.look(now, clock::wall_ms(), anyway));
        if let Some(window) = window {
            self.nodes.tell(now, at, Event::Window(window));
        }
    }

    fn facts_event(&mut self, at: usize, now: Time, event: FactsEvent) {
        self.nodes.tell(now, at, Event::Facts(event));
    }

    pub(super) fn read_facts(&mut self, at: usize, id: u32) {
        let Some(facts) = &mut self.nodes.roles[at].facts else { return };
        let wanted = WantedFacts {
            topic: facts.name.clone(),
            settings: facts.settings,
            keys: facts.keys.clone(),
            judge: !facts.is_judged,
        };
        let earlier = facts.begin_reading();
        match self.nodes.session.read_facts(wanted, id, earlier) {
            Ok(reading) => facts.reading = Some((id, reading)),
            Err(error) => {
                let now = clock::now();
                facts.reading_not_started(now, id);
                let error = format!("no thread can be started to read them: {}", reason(&error)).into();
                self.facts_event(at, now, FactsEvent::Unread { error });
            }
        }
    }

    /// Tries to read facts again for which there was no thread.
    pub(super) fn read_unread_facts(&mut self, at: usize, now: Time) {
        let due = self.nodes.roles[at].facts.as_ref().and_then(|facts| facts.due_reading(now));
        if let Some(id) = due {
            self.read_facts(at, id);
        }
    }

    pub(super) fn append_fact(&mut self, at: usize, id: u32, fact: Fact) {
        let Some(facts) = &mut self.nodes.roles[at].facts else { return };
        let fact = facts.runs.written(Fact { at_ms: Some(clock::wall_ms()), ..fact });
        let key = facts.key_at(fact.place());
        if let Err(error) = self.nodes.session.append_fact(id, &facts.name, key, &fact.to_bytes()) {
            let error = error.to_string().into();
            self.facts_event(at, clock::now(), FactsEvent::NotAppended { id, error });
        }
    }

    /// Handles the result of a reading or of a sent fact. One counter numbers both.
    pub(super) fn handle_facts(&mut self, at: usize, now: Time, id: u32, event: KafkaFacts) {
        let reading = self.nodes.roles[at].facts.as_ref().and_then(|facts| facts.reading.as_ref());
        let is_current = reading.is_some_and(|(number, _)| *number == id);
        let event = match event {
            KafkaFacts::Appended => {
                // If the outcome of a run is recorded, the next window is that of the clock at this moment.
                self.tell_window(at, now, false);
                FactsEvent::Appended { id }
            }
            KafkaFacts::Created { replicas, brokers } => {
                let topic = self.nodes.roles[at].facts.as_ref().map(|facts| facts.name.clone()).unwrap_or_default();
                self.logger.event(&events::topic_created(&topic, replicas, brokers));
                FactsEvent::Created
            }
            KafkaFacts::NotAppended { error } => FactsEvent::NotAppended { id, error: error.into() },
            KafkaFacts::Read(_) | KafkaFacts::Reading { .. } | KafkaFacts::Topic(_) | KafkaFacts::Unread { .. }
                if !is_current =>
            {
                return;
            }
            KafkaFacts::Read(facts) => {
                self.nodes.roles[at].facts.iter_mut().for_each(|topic| topic.runs.read(&facts));
                self.tell_window(at, now, true);
                FactsEvent::Read { id, facts }
            }
            KafkaFacts::Reading { progress } => FactsEvent::Reading { progress: progress.into() },
            KafkaFacts::Topic(facts) => return self.judge_topic_of_facts(at, now, &facts),
            KafkaFacts::Unread { error } => FactsEvent::Unread { error: error.into() },
        };
        self.facts_event(at, now, event);
    }

    /// Judges the topic once; risks are logged as a warning.
    fn judge_topic_of_facts(&mut self, at: usize, now: Time, facts: &TopicFacts) {
        let Some(topic) = &mut self.nodes.roles[at].facts else { return };
        topic.is_judged = true;
        let name = &topic.name;
        let place =
            topic::JudgedPartition { bootstrap: &self.nodes.session.access().bootstrap, topic: name, partition: 0 };
        match topic::judge_topic_of_facts(facts, topic.settings.retention, place) {
            Ok(risks) if risks.is_empty() => {}
            Ok(risks) => self.logger.warn(format!("topic {name:?}: {}", topic::warning(&risks))),
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}").into();
                self.nodes.tell(now, at, Event::Refused { error });
            }
        }
    }
}
