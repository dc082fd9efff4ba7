//! The list of log events in docs/json.md has each event and each field that the sources name, in their order.

use std::collections::BTreeMap;
use std::fs;

use super::root;

/// The sources in which events are made.
const SOURCES: [&str; 4] =
    ["src/report/events.rs", "src/report/log.rs", "src/report/log/event.rs", "src/report/notes.rs"];
/// The names of the events that are only a message.
const MESSAGES: [&str; 3] = ["debug", "error", "warning"];

/// The fields of each event, and whether they may be missing.
type Events = BTreeMap<String, Vec<(String, bool)>>;

/// Compares the list with the sources.
pub(super) fn compare() {
    let (documented, made) = (documented(), made());
    assert!(made.len() >= 36, "{} events were found in the sources", made.len());
    let names = |events: &Events| events.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&documented), names(&made), "docs/json.md has not the events of the sources");
    for (name, fields) in made {
        assert_eq!(documented[&name], fields, "docs/json.md: {name}");
    }
}

/// The events in the documentation.
fn documented() -> Events {
    let page = fs::read_to_string(root("docs/json.md")).unwrap();
    let (_, section) = page.split_once("\n## The log\n").unwrap();
    let mut events = Events::new();
    for item in section.split("\n- ").skip(1) {
        // A line may be broken.
        let item = item.trim_end().replace("\n  ", " ");
        let (name, rest) = item.split_once(": ").unwrap();
        let (meaning, fields) = rest.strip_suffix(')').and_then(|rest| rest.split_once(" (`")).unwrap();
        assert!(!meaning.is_empty(), "{item}");
        // A field begins with its name; a question mark follows the name of one that may be left out.
        let fields = fields.split("; ").map(|field| {
            let field = field.trim_start_matches('`');
            let (name, rest) = field.split_once('`').unwrap_or_else(|| panic!("{item}: {field:?} begins with no name"));
            (name.to_owned(), rest.starts_with('?'))
        });
        events.insert(name.trim_matches('`').to_owned(), fields.collect());
    }
    events
}

/// The events that the sources make.
fn made() -> Events {
    let mut made: BTreeMap<String, Vec<Vec<(String, bool)>>> = BTreeMap::new();
    for name in MESSAGES {
        made.insert(name.to_owned(), vec![vec![("message".to_owned(), false)]]);
    }
    for source in SOURCES {
        let source = fs::read_to_string(root(source)).unwrap();
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for event in source.split("Event::").skip(1) {
            let message = MESSAGES.iter().find(|name| event.starts_with(&format!("{name}(")));
            let named =
                (event.starts_with("info(") || event.starts_with("new(")).then(|| event.split('"').nth(1).unwrap());
            let Some(name) = message.copied().or(named) else { continue };
            let first = message.map(|_| ("message".to_owned(), false));
            let fields = event.split(".with").skip(1).flat_map(|with| {
                let optional = with.strip_prefix("_some(\"").and_then(|rest| rest.split('"').next());
                let object = with.strip_prefix("(json!({").and_then(|rest| rest.split("})").next()).unwrap_or_default();
                // Each name but the last stands before the next `":`.
                let fields = object.split("\":").map(|part| part.rsplit('"').next().unwrap());
                let fields = fields.take(object.matches("\":").count()).map(|field| (field.to_owned(), false));
                fields.chain(optional.map(|field| (field.to_owned(), true))).collect::<Vec<_>>()
            });
            made.entry(name.to_owned()).or_default().push(first.into_iter().chain(fields).collect());
        }
    }
    made.into_iter().map(|(name, made)| (name, joined(&made))).collect()
}

/// The fields of one event that is made in several places. One that only some of them have may be missing.
fn joined(made: &[Vec<(String, bool)>]) -> Vec<(String, bool)> {
    let mut fields = made.iter().max_by_key(|fields| fields.len()).cloned().unwrap_or_default();
    for (name, is_optional) in &mut fields {
        *is_optional |= made.iter().any(|fields| fields.iter().all(|(other, _)| other != name));
    }
    fields
}
