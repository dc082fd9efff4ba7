//! Reads the fields of a line of JSON: of a record, a hello or a fact.

use alloc::boxed::Box;
use alloc::string::String;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MemberId, Offset};

/// Whether the field has its default value, so that it can be left out.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// The fields of a JSON object, with one reader for each type. A field that is missing or of another type is `None`.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Parses a line of JSON; `None` if it is not an object of the version that this program knows.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        (fields.get("v")?.as_u64()? == 1).then_some(Self(fields))
    }

    pub(crate) fn offset(&self, field: &str) -> Option<Offset> {
        self.0.get(field)?.as_i64()
    }

    pub(crate) fn number<T: TryFrom<u64>>(&self, field: &str) -> Option<T> {
        T::try_from(self.0.get(field)?.as_u64()?).ok()
    }

    pub(crate) fn str(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str()
    }

    pub(crate) fn text(&self, field: &str) -> Option<Box<str>> {
        self.str(field).map(Box::from)
    }

    pub(crate) fn member(&self, field: &str) -> Option<MemberId> {
        self.str(field).map(MemberId::from)
    }

    pub(crate) fn enum_value<T: for<'de> Deserialize<'de>>(&self, field: &str) -> Option<T> {
        T::deserialize(self.0.get(field)?).ok()
    }

    /// Whether the field is present and true.
    pub(crate) fn flag(&self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool).unwrap_or_default()
    }
}
