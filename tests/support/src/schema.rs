//! The documented schema of a command's JSON, compared with what the command prints. Also the documented metrics.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The page with the types, and with the objects that several documents contain.
const OBJECTS: &str = include_str!("../../../docs/json.md");

/// The fields that a section of a page describes, and their types.
#[derive(Debug)]
pub struct Schema {
    section: String,
    types: BTreeMap<String, String>,
}

impl Schema {
    /// The schema in the section with this heading.
    #[must_use]
    pub fn read(page: &str, heading: &str) -> Self {
        Self { section: heading.to_owned(), types: types_of(page, heading, OBJECTS) }
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

/// The metrics in the list of a page, with their types: each item begins with its type.
#[must_use]
pub fn metrics(page: &str) -> BTreeMap<&str, &str> {
    let (_, section) = page.split_once("\n## /metrics\n").expect("the page has a section for the metrics");
    let items = section.split("\n- ").skip(1);
    items
        .flat_map(|item| {
            let kind = item.split([' ', ':']).next().unwrap_or_default();
            let names = item.split('`').filter(|word| word.starts_with("neli_"));
            names.map(move |name| (name, kind))
        })
        .collect()
}

/// The fields of a section with their types. A field with others below it is an object or a list; the page of the objects has the rest.
fn types_of(page: &str, heading: &str, objects: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    add_section(&mut fields, "", (page, heading), objects);
    for field in fields.keys().cloned().collect::<Vec<_>>() {
        for (at, _) in field.match_indices(['.', '[']) {
            fields.entry(field[..at].to_owned()).or_insert(false);
        }
    }
    let has = |field: &str, below: &str| {
        fields.keys().any(|other| other.strip_prefix(field).is_some_and(|rest| rest.starts_with(below)))
    };
    let type_of = |field: &str| match field {
        list if has(list, "[]") => "list",
        object if has(object, ".") => "object",
        other => type_by_name(other.rsplit('.').next().unwrap_or_default().trim_end_matches("[]"), objects),
    };
    let typed = fields.iter().map(|(field, may_be_null)| {
        (field.clone(), format!("{}{}", type_of(field), if *may_be_null { " or null" } else { "" }))
    });
    typed.collect()
}

/// The type that the page gives to a field of this name, or to names with its end.
fn type_by_name<'a>(name: &str, objects: &'a str) -> &'a str {
    let (_, table) =
        objects.split_once("| type | fields |\n").unwrap_or_else(|| panic!("the page has no table of types"));
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut types = rows.filter_map(|row| row.strip_prefix("| ")?.split_once(" | "));
    let is_named = |names: &str| {
        names.split('`').skip(1).step_by(2).any(|word| word == name || (word.starts_with('_') && name.ends_with(word)))
    };
    types.find(|(_, names)| is_named(names)).map_or("text", |(of_type, _)| of_type)
}

/// Adds the fields of a section, and whether each may be null. An item of the list may begin with several fields. A link in brackets behind
/// a field stands for the fields of the object in that section, and in place of a field for the fields there.
fn add_section(fields: &mut BTreeMap<String, bool>, parent: &str, (page, heading): (&str, &str), objects: &str) {
    let begin = format!("\n## {heading}\n");
    let (_, section) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no section {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let items = section.split("\n- ").skip(1).filter(|item| item.starts_with(['`', '[']));
    for item in items {
        // A line may be broken in a list of fields.
        let item = item.replace("\n  ", " ");
        let mut rest = item.split('\n').next().unwrap_or_default();
        loop {
            let (name, after) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')).unwrap_or(("", rest));
            let field = format!("{parent}{name}");
            let (may_be_null, after) = after.strip_prefix('?').map_or((false, after), |after| (true, after));
            let in_brackets = if name.is_empty() { Some(after) } else { after.strip_prefix(" (") };
            let linked = in_brackets.and_then(link);
            let after = if let Some((heading, target, after)) = linked {
                let page = if target.starts_with('#') { page } else { objects };
                let below = if name.is_empty() { parent.to_owned() } else { format!("{field}.") };
                add_section(fields, &below, (page, heading), objects);
                if name.is_empty() { after } else { after.strip_prefix(')').unwrap_or(after) }
            } else {
                assert!(!name.is_empty(), "{heading}: {item}");
                after
            };
            if !name.is_empty() {
                fields.insert(field, may_be_null);
            }
            if let Some(next) = after.strip_prefix(", ") {
                rest = next;
            } else {
                assert!(after.is_empty() || after.starts_with(": "), "{heading}: {item}: {after}");
                break;
            }
        }
    }
}

/// The text and the target of a link at the beginning, and what follows it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (heading, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    Some((heading, target, rest))
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

    const PAGE: &str = "\n## a\n\nx.\n\n- `ts`, `o`?: x, `y`\n- `o.n`\n- `l[].t`?: x\n\n- x\n\n## b\n\n- `z`: x\n";

    fn holds(value: &Value) -> bool {
        let schema = Schema::read(PAGE, "a");
        std::panic::catch_unwind(|| schema.assert_holds(value)).is_ok()
    }

    #[test]
    fn a_link_stands_for_the_fields_of_its_section() {
        let page = "\n## a\n\n- [all](b.md#all), `x`?,\n  `y_ms`: x\n- `y`? ([o](b.md#o)): x\n- `l[]` ([here](#here)): x\n\n\
                    ## here\n\n- `i[]`: x\n";
        let objects = "\n| type | fields |\n|---|---|\n| number | `i`, `n`, `_ms` |\n| flag | `g` |\n\n## all\n\n- `g`: x\n\n\
                       ## o\n\n- `n`?\n";
        let types = types_of(page, "a", objects);
        let types: Vec<_> = types.iter().map(|(field, of_type)| format!("{field}: {of_type}")).collect();
        assert_eq!(
            types,
            [
                "g: flag",
                "l: list",
                "l[]: object",
                "l[].i: list",
                "l[].i[]: number",
                "x: text or null",
                "y: object or null",
                "y.n: number or null",
                "y_ms: number"
            ]
        );
    }

    #[test]
    fn each_object_of_the_page_can_be_read() {
        let headings = OBJECTS.split("\n## ").skip(1).filter_map(|section| section.lines().next());
        let objects: Vec<&str> = headings.filter(|heading| *heading != "The log").collect();
        assert!(objects.len() >= 18, "{objects:?}");
        for heading in objects {
            assert!(!types_of(OBJECTS, heading, OBJECTS).is_empty(), "{heading}");
        }
    }

    #[test]
    fn a_schema_accepts_exactly_its_fields() {
        let ts = "2026-01-31T12:00:00.123Z";
        assert!(holds(&json!({"ts": ts, "o": {"n": "1"}, "l": [{"t": null}, {"t": "x"}]})));
        assert!(holds(&json!({"ts": ts, "o": null, "l": []})));
        assert!(!holds(&json!({"ts": ts, "o": {"n": 1}, "l": []})), "another type");
        assert!(!holds(&json!({"ts": "now", "o": null, "l": []})), "another type");
        assert!(!holds(&json!({"ts": ts, "o": {}, "l": []})), "one that is missing");
        assert!(!holds(&json!({"ts": ts, "l": []})), "one that is missing");
        assert!(!holds(&json!({"ts": ts, "o": null, "l": [], "more": 1})), "one too many");
        assert!(!holds(&json!({"ts": ts, "o": null, "l": [{}]})), "one that is missing in a list");
    }
}
