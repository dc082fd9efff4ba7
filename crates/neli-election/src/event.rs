//! The events that a candidate reports to its program.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::stream::{Stream, StreamExt as _, select_all, unfold};
use neli_kafka::{clock, one_line};
use neli_proto::leadership;
use neli_proto::note::{Note, StandbyReason};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::error::Reason;
use crate::wording;

/// The leader of an election, as far as it is known.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// # let lead = election.lead().await?;
/// if let Some(leader) = election.leader() {
///     let name = leader.name.as_deref().unwrap_or("somebody");
///     println!("{name} leads in term {}{}", leader.term, if leader.is_self { ", here" } else { "" });
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Leader {
    /// Its name, from [`Builder::name`](crate::Builder::name) or `neli-run --name`: an address, for example, to which requests are routed.
    /// `None` if the records that were read don't contain it.
    pub name: Option<String>,
    /// The term: the fencing token of its lease.
    pub term: i64,
    /// Whether it is this candidate.
    pub is_self: bool,
    /// When this process first read that it leads in this term. A process that has started later than the term has read that at its start.
    /// `None` if that is not known.
    pub since: Option<Instant>,
}

impl Leader {
    /// The leader as the records show it. `known` is the leader that was known before; `since` stays the same for the same term.
    pub(crate) fn of(leader: &leadership::Leader, known: Option<&Self>) -> Self {
        let before = known.filter(|known| known.term == leader.term).and_then(|known| known.since);
        let since = before.or_else(|| Some(clock::instant_of(leader.since)));
        Self { name: leader.name.as_deref().map(Into::into), term: leader.term, is_self: leader.is_self, since }
    }
}

/// An event of a candidate. Events come in the order in which they happened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// # let mut events = election.events();
/// # drop(election.lead().await?);
/// # while let Some(event) = events.next().await {
/// match event {
///     neli_election::Event::Acquired { term } => println!("leading in term {term}"),
///     neli_election::Event::Standby { leader: Some(leader) } => println!("{leader} leads"),
///     neli_election::Event::Warning { message } => eprintln!("{message}"),
/// #   neli_election::Event::Released { .. } => break,
///     _ => {}
/// }
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The candidate leads: [`Election::lead`](crate::Election::lead) returns the lead.
    Acquired {
        /// The term.
        term: i64,
    },
    /// The lease has run out, or another candidate has claimed the lead, and no task runs under it any more. Each term that was
    /// [`Acquired`](Self::Acquired) ends with one event: this one or [`Released`](Self::Released). If a task under the lead does not end, there is neither, and the candidate ends with
    /// [`Error::Blocked`](crate::Error::Blocked).
    Fenced {
        /// The term.
        term: i64,
    },
    /// Events before this one were lost, because they came faster than the program took them.
    Missed {
        /// The number of lost events.
        count: u64,
    },
    /// The term was released, so another candidate may lead at once. If the release was not delivered, the others don't know of it, and wait
    /// until the lease has run out.
    Released {
        /// The term.
        term: i64,
        /// Why the lead has ended.
        reason: Reason,
        /// Whether Kafka has acknowledged the release.
        delivered: bool,
    },
    /// The lead must be given up: the tasks under it are awaited until the stop timeout.
    Revoked {
        /// The term.
        term: i64,
        /// Why it must be given up.
        reason: Reason,
    },
    /// The candidate stands by.
    Standby {
        /// The leader's name; `None` if nobody leads, or if the leader is unknown.
        leader: Option<String>,
    },
    /// A warning. The candidate goes on, unless this is its last event: then it no longer stands for election, though it has not left, and this
    /// says why.
    Warning {
        /// The warning, in one line.
        message: String,
    },
}

impl Event {
    /// The event for a note of the node; `None` if users get none for it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most notes are about the job of neli-run")]
    pub(crate) fn of(note: &Note) -> Option<Self> {
        Some(match note {
            Note::AppendRefused { error } => {
                Self::warning(&format!("Kafka does not append this candidate's records: {error}"))
            }
            Note::BrokerDown { error, .. } => Self::warning(&format!("Kafka does not answer: {error}")),
            Note::Fenced { term, .. } => Self::Fenced { term: *term },
            Note::GroupRefuses { error } => {
                Self::warning(&format!("{error}; until the group takes this candidate, it goes on without precedence"))
            }
            Note::MappingInDoubt { why, until } => Self::warning(&format!(
                "{}; that candidate may have left: this process claims nothing for {} s, unless it learns \
                 before that the candidate has left",
                wording::roles_differ(why),
                until.since(clock::now()).as_secs() + 1
            )),
            Note::Released { term, why, delivered } => {
                Self::Released { term: *term, reason: Reason::of(*why), delivered: *delivered }
            }
            Note::RolesDiffer(differs) => Self::warning(&wording::roles_differ(differs)),
            Note::Standby(StandbyReason { leader, .. }) => Self::Standby { leader: leader.as_deref().map(Into::into) },
            Note::Stopping { term, why, .. } => Self::Revoked { term: *term, reason: Reason::of(*why) },
            Note::TopicRemade => Self::warning(
                "the topic was deleted and made again: records of the old topic no longer count, and fencing tokens \
                 may start from 0 again",
            ),
            Note::UnusedPartitions => Self::warning(
                "the topic has more partitions than this group uses, and Kafka moves them between members when one \
                 joins: use a topic with one partition",
            ),
            _ => return None,
        })
    }

    pub(crate) fn warning(message: &str) -> Self {
        Self::Warning { message: one_line(message) }
    }
}

// ---- streams of events: of one election, or of all roles of a process ----------------------------------------------

/// The events of one election, from the call of [`Election::events`](crate::Election::events) on; or those of all roles of a process, each
/// with its role, from the call of [`Roles::events`](crate::Roles::events) on. It is a [`Stream`] too. Events of one role come in their order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// let mut events = election.events();
/// tokio::spawn(async move {
///     while let Some(event) = events.next().await {
///         println!("{event:?}");
///     }
/// });
/// # Ok(()) }
/// ```
pub struct Events<T = Event> {
    stream: Pin<Box<dyn Stream<Item = T> + Send + Sync>>,
}

impl Events {
    /// The events of one election.
    pub(crate) fn new(events: Receiver<Event>) -> Self {
        let stream = unfold(events, |mut events| async move {
            let event = match events.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(count)) => Event::Missed { count },
                Err(RecvError::Closed) => return None,
            };
            Some((event, events))
        });
        Self { stream: Box::pin(stream.fuse()) }
    }
}

impl Events<(String, Event)> {
    /// The events of these roles, of which none waits behind one with many.
    pub(crate) fn of_roles(roles: impl IntoIterator<Item = (String, Events)>) -> Self {
        let with_role = |(role, events): (String, Events)| events.stream.map(move |event| (role.clone(), event));
        Self { stream: Box::pin(select_all(roles.into_iter().map(with_role))) }
    }
}

impl<T> Events<T> {
    /// The next event, with its role's name or number if it is one of [`Roles::events`](crate::Roles::events); `None` once the process no
    /// longer stands for the election, or for any of the roles.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: an event is taken only when the future is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut events = election.events();
    /// let lead = election.lead().await?;
    /// drop(lead);
    /// while let Some(event) = events.next().await {
    ///     if let neli_election::Event::Released { term, .. } = event {
    ///         println!("term {term} was released");
    ///         break;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Option<T> {
        self.stream.next().await
    }
}

impl<T> Stream for Events<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for Events<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use tokio::sync::broadcast;

    use super::*;

    /// Also if a role ends that is looked at before the one that has an event.
    #[test]
    fn an_event_is_returned_although_another_role_ends() {
        for last in 0..4 {
            for ended in 0..4 {
                for ready in (0..4).filter(|ready| *ready != ended) {
                    let (mut senders, events): (Vec<_>, Vec<_>) = (0..4)
                        .map(|role| {
                            let (sender, events) = broadcast::channel(2);
                            (Some(sender), (role.to_string(), Events::new(events)))
                        })
                        .unzip();
                    let mut events = Events::of_roles(events);
                    let mut context = Context::from_waker(Waker::noop());
                    let mut poll = || pin!(events.next()).poll(&mut context);
                    let send = |sender: &Option<broadcast::Sender<Event>>| {
                        sender.as_ref().unwrap().send(Event::Acquired { term: 1 }).unwrap();
                    };
                    send(&senders[last]);
                    assert!(poll().is_ready());
                    senders[ended] = None;
                    send(&senders[ready]);
                    let expected = Poll::Ready(Some((ready.to_string(), Event::Acquired { term: 1 })));
                    assert_eq!(poll(), expected, "after an event of role {last}, role {ended} has ended");
                    assert_eq!(poll(), Poll::Pending);
                    senders.clear();
                    assert_eq!(poll(), Poll::Ready(None));
                }
            }
        }
    }
}
