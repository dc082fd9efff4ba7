//! A candidate of an earlier version and one of this version elect each other, with both electors, and share many roles, so that machines can
//! be upgraded one at a time.
//!
//! The earlier versions are built from the repository's history, each into its own directory:
//!
//! ```text
//! cargo test --test compatibility -- --ignored
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::not_tested;
use harness::wait;
use nix::sys::signal::Signal;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// An earlier version.
struct Earlier {
    commit: &'static str,
    /// The program's name, different from the present one.
    program: &'static str,
    /// For the profile: the same number would be the same package for cargo.
    codegen_units: u32,
}

/// The last commit before the protocol became a crate of its own. Since then one value in the records has changed: a release with
/// `claim-expired` had `stillborn`.
const BEFORE_THE_CRATES: Earlier =
    Earlier { commit: "e780ac7ec9bb1ea55d4a1a8e32660295aa9335f1", program: "neli-run-earlier", codegen_units: 254 };

/// The last commit in which roles were moved by the group's assignment, and a revoke ended the lead of one.
const BY_ASSIGNMENT: Earlier = Earlier {
    commit: "5e6417c69ee164ecdcd7961b44446c08156ae914",
    program: "neli-run-by-assignment",
    codegen_units: 253,
};

#[test]
#[ignore = "builds an earlier version of the program: a minute"]
fn an_earlier_version_and_this_one_elect_each_other() {
    with_each_elector(elect_each_other);
}

fn elect_each_other(elector: Elector) {
    let Some(old) = built(&BUILT_BEFORE_THE_CRATES) else { return };
    let new = Path::new(PROGRAM);
    let election = TestElection::new(PROGRAM, Kafka::shared(), elector);
    let standby_of = |program: &Path| {
        let mut standby = election.candidate_of(program).start();
        standby.await_event("standby");
        standby
    };
    let leads = |candidate: &mut Running| {
        let term = candidate.await_lead();
        election.await_witness(term);
        term
    };

    let mut leader = election.candidate_of(old).start();
    let mut term = leads(&mut leader);
    let mut ended = Vec::new();
    // Each program hands over to the other, and the guard of each releases the term of its dead supervisor.
    for (program, signal) in [
        (new, Signal::SIGTERM),
        (old, Signal::SIGTERM),
        (new, Signal::SIGKILL),
        (old, Signal::SIGKILL),
        (new, Signal::SIGTERM),
    ] {
        let mut standby = standby_of(program);
        leader.signal(signal);
        let next = leads(&mut standby);
        assert!(next > term, "{next} follows {term}");
        leader.status();
        ended.push(std::mem::replace(&mut leader, standby));
        term = next;
    }
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    let nonsense = election.verdicts().into_iter().filter(|record| record["verdict"] == "nonsense").count();
    assert_eq!(nonsense, 0);
    election.close(ended.into_iter().chain([leader]));
}

#[test]
#[ignore = "builds an earlier version of the program: a minute"]
fn an_operator_names_the_next_leader_beside_an_earlier_version() {
    with_each_elector(name_the_next_leader);
}

/// A leader that does not know the name stands down as before, and so does a standby that does not know it claim.
fn name_the_next_leader(elector: Elector) {
    let Some(old) = built(&BUILT_BEFORE_THE_CRATES) else { return };
    let election = TestElection::new(PROGRAM, Kafka::shared(), elector);
    let mut leader = election.candidate_of(old).option("--name", "old").start();
    let mut term = leader.await_lead();
    let mut standby = election.candidate_of(Path::new(PROGRAM)).option("--name", "new").start();
    standby.await_event("standby");
    for name in ["new", "old", "new"] {
        election.await_witness(term);
        wait::until_true("the hello of the one that stands by", || {
            let object = election.ask("status", &["--json"]).json();
            object["standbys"].as_array().is_some_and(|standbys| standbys.len() == 1)
        });
        // One of the earlier version does not answer, but says hello every 30 s.
        let answer = election.ask("resign", &["--to", name, "--timeout", "40s"]);
        let next = standby.await_lead();
        assert!(answer.text.starts_with(&format!("{name} leads, term {next}; ")), "{answer:?}");
        assert!(next > term, "{next} follows {term}");
        std::mem::swap(&mut leader, &mut standby);
        term = next;
    }
    election.await_witness(term);
    election.close([leader, standby]);
}

#[test]
#[ignore = "builds an earlier version of the program: a minute"]
fn an_earlier_version_and_this_one_share_roles() {
    with_each_elector(share_roles);
}

/// Candidates are replaced one by one, as in an upgrade and back. Each time the shares become fair.
fn share_roles(elector: Elector) {
    const ROLES: usize = 6;
    let Some(old) = built(&BUILT_BY_ASSIGNMENT) else { return };
    let new = Path::new(PROGRAM);
    let election = TestElection::new(PROGRAM, Kafka::shared(), elector);
    let start =
        |program| election.candidate_of(program).option("--roles", ROLES.to_string()).job(["sleep", "1000"]).start();
    let await_fair = |candidates: &[Running]| {
        let fair = ROLES / candidates.len();
        let are_fair = || candidates.iter().all(|candidate| led(candidate).len() == fair);
        wait::until_true("fair shares", are_fair);
    };
    let mut ended = Vec::new();
    let mut candidates = vec![start(old), start(old), start(old)];
    await_fair(&candidates);
    for program in [new, new, new, old, old] {
        let mut stopped = candidates.remove(0);
        stopped.signal(Signal::SIGTERM);
        // The job is ended by SIGTERM.
        assert_eq!(stopped.status(), 143);
        ended.push(stopped);
        await_fair(&candidates);
        candidates.push(start(program));
        await_fair(&candidates);
    }
    for candidate in &mut candidates {
        candidate.signal(Signal::SIGTERM);
        assert_eq!(candidate.status(), 143);
    }
    election.close(ended.into_iter().chain(candidates));
}

/// The roles that a candidate leads according to its log.
fn led(candidate: &Running) -> BTreeSet<u64> {
    let mut led = BTreeSet::new();
    for event in candidate.history() {
        match event.name() {
            "leading" => drop(led.insert(event.number("role"))),
            "fenced" | "released" | "superseded" => drop(led.remove(&event.number("role"))),
            _ => {}
        }
    }
    led
}

/// Both at once: most of the time they wait, for the hello of a candidate of an earlier version for half a minute.
fn with_each_elector(scenario: fn(Elector)) {
    thread::scope(|scope| {
        for elector in [Elector::Log, Elector::Group] {
            scope.spawn(move || scenario(elector));
        }
    });
}

/// An earlier program; `None` if its commit is not in this clone.
type Built = LazyLock<Result<Option<PathBuf>, String>>;

static BUILT_BEFORE_THE_CRATES: Built = LazyLock::new(|| checked_out_and_built(&BEFORE_THE_CRATES));
static BUILT_BY_ASSIGNMENT: Built = LazyLock::new(|| checked_out_and_built(&BY_ASSIGNMENT));

fn built(earlier: &'static Built) -> Option<&'static Path> {
    match &**earlier {
        Ok(Some(program)) => Some(program),
        Ok(None) => {
            not_tested("the commit of the earlier version is not in this clone");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn checked_out_and_built(earlier: &Earlier) -> Result<Option<PathBuf>, String> {
    let sources = Path::new(env!("CARGO_TARGET_TMPDIR")).join(earlier.commit);
    let has_sources = check_out(&sources, earlier).map_err(|error| format!("{}: {error}", sources.display()))?;
    if has_sources { build(&sources, earlier).map(Some) } else { Ok(None) }
}

/// Writes the earlier sources, unless they exist; returns false if git does not know the commit.
fn check_out(sources: &Path, earlier: &Earlier) -> io::Result<bool> {
    let Earlier { commit, program, codegen_units } = earlier;
    let marker = sources.join("complete");
    if marker.exists() {
        return Ok(true);
    }
    let mut archive = Command::new("git");
    archive.args(["archive", "--format=tar", commit]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let archive = archive.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    if !archive.status.success() {
        return Ok(false);
    }
    fs::create_dir_all(sources)?;
    let packed = sources.with_extension("tar");
    fs::write(&packed, archive.stdout)?;
    let unpacked = Command::new("tar").arg("-xf").arg(&packed).current_dir(sources).status()?;
    fs::remove_file(&packed)?;
    assert!(unpacked.success(), "tar unpacks what git has packed");
    // Another name and profile: cargo identifies packages by their path in the workspace and by their profile, and would overwrite the
    // present ones.
    let manifest = sources.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    // The profile of the present build, so that most dependencies need not be compiled again.
    let profile =
        if text.contains("\n[profile.dev]\n") { "" } else { "[profile.dev]\ndebug = \"line-tables-only\"\n\n" };
    let bin = format!(
        "autobins = false\n\n[[bin]]\nname = \"{program}\"\npath = \"src/main.rs\"\n\n{profile}[profile.dev.package.neli-run]\n\
         codegen-units = {codegen_units}\ndebug = false\n\n[features]\n"
    );
    assert_eq!(text.matches("\n[features]\n").count(), 1);
    fs::write(&manifest, text.replace("\n[features]\n", &format!("\n{bin}")))?;
    fs::write(marker, "")?;
    Ok(true)
}

fn build(sources: &Path, earlier: &Earlier) -> Result<PathBuf, String> {
    let target = sources.ancestors().nth(2).ok_or("the target directory is two above")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--bin", earlier.program]);
    // Most dependencies are the same as in the present build, so they are fetched already.
    cargo.current_dir(sources).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target.join("debug").join(earlier.program))
    } else {
        Err("the earlier version does not compile".to_owned())
    }
}
