//! The exchange of states between the candidate and the supervisor of a node, with a key's run between them, and the performing of their
//! actions.

use alloc::vec::Vec;

use super::{Action, Node};
use crate::action::{Ending, HookRun};
use crate::candidate;
use crate::guard::Order;
use crate::kafka::Request;
use crate::note::{Note, Refusal};
use crate::once::Once;
use crate::record::{Offset, Why};
use crate::supervisor::{JobIs, JobStatus, Wanted};
use crate::time::Time;

impl Node {
    /// Compares the states of candidate and supervisor, and passes on the actions of all objects until there is none left. Orders about the job
    /// come first, so that no hook and no other action delays them.
    pub(super) fn connect(&mut self, now: Time) {
        if self.supervisor.take_give_up() {
            self.hooks.give_up();
            self.candidate.give_up(now);
        }
        while let Some(action) = self.supervisor.poll_action() {
            self.take_from_supervisor(now, action);
        }
        let mut notes = Vec::new();
        loop {
            self.exchange(now, &mut notes);
            if let Some(action) = self.once.as_mut().and_then(Once::poll_action) {
                // A node that is exiting ignores what is not recorded.
                if !self.is_exiting || matches!(action, Action::AppendFact { .. }) {
                    self.actions.push_back(action);
                }
            } else if self.is_exiting {
                self.read_on();
                break;
            } else if let Some((why, leaving)) = self.once.as_mut().and_then(Once::take_stand_down) {
                self.candidate.stand_down(now, why, leaving);
            } else if let Some(action) = self.candidate.poll_action() {
                self.take_from_candidate(now, action);
            } else if let Some(departure) = self.candidate.departed().filter(|_| !self.has_ended) {
                self.supervisor.exit(departure);
            } else {
                break;
            }
        }
        self.actions.extend(notes);
        if let Some(term) = self.unconfirmed.take_if(|term| self.candidate.has_ended(*term)) {
            self.nothing_to_release(term);
        }
        // One that is being killed is watched until it has ended.
        let may_renew = !self.supervisor.job_may_be_alive() && !self.supervisor.lacks_guard();
        if self.guard_is_outdated && !self.is_exiting && may_renew {
            (self.guard_is_outdated, self.unconfirmed) = (false, None);
            self.take_from_hooks();
            // No term of the history that was cut needs a release any more.
            if let Some(term) = self.supervisor.term() {
                self.nothing_to_release(term);
            }
            self.actions.push_back(Action::RenewGuard);
        }
        if self.hooks.ended_run().is_some_and(|run| !self.supervisor.may_be_alive(run.number)) {
            self.hooks.nothing_is_left(now);
        }
        self.take_from_hooks();
    }

    /// A process with many roles reads on where it hears hellos. Nothing else that the candidate of an exiting node wants is done.
    fn read_on(&mut self) {
        while let Some(action) = self.candidate.poll_action() {
            let reads = matches!(action, Action::Kafka(Request::ReadAnew | Request::ReadFrom(_)));
            if reads && self.candidate.is_one_of_many() {
                self.actions.push_back(action);
            }
        }
    }

    /// Tells the supervisor what the candidate wants of the job, and the candidate what the job is, until neither changes: two turns for a stop,
    /// and a third one if no process was alive. Notes about a consequence come after those about its cause, which the candidate still has.
    fn exchange(&mut self, now: Time, notes: &mut Vec<Action>) {
        while !self.is_exiting {
            let wanted = self.wanted(now);
            self.supervisor.set_wanted(now, wanted);
            while let Some(action) = self.supervisor.poll_action() {
                if let Action::Note(note) = &action {
                    self.note_run_end(note);
                    notes.push(action);
                } else {
                    self.take_from_supervisor(now, action);
                }
            }
            let mut local = self.supervisor.local();
            if let Some(JobIs::Gone(end)) = &mut local.job
                && self.candidate.awaits_end_of(end.proof.term())
                && let Some(once) = &mut self.once
            {
                end.once = once.term_is_over(end.leaving || self.candidate.is_leaving());
            }
            self.candidate.set_local(now, local);
            if self.wanted(now) == wanted {
                break;
            }
        }
    }

    /// What the candidate wants of the job, as far as the key's facts allow it. Before that the key is told of the run that has ended, and the
    /// candidate whether it may claim.
    fn wanted(&mut self, now: Time) -> Option<Wanted> {
        let Some(once) = &mut self.once else { return self.candidate.wants() };
        if let Some((number, run)) = self.supervisor.run_end() {
            once.run_ended(number, run);
        }
        self.candidate.hold_claims(now, once.holds_claims());
        Some(once.allowed(now, self.candidate.wants()?))
    }

    fn take_from_supervisor(&mut self, now: Time, action: Action) {
        // A node that is exiting waits for its hooks only.
        if self.is_exiting || self.is_refused && matches!(action, Action::DieOf { .. }) {
            return;
        }
        if let Action::Exit(ending) = action {
            return self.exit(self.ending(ending));
        }
        if let Action::Note(note) = &action {
            self.note_run_end(note);
        }
        // The first run of a term also starts the hook that runs beside the job.
        if let Action::Order(Order::Spawn { grant, run: 1, .. }) = &action {
            self.hooks.led(now, grant.term);
        }
        self.actions.push_back(action);
    }

    fn take_from_candidate(&mut self, now: Time, action: Action) {
        if let Action::Note(note) = action {
            self.take_note(now, note);
        } else if action == Action::RenewGuard {
            self.guard_is_outdated = true;
        } else {
            self.actions.push_back(action);
        }
    }

    /// Keeps the run whose end is noted for its hook.
    fn note_run_end(&mut self, note: &Note) {
        let by_itself = if let Note::JobExited { by_itself, .. } = note { Some(*by_itself) } else { None };
        let by_itself = by_itself.or(matches!(note, Note::NotStarted { .. }).then_some(true));
        if let Some(run) = by_itself.and_then(|by_itself| self.supervisor.ended_run(by_itself)) {
            self.hooks.run_ended(run);
        }
    }

    /// Passes on a note of the candidate, also to the guard and the hooks.
    fn take_note(&mut self, now: Time, note: Note) {
        if let Note::Refused(why) = note {
            return self.refuse(now, why);
        }
        // For an overlapped leader its release reports the end.
        if let Note::Leading { term, .. } = &note {
            self.hooks.won(*term);
        } else if let Note::Fenced { why, .. } = &note {
            self.hooks.fenced(now, why.as_str());
        } else if let Note::Released { term, why, delivered } = &note {
            if *delivered {
                self.nothing_to_release(*term);
                self.once.iter_mut().for_each(Once::release_delivered);
            } else {
                self.unconfirmed = Some(*term);
            }
            self.hooks.released(now, *why);
        } else if let Note::Standby(_) = &note {
            self.hooks.stood_by(now);
        } else if let Note::Superseded { term, .. } = &note {
            self.nothing_to_release(*term);
            self.hooks.fenced(now, "superseded");
        } else if note == Note::TopicRemade && !self.accepts_remade_topic {
            return self.refuse(now, Refusal::TopicRemade);
        }
        self.actions.push_back(Action::Note(note));
    }

    fn nothing_to_release(&mut self, term: Offset) {
        self.actions.push_back(Action::Order(Order::Released { term }));
    }

    /// Ends the node for good. A running job is stopped in order, as far as the lease permits, and a term that is held or claimed is released:
    /// after the exit no process would be left to do that.
    pub(super) fn refuse(&mut self, now: Time, refusal: Refusal) {
        if self.is_refused {
            return;
        }
        self.is_refused = true;
        self.actions.push_back(Action::Note(Note::Refused(refusal)));
        if self.supervisor.job_may_be_alive() || self.candidate.holds_or_awaits() {
            self.candidate.stand_down(now, Why::Refused, true);
        } else {
            // Its last hello is all that is sent: no claim is made any more.
            self.candidate.say_last_hello();
            while let Some(action) = self.candidate.poll_action() {
                if matches!(&action, Action::Kafka(Request::SayHello(hello)) if hello.leaves) {
                    self.actions.push_back(action);
                }
            }
            self.is_exiting = true;
            self.exit(Ending::Refused);
        }
    }

    fn exit(&mut self, ending: Ending) {
        if !self.has_ended {
            self.has_ended = true;
            if self.once.as_ref().is_some_and(Once::lacks_record) {
                self.actions.push_back(Action::Note(Note::OutcomeLost));
            }
            self.actions.push_back(Action::Exit(ending));
        }
    }

    fn take_from_hooks(&mut self) {
        while let Some(mut action) = self.hooks.poll_action() {
            if let Action::RunHook(run @ HookRun { ended: None, .. }) = &mut action {
                run.attempt = self.supervisor.attempt();
            }
            self.actions.push_back(action);
        }
    }
}

// ---- a node whose job succeeds once for a key: connects the key's facts, the candidate and the supervisor ----------

impl Node {
    /// Handles an event in the election. After a release that reports the key's run, no claim is made until the report was handled.
    pub(super) fn election(&mut self, now: Time, event: candidate::Event) {
        let Some(once) = &mut self.once else { return self.candidate.handle(now, event) };
        once.observe(&event);
        let fact_released = once.fact_released_by(&event);
        if fact_released.is_some() {
            self.candidate.hold_claims(now, true);
        }
        self.candidate.handle(now, event);
        if let Some(fact) = fact_released.filter(|fact| self.candidate.released_term() == Some(fact.term)) {
            once.run_released(fact);
        }
    }

    /// The cause of the node's end. A candidate that leaves because the key needs no run has a special status. One that is told to go before the
    /// key is known to be done never ends with 0, whatever its run has ended with.
    pub(super) fn ending(&self, ending: Ending) -> Ending {
        if self.is_refused && ending != Ending::Stuck {
            return Ending::Refused;
        }
        let Some(once) = &self.once else { return ending };
        let signal = self.supervisor.signal_of_stop();
        match (ending, once.skipped()) {
            (Ending::Ended | Ending::Job(_) | Ending::Lost(_), Some(skipped)) => skipped,
            (Ending::Ended | Ending::StoppedBy(_), None) if once.lacks_run() => Ending::NotDone { signal, job: None },
            (Ending::Job(status), None) if signal.is_some() && once.lacks_run() => {
                Ending::NotDone { signal, job: Some(status).filter(|status| *status != JobStatus::Exited(0)) }
            }
            // One that is ended during its release, or whose wait is over meanwhile, has not looked at the key again.
            (Ending::Ended | Ending::WaitedEnough, None) => once.known_ending().unwrap_or(ending),
            _ => ending,
        }
    }
}
