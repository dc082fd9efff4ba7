//! Words that many sentences share: the reasons of the protocol, and durations.

use std::time::Duration;

/// The protocol's reason in the words of a sentence; any other text is unchanged.
#[must_use]
pub fn because(why: &str) -> &str {
    match why {
        "departed" => "its program has left the election",
        "ended" => "the election was ended",
        "exited" => "the job has ended",
        "facts-unavailable" => "the facts of the key can't be read or written",
        "failed" => "the job has failed, and is to be tried again",
        "fenced" => "the lease ran out",
        "guard-died" => "the guard died",
        "history-cut" => "the topic's records were cut, or it was made anew",
        "nobody-led" => "nobody led then",
        "overrun" => "the previous run was still going on at its start",
        "refused" => "this candidate can't stand for election any more",
        "resigned" => "it was asked to stand down",
        "restart-limit" => "the job failed too often",
        "revoked" => "the consumer group has chosen another candidate",
        "clock-set" => "this machine's clock was set forward over it, or neli-run was stopped then",
        "claim-expired" => "the claim took effect too late to be used",
        "skipped" => "the key needs no run",
        "stopped" => "a signal to neli-run",
        "superseded" => "another candidate's claim took effect",
        "left" => "the process has left this role",
        "spread" => "moved for a fair share",
        "supervisor-died" => "neli-run died",
        "suspended" => "Ctrl-Z",
        "unhealthy" => "the health command failed",
        other => other,
    }
}

/// A duration for users: `40ms`, `1.25s`, `2m 5s`.
#[must_use]
pub fn spoken(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        ms @ 1_000..60_000 => {
            let digits = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            format!("{}s", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use neli_proto::record::Why;

    use super::*;

    #[test]
    fn a_duration_is_readable() {
        let said = [0, 40, 999, 1_000, 1_250, 8_000, 59_999, 125_400].map(|ms| spoken(Duration::from_millis(ms)));
        assert_eq!(said, ["0ms", "40ms", "999ms", "1s", "1.25s", "8s", "59.999s", "2m 5s"]);
    }

    #[test]
    fn each_reason_of_the_protocol_has_words() {
        for why in Why::ALL {
            let said = because(why.as_str());
            assert!(said != why.as_str() && !said.contains("supervisor"), "{said}");
        }
    }
}
