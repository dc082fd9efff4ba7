//! The commands that run beside the job of one election: the health command, which the guard runs, and the hooks.

use std::ffi::{OsStr, OsString};

use neli_proto::hooks::EndedRun;
use neli_proto::job::CommandEnd;
use neli_proto::node::{Event, HookRun};
use neli_proto::supervisor::{self, JobStatus};

use crate::config::job_variables;
use crate::guard::GuardConfig;
use crate::process::attributes::EarlierAttributes;
use crate::process::shell::{self, ShellCommands, Tail};
use crate::process::spawn::{ChildKind, Image, SpawnSpec};

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

/// Starts a hook, with this command line, as a child of this process; returns its end if it can't be started.
pub(super) fn start_hook(
    hooks: &mut ShellCommands<u32>,
    line: &OsStr,
    run: HookRun,
    guard_config: &GuardConfig,
) -> Option<Event> {
    let HookRun { hook, id, why, term, attempt, ended } = run;
    let event = [(job_variables::EVENT, hook.event().to_owned()), (job_variables::WHY, why.to_owned())];
    let lead =
        term.map(|term| [(job_variables::EPOCH, term.to_string()), (job_variables::ATTEMPT, attempt.to_string())]);
    let own = event.into_iter().chain(lead.into_iter().flatten()).chain(ended.into_iter().flat_map(about));
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment: Vec<_> = guard_config.environment.iter().cloned().chain(own).collect();
    let attributes = EarlierAttributes { mark: None, ..guard_config.attributes };
    let start = |image: Image| {
        hooks.start(
            id,
            &SpawnSpec {
                image: &image,
                environment: &[],
                descriptors: &[],
                ignored: guard_config.ignored,
                attributes,
                cgroup: None,
                deadline: None,
                kind: ChildKind::Command(None),
            },
        )
    };
    let started = Image::of_shell(line, &environment).and_then(start);
    started.err().map(|error| Event::HookEnded { id, end: shell::not_started(error) })
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
