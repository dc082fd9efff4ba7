//! The memory of a guard, which every candidate has.

use std::fs::{self, File};

use harness::process::Process;
use neli_run::guard::{Answer, Order};

use crate::fixture::{GuardFixture, PROGRAM, far_deadline, grant};

/// The limit for a guard with a job, in KiB. It locks the pages that it uses: all mapped pages would be 4.6 MB.
const MOST: u64 = 1024;

/// The memory that a process does not share, in KiB, without the pointer tables that the dynamic linker fills in. Their size depends on the
/// build and the libraries (some 900 KiB without optimization), and not on the guard.
#[derive(Debug)]
pub(crate) struct PrivateMemory {
    /// Unmodified pages of files: those of the program itself, if no other process runs it.
    clean: u64,
    /// Modified pages.
    pub(crate) dirty: u64,
}

impl PrivateMemory {
    pub(crate) fn of(process: Process) -> Self {
        // The pages of a new file count as modified until it is written to the disk.
        File::open(PROGRAM).unwrap().sync_all().unwrap();
        let kib = |field| process.kib("smaps_rollup", field).unwrap();
        Self { clean: kib("Private_Clean:"), dirty: kib("Private_Dirty:") - linked_tables(process) }
    }
}

/// Private memory in KiB of read-only file mappings, into which the dynamic linker wrote before it protected them.
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

/// 500 KiB were measured, 200 of them modified. The program's own pages are shared if another process runs it, such as its supervisor.
#[test]
fn a_guard_that_holds_a_job_has_less_than_a_megabyte_of_its_own() {
    let start = || {
        let fixture = GuardFixture::with(vec!["sleep".into(), "600".into()]);
        fixture.start(0, far_deadline());
        for _ in 0..100 {
            let until = far_deadline();
            fixture.send(&Order::Lease(grant(0, until)));
            assert_eq!(fixture.receive(), Answer::Extended { until });
        }
        fixture
    };
    // Both use the same pages of the program.
    let (_other, fixture) = (start(), start());
    let memory = PrivateMemory::of(Process::find(fixture.handle().pid().as_raw()).unwrap());
    assert!(memory.clean + memory.dirty < MOST, "{memory:?}");
}
