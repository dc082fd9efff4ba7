//! The command line of a guard's process: its supervisor, and its descriptors.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;

use crate::process::sealed_file;

/// The first argument of a guard's process.
const GUARD: &str = "guard";

/// The argument in place of a pidfd, if the kernel has none.
const NO_PIDFD: &str = "-";

/// The arguments of a guard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arguments {
    /// The supervisor's process id.
    pub(super) supervisor: i32,
    /// The guard's end of the socket.
    pub(super) socket: RawFd,
    /// The file with its configuration.
    pub(super) guard_config: RawFd,
    /// A pidfd of the supervisor.
    pub(super) supervisor_pidfd: Option<RawFd>,
}

impl Arguments {
    /// All descriptors of the arguments.
    pub(super) fn descriptors(self) -> impl Iterator<Item = RawFd> {
        [Some(self.socket), Some(self.guard_config), self.supervisor_pidfd].into_iter().flatten()
    }

    /// The arguments of `main`, the zeroth included.
    pub(super) fn to_command_line(self) -> Vec<OsString> {
        let Self { supervisor, socket, guard_config, supervisor_pidfd } = self;
        let pidfd = supervisor_pidfd.map_or_else(|| NO_PIDFD.to_owned(), |pidfd| pidfd.to_string());
        let numbers = [supervisor, socket, guard_config].map(|number| number.to_string());
        let texts = ["neli-run", GUARD].map(str::to_owned).into_iter().chain(numbers).chain([pidfd]);
        texts.map(OsString::from).collect()
    }

    /// Parses the arguments of `main`, the zeroth included; `None` if the process is not a guard. It is one only if the descriptor of its
    /// configuration is open, which a user can't achieve by typing. Must be called before anything else.
    #[must_use]
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let arguments: Vec<OsString> = arguments.into_iter().take(7).collect();
        let texts: Option<Vec<&str>> = arguments.iter().map(|argument| argument.to_str()).collect();
        let [_, GUARD, supervisor, socket, guard_config, pidfd] = *texts? else { return None };
        if !sealed_file::is_named_by(OsStr::new(guard_config)) {
            return None;
        }
        Some(Self {
            supervisor: supervisor.parse().ok()?,
            socket: socket.parse().ok()?,
            guard_config: guard_config.parse().ok()?,
            supervisor_pidfd: if pidfd == NO_PIDFD { None } else { Some(pidfd.parse().ok()?) },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn arguments_passed_to_the_guard_are_read_back() {
        let file = sealed_file::write(&"configuration").unwrap();
        for supervisor_pidfd in [None, Some(7)] {
            let arguments = Arguments { supervisor: 1, socket: 5, guard_config: file.as_raw_fd(), supervisor_pidfd };
            assert_eq!(Arguments::parse(arguments.to_command_line()), Some(arguments));
        }
    }

    #[test]
    fn without_the_configuration_the_process_is_no_guard() {
        let file = File::open("/dev/zero").unwrap();
        let arguments = Arguments { supervisor: 1, socket: 5, guard_config: file.as_raw_fd(), supervisor_pidfd: None };
        assert_eq!(Arguments::parse(arguments.to_command_line()), None);
    }
}
