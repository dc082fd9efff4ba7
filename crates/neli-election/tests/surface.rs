//! The public interface of the library is recorded in `surface.txt`, so that a change shows what it breaks for users.
//!
//! `UPDATE=1 cargo test -p neli-election --test surface` writes it again.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_public_interface_matches_surface_txt() {
    let surface = surface();
    let file = root().join("surface.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &surface).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let new = surface.lines().find(|line| !committed.lines().any(|other| other == *line));
    let gone = committed.lines().find(|line| !surface.lines().any(|other| other == *line));
    assert!(
        surface == committed,
        "new is {new:?}, and gone {gone:?}.\nIf that is meant, say so in CHANGELOG.md, and: UPDATE=1 cargo test -p neli-election --test \
         surface"
    );
}

/// Each public type has an example that runs. Each method has one too, or the example of its type uses it.
#[test]
fn each_public_item_has_an_example() {
    let mut without = Vec::new();
    for (_, source) in sources() {
        let items = items(&source);
        let of_type = |name: &str| items.iter().find(|item| item.method.is_none() && item.of == name);
        for Item { of, method, example } in &items {
            let Some(method) = method else {
                without.extend(example.is_empty().then(|| (*of).to_owned()));
                continue;
            };
            let examples = [Some(example), of_type(of).map(|item| &item.example)];
            let is_called = |example: &String| {
                [format!(".{method}("), format!("{of}::{method}(")].iter().any(|call| example.contains(call))
            };
            if !examples.into_iter().flatten().any(is_called) {
                without.push(format!("{of}::{method}"));
            }
        }
    }
    assert!(without.is_empty(), "no example shows {without:?}");
}

/// Each async function says what happens if its future is dropped before it has ended.
#[test]
fn each_async_function_has_a_section_on_cancel_safety() {
    let mut without = Vec::new();
    for (_, source) in sources() {
        let mut documentation = Vec::new();
        for line in source.lines() {
            if let Some(text) = line.trim_start().strip_prefix("///") {
                documentation.push(text);
            } else if !line.trim_start().starts_with("#[") {
                let name = name_after(line, &["    pub async fn "]);
                without.extend(name.filter(|_| !documentation.contains(&" # Cancel safety")).map(str::to_owned));
                documentation.clear();
            }
        }
    }
    assert!(without.is_empty(), "no section on cancel safety: {without:?}");
}

/// A row that goes on in the next line is shown as two rows.
#[test]
fn each_row_of_a_table_is_one_line() {
    let library = ("lib.rs".to_owned(), fs::read_to_string(root().join("src/lib.rs")).unwrap());
    let sources: Vec<_> = sources().into_iter().chain([library]).collect();
    let lines = sources.iter().flat_map(|(_, source)| source.lines()).map(str::trim);
    let rows = lines.filter(|line| ["//! |", "/// |"].iter().any(|row| line.starts_with(row)));
    assert_eq!(rows.filter(|row| !row.ends_with('|')).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn declarations_are_read_without_what_is_private() {
    let source = "/// Words.\n#[derive(Clone)]\n#[non_exhaustive]\npub enum A {\n    /// B.\n    B { c: i64 },\n}\n\npub struct D {\n    \
                  e: u8,\n    pub f: u8,\n}\n\nimpl D {\n    pub(crate) fn g() {}\n\n    pub const fn h(\n        &self,\n    ) -> u8 {\n    \
                  1\n    }\n}\n";
    assert_eq!(
        declarations(source),
        [
            "#[derive(Clone)] #[non_exhaustive] pub enum A { B { c: i64 }, }",
            "pub struct D { pub f: u8, }",
            "impl D: pub const fn h( &self, ) -> u8",
        ]
    );
}

/// The names at the crate's root with their declarations.
fn surface() -> String {
    let mut surface = String::new();
    for (names, source) in sources() {
        writeln!(surface, "use {names}").unwrap();
        for declaration in declarations(&source) {
            writeln!(surface, "    {declaration}").unwrap();
        }
    }
    surface
}

/// The root's re-exports, file by file: the names, and the file's source.
fn sources() -> Vec<(String, String)> {
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    assert!(!library.lines().any(|line| line.starts_with("pub mod ")), "the root has no modules");
    let uses = library.lines().filter(|line| line.starts_with("pub use "));
    uses.map(|line| {
        let (path, names) = line.trim_start_matches("pub use ").trim_end_matches(';').rsplit_once("::").unwrap();
        let file = format!("src/{}.rs", path.replace("::", "/"));
        let source = fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        (names.to_owned(), source)
    })
    .collect()
}

/// A public type or method, and the code in its documentation.
struct Item<'a> {
    of: &'a str,
    method: Option<&'a str>,
    example: String,
}

/// The public types and methods of a source file.
fn items(source: &str) -> Vec<Item<'_>> {
    let (mut items, mut of, mut documentation) = (Vec::new(), "", Vec::new());
    for line in source.lines() {
        if let Some(text) = line.trim_start().strip_prefix("///") {
            documentation.push(text);
        } else if !line.trim_start().starts_with("#[") {
            let example = code_in(&documentation);
            documentation.clear();
            if let Some(name) = line.strip_prefix("impl ") {
                of = name.trim_end_matches(" {");
            } else if let Some(name) = name_after(line, &["pub struct ", "pub enum "]) {
                items.push(Item { of: name, method: None, example });
            } else if let Some(method) = name_after(line, &METHODS) {
                items.push(Item { of, method: Some(method), example });
            }
        }
    }
    items
}

/// The code blocks in the lines of a comment.
fn code_in(lines: &[&str]) -> String {
    let mut is_code = false;
    let code = lines.iter().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        is_code && !is_fence
    });
    code.copied().collect::<Vec<_>>().join("\n")
}

/// The name after one of these beginnings of a line.
fn name_after<'a>(line: &'a str, starts: &[&str]) -> Option<&'a str> {
    let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// The beginnings of a public method's line.
const METHODS: [&str; 3] = ["    pub fn ", "    pub const fn ", "    pub async fn "];

/// The public declarations of a source file, each in one line, without bodies and comments.
fn declarations(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = Vec::new();
    let (mut of, mut attributes) = ("", Vec::new());
    let mut rest = &code[..];
    while let Some((line, behind)) = rest.split_first() {
        let mut taken = 1;
        if line.starts_with("#[") {
            attributes.extend(is_telling(line).then_some(*line));
            rest = behind;
            continue;
        }
        if let Some(name) = line.strip_prefix("impl ") {
            of = name.trim_end_matches(" {");
        } else if ["pub struct ", "pub enum "].iter().any(|start| line.starts_with(start)) {
            taken += rest.iter().position(|line| *line == "}" || line.ends_with(';')).unwrap_or(0);
            let is_enum = line.starts_with("pub enum ");
            let shown = without_attributes(&rest[..taken]).filter(|line| is_enum || is_shown(line));
            found.push(one_line(attributes.iter().chain(shown)));
        } else if METHODS.iter().any(|start| line.starts_with(start)) {
            taken += rest.iter().position(|line| line.ends_with(['{', '}'])).unwrap_or(0);
            let signature = one_line(&rest[..taken]);
            found.push(format!("impl {of}: {}", signature.split(" {").next().unwrap_or_default()));
        }
        attributes.clear();
        rest = &rest[taken..];
    }
    found
}

fn one_line<'a>(lines: impl IntoIterator<Item = &'a &'a str>) -> String {
    lines.into_iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The lines of a type without the attributes of its members.
fn without_attributes<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a &'a str> {
    let mut is_attribute = false;
    lines.iter().filter(move |line| {
        is_attribute |= line.trim_start().starts_with("#[");
        let is_shown = !is_attribute;
        is_attribute &= !line.ends_with(']');
        is_shown
    })
}

/// Whether an attribute of a type affects its users.
fn is_telling(line: &str) -> bool {
    ["#[derive", "#[non_exhaustive", "#[must_use"].iter().any(|start| line.starts_with(start))
}

/// Whether a line of a struct is visible to its users.
fn is_shown(line: &str) -> bool {
    line.starts_with("pub ") || line == "}" || line.trim_start().starts_with("pub ")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
