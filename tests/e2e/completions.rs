//! `--group <Tab>`: the shells offer the groups of the existing elections.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::not_tested;
use harness::wait;
use neli_run::command::completions::{self, Shell};

use crate::{PROGRAM, election};

/// Creates a topic with an election of this group, and one whose name would need quoting.
fn written(election: &TestElection, group: &str) {
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":300}"#;
    pen.write(&format!("{group}/0"), &[claim]);
    pen.write("$(touch x)/0", &[claim]);
}

/// A command line with the options for the access to Kafka, up to the value of `--group`.
fn line(election: &TestElection) -> String {
    format!("neli-run status --brokers {} --topic {} --group bill", Kafka::shared().address(), election.topic())
}

/// The output of a shell that has the program in its PATH; `None` if the shell is not installed.
fn output_of(shell: &mut Command) -> Option<Output> {
    let directory = Path::new(PROGRAM).parent().expect("it is in a directory");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    match shell.env("PATH", path).output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            not_tested(&format!("{} is not here", shell.get_program().display()));
            None
        }
    }
}

/// Whether exactly this group was offered. A busy Kafka may not answer in time: then nothing is offered, and the shell is asked again.
fn offered(output: &[u8]) -> bool {
    let told = String::from_utf8_lossy(output).into_owned();
    // fish appends a tab and the option's description.
    let groups: Vec<&str> =
        told.lines().filter_map(|line| line.split('\t').next()).filter(|group| !group.is_empty()).collect();
    assert!(groups.is_empty() || groups == ["billing"], "{told}");
    !groups.is_empty()
}

#[test]
fn bash_offers_the_groups_of_the_elections() {
    let election = election(Elector::Log);
    written(&election, "billing");
    let script = format!("{}\n{BASH_ASKS}", completions::script(Shell::Bash));
    for line in [line(&election), line(&election).replace("--group ", "--group = ").replace("status ", "")] {
        wait::until_true("bash offers the group", || {
            let words = ["-c", &script, "bash"].into_iter().chain(line.split(' '));
            let bash = output_of(Command::new("bash").args(["--norc", "--noprofile"]).args(words));
            offered(&bash.expect("bash is there").stdout)
        });
    }
    // If the line lacks the options for the access to Kafka, no group is offered and nothing is printed.
    let words = ["-c", &script, "bash", "neli-run", "status", "--group", "b"];
    let output = output_of(Command::new("bash").args(["--norc", "--noprofile"]).args(words)).expect("bash is there");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"\n"[..], &b""[..]));
}

const BASH_ASKS: &str = r#"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_neli_run_or_job neli-run "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"#;

#[test]
fn fish_offers_the_groups_of_the_elections() {
    let election = election(Elector::Log);
    written(&election, "billing");
    let asks = format!("{}\ncomplete -C '{}'", completions::script(Shell::Fish), line(&election));
    wait::until_true("fish offers the group", || {
        output_of(Command::new("fish").args(["--no-config", "-c", &asks])).is_none_or(|output| offered(&output.stdout))
    });
}

#[test]
fn zsh_offers_the_groups_of_the_elections() {
    let election = election(Elector::Log);
    written(&election, "billing");
    let (directory, shown) = (election.directory().join("functions"), election.directory().join("shown"));
    std::fs::create_dir(&directory).expect("our own directory");
    std::fs::write(directory.join("_neli-run"), completions::script(Shell::Zsh)).expect("our own directory");
    let line = line(&election);
    let arguments = [directory.as_os_str(), shown.as_os_str(), line.as_ref()];
    let completed = line.replace("--group bill", "--group billing");
    wait::until_true("zsh completes the group", || {
        let zsh = output_of(Command::new("zsh").args(["-f", "-c", ZSH_ASKS, "zsh"]).args(arguments));
        zsh.is_none_or(|_| std::fs::read_to_string(&shown).is_ok_and(|told| told.trim_end() == completed))
    });
}

/// Types a line and a tab, and then a key that writes the completed line to a file.
const ZSH_ASKS: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=(${(q)1} \$fpath); autoload -U compinit; compinit -u -D"
zpty -w shell 'show() { print -r -- "$BUFFER" >&3; exit }; zle -N show; bindkey "^T" show; exec 3>'${(q)2}
zpty -w -n shell "$3"$'\t\x14'
while zpty -r shell; do :; done > /dev/null
"#;
