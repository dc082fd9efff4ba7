//! The job's environment: that of `neli-run` without its own variables, and with the variables about the election.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use neli_kafka::{Brokers, ElectionId};
use neli_proto::record::MemberId;

use crate::config::{Config, Once, VARIABLE_PREFIX, job_variables};
use crate::process::procfs;
use crate::report::notify;

/// The variables of our own options that `neli-run assert` needs inside the job.
const FOR_ASSERT: [&str; 5] =
    ["NELI_RUN_BROKERS", "NELI_RUN_EMBEDDED", "NELI_RUN_GROUP", "NELI_RUN_PROPERTIES", "NELI_RUN_TOPIC"];

/// Variables that only some jobs get. Those of an outer `neli-run` are not passed on.
const OF_SOME_JOBS: [&str; 6] = [
    job_variables::ROLES,
    job_variables::BROKERS,
    job_variables::EMBEDDED,
    job_variables::PROPERTIES,
    job_variables::TIME_NAMESPACE,
    job_variables::ONCE,
];

/// The environment of every run of the job, without the variables that differ between runs.
pub(super) fn of_job(
    config: &Config,
    election: &ElectionId,
    member: &MemberId,
    inherited: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let roles = config.roles.as_ref().map(|roles| (job_variables::ROLES, roles.text.clone()));
    let kafka = match &config.client.brokers {
        Brokers::At(brokers) => (job_variables::BROKERS, brokers.clone()),
        Brokers::Embedded => (job_variables::EMBEDDED, "1".to_owned()),
    };
    let own = [
        (job_variables::GROUP, election.group.clone()),
        (job_variables::TOPIC, election.topic.clone()),
        kafka,
        ("NELI_PARTITION", election.partition.to_string()),
        (job_variables::ROLE, election.label()),
        ("NELI_NAME", config.name.clone()),
        ("NELI_MEMBER_ID", member.to_string()),
        ("NELI_STOP_TIMEOUT_MS", config.stop_timeout.as_millis().to_string()),
        ("NELI_RUN_PID", std::process::id().to_string()),
    ];
    let own = own.into_iter().chain(roles).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let file = config.properties_file.as_ref().map(|file| (job_variables::PROPERTIES.into(), file.into()));
    let clock = procfs::time_namespace().map(|namespace| (job_variables::TIME_NAMESPACE.into(), namespace));
    let own: Vec<(OsString, OsString)> = own.chain(file).chain(clock).collect();
    let handed_on = inherited.filter(|(name, _)| {
        is_handed_on(name)
            && !config.overridden.contains(name)
            && !OF_SOME_JOBS.iter().any(|own| name == own)
            && !own.iter().any(|(own, _)| own == name)
            && !job_variables::OF_RUN.iter().any(|own| name == own)
    });
    // The window is passed to the guard with each run, so only a key is set here.
    let key = config.once.as_ref().and_then(Once::key);
    let once = key.map(|key| (job_variables::ONCE.into(), key.into()));
    let handed_on: Vec<(OsString, OsString)> = handed_on.collect();
    handed_on.into_iter().chain(own).chain(once).collect()
}

fn is_handed_on(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    if bytes.starts_with(VARIABLE_PREFIX.as_bytes()) {
        return FOR_ASSERT.iter().any(|variable| name == *variable);
    }
    !notify::is_own(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variables_and_systemds_are_not_passed_to_the_job() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "NELI_RUN_PROPERTY", "NELI_RUN_LEASE"] {
            assert!(!is_handed_on(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "NELI_RUN_GROUP", "NELI_RUN_PROPERTIES", "NELI_RUN_EMBEDDED", "MY_WATCHDOG_USEC"] {
            assert!(is_handed_on(OsStr::new(name)), "{name}");
        }
        assert!(is_handed_on(OsStr::from_bytes(b"\xff\xfe")));
    }
}
