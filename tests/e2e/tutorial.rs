//! docs/tutorial.md: each command is typed on a terminal of its machine, and each output compared. Numbers differ from run to run, so they are
//! compared as numbers alone.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::process::Process;
use harness::terminal::{Ctrl, PROMPT, Shell, Terminal, executable};
use harness::wait;
use neli_kafka::clock;

use crate::election;

const DAY: u64 = 24 * 60 * 60;

/// The lines that stand for any others.
const OMITTED: &str = "…";

/// One of the page's machines: a terminal whose processes can be killed together.
struct Machine {
    name: String,
    directory: PathBuf,
    terminal: Terminal,
    /// How much of the screen was compared, in bytes.
    compared: usize,
    /// What the page's groups begin with here, so that each run has its own.
    group: String,
    /// In place of the page's 9464.
    port: u16,
}

/// A step of the page, with its line there.
enum Step {
    File { name: String, text: String },
    Type { machine: String, command: String },
    Press { machine: String },
    SwitchOff { machine: String },
    Output { machine: String, line: String, number: usize },
}

#[test]
fn the_tutorial_is_what_happens() {
    let election = election(Elector::Log);
    // The nightly job's window of a day must not end meanwhile.
    while DAY - clock::wall_ms() / 1_000 % DAY < 60 {
        wait::pause(Duration::from_secs(1));
    }
    // Nobody else listens there; on a busy machine somebody may have taken it since.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md")).expect("the page");
    let mut machines: BTreeMap<String, Machine> = ["db1", "db2", "db3", "desk"]
        .into_iter()
        .map(|name| (name.to_owned(), Machine::start(name, &election, port)))
        .collect();
    let steps = steps(&page);
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::File { name, text } => {
                for machine in machines.values() {
                    executable(&machine.directory.join(name), text);
                }
            }
            Step::Type { machine, command } => machine_of(&mut machines, machine).run(command),
            Step::Press { machine } => machine_of(&mut machines, machine).terminal.press(Ctrl::C),
            Step::SwitchOff { machine } => {
                let off = machines.remove(machine).expect("it was not switched off before");
                Process::cut_power(off.terminal.processes());
            }
            Step::Output { machine, line, number } => {
                let next = steps[at + 1..].iter().find_map(|step| step.of(machine));
                let machine = machine_of(&mut machines, machine);
                if line != OMITTED {
                    machine.expect(line, *number);
                } else if let Some(Step::Output { line, .. }) = next {
                    machine.omit_until(line, *number);
                } else if let Some(Step::Type { .. }) = next {
                    machine.omit_until_prompt();
                }
            }
        }
    }
    // Nothing is left running under the page's commands.
    for machine in machines.values() {
        machine.terminal.press(Ctrl::C);
    }
}

fn machine_of<'a>(machines: &'a mut BTreeMap<String, Machine>, name: &str) -> &'a mut Machine {
    machines.get_mut(name).unwrap_or_else(|| panic!("{name} is none of the page's machines, or is switched off"))
}

impl Step {
    /// The step, if it is this machine's.
    fn of(&self, name: &str) -> Option<&Self> {
        match self {
            Self::File { .. } => None,
            Self::Type { machine, .. }
            | Self::Press { machine }
            | Self::SwitchOff { machine }
            | Self::Output { machine, .. } => (machine == name).then_some(self),
        }
    }
}

/// The steps of the page. `db1$ COMMAND` types a command there, and `db1^C` presses Ctrl-C; the lines below are that machine's output. A block
/// `console db1` begins with more of its output. `<!-- file: NAME -->` stands before a file, and `<!-- off: db1 -->` where a machine is
/// switched off.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut machine, mut file) = (Vec::new(), None::<String>, None::<(String, String)>);
    let (mut is_console, mut is_file) = (false, false);
    for (at, line) in page.lines().enumerate() {
        let number = at + 1;
        if let Some(name) = line.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")) {
            file = Some((name.to_owned(), String::new()));
        } else if let Some(name) = line.strip_prefix("<!-- off: ").and_then(|rest| rest.strip_suffix(" -->")) {
            steps.push(Step::SwitchOff { machine: name.to_owned() });
        } else if let Some(words) = line.strip_prefix("```") {
            if is_file {
                steps.extend(file.take().map(|(name, text)| Step::File { name, text }));
            }
            is_file = !is_file && !is_console && file.is_some();
            is_console = words.starts_with("console");
            machine = words.strip_prefix("console ").map(str::to_owned);
        } else if is_file {
            let (_, text) = file.as_mut().expect("it has begun");
            text.push_str(line);
            text.push('\n');
        } else if is_console {
            if let Some((name, command)) =
                line.split_once("$ ").filter(|(name, _)| name.chars().all(char::is_alphanumeric))
            {
                machine = Some(name.to_owned());
                steps.push(Step::Type { machine: name.to_owned(), command: command.to_owned() });
            } else if let Some(name) = line.strip_suffix("^C") {
                machine = Some(name.to_owned());
                steps.push(Step::Press { machine: name.to_owned() });
            } else {
                let machine = machine.clone().unwrap_or_else(|| panic!("line {number} is no machine's"));
                steps.push(Step::Output { machine, line: line.to_owned(), number });
            }
        }
    }
    assert!(steps.len() > 40, "the page has lost its commands: {} steps", steps.len());
    steps
}

impl Machine {
    fn start(name: &str, election: &TestElection, port: u16) -> Self {
        let directory = &election.directory().join(name);
        fs::create_dir(directory).expect("the election's directory is new");
        let terminal = Terminal::new(Shell::Dash, directory);
        let mut machine = Self {
            name: name.to_owned(),
            directory: directory.to_owned(),
            terminal,
            compared: 0,
            group: election.group.clone(),
            port,
        };
        machine.omit_until_prompt();
        let program = Path::new(crate::PROGRAM).parent().expect("it is in a folder");
        machine.run(&format!("PATH={}:$PATH NELI_RUN_NAME={name}:4711; export PATH NELI_RUN_NAME", program.display()));
        machine
    }

    /// Types a command, once the one before has ended.
    fn run(&mut self, command: &str) {
        let next = self.next();
        assert_eq!(
            next,
            PROMPT,
            "{}, before {command}: more output than the page has\n{}",
            self.name,
            self.terminal.text()
        );
        self.compared += PROMPT.len();
        let typed = command.replace("kafka:9092", Kafka::shared().address());
        let typed = typed.replace("--group ", &format!("--group {}-", self.group));
        let typed = typed.replace("db1:9464", "127.0.0.1:9464").replace("9464", &self.port.to_string());
        self.terminal.type_line(&typed);
        let echo = self.next();
        assert_eq!(echo, typed, "{}: the terminal shows what is typed", self.name);
        self.consume();
    }

    /// The next line of the output, or the prompt, once it is there.
    fn next(&self) -> String {
        wait::until(&format!("a line on {}", self.name), || {
            let text = self.terminal.text();
            let rest = text.get(self.compared..)?;
            if rest.starts_with(PROMPT) {
                return Some(PROMPT.to_owned());
            }
            rest.split_once('\n').map(|(line, _)| line.trim_end_matches('\r').to_owned())
        })
    }

    /// The next line as the page has it.
    fn shown(&self) -> String {
        self.next().replace(&format!("{}-", self.group), "").replace(Kafka::shared().address(), "kafka:9092")
    }

    /// Goes on behind the next line.
    fn consume(&mut self) {
        self.compared += self.terminal.text()[self.compared..].find('\n').expect("there is a line") + 1;
    }

    fn expect(&mut self, expected: &str, number: usize) {
        let line = self.shown();
        let fits = comparable(&line) == comparable(expected);
        assert!(
            fits,
            "docs/tutorial.md line {number} is\n  {expected}\nbut {} shows\n  {line}\n\n{}",
            self.name,
            self.terminal.text()
        );
        self.consume();
    }

    fn omit_until(&mut self, expected: &str, number: usize) {
        loop {
            let line = self.shown();
            if comparable(&line) == comparable(expected) {
                return;
            }
            let missing = line == PROMPT;
            assert!(
                !missing,
                "docs/tutorial.md line {number}: {} never shows\n  {expected}\n\n{}",
                self.name,
                self.terminal.text()
            );
            self.consume();
        }
    }

    fn omit_until_prompt(&mut self) {
        while self.next() != PROMPT {
            self.consume();
        }
    }
}

/// A line with every number replaced, with its unit, and with one name for the hosts.
fn comparable(line: &str) -> String {
    let host = nix::unistd::gethostname().expect("a host has a name").into_string().expect("in UTF-8");
    let line = line
        .trim_start_matches("^C")
        .replace(Kafka::shared().address(), "kafka:9092")
        .replace(&format!(" on {host}"), " on db1");
    let line = ["db2", "db3"].iter().fold(line, |line, name| line.replace(&format!(" on {name}"), " on db1"));
    let mut words: Vec<String> = line.split_whitespace().map(number_replaced).collect();
    // `4h 56m` is as `4h`, whatever follows it.
    words.dedup_by(|next, before| {
        let is_part = before.starts_with('0') && next.trim_end_matches([',', ';', ')']) == before;
        if is_part {
            before.clone_from(next);
        }
        is_part
    });
    words.join(" ")
}

/// `12.3ms` is `0s`, and `127.0.0.1:9464` is `0`.
fn number_replaced(word: &str) -> String {
    let mut replaced = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(|sign: char| sign.is_ascii_digit()) {
        replaced.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.' || sign == ':');
        replaced.push('0');
        let unit = ["ms", "us", "µs", "s", "m", "h", "d"].iter().find(|unit| {
            rest.strip_prefix(**unit).is_some_and(|after| !after.starts_with(|sign: char| sign.is_alphanumeric()))
        });
        if let Some(unit) = unit {
            replaced.push('s');
            rest = &rest[unit.len()..];
        }
    }
    replaced + rest
}

#[test]
fn lines_are_compared_without_their_numbers() {
    assert_eq!(
        comparable("begins at 2026-11-28 00:00:00Z (in 4h 56m)"),
        comparable("begins at 2026-11-28 00:00:00Z (in 56m)")
    );
    assert_eq!(comparable("led for 1m 2s, and"), comparable("led for 2s, and"));
    assert_ne!(comparable("(in 4h 56m)"), comparable("(in 4h)."));
}
