//! Rules about layers that the compiler does not check, read from the source: modules depend only on those below them, and code with
//! effects does not decide. That `neli-proto` has no effects follows from `no_std` and its dependencies (tests/dependencies.rs).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[path = "boundaries/layers.rs"]
mod layers;

const CRATES: [&str; 4] = ["src", "crates/neli-election/src", "crates/neli-kafka/src", "crates/neli-proto/src"];

/// Folders whose modules may use each other in a circle.
const CIRCLES: &[(&str, &str)] = &[("src/report/log", "an event is cut to the length of a line, which is made of it")];

/// The modules of `neli-proto` with the words that both sides use. The others decide.
const SHARED: [&str; 7] = ["fact", "guard", "job", "kafka", "record", "time", "topic"];

/// The modules that may contain unsafe code: raw system calls, and librdkafka's C interface.
const UNSAFE: [&str; 3] =
    ["crates/neli-kafka/src/librdkafka", "crates/neli-kafka/src/partition_consumer", "src/process/system"];

/// The only file that reads the clock.
const CLOCK: &str = "crates/neli-kafka/src/clock.rs";

/// Modules with effects, which perform the decisions of others. (`supervise`, the subcommands, the library's threads and what is in
/// [`HOSTS`] pass events to the deciding objects and perform their actions, so they may use both.)
const EFFECTS: [&str; 3] = ["crates/neli-kafka/src", "src/guard", "src/process"];

/// The modules among those that host the nodes, or read the clock for them.
const HOSTS: [&str; 3] =
    ["crates/neli-kafka/src/clock", "crates/neli-kafka/src/nodes", "crates/neli-kafka/src/session"];

/// Where the main loops get events from outside.
const SOURCES: [&str; 5] = ["read_signal()", "session.poll()", ".receive()", "reports.try_recv()", "events.try_recv()"];

/// The main loops, with what they call.
const MAIN_LOOPS: [&str; 4] =
    ["crates/neli-election/src/driver", "crates/neli-kafka/src/session", "src/guard/guard_loop", "src/supervise"];

/// The crates that parse and describe the command line, and the modules that may use them. All other modules must not depend on how the
/// program was configured.
const COMMAND_LINE: (&[&str], &[&str]) = (&["clap", "clap_complete", "clap_mangen"], &["cli", "command"]);

/// Records, answers and signals may come without end. A turn of a main loop takes a limited number of them and comes back.
#[test]
fn main_loops_take_a_limited_number_of_events_in_a_turn() {
    let indent = |code: &str| code.len() - code.trim_start().len();
    let loops_of = MAIN_LOOPS.iter().flat_map(|path| {
        let file = root().join(format!("{path}.rs"));
        let below = if root().join(path).is_dir() { sources(path) } else { Vec::new() };
        let shipped = std::iter::once(file).chain(below).filter(|file| !file.ends_with("tests.rs"));
        shipped.map(|file| code_of(&file)).collect::<Vec<_>>()
    });
    for lines in loops_of {
        let shipped: Vec<Line> = lines.into_iter().take_while(|line| !line.code.contains("#[cfg(test)]")).collect();
        let begins = |line: &Line| line.code.trim_start().starts_with("while ") || line.code.trim() == "loop {";
        for (at, head) in shipped.iter().enumerate().filter(|(_, line)| begins(line)) {
            let body = shipped[at + 1..]
                .iter()
                .take_while(|line| line.code.trim().is_empty() || indent(&line.code) > indent(&head.code));
            let mut block = std::iter::once(head).chain(body.filter(|_| !head.code.trim_end().ends_with('}')));
            let drain = block.find(|line| SOURCES.iter().any(|source| line.code.contains(source)));
            assert!(drain.is_none(), "{}: this goes on for as long as something comes", drain.unwrap());
        }
    }
}

/// `extern crate std` would defeat `no_std`.
#[test]
fn the_protocol_does_not_link_std() {
    let sources = sources("crates/neli-proto/src");
    assert!(sources.iter().any(|file| file.ends_with("lib.rs")));
    for file in sources {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("extern crate std"), "{} links std", file.display());
    }
}

#[test]
fn modules_with_effects_never_decide() {
    let hosts = |line: &Line| HOSTS.iter().any(|host| line.path.starts_with(host));
    for line in EFFECTS.into_iter().flat_map(lines_of).filter(|line| !hosts(line)) {
        for used in line.code.split("neli_proto::").skip(1) {
            let module = used.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap();
            assert!(SHARED.contains(&module), "{line}: it is told what to do, and uses only {SHARED:?}");
        }
    }
}

/// An order of layers exists: of two modules only one uses the other, directly or through others.
#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut circles = String::new();
    for folder in CRATES {
        for (path, arrows) in layers::arrows(&modules(folder)) {
            let place = Path::new(folder).join(path.join("/"));
            if !CIRCLES.iter().any(|(allowed, _)| place == Path::new(allowed)) {
                circles
                    .extend(layers::circles(&arrows).values().map(|arrow| format!("{}: {arrow}\n", place.display())));
            }
        }
    }
    assert!(circles.is_empty(), "parts of a circle:\n{circles}");
}

/// The modules of a crate, each with its code without comments and tests.
fn modules(folder: &str) -> BTreeMap<layers::Path, String> {
    let mut modules = BTreeMap::new();
    for file in sources(folder) {
        let path = relative(&file);
        let path = path.trim_start_matches(folder).trim_end_matches(".rs").split('/').filter(|name| !name.is_empty());
        let path: layers::Path = path.filter(|name| !matches!(*name, "lib" | "main")).map(str::to_owned).collect();
        if !path.iter().any(|name| name == "tests") {
            let lines: Vec<String> = code_of(&file).into_iter().map(|line| line.code).collect();
            let code = lines.join("\n");
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
            modules.entry(path).or_insert_with(String::new).push_str(code);
        }
    }
    modules
}

#[test]
fn only_the_command_line_depends_on_its_parser() {
    let (crates, modules) = COMMAND_LINE;
    for file in sources("src") {
        let path = relative(&file);
        if modules.contains(&module_of(&path, "src")) {
            continue;
        }
        for line in code_of(&file) {
            let used = crates.iter().find(|name| line.code.contains(&format!("{name}::")));
            assert!(used.is_none(), "{line}: only {modules:?} may use {crates:?}");
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_named_modules_and_one_file_reads_the_clock() {
    for line in CRATES.into_iter().flat_map(lines_of) {
        let unsafe_code =
            line.code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == "unsafe");
        let is_within = |module: &&str| line.path.strip_prefix(module).is_some_and(|rest| rest.starts_with(['.', '/']));
        let may_be_unsafe = UNSAFE.iter().any(is_within);
        assert!(!unsafe_code || may_be_unsafe, "{line}: unsafe code may only be in {UNSAFE:?}");
        let reads_clock = line.code.contains("clock_gettime");
        assert!(!reads_clock || line.path == CLOCK, "{line}: only {CLOCK} may read the clock");
    }
}

/// docs/architecture.md has a list of what each object of `neli-proto` decides.
#[test]
fn the_page_lists_every_deciding_module_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, list) = page.split_once("\nWhat the objects of `neli-proto` decide:\n").unwrap();
    let items = list.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("- "));
    let names = items.filter_map(|item| item.split_once(": ").map(|(names, _)| names));
    let listed: Vec<&str> = names.flat_map(|names| names.split(", ")).map(|name| name.trim_matches('`')).collect();
    let folder = "crates/neli-proto/src";
    for file in sources(folder).iter().filter(|file| file.parent() == Some(&root().join(folder))) {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let decides = code_of(file).iter().any(|line| line.code.contains("pub fn poll_action("));
        assert!(!decides || listed.contains(&name), "docs/architecture.md does not say what {name} decides");
    }
    for name in listed {
        assert!(root().join(format!("{folder}/{name}.rs")).exists(), "there is no module {name}");
    }
}

/// Every file and folder that docs/architecture.md names exists.
#[test]
fn the_page_names_files_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let named: Vec<&str> =
        page.split('`').skip(1).step_by(2).filter(|code| code.contains('/') && !code.contains(' ')).collect();
    assert!(named.len() >= 15, "{named:?}");
    for name in named.into_iter().filter(|name| !name.starts_with('/')) {
        assert!(root().join(name).exists(), "docs/architecture.md names {name}, which does not exist");
    }
}

#[test]
fn the_checks_see_the_code_without_comments() {
    let lines = split("a.rs", "//! std::fs\nuse std::fs; // unsafe\nlet url = \"a://b\";\n/// tokio\n");
    let code: Vec<&str> = lines.iter().map(|line| line.code.as_str()).collect();
    assert_eq!(code, ["", "use std::fs; ", "let url = \"a://b\";", ""]);
    assert!(EFFECTS.iter().all(|folder| !sources(folder).is_empty()));
    assert!(code_of(&root().join("src/supervise.rs")).iter().any(|line| line.code.contains("neli_proto::node")));
}

/// A line of a source file without its comment.
struct Line {
    path: String,
    number: usize,
    code: String,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.number, self.code.trim())
    }
}

fn lines_of(folder: &str) -> Vec<Line> {
    sources(folder).iter().flat_map(|file| code_of(file)).collect()
}

fn code_of(file: &Path) -> Vec<Line> {
    split(&relative(file), &std::fs::read_to_string(file).unwrap())
}

fn split(path: &str, text: &str) -> Vec<Line> {
    let code = |line: &str| {
        if line.trim_start().starts_with("//") {
            return String::new();
        }
        line.split_once(" //").map_or(line, |(code, _)| &line[..=code.len()]).to_owned()
    };
    let lines = text.lines().enumerate();
    lines.map(|(at, line)| Line { path: path.to_owned(), number: at + 1, code: code(line) }).collect()
}

fn sources(folder: &str) -> Vec<PathBuf> {
    below(&root().join(folder))
}

/// The source files in a folder and its subfolders.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    sources
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().display().to_string()
}

/// The module of a crate to which a source file in this folder belongs.
fn module_of<'a>(path: &'a str, folder: &str) -> &'a str {
    path.trim_start_matches(folder).trim_start_matches('/').trim_end_matches(".rs").split('/').next().unwrap()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
