//! The table of log events. It is made from the comments and attributes of `src/report/log/event.rs`, so that no event or field is
//! missing.

use std::fmt::Write;
use std::fs;

use super::root;

/// A field or an event while its lines are being read.
#[derive(Default)]
struct Item {
    comment: String,
    attributes: String,
}

impl Item {
    /// Whether an attribute continues on the next line.
    fn is_in_attribute(&self) -> bool {
        !self.attributes.is_empty() && !self.attributes.ends_with(']')
    }

    fn is_skipped(&self) -> bool {
        self.attributes.contains("#[serde(skip)]")
    }

    /// The name of the event or field in the JSON.
    fn name<'a>(&'a self, name: &'a str) -> &'a str {
        let renamed = self.attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
        renamed.unwrap_or(name)
    }

    fn is_optional(&self) -> bool {
        self.attributes.contains("skip_serializing_if")
    }
}

/// The rows of the table: each event, with its fields below it.
pub(super) fn table() -> String {
    let source = fs::read_to_string(root("src/report/log/event.rs")).unwrap();
    let (_, body) = source.split_once("pub enum Event {\n").unwrap();
    let body = body.split("\n}\n").next().unwrap();
    let mut table = "| event, and its fields | type | meaning |\n|---|---|---|\n".to_owned();
    let (mut item, mut events) = (Item::default(), 0);
    for line in body.lines().map(str::trim) {
        if item.is_in_attribute() || line.starts_with("#[") {
            item.attributes += line;
        } else if let Some(comment) = line.strip_prefix("/// ") {
            item.comment += if item.comment.is_empty() { "" } else { " " };
            item.comment += comment;
        } else if let Some(event) = line.strip_suffix(" {") {
            writeln!(table, "| `{}` | event | {} |", snake(event), meaning(&item.comment)).unwrap();
            (item, events) = (Item::default(), events + 1);
        } else if let Some((name, kind)) = line.strip_suffix(',').and_then(|line| line.split_once(": ")) {
            if !item.is_skipped() {
                let missing = if item.is_optional() { ", or not there" } else { "" };
                let name = item.name(name);
                writeln!(table, "| … `{name}` | {}{missing} | {} |", json(kind), meaning(&item.comment)).unwrap();
            }
            item = Item::default();
        }
    }
    let names = fs::read_to_string(root("src/report/log/kind.rs")).unwrap();
    for event in table.lines().filter(|row| row.contains("| event |")) {
        let name = event.split('`').nth(1).unwrap();
        assert!(names.contains(&format!("=> \"{name}\",")), "the log calls no event {name}");
    }
    assert_eq!(events, names.matches("} => \"").count(), "an event is missing");
    table
}

fn meaning(comment: &str) -> String {
    comment.trim_end_matches('.').replace('|', "\\|")
}

/// A name such as `JobExited` in snake case, as in the log.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The JSON type of a Rust type.
fn json(kind: &str) -> &'static str {
    match kind {
        "bool" => "flag",
        "Option<Due>" => "time",
        "String" | "Option<String>" | "From" => "text",
        "Option<i32>" => "number or null",
        _ if kind.contains("Duration") => "number",
        "i32" | "i64" | "u8" | "u16" | "u32" | "usize" | "Option<i64>" | "Option<u64>" => "number",
        _ => panic!("what is {kind} as JSON?"),
    }
}
