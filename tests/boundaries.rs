//! What the compiler does not show of the layers, read from the source: dependencies between modules point down only, and what
//! has effects does not decide. That `neli-proto` has no effects is shown by `no_std` and by its dependencies
//! (tests/dependencies.rs).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// The modules of `neli-proto` that decide. The others are types that both sides use.
const DECIDING: &[&str] = &[
    "neli_proto::candidate",
    "neli_proto::failed_runs",
    "neli_proto::last_hello",
    "neli_proto::health",
    "neli_proto::hooks",
    "neli_proto::introduction",
    "neli_proto::journal",
    "neli_proto::listener",
    "neli_proto::many_roles",
    "neli_proto::mapping",
    "neli_proto::node",
    "neli_proto::observer",
    "neli_proto::once",
    "neli_proto::precedence",
    "neli_proto::restart",
    "neli_proto::schedule",
    "neli_proto::spread",
    "neli_proto::supervisor",
];

/// The files that may hold unsafe code: raw system calls, and librdkafka's C interface.
const UNSAFE: &[&str] = &[
    "crates/neli/src/kafka/librdkafka.rs",
    "crates/neli/src/kafka/librdkafka/describe.rs",
    "crates/neli/src/kafka/librdkafka/main_queue.rs",
    "crates/neli/src/kafka/partition_consumer.rs",
    "src/process/system.rs",
    "src/process/system/libraries.rs",
    "src/process/system/pidfd.rs",
];

/// The file that reads the clock.
const CLOCK: &str = "crates/neli/src/clock.rs";

/// What has effects: it is told what to do. (`supervise`, the subcommands and the library's threads pass events to what decides, and perform
/// its actions.)
const EFFECTS: [&str; 3] = ["crates/neli/src/kafka", "src/guard", "src/process"];

/// Modules of a crate, each with those that it may use.
type Layers = [(&'static str, &'static [&'static str])];

/// Each module of `neli-run`, and those that it may use.
const LAYERS: [(&str, &[&str]); 13] = [
    ("calendar", &[]),
    ("text", &[]),
    ("features", &[]),
    ("process", &["text"]),
    ("exit", &["text"]),
    ("config", &["calendar", "exit", "text"]),
    ("release", &["exit", "process", "text"]),
    ("report", &["config", "exit", "text"]),
    ("guard", &["config", "process", "report"]),
    ("http", &["config", "report"]),
    ("supervise", &["calendar", "config", "exit", "guard", "http", "process", "release", "report", "text"]),
    ("cli", &["calendar", "config", "exit", "features", "process", "text"]),
    ("command", &["cli", "config", "exit", "http", "process", "report", "text"]),
];

/// The same of `neli-proto`.
const LAYERS_OF_PROTOCOL: [(&str, &[&str]); 34] = [
    ("command", &[]),
    ("random", &[]),
    ("record", &[]),
    ("terminal", &[]),
    ("time", &[]),
    ("topic", &[]),
    ("window", &[]),
    ("job", &[]),
    ("mapping", &[]),
    ("fact", &["record", "window"]),
    ("timings", &["record"]),
    ("broker_death", &["timings"]),
    ("last_hello", &["time"]),
    ("reminder", &["time"]),
    ("schedule", &["window"]),
    ("restart", &["job", "time"]),
    ("failed_runs", &["job", "time"]),
    ("health", &["command", "time"]),
    ("hooks", &["command", "record", "time"]),
    ("guard", &["command", "time", "window"]),
    ("process_hello", &["mapping", "record"]),
    ("journal", &["record", "time", "timings"]),
    ("listener", &["journal", "record", "time", "timings"]),
    ("clock_rate", &["listener"]),
    ("status", &["listener", "record", "time"]),
    ("precedence", &["listener", "record", "time", "timings"]),
    ("spread", &["precedence", "record", "time", "timings"]),
    ("introduction", &["mapping", "precedence", "process_hello", "record", "time"]),
    ("observer", &["failed_runs", "journal", "listener", "precedence", "process_hello", "record", "time"]),
    (
        "supervisor",
        &[
            "command",
            "failed_runs",
            "guard",
            "health",
            "job",
            "record",
            "restart",
            "status",
            "terminal",
            "time",
            "window",
        ],
    ),
    (
        "candidate",
        &[
            "guard",
            "journal",
            "listener",
            "precedence",
            "random",
            "record",
            "spread",
            "status",
            "supervisor",
            "time",
            "timings",
            "topic",
        ],
    ),
    ("once", &["candidate", "fact", "record", "reminder", "schedule", "supervisor", "time", "window"]),
    (
        "node",
        &[
            "candidate",
            "command",
            "fact",
            "guard",
            "hooks",
            "listener",
            "once",
            "random",
            "record",
            "spread",
            "status",
            "supervisor",
            "time",
            "window",
        ],
    ),
    (
        "many_roles",
        &[
            "candidate",
            "introduction",
            "mapping",
            "node",
            "precedence",
            "process_hello",
            "record",
            "spread",
            "time",
            "timings",
        ],
    ),
];

/// The folders of the crates whose modules stand in layers.
const LAYERED: [(&str, &Layers); 2] = [("src", &LAYERS), ("crates/neli-proto/src", &LAYERS_OF_PROTOCOL)];

/// The crates that read the command line and describe it, and the modules that may use them: nothing depends on how the program
/// was told what to do.
const COMMAND_LINE: (&[&str], &[&str]) = (&["clap", "clap_complete", "clap_mangen"], &["cli", "command"]);

/// `extern crate std` would make `no_std` an empty word.
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
    for line in EFFECTS.into_iter().flat_map(lines_of) {
        for deciding in DECIDING {
            assert!(!line.code.contains(deciding), "{line}: it is told what to do; no {deciding}");
        }
    }
}

#[test]
fn modules_use_only_what_stands_below_them() {
    let files = LAYERED
        .into_iter()
        .flat_map(|(folder, layers)| sources(folder).into_iter().map(move |file| (folder, layers, file)));
    for (folder, layers, file) in files.filter(|(.., file)| !file.ends_with("tests.rs")) {
        let path = relative(&file);
        let module = module_of(&path, folder);
        if matches!(module, "lib" | "main") {
            continue;
        }
        let (_, below) = layers.iter().find(|(name, _)| *name == module).expect("every module has its layer");
        let tests = |line: &Line| line.code.contains("#[cfg(test)]");
        for line in code_of(&file).into_iter().take_while(|line| !tests(line)) {
            assert!(!line.code.contains("crate::{"), "{line}: one line for each module");
            let used = line.code.split("crate::").skip(1).map(|rest| {
                rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
            });
            for used in used {
                assert!(used == module || below.contains(&used), "{line}: {module} may use {below:?} alone");
            }
        }
    }
}

#[test]
fn the_command_line_alone_depends_on_its_parser() {
    let (crates, modules) = COMMAND_LINE;
    for file in sources("src") {
        let path = relative(&file);
        if modules.contains(&module_of(&path, "src")) {
            continue;
        }
        for line in code_of(&file) {
            let used = crates.iter().find(|name| line.code.contains(&format!("{name}::")));
            assert!(used.is_none(), "{line}: {modules:?} alone may use {crates:?}");
        }
    }
}

/// Each stands above what it uses, so there is no circle.
#[test]
fn the_layers_have_no_circle() {
    for (_, layers) in LAYERED {
        for (at, (module, below)) in layers.iter().enumerate() {
            let stands_below = |used: &&str| layers.iter().take(at).any(|(name, _)| name == used);
            assert!(below.iter().all(stands_below), "{module}: {below:?}");
        }
    }
}

#[test]
fn unsafe_code_stands_in_the_named_files_and_one_reads_the_clock() {
    for line in ["crates/neli/src", "src"].into_iter().flat_map(lines_of) {
        let unsafe_code =
            line.code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == "unsafe");
        let may_be_unsafe = UNSAFE.contains(&line.path.as_str());
        assert!(!unsafe_code || may_be_unsafe, "{line}: unsafe code stands in {UNSAFE:?} alone");
        let reads_clock = line.code.contains("clock_gettime");
        assert!(!reads_clock || line.path == CLOCK, "{line}: {CLOCK} reads the clock");
    }
}

#[test]
fn the_walls_would_notice() {
    let lines = split("a.rs", "//! std::fs\nuse std::fs; // unsafe\nlet url = \"a://b\";\n/// tokio\n");
    let code: Vec<&str> = lines.iter().map(|line| line.code.as_str()).collect();
    assert_eq!(code, ["", "use std::fs; ", "let url = \"a://b\";", ""]);
    assert!(EFFECTS.iter().all(|folder| !sources(folder).is_empty()));
    assert!(code_of(&root().join("src/supervise.rs")).iter().any(|line| line.code.contains("neli_proto::candidate")));
}

/// A line of a source file, without its comment.
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

/// The source files in a folder and in those below it.
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

/// The module of a crate that a source file in this folder belongs to.
fn module_of<'a>(path: &'a str, folder: &str) -> &'a str {
    path.trim_start_matches(folder).trim_start_matches('/').trim_end_matches(".rs").split('/').next().unwrap()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
