//! Ctrl-C, Ctrl-\ and Ctrl-Z.

use super::*;

with_both_shells! {
    /// Ctrl-C kills the job, and the shell ends the whole command line.
    fn ctrl_c(shell) {
        let mut person = Person::new(shell, "echo waits; exec sleep 1000");
        person.terminal.type_line("./lead; echo went on");
        person.terminal.await_text("waits");
        person.terminal.press(Ctrl::C);
        let text = person.terminal.await_prompt();
        assert_eq!(person.log.await_event("released").text("why"), "stopped");
        assert_eq!(person.log.await_event("exiting").number("status"), 130);
        assert!(!text.contains("went on\r\n"), "{text}");
        assert_eq!(person.status(), 130);
        person.assert_as_before();
    }

    /// A job that catches SIGINT and exits with 130 counts as interrupted as well.
    fn ctrl_c_that_is_caught(shell) {
        let mut person = Person::new(shell, &format!("trap 'exit 130' INT; echo waits; {ENDLESS}"));
        person.terminal.type_line("./lead; echo went on");
        person.terminal.await_text("waits");
        person.terminal.press(Ctrl::C);
        let text = person.terminal.await_prompt();
        assert!(!text.contains("went on\r\n"), "{text}");
        assert_eq!(person.status(), 130);
        person.assert_as_before();
    }

    /// A job that continues has handled SIGINT itself, so the shell does not get the signal.
    fn ctrl_c_that_the_job_outlives(shell) {
        let job = "trap 'echo caught' INT; echo waits; until [ -e go ]; do sleep 0.05; done; exit 5";
        let mut person = Person::new(shell, job);
        person.terminal.type_line("./lead; echo went on");
        person.terminal.await_text("waits");
        for _ in 0..2 {
            person.terminal.press(Ctrl::C);
            person.terminal.await_text("caught");
        }
        executable(&person.file("go"), "");
        person.terminal.await_text("went on\r\n");
        assert_eq!(person.log.await_event("released").text("why"), "exited");
        person.terminal.await_prompt();
        person.assert_as_before();
    }

    /// Ctrl-C ends the command line, with every restart policy.
    fn ctrl_c_under_a_restart_policy(shell) {
        for job in ["echo waits; exec sleep 1000".to_owned(), format!("trap 'exit 130' INT; echo waits; {ENDLESS}")] {
            let job = format!("[ $NELI_ATTEMPT -gt 1 ] || exit 3; {job}");
            let always = |candidate: Candidate| candidate.option("--restart", "always").option("--restart-delay", "0");
            let mut person = Person::of(Elector::Log, shell, &job, always);
            person.interrupts_a_script(shell);
        }
    }

    /// Between two runs `neli-run` has the foreground.
    fn ctrl_c_between_two_runs(shell) {
        let always = |candidate: Candidate| candidate.option("--restart", "always").option("--restart-delay", "1h");
        let mut person = Person::of(Elector::Log, shell, "exit 3", always);
        person.terminal.type_line("./lead");
        person.log.await_event("restarting");
        assert_eq!(person.terminal.foreground(), group_of(person.supervisor()));
        person.terminal.press(Ctrl::C);
        person.terminal.await_prompt();
        assert_eq!(person.log.await_event("released").text("why"), "stopped");
        assert_eq!(person.status(), 130);
        person.assert_as_before();
    }

    /// A script that runs it ends too, with each reaction of the job to the signal.
    fn ctrl_c_ends_the_script(shell) {
        for job in ["echo waits; exec sleep 1000".to_owned(), format!("trap 'exit 130' INT; echo waits; {ENDLESS}")] {
            let mut person = Person::new(shell, &job);
            person.interrupts_a_script(shell);
        }
    }

    /// If the job does not have the foreground, `neli-run` gets the signal. The script ends too, with any exit status of the job.
    fn ctrl_c_ends_the_script_without_the_foreground(shell) {
        for job in ["echo waits; exec sleep 1000".to_owned(), format!("trap 'exit 0' TERM; echo waits; {ENDLESS}")] {
            let mut person = Person::new(shell, &job);
            executable(&person.file("around"), "./lead </dev/null; echo went on");
            person.terminal.type_line(&format!("{} ./around", shell.name()));
            person.terminal.await_text("waits");
            person.terminal.press(Ctrl::C);
            let text = person.terminal.await_prompt();
            assert!(!text.contains("went on"), "{text}");
            assert_eq!(person.status(), 130);
            assert_eq!(person.log.await_event("released").text("why"), "stopped");
            assert_eq!(person.log.await_event("exiting").number("status"), 130);
            person.assert_as_before();
        }
    }

    /// Ctrl-C at any moment of a start, with the foreground in any process.
    fn ctrl_c_during_a_start(shell) {
        let mut person = Person::new(shell, "exec sleep 1000");
        executable(&person.file("around"), "./lead; echo went on");
        for step in 0..24 {
            person.terminal.type_line(&format!("{} ./around", shell.name()));
            // Before its exec the child is still the shell, and Dash loses a Ctrl-C between its fork and the exec.
            person.log.await_event("started");
            wait::pause(Duration::from_millis(6 * step));
            person.terminal.press(Ctrl::C);
            let text = person.terminal.await_prompt();
            assert!(!text.contains("went on"), "step {step}: {text}");
            assert_eq!(person.status(), 130, "step {step}");
        }
        person.assert_as_before();
    }

    /// One of many jobs has got the foreground, since it reads. Ctrl-C ends the whole command, and not its role alone.
    fn ctrl_c_to_one_of_many_jobs(shell) {
        let job = "[ $NELI_ROLE = 1 ] || { echo waits; read line; }; exec sleep 1000";
        let roles = |candidate: Candidate| candidate.option("--roles", "2");
        let mut person = Person::of(Elector::Log, shell, job, roles);
        person.terminal.type_line("./lead; echo went on");
        person.terminal.await_text("waits");
        let others = [person.terminal.shell().pid, group_of(person.supervisor())];
        wait::until_true("a job in the foreground", || !others.contains(&person.terminal.foreground()));
        person.terminal.press(Ctrl::C);
        let text = person.terminal.await_prompt();
        assert!(!text.contains("went on\r\n"), "{text}");
        assert_eq!(person.status(), 130);
        person.assert_as_before();
    }

    /// While standing by `neli-run` has the foreground, and the script ends too.
    fn ctrl_c_while_standing_by(shell) {
        let mut person = Person::new(shell, "exit 0");
        let mut leader = person.election.candidate().start();
        leader.await_lead();
        executable(&person.file("around"), "./lead; echo went on");
        person.terminal.type_line(&format!("{} ./around", shell.name()));
        person.log.await_event("standby");
        person.terminal.press(Ctrl::C);
        let text = person.terminal.await_prompt();
        assert!(!text.contains("went on"), "{text}");
        assert_eq!(person.status(), 130);
        assert_eq!(person.log.await_event("exiting").number("status"), 130);
        person.assert_as_before();
        person.election.close([leader]);
    }

    /// Ctrl-\.
    fn ctrl_backslash(shell) {
        let mut person = Person::new(shell, "ulimit -c 0; echo waits; exec sleep 1000");
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.terminal.press(Ctrl::Backslash);
        person.terminal.await_prompt();
        assert_eq!(person.log.await_event("job_exited").number("signal"), 3);
        assert_eq!(person.status(), 131);
        person.assert_as_before();
    }

    /// Ctrl-Z: the term is released before the process stops, another candidate leads meanwhile, and after `fg` it stands by again.
    fn ctrl_z(shell) {
        let job = r#"stty -echo; echo waits; read line; echo "read <$line>""#;
        let mut person = Person::of(Elector::Group, shell, job, |candidate| candidate);
        person.terminal.type_line("./lead");
        let term = person.log.await_event("leading").number("term");
        person.terminal.await_text("waits");
        person.terminal.press(Ctrl::Z);
        person.terminal.await_prompt();
        assert_eq!(person.log.await_event("stopping").text("why"), "suspended");
        assert_eq!(person.log.await_event("released").text("why"), "suspended");
        let supervisor = person.supervisor();
        assert!(supervisor.is_stopped());
        assert_eq!(person.terminal.foreground(), person.terminal.shell().pid);
        assert_eq!(person.terminal.modes(), person.modes);

        let mut other = person.election.candidate().start();
        let next = other.await_lead();
        assert!(next > term);
        person.election.await_witness(next);
        other.signal(Signal::SIGTERM);
        assert_eq!(other.status(), 0);

        person.terminal.type_line("fg");
        person.log.await_event("leading");
        person.terminal.await_text("waits");
        let job = person.await_job();
        assert_eq!(person.terminal.foreground(), job.pid);
        person.terminal.type_line("words");
        person.terminal.await_text("read <words>");
        person.terminal.await_prompt();
        assert_eq!(person.status(), 0);
        person.assert_as_before();
        person.election.close([]);
    }

    /// While standing by there is nothing to release. Events that happen while it is stopped are handled afterwards.
    fn ctrl_z_while_standing_by(shell) {
        let mut person = Person::new(shell, "exit 0");
        let mut leader = person.election.candidate().start();
        leader.await_lead();
        person.terminal.type_line("./lead");
        person.log.await_event("standby");
        person.terminal.press(Ctrl::Z);
        person.terminal.await_prompt();
        assert!(person.supervisor().is_stopped());
        person.terminal.type_line("fg");
        person.log.await_event("standby");
        person.terminal.press(Ctrl::Z);
        person.terminal.await_prompt();
        person.terminal.run("kill %1");
        // Dash continues a stopped process only by `fg`.
        person.terminal.type_line("fg");
        assert_eq!(person.log.await_event("exiting").number("status"), 143);
        person.terminal.await_prompt();
        person.assert_as_before();
        person.election.close([leader]);
    }
}
