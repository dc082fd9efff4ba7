//! All mutants of a file in one text, each as an alternative that is selected at run time: `if is_on(3) { .. } else { .. }`. So one build
//! serves them all.

use std::fmt::Write as _;
use std::ops::Range;

/// One place of a file that a mutant changes.
pub(crate) struct Change<'a> {
    /// The mutant's number.
    pub(crate) mutant: usize,
    /// The original text's place in the file.
    pub(crate) range: Range<usize>,
    /// The mutant's text in place of it.
    pub(crate) replacement: &'a str,
}

/// `source` with all changes in it. `is_on` is the path of the function that tells whether a mutant is active.
///
/// # Errors
///
/// Changes overlap without one containing the other.
pub(crate) fn with_alternatives(source: &str, mut changes: Vec<Change<'_>>, is_on: &str) -> Result<String, String> {
    // The outer change before the inner.
    changes.sort_by_key(|change| (change.range.start, usize::MAX - change.range.end));
    render(source, 0..source.len(), &changes, is_on)
}

fn render(source: &str, within: Range<usize>, changes: &[Change<'_>], is_on: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut done = within.start;
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let range = first.range.clone();
        let same = rest.iter().take_while(|change| change.range == range).count();
        let covered = rest.iter().take_while(|change| change.range.start < range.end).count();
        let (here, inner) = rest[..covered].split_at(same);
        if let Some(across) = inner.iter().find(|change| change.range.end > range.end) {
            return Err(format!("`{}` and `{}` overlap", &source[range], &source[across.range.clone()]));
        }
        text += &source[done..range.start];
        let original = render(source, range.clone(), inner, is_on)?;
        let is_statement = original.trim_end().ends_with([';', '}']);
        text += if is_statement { "" } else { "(" };
        for Change { mutant, replacement, .. } in here {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, changes: &[(&str, &str)]) -> Result<String, String> {
        let numbered = changes.iter().enumerate();
        let changes = numbered.map(|(mutant, &(text, replacement))| {
            let start = source.find(text).unwrap();
            Change { mutant, range: start..start + text.len(), replacement }
        });
        with_alternatives(source, changes.collect(), "is_on")
    }

    #[test]
    fn an_expression_and_statements() {
        assert_eq!(
            of("let a = b + c;", &[("b + c", "0")]),
            Ok("let a = (if is_on(0) { 0 } else { b + c });".to_owned())
        );
        assert_eq!(of("{ a(); b(); }", &[("a(); b();", "")]), Ok("{ if is_on(0) {  } else { a(); b(); } }".to_owned()));
    }

    #[test]
    fn two_mutants_of_one_place_and_one_inside() {
        let text = of("a(b)", &[("b", "0"), ("a(b)", "1"), ("a(b)", "2")]);
        let expected = "(if is_on(1) { 1 } else if is_on(2) { 2 } else { a((if is_on(0) { 0 } else { b })) })";
        assert_eq!(text, Ok(expected.to_owned()));
    }

    #[test]
    fn an_overlap_fails() {
        assert_eq!(of("a + b + c", &[("a + b", "0"), ("b + c", "0")]), Err("`a + b` and `b + c` overlap".to_owned()));
    }
}
