//! The fields of a record: what their absence says, and how each is read.

use alloc::boxed::Box;
use alloc::string::String;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Offset;

/// Whether a field says nothing that its absence does not say.
pub(super) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// A JSON object's fields, each by the type that it should have.
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl Fields<'_> {
    pub(super) fn offset(&self, field: &str) -> Option<Offset> {
        self.0.get(field)?.as_i64()
    }

    pub(super) fn number<T: TryFrom<u64>>(&self, field: &str) -> Option<T> {
        T::try_from(self.0.get(field)?.as_u64()?).ok()
    }

    pub(super) fn text(&self, field: &str) -> Option<Box<str>> {
        self.0.get(field)?.as_str().map(Box::from)
    }

    pub(super) fn enum_value<T: for<'de> Deserialize<'de>>(&self, field: &str) -> Option<T> {
        T::deserialize(self.0.get(field)?).ok()
    }

    /// Whether it is there, and true.
    pub(super) fn flag(&self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool).unwrap_or_default()
    }
}
