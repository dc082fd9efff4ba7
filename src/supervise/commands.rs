//! What the loop does with commands: the health command's output, for the supervisor, and the hooks.

use std::ffi::OsString;

use neli::clock;
use neli_proto::command::CommandEnd;
use neli_proto::hooks::Hook;
use neli_proto::node::{Event, HookRun};
use neli_proto::supervisor;
use neli_proto::time::Time;
use nix::unistd::Pid;

use super::Run;
use crate::config::Commands;
use crate::guard::{CommandKind, Order, variables};
use crate::process::reap::Change;
use crate::process::shell::{self, ShellCommand};
use crate::process::tail::Tail;

/// A hook of the supervisor's that was not waited for.
pub(super) struct RunningHook {
    hook: Hook,
    id: u32,
    command: ShellCommand,
}

impl RunningHook {
    pub(super) fn pid(&self) -> Pid {
        self.command.pid()
    }
}

/// The hooks that were given.
pub(super) fn hooks_in(commands: &Commands) -> Vec<Hook> {
    [Hook::Fence, Hook::Lead, Hook::Standby].into_iter().filter(|hook| line_of(*hook, commands).is_some()).collect()
}

const fn line_of(hook: Hook, commands: &Commands) -> Option<&OsString> {
    match hook {
        Hook::Fence => commands.on_fence.as_ref(),
        Hook::Lead => commands.on_lead.as_ref(),
        Hook::Standby => commands.on_standby.as_ref(),
    }
}

impl Run {
    /// The health command runs beside the job. Its output comes to us, and we pass it on to stderr: of a stderr that takes
    /// nothing it notices nothing.
    pub(super) fn check_health(&mut self, id: u32, kill_at: Time) {
        let order = Order::Command { kind: CommandKind::Health, id, kill_at };
        match Tail::new() {
            Ok((tail, input)) => {
                // As for every order: the supervisor's watch sees a guard that takes no more.
                let _ = self.guard.send_with(&order, Some(input));
                self.health_output = Some(tail);
            }
            // Without a descriptor to spare its words are lost, and its status is not.
            Err(_) => self.order(&order),
        }
    }

    pub(super) fn read_health_output(&mut self) {
        if let Some(output) = &mut self.health_output {
            output.read(|line| self.stderr.pass_on(line));
        }
    }

    pub(super) fn command_ended(&mut self, kind: CommandKind, id: u32, end: CommandEnd) {
        let now = clock::now();
        match kind {
            CommandKind::Health => {
                let output = self.health_output.take();
                let last_line = output.map(|output| output.into_last_line(|line| self.stderr.pass_on(line)));
                let last_line = last_line.unwrap_or_default();
                let event = supervisor::Event::HealthEnded { id, end, last_line: last_line.into() };
                self.node.handle(now, Event::Job(event));
            }
            CommandKind::Lead => self.node.handle(now, Event::HookEnded { hook: Hook::Lead, id, end }),
        }
    }

    pub(super) fn kill_hook(&self, id: u32) {
        let killed = self.running_hooks.iter().filter(|running| running.id == id);
        killed.for_each(|running| running.command.kill());
    }

    pub(super) fn run_hook(&mut self, run: HookRun) {
        let HookRun { hook, id, why, term, attempt, kill_at } = run;
        if hook == Hook::Lead {
            return self.order(&Order::Command { kind: CommandKind::Lead, id, kill_at });
        }
        let Some(line) = line_of(hook, &self.config.commands) else { return };
        let event = [(variables::EVENT, hook.event().to_owned()), (variables::WHY, why.to_owned())];
        let lead = term.map(|term| [(variables::EPOCH, term.to_string()), (variables::ATTEMPT, attempt.to_string())]);
        let own = event.into_iter().chain(lead.into_iter().flatten());
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment: Vec<_> = self.guard_config.environment.iter().cloned().chain(own).collect();
        match ShellCommand::start(line, &environment, self.guard_config.ignored, self.guard_config.scheduling) {
            Ok(command) => self.running_hooks.push(RunningHook { hook, id, command }),
            Err(error) => {
                let end = shell::not_started(error);
                self.node.handle(clock::now(), Event::HookEnded { hook, id, end });
            }
        }
    }

    /// A child has ended, and was not waited for: what a hook leaves in its group is ended with it.
    pub(super) fn end_hook_group(&self, pid: Pid) {
        if let Some(running) = self.running_hooks.iter().find(|running| running.pid() == pid) {
            running.command.kill();
        }
    }

    /// A child has changed.
    pub(super) fn observe_hook(&mut self, change: &Change) {
        let Some(at) = self.running_hooks.iter().position(|running| running.pid() == change.pid) else { return };
        let Some(end) = self.running_hooks[at].command.end(change.status) else { return };
        let RunningHook { hook, id, .. } = self.running_hooks.swap_remove(at);
        self.node.handle(clock::now(), Event::HookEnded { hook, id, end });
    }
}
