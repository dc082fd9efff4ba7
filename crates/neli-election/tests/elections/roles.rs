//! Many roles in one process, with the library's embedded broker.

use std::collections::BTreeMap;
use std::future::{self, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use neli_election::{Builder, Election, Elector, EmbeddedBroker, Error, Event, Lease, Reason, Roles};

use crate::limit::soon;

const LEASE: Duration = Duration::from_secs(2);
const ROLES: [&str; 4] = ["bill", "ingest", "report", "send"];

fn builder(broker: &EmbeddedBroker, elector: Elector) -> Builder {
    Election::builder("billing").embedded(broker).elector(elector).lease(LEASE)
}

/// For each role, the processes that began to lead it, each with its lease.
type ByRole = BTreeMap<String, Vec<(&'static str, Lease)>>;

#[derive(Clone, Default)]
struct Leads(Arc<Mutex<ByRole>>);

impl Leads {
    /// Lets a process lead every role that it wins.
    fn follow(&self, process: &'static str, roles: &Roles) {
        for (role, election) in roles.iter() {
            let (role, election, leads) = (role.to_owned(), election.clone(), self.clone());
            tokio::spawn(async move {
                election
                    .background(async |lease| {
                        assert_eq!(lease.role(), Some(role.as_str()));
                        leads.begin(process, &role, lease);
                        future::pending::<()>().await;
                    })
                    .await
            });
        }
    }

    fn begin(&self, process: &'static str, role: &str, lease: Lease) {
        let mut leads = self.0.lock().unwrap();
        let of_role = leads.entry(role.to_owned()).or_default();
        assert!(of_role.iter().all(|(_, before)| !before.is_valid()), "two leases of {role}: {of_role:?}");
        of_role.push((process, lease));
    }

    /// The roles that a process leads now.
    fn of(&self, process: &str) -> Vec<String> {
        let leads = self.0.lock().unwrap();
        let is_led =
            |of_role: &Vec<(&str, Lease)>| of_role.iter().any(|(by, lease)| *by == process && lease.is_valid());
        leads.iter().filter(|(_, of_role)| is_led(of_role)).map(|(role, _)| role.clone()).collect()
    }

    async fn until(&self, are_right: impl Fn(&Self) -> bool) {
        let wait = async {
            let mut times = tokio::time::interval(Duration::from_millis(10));
            while !are_right(self) {
                times.tick().await;
            }
        };
        soon("the leads that the test waits for", wait).await;
    }
}

/// Waits for the end of a lease that is not extended any more.
async fn until_over(lease: &Lease) {
    while let Some(deadline) = lease.deadline() {
        tokio::time::sleep_until(deadline.into()).await;
    }
}

async fn share_and_take_over(elector: Elector) {
    let broker = EmbeddedBroker::start().unwrap();
    // No lead ends here but by a handover, also on a machine that stalls.
    let join = || builder(&broker, elector).lease(5 * LEASE).named_roles(ROLES).join_roles();
    let leads = Leads::default();
    let first = join().await.unwrap();
    leads.follow("first", &first);
    leads.until(|leads| leads.of("first").len() == ROLES.len()).await;

    let mut events = first.events();
    let second = join().await.unwrap();
    leads.follow("second", &second);
    leads.until(|leads| leads.of("first").len() == 2 && leads.of("second").len() == 2).await;
    let find_reason = async {
        loop {
            if let Event::Released { reason, .. } = events.next().await.unwrap().1 {
                return reason;
            }
        }
    };
    let reason = soon("the release of a role", find_reason).await;
    assert_eq!(reason, Reason::Spread);
    let of_second = leads.of("second");
    let election = second.get(&of_second[0]).unwrap();
    assert!(election.leader().is_some_and(|leader| leader.is_self));

    first.leave().await;
    leads.until(|leads| leads.of("second").len() == ROLES.len()).await;
    assert!(of_second.iter().all(|role| leads.of("second").contains(role)));
    second.leave().await;
}

#[tokio::test(flavor = "current_thread")]
async fn two_processes_share_the_roles_with_the_log() {
    share_and_take_over(Elector::Log).await;
}

#[tokio::test(flavor = "current_thread")]
async fn two_processes_share_the_roles_with_the_group() {
    share_and_take_over(Elector::Group).await;
}

/// A process leaves a role whose handles are dropped, and keeps the other roles.
#[tokio::test(flavor = "current_thread")]
async fn a_process_leaves_one_role_and_keeps_the_others() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(3).join_roles().await.unwrap();
    let (zero, one) = (roles.get("0").unwrap().clone(), roles.get("1").unwrap().clone());
    assert!(roles.get("3").is_none());
    let lead = one.lead().await.unwrap();
    zero.clone().leave().await;
    assert_eq!(zero.lead().await.unwrap_err(), Error::Left);
    assert!(lead.lease().is_valid());
    drop(lead);
    roles.leave().await;
    assert_eq!(one.lead().await.unwrap_err(), Error::Left);
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_leads_at_most_max_roles() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(3).max_roles(1).join_roles().await.unwrap();
    let leads = Leads::default();
    leads.follow("one", &roles);
    leads.until(|leads| leads.of("one").len() == 1).await;
    let others = builder(&broker, Elector::Log).roles(3).join_roles().await.unwrap();
    leads.follow("others", &others);
    leads.until(|leads| leads.of("others").len() == 2).await;
    assert_eq!(leads.of("one").len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_that_maps_a_role_elsewhere_is_refused() {
    let broker = EmbeddedBroker::start().unwrap();
    let first = builder(&broker, Elector::Log).name("first").named_roles(ROLES).join_roles().await.unwrap();
    // When it leads, its hello has been written.
    drop(first.get("bill").unwrap().lead().await.unwrap());
    let mut others = ROLES;
    others.reverse();
    let error = builder(&broker, Elector::Log).named_roles(others).join_roles().await.map(drop).unwrap_err();
    assert!(matches!(&error, Error::Refused(line) if line.contains("first")), "{error:?}");
    assert_eq!(
        builder(&broker, Elector::Log).named_roles(["bill", "bill"]).join_roles().await.unwrap_err().to_string(),
        "named_roles bill,bill: 'bill' is named twice"
    );
    assert_eq!(
        builder(&broker, Elector::Log).roles(0).join_roles().await.unwrap_err().to_string(),
        "roles 0: must be 1 to 10000"
    );
}

/// `Roles::lead` returns the lead of the next role that the process wins, and events contain their role.
#[tokio::test(flavor = "current_thread")]
async fn the_next_role_that_is_led_and_the_events_of_all() {
    const COUNT: u32 = 300;
    let broker = EmbeddedBroker::start().unwrap();
    // There are more channels than a task may poll in tokio without yielding.
    let roles = builder(&broker, Elector::Log).roles(COUNT).join_roles().await.unwrap();
    let mut events = roles.events();
    let mut leads = BTreeMap::new();
    for _ in 0..COUNT {
        let lead = soon("the lead of each role", roles.lead()).await.unwrap();
        let lease = lead.lease();
        leads.insert(lease.role().unwrap().to_owned(), (lease.token(), lead));
    }
    assert_eq!(leads.len(), COUNT as usize);
    leads.clear();
    let mut released = std::collections::BTreeSet::new();
    while released.len() < COUNT as usize {
        let (role, event) = soon("the end of each lead", events.next()).await.unwrap();
        if matches!(event, Event::Fenced { .. } | Event::Released { .. }) {
            released.insert(role);
        }
    }
    let left = roles.clone();
    left.leave().await;
    assert_eq!(roles.lead().await.map(drop), Err(Error::Left));
    while soon("the end of the events", events.next()).await.is_some() {}
}

/// Events are a `Stream`, for use with combinators.
#[tokio::test(flavor = "current_thread")]
async fn events_are_streams() {
    fn is_stream<T>(_: &impl futures_util::Stream<Item = T>) {}
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(2).join_roles().await.unwrap();
    is_stream::<Event>(&roles.get("0").unwrap().events());
    is_stream::<(String, Event)>(&roles.events());
}

/// A process that leaves one role is still given others.
#[tokio::test]
async fn one_role_can_be_left() {
    let broker = EmbeddedBroker::start().unwrap();
    let join = || builder(&broker, Elector::Log).named_roles(ROLES).join_roles();
    let leads = Leads::default();
    let (first, second) = (join().await.unwrap(), join().await.unwrap());
    leads.follow("first", &first);
    leads.follow("second", &second);
    let are_shared = |leads: &Leads| leads.of("first").len() == 2 && leads.of("second").len() == 2;
    leads.until(are_shared).await;
    let left = leads.of("first").remove(0);
    first.iter().find(|(role, _)| *role == left).unwrap().1.clone().leave().await;
    leads.until(|leads| leads.of("second").contains(&left) && are_shared(leads)).await;
}

/// Nothing more happens in the election of a role that was left, whatever happens in the others.
#[tokio::test(flavor = "current_thread")]
async fn the_events_of_a_role_that_was_left_end() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(2).join_roles().await.unwrap();
    let (kept, left) = (roles.get("0").unwrap(), roles.get("1").unwrap());
    let mut events = left.events();
    left.clone().leave().await;
    while soon("the end of the role's events", events.next()).await.is_some() {}
    assert!(soon("the lead of the other role", kept.lead()).await.unwrap().lease().is_valid());
}

/// A program whose number of roles is configured may be given one.
#[tokio::test(flavor = "current_thread")]
async fn a_lease_names_its_role_also_if_there_is_one() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(1).join_roles().await.unwrap();
    assert_eq!(roles.lead().await.unwrap().lease().role(), Some("0"));
    let election = Election::builder("other").embedded(&broker).join().await.unwrap();
    assert_eq!(election.lead().await.unwrap().lease().role(), None);
}

/// Blocks the thread that wakes it until the test says so, as if that thread got no processor.
struct BlockingWaker(Mutex<mpsc::Receiver<()>>);

impl Wake for BlockingWaker {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().recv().unwrap();
    }
}

/// If a task sees the end of its lease before the election's thread does, it drops the lead first. That is no resignation, after which the
/// process would not lead again for two leases.
#[tokio::test(flavor = "current_thread")]
async fn a_lead_that_is_dropped_after_its_lease_was_not_given_up() {
    let broker = EmbeddedBroker::start().unwrap();
    let roles = builder(&broker, Elector::Log).roles(2).join_roles().await.unwrap();
    let (zero, one) = (roles.get("0").unwrap(), roles.get("1").unwrap());
    let (lead, other) = (zero.lead().await.unwrap(), one.lead().await.unwrap());
    // The event wakes this in the election's thread.
    let mut events = one.events();
    let (go_on, blocked) = mpsc::channel();
    let waker = Waker::from(Arc::new(BlockingWaker(Mutex::new(blocked))));
    assert!(pin!(events.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(other);
    let lease = lead.lease();
    until_over(&lease).await;
    drop(lead);
    go_on.send(()).unwrap();
    let next = soon("the next lead", zero.lead_within(LEASE * 3 / 2)).await.unwrap();
    assert!(next.is_some(), "it counts as given up");
}

/// A process that no longer stands for one of its roles, and has not left it, learns that from the role's last event. `Roles::lead` goes on with
/// the other roles.
#[tokio::test(flavor = "current_thread")]
async fn the_last_event_of_a_role_says_why_it_is_over() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = builder(&broker, Elector::Log).stop_timeout(Duration::ZERO);
    let roles = builder.roles(2).join_roles().await.unwrap();
    let mut events = roles.get("0").unwrap().events();
    let mut lead = roles.get("0").unwrap().lead().await.unwrap();
    // A task that is begun, and then not polled any more, can't be dropped.
    let lease = lead.lease();
    let mut blocked = pin!(lead.run(|_| future::pending::<()>()));
    assert!(blocked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // After the poll: without a stop timeout, a poll that comes after the resign may return already.
    lease.resign();
    let mut last = None;
    while let Some(event) = soon("the end of the role's events", events.next()).await {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Warning { message: Error::Blocked.to_string() }));
    assert_eq!(soon("the lead of the other role", roles.lead()).await.unwrap().lease().role(), Some("1"));
}

/// A process whose task blocked does not stand for its role any more, also when the task has ended: nobody would take the lead there.
#[tokio::test(flavor = "current_thread")]
async fn a_role_of_which_a_task_blocked_is_not_led_there_again() {
    let broker = EmbeddedBroker::start().unwrap();
    let builder = builder(&broker, Elector::Log).lease(LEASE / 2).stop_timeout(Duration::ZERO);
    let first = builder.clone().name("first").roles(2).join_roles().await.unwrap();
    let mut follower =
        Election::builder("billing").embedded(&broker).roles(2).follow_roles().unwrap().get("0").unwrap().clone();
    let (zero, one) = (first.get("0").unwrap(), first.get("1").unwrap());
    let _kept = one.lead().await.unwrap();
    let mut lead = zero.lead().await.unwrap();
    let term = lead.lease().token();
    {
        let lease = lead.lease();
        let mut blocked = pin!(lead.run(|_| future::pending::<()>()));
        assert!(blocked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        // After the poll: without a stop timeout, a poll that comes after the resign may return already.
        lease.resign();
        assert_eq!(zero.lead().await.map(drop), Err(Error::Blocked));
    }
    // It would claim again after this time, at the next record.
    tokio::time::sleep(3 * LEASE / 2).await;
    let second = builder.name("second").roles(2).join_roles().await.unwrap();
    let next = async {
        loop {
            follower.changed().await.unwrap();
            if let Some(leader) = follower.leader().filter(|leader| leader.term > term) {
                return leader.name;
            }
        }
    };
    assert_eq!(soon("the next leader", next).await.as_deref(), Some("second"));
    let lead = soon("the lead of the role", second.get("0").unwrap().lead()).await.unwrap();
    assert!(lead.lease().is_valid());
}

/// After a stop of the process, the runtime may go on before the election's thread does, which would drop the callback.
#[tokio::test(flavor = "current_thread")]
async fn a_callback_is_not_polled_once_the_lease_has_run_out() {
    let broker = EmbeddedBroker::start().unwrap();
    let (call, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let polled_late = Arc::new(AtomicU32::new(0));
    let late = Arc::clone(&polled_late);
    let builder = builder(&broker, Elector::Log).before_release(10 * LEASE, move |lease: Lease, _| {
        let (call, late) = (call.clone(), Arc::clone(&late));
        async move {
            call.send(lease.clone()).unwrap();
            loop {
                late.fetch_add(u32::from(!lease.is_valid()), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let roles = builder.roles(2).join_roles().await.unwrap();
    let (zero, one) = (roles.get("0").unwrap(), roles.get("1").unwrap());
    let (lead, other) = (zero.lead().await.unwrap(), one.lead().await.unwrap());
    drop(lead);
    let lease = soon("the callback", calls.recv()).await.unwrap();
    let mut events = one.events();
    let (go_on, blocked) = mpsc::channel();
    let waker = Waker::from(Arc::new(BlockingWaker(Mutex::new(blocked))));
    assert!(pin!(events.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(other);
    until_over(&lease).await;
    // What was counted before the thread was blocked is no fault: on a busy machine a lease may run out and be extended all the same.
    polled_late.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(50)).await;
    go_on.send(()).unwrap();
    // A poll may begin just before the lease's end.
    assert!(polled_late.load(Ordering::Relaxed) < 2, "the callback has gone on");
}

/// A process whose tasks can't do their work gives the roles up. The other process, which leads more roles then, does not hand them back at once.
#[tokio::test(flavor = "current_thread")]
async fn a_process_that_gives_a_role_up_is_not_handed_it_at_once() {
    let broker = EmbeddedBroker::start().unwrap();
    let join = || builder(&broker, Elector::Log).roles(2).join_roles();
    let (failing, working) = (join().await.unwrap(), join().await.unwrap());
    for (_, election) in failing.iter() {
        let election = election.clone();
        tokio::spawn(async move { election.serve(async |_| ()).await });
    }
    let leads = Leads::default();
    leads.follow("working", &working);
    let count = |leads: &Leads| leads.0.lock().unwrap().values().map(Vec::len).sum::<usize>();
    leads.until(|leads| leads.of("working").len() == 2).await;
    let before = count(&leads);
    tokio::time::sleep(2 * LEASE).await;
    assert!(count(&leads) <= before + 2, "led {} times", count(&leads));
    assert_eq!(leads.of("working").len(), 2);
}
