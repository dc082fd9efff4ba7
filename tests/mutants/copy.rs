//! A copy of the sources with all mutants in it, and its build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::{self, Source};
use crate::schemata::{Change, with_alternatives};
use crate::table::mutants;

/// The environment variable that selects a mutant.
pub(crate) const VARIABLE: &str = "NELI_MUTANT";

/// The program's name in the copy, different from the real one.
const PROGRAM: &str = "neli-run-mutants";

const PROTOCOL: &str = "crates/neli-proto";

/// The root of the sources.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files that differ in the copy, with their text.
///
/// # Errors
///
/// The place of an edit is not found exactly once.
pub(crate) fn changed_files() -> Result<BTreeMap<String, String>, String> {
    let sources = sources().map_err(|error| error.to_string())?;
    let mut changes: BTreeMap<usize, Vec<Change<'_>>> = BTreeMap::new();
    let mut lost = Vec::new();
    for (number, mutant) in mutants().enumerate() {
        for edit in mutant.edits {
            match place::find(&sources, edit) {
                Ok((source, range)) => {
                    let change = Change { mutant: number, range, replacement: edit.replacement };
                    changes.entry(source).or_default().push(change);
                }
                Err(error) => lost.push(format!("{}: {error}", mutant.name)),
            }
        }
    }
    if !lost.is_empty() {
        return Err(lost.join("\n"));
    }
    let mut files = BTreeMap::new();
    for (source, changes) in changes {
        let Source { file, text, .. } = &sources[source];
        let inside = file.starts_with(&format!("{PROTOCOL}/"));
        let is_on = if inside { "crate::mutant::is_on" } else { "neli_proto::mutant::is_on" };
        let text = with_alternatives(text, changes, is_on).map_err(|error| format!("{file}: {error}"))?;
        files.insert(file.clone(), text);
    }
    files.insert(format!("{PROTOCOL}/src/mutant.rs"), switch());
    for (file, text, replacement) in [
        (format!("{PROTOCOL}/src/lib.rs"), "extern crate alloc;\n", "extern crate alloc;\npub mod mutant;\n"),
        // With the same name, the copy's program would overwrite the real one.
        (
            "Cargo.toml".to_owned(),
            "\n[features]\n",
            "autobins = false\n\n[[bin]]\nname = \"neli-run-mutants\"\npath = \"src/main.rs\"\n\n[features]\n",
        ),
        (
            "Cargo.toml".to_owned(),
            "[workspace.lints.rust]\n",
            "[workspace.lints.rust]\nunused = { level = \"allow\", priority = -1 }\n",
        ),
        // One build with the profile `dev` builds the program and the tests. Cargo identifies packages by their path in the workspace and
        // by their profile. With the same profile they would overwrite the real ones. Without lines for a debugger they are built faster.
        (
            "Cargo.toml".to_owned(),
            "[profile.test.package.neli-proto]",
            "[profile.dev.package.neli-election]
debug = false
[profile.dev.package.neli-kafka]
debug = false
[profile.dev.package.neli-run]
debug = false
[profile.dev.package.neli-proto]
debug = false",
        ),
    ] {
        let source = files.get(&file).cloned().map_or_else(|| fs::read_to_string(root().join(&file)), Ok);
        let source = source.map_err(|error| format!("{file}: {error}"))?;
        if source.matches(text).count() != 1 {
            return Err(format!("{file}: `{text}` is not found once"));
        }
        files.insert(file, source.replace(text, replacement));
    }
    Ok(files)
}

/// The sources of the program and of its crates, without files of tests.
fn sources() -> std::io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files_below(root(), &|name| !matches!(name, "src" | "crates"))? {
        let names: Vec<_> = file.iter().collect();
        let is_test = names.iter().any(|name| *name == "tests" || *name == "tests.rs");
        if file.extension().is_some_and(|extension| extension == "rs")
            && names.iter().any(|name| *name == "src")
            && !is_test
        {
            let text = fs::read_to_string(root().join(&file))?;
            sources.push(Source::new(file.display().to_string(), text));
        }
    }
    Ok(sources)
}

/// The module that shows which mutant is active.
fn switch() -> String {
    let names: Vec<&str> = mutants().map(|mutant| mutant.name).collect();
    format!(
        "//! Which mutant is on.

extern crate std;

const NAMES: &[&str] = &{names:?};

/// Whether the mutant with this number is active.
#[must_use]
pub fn is_on(mutant: usize) -> bool {{
    static ON: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let on = ON.get_or_init(|| {{
        let name = std::env::var({VARIABLE:?}).ok()?;
        let number = NAMES.iter().position(|known| *known == name);
        assert!(number.is_some(), \"{{name}} is no mutant\");
        number
    }});
    *on == Some(mutant)
}}
"
    )
}

/// The programs that were built.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) model: PathBuf,
    pub(crate) law: PathBuf,
    pub(crate) library: PathBuf,
    pub(crate) node: PathBuf,
    pub(crate) scenarios: PathBuf,
}

/// Copies and builds. Only files that have changed since the last time are written and compiled.
pub(crate) fn build() -> Result<Built, String> {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    write_copy(&copy, &changed_files()?).map_err(|error| format!("{}: {error}", copy.display()))?;
    let target = copy.ancestors().nth(2).ok_or("the target directory is two above")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--message-format=json-render-diagnostics"]);
    cargo.args([
        "--bin",
        PROGRAM,
        "--test",
        "journal_model",
        "--test",
        "law",
        "--test",
        "elections",
        "--test",
        "node",
        "--test",
        "scenarios",
    ]);
    // The dependencies are those of the real build, and are fetched already.
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the copy does not compile".to_owned());
    }
    let executables: BTreeMap<String, PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| {
            let executable = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(executable)))
        })
        .collect();
    let executable = |name: &str| executables.get(name).cloned().ok_or_else(|| format!("cargo built no {name}"));
    let (program, model) = (executable(PROGRAM)?, executable("journal_model")?);
    let (law, library) = (executable("law")?, executable("elections")?);
    let (node, scenarios) = (executable("node")?, executable("scenarios")?);
    Ok(Built { program, model, law, library, node, scenarios })
}

/// Updates the copy. Unchanged files keep their modification time, by which cargo recognizes them.
fn write_copy(copy: &Path, changed: &BTreeMap<String, String>) -> std::io::Result<()> {
    let mut texts = BTreeMap::new();
    // Build directories are left out, with any name.
    let is_left_out = |name: &str| name.starts_with('.') || root().join(name).join("CACHEDIR.TAG").exists();
    for file in files_below(root(), &is_left_out)? {
        let text = fs::read(root().join(&file))?;
        texts.insert(file, text);
    }
    texts.extend(changed.iter().map(|(file, text)| (PathBuf::from(file), text.clone().into_bytes())));
    for (file, text) in &texts {
        let to = copy.join(file);
        if fs::read(&to).ok().as_ref() != Some(text) {
            fs::create_dir_all(to.parent().unwrap_or(copy))?;
            fs::write(to, text)?;
        }
    }
    for file in files_below(copy, &|_| false)? {
        if !texts.contains_key(&file) {
            fs::remove_file(copy.join(file))?;
        }
    }
    Ok(())
}

/// All files below a directory, relative to it, except entries of the directory itself for which `is_left_out` is true.
fn files_below(directory: &Path, is_left_out: &dyn Fn(&str) -> bool) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut entries = vec![PathBuf::new()];
    while let Some(entry) = entries.pop() {
        let path = directory.join(&entry);
        if path.is_file() {
            files.push(entry);
            continue;
        }
        if !path.is_dir() {
            continue;
        }
        for inner in fs::read_dir(path)? {
            let name = inner?.file_name();
            let is_at_top = entry.as_os_str().is_empty();
            if !(is_at_top && is_left_out(&name.to_string_lossy())) {
                entries.push(entry.join(name));
            }
        }
    }
    Ok(files)
}
