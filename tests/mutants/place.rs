//! Finds the place that a mutant edits by what stands there, in whatever file that is.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::mutant::Edit;

/// A source file, and its code as places are looked for in it.
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
    code: Code,
}

impl Source {
    pub(crate) fn new(file: String, text: String) -> Self {
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code = Code::of(shipped);
        Self { file, text, code }
    }

    /// The lines of all functions with this name.
    fn functions(&self, name: &str) -> Vec<Range<usize>> {
        let starts = [format!("fn {name}("), format!("fn {name}<")];
        let starts: BTreeSet<usize> =
            starts.iter().flat_map(|start| self.text.match_indices(start.as_str())).map(|(at, _)| at).collect();
        starts.into_iter().map(|start| start..self.end_of_function(start)).collect()
    }

    /// A function ends at the first bracket that is no further to the right than its first line.
    fn end_of_function(&self, start: usize) -> usize {
        let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let indentation = indentation_of(&self.text[line..]);
        let mut end = start;
        for line in self.text[start..].split_inclusive('\n') {
            end += line.len();
            if line.starts_with('}') || line.trim_start().starts_with('}') && indentation_of(line) <= indentation {
                break;
            }
        }
        end
    }
}

fn indentation_of(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// The place of an edit: the number of the source, and the range of its text that is replaced.
///
/// # Errors
///
/// It is not found exactly once.
pub(crate) fn find(sources: &[Source], edit: &Edit) -> Result<(usize, Range<usize>), String> {
    let Wanted { letters, replaced } = Wanted::of(edit.text);
    if replaced.is_empty() {
        return Err(format!("`{}` replaces nothing", edit.text));
    }
    let mut found = BTreeSet::new();
    for (number, source) in sources.iter().enumerate() {
        let functions = edit.function.map(|name| source.functions(name));
        for (at, _) in source.code.letters.match_indices(&letters) {
            let positions = &source.code.positions[at..at + letters.len()];
            let whole = positions[0]..positions[letters.len() - 1] + 1;
            let is_inside = |function: &Range<usize>| function.start <= whole.start && whole.end <= function.end;
            if functions.as_ref().is_none_or(|functions| functions.iter().any(is_inside)) {
                found.insert((number, positions[replaced.start], positions[replaced.end - 1] + 1));
            }
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.len()) {
        (Some((number, start, end)), 0) => Ok((number, start..end)),
        (None, _) => Err(format!("`{}`{} is not found", edit.text, within(edit))),
        (Some((first, ..)), more) => {
            let files: Vec<&str> =
                std::iter::once(first).chain(found.map(|(number, ..)| number)).map(|at| &*sources[at].file).collect();
            Err(format!("`{}`{} is found {} times: {}", edit.text, within(edit), more + 1, files.join(", ")))
        }
    }
}

fn within(edit: &Edit) -> String {
    edit.function.map(|name| format!(" in a function `{name}`")).unwrap_or_default()
}

/// Code without white space, comments, and the comma that a line break puts before a closing bracket.
struct Code {
    letters: String,
    /// Where each byte stands in the text.
    positions: Vec<usize>,
}

impl Code {
    fn of(text: &str) -> Self {
        let mut code = Self { letters: String::new(), positions: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            code.take(start, without_comment(line));
            start += line.len();
        }
        code
    }

    fn take(&mut self, start: usize, text: &str) {
        for (at, letter) in text.char_indices().filter(|(_, letter)| !letter.is_whitespace()) {
            if matches!(letter, ')' | ']' | '}') && self.letters.ends_with(',') {
                self.letters.pop();
                self.positions.pop();
            }
            self.letters.push(letter);
            self.positions.extend(start + at..start + at + letter.len_utf8());
        }
    }
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") { "" } else { line.split(" // ").next().unwrap_or_default() }
}

/// What is looked for, and the part of it that is replaced.
struct Wanted {
    letters: String,
    replaced: Range<usize>,
}

impl Wanted {
    fn of(text: &str) -> Self {
        let (before, rest) = text.split_once('‹').unwrap_or(("", text));
        let (replaced, after) = rest.split_once('›').unwrap_or((rest, ""));
        let mut code = Code::of(before);
        let start = code.letters.len();
        code.take(0, replaced);
        let end = code.letters.len();
        code.take(0, after);
        // A comma at the end of a list may stand before a closing bracket.
        if end < code.letters.len() && code.letters.ends_with(',') {
            code.letters.pop();
        }
        Self { letters: code.letters, replaced: start..end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::{edit, edit_in};

    fn found(texts: &[&str], edit: &Edit) -> Result<String, String> {
        let sources: Vec<Source> =
            texts.iter().enumerate().map(|(at, text)| Source::new(at.to_string(), (*text).to_owned())).collect();
        find(&sources, edit).map(|(number, range)| format!("{number}: {}", &texts[number][range]))
    }

    #[test]
    fn the_file_and_the_layout_do_not_matter() {
        let other = "fn a() {}";
        for text in ["first(x); second(x, y);", "first(x);\nsecond(\n    x, // why\n    // why\n    y,\n);"] {
            assert_eq!(found(&[other, text], &edit("second(‹x›, y);", "z")), Ok("1: x".to_owned()));
        }
        assert_eq!(found(&["match a { b => c, d => e }", other], &edit("d => ‹e›,", "f")), Ok("0: e".to_owned()));
    }

    #[test]
    fn what_is_not_found_once_is_refused_with_the_files() {
        let error = Err("`a` is found 2 times: 0, 1".to_owned());
        assert_eq!(found(&["a", "b + a"], &edit("a", "0")), error);
        assert_eq!(found(&["a + b"], &edit("a - b", "0")), Err("`a - b` is not found".to_owned()));
        assert_eq!(found(&["a + b"], &edit("‹›a", "0")), Err("`‹›a` replaces nothing".to_owned()));
    }

    #[test]
    fn a_function_tells_equal_places_apart() {
        let text = "impl A {\n    fn one(\n        x: X,\n    ) -> Y {\n        b();\n    }\n\n    fn two() {\n        b();\n    }\n}\n";
        assert_eq!(found(&[text], &edit_in("two", "b();", "")), Ok("0: b();".to_owned()));
        let error = "`b();` in a function `three` is not found";
        assert_eq!(found(&[text], &edit_in("three", "b();", "")), Err(error.to_owned()));
        assert!(found(&[text, "fn one() {\n    b();\n}\n"], &edit_in("one", "b();", "")).is_err());
    }

    #[test]
    fn tests_beside_the_code_are_not_searched() {
        let text = "a();\n#[cfg(test)]\nmod tests {\n    a();\n}\n";
        assert_eq!(found(&[text], &edit("a();", "")), Ok("0: a();".to_owned()));
    }
}
