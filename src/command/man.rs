//! `man`: the manual pages. The source of the program's page is `man/neli-run.1.in`. Marks such as `@OPTIONS@` there are replaced by the
//! program's own definitions of options, subcommands and exit statuses, so that manual and program can't differ. The subcommands' pages are
//! generated from the parser's definition.

use anyhow::{Context as _, Result, bail};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli;
use crate::cli::parsed_args::ParsedArgs;
use crate::command::output;
use crate::exit::{ExitStatus, TABLE};
use crate::text::{list, quoted};

const TEMPLATE: &str = include_str!("../../man/neli-run.1.in");

/// Prints the manual page of the program or of a subcommand.
///
/// # Errors
///
/// There is no such subcommand, the page can't be generated (tests show that this does not happen), or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let page = if let Some(name) = args.words("SUBCOMMAND").pop() {
        let Some(subcommand) = pages().find(|subcommand| name == subcommand.get_name()) else {
            let names = list(pages().map(|subcommand| subcommand.get_name().to_owned()));
            bail!("{}: must be one of {names}", quoted(&name));
        };
        page_of(&subcommand)
    } else {
        page()
    };
    let page = page.context("the manual can't be drawn")?;
    output::print(&page)
}

/// The page, as roff.
///
/// # Errors
///
/// Only errors of writing to memory, which do not happen.
pub fn page() -> std::io::Result<String> {
    let mut definition = cli::definition();
    definition.build();
    let statuses = TABLE.iter().map(|(status, meaning)| ((*status).to_owned(), (*meaning).to_owned()));
    Ok(TEMPLATE
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@OPTIONS@", options(definition.clone())?.trim_end())
        .replace("@SUBCOMMANDS@", subcommands(&definition).trim_end())
        .replace("@EXIT_STATUS@", listed(statuses).trim_end()))
}

/// The subcommands, each of which has a page.
pub fn pages() -> impl Iterator<Item = Command> {
    let mut definition = cli::definition();
    definition.build();
    let subcommands: Vec<Command> = definition.get_subcommands().cloned().collect();
    subcommands.into_iter()
}

/// The page of a subcommand, as roff.
///
/// # Errors
///
/// Only errors of writing to memory, which do not happen.
pub fn page_of(subcommand: &Command) -> std::io::Result<String> {
    let (man, mut sections) = (man(subcommand.clone()), Vec::new());
    man.render_name_section(&mut sections)?;
    man.render_synopsis_section(&mut sections)?;
    man.render_description_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    let mut rest = Roff::new();
    if let Some(status) = subcommand.get_after_help() {
        rest.control("SH", ["EXIT STATUS"]);
        rest.text([roman(status.to_string().replace('\n', " ").trim_start_matches("Exit status: "))]);
    }
    rest.control("SH", ["SEE ALSO"]);
    rest.text([bold("neli-run"), roman("(1), which explains elections, exit statuses and variables")]);
    let (name, version) = (subcommand.get_name().to_uppercase(), env!("CARGO_PKG_VERSION"));
    // Every section begins with this definition. The page needs it once, so the others are removed.
    let sections = String::from_utf8_lossy(&sections).replace(APOSTROPHE, "");
    Ok(format!(
        ".TH NELI-RUN-{name} 1 \"\" \"neli-run {version}\" \"User Commands\"\n{APOSTROPHE}{sections}{}",
        rest.to_roff()
    ))
}

/// The generator of a page. COMMAND is no option, and the synopsis and the text name it.
fn man(command: Command) -> Man {
    let has_command = command.get_positionals().any(|argument| argument.get_id() == "COMMAND");
    Man::new(if has_command { command.mut_arg("COMMAND", |argument| argument.hide(true)) } else { command })
}

/// The definition that makes roff print an apostrophe unchanged.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The options: those that most lines use, then the others by theme, and at last those that every program has.
fn options(command: Command) -> std::io::Result<String> {
    let mut options = Vec::new();
    man(command).render_options_section(&mut options)?;
    let options = String::from_utf8_lossy(&options).replace(APOSTROPHE, "").replace(".SH OPTIONS\n", "");
    let (general, themes) = options.split_once(".SH").unwrap_or((&options, ""));
    let themes = format!(".SH{themes}").replace(".SH ", ".SS ");
    Ok(format!("{APOSTROPHE}.SH OPTIONS\n{}\n.SS \"GENERAL OPTIONS\"\n{general}", themes.trim_end()))
}

/// The subcommands. Their options and exit statuses are in their own pages.
fn subcommands(definition: &Command) -> String {
    let subcommands = definition.get_subcommands();
    listed(subcommands.map(|subcommand| {
        let about = subcommand.get_about().map_or_else(String::new, |about| format!("{about}."));
        (format!("neli-run {}", subcommand.get_name()), about)
    }))
}

/// What each of these names means.
fn listed(list: impl Iterator<Item = (String, String)>) -> String {
    let mut roff = Roff::new();
    for (name, meaning) in list {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(meaning)]);
    }
    roff.to_roff()
}
