//! A value that only the supervisor can make, for tests of a candidate without its supervisor.

use std::time::Duration;

use neli_proto::candidate::LocalEvent;
use neli_proto::guard::{Answer, Grant};
use neli_proto::restart::RestartPolicy;
use neli_proto::supervisor::{Action, LeadEvent, NothingLeft, OnLoss, Policy, StopPolicy, Supervisor};
use neli_proto::time::Time;

/// The proof that no process is left of the job that was started with `grant`. A supervisor makes it from its guard's answer.
pub(crate) fn nothing_left(now: Time, grant: Grant) -> NothingLeft {
    let stop = StopPolicy { signal: Some(15), timeout: Duration::ZERO };
    let restart = RestartPolicy::NEVER;
    let policy = Policy { settle: Duration::ZERO, stop, restart, on_loss: OnLoss::Standby, health: None };
    let mut supervisor = Supervisor::new(policy, Duration::ZERO);
    supervisor.handle_lead(now, LeadEvent::Led(grant));
    supervisor.handle_answer(now, Answer::Gone);
    while let Some(action) = supervisor.poll_action() {
        if let Action::Tell(LocalEvent::NothingLeft(end)) = action {
            return end.proof;
        }
    }
    panic!("the supervisor does not tell that nothing is left")
}
