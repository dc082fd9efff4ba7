//! A value that only the supervisor can make, for tests of a candidate without its supervisor.

use std::time::Duration;

use neli_proto::guard::{Answer, Grant};
use neli_proto::restart::RestartPolicy;
use neli_proto::supervisor::{JobIs, NothingLeft, OnLoss, Policy, StopPolicy, Supervisor, Wanted, WantedState};
use neli_proto::time::Time;

/// The proof that no process is left of the job that was started with `grant`. A supervisor makes it from its guard's answer.
pub(crate) fn nothing_left(now: Time, grant: Grant) -> NothingLeft {
    let stop = StopPolicy { signal: Some(15), timeout: Duration::ZERO };
    let restart = RestartPolicy::default();
    let policy = Policy { settle: Duration::ZERO, stop, restart, on_loss: OnLoss::Standby, health: None };
    let mut supervisor = Supervisor::new(policy, Duration::ZERO);
    supervisor.set_wanted(now, Some(Wanted { grant, again: 0, state: WantedState::Run }));
    let Some(JobIs::Alive { .. }) = supervisor.local().job else { panic!("a job that was ordered may be alive") };
    supervisor.handle_answer(now, Answer::Gone);
    match supervisor.local().job {
        Some(JobIs::Gone(end)) => end.proof,
        job => panic!("the supervisor does not tell that nothing is left: {job:?}"),
    }
}
