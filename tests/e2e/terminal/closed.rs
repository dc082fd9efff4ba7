//! A terminal that is closed.

use super::*;

with_both_shells! {
    /// The terminal is closed: the job ends and the term is released, even if the job ignores SIGHUP.
    fn a_closed_terminal(shell) {
        for job in ["echo waits; exec sleep 1000".to_owned(), format!("trap '' HUP; echo waits; {ENDLESS}")] {
            let mut person = Person::new(shell, &job);
            person.terminal.type_line("./lead");
            person.terminal.await_text("waits");
            person.terminal.close();
            person.log.await_event("released");
            person.await_nobody();
        }
    }

    /// The shell is killed, and with it its session: the kernel hangs up the terminal, and tells only the job.
    fn a_killed_shell(shell) {
        let mut person = Person::of(Elector::Log, shell, "echo waits; exec sleep 1000", |candidate| {
            candidate.option("--restart", "always")
        });
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.terminal.shell().signal(Signal::SIGKILL);
        assert_eq!(person.log.await_event("released").text("why"), "stopped");
        person.await_nobody();
    }

    /// The log reports that the terminal was closed, with and without the foreground of the job.
    fn a_closed_terminal_is_reported(shell) {
        for line in ["./lead", "./lead | cat"] {
            let mut person = Person::new(shell, r#"exec "$WITNESS" "$TESTIMONY""#);
            let command = person.election.witness().command();
            let [witness, testimony] = &command[..] else { panic!("{command:?}") };
            let (witness, testimony) = (witness.display(), testimony.display());
            person.terminal.run(&format!("export WITNESS={witness} TESTIMONY={testimony}"));
            person.terminal.type_line(line);
            let term = person.log.await_event("leading").number("term");
            person.election.await_witness(term);
            person.terminal.close();
            person.log.await_event("released");
            assert!(person.election.testimony().signals().any(|line| line.event == Event::Signal(1)));
            person.await_nobody();
        }
    }

    /// The terminal is closed while the candidate stands by.
    fn a_closed_terminal_while_standing_by(shell) {
        let mut person = Person::new(shell, "exit 0");
        let mut leader = person.election.candidate().start();
        leader.await_lead();
        person.terminal.type_line("./lead");
        person.log.await_event("standby");
        person.terminal.close();
        assert_eq!(person.log.await_event("exiting").number("status"), 129);
        person.await_nobody();
        person.election.close([leader]);
    }

    /// The terminal is closed while only a hook is left after a stop. This counts as a second stop, so the exit does not wait for the hook.
    fn a_closed_terminal_at_the_end(shell) {
        let mut person = Person::of(Elector::Log, shell, "echo waits; exec sleep 1000", |candidate| {
            // A stop that comes too soon after the first one would count as the same stop.
            candidate.option("--on-standby", r#"test -z "$NELI_WHY" || { sleep 0.6; echo > hooked; exec sleep 600; }"#)
        });
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.supervisor().signal(Signal::SIGTERM);
        let hooked = person.file("hooked");
        wait::until_true("the hook", || hooked.exists());
        person.terminal.close();
        assert_eq!(person.log.await_event("exiting").number("status"), 143);
        assert!(!person.log.text().contains("hook_failed"), "{}", person.log.text());
        person.await_nobody();
    }

    /// With `nohup` candidate and job continue.
    fn nohup(shell) {
        let mut person = Person::new(shell, "echo waits; exec sleep 1000");
        person.terminal.run("nohup ./lead >out 2>&1 &");
        let job = person.await_job();
        let supervisor = person.supervisor();
        person.terminal.close();
        let shell = person.terminal.shell();
        wait::until_true("a shell that has gone with its terminal", || !shell.lives());
        assert!(supervisor.lives() && job.lives());
        supervisor.signal(Signal::SIGTERM);
        assert_eq!(person.log.await_event("released").text("why"), "stopped");
        person.await_nobody();
    }
}
