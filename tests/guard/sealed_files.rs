//! Files in memory that are passed to other processes: they are sealed, so that their content can't be changed, and open only in the
//! processes that need them.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use harness::program;
use neli_run::guard::{GuardHandle, Order};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::fixture::{GuardFixture, descriptors, far_deadline, guard_config, release_config, script};

/// A secret in the guard's configuration.
const SECRET: &str = "correct horse";

/// The descriptors of a process that are files in memory with this name.
fn in_memory(pid: Pid, name: &str) -> Vec<PathBuf> {
    let paths = descriptors(pid).into_iter().map(|number| PathBuf::from(format!("/proc/{pid}/fd/{number}")));
    let is_named = |path: &PathBuf| {
        let target = fs::read_link(path).unwrap_or_default();
        target.to_str().is_some_and(|target| target.starts_with(&format!("/memfd:{name} ")))
    };
    paths.filter(is_named).collect()
}

/// Asserts that the content can't be changed and the seals can't be removed, even if root opens the file again.
fn assert_sealed(path: &PathBuf, seals: SealFlag) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let before = fs::read(path).unwrap();
    let present = SealFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GET_SEALS).unwrap());
    assert_eq!(present, seals);
    assert_eq!(file.write(b"forged").unwrap_err().kind(), ErrorKind::PermissionDenied);
    for length in [0, 4096] {
        assert_eq!(file.set_len(length).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    assert_eq!(fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::empty())), Err(nix::errno::Errno::EPERM));
    assert_eq!(fs::read(path).unwrap(), before);
}

/// The configuration in the form in which the guard gets it. In place of the guard a program is started that reads nothing.
#[test]
fn the_configuration_is_sealed_and_in_no_argument() {
    let directory = tempfile::tempdir().unwrap();
    let idle = directory.path().join("idle");
    program::write(&idle, "#!/bin/sh\nexec sleep 600\n");
    let mut guard_config = guard_config(script("true"), directory.path());
    guard_config.environment.push(("SECRET".into(), SECRET.into()));
    guard_config.release = Some(release_config(&[("sasl.password", SECRET)]));
    let guard = GuardHandle::start(&idle, &guard_config).unwrap();
    let [file] = &in_memory(guard.pid(), "neli-run")[..] else { panic!("one file with the configuration") };
    let all = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
    assert_sealed(file, all);
    assert!(fs::read_to_string(file).unwrap().contains(SECRET));
    for part in ["cmdline", "environ"] {
        let shown = fs::read(format!("/proc/{}/{part}", guard.pid())).unwrap();
        assert!(!String::from_utf8_lossy(&shown).contains(SECRET), "{part}");
    }
    guard.signal(nix::libc::SIGKILL).unwrap();
    waitpid(guard.pid(), None).unwrap();
}

/// The guard has read its configuration and closed it; the job has the lease, which it can read and not write.
#[test]
fn a_job_has_the_lease_alone_and_cannot_change_it() {
    let mut fixture = GuardFixture::running(
        r#"for try in 'echo forged >&$NELI_LEASE_FD' 'echo forged >/proc/self/fd/$NELI_LEASE_FD' \
                      'truncate -s 0 /proc/self/fd/$NELI_LEASE_FD' 'truncate -s 64 /proc/self/fd/$NELI_LEASE_FD'; do
               if (eval "$try") 2>/dev/null; then echo done > "$PIPE"; else echo refused > "$PIPE"; fi
           done
           exec sleep 600"#,
    );
    let until = far_deadline();
    let (job, _) = fixture.start(7, until);
    for _ in 0..4 {
        assert_eq!(fixture.pipe.next_line(), "refused");
    }
    for pid in [fixture.handle().pid(), job] {
        assert_eq!(in_memory(pid, "neli-run"), [""; 0].map(PathBuf::from));
    }
    assert_eq!(in_memory(job, "neli-releases"), [""; 0].map(PathBuf::from));
    let [lease] = &in_memory(job, "neli-lease")[..] else { panic!("one lease") };
    let shape = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    assert_sealed(lease, shape | SealFlag::F_SEAL_FUTURE_WRITE);
    let expected = [7_u64.to_le_bytes(), until.as_nanos().to_le_bytes()].concat();
    assert_eq!(fs::read(lease).unwrap(), expected);

    // The guard itself can write, through the mapping that it created before it sealed the file.
    let later = far_deadline();
    fixture.send(&Order::Lease(crate::fixture::grant(7, later)));
    fixture.receive();
    assert_eq!(fs::read(lease).unwrap()[8..], later.as_nanos().to_le_bytes());
}
