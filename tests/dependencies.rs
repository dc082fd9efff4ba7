//! Licenses, sources and duplicate versions of dependencies, as `cargo deny check licenses sources bans` would check them.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licenses that allow use in a program under MIT or Apache-2.0, and require only their notices.
const LICENSES: [&str; 7] = ["0BSD", "Apache-2.0", "BSD-3-Clause", "MIT", "Unicode-3.0", "Unlicense", "Zlib"];

/// Crates of which the program has two versions. `syn` is used at build time only, and until all derive macros use version 3.
const TWICE: [&str; 1] = ["syn"];

/// Every package of the program, its tests and its benches on Linux.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let answer = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs this test");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id))).cloned().collect()
}

/// Whether a license expression can be met: one of the alternatives of `OR` (or a slash), and all parts of `AND`.
fn is_met(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], " ").replace('/', " OR ").replace(" WITH LLVM-exception", "");
    expression.split(" AND ").all(|part| part.split(" OR ").any(|license| LICENSES.contains(&license.trim())))
}

#[test]
fn licenses() {
    for package in packages() {
        let license = package["license"].as_str().unwrap_or("none at all");
        assert!(is_met(license), "{} is under {license}", package["name"]);
    }
    assert!(!is_met("GPL-3.0"));
    assert!(!is_met("MIT AND GPL-3.0"));
}

#[test]
fn sources() {
    for package in packages() {
        let source = package["source"].as_str();
        let name = &package["name"];
        let ours = source.is_none()
            && ["harness", "neli-election", "neli-kafka", "neli-proto", "neli-run"].iter().any(|ours| name == ours);
        assert!(ours || source.is_some_and(|source| source.starts_with("registry+")), "{name} comes from {source:?}");
    }
}

/// A dependency could use a clock, do I/O or start a thread even though `neli-proto` itself is `no_std`.
#[test]
fn the_protocol_depends_only_on_serde() {
    let packages = packages();
    let protocol = packages.iter().find(|package| package["name"] == "neli-proto").expect("a dependency");
    let dependencies = protocol["dependencies"].as_array().expect("dependencies").iter();
    let shipped = dependencies.filter(|dependency| dependency["kind"].is_null());
    let shipped: BTreeSet<(&str, bool)> = shipped
        .map(|dependency| (dependency["name"].as_str(), dependency["uses_default_features"].as_bool()))
        .map(|(name, with_std)| (name.expect("a name"), with_std.expect("a yes or no")))
        .collect();
    assert_eq!(shipped, BTreeSet::from([("serde", false), ("serde_json", false)]));
}

#[test]
fn one_version_of_each() {
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for package in packages() {
        *versions.entry(package["name"].as_str().expect("a name").to_owned()).or_default() += 1;
    }
    let twice: Vec<&str> = versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(twice, TWICE);
}

/// The fuzz targets are a workspace of their own (they need a nightly compiler), so no build here notices that its lock file is out of date.
/// A package of this repository has there the normal dependencies of its manifest, as far as the features of the targets need them.
#[test]
fn the_lock_file_of_the_fuzz_targets_fits_the_manifests() {
    let lock = include_str!("../fuzz/Cargo.lock");
    let entries: BTreeMap<&str, &str> =
        lock.split("[[package]]\n").skip(1).filter_map(|entry| Some((quoted(entry)?, entry))).collect();
    let packages = packages();
    let ours = packages.iter().filter(|package| package["source"].is_null());
    let mut compared = 0;
    for package in ours {
        let name = package["name"].as_str().expect("a name");
        let Some(entry) = entries.get(name) else { continue };
        let (_, locked) = entry.split_once("dependencies = [\n").expect("dependencies");
        // A name is followed by a version where there are two.
        let locked = locked.lines().take_while(|line| *line != "]").filter_map(quoted);
        let locked: BTreeSet<&str> = locked.filter_map(|name| name.split(' ').next()).collect();
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        let needed = dependencies.filter(|dependency| dependency["kind"].is_null() && dependency["optional"] == false);
        let needed: BTreeSet<&str> = needed.filter_map(|dependency| dependency["name"].as_str()).collect();
        assert_eq!(locked, needed, "{name}: cargo update --workspace --manifest-path fuzz/Cargo.toml");
        compared += 1;
    }
    let locked_here = entries.values().filter(|entry| !entry.contains("\nsource = ")).count();
    // The targets themselves are in the lock file, and not in this workspace.
    assert_eq!(compared, locked_here - 1, "each package of this repository");
}

/// The first text in quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}
