//! An event of the log: its level, its name and fields in JSON, and its sentence in text.

use serde_json::Value;

use crate::config::LogFormat;

/// The level of a line in the log.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// For finding faults of `neli-run`; shown with `-v`.
    Debug,
    /// Normal operation.
    Info,
    /// A user should know it.
    Warning,
    /// A user should act.
    Error,
}

impl Level {
    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Error => "error",
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
    /// The prefix of such a line for systemd's journal, which reads a line's priority from it: syslog's number.
    #[must_use]
    pub const fn priority(self) -> &'static str {
        match self {
            Self::Debug => "<7>",
            Self::Error => "<3>",
            Self::Info => "<6>",
            Self::Warning => "<4>",
        }
    }
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    level: Level,
    /// In text it is shown with `-v` only.
    is_detail_in_text: bool,
    pub(super) name: &'static str,
    pub(super) sentence: String,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl Event {
    /// An event with a name of its own.
    #[must_use]
    pub fn new(level: Level, name: &'static str, sentence: impl Into<String>) -> Self {
        Self { level, is_detail_in_text: false, name, sentence: sentence.into(), fields: Vec::new() }
    }

    /// An event of normal operation.
    #[must_use]
    pub fn info(name: &'static str, sentence: impl Into<String>) -> Self {
        Self::new(Level::Info, name, sentence)
    }

    /// A detail that helps to find the cause of a problem.
    #[must_use]
    pub fn debug(message: impl Into<String>) -> Self {
        Self::message(Level::Debug, message.into())
    }

    /// A problem that keeps this candidate from its work.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self::message(Level::Error, message.into())
    }

    /// A warning.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Self {
        Self::message(Level::Warning, message.into())
    }

    fn message(level: Level, message: String) -> Self {
        Self::new(level, level.name(), message.clone()).with("message", message)
    }

    /// The event with one more field.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((field, value.into()));
        self
    }

    /// The event with one more field, which is left out if there is no value.
    #[must_use]
    pub fn with_some(self, field: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// The event as one that changes nothing: in text it is shown with `-v` only.
    #[must_use]
    pub fn detail_in_text(self, is_detail: bool) -> Self {
        Self { is_detail_in_text: is_detail, ..self }
    }

    /// The event as a sentence.
    #[cfg(test)]
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    /// The event as the JSON line of a candidate, for tests.
    #[cfg(test)]
    pub(crate) fn json_line(&self) -> String {
        super::tests::line_of(self)
    }

    /// The level of its line in this format.
    pub(super) fn level_in(&self, format: LogFormat) -> Level {
        if self.is_detail_in_text && format == LogFormat::Text { Level::Debug } else { self.level }
    }
}
