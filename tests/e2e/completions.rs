//! What the shells offer at a Tab: subcommands, their options and values, and what the job's own completions offer behind `--`.
//!
//! A shell that is not installed is not tried, and a line on stderr says so.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use harness::not_tested;
use neli_run::command::completions::{self, Shell};

use crate::PROGRAM;

/// What a shell prints that has the program in its PATH; `None` if it is not installed.
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

/// Calls the completion as bash does, with the word before the cursor and those before it.
#[test]
fn bash_completes_subcommands_and_their_options() {
    let script = format!("{}\n{BASH_ASKS}", completions::script(Shell::Bash));
    for (line, offered) in [
        ("watch --fr", "--from"),
        ("watch --from s", "start"),
        ("status --brokers a:1 --js", "--json"),
        ("completions f", "fish"),
        ("stat", "status"),
        ("--elect l", "log"),
        ("--group a --max-r", "--max-roles"),
        ("--embedded watch --fr", "--from"),
        ("watch --group status --fr", "--from"),
        ("watch -g resign --fr", "--from"),
        ("-g a -- compge", "compgen"),
    ] {
        let words = ["-c", &script, "bash", "neli-run"].into_iter().chain(line.split(' '));
        let shown = output_of(Command::new("bash").args(["--norc", "--noprofile"]).args(words));
        assert_eq!(shown.expect("bash is there").trim(), offered, "{line}");
    }
}

const BASH_ASKS: &str = r#"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_neli_run_or_job neli-run "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"#;

#[test]
fn fish_completes_subcommands_and_their_options() {
    let script = completions::script(Shell::Fish);
    for (line, offered) in [
        ("watch --fr", "--from"),
        ("watch --from s", "start"),
        ("stat", "status"),
        ("--elect l", "log"),
        ("--group status --max-r", "--max-roles"),
        ("--group=status --max-r", "--max-roles"),
        ("watch --group status --fr", "--from"),
        ("-g a -- neli-run watch --fr", "--from"),
    ] {
        let asks = format!("{script}\ncomplete -C 'neli-run {line}'");
        let Some(shown) = output_of(Command::new("fish").args(["--no-config", "-c", &asks])) else { return };
        // fish appends a tab and the option's description.
        assert_eq!(shown.split(['\t', '\n']).next(), Some(offered), "{line}: {shown}");
    }
}

/// zsh completes only on a terminal, so it runs in a pseudo-terminal of its own.
#[test]
fn zsh_completes_subcommands_and_their_options() {
    let directory = tempfile::tempdir().expect("a directory");
    let completions = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    for (at, (line, offered)) in [
        ("watch --fr", "watch --from="),
        ("watch --from s", "watch --from start "),
        ("stat", "status "),
        ("--elect l", "--elect log "),
        ("--group status --max-r", "--group status --max-roles="),
        ("watch --group resign --fr", "watch --group resign --from="),
        ("-g a -- neli-run watch --fr", "-g a -- neli-run watch --from="),
    ]
    .into_iter()
    .enumerate()
    {
        let shown = directory.path().join(at.to_string());
        let arguments = [completions.as_os_str(), shown.as_os_str(), line.as_ref()];
        if output_of(Command::new("zsh").args(["-f", "-c", ZSH_ASKS, "zsh"]).args(arguments)).is_none() {
            return;
        }
        let completed = std::fs::read_to_string(&shown).expect("zsh wrote the completed line");
        assert_eq!(completed, format!("neli-run {offered}\n"));
    }
}

/// Types a line and a tab, and then a key that writes the completed line to a file.
const ZSH_ASKS: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=(${(q)1} \$fpath); autoload -U compinit; compinit -u -D"
zpty -w shell 'show() { print -r -- "$BUFFER" >&3; exit }; zle -N show; bindkey "^T" show; exec 3>'${(q)2}
zpty -w -n shell "neli-run $3"$'\t\x14'
while zpty -r shell; do :; done > /dev/null
"#;
