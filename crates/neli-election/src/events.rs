//! Streams of events: of one election, or of all roles of a process.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::unconstrained;

use crate::event::Event;

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
        Self { stream: Box::pin(OfElection { next: next(events) }) }
    }
}

impl Events<(String, Event)> {
    /// The events of these roles.
    pub(crate) fn of_roles(roles: Vec<(String, Events)>) -> Self {
        Self { stream: Box::pin(OfRoles { roles: roles.into() }) }
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
        poll_fn(|context| self.stream.as_mut().poll_next(context)).await
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

struct OfElection {
    /// The next one, and then the rest.
    next: Next,
}

type Next = Pin<Box<dyn Future<Output = (Result<Event, RecvError>, Receiver<Event>)> + Send + Sync>>;

fn next(mut events: Receiver<Event>) -> Next {
    Box::pin(async move { (events.recv().await, events) })
}

impl Stream for OfElection {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let (event, events) = ready!(self.next.as_mut().poll(context));
        self.next = next(events);
        Poll::Ready(match event {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(Event::Missed { count }),
            Err(RecvError::Closed) => None,
        })
    }
}

struct OfRoles {
    /// In the order in which they are looked at: a role that has just had an event is last, so that no role waits behind one with many.
    roles: VecDeque<(String, Events)>,
}

impl OfRoles {
    fn poll_each(&mut self, context: &mut Context<'_>) -> Poll<Option<(String, Event)>> {
        for _ in 0..self.roles.len() {
            let Some((role, mut events)) = self.roles.pop_front() else { break };
            match Pin::new(&mut events).poll_next(context) {
                Poll::Ready(Some(event)) => {
                    self.roles.push_back((role.clone(), events));
                    return Poll::Ready(Some((role, event)));
                }
                // The role has ended.
                Poll::Ready(None) => {}
                Poll::Pending => self.roles.push_back((role, events)),
            }
        }
        if self.roles.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl Stream for OfRoles {
    type Item = (String, Event);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // tokio lets a task poll some hundred channels at once, and there may be more roles.
        pin!(unconstrained(poll_fn(|context| self.poll_each(context)))).poll(context)
    }
}

#[cfg(test)]
mod tests {
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
