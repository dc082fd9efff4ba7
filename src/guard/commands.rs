//! What runs beside the job: the processes of the health command, and of the hook that runs when the lead is won.

use std::ffi::OsString;
use std::io;

use neli_proto::command::CommandEnd;
use neli_proto::guard::CommandKind;
use nix::unistd::Pid;

use crate::guard::message::GuardConfig;
use crate::process::image::Image;
use crate::process::reap::Change;
use crate::process::shell::{self, ShellCommand, ShellOptions};
use crate::process::tree::Tree;

/// The commands, and those of them that were not waited for.
#[derive(Debug)]
pub(super) struct Commands {
    health: Option<Image>,
    on_lead: Option<Image>,
    running: Vec<(CommandKind, ShellCommand)>,
}

impl Commands {
    /// The commands of a configuration, to be run in this environment.
    pub(super) fn new(guard_config: &GuardConfig, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let image = |line: &Option<OsString>| line.as_ref().map(|line| Image::of_shell(line, environment)).transpose();
        Ok(Self { health: image(&guard_config.health)?, on_lead: image(&guard_config.on_lead)?, running: Vec::new() })
    }

    /// Starts one; else how it has ended already.
    pub(super) fn start(&mut self, kind: CommandKind, options: ShellOptions<'_>) -> Result<(), CommandEnd> {
        let image = match kind {
            CommandKind::Health => &self.health,
            CommandKind::Lead => &self.on_lead,
        };
        let image = image.as_ref().ok_or(CommandEnd::Abandoned)?;
        let command = ShellCommand::start_in(image, options).map_err(shell::not_started)?;
        self.running.push((kind, command));
        Ok(())
    }

    /// SIGKILL to the group of one.
    pub(super) fn kill(&self, kind: CommandKind) {
        self.running.iter().filter(|(running, _)| *running == kind).for_each(|(_, command)| command.kill());
    }

    /// A child has ended, and was not waited for: what a command leaves in its group is ended with it, while its number is its
    /// own.
    pub(super) fn end_group_of(&self, pid: Pid) {
        if let Some((_, command)) = self.running.iter().find(|(_, command)| command.pid() == pid) {
            command.kill();
        }
    }

    /// The command that this child was, if it was one and has ended, and how.
    pub(super) fn observe_child(&mut self, change: &Change) -> Option<(CommandKind, CommandEnd)> {
        let at = self.running.iter().position(|(_, command)| command.pid() == change.pid)?;
        let end = self.running[at].1.end(change.status)?;
        Some((self.running.swap_remove(at).0, end))
    }

    /// Whether nothing but commands is left of a tree.
    pub(super) fn are_all_of(&self, tree: &Tree) -> bool {
        let commands: Vec<Pid> = self.running.iter().map(|(_, command)| command.pid()).collect();
        !commands.is_empty() && tree.is_all_below(&commands)
    }
}
