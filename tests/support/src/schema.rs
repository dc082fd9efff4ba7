//! The documented schema of a command's JSON, compared with what the command prints.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The page with the objects that several documents contain.
const OBJECTS: &str = include_str!("../../../docs/json.md");

/// The fields that a section of a page describes, one table row each: name, type, meaning.
#[derive(Debug)]
pub struct Schema {
    section: String,
    types: BTreeMap<String, String>,
}

impl Schema {
    /// The schema in the section with this heading.
    #[must_use]
    pub fn read(page: &str, heading: &str) -> Self {
        let mut types = BTreeMap::new();
        add_section(&mut types, "", page, heading, OBJECTS);
        Self { section: heading.to_owned(), types }
    }

    /// Asserts that every field of the object is documented with its type, and that every documented field is present, unless its parent
    /// is null or empty.
    pub fn assert_holds(&self, object: &Value) {
        let mut seen = BTreeSet::new();
        self.walk("", object, &mut seen);
        for path in self.types.keys() {
            let parent = path.rsplit_once('.').map(|(parent, _)| parent);
            let is_due = parent.is_none_or(|parent| seen.contains(parent));
            assert!(
                !is_due || seen.contains(path.as_str()),
                "{}: {path} is described, and not in {object}",
                self.section
            );
        }
    }

    fn walk(&self, path: &str, value: &Value, seen: &mut BTreeSet<String>) {
        if !path.is_empty() {
            let section = &self.section;
            let documented =
                self.types.get(path).unwrap_or_else(|| panic!("{section}: {path} is not described: {value}"));
            let fits = documented.split(" or ").any(|word| is_a(value, word));
            assert!(fits, "{section}: {path} is {value}, and described as {documented}");
            seen.insert(path.to_owned());
            if value.is_null() {
                self.skip_below(&format!("{path}."), seen);
                return;
            }
            // These are records of other programs, which are printed unchanged.
            if documented.starts_with("anything") {
                return;
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.walk(&path, value, seen);
                }
            }
            Value::Array(values) => {
                let each = format!("{path}[]");
                if values.is_empty() {
                    self.skip_below(&each, seen);
                }
                for value in values {
                    self.walk(&each, value, seen);
                }
            }
            Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Skips the fields that are documented below a parent that is null or empty.
    fn skip_below(&self, path: &str, seen: &mut BTreeSet<String>) {
        let below = self.types.keys().filter(|known| known.starts_with(path));
        seen.extend(below.cloned());
    }
}

/// Adds the fields of a section. A row may have several fields of one type. A link to a section of `objects` in place of a type stands for
/// the object there, and in place of a field for the fields there.
fn add_section(types: &mut BTreeMap<String, String>, parent: &str, page: &str, heading: &str, objects: &str) {
    let begin = format!("\n## {heading}\n");
    let (_, section) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no section {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    for row in section.lines().filter(|line| line.starts_with("| `") || line.starts_with("| [")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, fields, of_type, ..] = cells[..] else { continue };
        if let Some((section, _)) = link(fields) {
            add_section(types, parent, objects, section, objects);
            continue;
        }
        for field in fields.split(", ").map(|field| format!("{parent}{}", field.trim_matches('`'))) {
            if let Some((section, or_null)) = link(of_type) {
                add_section(types, &format!("{field}."), objects, section, objects);
                types.insert(field, format!("object{or_null}"));
            } else {
                types.insert(field, of_type.to_owned());
            }
        }
    }
}

/// The text of a link at the beginning of a cell, and what follows the link.
fn link(cell: &str) -> Option<(&str, &str)> {
    let (text, rest) = cell.strip_prefix('[')?.split_once("](")?;
    Some((text, rest.split_once(')')?.1))
}

fn is_a(value: &Value, word: &str) -> bool {
    match word {
        "flag" => value.is_boolean(),
        "list" => value.is_array(),
        "null" => value.is_null(),
        "number" => value.is_i64() || value.is_u64(),
        "object" => value.is_object(),
        "text" => value.is_string(),
        // 2026-01-31T12:00:00.123Z
        "time" => value.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z')),
        "anything" => true,
        _ => panic!("{word} is no type"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PAGE: &str = "\n## a\n\n| field | type | meaning |\n|---|---|---|\n| `ts` | time | x |\n| `o` | object or null | x |\n\
                        | `o.n` | number | x |\n| `l` | list | x |\n| `l[]` | object | x |\n| `l[].t` | text or null | x |\n\n## b\n\n| `z` | text | x |\n";

    fn holds(value: &Value) -> bool {
        let schema = Schema::read(PAGE, "a");
        std::panic::catch_unwind(|| schema.assert_holds(value)).is_ok()
    }

    #[test]
    fn a_link_stands_for_the_fields_of_its_section() {
        let page = "\n## a\n\n| [all](#all) | | |\n| `x`, `y` | [o](#o) or null | x |\n| `y.n` | null | x |\n";
        let objects = "\n## all\n\n| `g` | flag | x |\n\n## o\n\n| `n` | number | x |\n";
        let mut types = BTreeMap::new();
        add_section(&mut types, "", page, "a", objects);
        let types: Vec<_> = types.iter().map(|(field, of_type)| format!("{field}: {of_type}")).collect();
        assert_eq!(types, ["g: flag", "x: object or null", "x.n: number", "y: object or null", "y.n: null"]);
    }

    #[test]
    fn a_schema_accepts_exactly_its_fields() {
        let ts = "2026-01-31T12:00:00.123Z";
        assert!(holds(&json!({"ts": ts, "o": {"n": 1}, "l": [{"t": null}, {"t": "x"}]})));
        assert!(holds(&json!({"ts": ts, "o": null, "l": []})));
        assert!(!holds(&json!({"ts": "now", "o": null, "l": []})), "another type");
        assert!(!holds(&json!({"ts": ts, "o": {}, "l": []})), "one that is missing");
        assert!(!holds(&json!({"ts": ts, "l": []})), "one that is missing");
        assert!(!holds(&json!({"ts": ts, "o": null, "l": [], "more": 1})), "one too many");
        assert!(!holds(&json!({"ts": ts, "o": null, "l": [{}]})), "one that is missing in a list");
    }
}
