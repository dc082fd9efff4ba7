//! What a broker leaves in its [`Place`] for the next one, should it be killed: that jobs of its leaders may still run.
//!
//! It is there from before the first candidate is let in until the broker ends in order. What a reboot has ended is over: the
//! marker names the boot.

use std::fs;
use std::io;
use std::time::Duration;

use neli::embedded::place::Place;
use neli_proto::time::Time;
use serde::{Deserialize, Serialize};

/// Changes with each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A marker, as JSON.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Marker {
    /// The machine's boot in which it was written.
    boot_id: String,
    /// From when on no lease of the brokers before can run, where their last one ended in order; `None` while a broker lives,
    /// and after it was killed.
    sure_from: Option<Time>,
}

impl Marker {
    /// That of a broker that lives.
    pub(super) fn of_living() -> Self {
        Self { boot_id: boot_id(), sure_from: None }
    }

    /// That of a broker that ended in order before the leases of those before it were over.
    pub(super) fn of_ended(sure_from: Time) -> Self {
        Self { boot_id: boot_id(), sure_from: Some(sure_from) }
    }

    /// Replaces what is there.
    pub(super) fn write(&self, place: &Place) -> io::Result<()> {
        fs::write(place.marker(), serde_json::to_vec(self)?)
    }
}

/// From when on a broker that starts at `now` knows that no lease of one before it can run: every lease is over `doubt` after
/// that one's end, which was before `now`.
pub(super) fn sure_from(place: &Place, now: Time, doubt: Duration) -> io::Result<Time> {
    let text = match fs::read(place.marker()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Time::ZERO),
        other => other?,
    };
    Ok(judge(serde_json::from_slice(&text).ok(), &boot_id(), now, doubt))
}

/// `None` is a marker that makes no sense: its broker was killed while it wrote it.
fn judge(marker: Option<Marker>, boot_id: &str, now: Time, doubt: Duration) -> Time {
    match marker {
        Some(marker) if marker.boot_id != boot_id => Time::ZERO,
        Some(Marker { sure_from: Some(sure_from), .. }) => sure_from.min(now + doubt),
        Some(Marker { sure_from: None, .. }) | None => now + doubt,
    }
}

/// Empty where it can't be read: then all is of one boot.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBT: Duration = Duration::from_secs(61);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn marker(boot_id: &str, sure_from: Option<u64>) -> Marker {
        Marker { boot_id: boot_id.to_owned(), sure_from: sure_from.map(at) }
    }

    #[test]
    fn what_a_killed_broker_left_is_doubted_for_the_longest_lease() {
        assert_eq!(judge(Some(marker("now", None)), "now", at(100), DOUBT), at(161));
        assert_eq!(judge(None, "now", at(100), DOUBT), at(161));
    }

    #[test]
    fn a_reboot_ends_all_doubt() {
        assert_eq!(judge(Some(marker("before", None)), "now", at(100), DOUBT), Time::ZERO);
        assert_eq!(judge(Some(marker("before", Some(160))), "now", at(100), DOUBT), Time::ZERO);
    }

    #[test]
    fn a_broker_that_ended_in_order_hands_its_doubt_on_and_adds_none() {
        assert_eq!(judge(Some(marker("now", Some(120))), "now", at(100), DOUBT), at(120));
        assert_eq!(judge(Some(marker("now", Some(90))), "now", at(100), DOUBT), at(90));
        assert_eq!(judge(Some(marker("now", Some(900))), "now", at(100), DOUBT), at(161));
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::at(&directory.path().join("neli-run")).unwrap();
        assert_eq!(sure_from(&place, at(100), DOUBT).unwrap(), Time::ZERO);
        Marker::of_living().write(&place).unwrap();
        assert_eq!(sure_from(&place, at(100), DOUBT).unwrap(), at(161));
        Marker::of_ended(at(120)).write(&place).unwrap();
        assert_eq!(sure_from(&place, at(100), DOUBT).unwrap(), at(120));
        fs::write(place.marker(), "").unwrap();
        assert_eq!(sure_from(&place, at(100), DOUBT).unwrap(), at(161));
    }
}
