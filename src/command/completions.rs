//! `completions`: a shell's completions of the command line, generated from its definition.

use anyhow::{Result, bail};
pub use clap_complete::Shell;

use crate::cli;
use crate::cli::parsed_args::ParsedArgs;
use crate::command::output;
use crate::exit::ExitStatus;
use crate::text::quoted;

/// Prints the completions for the given shell.
///
/// # Errors
///
/// The shell is none of bash, fish and zsh, or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let word = args.words("SHELL").pop().unwrap_or_default();
    let shell = match word.to_str() {
        Some("bash") => Shell::Bash,
        Some("fish") => Shell::Fish,
        Some("zsh") => Shell::Zsh,
        _ => bail!("{}: must be bash, fish or zsh", quoted(&word)),
    };
    output::print(&script(shell))
}

/// A shell's completions. They are those that clap generates, with one addition that clap does not support: after `--` the job's own
/// completions apply.
#[expect(clippy::wildcard_enum_match_arm, reason = "zsh, since a user can name no other shell")]
pub fn script(shell: Shell) -> String {
    let script = generated(shell);
    match shell {
        Shell::Bash => {
            // If the program's name has a dash, clap uses one name for a subcommand's function and looks for another.
            let script = script.replace("neli__subcmd__run__subcmd__", "neli__run__subcmd__");
            script.replace("complete -F _neli__run ", "complete -F _neli_run_or_job ") + BASH
        }
        // fish must offer completions even while an option still lacks its value.
        Shell::Fish => script.replacen("    or return\n", "    or return 0\n", 1) + FISH,
        // In zsh a colon ends the name of a value.
        _ => {
            let script = script.replace(":HOST:PORT,..:", ":SERVERS:");
            script.replacen("_neli-run() {\n", &format!("_neli-run() {{\n{ZSH}"), 1)
        }
    }
}

fn generated(shell: Shell) -> String {
    // COMMAND is left out, because zsh would take its position for that of the subcommand.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::without_command(), "neli-run", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

const BASH: &str = r#"
# Behind -- the job's own completions take over.
_neli_run_or_job() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ "${COMP_WORDS[i]}" == -- ]]; then
            if declare -F _command_offset > /dev/null; then
                _command_offset "$((i + 1))"
            elif ((COMP_CWORD == i + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$2")
            fi
            return
        fi
    done
    _neli__run "$@"
}
"#;

const FISH: &str = r#"
complete -c neli-run -n "__fish_neli_run_using_subcommand completions" -f -a "bash fish zsh"

# Behind -- the job's own completions take over.
function __fish_neli_run_job
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join -- ' ' (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c neli-run -n "contains -- -- (commandline -opc)" -f -a "(__fish_neli_run_job)"
"#;

const ZSH: &str = r"    # Behind -- the job's own completions take over.
    local dashes=${words[(i)--]}
    if (( dashes < CURRENT )); then
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi

";
