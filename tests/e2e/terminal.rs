//! The terminal: its foreground group, Ctrl-C, Ctrl-\ and Ctrl-Z, and its state afterwards, on a pseudoterminal with real shells.

use std::path::PathBuf;
use std::time::Duration;

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::process::Process;
use harness::terminal::{Ctrl, Log, Shell, Terminal, executable, script};
use harness::wait;
use harness::witness::Event;
use nix::sys::signal::Signal;
use nix::sys::termios::Termios;
use nix::unistd::{Pid, getpgid};

use crate::election;

/// A user at a terminal: `./lead` there is `neli-run`, with the job `./job`.
struct Person {
    election: TestElection,
    terminal: Terminal,
    log: Log,
    /// The terminal's modes before the first command.
    modes: Termios,
}

impl Person {
    fn new(shell: Shell, job: &str) -> Self {
        Self::of(Elector::Log, shell, job, |candidate| candidate)
    }

    fn of(elector: Elector, shell: Shell, job: &str, adjust: impl FnOnce(Candidate) -> Candidate) -> Self {
        let election = election(elector);
        let directory = election.directory().to_owned();
        let log = Log::new(&directory.join("log"));
        executable(&directory.join("job"), job);
        // A fence, which may happen on a busy machine with a short lease, is not tested here.
        let candidate =
            adjust(election.candidate().lease("30s")).option("--log-file", log.path()).job([directory.join("job")]);
        script(&directory.join("lead"), &candidate.words());
        let terminal = Terminal::new(shell, &directory);
        let modes = terminal.modes();
        Self { election, terminal, log, modes }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.election.directory().join(name)
    }

    fn await_job(&mut self) -> Process {
        let pid = self.log.await_event("job_started").number("pid");
        Process::find(i32::try_from(pid).expect("a pid")).expect("the job runs")
    }

    /// The exit status of the last command, as the shell prints it.
    fn status(&mut self) -> i32 {
        let text = self.terminal.run("echo $?");
        text.trim().parse().unwrap_or_else(|_| panic!("{text:?} is no status"))
    }

    /// Asserts that the shell has its terminal again with the original modes, and that no process is left.
    fn assert_as_before(&self) {
        self.assert_foreground_as_before();
        assert_eq!(self.terminal.modes(), self.modes);
    }

    fn assert_foreground_as_before(&self) {
        assert_eq!(self.terminal.foreground(), self.terminal.shell().pid, "whose the foreground is");
        self.await_nobody();
    }

    /// Waits until only the shell is left.
    fn await_nobody(&self) {
        let shell = self.terminal.shell();
        wait::until_true("nobody left on the terminal", || {
            self.terminal.processes().iter().all(|process| *process == shell)
        });
    }

    /// The supervisor's process, found by the program's name.
    fn supervisor(&self) -> Process {
        wait::until("neli-run", || self.named("neli-run"))
    }

    fn guard(&self) -> Process {
        wait::until("its guard", || self.named("neli-guard"))
    }

    fn named(&self, name: &str) -> Option<Process> {
        self.terminal.processes().into_iter().find(|process| process.name().as_deref() == Some(name))
    }

    /// Ctrl-C in a script, to a job that has printed that it waits: the script ends with it, and the terminal is restored.
    fn interrupts_a_script(&mut self, shell: Shell) {
        executable(&self.file("around"), "./lead; echo went on");
        self.terminal.type_line(&format!("{} ./around", shell.name()));
        self.terminal.await_text("waits");
        self.terminal.press(Ctrl::C);
        let text = self.terminal.await_prompt();
        assert!(!text.contains("went on"), "{text}");
        assert_eq!(self.status(), 130);
        self.assert_as_before();
    }
}

impl Drop for Person {
    #[expect(clippy::print_stderr, reason = "a failed test shows what neli-run said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- neli-run said:\n{}", self.log.text());
        }
    }
}

fn group_of(process: Process) -> i32 {
    getpgid(Some(Pid::from_raw(process.pid))).expect("it lives").as_raw()
}

/// Defines one test per shell, in a module with the test's name.
macro_rules! with_both_shells {
    ($($(#[$attribute:meta])* fn $name:ident($shell:ident) $story:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "what the stories of this file use")]
            use super::*;

            #[test]
            fn bash() {
                story(Shell::Bash);
            }

            #[test]
            fn dash() {
                story(Shell::Dash);
            }

            fn story($shell: Shell) $story
        }
    )*};
}

mod closed;
mod keys;

/// A job that runs until it is killed.
const ENDLESS: &str = "while :; do sleep 0.05; done";

with_both_shells! {
    /// The job reads input and has the foreground. Afterwards the shell has it, with the job's exit status.
    fn a_job_reads(shell) {
        let mut person = Person::new(shell, r#"echo "reads"; read line; echo "read <$line>"; exit 7"#);
        person.terminal.type_line("./lead");
        let job = person.await_job();
        assert_eq!(person.terminal.foreground(), job.pid);
        person.terminal.await_text("reads");
        person.terminal.type_line("some words");
        person.terminal.await_text("read <some words>");
        person.terminal.await_prompt();
        assert_eq!(person.status(), 7);
        person.assert_as_before();
    }

    /// README's first command: Ctrl-C ends all of the example's processes, and none is logged as left.
    fn the_example_s_job_ends_with_ctrl_c(shell) {
        let mut person = Person::new(shell, include_str!("../../examples/job.sh"));
        person.terminal.type_line("./lead");
        person.terminal.await_text("working, 2 s");
        person.terminal.press(Ctrl::C);
        person.terminal.await_prompt();
        assert_eq!(person.status(), 0);
        let log = person.log.text();
        assert!(log.contains("job_exited") && !log.contains("left 1 process behind"), "{log}");
        person.assert_as_before();
    }

    /// A shell as the job changes the terminal, and its changes are undone afterwards.
    fn a_shell_as_the_job(shell) {
        let (name, arguments) = (shell.name(), shell.arguments().join(" "));
        let mut person = Person::new(shell, &format!("PS1='<inner>' exec {name} {arguments}"));
        person.terminal.type_line("./lead");
        person.terminal.await_text("<inner>");
        let job = person.await_job();
        person.terminal.type_line("sleep 1000");
        // Until its exec the command is still the shell, which ignores Ctrl-C.
        let command = wait::until("a command of the inner shell", || person.named("sleep"));
        assert_eq!(person.terminal.foreground(), command.pid);
        person.terminal.press(Ctrl::C);
        person.terminal.await_text("<inner>");
        wait::until_true("a shell that has its terminal back", || person.terminal.foreground() == job.pid);
        person.terminal.type_line("exit 4");
        person.terminal.await_prompt();
        assert_eq!(person.status(), 4);
        person.assert_as_before();
    }

    /// A job that was started with `&` and reads is stopped until `fg`; the lead continues.
    fn fg(shell) {
        let mut person = Person::new(shell, r#"read line; echo "read <$line>""#);
        person.terminal.run("./lead &");
        let job = person.await_job();
        assert!(person.log.await_event("warning").text("message").contains("background"));
        wait::until_true("a stopped job", || job.is_stopped());
        assert_eq!(person.terminal.foreground(), person.terminal.shell().pid);
        person.terminal.type_line("fg");
        wait::until_true("a job in the foreground", || person.terminal.foreground() == job.pid);
        person.terminal.type_line("words");
        person.terminal.await_text("read <words>");
        person.terminal.await_prompt();
        person.assert_as_before();
        person.election.close([]);
    }

    /// A real pager gets keys and screen, shows the job's output, and exits with the job.
    fn a_real_pager(shell) {
        // For a search the pager waits for a block of 8 KiB.
        let mut person = Person::new(shell, r#"trap "" PIPE; seq 5000; while sleep 0.01; do echo more || exit 7; done"#);
        person.terminal.run("export TERM=vt100 LESS= LESSHISTFILE=-");
        person.terminal.resize(24, 80);
        person.terminal.type_line("./lead | less");
        person.terminal.await_text("\r\n23");
        let supervisor = person.supervisor();
        assert_eq!(person.terminal.foreground(), group_of(supervisor));
        // This is a key for the pager alone, without Enter.
        person.terminal.type_text(" ");
        person.terminal.await_text("\r\n46");
        person.terminal.type_text("/^777$");
        person.terminal.type_line("");
        person.terminal.await_text("778");
        person.terminal.type_text("q");
        person.terminal.await_prompt();
        assert_eq!(person.log.await_event("job_exited").number("status"), 7);
        assert_eq!(person.log.await_event("released").text("why"), "exited");
        person.assert_as_before();
    }

    /// In a pipeline the reader of the pipe keeps the terminal; Ctrl-C goes to all processes.
    fn a_pipeline(shell) {
        let mut person = Person::new(shell, "echo waits; exec sleep 1000");
        let pager = r#"read line; echo "shows <$line>"; read key </dev/tty; echo "key <$key>"; cat"#;
        executable(&person.file("pager"), pager);
        person.terminal.type_line("./lead | ./pager");
        person.terminal.await_text("shows <waits>");
        let supervisor = person.supervisor();
        assert_eq!(person.terminal.foreground(), group_of(supervisor));
        person.terminal.type_line("q");
        person.terminal.await_text("key <q>");
        person.terminal.press(Ctrl::C);
        person.terminal.await_prompt();
        assert_eq!(person.log.await_event("released").text("why"), "stopped");
        person.assert_as_before();
    }

    /// A script that starts `neli-run` with `&` can read the terminal itself.
    fn a_script_that_reads(shell) {
        let mut person = Person::new(shell, "read line || echo nothing to read; exec sleep 1000");
        let around = r#"./lead & read line; echo "script read <$line>"; kill $!; wait $!; echo "status <$?>""#;
        executable(&person.file("around"), around);
        person.terminal.type_line(&format!("{} ./around", shell.name()));
        person.terminal.await_text("nothing to read");
        person.terminal.type_line("words");
        person.terminal.await_text("script read <words>");
        person.terminal.await_text("status <143>");
        person.terminal.await_prompt();
        person.assert_as_before();
    }

    /// A job behind a pipe that asks for a password gets the terminal for that.
    fn a_password(shell) {
        let asks = "stty -echo </dev/tty; echo asks >/dev/tty; read word </dev/tty; stty echo </dev/tty";
        let job = &format!(r#"{asks}; read data; echo "got <$word> <$data>""#);
        let mut person = Person::new(shell, job);
        person.terminal.type_line("echo data | ./lead");
        person.terminal.await_text("asks");
        person.terminal.type_line("secret");
        let shown = person.terminal.await_text("got <secret> <data>");
        assert!(!shown.contains("secret"), "{shown}");
        person.terminal.await_prompt();
        assert_eq!(person.status(), 0);
        person.assert_as_before();
    }

    /// A change of the window size reaches the job, in the foreground and in the background.
    fn window_sizes(shell) {
        let says = r#"trap 'echo "size <$(stty size </dev/tty)>"' WINCH"#;
        let mut person = Person::new(shell, &format!("{says}; echo waits; {ENDLESS}"));
        for line in ["./lead", "./lead | cat"] {
            person.terminal.resize(24, 80);
            person.terminal.type_line(line);
            person.terminal.await_text("waits");
            person.terminal.resize(33, 99);
            person.terminal.await_text("size <33 99>");
            person.terminal.press(Ctrl::C);
            person.terminal.await_prompt();
        }
        person.assert_as_before();
    }

    /// Changes that a job makes to the terminal's modes are undone at its end.
    fn modes(shell) {
        let mut person = Person::new(shell, "stty raw -echo; echo waits; exec sleep 1000");
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.supervisor().signal(Signal::SIGTERM);
        person.terminal.await_prompt();
        assert_eq!(person.status(), 143);
        person.assert_as_before();
    }

    /// SIGKILL to the supervisor in a script: the guard gives the terminal back to the script.
    fn a_dead_supervisor(shell) {
        let mut person = Person::new(shell, "stty -echo; echo waits; exec sleep 1000");
        // The script waits, because otherwise it could read before the guard has noticed the death.
        let look = "read pid name state parent group session tty owner rest </proc/$$/stat";
        let foreground = format!("while {look}; [ $group != $owner ]; do sleep 0.05; done");
        let script = format!(r#"./lead; echo "status <$?>"; {foreground}; read line; echo "script read <$line>""#);
        executable(&person.file("around"), &script);
        person.terminal.type_line(&format!("{} ./around", shell.name()));
        person.terminal.await_text("waits");
        let job = person.await_job();
        person.supervisor().signal(Signal::SIGKILL);
        person.terminal.await_text("status <137>");
        wait::until_true("a dead job", || !job.lives());
        wait::until_true("a terminal that is the script's", || person.terminal.foreground() != job.pid);
        person.terminal.type_line("words");
        person.terminal.await_text("script read <words>");
        person.terminal.await_prompt();
        person.assert_as_before();

        // An interactive shell takes the terminal back itself.
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.supervisor().signal(Signal::SIGKILL);
        person.terminal.await_prompt();
        person.assert_foreground_as_before();
    }

    /// SIGKILL to the guard: the supervisor takes the terminal back, and gives it to the job of its next term.
    fn a_dead_guard(shell) {
        let mut person = Person::new(shell, r#"stty -echo; echo waits; read line; echo "read <$line>""#);
        person.terminal.type_line("./lead");
        person.terminal.await_text("waits");
        person.await_job();
        person.guard().signal(Signal::SIGKILL);
        assert_eq!(person.log.await_event("released").text("why"), "guard-died");
        person.terminal.await_text("waits");
        let job = person.await_job();
        assert_eq!(person.terminal.foreground(), job.pid);
        person.terminal.type_line("words");
        person.terminal.await_text("read <words>");
        person.terminal.await_prompt();
        assert_eq!(person.status(), 0);
        person.assert_as_before();
    }

    /// If the command does not exist, the terminal is given back too.
    fn a_job_that_does_not_exist(shell) {
        let mut person = Person::new(shell, "exit 0");
        let mut leader = person.election.candidate().start();
        leader.await_lead();
        person.terminal.type_line("./lead");
        person.log.await_event("standby");
        std::fs::remove_file(person.file("job")).expect("it was there");
        leader.signal(Signal::SIGTERM);
        person.terminal.await_prompt();
        assert_eq!(person.status(), 127);
        person.assert_as_before();
        person.election.close([leader]);
    }
}

/// SIGTSTP has no effect if no shell could continue the process. A job that stops itself there is continued, which is logged once.
#[test]
fn in_an_orphaned_process_group() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start_behind(&["setsid"]);
    let term = leader.await_lead();
    election.await_witness(term);
    leader.await_job();
    // Pending signals are delivered in the order of their numbers. So when the job has got SIGWINCH, SIGTSTP has been handled.
    leader.signal(Signal::SIGTSTP);
    leader.signal(Signal::SIGWINCH);
    wait::until_true("WINCH at the job", || election.testimony().signals().any(|line| line.event == Event::Signal(28)));
    assert!(leader.events("stopping").is_empty());
    election.close([leader]);

    let job = ["sh", "-c", "kill -TSTP $$; kill -TSTP $$; exit 4"];
    // Behind the second one another process could continue it, but without a terminal there was no Ctrl-Z.
    let script = ["setsid", "bash", "-c", "set -m; \"$@\" & wait $!", "bash"];
    for behind in [&script[..1], &script] {
        let mut leader = election.candidate().job(job).start_behind(behind);
        assert_eq!(leader.status(), 4);
        let warnings = leader.events("warning");
        assert_eq!(warnings.iter().filter(|warning| warning.text("message").contains("SIGTSTP")).count(), 1);
    }
}
