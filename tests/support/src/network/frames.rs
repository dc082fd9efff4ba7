//! The requests and answers of one connection; some requests are swallowed and some answers falsified.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The API key of `ListOffsets`, which asks where a log begins or ends.
const LIST_OFFSETS: i16 = 2;
/// By how many records a falsified end is too low.
const TOO_LOW: i64 = 2;

/// One direction of a connection, split into requests or answers.
pub(super) struct Frames {
    /// The received part of an incomplete message.
    begun: Vec<u8>,
    /// Maps each message to the one that is passed on, or to none.
    pass: Box<dyn FnMut(Vec<u8>) -> Option<Vec<u8>> + Send>,
}

/// How many answers about the end of a log are still to be falsified, and how many have passed since that number was set.
#[derive(Debug, Default)]
pub(super) struct FalseEnds {
    left: AtomicU32,
    told: AtomicU32,
}

impl FalseEnds {
    pub(super) fn set(&self, answers: u32) {
        self.told.store(0, Ordering::SeqCst);
        self.left.store(answers, Ordering::SeqCst);
    }

    pub(super) fn passed(&self) -> u32 {
        self.told.load(Ordering::SeqCst)
    }

    /// Falsifies an answer of this version about one partition. An answer with the beginning of the log, at 0, is not changed.
    fn pass(&self, mut answer: Vec<u8>, version: i16) -> Vec<u8> {
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
            if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                answer[end - 8..end].copy_from_slice(&(offset - TOO_LOW).to_be_bytes());
            }
            self.told.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}

/// The two directions of a connection: requests with this API key are swallowed, and answers about ends are falsified.
pub(super) fn both(swallowed: Option<i16>, ends: Option<Arc<FalseEnds>>) -> (Frames, Frames) {
    let questions: Arc<Mutex<HashMap<[u8; 4], i16>>> = Arc::default();
    let asked = Arc::clone(&questions);
    // A request begins with four bytes of length, two of the API key, two of its version and four of the correlation id.
    let there = Frames::new(move |request| {
        let number = |at: usize| request.get(at..at + 2).map(|two| i16::from_be_bytes([two[0], two[1]]));
        if number(4).is_some() && number(4) == swallowed {
            return None;
        }
        if let (Some(LIST_OFFSETS), Some(version)) = (number(4), number(6)) {
            let correlation = request[8..12].try_into().expect("four bytes");
            asked.lock().expect("no panic while it was locked").insert(correlation, version);
        }
        Some(request)
    });
    let back = Frames::new(move |answer| {
        let correlation: Option<[u8; 4]> = answer.get(4..8).and_then(|four| four.try_into().ok());
        let known = correlation.and_then(|it| questions.lock().expect("no panic while it was locked").remove(&it));
        Some(match known.zip(ends.as_ref()) {
            Some((version, ends)) => ends.pass(answer, version),
            None => answer,
        })
    });
    (there, back)
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
