//! Commands that run beside the job: the health command, and the `--on-lead` hook.
//!
//! Each is part of the job's tree and dies with it, but is not part of the job's work. So it is killed when the main process has ended, and
//! the processes that the job left are those of the tree without it.

use alloc::collections::VecDeque;

use super::action::Action;
use super::message::{Answer, CommandKind};
use crate::command::CommandEnd;
use crate::time::Time;

const KINDS: [CommandKind; 2] = [CommandKind::Health, CommandKind::Lead];

/// The commands that were started and not waited for; at most one of each kind.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Commands {
    running: [Option<Running>; KINDS.len()],
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Running {
    /// The number that its report must carry.
    id: u32,
    /// When it is killed; `None` after it was killed and its end was reported.
    kill_at: Option<Time>,
}

impl Commands {
    /// When the next command must be killed.
    pub(super) fn due(&self) -> Option<Time> {
        self.running.iter().filter_map(|running| running.as_ref()?.kill_at).min()
    }

    /// Starts a command, or reports its end if that is known already.
    pub(super) fn start(&mut self, kind: CommandKind, id: u32, kill_at: Time, actions: &mut VecDeque<Action>) {
        let running = &mut self.running[index(kind)];
        if running.is_some() {
            // The previous one was killed and does not die, so another one would hang too.
            actions.push_back(ended(kind, id, CommandEnd::TimedOut));
            return;
        }
        *running = Some(Running { id, kill_at: Some(kill_at) });
        actions.push_back(Action::StartCommand(kind));
    }

    /// Kills the commands whose time limit is over.
    pub(super) fn handle_timeout(&mut self, now: Time, actions: &mut VecDeque<Action>) {
        self.kill(|kill_at| now >= kill_at, &CommandEnd::TimedOut, actions);
    }

    /// Kills all commands, because the main process has ended.
    pub(super) fn abandon(&mut self, actions: &mut VecDeque<Action>) {
        self.kill(|_| true, &CommandEnd::Abandoned, actions);
    }

    fn kill(&mut self, which: impl Fn(Time) -> bool, end: &CommandEnd, actions: &mut VecDeque<Action>) {
        for kind in KINDS {
            let Some(running) = &mut self.running[index(kind)] else { continue };
            if running.kill_at.take_if(|kill_at| which(*kill_at)).is_some() {
                actions.push_back(Action::KillCommand(kind));
                actions.push_back(ended(kind, running.id, end.clone()));
            }
        }
    }

    /// Handles a command that was waited for, or could not be started. Reports its end, unless that was reported before.
    pub(super) fn ended(&mut self, kind: CommandKind, end: CommandEnd, actions: &mut VecDeque<Action>) {
        if let Some(Running { id, kill_at: Some(_) }) = self.running[index(kind)].take() {
            actions.push_back(ended(kind, id, end));
        }
    }
}

/// The answer to a command order.
pub(super) const fn ended(kind: CommandKind, id: u32, end: CommandEnd) -> Action {
    Action::Answer(Answer::CommandEnded { kind, id, end })
}

const fn index(kind: CommandKind) -> usize {
    match kind {
        CommandKind::Health => 0,
        CommandKind::Lead => 1,
    }
}
