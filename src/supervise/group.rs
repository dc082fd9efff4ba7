//! What the loop does with the consumer group: its member joins and leaves, and what it reports goes to the candidate.

use neli::program::{Access, ClientError, Election, GroupEvent, GroupReport, Member, clock};
use neli_proto::candidate;
use neli_proto::node::Event;
use neli_proto::precedence::Standing;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::MainLoop;
use crate::report::log::Event as LogEvent;

/// How many reports of the group may wait for the loop; the threads that send them wait beyond that.
const REPORTS_WAITING: usize = 16;

/// The consumer group, as this process is in it.
pub(super) struct Group {
    pub(super) members: Members<Member>,
    pub(super) reports: Receiver<GroupReport>,
    report_sender: Sender<GroupReport>,
}

impl Group {
    /// Of a process that has joined nothing yet.
    pub(super) fn none() -> Self {
        let (report_sender, reports) = mpsc::channel(REPORTS_WAITING);
        Self { members: Members::none(), reports, report_sender }
    }

    fn join(&mut self, access: &Access, election: &Election) -> Result<(), ClientError> {
        self.members.join(|number| Member::join(access, election, number, self.report_sender.clone()))
    }

    /// `alone`: no other candidate is known.
    pub(super) fn leave(&mut self, alone: bool) {
        if let Some(member) = self.members.leave() {
            member.leave(alone);
        }
    }
}

/// This process's members of the group: the one that speaks for it, and those that leave. `M` is a member, [`Member`] but in a
/// test.
#[derive(Debug)]
pub(super) struct Members<M> {
    current: Option<M>,
    /// How many there have been: the number of the last one.
    count: u32,
    /// Those that have not left yet.
    leaving: u32,
}

impl<M> Members<M> {
    /// Of a process that has joined nothing yet.
    pub(super) const fn none() -> Self {
        Self { current: None, count: 0, leaving: 0 }
    }

    /// Joins by a new member, which is made with its number.
    fn join<E>(&mut self, join: impl FnOnce(u32) -> Result<M, E>) -> Result<(), E> {
        self.count += 1;
        self.current = Some(join(self.count)?);
        Ok(())
    }

    /// The member that is to leave now, if there is one: it is waited for until it has [left](Self::left).
    fn leave(&mut self) -> Option<M> {
        let member = self.current.take()?;
        self.leaving += 1;
        Some(member)
    }

    /// One that was leaving has left.
    fn left(&mut self) {
        self.leaving = self.leaving.saturating_sub(1);
    }

    /// Whether the member with this number is the one that speaks: what one that was left reports counts no more.
    const fn speaks(&self, number: u32) -> bool {
        self.current.is_some() && number == self.count
    }

    /// Whether there is a member that speaks.
    pub(super) const fn is_in_group(&self) -> bool {
        self.current.is_some()
    }

    /// Whether one of them is still leaving.
    pub(super) const fn are_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// No member is waited for any more.
    pub(super) const fn stop_waiting(&mut self) {
        self.leaving = 0;
    }
}

impl MainLoop {
    pub(super) fn join_group(&mut self) {
        if let Err(error) = self.kafka.group.join(&self.kafka.access, &self.role.election) {
            self.refuse(error.to_string());
        }
    }

    pub(super) fn handle_group_report(&mut self, report: GroupReport) {
        let now = clock::now();
        let speaks = self.kafka.group.members.speaks(report.member);
        let event = match report.event {
            GroupEvent::Left => return self.kafka.group.members.left(),
            GroupEvent::Refused { error } => {
                return self.role.node.handle(now, Event::KafkaRefused { error: error.into() });
            }
            GroupEvent::Warning(message) => return self.logger.warn(message),
            GroupEvent::Assigned
            | GroupEvent::Elsewhere
            | GroupEvent::Named { .. }
            | GroupEvent::Revoked { .. }
            | GroupEvent::UnusedPartitions
                if !speaks =>
            {
                return;
            }
            GroupEvent::Assigned => {
                self.logger.event(&LogEvent::Assigned { partition: self.role.election.partition });
                candidate::Event::StandingChanged(Standing::Assigned)
            }
            GroupEvent::Elsewhere => candidate::Event::StandingChanged(Standing::Elsewhere),
            GroupEvent::Named { id } => candidate::Event::Named { id: id.into() },
            GroupEvent::Revoked { lost } => {
                self.logger.event(&LogEvent::Revoked { lost });
                if lost { candidate::Event::StandingChanged(Standing::Unknown) } else { candidate::Event::Revoked }
            }
            GroupEvent::UnusedPartitions => candidate::Event::UnusedPartitions,
        };
        self.election_event(now, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_left_speaks_no_more() {
        let mut members = Members::none();
        let join = |members: &mut Members<u32>| members.join(Ok::<_, String>).map(|()| members.count);
        assert!(!members.speaks(0) && !members.speaks(1));
        let first = join(&mut members).unwrap();
        assert!(members.speaks(first));
        assert_eq!(members.leave(), Some(first));
        assert!(!members.speaks(first), "its words that are still on their way");
        let second = join(&mut members).unwrap();
        assert!(members.speaks(second) && !members.speaks(first));
        assert!(members.are_leaving());
        members.left();
        assert!(!members.are_leaving() && members.is_in_group());
        assert_eq!(members.join(|_| Err("no thread".to_owned())), Err("no thread".to_owned()));
    }
}
