//! What a guard gets at its start, in its command line and in a sealed file, and what it passes on at its end. The messages between guard and
//! supervisor are defined in [`neli_proto::guard`]: one JSON object per packet, in both directions. Packets that can't be decoded are ignored.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use neli_proto::record::{MemberId, Offset};
use serde::{Deserialize, Serialize};

use crate::process::attributes::{Mark, Scheduling};
use crate::process::memory_files::{self, QueueNumbers};
use crate::process::signals::SignalSet;

/// The longest packet, in bytes.
pub(super) const LONGEST: usize = 4096;

/// The configuration that a guard gets once, at its start. It is passed in a sealed file in memory, since it holds
/// secrets.
#[derive(Clone, Deserialize, Serialize)]
pub struct GuardConfig {
    /// `--embedded`: the directory of the broker, whose successor must not begin before the guard has ended.
    pub broker: Option<PathBuf>,
    /// The directory of the job's control group, as the supervisor's descriptor.
    pub cgroup: Option<RawFd>,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
    /// The job's environment without the variables that differ from run to run (`variables::ALL`), which the guard
    /// adds. Those of an outer `neli-run` are not among them.
    pub environment: Vec<(OsString, OsString)>,
    /// `--health-cmd`.
    pub health: Option<OsString>,
    /// The signals that the job ignores, as `neli-run` did at its start.
    pub ignored: SignalSet,
    /// The descriptors that `neli-run` had at its start. The job gets these and the lease.
    pub inherited: Vec<RawFd>,
    /// The process group of `neli-run`, which is in the terminal's foreground when the job is not.
    pub group: i32,
    /// Whether the job gets the foreground at its start, if `neli-run`'s group has it.
    pub foreground: bool,
    /// The time from a deadline to the lease's end.
    pub kill_margin: Duration,
    /// Processes that are alive this long after SIGKILL are reported as stuck.
    pub lease: Duration,
    /// The mark of the job's processes, if they can have one.
    pub mark: Option<Mark>,
    /// This candidate's member id.
    pub member: MemberId,
    /// `--on-lead`.
    pub on_lead: Option<OsString>,
    /// The job's soft limit of open files, if that of `neli-run` has been raised above it.
    pub open_files: Option<u64>,
    /// The program that the guard becomes to release in a dead supervisor's place: `/proc/self/exe`.
    pub releaser: PathBuf,
    /// The access to Kafka for that program. The guard passes it on unread.
    pub release: serde_json::Value,
    /// The queue to which all guards of this supervisor append their releases.
    pub release_queue: QueueNumbers,
    /// The job's scheduling, if that of `neli-run` has been raised above it.
    pub scheduling: Option<Scheduling>,
}

impl fmt::Debug for GuardConfig {
    /// Commands, environment and release configuration may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardConfig").field("member", &self.member).finish_non_exhaustive()
    }
}

/// The guard's input for the program that releases a term in a dead supervisor's place, one line of JSON in the queue.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReleaseRequest<R> {
    /// The member that held the term.
    pub member: MemberId,
    /// The term.
    pub term: Offset,
    /// The offset up to which the journal was read when the term was still current.
    pub seen: Offset,
    /// The release's sequence number.
    pub seq: u64,
    /// How long after the lease's end a process of the job may have been alive, in milliseconds.
    pub late_ms: Option<u64>,
    /// [`GuardConfig::release`], which the guard does not decode.
    pub release: R,
}

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
        if !memory_files::is_sealed_and_named_by(OsStr::new(guard_config)) {
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
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_debug_form_of_a_configuration_shows_no_secret() {
        let guard_config = GuardConfig {
            broker: None,
            cgroup: None,
            command: vec!["job".into(), "--password=hunter2".into()],
            environment: vec![("TOKEN".into(), "hunter2".into())],
            health: Some("check --password=hunter2".into()),
            ignored: SignalSet::EMPTY,
            inherited: vec![0, 1, 2],
            group: 1,
            foreground: false,
            kill_margin: Duration::from_millis(20),
            lease: Duration::from_secs(5),
            mark: None,
            member: MemberId::from("m"),
            on_lead: Some("tell --password=hunter2".into()),
            open_files: None,
            releaser: "/proc/self/exe".into(),
            release: serde_json::json!({"sasl.password": "hunter2"}),
            release_queue: QueueNumbers { requests: 3, appended: 4 },
            scheduling: None,
        };
        assert!(!format!("{guard_config:?}").contains("hunter2"));
    }

    #[test]
    fn arguments_passed_to_the_guard_are_read_back() {
        let file = memory_files::write_sealed(&"configuration").unwrap();
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
