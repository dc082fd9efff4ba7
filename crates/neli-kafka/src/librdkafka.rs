//! Safe functions for calls of librdkafka's C interface that rust-rdkafka lacks.
//!
//! They work on the handle of any existing client (consumer, producer, admin client), so that its connections are used. Each call blocks,
//! so it must be made in a thread of its own and never in the main loop.
//!
//! An administrative call has three parts, which `ask` joins: options with a time limit, a queue for its one answer, and the call itself.
#![expect(unsafe_code, reason = "this module alone calls librdkafka's C interface")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::time::Duration;
use std::{slice, thread};

use neli_proto::topic::TopicIdentity;
use rdkafka::bindings as c;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::{IsError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::types::{
    RDKafka, RDKafkaAdminOp, RDKafkaAdminOptions, RDKafkaEvent, RDKafkaQueue, RDKafkaResourceType, RDKafkaRespErr,
};

use crate::clock;
use crate::error_class::{ErrorClass, plain};

pub(crate) use main_queue::MainQueue;

mod conditions;
mod main_queue;

/// The version of librdkafka.
pub fn librdkafka_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}

/// librdkafka answers each administrative call within its time limit. This is how much longer the answer is waited for.
const LATE: Duration = Duration::from_secs(1);

/// A variation of an administrative call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Variation {
    /// No variation.
    None,
    /// The answer must also contain this user's rights to the described object.
    IncludeRights,
    /// Nothing is changed: the answer only shows whether the call would succeed.
    ValidateOnly,
}

/// Why an administrative call has failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AdminError {
    /// librdkafka's code.
    pub(crate) code: RDKafkaErrorCode,
    /// The code's text, and that of Kafka's answer if it has one: of the cluster's policy, for example. One line.
    pub(crate) text: String,
}

impl From<RDKafkaErrorCode> for AdminError {
    fn from(code: RDKafkaErrorCode) -> Self {
        Self { code, text: plain(code) }
    }
}

impl AdminError {
    /// The error with this code, and with the text in the answer.
    fn of_answer(code: RDKafkaErrorCode, answer: Option<String>) -> Self {
        /// The text may be of any length, and is that of a policy of the cluster's operator.
        const LONGEST: usize = 300;
        let plain = plain(code);
        let answer = answer.unwrap_or_default();
        let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = words.trim_start_matches("Broker: ").chars().take(LONGEST).collect();
        let says_more = !words.is_empty() && !plain.eq_ignore_ascii_case(words.trim_end_matches('.'));
        Self { code, text: if says_more { format!("{plain}: {words}") } else { plain } }
    }
}

/// The values of these settings of a topic, or, without one, of the broker with this id, as that broker reports them (`DescribeConfigs`). A
/// setting whose value the broker does not report has the value `None`. A user without the right to them gets an empty list, and no error. Waits
/// `timeout` for the answer.
///
/// Only the named settings are asked for: for all settings a broker takes several times as long, while other requests on this connection
/// wait.
///
/// # Errors
///
/// librdkafka's code: no answer in time, no right to a broker's settings, or an error in the answer.
pub(crate) fn settings(
    client: &Client<impl ClientContext>,
    topic: Option<&str>,
    names: &[&str],
    broker: i32,
    timeout: Duration,
) -> Result<Vec<(String, Option<String>)>, AdminError> {
    let (kind, name) = match topic {
        Some(topic) => (RDKafkaResourceType::RD_KAFKA_RESOURCE_TOPIC, topic.to_owned()),
        None => (RDKafkaResourceType::RD_KAFKA_RESOURCE_BROKER, broker.to_string()),
    };
    let name = CString::new(name).map_err(|_| RDKafkaErrorCode::InvalidArgument)?;
    // SAFETY: the name ends in a zero byte; librdkafka copies it.
    let resource = unsafe { c::rd_kafka_ConfigResource_new(kind, name.as_ptr()) };
    let resource = Owned::new(resource, c::rd_kafka_ConfigResource_destroy)?;
    for name in names {
        let name = CString::new(*name).map_err(|_| RDKafkaErrorCode::InvalidArgument)?;
        // SAFETY: the resource is alive, and librdkafka copies both strings, which end in zero bytes; a question has no value.
        succeeded(unsafe { c::rd_kafka_ConfigResource_set_config(resource.as_ptr(), name.as_ptr(), c"".as_ptr()) })?;
    }
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS;
    let event = ask(client, operation, Some(broker), Variation::None, timeout, |handle, options, queue| {
        let mut resources = [resource.as_ptr()];
        // SAFETY: all arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { c::rd_kafka_DescribeConfigs(handle, resources.as_mut_ptr(), resources.len(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call.
    let resource = unsafe {
        first_part(&event, c::rd_kafka_event_DescribeConfigs_result, c::rd_kafka_DescribeConfigs_result_resources)
    }?;
    // SAFETY: the resource is alive, and so is its text.
    unsafe {
        answered(rd_kafka_ConfigResource_error(resource))
            .map_err(|code| AdminError::of_answer(code, text(c::rd_kafka_ConfigResource_error_string(resource))))?;
    }
    // SAFETY: the function is for a resource, and its entries belong to it.
    let entries = unsafe { parts(resource, c::rd_kafka_ConfigResource_configs) };
    let entry = |entry: &*const _| {
        // SAFETY: the entry is alive, and its strings live as long as it does. A value that the broker does not report is a null pointer,
        // which `text` accepts.
        unsafe { (text(c::rd_kafka_ConfigEntry_name(*entry)), text(c::rd_kafka_ConfigEntry_value(*entry))) }
    };
    Ok(entries.iter().map(entry).filter_map(|(name, value)| Some((name?, value))).collect())
}

/// The first and the next offset of a partition's log (`ListOffsets`). Waits `timeout` for the answers.
///
/// # Errors
///
/// librdkafka's code: no answer in time, or an error in an answer.
pub(crate) fn bounds(
    client: &Client<impl ClientContext>,
    topic: &str,
    partition: i32,
    timeout: Duration,
) -> Result<(i64, i64), RDKafkaErrorCode> {
    let topic = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let (handle, limit, mut first, mut next) = (client.native_ptr(), milliseconds(timeout), -1, -1);
    // SAFETY: the handle is alive as long as the client is; the name ends in a zero byte, and both numbers are valid until the call returns.
    answered(unsafe {
        rd_kafka_query_watermark_offsets(handle, topic.as_ptr(), partition, &raw mut first, &raw mut next, limit)
    })?;
    Ok((first, next))
}

/// A topic to be created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewTopic<'a> {
    /// Its name.
    pub name: &'a str,
    /// The number of its partitions.
    pub partitions: i32,
    /// The number of replicas of each partition; `None` for the cluster's default (Kafka 2.4).
    pub replicas: Option<i32>,
    /// Its settings.
    pub settings: Vec<(&'static str, String)>,
}

/// Creates a topic (`CreateTopics`; the controller answers), or only asks whether it could be created. Waits `timeout` for the answer.
///
/// # Errors
///
/// librdkafka's code: no answer in time, or why the topic was not created; `TopicAlreadyExists` if it exists.
pub(crate) fn create_topic(
    client: &Client<impl ClientContext>,
    NewTopic { name, partitions, replicas, settings }: &NewTopic<'_>,
    variation: Variation,
    timeout: Duration,
) -> Result<(), AdminError> {
    /// The number that leaves it to the cluster.
    const DEFAULT: i32 = -1;
    let replicas = replicas.unwrap_or(DEFAULT);
    let terminated = |text: &str| CString::new(text).map_err(|_| RDKafkaErrorCode::InvalidTopic);
    let name = terminated(name)?;
    // SAFETY: the name ends in a zero byte, and librdkafka copies it; no buffer for an error text is given.
    let wanted = unsafe { c::rd_kafka_NewTopic_new(name.as_ptr(), *partitions, replicas, ptr::null_mut(), 0) };
    let wanted = Owned::new(wanted, c::rd_kafka_NewTopic_destroy).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    for (key, value) in settings {
        let (key, value) = (terminated(key)?, terminated(value)?);
        // SAFETY: the topic is alive, and librdkafka copies both strings, which end in zero bytes.
        succeeded(unsafe { c::rd_kafka_NewTopic_set_config(wanted.as_ptr(), key.as_ptr(), value.as_ptr()) })?;
    }
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_CREATETOPICS;
    let event = ask(client, operation, None, variation, timeout, |handle, options, queue| {
        let mut topics = [wanted.as_ptr()];
        // SAFETY: all arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { c::rd_kafka_CreateTopics(handle, topics.as_mut_ptr(), topics.len(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call.
    let result =
        unsafe { first_part(&event, c::rd_kafka_event_CreateTopics_result, c::rd_kafka_CreateTopics_result_topics) }?;
    // SAFETY: the result is alive, and so is its text.
    unsafe {
        answered(rd_kafka_topic_result_error(result))
            .map_err(|code| AdminError::of_answer(code, text(c::rd_kafka_topic_result_error_string(result))))
    }
}

/// The first part of an answer to a call that asks for one object, so that there is no other part.
///
/// # Errors
///
/// The answer is of another kind of call, or has no part.
///
/// # Safety
///
/// `result_of` returns an event's result, which belongs to the event; `parts_of` fulfils the condition of [`parts`] for that result.
unsafe fn first_part<R, T>(
    event: &Owned<RDKafkaEvent>,
    result_of: unsafe extern "C" fn(*mut RDKafkaEvent) -> *const R,
    parts_of: unsafe extern "C" fn(*const R, *mut usize) -> *mut *const T,
) -> Result<&T, RDKafkaErrorCode> {
    // SAFETY: as the caller promises.
    let first = unsafe { all_parts(event, result_of, parts_of) }?.first().ok_or(RDKafkaErrorCode::Fail)?;
    // SAFETY: the part belongs to the result, and the result to the event.
    unsafe { first.as_ref() }.ok_or(RDKafkaErrorCode::Fail)
}

/// The parts of an answer, which belong to the event.
///
/// # Errors
///
/// The answer is of another kind of call.
///
/// # Safety
///
/// As for [`first_part`].
unsafe fn all_parts<'a, R: 'a, T>(
    event: &'a Owned<RDKafkaEvent>,
    result_of: unsafe extern "C" fn(*mut RDKafkaEvent) -> *const R,
    parts_of: unsafe extern "C" fn(*const R, *mut usize) -> *mut *const T,
) -> Result<&'a [*const T], RDKafkaErrorCode> {
    // SAFETY: the event is alive; for an event of another kind this is null.
    let result = unsafe { result_of(event.as_ptr()).as_ref() }.ok_or(RDKafkaErrorCode::Fail)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { parts(result, parts_of) })
}

/// The parts of an object of librdkafka.
///
/// # Safety
///
/// `parts_of` returns null, or an array with as many pointers as the count that it writes. The array and the parts live as long as `whole`.
unsafe fn parts<W, T>(whole: &W, parts_of: unsafe extern "C" fn(*const W, *mut usize) -> *mut *const T) -> &[*const T] {
    let mut count = 0;
    // SAFETY: both pointers are valid.
    let parts = unsafe { parts_of(whole, &raw mut count) };
    if parts.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(parts, count) }
}

// The functions that return a broker's code, which may be newer than the enum of rust-rdkafka's bindings: a value that an enum lacks is undefined
// behaviour. (Where rust-rdkafka itself calls them, nothing can be done here.)
unsafe extern "C" {
    fn rd_kafka_ConfigResource_error(resource: *const c::rd_kafka_ConfigResource_t) -> c_int;
    fn rd_kafka_error_code(error: *const c::rd_kafka_error_t) -> c_int;
    fn rd_kafka_event_error(event: *mut RDKafkaEvent) -> c_int;
    fn rd_kafka_query_watermark_offsets(
        handle: *mut RDKafka,
        topic: *const c_char,
        partition: i32,
        first: *mut i64,
        next: *mut i64,
        timeout: c_int,
    ) -> c_int;
    fn rd_kafka_topic_result_error(result: *const c::rd_kafka_topic_result_t) -> c_int;
}

/// Turns a broker's code into an error, unless the code means success. One that rust-rdkafka lacks is `Unknown`.
fn answered(code: c_int) -> Result<(), RDKafkaErrorCode> {
    RDKafkaRespErr::try_from(code).map_or(Err(RDKafkaErrorCode::Unknown), succeeded)
}

/// Turns a code of librdkafka itself into an error, unless the code means success.
fn succeeded(code: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    if code.is_error() { Err(code.into()) } else { Ok(()) }
}

/// A copy of a string of librdkafka; `None` for a null pointer.
///
/// # Safety
///
/// A pointer that is not null points to a string that ends in a zero byte and lives until this function returns.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// The id that the group's coordinator gave to this consumer; `None` while it is not a member, and for other clients.
pub(crate) fn member_id(client: &Client<impl ClientContext>) -> Option<String> {
    // SAFETY: the handle is alive as long as the client is; the string belongs to us.
    unsafe { own_text(client.native_ptr(), c::rd_kafka_memberid(client.native_ptr())) }.filter(|text| !text.is_empty())
}

/// Whether a broker may have taken the record of this failed delivery, in any of the attempts to send it.
pub(crate) fn may_be_in_log(delivery: &BorrowedMessage<'_>) -> bool {
    // SAFETY: the message is alive, and that of a delivery.
    let status = unsafe { c::rd_kafka_message_status(delivery.ptr()) };
    status != c::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_NOT_PERSISTED
}

/// The id of the cluster, by the last answer about the cluster that this client got; `None` before the first one, and from a broker that has none
/// (before 0.10.1). Nothing is asked.
pub(crate) fn cluster_id(client: &Client<impl ClientContext>) -> Option<String> {
    // SAFETY: the handle is alive as long as the client is; with a time limit of 0 the function does not wait. The string belongs to us.
    unsafe { own_text(client.native_ptr(), c::rd_kafka_clusterid(client.native_ptr(), 0)) }
}

/// Turns a string that librdkafka has allocated for us into one of ours; `None` for a null pointer.
///
/// # Safety
///
/// The handle is alive. A pointer that is not null points to a string that ends in a zero byte, and no other code holds it.
unsafe fn own_text(handle: *mut RDKafka, pointer: *mut c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    let copy = unsafe { text(pointer) }?;
    // SAFETY: the string was allocated by librdkafka and is not used below.
    unsafe { c::rd_kafka_mem_free(handle, pointer.cast()) };
    Some(copy)
}

/// Adds these brokers, in the format of `bootstrap.servers`, to those that the client knows. For brokers that the client knows already,
/// librdkafka only stores a copy of the list. Returns at once.
pub(crate) fn add_brokers(client: &Client<impl ClientContext>, brokers: &str) {
    let Ok(brokers) = CString::new(brokers) else { return };
    // SAFETY: the handle is alive as long as the client is; librdkafka copies the string, which ends in a zero byte.
    let _ = unsafe { c::rd_kafka_brokers_add(client.native_ptr(), brokers.as_ptr()) };
}

/// Makes an administrative call on the client's handle, and waits `timeout` for its answer. `broker` is asked; `None` leaves the choice to
/// librdkafka.
///
/// `call` gets the handle, the options and the queue for the answer, which are alive until this function returns. It makes exactly one call
/// of the `operation`.
///
/// # Errors
///
/// librdkafka's code, if there is no answer in time or the answer as a whole is an error.
fn ask(
    client: &Client<impl ClientContext>,
    operation: RDKafkaAdminOp,
    broker: Option<i32>,
    variation: Variation,
    timeout: Duration,
    call: impl FnOnce(*mut RDKafka, *const RDKafkaAdminOptions, *mut RDKafkaQueue),
) -> Result<Owned<RDKafkaEvent>, RDKafkaErrorCode> {
    let (handle, begun) = (client.native_ptr(), clock::now());
    // A request to a group's coordinator must not time out, because librdkafka aborts the process if it finds the coordinator afterwards (its
    // issue 4605). So that request gets an hour, librdkafka's longest limit, and the client must be dropped before.
    let asks_coordinator = operation == RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
    if !asks_coordinator {
        await_connection(handle, broker, timeout)?;
    }
    let left = timeout.saturating_sub(clock::now().since(begun));
    let limit = if asks_coordinator { Duration::from_secs(3600) } else { left };
    answer(handle, &options(handle, operation, broker, variation, limit)?, left, call)
}

/// Waits until there is a connection to the broker.
///
/// While an administrative call waits for that itself, librdkafka (2.12, and still 2.15) connects again at each change of a broker's state
/// (`rd_kafka_broker_get_async`). A refused connection is such a change, so it connects thousands of times a second, on one to two processors,
/// whatever `reconnect.backoff.ms` says. The call can't be taken back, so the wait is made of short ones, with pauses.
///
/// # Errors
///
/// librdkafka's code, if there is none within the `timeout`.
fn await_connection(handle: *mut RDKafka, broker: Option<i32>, timeout: Duration) -> Result<(), RDKafkaErrorCode> {
    /// Usually there is a connection by then.
    const FIRST: Duration = Duration::from_millis(50);
    /// A connection begins within it. A pause does not interrupt that.
    const NEXT: Duration = Duration::from_millis(10);
    const LONGEST_PAUSE: Duration = Duration::from_millis(500);
    let begun = clock::now();
    let left = || timeout.saturating_sub(clock::now().since(begun));
    await_brokers(handle, timeout);
    let (known, mut limit) = (clock::now(), FIRST.min(left()));
    loop {
        let asked = clock::now();
        if is_connected(handle, broker, limit)? {
            return Ok(());
        }
        if left().is_zero() {
            return Err(RDKafkaErrorCode::OperationTimedOut);
        }
        let late = clock::now().since(asked).saturating_sub(limit);
        thread::park_timeout((clock::now().since(known) / 4).min(LONGEST_PAUSE).min(left()));
        // If it came late, librdkafka gets too little processor time, and has perhaps not looked.
        limit = NEXT.max(late * 2).min(left());
    }
}

/// Waits until the brokers are known, at most for the `timeout`. Before, librdkafka keeps to `reconnect.backoff.ms`.
fn await_brokers(handle: *mut RDKafka, timeout: Duration) {
    /// The answer of a cluster without an id does not end librdkafka's wait, but the next wait ends at once.
    const STEP: Duration = Duration::from_millis(50);
    let begun = clock::now();
    loop {
        let asked = clock::now();
        let limit = STEP.min(timeout.saturating_sub(asked.since(begun)));
        // SAFETY: the handle is that of a client which the caller holds; the string belongs to us.
        let id = unsafe { own_text(handle, c::rd_kafka_clusterid(handle, milliseconds(limit))) };
        if id.is_some() || limit < STEP || clock::now().since(asked) < STEP / 2 {
            return;
        }
    }
}

/// Whether there is a connection to the broker within `limit`. It is asked for the settings of nothing, which librdkafka refuses once it could send
/// the question.
fn is_connected(handle: *mut RDKafka, broker: Option<i32>, limit: Duration) -> Result<bool, RDKafkaErrorCode> {
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS;
    let options = options(handle, operation, broker, Variation::None, limit)?;
    let refused = answer(handle, &options, limit, |handle, options, queue| {
        // SAFETY: handle, options and queue are alive throughout the call; of an empty list no entry is read.
        unsafe { c::rd_kafka_DescribeConfigs(handle, ptr::null_mut(), 0, options, queue) };
    });
    Ok(refused.err() != Some(RDKafkaErrorCode::OperationTimedOut))
}

/// Makes an administrative call with these options, and waits `timeout` for its answer.
fn answer(
    handle: *mut RDKafka,
    options: &Owned<RDKafkaAdminOptions>,
    timeout: Duration,
    call: impl FnOnce(*mut RDKafka, *const RDKafkaAdminOptions, *mut RDKafkaQueue),
) -> Result<Owned<RDKafkaEvent>, RDKafkaErrorCode> {
    // SAFETY: the handle is that of a client which the caller holds.
    let queue = Owned::new(unsafe { c::rd_kafka_queue_new(handle) }, c::rd_kafka_queue_destroy)?;
    call(handle, options.as_ptr(), queue.as_ptr());
    // SAFETY: the queue is alive; the event that comes out of it belongs to us.
    let event = unsafe { c::rd_kafka_queue_poll(queue.as_ptr(), milliseconds(timeout + LATE)) };
    let event = Owned::new(event, c::rd_kafka_event_destroy).map_err(|_| RDKafkaErrorCode::OperationTimedOut)?;
    // SAFETY: the event is alive.
    answered(unsafe { rd_kafka_event_error(event.as_ptr()) })?;
    Ok(event)
}

/// The options of one administrative call, which librdkafka gives up after the `limit`.
fn options(
    handle: *mut RDKafka,
    operation: RDKafkaAdminOp,
    broker: Option<i32>,
    variation: Variation,
    limit: Duration,
) -> Result<Owned<RDKafkaAdminOptions>, RDKafkaErrorCode> {
    // SAFETY: the handle is that of a client which the caller holds.
    let options = unsafe { c::rd_kafka_AdminOptions_new(handle, operation) };
    let options = Owned::new(options, c::rd_kafka_AdminOptions_destroy)?;
    // SAFETY: the options are alive; no buffer for an error text is given.
    succeeded(unsafe {
        c::rd_kafka_AdminOptions_set_request_timeout(options.as_ptr(), milliseconds(limit), ptr::null_mut(), 0)
    })?;
    if let Some(broker) = broker {
        // SAFETY: as above.
        succeeded(unsafe { c::rd_kafka_AdminOptions_set_broker(options.as_ptr(), broker, ptr::null_mut(), 0) })?;
    }
    match variation {
        Variation::None => {}
        Variation::IncludeRights => {
            // SAFETY: as above; the error belongs to us, and a null pointer means that there is none.
            let error = unsafe { c::rd_kafka_AdminOptions_set_include_authorized_operations(options.as_ptr(), 1) };
            if let Ok(error) = Owned::new(error, c::rd_kafka_error_destroy) {
                // SAFETY: the error is alive.
                answered(unsafe { rd_kafka_error_code(error.as_ptr()) })?;
            }
        }
        Variation::ValidateOnly => {
            // SAFETY: as above; no buffer for an error text is given.
            succeeded(unsafe { c::rd_kafka_AdminOptions_set_validate_only(options.as_ptr(), 1, ptr::null_mut(), 0) })?;
        }
    }
    Ok(options)
}

fn milliseconds(span: Duration) -> c_int {
    c_int::try_from(span.as_millis()).unwrap_or(c_int::MAX)
}

/// An object of librdkafka that belongs to us. Dropping this value destroys it.
pub(super) struct Owned<T> {
    pointer: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes ownership of the object at `pointer`, which only `destroy` may destroy. A null pointer means that librdkafka refused.
    pub(super) fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Result<Self, RDKafkaErrorCode> {
        NonNull::new(pointer).map(|pointer| Self { pointer, destroy }).ok_or(RDKafkaErrorCode::Fail)
    }

    pub(super) const fn as_ptr(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the object belongs to this value alone, and is destroyed once, by the function that is meant for it.
        unsafe { (self.destroy)(self.pointer.as_ptr()) };
    }
}

// ---- a broker's description of a topic or of a group, and this user's rights to it ----------------------------------

/// A user's rights to a topic or a group, as a broker with ACLs reports them. Only these operations matter here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "Kafka's own names")]
pub struct Rights {
    pub read: bool,
    pub write: bool,
}

/// A consumer group, as its coordinator describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupDescription {
    /// This user's rights to it; none if the broker does not report them.
    pub rights: Option<Rights>,
    /// The number of its members.
    pub members: usize,
    /// The name of its partition assignor; empty if it has none.
    pub assignor: String,
}

/// A topic, as one broker describes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TopicDescription {
    /// The topic that exists under the name.
    pub identity: TopicIdentity,
    /// The number of its partitions; 0 if it is missing.
    pub partitions: i32,
    /// This user's rights to it; none if it is missing, or the broker does not report them.
    pub rights: Option<Rights>,
}

/// The id of the topic that has this name now (`DescribeTopics`), as the broker with this id answers. Waits `timeout` for the answer.
///
/// The caller should name a broker: otherwise librdkafka asks the broker that it takes for the controller. With `KRaft` that is
/// any broker, perhaps one that has just died.
///
/// # Errors
///
/// librdkafka's code: no answer in time, or an error in the answer.
pub fn topic_identity(
    client: &Client<impl ClientContext>,
    topic: &str,
    broker: Option<i32>,
    timeout: Duration,
) -> Result<TopicIdentity, RDKafkaErrorCode> {
    describe_topic(client, topic, broker, timeout, Variation::None).map(|description| description.identity)
}

/// The topic's description, of which [`topic_identity`] returns a part.
///
/// # Errors
///
/// As for [`topic_identity`].
pub(crate) fn describe_topic(
    client: &Client<impl ClientContext>,
    topic: &str,
    broker: Option<i32>,
    timeout: Duration,
    variation: Variation,
) -> Result<TopicDescription, RDKafkaErrorCode> {
    let described = describe_topics(client, &[topic], broker, timeout, variation)?;
    described.into_iter().next().unwrap_or(Err(RDKafkaErrorCode::Fail))
}

/// The descriptions of several topics, in their order, by one question.
///
/// # Errors
///
/// As for [`topic_identity`].
pub(crate) fn describe_topics(
    client: &Client<impl ClientContext>,
    topics: &[&str],
    broker: Option<i32>,
    timeout: Duration,
    variation: Variation,
) -> Result<Vec<Result<TopicDescription, RDKafkaErrorCode>>, RDKafkaErrorCode> {
    let names = topics.iter().map(|topic| CString::new(*topic)).collect::<Result<Vec<CString>, _>>();
    let names = names.map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: `pointers` contains as many strings as its length, and they end in a zero byte; librdkafka copies them.
    let topics = unsafe { c::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()) };
    let topics = Owned::new(topics, c::rd_kafka_TopicCollection_destroy)?;
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    let event = ask(client, operation, broker, variation, timeout, |handle, options, queue| {
        // SAFETY: all four arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { c::rd_kafka_DescribeTopics(handle, topics.as_ptr(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call.
    let descriptions = unsafe {
        all_parts(&event, c::rd_kafka_event_DescribeTopics_result, c::rd_kafka_DescribeTopics_result_topics)
    }?;
    // SAFETY: the descriptions belong to the event, which is alive.
    Ok(descriptions.iter().map(|description| described(unsafe { description.as_ref() })).collect())
}

/// A broker's description of a topic.
fn described(description: Option<&c::rd_kafka_TopicDescription_t>) -> Result<TopicDescription, RDKafkaErrorCode> {
    let description = description.ok_or(RDKafkaErrorCode::Fail)?;
    // SAFETY: the description is alive; its error and its id are parts of it.
    let (error, id) = unsafe {
        (
            rd_kafka_error_code(c::rd_kafka_TopicDescription_error(description)),
            c::rd_kafka_TopicDescription_topic_id(description),
        )
    };
    if let Err(code) = answered(error) {
        let missing = TopicDescription { identity: TopicIdentity::Missing, partitions: 0, rights: None };
        return if ErrorClass::from(code) == ErrorClass::UnknownTopic { Ok(missing) } else { Err(code) };
    }
    // SAFETY: the function is for a topic's description, which owns the operations.
    let rights = unsafe { rights(description, c::rd_kafka_TopicDescription_authorized_operations) };
    // SAFETY: the function is for a topic's description, which owns the partitions.
    let partitions = unsafe { parts(description, c::rd_kafka_TopicDescription_partitions) }.len();
    // SAFETY: the id is part of the description.
    let (high, low) =
        unsafe { (c::rd_kafka_Uuid_most_significant_bits(id), c::rd_kafka_Uuid_least_significant_bits(id)) };
    // A broker before 2.8 has no ids; librdkafka reports zero then.
    let identity = if (high, low) == (0, 0) { TopicIdentity::Unnamed } else { TopicIdentity::Id { high, low } };
    Ok(TopicDescription { identity, partitions: i32::try_from(partitions).unwrap_or(i32::MAX), rights })
}

/// A consumer group, as its coordinator describes it (`DescribeConsumerGroups`); the group need not exist. Waits `timeout` for the answer.
/// If there was none, the client must be dropped within an hour.
///
/// # Errors
///
/// librdkafka's code: no answer in time, no right to it, or an error in the answer.
pub(crate) fn describe_group(
    client: &Client<impl ClientContext>,
    group: &str,
    timeout: Duration,
) -> Result<GroupDescription, RDKafkaErrorCode> {
    let name = CString::new(group).map_err(|_| RDKafkaErrorCode::InvalidGroupId)?;
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
    let event = ask(client, operation, None, Variation::IncludeRights, timeout, |handle, options, queue| {
        let mut names = [name.as_ptr()];
        // SAFETY: all arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { c::rd_kafka_DescribeConsumerGroups(handle, names.as_mut_ptr(), names.len(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call; the description is alive, and the values that are taken from it are parts of
    // it.
    unsafe {
        let groups = c::rd_kafka_DescribeConsumerGroups_result_groups;
        let description = first_part(&event, c::rd_kafka_event_DescribeConsumerGroups_result, groups)?;
        answered(rd_kafka_error_code(c::rd_kafka_ConsumerGroupDescription_error(description)))?;
        Ok(GroupDescription {
            rights: rights(description, c::rd_kafka_ConsumerGroupDescription_authorized_operations),
            members: c::rd_kafka_ConsumerGroupDescription_member_count(description),
            assignor: text(c::rd_kafka_ConsumerGroupDescription_partition_assignor(description)).unwrap_or_default(),
        })
    }
}

/// This user's rights to the described object.
///
/// # Safety
///
/// `operations_of` returns null, or an array with as many operations as the count that it writes. The array lives as long as the
/// description.
unsafe fn rights<T>(
    description: &T,
    operations_of: unsafe extern "C" fn(*const T, *mut usize) -> *const c::rd_kafka_AclOperation_t,
) -> Option<Rights> {
    use c::rd_kafka_AclOperation_t as Operation;
    let mut count = 0;
    // SAFETY: both pointers are valid, and the caller promises the rest about the array.
    let operations = unsafe {
        let operations = operations_of(description, &raw mut count);
        if operations.is_null() {
            return None;
        }
        slice::from_raw_parts(operations, count)
    };
    // A list without the right that the answer itself needs is no list of rights: some servers that are not Kafka leave it empty.
    operations.contains(&Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE).then(|| Rights {
        read: operations.contains(&Operation::RD_KAFKA_ACL_OPERATION_READ),
        write: operations.contains(&Operation::RD_KAFKA_ACL_OPERATION_WRITE),
    })
}

#[cfg(test)]
mod tests;
