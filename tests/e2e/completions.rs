//! `--timezone <Tab>`: the shells offer the time zones of this machine's database.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use harness::not_tested;
use neli_run::command::completions::{self, Shell};

use crate::PROGRAM;

/// A command line, up to a value of which one completion is known.
const LINE: &str = "neli-run --timezone Europe/Berl";

/// The output of a shell that has the program in its PATH; `None` if the shell is not installed.
fn output_of(shell: &mut Command) -> Option<String> {
    let directory = Path::new(PROGRAM).parent().expect("it is in a directory");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    match shell.env("PATH", path).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            not_tested(&format!("{} is not here", shell.get_program().display()));
            None
        }
    }
}

#[test]
fn bash_offers_the_time_zones() {
    let script = format!("{}\n{BASH_ASKS}", completions::script(Shell::Bash));
    for line in [LINE, &LINE.replace("--timezone ", "--timezone = ")] {
        let words = ["-c", &script, "bash"].into_iter().chain(line.split(' '));
        let offered = output_of(Command::new("bash").args(["--norc", "--noprofile"]).args(words));
        assert_eq!(offered.expect("bash is there"), "Europe/Berlin\n");
    }
}

const BASH_ASKS: &str = r#"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_neli_run_or_job neli-run "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"#;

#[test]
fn fish_offers_the_time_zones() {
    let asks = format!("{}\ncomplete -C '{LINE}'", completions::script(Shell::Fish));
    let Some(offered) = output_of(Command::new("fish").args(["--no-config", "-c", &asks])) else { return };
    // fish appends a tab and the option's description.
    let zones: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(zones, ["Europe/Berlin"]);
}

#[test]
fn zsh_offers_the_time_zones() {
    let directory = tempfile::tempdir().expect("a directory");
    let (functions, shown) = (directory.path().join("functions"), directory.path().join("shown"));
    std::fs::create_dir(&functions).expect("our own directory");
    std::fs::write(functions.join("_neli-run"), completions::script(Shell::Zsh)).expect("our own directory");
    let arguments = [functions.as_os_str(), shown.as_os_str(), LINE.as_ref()];
    if output_of(Command::new("zsh").args(["-f", "-c", ZSH_ASKS, "zsh"]).args(arguments)).is_none() {
        return;
    }
    let line = std::fs::read_to_string(&shown).expect("zsh wrote the completed line");
    assert_eq!(line.trim_end(), "neli-run --timezone Europe/Berlin");
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
