//! An event of the log, and its line: its level, its name and fields in JSON, or its sentence in text.

use std::mem;

use neli_kafka::ElectionId;
use serde_json::{Map, Value, json};

use super::Form;
use crate::report::json::joined;
use crate::text::{self, cut, one_line, timestamp};

/// The longest atomic write to a pipe (`PIPE_BUF`), also with other writers.
const LONGEST_LINE: usize = 4_096;
/// The longest sentence, which leaves room for the line's beginning.
const LONGEST_SENTENCE: usize = 3_500;
/// The lengths of each text that are tried in a line that is too long.
const SHORTENED: [usize; 4] = [1_000, 300, 100, 30];

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
    /// Its name in the log, and the prefix of such a line for systemd's journal, which reads a line's priority from it: syslog's number.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Debug => ("debug", "<7>"),
            Self::Error => ("error", "<3>"),
            Self::Info => ("info", "<6>"),
            Self::Warning => ("warning", "<4>"),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.names().0
    }

    pub(crate) const fn priority(self) -> &'static str {
        self.names().1
    }
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub(super) level: Level,
    pub(super) name: &'static str,
    sentence: String,
    fields: Map<String, Value>,
}

impl Event {
    /// An event with a name of its own.
    pub(crate) fn new(level: Level, name: &'static str, sentence: impl Into<String>) -> Self {
        Self { level, name, sentence: sentence.into(), fields: Map::new() }
    }

    /// An event of normal operation.
    pub(crate) fn info(name: &'static str, sentence: impl Into<String>) -> Self {
        Self::new(Level::Info, name, sentence)
    }

    /// A detail that helps to find the cause of a problem.
    pub(crate) fn debug(message: impl Into<String>) -> Self {
        Self::message(Level::Debug, message.into())
    }

    /// A problem that keeps this candidate from its work.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::message(Level::Error, message.into())
    }

    /// A warning.
    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self::message(Level::Warning, message.into())
    }

    fn message(level: Level, message: String) -> Self {
        let fields = json!({ "message": message });
        Self::new(level, level.name(), message).with(fields)
    }

    /// The event with these fields, an object.
    pub(crate) fn with(mut self, mut fields: Value) -> Self {
        self.fields.extend(fields.as_object_mut().map(mem::take).unwrap_or_default());
        self
    }

    /// The event with one more field, which is left out if there is no value.
    pub(crate) fn with_some(mut self, field: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.fields.extend(value.map(|value| (field.to_owned(), value.into())));
        self
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
}

/// The role of a line, if there are several: its name, or else its number.
pub(super) fn role_of(election: &ElectionId) -> Value {
    election.role_name.clone().map_or_else(|| election.role.into(), Value::from)
}

/// The line, with its newline, of at most [`LONGEST_LINE`] bytes; `wall_ms` is milliseconds since 1970.
pub(super) fn line(form: &Form, wall_ms: u64, event: &Event) -> String {
    let ts = timestamp(wall_ms);
    let level = event.level.name();
    if form.is_json {
        let Form { name, group, role, .. } = form;
        let role = role.clone().unwrap_or_else(|| 0.into());
        let head = json!({
            "ts": ts, "level": level, "event": event.name, "group": group, "role": role, "name": name,
        });
        return json_line(joined([head, Value::Object(event.fields.clone())])) + "\n";
    }
    let sentence = one_line(&event.sentence);
    let sentence = cut(&sentence, LONGEST_SENTENCE);
    let named = |role: &Value| role.as_str().map_or_else(|| format!("/{role}"), |name| format!("/{name}"));
    let role = form.role.as_ref().map(named).unwrap_or_default();
    format!("{ts} neli-run[{}] {}{role}: {level}: {sentence}\n", form.pid, one_line(&form.group))
}

/// The object; its texts are shortened if they would make the line too long once they are escaped.
fn json_line(whole: Value) -> String {
    let line = text::json(&whole);
    let Value::Object(fields) = whole else { return line };
    if line.len() < LONGEST_LINE {
        return line;
    }
    let shortened = SHORTENED.into_iter().map(|longest| {
        let shorter = |value: &Value| value.as_str().map_or_else(|| value.clone(), |text| cut(text, longest).into());
        let texts = fields.iter().map(|(key, value)| (key.clone(), shorter(value)));
        text::json(&texts.collect::<Map<_, _>>())
    });
    shortened.into_iter().find(|line| line.len() < LONGEST_LINE).unwrap_or_default()
}
