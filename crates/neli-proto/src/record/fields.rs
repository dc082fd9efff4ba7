//! Reads the fields of a record, with a default for each missing field.

use alloc::boxed::Box;
use alloc::string::String;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Offset;

/// Whether the field has its default value, so that it can be left out.
pub(super) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// The fields of a JSON object, with one reader for each type.
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

    /// Whether the field is present and true.
    pub(super) fn flag(&self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool).unwrap_or_default()
    }
}
