//! Links in the pages lead to existing files and headings.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

#[test]
fn every_link_of_the_docs_has_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root.join(page));
    let mut count = 0;
    for page in of_docs.chain(others).filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link} is not there", page.display());
            if let Some(heading) = heading {
                let is_there = headings(&target).iter().any(|found| found == heading);
                assert!(is_there, "{}: {link}: no such heading", page.display());
            }
            count += 1;
        }
    }
    assert!(count >= 50, "{count} links");
}

/// The targets of the links that are not addresses of the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// The anchors of the headings: lower case, blanks as dashes, no other punctuation.
fn headings(page: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let titles = text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    titles
        .map(|title| {
            let kept = title.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
            kept.flat_map(char::to_lowercase).map(|sign| if sign == ' ' { '-' } else { sign }).collect()
        })
        .collect()
}
