//! The rate of this machine's clock, on which leases depend.

use std::path::Path;
use std::thread;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::clock_rate::{ClockReading, Rate};

use super::findings::Findings;

/// The least time of the measurement: compared with it, an interruption of some hundred nanoseconds is negligible.
const LEAST_SPAN: Duration = Duration::from_millis(50);

/// The kernel's clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Clock sources that count the kernel's own interrupts. A kernel uses them if it has none better, and a virtual machine loses some of the
/// interrupts.
const INTERRUPTS: [&str; 2] = ["jiffies", "refined-jiffies"];

const CHECK: &str = "clock-rate";

/// Measures again, and reports how fast the clock ran since the first measurement.
pub(super) fn examine(first: &ClockReading, findings: &mut Findings) {
    let mut last = clock::beside_hardware();
    let left = LEAST_SPAN.saturating_sub(Duration::from_nanos(last.before.saturating_sub(first.before)));
    if !left.is_zero() {
        #[expect(clippy::disallowed_methods, reason = "a span that is measured, where all else took no time")]
        thread::sleep(left);
        last = clock::beside_hardware();
    }
    let source = std::fs::read_to_string(Path::new(CLOCK_SOURCE)).unwrap_or_default();
    tell(first.rate_until(&last), source.trim(), findings);
}

fn tell(rate: Rate, source: &str, findings: &mut Findings) {
    let by = if source.is_empty() { String::new() } else { format!(" ({source})") };
    let runs = |ppm: i64| format!("this machine's clock runs {} than its hardware counts{by}", difference(ppm));
    match rate {
        Rate::Unknown => findings.skipped(CHECK, "unknown: this process was held up while it looked at the clocks"),
        Rate::Beyond(ppm) => {
            let text = format!("{}; two jobs may run at once: leases need rates within 1 % of each other", runs(ppm));
            findings.fail(CHECK, text, Some(FIX.to_owned()));
        }
        Rate::Off(ppm) => {
            let text = format!(
                "{}; two jobs may run at once if another clock is off by as much in the other direction: leases \
                 need rates within 1 % of each other",
                runs(ppm)
            );
            findings.warn(CHECK, text, Some(FIX.to_owned()));
        }
        Rate::Near(_) if INTERRUPTS.contains(&source) => {
            let text = format!(
                "this machine's clock counts interrupts{by}: if some are lost it runs slower, and leases depend on \
                 its rate"
            );
            findings.warn(CHECK, text, Some(format!("write another source of {AVAILABLE} to {CLOCK_SOURCE}")));
        }
        Rate::Near(0) => findings.ok(CHECK, format!("this machine's clock runs as its hardware counts{by}")),
        Rate::Near(ppm) => findings.ok(CHECK, runs(ppm)),
    }
}

const FIX: &str = "set the clock, and slew it slower: chronyc makestep, and maxslewrate 500 in chrony.conf; if no \
    daemon corrects it: \
                    adjtimex --tick 10000 --frequency 0";

const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// The difference of the rate in words.
fn difference(ppm: i64) -> String {
    let parts = ppm.unsigned_abs();
    let tenths = (parts + 500) / 1_000;
    let side = if ppm < 0 { "slower" } else { "faster" };
    if parts < 1_000 { format!("{parts} ppm {side}") } else { format!("{}.{} % {side}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::page::Style;

    fn report(rate: Rate, source: &str) -> String {
        let mut findings = Findings::default();
        tell(rate, source, &mut findings);
        findings.text(Style { is_coloured: false, columns: None })
    }

    #[test]
    fn a_rate_is_reported_with_its_fix() {
        let ok = "ok    clock-rate  this machine's clock runs 12 ppm faster than its hardware counts (tsc)\n";
        assert_eq!(report(Rate::Near(12), "tsc"), ok);
        assert_eq!(report(Rate::Near(0), ""), "ok    clock-rate  this machine's clock runs as its hardware counts\n");
        let off = report(Rate::Off(-6_789), "tsc");
        assert!(off.starts_with("WARN  clock-rate  this machine's clock runs 0.7 % slower than its hardware"), "{off}");
        let beyond = report(Rate::Beyond(83_333), "kvm-clock");
        assert!(beyond.starts_with("FAIL  clock-rate  this machine's clock runs 8.3 % faster than"), "{beyond}");
        assert!(
            beyond.contains("; two jobs may run at once: leases need") && beyond.contains("chronyc makestep"),
            "{beyond}"
        );
        assert!(
            report(Rate::Near(3), "refined-jiffies").starts_with("WARN  clock-rate  this machine's clock counts int")
        );
        assert!(report(Rate::Unknown, "tsc").starts_with("--    clock-rate  unknown: "));
    }
}
