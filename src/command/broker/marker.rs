//! The file that a killed broker leaves in its [`BrokerDirectory`]: it tells the next broker that jobs of its leaders may still run. The
//! file exists from before the first candidate connects until the broker ends in order. It contains the boot id, because a reboot ends all
//! jobs.

use std::fs;
use std::io;
use std::time::Duration;

use neli::program::embedded::directory::BrokerDirectory;
use neli_proto::time::Time;
use serde::{Deserialize, Serialize};

/// The machine's boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The marker's content, as JSON.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Marker {
    /// The boot id of the machine when the marker was written.
    boot_id: String,
    /// When the leases of all earlier brokers are over, if the last one ended in order; `None` while a broker lives
    /// and after it was killed.
    trusted_from: Option<Time>,
}

impl Marker {
    /// The marker of a live broker.
    pub(super) fn of_living() -> Self {
        Self { boot_id: boot_id(), trusted_from: None }
    }

    /// The marker of a broker that ended in order before the leases of the brokers before it were over.
    pub(super) fn of_ended(trusted_from: Time) -> Self {
        Self { boot_id: boot_id(), trusted_from: Some(trusted_from) }
    }

    /// Replaces the marker.
    pub(super) fn write(&self, directory: &BrokerDirectory) -> io::Result<()> {
        fs::write(directory.marker(), serde_json::to_vec(self)?)
    }
}

/// When a broker that starts at `now` knows that every lease of the brokers before it is over: `distrust` after the
/// last one's end, which was before `now`.
pub(super) fn trusted_from(directory: &BrokerDirectory, now: Time, distrust: Duration) -> io::Result<Time> {
    let text = match fs::read(directory.marker()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Time::ZERO),
        other => other?,
    };
    Ok(judge(serde_json::from_slice(&text).ok(), &boot_id(), now, distrust))
}

/// The time from which an empty journal is vacant; `None` if the marker can't be parsed, because its broker was killed while it wrote the
/// file.
fn judge(marker: Option<Marker>, boot_id: &str, now: Time, distrust: Duration) -> Time {
    match marker {
        Some(marker) if marker.boot_id != boot_id => Time::ZERO,
        Some(Marker { trusted_from: Some(trusted_from), .. }) => trusted_from.min(now + distrust),
        Some(Marker { trusted_from: None, .. }) | None => now + distrust,
    }
}

/// The machine's boot id; empty if it can't be read: then each marker counts as one of this boot.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISTRUST: Duration = Duration::from_secs(61);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn marker(boot_id: &str, trusted_from: Option<u64>) -> Marker {
        Marker { boot_id: boot_id.to_owned(), trusted_from: trusted_from.map(at) }
    }

    #[test]
    fn the_leases_of_a_killed_broker_may_be_valid_for_the_longest_lease() {
        assert_eq!(judge(Some(marker("now", None)), "now", at(100), DISTRUST), at(161));
        assert_eq!(judge(None, "now", at(100), DISTRUST), at(161));
    }

    #[test]
    fn after_a_reboot_no_earlier_lease_is_valid() {
        assert_eq!(judge(Some(marker("before", None)), "now", at(100), DISTRUST), Time::ZERO);
        assert_eq!(judge(Some(marker("before", Some(160))), "now", at(100), DISTRUST), Time::ZERO);
    }

    #[test]
    fn a_broker_that_ended_in_order_passes_on_the_time_and_does_not_extend_it() {
        assert_eq!(judge(Some(marker("now", Some(120))), "now", at(100), DISTRUST), at(120));
        assert_eq!(judge(Some(marker("now", Some(90))), "now", at(100), DISTRUST), at(90));
        assert_eq!(judge(Some(marker("now", Some(900))), "now", at(100), DISTRUST), at(161));
    }

    #[test]
    fn written_values_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let directory = BrokerDirectory::at(&directory.path().join("neli-run")).unwrap();
        assert_eq!(trusted_from(&directory, at(100), DISTRUST).unwrap(), Time::ZERO);
        Marker::of_living().write(&directory).unwrap();
        assert_eq!(trusted_from(&directory, at(100), DISTRUST).unwrap(), at(161));
        Marker::of_ended(at(120)).write(&directory).unwrap();
        assert_eq!(trusted_from(&directory, at(100), DISTRUST).unwrap(), at(120));
        fs::write(directory.marker(), "").unwrap();
        assert_eq!(trusted_from(&directory, at(100), DISTRUST).unwrap(), at(161));
    }
}
