//! The line for an event: JSON or text.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use neli_kafka::ElectionId;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::config::LogFormat;
use crate::report::log::event::Event;
use crate::text::{cut, json, one_line};

/// The longest atomic write to a pipe (`PIPE_BUF`), also with other writers.
const LONGEST_LINE: usize = 4_096;
/// The longest sentence, which leaves room for the line's beginning.
const LONGEST_SENTENCE: usize = 3_500;
/// The lengths of each text that are tried in a line that is too long.
const SHORTENED: [usize; 4] = [1_000, 300, 100, 30];

#[derive(Serialize)]
struct Json<'a> {
    ts: String,
    level: &'static str,
    event: &'static str,
    group: &'a str,
    role: &'a Value,
    name: &'a str,
    #[serde(flatten)]
    fields: Fields<'a>,
}

struct Fields<'a>(&'a [(&'static str, Value)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Milliseconds since 1970 as UTC in RFC 3339. A record in the topic may contain a later time than the year 9999: it is shown as the last
/// moment of that year.
#[must_use]
pub fn timestamp(wall_ms: u64) -> String {
    humantime::format_rfc3339_millis(wall_time(wall_ms)).to_string()
}

/// The same time without milliseconds.
#[must_use]
pub fn to_the_second(wall_ms: u64) -> String {
    humantime::format_rfc3339_seconds(wall_time(wall_ms)).to_string()
}

/// Only the time of day in seconds: `05:40:50`.
#[must_use]
pub fn time_of_day(wall_ms: u64) -> String {
    timestamp(wall_ms).chars().skip(11).take(8).collect()
}

fn wall_time(wall_ms: u64) -> SystemTime {
    const LAST: u64 = 253_402_300_799_999;
    UNIX_EPOCH + Duration::from_millis(wall_ms.min(LAST))
}

/// The candidate that writes the log.
#[derive(Clone, Debug)]
pub(super) struct LineSource {
    /// `--name`.
    pub(super) name: String,
    /// The prefix that distinguishes the text lines of several candidates.
    pub(super) pid: u32,
    /// `--group`.
    pub(super) group: String,
    /// The role, if there are several.
    pub(super) role: Option<Value>,
}

/// The role of a line, if there are several: its name, or else its number.
pub(super) fn role_of(election: &ElectionId) -> Value {
    election.role_name.clone().map_or_else(|| election.role.into(), Value::from)
}

/// The line, with its newline, of at most [`LONGEST_LINE`] bytes; `wall_ms` is milliseconds since 1970.
pub(super) fn line(format: LogFormat, wall_ms: u64, source: &LineSource, event: &Event) -> String {
    let ts = timestamp(wall_ms);
    let level = event.level_in(format).name();
    match format {
        LogFormat::Json => {
            let LineSource { name, group, role, .. } = source;
            let (role, first) = (role.as_ref(), Value::from(0));
            let role = role.unwrap_or(&first);
            let fields = Fields(&event.fields);
            let mut line = json_line(&Json { ts, level, event: event.name, group, role, name, fields });
            line.push('\n');
            line
        }
        LogFormat::Text => {
            let sentence = one_line(&event.sentence);
            let sentence = cut(&sentence, LONGEST_SENTENCE);
            let named = |role: &Value| role.as_str().map_or_else(|| format!("/{role}"), |name| format!("/{name}"));
            let role = source.role.as_ref().map(named).unwrap_or_default();
            format!("{ts} neli-run[{}] {}{role}: {level}: {sentence}\n", source.pid, one_line(&source.group))
        }
    }
}

/// The object; its texts are shortened if they would make the line too long once they are escaped.
fn json_line(whole: &Json<'_>) -> String {
    let line = json(whole);
    if line.len() < LONGEST_LINE {
        return line;
    }
    let Ok(Value::Object(fields)) = serde_json::to_value(whole) else { return line };
    let shortened = SHORTENED.into_iter().map(|longest| {
        let texts = fields
            .iter()
            .map(|(key, value)| (key, value.as_str().map_or_else(|| value.clone(), |text| cut(text, longest).into())));
        json(&texts.collect::<BTreeMap<_, Value>>())
    });
    shortened.into_iter().find(|line| line.len() < LONGEST_LINE).unwrap_or_default()
}
