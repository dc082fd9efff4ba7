//! Streams of events: of one election, or of all roles of a process.

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
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut events = election.events();
    /// let lead = election.lead().await?;
    /// drop(lead);
    /// while let Some(event) = events.next().await {
    ///     if let neli::Event::Released { term, .. } = event {
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
/// # let broker = neli::EmbeddedBroker::start()?;
/// let builder = neli::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli::Election::builder("billing").embedded(&broker);
/// let roles = builder.named_roles(["ingest", "bill"]).join().await?;
/// let mut events = roles.events();
/// while let Some((role, event)) = events.next().await {
///     if let neli::Event::Acquired { term } = event {
///         println!("{role} is led here, in term {term}");
///         # break;
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RolesEvents {
    roles: Vec<(String, Events)>,
    /// The role that is looked at first in the next call, so that no role waits behind one with many events.
    first: usize,
}

impl RolesEvents {
    pub(crate) const fn new(roles: Vec<(String, Events)>) -> Self {
        Self { roles, first: 0 }
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
        let mut at = 0;
        while at < self.roles.len() {
            let place = (self.first + at) % self.roles.len();
            let (role, events) = &mut self.roles[place];
            match Pin::new(events).poll_next(context) {
                Poll::Ready(Some(event)) => {
                    self.first = place + 1;
                    return Poll::Ready(Some((role.clone(), event)));
                }
                Poll::Ready(None) => drop(self.roles.swap_remove(place)),
                Poll::Pending => at += 1,
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
