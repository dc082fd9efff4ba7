//! Files that are built once and kept in `target/harness`: Kafka's jars (fetched by Maven), a formatted log directory, the witness.
//!
//! Test binaries may run in parallel: a lock lets one of them build while the others wait. Each file is built under another name and then
//! renamed, so that an interrupted build is never used.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use crate::node::free_port;
use crate::process::Process;
use crate::{accounts, wait};

/// The directory of this crate's POM and C sources.
const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// Programs that Kafka needs, with Debian's package names: Java always, Maven only until the jars are fetched.
const TOOLS: [(&str, &str); 2] = [("java", "default-jdk-headless"), ("mvn", "maven")];

/// The version of Kafka that the tests use, unless [`VERSION`] names another one.
const NEWEST: &str = "4.4.0";

/// The variable that names a directory for the files of brokers, one in memory for example.
const BROKERS_DIRECTORY: &str = "BROKERS_DIRECTORY";

/// The variable that names another version, for tests/versions.rs.
pub const VERSION: &str = "KAFKA_VERSION";

/// The version of Kafka.
fn version() -> &'static str {
    static READ: OnceLock<String> = OnceLock::new();
    READ.get_or_init(|| env::var(VERSION).unwrap_or_else(|_| NEWEST.to_owned()))
}

/// Whether the version is at least this one.
pub(crate) fn is_since(major: u32, minor: u32) -> bool {
    let mut numbers = version().split('.').map(|number| number.parse().expect("a version as 4.1.0"));
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

/// Whether it needs no `ZooKeeper`: since 3.3 in production.
pub(crate) fn has_own_controller() -> bool {
    is_since(3, 3)
}

/// The class that starts a broker with its `ZooKeeper`, as source.
pub(crate) fn with_zookeeper() -> PathBuf {
    Path::new(SOURCES).join("WithZooKeeper.java")
}

/// Kafka on this machine, ready to be started.
#[derive(Debug)]
pub struct Distribution {
    /// Java's class path.
    pub class_path: String,
    /// A log directory that `StorageTool format` has prepared; each broker gets a copy.
    pub formatted: PathBuf,
    /// Kafka's classes as Java has loaded them once: with them a broker's start takes three fifths of the processor time. Java does without a
    /// file that is missing or not its own.
    pub classes: PathBuf,
}

/// Kafka, fetched and prepared on first use.
///
/// Without it no test that needs it can pass. So one line explains the reason and the whole test program ends, instead of one failure per
/// test.
pub fn kafka() -> &'static Distribution {
    static MADE: OnceLock<Distribution> = OnceLock::new();
    MADE.get_or_init(|| {
        prepared(&home()).unwrap_or_else(|why| {
            tell(&format!("Kafka can't be started, so no test that needs it can run: {why}"));
            give_up()
        })
    })
}

#[expect(clippy::disallowed_methods, clippy::exit, reason = "a test runner has no other way to stop all of its tests")]
fn give_up() -> ! {
    std::process::exit(1)
}

fn prepared(home: &Path) -> Result<Distribution, String> {
    let _lock = lock(home);
    let named = |what: &str| home.join(format!("{what}-{}", version()));
    let jars = named("kafka");
    let tools: &[(&str, &str)] = if jars.exists() { &TOOLS[..1] } else { &TOOLS };
    require(tools)?;
    make(&jars, fetch_kafka)?;
    let class_path = format!("{}/*", jars.display());
    let formatted = named("formatted");
    make(&formatted, |at| format(&class_path, at))?;
    let classes = named("classes");
    let distribution = Distribution { class_path, formatted, classes };
    if has_own_controller() {
        make(&distribution.classes, |at| archive_classes(&distribution, at)).unwrap_or_else(|why| tell(&why));
    }
    Ok(distribution)
}

/// Fails with one message that names every missing program.
fn require(tools: &[(&str, &str)]) -> Result<(), String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_here = |tool: &str| env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    let missing: Vec<&(&str, &str)> = tools.iter().filter(|(tool, _)| !is_here(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|(tool, _)| format!("`{tool}`")).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    Err(format!("{} not found; apt-get install {}", names.join(" and "), packages.join(" ")))
}

/// The witness, compiled on first use and after a change of its source.
#[must_use]
pub fn witness() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        compiled("witness.c", "witness", |compile| {
            // Some systems have no static C library; there the dynamic loader adds half a millisecond to every start.
            compile(&["-Wall", "-Wextra", "-static"]).or_else(|_| compile(&["-Wall", "-Wextra"]))
        })
    })
}

/// A directory with a broker's policy for new topics (`TopicPolicy.java`); compiled on first use and after a change of its source.
pub(crate) fn topic_policy() -> PathBuf {
    let kafka = kafka();
    compiled_by("TopicPolicy.java", "topic-policy", |at, source| {
        let mut compiler = Command::new("javac");
        compiler.args(["-cp", &kafka.class_path, "-d"]).arg(at).arg(source);
        run(&mut compiler, "a Java compiler: apt-get install default-jdk-headless")
    })
}

/// A program that runs another one in a sandbox (`deny.c`); compiled on first use and after a change of its source.
#[must_use]
pub fn deny() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| compiled("deny.c", "deny", |compile| compile(&["-Wall", "-Wextra"])))
}

/// A preload library that gives a process a wall clock of its own (`stepped_clock.c`); compiled on first use and after a change of its
/// source.
#[must_use]
pub fn stepped_clock() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        compiled("stepped_clock.c", "stepped_clock.so", |compile| compile(&["-Wall", "-shared", "-fPIC"]))
    })
}

/// Compiles one of our C sources, unless the result is newer than the source.
fn compiled(
    source: &str,
    made: &str,
    how: impl FnOnce(&dyn Fn(&[&str]) -> Result<(), String>) -> Result<(), String>,
) -> PathBuf {
    compiled_by(source, made, |at, source| {
        how(&|options| {
            let mut compiler = Command::new("cc");
            compiler.args(options).args(["-O2", "-Werror", "-o"]).arg(at).arg(source);
            run(&mut compiler, "a C compiler: apt-get install gcc libc6-dev")
        })
    })
}

/// Compiles one of our sources, unless the result is newer than the source.
fn compiled_by(source: &str, made: &str, how: impl FnOnce(&Path, &Path) -> Result<(), String>) -> PathBuf {
    let home = home();
    let _lock = lock(&home);
    let source = Path::new(SOURCES).join(source);
    let made = home.join(made);
    let written = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    if written(&made) < written(&source) {
        let _ = fs::remove_file(&made);
        let _ = fs::remove_dir_all(&made);
    }
    let built = make(&made, |at| how(at, &source));
    built.unwrap_or_else(|why| panic!("{why}"));
    made
}

/// A directory in `target/` for the files of a test. `/tmp` is not used, because it may be a small file system in memory.
#[must_use]
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("run-").tempdir_in(home()).expect("target/ can be written")
}

/// A directory for the files of a broker: in the one that [`BROKERS_DIRECTORY`] names, or else in `target/`.
pub(crate) fn broker_directory() -> tempfile::TempDir {
    let Some(parent) = env::var_os(BROKERS_DIRECTORY).filter(|parent| !parent.is_empty()) else { return scratch() };
    let made = tempfile::Builder::new().prefix("neli-run-broker-").tempdir_in(&parent);
    made.unwrap_or_else(|why| panic!("{BROKERS_DIRECTORY}={}: {why}", Path::new(&parent).display()))
}

/// `target/harness`, found through the directory that cargo marked as a cache, since the target directory can be set anywhere.
fn home() -> PathBuf {
    let program = env::current_exe().expect("a running program has a path");
    let target = program.ancestors().find(|directory| directory.join("CACHEDIR.TAG").exists());
    let home = target.expect("tests and benches are run by cargo, from its target directory").join("harness");
    fs::create_dir_all(&home).expect("target/ can be written");
    home
}

fn lock(home: &Path) -> Flock<File> {
    let file = File::create(home.join("lock")).expect("target/ can be written");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).expect("a file can be locked")
}

/// Builds `path` with `maker`, unless it exists.
fn make(path: &Path, maker: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    // Remains of an interrupted run are removed.
    let _ = fs::remove_dir_all(&partial);
    let _ = fs::remove_file(&partial);
    maker(&partial)?;
    fs::rename(&partial, path).map_err(|error| format!("can't rename {}: {error}", partial.display()))
}

fn fetch_kafka(into: &Path) -> Result<(), String> {
    tell(&format!("getting Apache Kafka {} by Maven (43 MB, once)", version()));
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--no-transfer-progress", "--quiet", "--file"]).arg(Path::new(SOURCES).join("pom.xml"));
    maven.arg("dependency:copy-dependencies").arg(format!("-Dkafka.version={}", version()));
    maven.arg(format!("-DoutputDirectory={}", into.display()));
    run(&mut maven, "Maven and Java: apt-get install maven default-jdk-headless")
}

/// The least settings of a broker that is alone.
fn settings(directory: &Path, port: u16, controller: u16) -> String {
    format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\nlog.dirs={}\n",
        directory.display()
    )
}

fn format(class_path: &str, into: &Path) -> Result<(), String> {
    if !has_own_controller() {
        return fs::create_dir(into).map_err(|error| format!("can't make {}: {error}", into.display()));
    }
    tell("formatting a log directory");
    let settings = into.with_extension("properties");
    let text = self::settings(into, 9092, 9093);
    fs::write(&settings, text).map_err(|error| format!("can't write {}: {error}", settings.display()))?;
    let mut tool = Command::new("java");
    tool.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path, "kafka.tools.StorageTool", "format"]);
    tool.args(["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c"]).arg(&settings);
    // Before 3.5 the tool makes no accounts: the tests of logins over TLS need them.
    for account in accounts::scram().filter(|_| is_since(3, 5)) {
        tool.args(["--add-scram", &account]);
    }
    run(&mut tool, "Java 17 or later: apt-get install default-jdk-headless")
}

/// Has a broker write the archive of its classes, which Java does at a regular exit.
fn archive_classes(distribution: &Distribution, into: &Path) -> Result<(), String> {
    tell("archiving Kafka's classes (10 s, once)");
    let directory = into.with_extension("directory");
    let _ = fs::remove_dir_all(&directory);
    let prepare = || {
        copy_all(&distribution.formatted, &directory)?;
        let (port, controller) = (free_port(), free_port());
        let settings = settings(&directory, port, controller);
        fs::write(directory.with_extension("properties"), settings)?;
        let mut java = Command::new("java");
        java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
        java.arg(format!("-XX:ArchiveClassesAtExit={}", into.display()));
        java.args(["-cp", &distribution.class_path, "kafka.Kafka"]).arg(directory.with_extension("properties"));
        let mut broker = java.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let process = Process::find(i32::try_from(broker.id()).unwrap_or_default());
        let is_ready = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait::until_true("a broker", || is_ready() || broker.try_wait().is_ok_and(|ended| ended.is_some()));
        process.inspect(|process| process.signal(Signal::SIGTERM));
        broker.wait()?;
        fs::remove_dir_all(&directory)
    };
    prepare().map_err(|error| format!("no archive of Kafka's classes: {error}"))
}

/// Copies a directory with all that is in it. The copy is made, or completed.
pub(crate) fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, copy) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_dir() {
            copy_all(&entry, &copy)?;
        } else {
            fs::copy(entry, copy)?;
        }
    }
    Ok(())
}

/// Runs a tool to its end. The error contains its output, or the package to install if the tool is missing.
pub(crate) fn run(tool: &mut Command, install: &str) -> Result<(), String> {
    let name = tool.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = tool.stdin(Stdio::null()).output().map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            format!("these tests need `{name}`, which is not here; install {install}")
        } else {
            format!("can't run `{name}`: {error}")
        }
    })?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{name}` failed ({status}): {}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

/// Prints progress to the terminal past libtest's capture, since it is not a test's output. A closed stderr is not an error.
pub(crate) fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "harness: {what}");
}
