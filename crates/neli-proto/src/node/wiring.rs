//! Passes messages between the candidate, the supervisor, the hooks and the keyed runs of a node.

use super::{Action, HookRun, Node};
use crate::candidate::{self, LocalEvent};
use crate::guard::{CommandKind, Order};
use crate::hooks::{self, Hook};
use crate::note::{Note, Refusal};
use crate::once::Once;
use crate::record::{Offset, Why};
use crate::supervisor::{self, Ending, LeadEvent};
use crate::time::Time;

impl Node {
    /// Passes on the actions of the candidate, the supervisor and the hooks until there is none left. Actions that stop or kill the job
    /// come first, so that a hook never delays them.
    pub(super) fn connect(&mut self, now: Time) {
        loop {
            if let Some(action) = self.supervisor.poll_action() {
                self.take_from_supervisor(now, action);
            } else if let Some(action) = self.once.as_mut().and_then(Once::poll_action) {
                self.take_from_once(now, action);
            } else if self.is_exiting {
                break self.take_from_hooks();
            } else if let Some(action) = self.candidate.poll_action() {
                self.take_from_candidate(now, action);
            } else if self.guard_is_outdated && !self.supervisor.job_may_be_alive() {
                self.guard_is_outdated = false;
                self.take_from_hooks();
                // No term of the history that was cut needs a release any more.
                if let Some(term) = self.supervisor.term() {
                    self.nothing_to_release(term);
                }
                self.actions.push_back(Action::RenewGuard);
            } else {
                break self.take_from_hooks();
            }
        }
        if self.is_suspending && self.hooks.is_idle() {
            self.is_suspending = false;
            if self.candidate.is_suspended() {
                self.actions.push_back(Action::Suspend);
            }
        }
    }

    fn take_from_supervisor(&mut self, now: Time, action: supervisor::Action) {
        use supervisor::Action as From;
        let action = match action {
            From::GiveUpWaiting => {
                self.hooks.give_up();
                return self.candidate.give_up(now);
            }
            // A node that is exiting waits for its hooks only.
            _ if self.is_exiting => return,
            From::DieOf { .. } if self.is_refused => return,
            From::DieOf { signal, to_group } => Action::DieOf { signal, to_group },
            From::Exit(ending) if self.is_refused && ending != Ending::Stuck => return self.exit(Ending::Refused),
            From::Exit(ending) => return self.exit(self.ending(ending)),
            From::KillGuard => Action::KillGuard,
            From::KillOrphans => Action::KillOrphans,
            From::LookAtForeground => Action::LookAtForeground,
            From::Note(note) => Action::Note(note),
            From::Order(order) => return self.order(now, order),
            From::RunEnded(end) => {
                self.once.iter_mut().for_each(|once| once.run_ended(now, end));
                return;
            }
            From::StartGuard => Action::StartGuard,
            From::Tell(LocalEvent::NothingLeft(mut end)) => {
                end.once = self.term_is_over(end.leaving);
                return self.candidate.handle_local(now, LocalEvent::NothingLeft(end));
            }
            From::Tell(event) => return self.candidate.handle_local(now, event),
        };
        self.actions.push_back(action);
    }

    fn take_from_candidate(&mut self, now: Time, action: candidate::Action) {
        use candidate::Action as From;
        let event = match action {
            From::Depart(departure) => LeadEvent::Departed(departure),
            From::Extend(grant) => LeadEvent::Extended(grant),
            From::Kill(loss) => {
                self.supervisor.handle_lead(now, LeadEvent::Killed(loss));
                return;
            }
            From::Lead(grant) => match &mut self.once {
                None => LeadEvent::Led(grant),
                Some(once) => {
                    once.led(now, grant.term);
                    LeadEvent::Held(grant)
                }
            },
            From::StopJob(why) if self.once.as_mut().is_some_and(|once| once.hold_back_stop(now, why)) => return,
            From::StopJob(why) => LeadEvent::StoppedFor(why),
            From::StopJobWithin { why, within } => LeadEvent::StoppedWithin { why, within },
            From::ForgetTerms => {
                self.guard_is_outdated = true;
                return;
            }
            From::Kafka(request) => return self.actions.push_back(Action::Kafka(request)),
            From::Note(note) => return self.take_note(now, note),
            From::Refuse { why } => return self.refuse(now, Refusal::Said(why)),
            // A process that is stopped could not end a hook in time.
            From::Suspend => {
                self.is_suspending = true;
                return;
            }
        };
        self.supervisor.handle_lead(now, event);
    }

    /// Passes on an order of the supervisor; the first run of a term also starts the hook that runs beside the job.
    fn order(&mut self, now: Time, order: Order) {
        self.actions.push_back(Action::Order(order));
        if let Order::Spawn { grant, run: 1, .. } = order {
            self.hooks.handle(now, hooks::Event::Led(grant.term));
        }
    }

    /// Passes on a note of the candidate, also to the guard and the hooks.
    fn take_note(&mut self, now: Time, note: Note) {
        // For a new leader the `--on-lead` hook starts when the job is started, and for an overlapped one its release reports the end.
        let event = if let Note::Fenced { why, .. } = &note {
            Some(hooks::Event::Fenced(*why))
        } else if let Note::Released { term, why, delivered } = &note {
            if *delivered {
                self.nothing_to_release(*term);
            }
            Some(hooks::Event::Released(*why))
        } else if let Note::Standby(_) = &note {
            Some(hooks::Event::StoodBy)
        } else if let Note::Superseded { term, .. } = &note {
            self.nothing_to_release(*term);
            Some(hooks::Event::Superseded)
        } else {
            None
        };
        if note == Note::TopicRemade && !self.accepts_remade_topic {
            return self.refuse(now, Refusal::TopicRemade);
        }
        if let Some(event) = event {
            self.hooks.handle(now, event);
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
            self.candidate.handle_local(now, LocalEvent::StandDown { why: Why::Refused, leaving: true });
        } else {
            // No claim is made any more.
            self.is_exiting = true;
            self.exit(Ending::Refused);
        }
    }

    fn exit(&mut self, ending: Ending) {
        if !self.has_ended {
            self.has_ended = true;
            self.actions.push_back(Action::Exit(ending));
        }
    }

    fn take_from_hooks(&mut self) {
        while let Some(action) = self.hooks.poll_action() {
            self.actions.push_back(match action {
                hooks::Action::Kill { id } => Action::KillHook { id },
                hooks::Action::NoteFailure { hook, end } => Action::Note(Note::HookFailed { hook, end }),
                hooks::Action::Run { hook: Hook::Lead, id, kill_at, .. } => {
                    Action::Order(Order::Command { kind: CommandKind::Lead, id, kill_at })
                }
                hooks::Action::Run { hook, id, why, term, kill_at } => {
                    let attempt = self.supervisor.attempt();
                    Action::RunHook(HookRun { hook, id, why, term, attempt, kill_at })
                }
            });
        }
    }
}
