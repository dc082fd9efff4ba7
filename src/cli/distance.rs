//! The edit distance of two words, to suggest a known word for an unknown one.

/// The number of letters that must be inserted, deleted or changed to turn one word into the other.
pub(super) fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut next = vec![above + 1];
        for (pair, candidate) in row.windows(2).zip(&other) {
            let left = next.last().copied().unwrap_or_default();
            let changed = pair.first().copied().unwrap_or_default() + usize::from(letter != *candidate);
            let above = pair.last().copied().unwrap_or_default();
            next.push(changed.min(left + 1).min(above + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_that_differs_counts() {
        for (one, other, expected) in
            [("", "", 0), ("watch", "wacth", 2), ("group", "gruop", 2), ("a", "", 1), ("lease", "leas", 1)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
