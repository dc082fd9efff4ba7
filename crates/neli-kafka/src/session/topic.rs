//! The session's knowledge of the topic: its number of partitions, its id, and its settings for R0.

use std::io;
use std::mem;
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::time::Time;
use neli_proto::topic::{self, JudgedPartition, Judgement, TopicFacts, TopicIdentity};

use super::{Session, SessionEvent};
use crate::clock;
use crate::election::Elections;
use crate::text::reason;
use crate::topic::partitions_changed;

/// The least time between two tries to start the thread that asks for the topic's settings.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Session {
    /// A reading that was not given the number of partitions has found it.
    pub(super) fn found(&mut self, partitions: i32) {
        match self.router.partitions() {
            Some(known) if known != partitions => self.refuse_count(known, partitions),
            Some(_) => {}
            None => self.router.found(partitions),
        }
    }

    /// With another number of partitions a role is in another partition, and two candidates with different numbers could both lead it.
    fn refuse_count(&mut self, known: i32, partitions: i32) {
        let error = partitions_changed(&self.settings.elections.topic, known, partitions);
        self.outputs.push_back(SessionEvent::Refused { role: None, error });
    }

    /// Whether the roles stay in their partitions, now that the topic has this number of them. They do if partitions were added to the same topic,
    /// because all running candidates keep the number that they began with. They don't in a topic that was created again: candidates that start
    /// use its number.
    fn stays(&mut self, identity: TopicIdentity, count: i32) -> bool {
        let elections = &self.settings.elections;
        let Some(known) = self.router.partitions().filter(|_| elections.roles.end > 1) else { return true };
        if identity == TopicIdentity::Missing {
            return true;
        }
        if count == known {
            self.counted = Some(identity);
            return true;
        }
        if self.counted != Some(identity) {
            self.refuse_count(known, count);
            return false;
        }
        // A smaller number comes from a broker that has not learnt of the new partitions yet.
        if count > known && !mem::replace(&mut self.has_grown, true) {
            let warning = format!(
                "topic \"{}\" had {known} partitions and has {count} now: each role stays in its partition while \
                 this process runs, and candidates that start now may be refused, because they look for roles in \
                 the new ones; to use the new ones, stop all \
                 candidates, and start them again",
                elections.topic
            );
            self.outputs.push_back(SessionEvent::Warning(warning));
        }
        true
    }

    pub(super) fn identified(&mut self, asked: Time, identity: TopicIdentity, count: i32, partitions: &[i32]) {
        if !self.stays(identity, count) {
            return;
        }
        // A missing topic concerns every partition.
        let concerns = |partition| identity == TopicIdentity::Missing || partitions.contains(&partition);
        let counted = self.router.partitions().unwrap_or(1);
        for role in self.settings.elections.roles.clone() {
            if concerns(Elections::partition_of(role, counted)) {
                self.tell(role, Event::TopicIdentified { asked, identity });
            }
        }
    }

    /// Asks for the topic's settings for R0, once for all roles that wait for them.
    pub(super) fn judge(&mut self) {
        if self.is_judging || self.unjudged.is_empty() {
            return;
        }
        let asked = self.producer.judge();
        self.note_question(clock::now(), asked);
    }

    /// Without a thread the question is asked again later: until it is answered, no role of this process can lead.
    pub(super) fn note_question(&mut self, now: Time, asked: io::Result<()>) {
        match asked {
            Ok(()) => (self.is_judging, self.no_thread_at) = (true, None),
            Err(error) => {
                if self.no_thread_at.replace(now).is_none() {
                    let warning =
                        format!("the topic's settings can't be asked for, for lack of a thread: {}", reason(&error));
                    self.outputs.push_back(SessionEvent::Warning(warning));
                }
            }
        }
    }

    /// Asks again if there was no thread for the question. Called with each event of Kafka, of which one comes every 20 s at the latest.
    pub(super) fn judge_again(&mut self, now: Time) {
        if self.no_thread_at.is_some_and(|at| now.since(at) >= AGAIN_AFTER) {
            self.judge();
        }
    }

    /// An answer does not count for a role whose reading began after the question was asked: it may be about an earlier topic of this name.
    pub(super) fn judged(&mut self, asked: Time, facts: &TopicFacts) {
        self.is_judging = false;
        let answered: Vec<u32> =
            self.unjudged.iter().filter(|(_, since)| asked >= **since).map(|(role, _)| *role).collect();
        for role in answered {
            self.unjudged.remove(&role);
            self.judge_for(role, facts);
        }
        self.judge();
    }

    /// R0, once in each reading of a role.
    fn judge_for(&mut self, role: u32, facts: &TopicFacts) {
        let elections = &self.settings.elections;
        let partition = Elections::partition_of(role, self.router.partitions().unwrap_or(1));
        let place = JudgedPartition { bootstrap: &self.access.bootstrap, topic: &elections.topic, partition };
        match topic::judge(facts, place) {
            Ok(Judgement { cut_is_harmless, gaps_are_markers, risks }) => {
                if !risks.is_empty() {
                    self.outputs.push_back(SessionEvent::Risks { role, risks });
                }
                self.tell(role, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {:?}: {refusal}", elections.topic);
                self.outputs.push_back(SessionEvent::Refused { role: Some(role), error });
            }
        }
    }
}
