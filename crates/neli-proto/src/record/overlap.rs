//! The fields of claims and beats in an election with `--overlap`.

use serde::Serialize;

use super::Offset;
use super::fields::{Fields, is_default};

/// A field of each claim and beat of a candidate with `--overlap`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
pub struct Overlap {
    /// `--overlap`, in milliseconds.
    #[serde(rename = "overlap_ms")]
    pub within_ms: u64,
    /// In a claim: the current term when the claim is sent, whose job may continue for a while. In a beat: the same value as in the
    /// leader's claim, until the leader knows that no process of the earlier job is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Offset>,
    /// In a beat: whether the leader must stop, and its job continues until another candidate has claimed.
    #[serde(skip_serializing_if = "is_default")]
    pub yields: bool,
}

impl Overlap {
    pub(super) fn parse(fields: &Fields) -> Option<Self> {
        let within_ms = fields.number("overlap_ms")?;
        Some(Self { within_ms, over: fields.offset("over"), yields: fields.flag("yields") })
    }
}
