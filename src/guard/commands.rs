//! The commands that run beside the job: the health command, and the hook that runs when the lead is won.

use std::ffi::OsString;
use std::io;

use neli_proto::command::CommandEnd;
use neli_proto::guard::CommandKind;
use nix::unistd::Pid;

use crate::guard::message::GuardConfig;
use crate::process::image::Image;
use crate::process::reap::Change;
use crate::process::shell::{self, ShellCommand, ShellOptions};

/// The commands, and those that were started and not waited for yet.
#[derive(Debug)]
pub(super) struct Commands {
    health: Option<Image>,
    on_lead: Option<Image>,
    running: Vec<(CommandKind, ShellCommand)>,
}

impl Commands {
    /// The commands of a configuration, with this environment.
    pub(super) fn new(guard_config: &GuardConfig, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let image = |line: &Option<OsString>| line.as_ref().map(|line| Image::of_shell(line, environment)).transpose();
        Ok(Self { health: image(&guard_config.health)?, on_lead: image(&guard_config.on_lead)?, running: Vec::new() })
    }

    /// Starts a command; the error is its end, if it could not be started.
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

    /// Sends SIGKILL to a command's process group.
    pub(super) fn kill(&self, kind: CommandKind) {
        self.running.iter().filter(|(running, _)| *running == kind).for_each(|(_, command)| command.kill());
    }

    /// Kills the processes that a command has left in its group. Called when a child has ended and was not waited for: until then the
    /// group's id belongs to it for certain.
    pub(super) fn end_group_of(&self, pid: Pid) {
        if let Some((_, command)) = self.running.iter().find(|(_, command)| command.pid() == pid) {
            command.kill();
        }
    }

    /// The kind and the end of a command, if this child was one and has ended.
    pub(super) fn observe_child(&mut self, change: &Change) -> Option<(CommandKind, CommandEnd)> {
        let at = self.running.iter().position(|(_, command)| command.pid() == change.pid)?;
        let end = self.running[at].1.end(change.status)?;
        Some((self.running.swap_remove(at).0, end))
    }

    /// The pids of those that were started and not waited for yet.
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.running.iter().map(|(_, command)| command.pid()).collect()
    }
}
