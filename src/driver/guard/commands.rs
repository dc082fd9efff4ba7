//! What runs beside the job: the health command, and the hook that runs when the lead is won.
//!
//! Each is a part of the job's tree, and dies with it; but it is no part of the job's work. So it is killed when the main
//! process has ended, and what is left of the tree without it is what the job left.

use std::ffi::OsString;
use std::io;

use neli_proto::command::CommandEnd;
use neli_proto::time::Time;
use nix::unistd::Pid;

use crate::driver::guard::message::{Answer, Charge, CommandKind};
use crate::driver::guard::outbox::Outbox;
use crate::driver::image::Image;
use crate::driver::process::{Change, Reaped};
use crate::driver::shell::{self, Circumstances, ShellCommand};
use crate::driver::tree::Tree;

/// The commands, and those of them that run.
#[derive(Debug)]
pub(super) struct Commands {
    health: Option<Image>,
    on_lead: Option<Image>,
    running: Vec<Running>,
}

/// Which command was ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) kind: CommandKind,
    pub(super) id: u32,
}

impl Asked {
    pub(super) fn answer(self, end: CommandEnd) -> Answer {
        let Self { kind, id } = self;
        Answer::CommandEnded { kind, id, end }
    }
}

/// A command that was not waited for.
#[derive(Debug)]
struct Running {
    asked: Asked,
    command: ShellCommand,
    /// `None` when it was killed, and its end is told.
    kill_at: Option<Time>,
}

impl Commands {
    /// The commands of a charge, to be run in this environment.
    pub(super) fn new(charge: &Charge, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let image = |line: &Option<OsString>| line.as_ref().map(|line| Image::of_shell(line, environment)).transpose();
        Ok(Self { health: image(&charge.health)?, on_lead: image(&charge.on_lead)?, running: Vec::new() })
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Option<Time> {
        self.running.iter().filter_map(|running| running.kill_at).min()
    }

    /// Starts one; the answer, when it has ended already.
    pub(super) fn start(
        &mut self,
        asked: Asked,
        kill_at: Time,
        circumstances: Circumstances<'_>,
    ) -> Result<(), CommandEnd> {
        let image = match asked.kind {
            CommandKind::Health => &self.health,
            CommandKind::Lead => &self.on_lead,
        };
        let image = image.as_ref().ok_or(CommandEnd::Abandoned)?;
        if self.running.iter().any(|running| running.asked.kind == asked.kind) {
            // It was killed and does not die, so that another would hang as well.
            return Err(CommandEnd::TimedOut);
        }
        let command = ShellCommand::start_in(image, circumstances).map_err(shell::not_started)?;
        self.running.push(Running { asked, command, kill_at: Some(kill_at) });
        Ok(())
    }

    /// Kills what has had its time.
    pub(super) fn handle_timeout(&mut self, now: Time, outbox: &mut Outbox) {
        self.kill(|kill_at| now >= kill_at, &CommandEnd::TimedOut, outbox);
    }

    /// Kills all: the main process has ended.
    pub(super) fn abandon(&mut self, outbox: &mut Outbox) {
        self.kill(|_| true, &CommandEnd::Abandoned, outbox);
    }

    fn kill(&mut self, which: impl Fn(Time) -> bool, end: &CommandEnd, outbox: &mut Outbox) {
        for running in &mut self.running {
            if running.kill_at.take_if(|kill_at| which(*kill_at)).is_some() {
                running.command.kill();
                outbox.put(running.asked.answer(end.clone()), None);
            }
        }
    }

    /// A child has ended, and was not waited for: what a command leaves in its group is ended with it.
    pub(super) fn end_group_of(&self, pid: Pid) {
        if let Some(running) = self.running.iter().find(|running| running.command.pid() == pid) {
            running.command.kill();
        }
    }

    /// Takes note of what happened to children; `all_killed`: the whole tree was sent SIGKILL.
    pub(super) fn observe_children(&mut self, reaped: &Reaped, all_killed: bool, outbox: &mut Outbox) {
        for Change { pid, fate } in &reaped.changes {
            let Some(at) = self.running.iter().position(|running| running.command.pid() == *pid) else { continue };
            let Some(end) = self.running[at].command.end(*fate) else { continue };
            let Running { asked, kill_at, .. } = self.running.swap_remove(at);
            if kill_at.is_some() {
                outbox.put(asked.answer(if all_killed { CommandEnd::Abandoned } else { end }), None);
            }
        }
    }

    /// Whether nothing but commands is left of a tree.
    pub(super) fn are_all_of(&self, tree: &Tree) -> bool {
        let commands: Vec<Pid> = self.running.iter().map(|running| running.command.pid()).collect();
        !commands.is_empty() && tree.is_all_below(&commands)
    }
}
