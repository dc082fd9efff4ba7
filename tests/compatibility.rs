//! A candidate of an earlier version and one of this version elect each other, with both electors, so that machines can be upgraded one
//! at a time.
//!
//! The earlier version is built from the repository's history into its own directory:
//!
//! ```text
//! cargo test --test compatibility -- --ignored
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::not_tested;
use nix::sys::signal::Signal;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// The last commit before the protocol became a crate of its own. Since then one value in the records has changed: a release with
/// `claim-expired` had `stillborn`.
const EARLIER: &str = "e780ac7ec9bb1ea55d4a1a8e32660295aa9335f1";

/// The earlier program's name, different from the present one.
const EARLIER_PROGRAM: &str = "neli-run-earlier";

#[test]
#[ignore = "builds an earlier version of the program: a minute"]
fn an_earlier_version_and_this_one_elect_each_other_by_the_log() {
    elect_each_other(Elector::Log);
}

#[test]
#[ignore = "builds an earlier version of the program: a minute"]
fn an_earlier_version_and_this_one_elect_each_other_by_the_group() {
    elect_each_other(Elector::Group);
}

fn elect_each_other(elector: Elector) {
    let earlier = match &*BUILT {
        Ok(Some(program)) => program.as_path(),
        Ok(None) => return not_tested("the commit of the earlier version is not in this clone"),
        Err(error) => panic!("{error}"),
    };
    let (new, old) = (Path::new(PROGRAM), earlier);
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

/// The earlier program; `None` if its commit is not in this clone.
static BUILT: LazyLock<Result<Option<PathBuf>, String>> = LazyLock::new(|| {
    let sources = Path::new(env!("CARGO_TARGET_TMPDIR")).join(EARLIER);
    let has_sources = check_out(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    if has_sources { build(&sources).map(Some) } else { Ok(None) }
});

/// Writes the earlier sources, unless they exist; returns false if git does not know the commit.
fn check_out(sources: &Path) -> io::Result<bool> {
    let marker = sources.join("complete");
    if marker.exists() {
        return Ok(true);
    }
    let mut archive = Command::new("git");
    archive.args(["archive", "--format=tar", EARLIER]).current_dir(env!("CARGO_MANIFEST_DIR"));
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
    let bin = format!(
        "autobins = false\n\n[[bin]]\nname = \"{EARLIER_PROGRAM}\"\npath = \"src/main.rs\"\n\n[profile.dev.package.neli-run]\n\
         codegen-units = 254\n\n[features]\n"
    );
    assert_eq!(text.matches("\n[features]\n").count(), 1);
    fs::write(&manifest, text.replace("\n[features]\n", &format!("\n{bin}")))?;
    fs::write(marker, "")?;
    Ok(true)
}

fn build(sources: &Path) -> Result<PathBuf, String> {
    let target = sources.ancestors().nth(2).ok_or("the target directory is two above")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--bin", EARLIER_PROGRAM]);
    // Most dependencies are the same as in the present build, so they are fetched already.
    cargo.current_dir(sources).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target.join("debug").join(EARLIER_PROGRAM))
    } else {
        Err("the earlier version does not compile".to_owned())
    }
}
