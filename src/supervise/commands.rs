//! The commands that run beside the job of one election: the health command, which the guard runs, and the hooks.

use std::ffi::OsString;

use neli_proto::hooks::EndedRun;
use neli_proto::job::CommandEnd;
use neli_proto::node::{Event, HookRun};
use neli_proto::supervisor::{self, JobStatus};

use crate::config::job_variables;
use crate::guard::Order;
use crate::process::attributes::EarlierAttributes;
use crate::process::shell::{self, Tail};
use crate::process::spawn::{ChildKind, Image, SpawnSpec};
use crate::supervise::MainLoop;
use crate::supervise::role::Role;

impl MainLoop {
    /// Makes the guard run the health command. The command's output comes to this process, which passes it on to stderr, so that the
    /// command is not blocked if stderr is not read.
    pub(super) fn check_health(&mut self, role: usize, id: u32, order: &Order) {
        let Role { job: Some(job), health_output, .. } = &mut self.nodes.roles[role] else { return };
        // Without a free descriptor its output is lost, but its status is still reported.
        let (tail, input) = Tail::new().ok().unzip();
        job.send(order, input);
        if let Some(tail) = tail {
            *health_output = Some((id, tail));
        }
    }

    /// Starts a hook as a child of this process.
    pub(super) fn run_hook(&mut self, role: usize, run: HookRun) {
        let HookRun { hook, id, why, term, attempt, ended } = run;
        let Some(line) = self.config.hooks.get(&hook) else { return };
        let Role { job, hooks, election, .. } = &mut self.nodes.roles[role];
        let made;
        let guard_config = if let Some(job) = job {
            &job.config
        } else {
            // A hook has no term to release.
            made = self.job_maker.guard_config(&self.config, election, None);
            &made
        };
        let event = [(job_variables::EVENT, hook.event().to_owned()), (job_variables::WHY, why.to_owned())];
        let lead =
            term.map(|term| [(job_variables::EPOCH, term.to_string()), (job_variables::ATTEMPT, attempt.to_string())]);
        let own = event.into_iter().chain(lead.into_iter().flatten()).chain(ended.into_iter().flat_map(about));
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment: Vec<_> = guard_config.environment.iter().cloned().chain(own).collect();
        let started = Image::of_shell(line, &environment).and_then(|image| {
            let spec = SpawnSpec {
                image: &image,
                environment: &[],
                descriptors: &[],
                ignored: guard_config.ignored,
                attributes: EarlierAttributes { mark: None, ..guard_config.attributes },
                cgroup: None,
                deadline: None,
                kind: ChildKind::Command(None),
            };
            hooks.start(id, &spec)
        });
        if let Err(error) = started {
            self.tell(role, Event::HookEnded { id, end: shell::not_started(error) });
        }
    }
}

/// Handles the end of a health command. A late report about an earlier one must not take the output of the present one.
pub(super) fn health_ended(
    present: &mut Option<(u32, Tail)>,
    id: u32,
    end: CommandEnd,
    pass_on: impl FnMut(&[u8]),
) -> Event {
    let output = present.take_if(|(running, _)| *running == id);
    let last_line = output.map(|(_, output)| output.into_last_line(pass_on));
    let last_line = last_line.unwrap_or_default().into();
    Event::Job(supervisor::Event::HealthEnded { id, end, last_line })
}

/// The variables about a run that has ended.
fn about(run: EndedRun) -> impl Iterator<Item = (&'static str, String)> {
    let status = match run.status {
        JobStatus::Exited(status) => (job_variables::EXIT, status.to_string()),
        JobStatus::Signaled(signal) => (job_variables::SIGNAL, signal.to_string()),
    };
    let of_window = run.window.map(job_variables::of_window);
    let seconds = (job_variables::RUN_SECONDS, run.ran.as_secs().to_string());
    [status, seconds].into_iter().chain(of_window.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn an_end_that_comes_late_does_not_take_the_output_of_the_next_health_command() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let (tail, input) = Tail::new().unwrap();
        let mut output = Some((2, tail));
        let mut ended = |id| {
            let event = health_ended(&mut output, id, CommandEnd::Exited(1), |_| {});
            let Event::Job(supervisor::Event::HealthEnded { last_line, .. }) = event else { panic!("{event:?}") };
            last_line
        };
        assert_eq!(&*ended(1), "");
        File::from(input).write_all(b"not reachable\n").unwrap();
        assert_eq!(&*ended(2), "not reachable");
    }
}
