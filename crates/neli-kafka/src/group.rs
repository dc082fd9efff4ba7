//! The member of the consumer group: it learns which of the elections' partitions the group assigns to it.
//!
//! The member never fetches: assigned partitions are paused, and no offset is asked for or committed. A revocation is acknowledged before
//! anything else, so that a slow job never delays the group's rebalance. This module decides nothing about the leader.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{MetadataPartition, MetadataTopic};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};
use rdkafka::types::RDKafkaRespErr;
use tokio::sync::mpsc::Sender;

use crate::access::{Access, MemberTimings};
use crate::context::{KafkaContext, explain};
use crate::election::Elections;
use crate::error_class::{ErrorClass, code_of, plain};
use crate::event::{GroupEvent, KafkaEvent, Refusal};
use crate::questions::{ANSWER, REPLACED_AFTER};
use crate::text::Words;
use crate::threads;
use crate::{clock, librdkafka};

/// The longest time for leaving. After it the member ends, even if the coordinator has not answered.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// After this time a member that unsubscribes has given up its partition and has sent its request to leave, also if it has no id yet.
const UNSUBSCRIBED_WITHIN: Duration = Duration::from_millis(100);
/// The time between two checks on a member that leaves.
const POLL_WHILE_LEAVING: Duration = Duration::from_millis(1);

/// A member of the group. Dropping it leaves the group. If the process ends before [`GroupEvent::Left`], the member may not have left, and
/// the group assigns the partition to another member only when the session expires.
pub(crate) struct Member {
    consumer: Arc<BaseConsumer<GroupContext>>,
}

impl Member {
    /// Joins the group on the elections' topic, which must exist: librdkafka looks for a missing topic only every five minutes. `in_use`
    /// are the partitions that have a role.
    ///
    /// The group's events go to `events`, with this `number`.
    ///
    /// # Errors
    ///
    /// librdkafka's reason about a property, or about a certificate or login that it can't use; never a secret's value. Or a thread can't
    /// be started.
    pub(crate) fn join(
        access: &Access,
        elections: &Elections,
        in_use: BTreeSet<i32>,
        number: u32,
        events: Sender<KafkaEvent>,
    ) -> Result<Self, String> {
        let context = GroupContext {
            context: KafkaContext::new(access),
            elections: elections.clone(),
            in_use,
            number,
            events,
            leaving: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            has_joined: AtomicBool::new(false),
            asks_for_topic: AtomicBool::new(false),
            unused_partitions: AtomicBool::new(false),
            leads: AtomicBool::new(false),
        };
        let timings = MemberTimings::of(&access.properties);
        // librdkafka aborts the process if it can't start its first thread, and waits for ever if it can't start its second.
        threads::check_room_for(3).map_err(|error| format!("no thread for the group: {error}"))?;
        let consumer = BaseConsumer::from_config_and_context(&access.member(&elections.group), context);
        let consumer: Arc<BaseConsumer<GroupContext>> = Arc::new(consumer.map_err(|error| explain(&error))?);
        consumer.subscribe(&[&elections.topic]).map_err(|error| explain(&error))?;
        let polled = Arc::clone(&consumer);
        threads::start("neli-group", move || poll(&polled, timings))
            .map_err(|error| format!("no thread for the group: {error}"))?;
        Ok(Self { consumer })
    }

    /// Sets whether this process leads, or its member holds a partition; it may lead while another member holds that. Such a process does not
    /// wait for a rebalance, so its member is polled less often.
    pub(crate) fn set_leads(&self, leads_or_holds: bool) {
        self.consumer.context().leads.store(leads_or_holds, Ordering::Relaxed);
    }

    /// Leaves the group, so that the successor is known at once. Returns at once; [`GroupEvent::Left`] follows within 500 ms.
    ///
    /// `alone`: no other candidate waits for this member, because none is known or all of them leave. The broker answers the first join of
    /// an empty group after its `group.initial.rebalance.delay.ms` (3 s), and a leave waits behind the join. So a lone member whose join
    /// was not answered is not waited for. If there are other members, the join is answered within 500 ms, and the leave after it. A
    /// process that ended before would delay the others' next rebalance for a session (11 s, measured).
    pub(crate) fn leave(self, alone: bool) {
        self.consumer.context().alone.store(alone, Ordering::Relaxed);
        drop(self);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let context = Arc::clone(self.consumer.context());
        context.leaving.store(true, Ordering::Relaxed);
        let consumer = Arc::clone(&self.consumer);
        let leaving = threads::start("neli-leave", move || leave(&consumer));
        if leaving.is_err() {
            // The report must not block here: the caller's thread may be the one that empties the channel.
            let _ = context.events.try_send(context.event(GroupEvent::Left));
        }
    }
}

/// Polls the member, and thereby wakes librdkafka's main thread, which sends a heartbeat that is due only when something wakes it. At a
/// member without a partition nothing else does so more than twice a second (500 ms between two heartbeats at an interval of 100 ms,
/// measured).
fn poll(consumer: &Arc<BaseConsumer<GroupContext>>, timings: MemberTimings) {
    let context = consumer.context();
    let (mut name, mut named_at) = (None, clock::now());
    while !context.is_over() {
        // Until the group has answered, a leader's member is polled as often as a standby's, because the other candidates need its id.
        let leads = context.leads.load(Ordering::Relaxed) && context.is_answered.load(Ordering::Relaxed);
        if let Some(Err(error)) = consumer.poll(pause(timings, leads)) {
            context.judge(&error);
        }
        context.context.rebootstrap.after_poll(consumer.client());
        // librdkafka's main thread answers this question, and so wakes up. It is the cheapest such question.
        let id = librdkafka::member_id(consumer.client());
        if is_unanswered(&mut named_at, clock::now(), id.is_some()) {
            context.report_unless_leaving(GroupEvent::Unanswered);
        }
        if let Some(id) = id.filter(|id| name.as_ref() != Some(id)) {
            name = Some(id.clone());
            context.report_unless_leaving(GroupEvent::Named { id });
        }
        if context.has_joined.swap(false, Ordering::Relaxed) {
            ask_for_topic(consumer);
        }
    }
}

/// Whether the coordinator has not answered for long, now and again after as long. The id is the coordinator's answer to the first join, and
/// librdkafka clears it when the session has expired without an answer (but not in the middle of a rebalance). `named_at` is when the member last had
/// an id, or was reported.
fn is_unanswered(named_at: &mut Time, now: Time, is_named: bool) -> bool {
    let is_unanswered = !is_named && now >= *named_at + REPLACED_AFTER;
    if is_named || is_unanswered {
        *named_at = now;
    }
    is_unanswered
}

/// Leaves the group: unsubscribes, waits, and closes. Closing alone is not enough: librdkafka sends no `LeaveGroup` for a member without an
/// assignment once it is closing, and the dead member would then delay the next rebalance for a session timeout. Unsubscribing sends one. A
/// member that closes while its partition is being revoked may not send it (one run in four to one in thirty). librdkafka clears the member's id
/// when it sends the request (`rd_kafka_cgrp_leave`), a millisecond or two later, so closing begins only after that. A member that has no id
/// yet shows no such change, and closes after [`UNSUBSCRIBED_WITHIN`].
fn leave(consumer: &BaseConsumer<GroupContext>) {
    let begun = clock::now();
    let spent = || clock::now().since(begun);
    let is_named = || librdkafka::member_id(consumer.client()).is_some();
    let was_named = is_named();
    consumer.unsubscribe();
    let context = consumer.context();
    let is_lone_and_unanswered = context.alone.load(Ordering::Relaxed) && !context.is_answered.load(Ordering::Relaxed);
    let report_left = || context.report(GroupEvent::Left);
    if is_lone_and_unanswered {
        report_left();
    }
    while spent() < UNSUBSCRIBED_WITHIN && (!was_named || is_named()) {
        // Polling also acknowledges the revocation of the partitions that were held.
        let _ = consumer.poll(POLL_WHILE_LEAVING);
    }
    // Closing waits for the answers to the requests in flight.
    let closing = consumer.close_queue();
    while closing.is_ok() && !consumer.closed() && spent() < LEAVE_TIMEOUT {
        let _ = consumer.poll(POLL_WHILE_LEAVING);
    }
    if !is_lone_and_unanswered {
        report_left();
    }
}

/// The member's context, which receives the group's events.
struct GroupContext {
    context: KafkaContext,
    elections: Elections,
    /// The partitions that have a role.
    in_use: BTreeSet<i32>,
    number: u32,
    events: Sender<KafkaEvent>,
    leaving: AtomicBool,
    /// No other candidate waits for this member's leave.
    alone: AtomicBool,
    /// The group has answered a join.
    is_answered: AtomicBool,
    /// The group has answered a join since the last poll.
    has_joined: AtomicBool,
    /// The question about the topic after a join is in flight.
    asks_for_topic: AtomicBool,
    /// [`GroupEvent::UnusedPartitions`] has been reported.
    unused_partitions: AtomicBool,
    /// This process leads, or its member holds a partition.
    leads: AtomicBool,
}

impl GroupContext {
    /// Whether the member leaves, or the receiver of the reports is gone.
    fn is_over(&self) -> bool {
        self.leaving.load(Ordering::Relaxed) || self.events.is_closed()
    }

    fn event(&self, event: GroupEvent) -> KafkaEvent {
        KafkaEvent::Group { member: self.number, event }
    }

    fn report(&self, event: GroupEvent) {
        // An error means that the receiver is gone, because this process is about to end.
        let _ = self.events.blocking_send(self.event(event));
    }

    fn report_unless_leaving(&self, event: GroupEvent) {
        if !self.leaving.load(Ordering::Relaxed) {
            self.report(event);
        }
    }

    /// Reports partitions that have no role.
    fn note_partitions(&self, partitions: &BTreeSet<i32>) {
        if !partitions.is_subset(&self.in_use) && !self.unused_partitions.swap(true, Ordering::Relaxed) {
            self.report_unless_leaving(GroupEvent::UnusedPartitions);
        }
    }

    /// Reports why the group does not take this member. `text` is librdkafka's text about the error.
    fn refused(&self, code: RDKafkaErrorCode, text: &str) {
        let words = self.context.access.words;
        self.report_unless_leaving(GroupEvent::Refused(refusal(code, text, &self.elections.group, words)));
    }

    /// Reports why the group does not take this member, unless the reader gets the same error and reports it.
    fn judge(&self, error: &KafkaError) {
        let code = code_of(error);
        if matches!(ErrorClass::from(code), ErrorClass::GroupForbidden | ErrorClass::Other) {
            self.refused(code, &self.context.error_text(code));
        }
    }
}

/// Why the group does not take a member. `text` is librdkafka's text about the error.
#[expect(clippy::wildcard_enum_match_arm, reason = "librdkafka's text explains any other code")]
fn refusal(code: RDKafkaErrorCode, text: &str, group: &str, words: &Words) -> Refusal {
    use RDKafkaErrorCode as Code;
    let Words { use_log_elector, choose_another_group, .. } = words;
    let reason = match code {
        Code::GroupAuthorizationFailed => {
            // librdkafka first asks for the coordinator, and Kafka answers that to each user with DESCRIBE on the group.
            let right = if text.starts_with("FindCoordinator") { "DESCRIBE" } else { "READ" };
            format!(
                "this user has no right to {right} it; allow READ on it (which implies DESCRIBE), or {use_log_elector}"
            )
        }
        Code::GroupMaxSizeReached => {
            format!("it is full; raise the broker's group.max.size, stop some of its members, or {use_log_elector}")
        }
        Code::InconsistentGroupProtocol => {
            format!(
                "it has members that are no candidates; {choose_another_group}, which no other program has as its group.id"
            )
        }
        Code::InvalidGroupId => format!("the broker does not take this name; {choose_another_group}"),
        Code::InvalidSessionTimeout => "the broker does not take this session.timeout.ms; keep it between its \
                                        group.min.session.timeout.ms and group.max.session.timeout.ms"
            .to_owned(),
        Code::UnsupportedVersion | Code::UnsupportedFeature => {
            format!("the broker does not know the requests of a group's member; {use_log_elector}")
        }
        _ => text.to_owned(),
    };
    Refusal { words: plain(code), line: format!("group \"{group}\": {reason}") }
}

impl ClientContext for GroupContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.context.log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.context.error(error, reason);
    }
}

impl ConsumerContext for GroupContext {
    /// Acknowledges the change first, and then reports it.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, what: RDKafkaRespErr, partitions: &mut TopicPartitionList) {
        let assign = what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        // Acknowledging resets this.
        let lost = consumer.assignment_lost();
        let acknowledged = if assign {
            // Since an offset is given, librdkafka does not ask the coordinator for a committed one. Nothing is read from the offset.
            partitions.set_all_offsets(Offset::Offset(0)).and_then(|()| consumer.incremental_assign(partitions))
        } else {
            consumer.incremental_unassign(partitions)
        };
        if let Err(error) = acknowledged {
            let code = code_of(&error);
            self.refused(code, &explain(&error));
        }
        self.is_answered.store(true, Ordering::Relaxed);
        // All are of this topic, because the group subscribes to no other.
        let all: BTreeSet<i32> = partitions.elements().iter().map(TopicPartitionListElem::partition).collect();
        let in_use = &all & &self.in_use;
        if assign {
            self.has_joined.store(true, Ordering::Relaxed);
            if partitions.count() > 0 {
                // If it fails, a fetch is sent whose result is not used.
                let _ = consumer.pause(partitions);
            }
            self.note_partitions(&all);
            self.report_unless_leaving(GroupEvent::Assigned { partitions: in_use });
        } else if !in_use.is_empty() {
            self.report_unless_leaving(GroupEvent::Revoked { partitions: in_use, lost });
        }
    }
}

// ---- the question about the topic that a member asks after each join, in a thread of its own -----------------------

/// Asks for the topic's metadata, unless the previous question is still in flight.
///
/// librdkafka joins a group at most once a second. A successor that joined just before a vacancy would wait for the rest of that second
/// (450 ms of a handover, measured). Any answer about a topic's metadata resets that clock (`rd_kafka_parse_Metadata`). Without one, or a
/// thread, the next join only comes a little later. The answer also shows whether the topic has partitions that no role uses.
fn ask_for_topic(consumer: &Arc<BaseConsumer<GroupContext>>) {
    let context = consumer.context();
    if context.asks_for_topic.swap(true, Ordering::Relaxed) {
        return;
    }
    let asked = Arc::clone(consumer);
    let asking = threads::start("neli-group-topic", move || {
        let context = asked.context();
        match asked.fetch_metadata(Some(&context.elections.topic), ANSWER) {
            Ok(metadata) => {
                context.context.rebootstrap.answered();
                let partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
                context.note_partitions(&partitions.map(MetadataPartition::id).collect());
            }
            Err(_) => context.context.rebootstrap.unanswered(asked.client()),
        }
        context.asks_for_topic.store(false, Ordering::Relaxed);
    });
    if asking.is_err() {
        context.asks_for_topic.store(false, Ordering::Relaxed);
    }
}

// ---- how often a member of the group is polled ---------------------------------------------------------------------

/// The longest time between two polls of a member, by whether it holds a partition or its process leads. Polling wakes librdkafka's main
/// thread, which then sends the heartbeat that is due. A heartbeat's answer reports a rebalance, for which a member without a partition waits;
/// any other only has to keep its session, and takes half the processor time.
fn pause(member: MemberTimings, leads_or_holds: bool) -> Duration {
    let waiting = member.heartbeat_interval;
    if leads_or_holds { Duration::from_millis(500).min(member.session_timeout / 3).max(waiting) } else { waiting }
}

#[cfg(test)]
mod tests;
