//! The thread's state for one election.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use neli_kafka::{HasNode, clock, reason};
use neli_proto::node::{Node, Status};
use neli_proto::note::Refusal;
use neli_proto::record::Offset;
use neli_proto::supervisor::Ending;
use neli_proto::time::Time;
use tokio::sync::{broadcast, watch};

use super::{LastCall, Settings, State};
use crate::error::{Error, Reason};
use crate::event::{Event, Leader};
use crate::lease::Tenure;
use crate::task_guard::TaskGuard;
use crate::wording;

/// How many events are kept for each subscriber.
const EVENT_CAPACITY: usize = 256;
/// The same for each of many elections.
const EVENT_CAPACITY_OF_MANY: usize = 32;

/// One election.
pub(super) struct Role {
    number: u32,
    /// The role's label, unless the election has no roles.
    pub(super) label: Option<Arc<str>>,
    pub(super) node: Node,
    pub(super) guard: TaskGuard,
    state: watch::Sender<State>,
    /// For the subscribers of its events; none once the process no longer stands in the election.
    events: Option<broadcast::Sender<Event>>,
    /// The term whose beginning was reported to users and whose end was not.
    current_term: Option<Offset>,
    /// To the callback for warnings.
    pub(super) warnings: Sender<(String, Option<u32>)>,
    /// The lead that is held, or the last one while a task still runs under it.
    pub(super) held: Option<Held>,
    /// Why Kafka refuses the candidate, if it does.
    pub(super) refusal: Option<Refusal>,
    /// Whether an operator has ended the election.
    pub(super) is_election_over: bool,
    /// Why the process no longer stands in the election, if so.
    pub(super) ending: Option<Error>,
}

/// A lead, from its beginning until no task runs under it.
pub(super) struct Held {
    pub(super) tenure: Arc<Tenure>,
    /// If the program has not taken the lead by then, it is given up.
    pub(super) untaken_until: Option<Time>,
    /// When the tasks are dropped, so that there is time for the callback before the release. Once that runs: when it is dropped.
    pub(super) drop_at: Option<Time>,
    /// Whether that time has come, for the tasks or for the callback, whichever runs.
    pub(super) is_dropped: bool,
    /// Tasks were dropped: what they have sent has until then to arrive, and so long the lead is not released.
    pub(super) in_flight_until: Option<Time>,
    /// The callback before the release, once it was called.
    pub(super) last: Option<LastCall>,
}

impl HasNode for Role {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.ending.is_some() {
            return None;
        }
        let untaken = self.held.as_ref().and_then(|held| held.untaken_until);
        let drop_at = self.held.as_ref().and_then(|held| held.drop_at);
        let in_flight = self.held.as_ref().and_then(|held| held.in_flight_until);
        [self.node.poll_timeout(), self.guard.poll_timeout(), untaken, drop_at, in_flight].into_iter().flatten().min()
    }
}

impl Role {
    /// With the channels that the handles follow: the state, and the events.
    pub(super) fn new(
        settings: &Settings,
        number: u32,
        warnings: Sender<(String, Option<u32>)>,
    ) -> Result<(Self, watch::Receiver<State>, broadcast::Receiver<Event>), Error> {
        let no_randomness = |error| Error::System(format!("no randomness: {}", reason(&error)));
        let are_many = settings.source.elections.are_many();
        let node = neli_kafka::new_node(settings.node.clone(), are_many).map_err(no_randomness)?;
        let (state, states) = watch::channel(State::default());
        let capacity = if are_many { EVENT_CAPACITY_OF_MANY } else { EVENT_CAPACITY };
        let (events, first_events) = broadcast::channel(capacity);
        let role = Self {
            label: settings.has_roles.then(|| settings.source.elections.election(number, 1).label().into()),
            number,
            node,
            guard: TaskGuard::new(settings.node.timings.lease, std::process::id().cast_signed()),
            state,
            events: Some(events),
            current_term: None,
            warnings,
            held: None,
            refusal: None,
            is_election_over: false,
            ending: None,
        };
        Ok((role, states, first_events))
    }

    // ---- the lead -----------------------------------------------------------------------------------------------------

    /// Whether it holds this term, or a task still runs under it.
    pub(super) fn holds(&self, term: Offset) -> bool {
        self.held.as_ref().is_some_and(|held| held.tenure.term() == term)
    }

    /// Whether the end of its lead has begun.
    pub(super) fn lead_ends(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.tenure.ends().is_some())
    }

    /// The term of a lead that the program has not taken in time. It is returned once.
    pub(super) fn term_that_nobody_took(&mut self, now: Time) -> Option<Offset> {
        let held = self.held.as_mut()?;
        held.untaken_until.take_if(|until| now >= *until)?;
        (!held.tenure.is_taken()).then(|| held.tenure.term())
    }

    /// Drops the tasks at the stop timeout, or the callback before the release at the end of its own time.
    pub(super) fn drop_tasks_if_due(&mut self, now: Time, margin: Duration) {
        let Some(held) = &mut self.held else { return };
        if held.drop_at.take_if(|at| now >= *at).is_none() {
            return;
        }
        if let Some(last) = &held.last {
            last.abort();
        } else {
            held.tenure.drop_tasks();
        }
        (held.is_dropped, held.in_flight_until) = (true, Some(now + margin));
    }

    /// The last task has ended, or the callback before the release. If it was dropped, and has blocked until now, the lead is kept for the margin
    /// from now on, so that what it has sent arrives.
    pub(super) fn last_task_ended(&mut self, now: Time, margin: Duration) {
        if let Some(held) = self.held.as_mut().filter(|held| held.is_dropped && !held.tenure.is_over()) {
            held.in_flight_until = Some(now + margin);
        }
    }

    /// Drops the tasks and the callback before the release, because the lease is over for them.
    pub(super) fn expire(&mut self, now: Time, margin: Duration) {
        let Some(held) = &mut self.held else { return };
        if held.tenure.end(Reason::Expired) {
            held.in_flight_until = Some(now + margin);
        }
        held.last.iter().for_each(LastCall::abort);
    }

    /// Whether the time has come when nothing that a dropped task has sent is in flight. It is returned once.
    pub(super) fn is_margin_over(&mut self, now: Time) -> bool {
        self.held.as_mut().is_some_and(|held| held.in_flight_until.take_if(|until| now >= *until).is_some())
    }

    pub(super) fn end_lead(&self, reason: Reason) {
        if let Some(held) = &self.held {
            held.tenure.end(reason);
        }
    }

    // ---- what users see ------------------------------------------------------------------------------------------

    /// Reports an event; a warning is about all roles. The end of each term whose beginning was reported is reported once. If another candidate
    /// has taken the lead, the node does not report that end, so it is reported here.
    pub(super) fn tell(&mut self, event: Event) {
        let ended = match &event {
            Event::Acquired { term } => self.current_term.replace(*term),
            Event::Standby { .. } => self.current_term.take(),
            Event::Fenced { term } | Event::Released { term, .. } => {
                // The release of a term whose lease has run out, or of a claim under which it never led.
                if self.current_term.take_if(|current| *current == *term).is_none() {
                    return;
                }
                None
            }
            Event::Warning { message } => {
                drop(self.warnings.send((message.clone(), Some(self.number))));
                None
            }
            Event::Missed { .. } | Event::Revoked { .. } => None,
        };
        if let Some(term) = ended {
            self.pass_on(Event::Fenced { term });
        }
        self.pass_on(event);
    }

    /// Reports a warning about this role. The callback for warnings is that of all roles, so it gets the role's name, too.
    pub(super) fn report_warning(&self, message: &str) {
        let of_role = self.label.as_ref().map(|label| format!("role {label}: {message}"));
        drop(self.warnings.send((of_role.unwrap_or_else(|| message.to_owned()), None)));
        self.pass_on(Event::warning(message));
    }

    /// Passes an event on to the subscribers.
    pub(super) fn pass_on(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.events.as_ref().map(|events| events.send(event));
    }

    /// Publishes the state. `may_claim`: whether the process may claim vacancies; before, other candidates may still refuse it. `trouble`: why the
    /// journal can't be read.
    pub(super) fn publish(&self, may_claim: bool, trouble: Option<&str>) {
        use neli_proto::candidate::Position;
        let status = self.node.status(clock::now());
        let tenure = self.held.as_ref().map(|held| Arc::clone(&held.tenure));
        let stands = may_claim && !matches!(status.position, Position::Listening);
        self.state.send_if_modified(|state| {
            let term = |tenure: &Option<Arc<Tenure>>| tenure.as_ref().map(|tenure| tenure.term());
            state.trouble = trouble.map(str::to_owned);
            // One that has ended, in order or not, reads no more who leads.
            let leader = status.leader().filter(|_| self.ending.is_none());
            let leader = leader.map(|leader| Leader::of(leader, state.leader.as_ref()));
            // Nobody waits for a change of this: it is read on request.
            state.status = Status { standbys: Vec::new(), ..status };
            let has_changed = state.leader != leader || term(&state.tenure) != term(&tenure) || stands && !state.stands;
            (state.leader, state.tenure, state.stands) = (leader, tenure, state.stands || stands);
            has_changed
        });
    }

    /// Reports that the process no longer stands in this election, and why. `warns_on_stderr`: the program has given no callback for warnings.
    pub(super) fn tell_end(&mut self, warns_on_stderr: bool) {
        self.end_lead(Reason::Left);
        if !matches!(self.ending, Some(Error::Blocked | Error::System(_)))
            && let Some(term) = self.current_term
        {
            self.tell(Event::Fenced { term });
        }
        // Callers of `Roles::lead` are not told: they wait for the leads of other roles.
        match self.ending.as_ref().map(|error| (error, error.to_string())) {
            None | Some((Error::Left, _)) => {}
            // The caller of `join`, `lead` or `serve` gets it. (A task that blocks may keep that caller from it.)
            Some((error, why)) if self.label.is_none() && warns_on_stderr && *error != Error::Blocked => {
                self.pass_on(Event::warning(&why));
            }
            Some((Error::Blocked | Error::Ended, why)) => self.report_warning(&why),
            Some((_, why)) => self.tell(Event::warning(&why)),
        }
        self.state.send_modify(|state| {
            (state.tenure, state.leader, state.ended) = (None, None, self.ending.clone());
        });
        // The subscribers see that no event follows.
        self.events = None;
    }

    /// Why the process no longer stands in the election, now that its node has ended.
    pub(super) fn error_of(&mut self, ending: Ending) -> Error {
        if ending == Ending::Refused {
            let refusal = self.refusal.take();
            refusal.map_or_else(|| Error::Refused(String::new()), |refusal| Error::Refused(wording::refusal(&refusal)))
        } else if ending == Ending::Stuck {
            Error::Blocked
        } else if self.is_election_over {
            Error::Ended
        } else {
            Error::Left
        }
    }
}

#[cfg(test)]
mod tests;
