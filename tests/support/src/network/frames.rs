//! The requests and answers of one connection; some requests are swallowed and some answers falsified.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The API key of `Produce`, which appends records.
const PRODUCE: i16 = 0;
/// The API key of `Fetch`, the question for records.
const FETCH: i16 = 1;
/// The API key of `ListOffsets`, the question for the first and the next offset of a log.
const LIST_OFFSETS: i16 = 2;
/// The API key of `Metadata`, the question for the brokers and the partitions of topics.
const METADATA: i16 = 3;
/// By how many records a falsified end is too low.
const TOO_LOW: i64 = 2;

/// One direction of a connection, split into requests or answers.
pub(super) struct Frames {
    /// The received part of an incomplete message.
    begun: Vec<u8>,
    /// Maps each message to the one that is passed on, or to `None`.
    pass: Box<dyn FnMut(Vec<u8>) -> Option<Vec<u8>> + Send>,
}

/// The answers that are falsified.
#[derive(Debug, Default)]
pub(super) struct Falsified {
    /// How many answers about the end of a log are still to be falsified, and how many have passed since that number was set.
    ends: AtomicU32,
    ends_passed: AtomicU32,
    /// Whether answers contain no broker, and how many such answers have passed.
    hides_brokers: AtomicBool,
    hidden: AtomicU32,
    /// How many answers with heartbeats are still to have a wrong byte, and how many have had one.
    garbles: AtomicU32,
    garbled: AtomicU32,
    /// Whether no answer says that a record was appended.
    loses_acknowledgements: AtomicBool,
}

/// A part of each heartbeat.
const BEAT: &[u8] = b"\"kind\":\"beat\"";

impl Falsified {
    pub(super) fn set_ends(&self, answers: u32) {
        self.ends_passed.store(0, Ordering::SeqCst);
        self.ends.store(answers, Ordering::SeqCst);
    }

    pub(super) fn ends_passed(&self) -> u32 {
        self.ends_passed.load(Ordering::SeqCst)
    }

    pub(super) fn hide_brokers(&self, hides: bool) {
        self.hides_brokers.store(hides, Ordering::SeqCst);
    }

    pub(super) fn hidden(&self) -> u32 {
        self.hidden.load(Ordering::SeqCst)
    }

    pub(super) fn lose_acknowledgements(&self, loses: bool) {
        self.loses_acknowledgements.store(loses, Ordering::SeqCst);
    }

    pub(super) fn garble(&self, answers: u32) {
        self.garbles.store(answers, Ordering::SeqCst);
    }

    pub(super) fn garbled(&self) -> u32 {
        self.garbled.load(Ordering::SeqCst)
    }

    /// Makes the first heartbeat of an answer one that does not fit its checksum.
    fn pass_records(&self, mut answer: Vec<u8>) -> Vec<u8> {
        if let Some(at) = answer.windows(BEAT.len()).position(|part| part == BEAT)
            && self.garbles.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        {
            answer[at] ^= 1;
            self.garbled.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }

    fn pass(&self, key: i16, version: i16, answer: Vec<u8>) -> Vec<u8> {
        match key {
            PRODUCE if self.loses_acknowledgements.load(Ordering::SeqCst) => Vec::new(),
            FETCH => self.pass_records(answer),
            LIST_OFFSETS => self.pass_ends(answer, version),
            METADATA if self.hides_brokers.load(Ordering::SeqCst) => {
                self.hidden.fetch_add(1, Ordering::SeqCst);
                without_brokers(&answer, version)
            }
            _ => answer,
        }
    }

    /// Falsifies an answer of this version about one partition. An answer with the beginning of the log, at 0, is not changed.
    fn pass_ends(&self, mut answer: Vec<u8>, version: i16) -> Vec<u8> {
        // The offset is followed by the leader epoch and, in flexible versions, by empty tagged fields of partition, topic and answer.
        let behind = match version {
            6.. => 7,
            4.. => 4,
            _ => 0,
        };
        let end = answer.len().saturating_sub(behind);
        let Some((_, offset)) = answer[..end].split_last_chunk::<8>() else { return answer };
        let offset = i64::from_be_bytes(*offset);
        if offset >= TOO_LOW {
            if self.ends.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                answer[end - 8..end].copy_from_slice(&(offset - TOO_LOW).to_be_bytes());
            }
            self.ends_passed.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}

/// The API key and version of each request whose answer may be falsified, by its correlation id.
type Questions = HashMap<[u8; 4], (i16, i16)>;

/// The two directions of a connection: requests with this API key are swallowed, and answers are falsified.
pub(super) fn both(swallowed: Option<i16>, falsified: Option<Arc<Falsified>>) -> (Frames, Frames) {
    let questions: Arc<Mutex<Questions>> = Arc::default();
    let asked = Arc::clone(&questions);
    // A request begins with four bytes of length, two of the API key, two of its version and four of the correlation id.
    let there = Frames::new(move |request| {
        let number = |at: usize| request.get(at..at + 2).map(|two| i16::from_be_bytes([two[0], two[1]]));
        if number(4).is_some() && number(4) == swallowed {
            return None;
        }
        if let (Some(key @ (PRODUCE | FETCH | LIST_OFFSETS | METADATA)), Some(version)) = (number(4), number(6)) {
            let correlation = request[8..12].try_into().expect("four bytes");
            asked.lock().expect("no panic while it was locked").insert(correlation, (key, version));
        }
        Some(request)
    });
    let back = Frames::new(move |answer| {
        let correlation: Option<[u8; 4]> = answer.get(4..8).and_then(|four| four.try_into().ok());
        let known = correlation.and_then(|it| questions.lock().expect("no panic while it was locked").remove(&it));
        Some(match known.zip(falsified.as_ref()) {
            Some(((key, version), falsified)) => falsified.pass(key, version, answer),
            None => answer,
        })
    });
    (there, back)
}

/// A `Metadata` answer of this version without its brokers.
fn without_brokers(answer: &[u8], version: i16) -> Vec<u8> {
    let is_flexible = version >= 9;
    // The answer begins with the length, the correlation id, the empty tagged fields of a flexible header, and how long the client was
    // throttled.
    let begin = 8 + usize::from(is_flexible) + if version >= 3 { 4 } else { 0 };
    let (count, mut at) = length(answer, begin, if is_flexible { 0 } else { 4 });
    for _ in 0..count {
        // A broker consists of id, host, port, rack and empty tagged fields.
        at = after_string(answer, at + 4, is_flexible) + 4;
        if version >= 1 {
            at = after_string(answer, at, is_flexible);
        }
        at += usize::from(is_flexible);
    }
    let none: &[u8] = if is_flexible { &[1] } else { &[0; 4] };
    let mut rest = [&answer[4..begin], none, &answer[at..]].concat();
    rest.splice(0..0, u32::try_from(rest.len()).expect("an answer is short").to_be_bytes());
    rest
}

/// Where the string that begins here ends.
fn after_string(answer: &[u8], at: usize, is_flexible: bool) -> usize {
    let (length, begin) = length(answer, at, if is_flexible { 0 } else { 2 });
    begin + length
}

/// The length of the array or string that begins here, 0 for null, and the position of its content. The length is encoded in this many
/// bytes; with 0 bytes it is a varint of the length plus one.
fn length(answer: &[u8], at: usize, bytes: usize) -> (usize, usize) {
    if bytes > 0 {
        let is_null = answer[at] & 0x80 != 0;
        let length = answer[at..at + bytes].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        return (if is_null { 0 } else { length }, at + bytes);
    }
    let last = answer[at..].iter().position(|byte| byte & 0x80 == 0).expect("a varint has a last byte");
    let value = answer[at..=at + last].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    (value.saturating_sub(1), at + last + 1)
}

impl Frames {
    fn new(pass: impl FnMut(Vec<u8>) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self { begun: Vec::new(), pass: Box::new(pass) }
    }

    /// Takes the next chunk of the stream, and returns the bytes to pass on.
    pub(super) fn let_through(&mut self, piece: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(piece);
        let mut through = Vec::new();
        while let Some((length, _)) = self.begun.split_first_chunk::<4>() {
            let whole = 4 + usize::try_from(u32::from_be_bytes(*length)).expect("it fits into memory");
            if self.begun.len() < whole {
                break;
            }
            let frame = self.begun.drain(..whole).collect();
            through.extend((self.pass)(frame).unwrap_or_default());
        }
        through
    }
}
