//! What a guard gets at its start, in a sealed file. The messages between guard and supervisor are defined in [`neli_proto::guard`]: one JSON object
//! per packet, in both directions. Packets that can't be decoded are ignored.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::process::attributes::EarlierAttributes;
use crate::process::signals::SignalSet;
use crate::release::ReleaseConfig;

/// The longest packet, in bytes.
pub(super) const LONGEST: usize = 4096;

/// The configuration that a guard gets once, at its start. It is passed in a sealed file in memory, since it holds
/// secrets.
#[derive(Clone, Default, Deserialize, Serialize)]
pub struct GuardConfig {
    /// The job's attributes that `neli-run` has changed for itself, and its mark. The guard adds those that it changes itself; its release gets
    /// most of them back.
    pub attributes: EarlierAttributes,
    /// `--embedded`: the directory of the broker, whose successor must not begin before the guard has ended.
    pub broker: Option<PathBuf>,
    /// The directory of the job's control group, as the supervisor's descriptor.
    pub cgroup: Option<RawFd>,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
    /// The job's environment without the variables that differ from run to run (`job_variables::OF_RUN`), which the guard
    /// adds. Those of an outer `neli-run` are not among them.
    pub environment: Vec<(OsString, OsString)>,
    /// `--health-cmd`.
    pub health: Option<OsString>,
    /// The signals that the job ignores, as `neli-run` did at its start.
    pub ignored: SignalSet,
    /// The descriptors that `neli-run` had at its start. The job gets these and the lease.
    pub inherited: Vec<RawFd>,
    /// Whether the job gets the foreground at its start, if `neli-run`'s group has it.
    pub foreground: bool,
    /// The time from a deadline to the lease's end.
    pub kill_margin: Duration,
    /// Processes that are alive this long after SIGKILL are reported as stuck.
    pub lease: Duration,
    /// `--on-lead`.
    pub on_lead: Option<OsString>,
    /// The program that the guard becomes to release in a dead supervisor's place: `/proc/self/exe`.
    pub releaser: PathBuf,
    /// The configuration of that program. Without one nothing is released.
    pub release: Option<ReleaseConfig>,
    /// The queue to which all guards of this supervisor append their releases, by its descriptor.
    pub release_queue: RawFd,
    /// The guard's end of the socket. This and the next two are those of one guard: its start sets them.
    pub socket: RawFd,
    /// The supervisor's process id.
    pub supervisor: i32,
    /// A pidfd of the supervisor, if the kernel has pidfds.
    pub supervisor_pidfd: Option<RawFd>,
}

impl fmt::Debug for GuardConfig {
    /// Commands, environment and release configuration may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardConfig").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_of_a_configuration_shows_no_secret() {
        let guard_config = GuardConfig {
            command: vec!["job".into(), "--password=hunter2".into()],
            environment: vec![("TOKEN".into(), "hunter2".into())],
            health: Some("check --password=hunter2".into()),
            on_lead: Some("tell --password=hunter2".into()),
            release: serde_json::from_value(serde_json::json!({
                "bootstrap": "localhost:1", "properties": [["sasl.password", "hunter2"]], "member": "m", "name": "n", "lease_ms": 5_000,
                "election": {"group": "g", "topic": "t", "partition": 0, "role": 0},
            }))
            .unwrap(),
            ..GuardConfig::default()
        };
        assert!(!format!("{guard_config:?}").contains("hunter2"));
    }
}
