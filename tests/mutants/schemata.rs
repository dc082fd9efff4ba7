//! All mutants of a file in one text, each as an alternative that is selected at run time: `if is_on(3) { .. } else { .. }`. So one build
//! serves them all.

use std::fmt::Write as _;
use std::ops::Range;

/// One place of a file that a mutant changes.
pub(crate) struct Change<'a> {
    /// The mutant's number.
    pub(crate) mutant: usize,
    /// The original text, which must occur once: an expression, or whole statements. If it contains `‹` and `›`, only the part between
    /// them is replaced, and the rest identifies the place. Line breaks and indentation are ignored.
    pub(crate) text: &'a str,
    /// The mutant's text in place of it.
    pub(crate) replacement: &'a str,
}

/// `source` with all changes in it. `is_on` is the path of the function that tells whether a mutant is active.
///
/// # Errors
///
/// A text is not found exactly once, or changes overlap without one containing the other.
pub(crate) fn with_alternatives(source: &str, changes: &[Change<'_>], is_on: &str) -> Result<String, String> {
    let mut places = Vec::new();
    for change in changes {
        places.push(Place { range: find(source, change.text)?, change });
    }
    // The outer change before the inner.
    places.sort_by_key(|place| (place.range.start, usize::MAX - place.range.end));
    render(source, 0..source.len(), &places, is_on)
}

struct Place<'a> {
    range: Range<usize>,
    change: &'a Change<'a>,
}

fn render(source: &str, within: Range<usize>, places: &[Place<'_>], is_on: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut done = within.start;
    let mut rest = places;
    while let Some(first) = rest.first() {
        let range = first.range.clone();
        let same = rest.iter().take_while(|place| place.range == range).count();
        let covered = rest.iter().take_while(|place| place.range.start < range.end).count();
        let (here, inner) = rest[..covered].split_at(same);
        if let Some(across) = inner.iter().find(|place| place.range.end > range.end) {
            return Err(format!("`{}` and `{}` overlap", first.change.text, across.change.text));
        }
        text += &source[done..range.start];
        let original = render(source, range.clone(), inner, is_on)?;
        let is_statement = original.trim_end().ends_with([';', '}']);
        text += if is_statement { "" } else { "(" };
        for place in here {
            let Change { mutant, replacement, .. } = place.change;
            let _ = write!(text, "if {is_on}({mutant}) {{ {replacement} }} else ");
        }
        let _ = write!(text, "{{ {original} }}");
        text += if is_statement { "" } else { ")" };
        done = range.end;
        rest = &rest[covered..];
    }
    text += &source[done..within.end];
    Ok(text)
}

/// The range in `source` of the part of `text` that is replaced.
fn find(source: &str, text: &str) -> Result<Range<usize>, String> {
    let (before, rest) = text.split_once('‹').unwrap_or(("", text));
    let (replaced, after) = rest.split_once('›').unwrap_or((rest, ""));
    let parts = [before, replaced, after].map(|part| part.split_whitespace().collect::<String>());
    let wanted = parts.concat();
    let (squeezed, positions): (String, Vec<usize>) = squeeze(source);
    let found: Vec<usize> = squeezed.match_indices(&wanted).map(|(at, _)| at).collect();
    let &[at] = found.as_slice() else {
        return Err(format!("`{text}` is found {} times", found.len()));
    };
    let [before, replaced, _] = parts;
    if replaced.is_empty() {
        return Err(format!("`{text}` replaces nothing"));
    }
    let first = at + before.len();
    let last = first + replaced.len() - 1;
    Ok(positions[first]..positions[last] + 1)
}

/// The text without white space, and the original position of each of its bytes.
fn squeeze(source: &str) -> (String, Vec<usize>) {
    let mut positions = Vec::new();
    let mut squeezed = String::new();
    for (at, letter) in source.char_indices().filter(|(_, letter)| !letter.is_whitespace()) {
        squeezed.push(letter);
        positions.extend(at..at + letter.len_utf8());
    }
    (squeezed, positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, changes: &[(&str, &str)]) -> Result<String, String> {
        let numbered = changes.iter().enumerate();
        let changes: Vec<Change<'_>> =
            numbered.map(|(mutant, &(text, replacement))| Change { mutant, text, replacement }).collect();
        with_alternatives(source, &changes, "is_on")
    }

    #[test]
    fn an_expression_and_statements() {
        assert_eq!(
            of("let a = b + c;", &[("b + c", "0")]),
            Ok("let a = (if is_on(0) { 0 } else { b + c });".to_owned())
        );
        assert_eq!(
            of("{ a(); b(); }", &[("a();\n b();", "")]),
            Ok("{ if is_on(0) {  } else { a(); b(); } }".to_owned())
        );
    }

    #[test]
    fn one_of_several_places() {
        let text = of("first(x); second(x);", &[("second(‹x›)", "y")]);
        assert_eq!(text, Ok("first(x); second((if is_on(0) { y } else { x }));".to_owned()));
    }

    #[test]
    fn two_mutants_of_one_place_and_one_inside() {
        let text = of("a(b)", &[("‹b›)", "0"), ("a(b)", "1"), ("a(b)", "2")]);
        let expected = "(if is_on(1) { 1 } else if is_on(2) { 2 } else { a((if is_on(0) { 0 } else { b })) })";
        assert_eq!(text, Ok(expected.to_owned()));
    }

    #[test]
    fn what_is_not_found_once_fails() {
        assert_eq!(of("a + b", &[("a - b", "0")]), Err("`a - b` is found 0 times".to_owned()));
        assert_eq!(of("a + a", &[("a", "0")]), Err("`a` is found 2 times".to_owned()));
        assert_eq!(of("a + b", &[("‹›a", "0")]), Err("`‹›a` replaces nothing".to_owned()));
        assert_eq!(of("a + b + c", &[("a + b", "0"), ("b + c", "0")]), Err("`a + b` and `b + c` overlap".to_owned()));
    }
}
