//! A job's main process, as the guard has reported it. The supervisor kills it if the guard can't.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::SIGKILL;
use nix::unistd::Pid;

use crate::process::system;

/// The main process, which leads a process group.
#[derive(Debug)]
pub(crate) struct MainProcess {
    /// Its pid, which may be reused after its end.
    pub(crate) pid: Pid,
    /// Its pidfd, which refers to this process even if the pid is reused.
    pub(crate) pidfd: OwnedFd,
}

impl MainProcess {
    /// Sends SIGKILL to it and to its process group, which for most jobs is the whole tree. This never blocks. It comes before the control
    /// group and the search in `/proc`, which may block for the same reason that prevents the guard from killing.
    pub(crate) fn kill(&self) {
        let killed = system::signal_pidfd(self.pidfd.as_fd(), SIGKILL);
        let group = system::signal_pidfd_group(self.pidfd.as_fd(), SIGKILL);
        // Before Linux 6.9 only the pid identifies the group; it can't be reused while the process was not waited for.
        if group.is_err_and(|error| error.raw_os_error() == Some(Errno::EINVAL as i32)) && killed.is_ok() {
            let _ = system::signal_group(self.pid, SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn its_group_is_killed_with_it() {
        // The end of the pipe shows that the child is gone too.
        let mut leader = Command::new("/bin/sh")
            .args(["-c", "sleep 1000 & wait"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        let main = MainProcess { pid, pidfd: system::open_pidfd(pid).unwrap() };
        main.kill();
        let mut rest = Vec::new();
        leader.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        leader.wait().unwrap();
        main.kill();
    }
}
