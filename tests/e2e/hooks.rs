//! Hooks: each runs at its event with its environment, and delays nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;
use crate::signals::pause_between_stops;

/// A candidate whose hooks write their environment to a file per event.
struct Noted {
    candidate: Candidate,
    directory: PathBuf,
}

impl Noted {
    fn new(election: &TestElection, name: &str) -> Self {
        let directory = election.directory().join(name);
        fs::create_dir(&directory).expect("the directory can be created");
        // Each hook writes its line in one step with a number, so that lines are whole and ordered.
        let line = format!(
            "cd {}; env -0 > part.$$; n=1; until ln part.$$ $NELI_EVENT.$n 2>/dev/null; do n=$((n+1)); done",
            directory.display()
        );
        let candidate = election.candidate().option("--name", name);
        let candidate = ["--on-lead", "--on-exit", "--on-standby", "--on-fence"]
            .into_iter()
            .fold(candidate, |candidate, hook| candidate.option(hook, &line));
        Self { candidate, directory }
    }

    /// The environment of the nth hook of this event.
    fn await_hook(&self, event: &str, nth: usize) -> BTreeMap<String, String> {
        let file = self.directory.join(format!("{event}.{nth}"));
        wait::until(&format!("hook {event} {nth}"), || environment(&file))
    }

    /// The environment of the hook of this event and run. Hooks of two runs go on side by side, so they may write in another order.
    fn await_hook_of_run(&self, event: &str, attempt: &str) -> BTreeMap<String, String> {
        wait::until(&format!("hook {event} of run {attempt}"), || {
            let hooks = (1..).map_while(|nth| environment(&self.directory.join(format!("{event}.{nth}"))));
            hooks.into_iter().find(|variables| variables["NELI_ATTEMPT"] == attempt)
        })
    }

    /// How many hooks of this event have run.
    fn count(&self, event: &str) -> usize {
        (1..100).take_while(|nth| self.directory.join(format!("{event}.{nth}")).exists()).count()
    }
}

/// What a hook has written to this file, if it has.
fn environment(file: &Path) -> Option<BTreeMap<String, String>> {
    let text = fs::read_to_string(file).ok()?;
    let pairs = text.split_terminator('\0').filter_map(|pair| pair.split_once('='));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The process that has written its pid to this file.
fn await_process(pid: &Path) -> Process {
    wait::until("a process", || Process::find(fs::read_to_string(pid).ok()?.trim().parse().ok()?))
}

/// The hooks of a lead, of its end, and of standing by.
#[test]
fn each_runs_at_its_event() {
    let election = election(Elector::Group);
    let first_hooks = Noted::new(&election, "first");
    let mut first = first_hooks.candidate.start();
    let term = first.await_lead().to_string();
    let variables = first_hooks.await_hook("lead", 1);
    for (name, value) in [
        ("NELI_EVENT", "lead"),
        ("NELI_WHY", ""),
        ("NELI_EPOCH", &*term),
        ("NELI_ATTEMPT", "1"),
        ("NELI_NAME", "first"),
        ("NELI_GROUP", &*election.group),
    ] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!variables.contains_key("NELI_LEASE_FD"));

    let second_hooks = Noted::new(&election, "second");
    let mut second = second_hooks.candidate.start();
    let variables = second_hooks.await_hook("standby", 1);
    assert_eq!((&*variables["NELI_EVENT"], &*variables["NELI_WHY"]), ("standby", ""));
    assert!(!variables.contains_key("NELI_EPOCH"), "it has not led");

    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    assert_eq!((first_hooks.count("lead"), first_hooks.count("fence")), (1, 0));
    let variables = first_hooks.await_hook("standby", first_hooks.count("standby"));
    assert_eq!(
        (&*variables["NELI_EVENT"], &*variables["NELI_WHY"], &*variables["NELI_EPOCH"]),
        ("standby", "stopped", &*term),
        "at exit"
    );

    let next = second.await_lead().to_string();
    assert_eq!(second_hooks.await_hook("lead", 1)["NELI_EPOCH"], next);
    second.signal(Signal::SIGKILL);
    second.await_silence();
    assert_eq!(second_hooks.count("standby"), 1, "who was killed runs none");
    election.close([first]);
}

/// After a loss of the lead, the hook for the fence runs, then that for standing by, and then the hook of the next lead.
#[test]
fn a_fence_runs_its_hook_and_then_the_standby_hook() {
    let election = election(Elector::Log);
    let hooks = Noted::new(&election, "only");
    let mut run = hooks.candidate.clone().lease("5s").start();
    let term = run.await_lead().to_string();
    assert_eq!(hooks.await_hook("lead", 1)["NELI_EPOCH"], term);
    run.guard().signal(Signal::SIGKILL);
    let variables = hooks.await_hook("fence", 1);
    assert_eq!(
        (&*variables["NELI_EVENT"], &*variables["NELI_WHY"], &*variables["NELI_EPOCH"]),
        ("fence", "guard-died", &*term)
    );
    assert_eq!(hooks.await_hook("standby", 1)["NELI_WHY"], "guard-died");
    let next = run.await_lead().to_string();
    assert_eq!(hooks.await_hook("lead", 2)["NELI_EPOCH"], next);
    election.close([run]);
}

/// A hook that hangs delays neither the lead, nor the fence and the following steps, nor a barrier, and is killed after ten seconds. A hook
/// that runs while a dead guard's job is killed does not count as part of that job.
#[test]
fn a_hook_that_hangs_delays_nothing() {
    let election = election(Elector::Log);
    let mut first = election.candidate().start();
    election.await_witness(first.await_lead());
    let pid = election.directory().join("pid");
    let hangs = format!("echo $$ > {}; exec sleep 600", pid.display());
    let second = election.candidate().option("--on-standby", &hangs).option("--on-lead", "exec sleep 600");
    let mut second = second.start();
    let hook = await_process(&pid);
    first.signal(Signal::SIGTERM);

    let term = second.await_lead();
    election.await_witness(term);
    second.guard().signal(Signal::SIGKILL);
    assert_eq!(second.await_release().text("why"), "guard-died");
    election.assert_gone(term);
    let next = second.await_lead();
    election.await_witness(next);

    // The supervisor ends the hooks of both times of standing by, and the guard that of the lead. They use separate timers, so on a busy
    // machine the order of the reports varies.
    let mut failed: Vec<_> = (0..3).map(|_| second.await_event("hook_failed")).collect();
    failed.sort_by_key(|event| event.text("hook").to_owned());
    for (event, hook) in failed.iter().zip(["lead", "standby", "standby"]) {
        assert_eq!((event.text("hook"), event.text("reason")), (hook, "took too long and was killed"));
    }
    wait::until_true("the hook's end", || !hook.lives());
    let before = fs::read_to_string(&pid).expect("two hooks have written it");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.await_release().text("why"), "stopped");
    election.assert_gone(next);
    // After a second stop the exit does not wait for the hook.
    wait::until_true("the last hook", || {
        fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n') && text != before)
    });
    pause_between_stops();
    second.signal(Signal::SIGTERM);
    assert_eq!(second.status(), 0);
    election.close([first, second]);
}

/// A barrier kills a hook that is still running, and so does the end of the job.
#[test]
fn the_jobs_end_ends_its_hook() {
    for ends_itself in [false, true] {
        let election = election(Elector::Log);
        let pid = election.directory().join("pid");
        let hook = format!("trap '' TERM; echo $$ > {}; sleep 600", pid.display());
        let job = format!("{}; exit 6", election.until_go_file());
        let candidate = election.candidate().option("--on-lead", &hook).option("--stop-timeout", "1h");
        let candidate = if ends_itself { candidate.job(["sh", "-c", &job]) } else { candidate };
        let mut run = candidate.start();
        let term = run.await_lead();
        let hook = await_process(&pid);
        if ends_itself {
            election.create_go_file();
        } else {
            election.await_witness(term);
            run.signal(Signal::SIGTERM);
        }
        run.await_release();
        assert!(!hook.lives());
        assert_eq!(run.status(), if ends_itself { 6 } else { 0 });
        assert!(run.events("hook_failed").is_empty() && run.events("job_killed").is_empty(), "{run:?}");
    }
}

#[test]
fn processes_that_leave_the_leads_hook_are_gone_before_the_release() {
    let election = election(Elector::Log);
    let daemon = election.witness().with("--ignore-stop").with("--daemon").command();
    let words: Vec<_> = daemon.iter().map(|word| word.to_string_lossy()).collect();
    // The hook ends once the other process has left its group.
    let hook = format!("setsid {} & until grep -q daemon {}; do sleep 0.01; done", words.join(" "), words[1]);
    let mut run = election.candidate().option("--on-lead", &hook).option("--stop-timeout", "300ms").start();
    let term = run.await_lead();
    wait::until_true("a daemon", || election.testimony().of(term).any(|line| line.role == "daemon"));
    run.signal(Signal::SIGTERM);
    run.await_release();
    election.assert_gone(term);
    election.close([run]);
}

/// The hook is killed with its group when the job ends by itself; what has left that group is asked to stop.
#[test]
fn processes_that_leave_a_hook_that_still_runs_end_with_the_job() {
    let election = election(Elector::Log);
    let pid = election.directory().join("pid");
    let hook = format!("setsid sh -c 'echo $$ > {}; exec sleep 600' & exec sleep 600", pid.display());
    let job = format!("{}; exit 6", election.until_go_file());
    let candidate = election.candidate().option("--on-lead", &hook).option("--stop-timeout", "1h");
    let mut run = candidate.job(["sh", "-c", &job]).start();
    let other = await_process(&pid);
    election.create_go_file();
    run.await_release();
    assert!(!other.lives());
    assert_eq!(run.status(), 6);
}

#[test]
fn a_failure_is_reported_and_changes_nothing() {
    let election = election(Elector::Log);
    let run =
        election.candidate().option("--on-lead", "echo out; echo err >&2; exit 3").option("--on-standby", "kill -9 $$");
    let mut run = run.start();
    let term = run.await_lead();
    election.await_witness(term);
    let failed = run.await_event("hook_failed");
    assert_eq!((failed.text("hook"), failed.text("reason")), ("lead", "exited with status 3"));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    let failed = run.await_event("hook_failed");
    assert_eq!((failed.text("hook"), failed.text("reason")), ("standby", "was ended by SIGKILL"));
    assert_eq!(run.strange_lines(), ["out", "err"], "its output is on our stderr");
    assert_eq!(run.output(), b"");
}

/// The supervisor's own hooks die with it.
#[test]
fn the_hooks_of_a_dead_supervisor_die() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    leader.await_lead();
    let pid = election.directory().join("pid");
    let hangs = format!("echo $$ > {}; exec sleep 600", pid.display());
    let mut standby = election.candidate().option("--on-standby", &hangs).start();
    standby.await_event("standby");
    let hook = await_process(&pid);
    standby.signal(Signal::SIGKILL);
    wait::until_true("the hook's end", || !hook.lives());
    election.close([leader]);
}

/// The hook of each run: its environment, with runs that fail, are ended by a signal, and can't be started.
#[test]
fn each_run_has_a_hook_behind_it() {
    let election = election(Elector::Log);
    let (hooks, job) = (Noted::new(&election, "first"), election.directory().join("job"));
    fs::write(&job, "#!/bin/sh\n[ $NELI_ATTEMPT = 1 ] && exit 3\nrm \"$0\"; kill -9 $$\n").expect("a script");
    fs::set_permissions(&job, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let candidate = hooks.candidate.clone().job([&job]).option("--restart", "always").option("--restart-delay", "50ms");
    let mut run = candidate.start();
    let term = run.await_lead().to_string();
    let ends = [("1", "NELI_EXIT", "3"), ("2", "NELI_SIGNAL", "9"), ("3", "NELI_EXIT", "127")];
    for (attempt, variable, value) in ends {
        let variables = hooks.await_hook_of_run("exit", attempt);
        let expected = [
            ("NELI_EVENT", "exit"),
            ("NELI_WHY", "exited"),
            ("NELI_EPOCH", &*term),
            ("NELI_ATTEMPT", attempt),
            ("NELI_RUN_SECONDS", "0"),
            (variable, value),
        ];
        let of_status = ["NELI_EXIT", "NELI_SIGNAL"].iter().filter(|name| variables.contains_key(**name)).count();
        assert_eq!(of_status, 1, "{variables:?}");
        assert_eq!(
            expected.map(|(name, _)| variables.get(name).map(String::as_str)),
            expected.map(|(_, value)| Some(value))
        );
    }
    election.close([run]);
}

/// A run that is stopped has a hook as well, for which the exit waits; a key and a window are in its environment.
#[test]
fn a_run_that_is_stopped_and_one_for_a_key_have_a_hook() {
    let election = election(Elector::Log);
    let hooks = Noted::new(&election, "stopped");
    let mut run = hooks.candidate.start();
    election.await_witness(run.await_lead());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    let variables = hooks.await_hook("exit", 1);
    assert_eq!((&*variables["NELI_WHY"], &*variables["NELI_EXIT"]), ("stopped", "0"));

    let hooks = Noted::new(&election, "key");
    let once = hooks.candidate.clone().job(["sh", "-c", "exit 4"]).option("--once", "k").option("--retries", "1");
    assert_eq!(once.start().status(), 4);
    let of_key = [1, 2].map(|nth| hooks.await_hook("exit", nth));
    let of_key = of_key.each_ref().map(|of| ["NELI_ONCE", "NELI_EXIT", "NELI_ATTEMPT"].map(|name| &*of[name]));
    assert_eq!(of_key, [["k", "4", "1"], ["k", "4", "2"]]);
    assert_eq!(hooks.count("exit"), 2);

    let hooks = Noted::new(&election, "window");
    let window = hooks.candidate.clone().job(["true"]).option("--window", "1d").option("--group", "nightly");
    assert_eq!(window.start().status(), 0);
    let variables = hooks.await_hook("exit", 1);
    let start = &variables["NELI_WINDOW_START"];
    assert!(start.ends_with("T00:00:00Z") && variables["NELI_ONCE"] == *start, "{variables:?}");
}

/// A hook that hangs delays neither the next run, nor a fence, nor a release, and is killed after ten seconds, or at a second stop.
#[test]
fn a_hook_of_a_run_that_hangs_delays_nothing() {
    let election = election(Elector::Log);
    let pid = election.directory().join("pid");
    let hangs = format!("echo $$ > {}; exec sleep 600", pid.display());
    let job = "[ $NELI_ATTEMPT = 1 ] && exit 1; exec sleep 100000";
    let candidate =
        election.candidate().job(["sh", "-c", job]).option("--on-exit", &hangs).option("--restart", "always");
    let mut run = candidate.option("--restart-delay", "50ms").start();
    let hook = await_process(&pid);
    wait::until_true("the next run", || run.count("job_started") == 2);
    run.guard().signal(Signal::SIGKILL);
    assert_eq!(run.await_release().text("why"), "guard-died");
    assert!(hook.lives(), "it is no process of the job");
    let failed = run.await_event("hook_failed");
    assert_eq!((failed.text("hook"), failed.text("reason")), ("exit", "took too long and was killed"));
    wait::until_true("the hook's end", || !hook.lives());

    // Its next lead: a run that fails, and one that is stopped while the first one's hook hangs.
    run.await_event("leading");
    wait::until_true("the next run", || run.count("job_started") == 4);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.await_release().text("why"), "stopped");
    let hook = await_process(&pid);
    assert!(hook.lives());
    pause_between_stops();
    run.signal(Signal::SIGTERM);
    run.status();
    wait::until_true("the hook's end", || !hook.lives());
}

#[test]
fn a_hook_of_a_run_that_is_absent_is_reported() {
    let election = election(Elector::Log);
    let mut run = election.candidate().job(["true"]).option("--on-exit", "/nowhere/mail").start();
    let failed = run.await_event("hook_failed");
    assert_eq!((failed.text("hook"), failed.text("reason")), ("exit", "exited with status 127"));
    assert_eq!(run.status(), 0);
}
