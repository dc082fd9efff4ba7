//! How much memory the guard takes for itself: there is one beside each candidate.

use std::fs::{self, File};

use harness::process::Process;
use neli_run::guard::{Answer, Order};

use crate::fixture::{GuardFixture, PROGRAM, far_deadline, grant};

/// What a guard that holds a job may have, in KiB. It locks what it uses: all that is mapped would be 4.6 MB.
const MOST: u64 = 1024;

/// The memory that a process shares with no other, in KiB, but for the tables of pointers that the dynamic linker fills in. Their
/// size depends on the build and on the libraries (some 900 KiB without optimization), and not on what the guard does.
#[derive(Debug)]
pub(crate) struct PrivateMemory {
    /// Of files, as they are on the disk: of the program itself, where no other process runs it.
    clean: u64,
    /// What was written to.
    pub(crate) dirty: u64,
}

impl PrivateMemory {
    pub(crate) fn of(process: Process) -> Self {
        // A program that was built just now counts as written to until it is on the disk.
        File::open(PROGRAM).unwrap().sync_all().unwrap();
        let kib = |field| process.kib("smaps_rollup", field).unwrap();
        Self { clean: kib("Private_Clean:"), dirty: kib("Private_Dirty:") - linked_tables(process) }
    }
}

/// KiB of private memory in files that are mapped to be read alone: what the dynamic linker wrote before it protected them.
fn linked_tables(process: Process) -> u64 {
    let mut is_read_only_file = false;
    let mut tables = 0;
    for line in fs::read_to_string(format!("/proc/{}/smaps", process.pid)).unwrap().lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields[..] {
            ["Private_Dirty:", kib, ..] if is_read_only_file => tables += kib.parse::<u64>().unwrap(),
            [range, rights, ..] if !range.ends_with(':') => is_read_only_file = rights == "r--p" && fields.len() > 5,
            _ => {}
        }
    }
    tables
}

/// 500 KiB were measured, 200 of them written to. The program's own pages are in common with another process that runs it, as they are
/// with its supervisor.
#[test]
fn a_guard_that_holds_a_job_has_less_than_a_megabyte_of_its_own() {
    let other = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    other.start(0, far_deadline());
    let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
    fixture.start(0, far_deadline());
    for _ in 0..100 {
        let until = far_deadline();
        fixture.send(&Order::Lease(grant(0, until)));
        assert_eq!(fixture.receive(), Answer::Extended { until });
    }
    let memory = PrivateMemory::of(Process::find(fixture.handle().pid().as_raw()).unwrap());
    assert!(memory.clean + memory.dirty < MOST, "{memory:?}");
}
