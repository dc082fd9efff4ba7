//! Signals to `neli-run`.

use std::process::Command;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::Wired;
use harness::wait;
use harness::witness::Event;
use nix::sys::signal::Signal;

use crate::listen::get;
use crate::{PROGRAM, election};

/// A stop while standing by: the status is 128 + n, so that `neli-run ... && next` does not continue.
#[test]
fn standing_by_each_stop_has_its_status() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    leader.await_lead();
    for (signal, status) in
        [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGQUIT, 131), (Signal::SIGUSR2, 128 + 12)]
    {
        let mut standby = election.candidate().option("--stop-signal", "USR2").start();
        standby.await_event("standby");
        standby.signal(signal);
        assert_eq!(standby.status(), status, "{signal}");
        assert_eq!(standby.await_event("exiting").text("from"), "neli-run");
        let received = standby.await_event("signal");
        assert_eq!((received.number("signal"), received.number("pid")), (signal as u64, std::process::id().into()));
    }
    election.close([leader]);
}

/// Signals that are meant for the job are ignored while none runs.
#[test]
fn standing_by_other_signals_do_nothing() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    leader.await_lead();
    let mut standby = election.candidate().start();
    standby.await_event("standby");
    for signal in [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGWINCH, Signal::SIGCONT]
    {
        standby.signal(signal);
    }
    leader.signal(Signal::SIGTERM);
    standby.await_lead();
    election.close([leader, standby]);
}

/// A job that handles SIGTTIN and SIGTTOU gets them like any other signal (some servers change their number of workers by them).
#[test]
fn ttin_and_ttou_from_a_process_are_passed_to_the_job() {
    let election = election(Elector::Log);
    let signals_received = election.directory().join("heard");
    let job =
        r#"trap 'echo in >>"$0"' TTIN; trap 'echo out >>"$0"' TTOU; echo ready >>"$0"; while :; do sleep 0.02; done"#;
    let received_text = || std::fs::read_to_string(&signals_received).unwrap_or_default();
    let mut run =
        election.candidate().job(["sh", "-c", job, signals_received.to_str().expect("a path in UTF-8")]).start();
    run.await_lead();
    wait::until_true("a job that listens", || received_text() == "ready\n");
    run.signal(Signal::SIGTTIN);
    wait::until_true("TTIN", || received_text() == "ready\nin\n");
    run.signal(Signal::SIGTTOU);
    wait::until_true("TTOU", || received_text() == "ready\nin\nout\n");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    election.close([run]);
}

/// Waits until a further stop signal counts as a second one: two within 500 ms count as one.
pub(crate) fn pause_between_stops() {
    wait::pause(Duration::from_millis(600));
}

/// The second SIGTERM kills the job. One that follows at once does not count as a second one, because GNU `timeout` sends two.
#[test]
fn a_second_sigterm_kills_the_job_unless_it_follows_at_once() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--daemon");
    let mut leader = election.candidate().job(job.command()).option("--stop-timeout", "5m").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let main = leader.await_job();

    let first = wait::now();
    leader.signal(Signal::SIGTERM);
    leader.await_event("stopping");
    leader.signal(Signal::SIGTERM);
    // On a machine that stalls they are not close together.
    let apart = Duration::from_nanos(wait::now() - first);
    pause_between_stops();
    assert!(main.lives() || apart > Duration::from_millis(400), "two signals that are close together count as one");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    election.assert_gone(term);
    leader.await_event("job_killed");
    assert_eq!(leader.await_release().text("why"), "stopped");
    election.close([leader]);
}

/// SIGKILL is sent at the stop timeout, and not before.
#[test]
fn sigkill_is_sent_at_the_stop_timeout_and_not_before() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop");
    let mut leader = election.candidate().job(job.command()).option("--stop-timeout", "700ms").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let asked = wait::now();
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    let killed = leader.await_event("job_killed").at;
    assert!(election.testimony().signals().any(|line| line.event == Event::Signal(15)), "it was asked before");
    let between = Duration::from_nanos(killed - asked);
    assert!(between >= Duration::from_millis(700), "killed {between:?} after the signal");
    election.close([leader]);
}

/// `--stop-timeout 0` sends no stop signal.
#[test]
fn a_stop_timeout_of_zero_sends_no_stop_signal() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().option("--stop-timeout", "0").start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    assert_eq!(election.testimony().signals().count(), 0);
    election.close([leader]);
}

/// `--stop-signal` is the signal that the job gets, and it stops `neli-run` as SIGTERM does.
#[test]
fn the_job_gets_the_stop_signal() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().option("--stop-signal", "INT").start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    let signals_received: Vec<_> = signals_received(&election).into_iter().filter(|number| *number != 18).collect();
    assert_eq!(signals_received, [2]);
    election.close([leader]);
}

/// A job that is stopped (SIGSTOP) is logged, since it holds the lead and does nothing, and is continued when it gets the stop signal.
#[test]
fn a_stopped_job_is_told_of_and_can_end_by_itself() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    let job = leader.await_job();
    job.signal(Signal::SIGSTOP);
    wait::until_true("a stopped job", || job.is_stopped());
    wait::until_true("the warning", || leader.warnings_with("the job's main process is stopped (SIGSTOP)").len() == 1);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    election.close([leader]);
}

/// Signals that `neli-run` does not use itself go to the job, also real-time signals.
#[test]
fn other_signals_reach_the_job() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop");
    let mut leader = election.candidate().job(job.command()).option("--stop-timeout", "1s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.await_job();
    // The test waits for each of them, because signals that are sent together may arrive in any order.
    for number in [1, 10, 12, 14, 28, 3, 40] {
        send(&leader, number);
        wait::until_true(&format!("signal {number} at the job"), || signals_received(&election).contains(&number));
    }
    assert!(leader.events("stopping").is_empty());
    election.close([leader]);
}

/// Every catchable signal without a meaning for `neli-run` reaches the main process, real-time ones included. The process dies of those
/// whose default action is to terminate.
#[test]
fn every_signal_reaches_the_job() {
    let election = election(Elector::Log);
    // Signals that can't be caught, the stop signal, the terminal's, SIGCHLD, those that end no process (tested above), and the C
    // library's own.
    let others = [9, 19, 2, 15, 20, 21, 22, 17, 18, 23, 28, 32, 33];
    let candidate = election.candidate().job(["sleep", "1000"]).directory(election.directory());
    let candidate = candidate.option("--restart", "always").option("--restart-delay", "0");
    let mut run = candidate.option("--restart-limit", "none").start_behind(&["env", "--default-signal"]);
    for number in (1..=64).filter(|number| !others.contains(number)) {
        run.await_event("job_started");
        send(&run, number);
        let exited = run.await_event("job_exited");
        assert_eq!(exited.fields["signal"].as_i64(), Some(number));
    }
    // Between two runs the status would be that of the last one.
    run.await_event("job_started");
    assert!(run.events("stopping").is_empty());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    election.close([run]);
}

/// Real-time signals that come faster than they can be handled, without end, keep neither the lease from being extended nor a stop from being
/// handled.
#[test]
fn signals_without_end_do_not_delay_the_rest() {
    let election = election(Elector::Log);
    let candidate = election.candidate().lease("4s").job(["sleep", "600"]);
    // The job inherits that it ignores the signal.
    let mut run = candidate.start_behind(&["env", "--ignore-signal=40"]);
    run.await_event("job_started");
    let flood = format!("1 while kill(40, {})", run.process().pid);
    let mut floods = [(); 2].map(|()| Command::new("perl").args(["-e", &flood]).spawn().expect("perl"));
    let beats = || election.verdicts().iter().filter(|line| line["record"]["kind"] == "beat").count();
    let before = beats();
    wait::until_true("a lease that is extended", || beats() > before + 5);
    assert!(run.events("fenced").is_empty() && run.events("guard_lost").is_empty(), "{run:?}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    for flood in &mut floods {
        flood.wait().expect("it ends with its target");
    }
    election.close([run]);
}

/// The guard is stopped for a while, and gets more signals than its socket can contain. Neither a stop among them nor the signals before
/// and after it are lost.
#[test]
fn a_stop_reaches_a_guard_that_was_stopped() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().lease("50s").job(election.witness().with("--ignore-stop").command()).start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.await_job();
    let hold = leader.guard().hold();
    send_often(&leader, 40, 1_000);
    send(&leader, 41);
    leader.signal(Signal::SIGTERM);
    leader.await_event("stopping");
    send(&leader, 42);
    drop(hold);
    for number in [15, 40, 41, 42] {
        wait::until_true(&format!("signal {number} at the job"), || signals_received(&election).contains(&number));
    }
    // The job ignores the stop; the second one kills it.
    pause_between_stops();
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 137);
    election.close([leader]);
}

/// `timeout` sends SIGTERM to its child and to the group: `neli-run` gets two, and the job gets one.
#[test]
fn two_stops_at_once_are_one() {
    let election = election(Elector::Log);
    let job = election.witness().set("--linger-ms", 300).set("--status", 3);
    let mut run = election.candidate().job(job.command()).start_behind(&["timeout", "--preserve-status", "1h"]);
    let term = run.await_lead();
    election.await_witness(term);
    // To `timeout`, which does the same as when the time is over.
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 3);
    assert!(run.events("job_killed").is_empty());
    assert_eq!(run.await_release().text("why"), "stopped");
    // `timeout` sends SIGCONT too, which is passed on to the job.
    let signals_received: Vec<_> = signals_received(&election).into_iter().filter(|number| *number != 18).collect();
    assert_eq!(signals_received, [15]);
    election.close([run]);
}

/// Signals that are ignored at the start (`nohup`, a shell's `&`) stay ignored: `neli-run` and the job continue.
#[test]
fn an_ignored_signal_stays_ignored() {
    let election = election(Elector::Log);
    // `sleep` handles no signal. It continues because it inherits the ignored ones.
    let candidate = election.candidate().job(["sleep", "1000"]);
    let ignoring = ["env", "--ignore-signal=HUP,INT,QUIT,TSTP,PIPE"];
    let mut run = candidate.start_behind(&ignoring);
    run.await_lead();
    let job = run.await_job();
    for number in [1, 2, 3, 20] {
        send(&run, number);
    }
    // It is passed on to the job, which ignores it.
    send(&run, 13);
    wait::pause(Duration::from_millis(500));
    assert!(job.lives() && !job.is_stopped());
    assert!(run.events("stopping").is_empty() && run.events("job_exited").is_empty(), "{run:?}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    election.close([run]);
}

/// The job can't get a stop signal that it ignores as well.
#[test]
fn a_stop_signal_that_is_ignored_at_the_start_is_warned_of() {
    let election = election(Elector::Log);
    let candidate = election.candidate().job(["sleep", "1000"]);
    let candidate = candidate.option("--stop-signal", "INT").option("--stop-timeout", "1s");
    let mut run = candidate.start_behind(&["env", "--ignore-signal=INT"]);
    run.await_lead();
    assert_eq!(run.warnings_with("--stop-signal SIGINT: it was ignored when neli-run started").len(), 1);
    run.await_job();
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 137);
    election.close([run]);
}

/// stderr is a pipe without a reader. The SIGPIPE of our own log lines is not passed on to the job.
#[test]
fn sigpipe_of_the_log_is_not_passed_on_to_the_job() {
    let election = election(Elector::Log);
    let job = election.witness().set("--linger-ms", 300).set("--status", 4);
    let closed = ["bash", "-c", r#"exec "$@" 2> >(exec true)"#, "bash"];
    let mut run = election.candidate().flag("-v").job(job.command()).start_behind(&closed);
    let term = wait::until("a job", || election.testimony().spans().keys().next().copied());
    election.await_witness(term);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 4);
    assert!(!signals_received(&election).contains(&13), "SIGPIPE");
    election.close([run]);
}

/// A stop at any moment after the start ends the candidate in order. If Kafka runs, no term is left without a release.
#[test]
fn a_stop_at_any_moment_ends_the_candidate_in_order() {
    const STEPS: u64 = 48;
    let election = election(Elector::Log);
    // This creates the topic, and its first reader has finished.
    let mut first = election.candidate().job(["true"]).start();
    assert_eq!(first.status(), 0);
    let (mut led, mut step) = (0, 0);
    // On a busy machine none may lead by the last of these steps.
    while step < STEPS || led == 0 {
        let candidate = election.candidate().option("--restart", "always").option("--restart-delay", "10ms");
        // The later stops come while the job runs, ends, or is about to be restarted.
        let job = election.witness().set("--end-ms", 20).set("--status", 0);
        let mut run = candidate.option("--restart-limit", "none").job(job.command()).start();
        wait::pause(Duration::from_millis(8 * step));
        run.signal(Signal::SIGTERM);
        let status = run.status();
        let terms = run.events("leading").len();
        assert!(terms <= 1);
        assert!(status == 143 || (status == 0 && terms == 1), "step {step}: {status}, {run:?}");
        for released in run.events("released") {
            assert_eq!(released.fields["delivered"].as_bool(), Some(true), "step {step}");
        }
        led += terms;
        step += 1;
    }
    let verdicts = election.verdicts();
    let effective = |kind: &str| {
        verdicts.iter().filter(|line| line["record"]["kind"] == kind && line["verdict"] == "effective").count()
    };
    assert_eq!(effective("claim"), effective("release"), "each term has one release");
    election.close([first]);
}

/// Kafka is down when the release must be delivered. The candidate waits for at most a lease, and a second stop ends the wait.
#[test]
fn a_stop_while_kafka_is_down_waits_for_a_lease_at_most() {
    let wired = Wired::take();
    for impatient in [false, true] {
        let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
        let lease = if impatient { "50s" } else { "2s" };
        let mut run = election.candidate().lease(lease).start();
        let term = run.await_lead();
        election.await_witness(term);
        wired.freeze();
        run.signal(Signal::SIGTERM);
        run.await_event("job_exited");
        if impatient {
            pause_between_stops();
            run.signal(Signal::SIGTERM);
        }
        assert_eq!(run.status(), 0, "the exit status of the job, which was alive when SIGTERM came");
        let released = run.await_release();
        assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("stopped", Some(false)));
        election.assert_gone(term);
        wired.thaw();
    }
}

/// SIGWINCH, SIGCONT and SIGQUIT go to the whole group, SIGUSR1 only to the main process.
#[test]
fn some_signals_are_for_the_whole_group() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--child");
    let mut leader = election.candidate().job(job.command()).option("--stop-timeout", "100ms").start();
    leader.await_lead();
    leader.await_job();
    wait::until_true("a child", || election.testimony().lines.iter().any(|line| line.role == "child"));
    for (number, both) in [(10, false), (28, true), (3, true), (18, true)] {
        send(&leader, number);
        let roles = || -> Vec<_> {
            let testimony = election.testimony();
            testimony
                .signals()
                .filter(|line| line.event == Event::Signal(number))
                .map(|line| line.role.clone())
                .collect()
        };
        wait::until_true(&format!("signal {number} at the job"), || roles().len() == if both { 2 } else { 1 });
        assert!(both || roles() == ["main"]);
    }
    election.close([leader]);
}

/// SIGXCPU of the kernel is about the processor time of `neli-run` itself. It ended jobs that had used none.
#[test]
fn a_limit_of_processor_time_that_neli_run_reaches_is_not_passed_to_the_job() {
    let election = election(Elector::Log);
    let mut run = election.candidate().option("--listen", "127.0.0.1:0").start_behind(&["prlimit", "--cpu=1:60"]);
    run.await_lead();
    run.await_job();
    let address = run.await_event("listening").text("address").to_owned();
    wait::until_true("the warning", || {
        // Each answer uses some of that time.
        (0..50).for_each(|_| drop(get(&address, "/metrics")));
        run.events("warning").iter().any(|warning| warning.text("message").contains("processor time"))
    });
    assert_eq!(run.events("job_exited").len(), 0);
    assert!(!signals_received(&election).contains(&24));
    election.close([run]);
}

/// Sends a signal by its number.
fn send(candidate: &Running, number: i64) {
    let sent = Command::new("kill").arg(format!("-{number}")).arg(candidate.process().pid.to_string()).status();
    assert!(sent.expect("every Linux has kill").success());
}

/// Sends a signal many times, as fast as possible.
fn send_often(candidate: &Running, number: i64, times: usize) {
    let pid = candidate.process().pid;
    let script = format!("i=0; while [ $i -lt {times} ]; do kill -{number} {pid}; i=$((i + 1)); done");
    let sent = Command::new("sh").args(["-c", &script]).status();
    assert!(sent.expect("every Linux has a shell").success());
}

/// The signals that witnesses received.
fn signals_received(election: &TestElection) -> Vec<i64> {
    let numbers = election.testimony().lines.into_iter().filter_map(|line| match line.event {
        Event::Signal(number) => Some(number),
        Event::Beat | Event::End(_) | Event::Start(_) => None,
    });
    numbers.collect()
}
