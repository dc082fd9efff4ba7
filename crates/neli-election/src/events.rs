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

/// The events of one election, from the call of [`Election::events`](crate::Election::events) on. It is a [`Stream`] too.
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
pub struct Events {
    /// The next one, and then the rest.
    next: Next,
}

type Next = Pin<Box<dyn Future<Output = (Result<Event, RecvError>, Receiver<Event>)> + Send + Sync>>;

fn next(mut events: Receiver<Event>) -> Next {
    Box::pin(async move { (events.recv().await, events) })
}

impl Events {
    pub(crate) fn new(events: Receiver<Event>) -> Self {
        Self { next: next(events) }
    }

    /// The next event; `None` once the election is over for this candidate.
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
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Events {
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

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// The events of all roles of a process, each with its role, from the call of [`Roles::events`](crate::Roles::events) on. It is a
/// [`Stream`] too. Events of one role come in their order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let roles = builder.named_roles(["ingest", "bill"]).join().await?;
/// let mut events = roles.events();
/// while let Some((role, event)) = events.next().await {
///     if let neli_election::Event::Acquired { term } = event {
///         println!("{role} is led here, in term {term}");
///         # break;
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RolesEvents {
    /// In the order in which they are looked at: a role that has just had an event is last, so that no role waits behind one with many.
    roles: VecDeque<(String, Events)>,
}

impl RolesEvents {
    pub(crate) fn new(roles: Vec<(String, Events)>) -> Self {
        Self { roles: roles.into() }
    }

    /// The role of the next event, by its name or number, and the event; `None` once the process stands for no role any more.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: an event is taken only when the future is ready.
    pub async fn next(&mut self) -> Option<(String, Event)> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

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

impl Stream for RolesEvents {
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
                    let mut events = RolesEvents::new(events);
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
