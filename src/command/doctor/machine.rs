//! Checks this machine and the rights of this process, by the same functions as a candidate's start; and the rate of its clock, on which
//! leases depend.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use neli_kafka::clock::{self, Alarm};
use neli_proto::assumptions::{ClockReading, Rate};
use nix::unistd::Pid;
use tokio::runtime::Builder;

use super::findings::CheckOutcome::{Fail, Warn};
use super::findings::Findings;
use crate::config::{Config, Listen};
use crate::exit::line_of;
use crate::process::cgroup::{self, Cgroup};
use crate::process::limits::MemoryLimit;
use crate::process::{attributes, descriptors, limits, memory_files, procfs, signals, system};
use crate::report::log;
use crate::text::{reason, shown_duration};
use crate::{guard, http};

/// With less memory than this, candidate and guard (12 MB) leave almost none for a job.
const LITTLE_MEMORY: u64 = 32 << 20;

/// Checks the machine, and whether COMMAND was found, if there is one; returns whether a Kafka client can run here. Must be called while there is
/// only one thread.
pub(super) fn examine(config: &Config, command: Option<anyhow::Result<()>>, findings: &mut Findings) -> bool {
    lock(limits::can_memory_be_locked(), findings);
    schedule(config, findings);
    let open_files_of_http = config.listen.as_ref().map_or(0, |_| http::OPEN_FILES);
    let inherited = descriptors::open().map_or(0, |inherited| inherited.len());
    let more_files = open_files_of_http + limits::open_files_of_inherited(inherited);
    let refused = refused_calls();
    // If no thread can be started at all, no limit is the reason.
    let has_thread = refused.iter().all(|(call, _)| *call != THREAD);
    let mut has_enough = has_thread;
    for (check, found, ok, fix) in [
        ("open-files", limits::open_files(more_files), "enough files may be open", "ulimit -n 1024; LimitNOFILE=1024"),
        ("threads", limits::threads(), "enough threads can be made", "ulimit -u 1024; LimitNPROC=, TasksMax="),
        ("address-space", limits::address_space(), "enough of it may be used", "ulimit -v unlimited; LimitAS=infinity"),
    ] {
        has_enough &= found.is_ok();
        if has_thread || check != "threads" {
            findings.check(check, found.map(|()| ok), Fail, Some(fix));
        }
    }
    // A guard and a job are started, and a child to examine the control group. If this fails, their status may be lost.
    let _ = signals::keep_status_of_children();
    start(&refused, findings);
    findings.check("proc", procfs::validate().map(|()| "/proc shows all of a job's processes"), Fail, None);
    pidfd(system::open_pidfd(Pid::this()).map(drop), findings);
    group(Cgroup::make(&mut None).inspect(Cgroup::remove).is_ok(), cgroup::kills_without_one(), findings);
    limit(limits::memory(), findings);
    let Config { listen: address, log, .. } = config;
    if let Some(address) = address {
        listen(address, findings);
    }
    if log.file.is_some() {
        let checked = log::check_file(log).map(|()| "the log's file can be opened");
        findings.check("log-file", checked.map_err(|error| line_of(&error)), Fail, None);
    }
    if let Some(found) = command {
        let found = found.map(|()| "COMMAND is found and can be run").map_err(|refusal| line_of(&refusal));
        let fix = "install it, or give its path after --; chmod +x lets it be run";
        findings.check("command", found, Fail, Some(fix));
    }
    has_enough
}

/// Whether the address of `--listen` can be bound. A candidate with these options may run here already, and has it then.
fn listen(address: &Listen, findings: &mut Findings) {
    let bound = http::bind(address).map(drop);
    let in_use = |error: &anyhow::Error| {
        let error = error.root_cause().downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let is_in_use = bound.as_ref().is_err_and(in_use);
    let (otherwise, perhaps) = if is_in_use { (Warn, IN_USE) } else { (Fail, "") };
    let found = bound.map(|()| "the address can be bound").map_err(|error| line_of(&error) + perhaps);
    findings.check("listen", found, otherwise, None);
}

const IN_USE: &str = ", perhaps by the candidate with these options; no other starts beside it";

/// The call that starts a thread.
const THREAD: &str = if cfg!(target_env = "gnu") { "clone3" } else { "clone" };

/// The system calls of a candidate's start that fail here, each made by the function that the candidate calls. A sandbox that lists what is
/// allowed may lack the newer ones.
fn refused_calls() -> Vec<(&'static str, io::Error)> {
    // For lack of threads the kernel says EAGAIN, and the check of the limit reports it.
    let thread = limits::try_thread()
        .or_else(|error| if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) });
    let calls = [
        ("memfd_create", memory_files::write_sealed(&()).map(drop)),
        ("signalfd4", signals::try_take()),
        ("timerfd_create", Alarm::new().map(drop)),
        (THREAD, thread),
        ("epoll_create1 or eventfd2", Builder::new_current_thread().enable_io().build().map(drop)),
    ];
    calls.into_iter().filter_map(|(call, made)| Some((call, made.err()?))).collect()
}

/// The start of a candidate up to the job: its system calls, and then a guard and a job.
fn start(refused: &[(&'static str, io::Error)], findings: &mut Findings) {
    for (call, error) in refused {
        let text = format!("{call} fails ({}): no candidate can start here", reason(error));
        findings.fail("system-calls", text, Some(format!("allow {call} in the sandbox (seccomp)")));
    }
    if refused.is_empty() {
        findings.ok("system-calls", "those of a candidate's start are allowed");
        findings.check("guard", guard::trial().map(|()| "a guard starts, and a job below it"), Fail, None);
    }
}

fn lock(can_be_locked: bool, findings: &mut Findings) {
    let locked = can_be_locked.then_some("the guard's memory can be kept from being swapped out");
    let not = "the guard may not lock its memory: if its memory must be read back from a disk, it kills too late";
    findings.check("memory-lock", locked.ok_or(not), Warn, Some("ulimit -l unlimited; LimitMEMLOCK=infinity"));
}

/// The guard's priority, and a processor quota that may delay it without that priority.
fn schedule(config: &Config, findings: &mut Findings) {
    let quota = limits::longest_quota();
    let is_real_time = match attributes::take_priority() {
        Ok((guard_is_real_time, _)) => guard_is_real_time,
        Err(error) => return findings.fail("real-time", error.to_string(), None),
    };
    if is_real_time {
        findings.ok("real-time", "the guard may schedule in real time");
        let shown =
            |(file, _): (PathBuf, _)| format!("a CPU quota ({}) that does not hold up the guard", file.display());
        return findings.ok("cpu-quota", quota.map_or_else(|| NO_QUOTA.to_owned(), shown));
    }
    let (margin, warning, outcome) = match config.with_wider_kill_margin(quota.as_ref()) {
        Ok((timings, warning)) => (timings.kill_margin, warning, Warn),
        Err(refusal) => (config.timings.kill_margin, Some(line_of(&refusal)), Fail),
    };
    let (of_lease, of_quota) = if quota.is_some() { (None, warning) } else { (warning, None) };
    let text = of_lease.unwrap_or_else(|| {
        let margin = shown_duration(margin);
        format!("the guard may not schedule in real time: held up for longer than {margin}, it kills the job too late")
    });
    findings.warn("real-time", text, Some("ulimit -r 2; LimitRTPRIO=2; CAP_SYS_NICE for a container".to_owned()));
    match quota.zip(of_quota) {
        None => findings.ok("cpu-quota", NO_QUOTA),
        Some(((file, _), text)) => {
            let fix = format!("no quota in {}, or real-time scheduling", file.display());
            findings.add(outcome, "cpu-quota", &text, Some(fix));
        }
    }
}

const NO_QUOTA: &str = "no CPU quota";

fn pidfd(opened: io::Result<()>, findings: &mut Findings) {
    let why = |error| format!("no descriptors of processes ({}): Linux 5.3 has them", reason(&error));
    findings.check("pidfd", opened.map(|()| "processes can be held by descriptors").map_err(why), Warn, None);
}

/// Whether the job gets its own control group. `why_without`: why all of it can be killed without one.
fn group(can_be_made: bool, why_without: Option<&str>, findings: &mut Findings) {
    if can_be_made {
        findings.ok("control-group", "the job gets a control group of its own");
    } else if let Some(why) = why_without {
        let text = format!(
            "none for the job; {why} neli-run can kill all of it without one, except for a process that enters another PID namespace \
             (nsenter) and changes its limit of file locks"
        );
        findings.ok("control-group", text);
    } else {
        findings.warn("control-group", cgroup::WITHOUT_ONE, Some("Delegate=yes, or NoNewPrivileges=yes".to_owned()));
    }
}

fn limit(limit: Option<MemoryLimit>, findings: &mut Findings) {
    let Some(limit) = limit else { return findings.ok("memory-limit", "no limit of memory") };
    let (file, mebibytes) = (limit.file.display().to_string(), limit.bytes >> 20);
    let text = format!("{mebibytes} MiB for neli-run, its guard and the job together ({file})");
    if limit.bytes < LITTLE_MEMORY {
        let text = format!("{text}: neli-run and its guard need 12 MB of it");
        findings.warn("memory-limit", text, Some(format!("a higher limit in {file} (MemoryMax=)")));
    } else if limit.kills_all {
        let text = format!(
            "{text}; at the limit the kernel kills all of it at once (memory.oom.group): nothing is released then"
        );
        findings.warn("memory-limit", text, Some("OOMPolicy=continue (systemd), or memory.oom.group=0".to_owned()));
    } else {
        findings.ok("memory-limit", text);
    }
}

/// The least time of the measurement: compared with it, an interruption of some hundred nanoseconds is negligible.
const LEAST_SPAN: Duration = Duration::from_millis(50);

/// The kernel's clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Clock sources that count the kernel's own interrupts. A kernel uses them if it has none better, and a virtual machine loses some of the
/// interrupts.
const INTERRUPTS: [&str; 2] = ["jiffies", "refined-jiffies"];

const CLOCK_CHECK: &str = "clock-rate";

/// Measures again, and reports how fast the clock ran since the first measurement.
pub(super) fn examine_clock_rate(first: &ClockReading, findings: &mut Findings) {
    let spent = Duration::from_nanos(clock::beside_hardware().before.saturating_sub(first.before));
    #[expect(clippy::disallowed_methods, reason = "a span that is measured, where all else took no time")]
    thread::sleep(LEAST_SPAN.saturating_sub(spent));
    let last = clock::beside_hardware();
    let source = std::fs::read_to_string(Path::new(CLOCK_SOURCE)).unwrap_or_default();
    tell(first.rate_until(&last), source.trim(), findings);
}

fn tell(rate: Rate, source: &str, findings: &mut Findings) {
    let by = if source.is_empty() { String::new() } else { format!(" ({source})") };
    let runs = |ppm: i64| format!("this machine's clock runs {} than its hardware counts{by}", difference(ppm));
    match rate {
        Rate::Unknown => {
            findings.skipped(CLOCK_CHECK, "unknown: this process was held up while it looked at the clocks");
        }
        Rate::Beyond(ppm) | Rate::Off(ppm) => {
            let is_beyond = matches!(rate, Rate::Beyond(_));
            let unless = if is_beyond { "" } else { " if another clock is off by as much in the other direction" };
            let text =
                format!("{}; two jobs may run at once{unless}: leases need rates within 1 % of each other", runs(ppm));
            findings.add(if is_beyond { Fail } else { Warn }, CLOCK_CHECK, &text, Some(FIX.to_owned()));
        }
        Rate::Near(_) if INTERRUPTS.contains(&source) => {
            let text = format!(
                "this machine's clock counts interrupts{by}: if some are lost it runs slower, and leases depend on \
                 its rate"
            );
            findings.warn(CLOCK_CHECK, text, Some(format!("write another source of {AVAILABLE} to {CLOCK_SOURCE}")));
        }
        Rate::Near(0) => findings.ok(CLOCK_CHECK, format!("this machine's clock runs as its hardware counts{by}")),
        Rate::Near(ppm) => findings.ok(CLOCK_CHECK, runs(ppm)),
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
    use crate::command::doctor::findings::page_of;
    use crate::command::output::Style;

    #[test]
    fn a_missing_requirement_of_a_candidate_fails_with_its_fix() {
        for check in ["threads", "address-space", "proc"] {
            let text = page_of(|findings| findings.check(check, Err("too little of it"), Fail, Some("ulimit")));
            assert!(
                text.starts_with(&format!("FAIL  {check}  too little of it\n")) && text.contains("ulimit"),
                "{text}"
            );
        }
        assert_eq!(page_of(|findings| findings.check("proc", Ok::<_, &str>("fine"), Fail, None)), "ok    proc  fine\n");
    }

    #[test]
    fn a_call_that_is_refused_is_named_and_nothing_is_started() {
        let refused = [("timerfd_create", io::Error::from_raw_os_error(1))];
        let text = page_of(|findings| start(&refused, findings));
        assert!(text.starts_with("FAIL  system-calls  timerfd_create fails ("), "{text}");
        assert!(
            text.contains("fix: allow timerfd_create in the sandbox (seccomp)") && !text.contains("guard "),
            "{text}"
        );
    }

    /// Perhaps by the candidate that runs with these options.
    #[test]
    fn an_address_in_use_is_a_warning_and_one_that_is_not_here_fails() {
        let of = |host: &str, port| {
            let address = Listen { host: host.to_owned(), port, shown: "--listen HERE".to_owned() };
            page_of(|findings| listen(&address, findings))
        };
        let bound = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = bound.local_addr().unwrap().port();
        let text = of("127.0.0.1", port);
        assert!(text.starts_with("WARN  listen  --listen HERE: address already in use, perhaps by the "), "{text}");
        assert_eq!(of("127.0.0.1", 0), "ok    listen  the address can be bound\n");
        let text = of("192.0.2.1", 0);
        assert!(text.starts_with("FAIL  listen  --listen HERE: "), "{text}");
    }

    #[test]
    fn a_weaker_guard_is_a_warning() {
        let text = page_of(|findings| lock(false, findings));
        assert!(text.starts_with("WARN  memory-lock  ") && text.contains("LimitMEMLOCK=infinity"), "{text}");
        let text = page_of(|findings| pidfd(Err(io::Error::from_raw_os_error(38)), findings));
        assert!(text.starts_with("WARN  pidfd  no descriptors of processes ("), "{text}");
        let text = page_of(|findings| group(false, None, findings));
        assert!(text.starts_with("WARN  control-group  ") && text.contains("Delegate=yes"), "{text}");
        let with_right = page_of(|findings| group(false, Some("with CAP_KILL"), findings));
        assert!(with_right.starts_with("ok    control-group  none for the job; with CAP_KILL"), "{with_right}");
    }

    #[test]
    fn a_limit_of_memory_is_reported_with_its_effect() {
        let of = |bytes, kills_all| {
            let found = MemoryLimit { file: "/sys/fs/cgroup/memory.max".into(), bytes, kills_all };
            page_of(|findings| limit(Some(found), findings))
        };
        assert!(
            of(16 << 20, false).starts_with("WARN  memory-limit  16 MiB for neli-run, "),
            "{}",
            of(16 << 20, false)
        );
        assert!(of(512 << 20, true).contains("OOMPolicy=continue"), "{}", of(512 << 20, true));
        assert!(of(512 << 20, false).starts_with("ok    memory-limit  512 MiB "), "{}", of(512 << 20, false));
        assert_eq!(page_of(|findings| limit(None, findings)), "ok    memory-limit  no limit of memory\n");
    }

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
