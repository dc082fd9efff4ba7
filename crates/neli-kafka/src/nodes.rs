//! The nodes of a process's elections and their session with Kafka: the session's events go to the nodes, and the nodes' actions that concern
//! Kafka are performed in the session. With many roles, [`ManyRoles`] gets the same events, and its events go to the nodes.
//!
//! The main loop of `neli-run` and the library's thread are both a [`Host`] of them. Each does by itself what only it does with an event: log it,
//! give it to a guard, show it to users. Nothing here decides.
//!
//! The order of effects: a node gets the records of others before any other event, and an action is performed before the node is asked for the
//! next one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

use neli_proto::candidate;
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::many_roles::{self, ManyRoles};
use neli_proto::node::{Action, Event, Node, Settings};
use neli_proto::note::{Note, Refusal};
use neli_proto::random::Random;
use neli_proto::record::MemberId;
use neli_proto::reminder::{Reminder, Troubles};
use neli_proto::time::Time;
use neli_proto::timings::Elector;
use neli_proto::topic::TopicIdentity;

use crate::election::Elections;
use crate::event::SessionEvent;
use crate::session::Session;
use crate::{clock, names, text};

/// The part of a loop's state that belongs to one election.
pub trait HasNode {
    /// The node.
    fn node(&self) -> &Node;
    /// The same.
    fn node_mut(&mut self) -> &mut Node;
    /// When the loop is to call the node, or do something else for this election.
    fn poll_timeout(&self) -> Option<Time>;
}

/// How many events of the session, or answers of a guard, are handled before the loop turns to its other inputs.
pub const EVENTS_TOGETHER: usize = 1024;

/// How long a process waits at its end for its member to leave the group. A leave takes half of that at most; a library that hangs delays the exit
/// no longer.
const LEAVING_TAKES: Duration = Duration::from_secs(1);

/// A loop that hosts a process's nodes. The methods without a body are those in which the main loop of `neli-run` and the library's thread differ:
/// what each logs, gives to a guard, and shows to users.
pub trait Host {
    /// The loop's state in one election.
    type Role: HasNode;

    /// The nodes.
    fn nodes(&mut self) -> &mut Nodes<Self::Role>;
    /// Performs an action that does not concern Kafka.
    fn perform_one(&mut self, role: usize, action: Action);
    /// A role's node has no more actions.
    fn end_actions(&mut self, role: usize);
    /// Whether Kafka's events still matter. The embedded broker may have ended.
    fn uses_kafka(&self) -> bool {
        true
    }
    /// Does in Kafka what a role's node has requested.
    fn request(&mut self, role: usize, request: &Request) {
        self.nodes().request(role, request);
    }
    /// Shows a message about all roles to users.
    fn show(&mut self, note: Note);
    /// Takes from an event of an election what the loop itself needs, before the node gets it.
    fn note_event(&mut self, _now: Time, _role: usize, _event: &mut candidate::Event) {}
    /// Handles an event of the session that no node gets, after [`Nodes::troubles`] was told of it.
    fn handle_process_event(&mut self, now: Time, event: SessionEvent);

    /// Performs the actions of the nodes that had an event, until there are no more.
    fn perform(&mut self) {
        loop {
            while let Some(note) = self.nodes().notes.pop_front() {
                self.show(note);
            }
            let Some(role) = self.nodes().touched.pop_first() else { return };
            while let Some(action) = self.nodes().roles[role].node_mut().poll_action() {
                if let Action::Kafka(request) = action {
                    self.request(role, &request);
                } else {
                    self.perform_one(role, action);
                }
            }
            let nodes = self.nodes();
            nodes.session.set_leads(number(role), nodes.roles[role].node().leads().is_some());
            self.end_actions(role);
            let nodes = self.nodes();
            let timeouts = [nodes.roles[role].poll_timeout(), nodes.undecodable[role].poll_timeout()];
            nodes.timeouts.set(role, timeouts.into_iter().flatten().min());
        }
    }

    /// Handles several events of Kafka together, but without delaying the loop's other inputs for long.
    fn handle_session_events(&mut self) {
        for _ in 0..EVENTS_TOGETHER {
            let Some(event) = self.nodes().session.poll() else { break };
            self.perform();
            self.handle_session_event(event);
        }
    }

    /// Handles the last events of the session: what can't be said any more, and warnings. Records may come without end, but the exit waits for a
    /// limited time.
    fn handle_last_session_events(&mut self) {
        for _ in 0..EVENTS_TOGETHER {
            let (now, Some(event)) = (clock::now(), self.nodes().session.poll()) else { return };
            if let SessionEvent::Warning(_) = event {
                self.handle_process_event(now, event);
            } else if let SessionEvent::AppendRefused { error } = event {
                // The last hello may be refused for a reason that was reported just before.
                self.nodes().troubles.append_was_refused(now, error);
                self.nodes().troubles.poll(now).into_iter().for_each(|note| self.show(note));
            }
        }
    }

    /// Passes an event of the session to the nodes that it concerns.
    fn handle_session_event(&mut self, event: SessionEvent) {
        if !self.uses_kafka() {
            return;
        }
        let now = clock::now();
        if let SessionEvent::Election { role, mut event } = event {
            self.note_event(now, role as usize, &mut event);
            self.nodes().handle_election_event(now, role as usize, event);
        } else if let SessionEvent::Hello { offset, value } = event {
            self.nodes().handle_hello(now, offset, &value);
        } else if let SessionEvent::Refused { role, error } = event {
            let refused = Event::Refused(error.into());
            match role {
                Some(role) => self.nodes().tell(now, role as usize, refused),
                None => self.nodes().tell_all(&refused),
            }
        } else {
            self.nodes().note_trouble(now, &event);
            self.handle_process_event(now, event);
        }
    }
}

/// The nodes of a process, their session with Kafka, and the object that spreads the roles.
pub struct Nodes<R> {
    /// In the order of the roles' numbers.
    pub roles: Vec<R>,
    /// The session that all of them share.
    pub session: Session,
    /// The lasting problems with Kafka.
    pub troubles: Troubles,
    /// With many roles: what spreads them.
    many: Option<ManyRoles>,
    /// The roles whose nodes had an event since they were last asked for actions.
    touched: BTreeSet<usize>,
    /// When each role is to be called again.
    timeouts: Timeouts,
    /// The batch of each role's journal that can't be decoded, if there is one (R0), and for how long it has blocked the reading.
    undecodable: Vec<Reminder>,
    notes: VecDeque<Note>,
    /// At the process's end: until when it waits for its member to leave the group.
    left_by: Option<Time>,
}

/// A new node. One of many roles claims nothing before the process may stand.
///
/// # Errors
///
/// The kernel gives no randomness.
pub fn new_node(settings: Settings, is_one_of_many: bool) -> io::Result<Node> {
    let random = Random::from_seed(u64::from_le_bytes(random_bytes()?));
    let node = Node::new(clock::now(), settings, random);
    if !is_one_of_many {
        return Ok(node);
    }
    let mut node = node.one_of_many();
    node.handle(clock::now(), Event::SpreadBy(None));
    Ok(node)
}

/// What each candidate of this process says of itself. `listen`: the address where it answers by HTTP.
pub fn hello(
    (member, name): (MemberId, &str),
    version: &str,
    elector: Elector,
    priority: u16,
    listen: Option<SocketAddr>,
) -> Hello {
    Hello {
        listen: listen.map(|address| address.to_string().into()),
        host: names::host().map(Into::into),
        pid: Some(std::process::id()),
        version: Some(version.into()),
        elector: Some(elector.name().into()),
        priority,
        ..Hello::new(member, Some(name.into()))
    }
}

/// What spreads the roles of a process with many of them, which says one hello for all; `None` with a single election.
pub fn many_roles(
    hello: Hello,
    elections: &Elections,
    elector: Elector,
    max_roles: Option<u32>,
    are_spread: bool,
) -> Option<ManyRoles> {
    let hello = Hello { roles: Some(elections.typed().into()), max_roles, ..hello };
    elections.are_many().then(|| ManyRoles::new(hello, elections.roles.len(), elector, are_spread))
}

impl<R: HasNode> Nodes<R> {
    /// All roles count as touched. The embedded broker's topics have no ids, and the nodes get that at once.
    pub fn new(mut roles: Vec<R>, session: Session, many: Option<ManyRoles>) -> Self {
        if session.access().embedded.is_some() {
            for role in &mut roles {
                let (asked, identity) = (clock::now(), TopicIdentity::Unnamed);
                let event = candidate::Event::TopicIdentified { asked, identity };
                role.node_mut().handle(asked, Event::Election(event));
            }
        }
        let touched = (0..roles.len()).collect();
        let undecodable = roles.iter().map(|_| Reminder::default()).collect();
        let (troubles, timeouts) = (Troubles::default(), Timeouts::default());
        Self { roles, session, troubles, many, touched, timeouts, undecodable, notes: VecDeque::new(), left_by: None }
    }

    // ---- events -----------------------------------------------------------------------------------------------

    /// Passes an event to a role's node, after the records of others.
    pub fn tell(&mut self, now: Time, role: usize, event: Event) {
        self.tell_role(now, role, event);
        self.follow_many();
    }

    fn tell_role(&mut self, now: Time, role: usize, event: Event) {
        self.take_passed(now, role);
        self.call(now, role, |node| node.handle(now, event));
    }

    /// Passes an event of the process to each node.
    pub fn tell_all(&mut self, event: &Event) {
        self.tell_some(event, |_, _| true);
    }

    /// Passes an event of the process to each of these nodes; returns whether there is one.
    pub fn tell_some(&mut self, event: &Event, is_meant: impl Fn(usize, &R) -> bool) -> bool {
        let mut is_any = false;
        for role in 0..self.roles.len() {
            if is_meant(role, &self.roles[role]) {
                is_any = true;
                self.tell(clock::now(), role, event.clone());
            }
        }
        is_any
    }

    /// Passes an event to the node of a role that has left its election. It does not get the records of others any more.
    pub fn tell_ended(&mut self, now: Time, role: usize, event: Event) {
        self.call(now, role, |node| node.handle(now, event));
    }

    /// Calls a role's node for the timeouts that are over by now.
    pub fn handle_timeout(&mut self, now: Time, role: usize) {
        self.take_passed(now, role);
        self.call(now, role, |node| node.handle_timeout(now));
        self.follow_many();
    }

    /// Does for all roles together what is due by now: the spread of the roles, notes about problems that last, and readers that lacked a thread.
    pub fn handle_common_timeout(&mut self, now: Time) {
        self.session.handle_timeout(now);
        self.notes.extend(std::iter::from_fn(|| self.troubles.poll(now)));
        if let Some(many) = &mut self.many {
            many.handle_timeout(now);
            self.follow_many();
        }
    }

    /// A hello was read in partition 0.
    fn handle_hello(&mut self, now: Time, offset: i64, value: &[u8]) {
        if let Some(hello) = self.many.as_mut().and_then(|many| many.received(now, offset, value)) {
            for (role, number) in (0..self.roles.len()).zip(0..) {
                let about = Box::new(hello.clone().about(number));
                self.call(now, role, |node| node.handle(now, Event::Election(candidate::Event::HelloReceived(about))));
            }
        }
        self.follow_many();
    }

    fn note_trouble(&mut self, now: Time, event: &SessionEvent) {
        let troubles = &mut self.troubles;
        if let SessionEvent::AppendRefused { error } = event {
            troubles.append_was_refused(now, error.clone());
        } else if let SessionEvent::Group { refusal: Some(refusal) } = event {
            troubles.group.begin(now, refusal.clone());
        } else if let SessionEvent::Group { refusal: None } = event {
            troubles.group.end(now);
        } else if let SessionEvent::HelloDelivered = event {
            troubles.refused_appends.pause();
        } else if let SessionEvent::Outage { error: Some(error) } = event {
            troubles.no_broker_answers(now, error.clone());
        } else if let SessionEvent::Outage { error: None } = event {
            self.notes.extend(troubles.outage.end(now).map(|down| Note::BrokerUp { down }));
        }
    }

    /// Handles an event of a role's election. The session has reported the records of other elections before it.
    pub(crate) fn handle_election_event(&mut self, now: Time, role: usize, event: candidate::Event) {
        self.note_undecodable(now, role, &event);
        if let candidate::Event::Answered { end, .. } = event
            && let (Some(many), Some(partitions)) = (&mut self.many, self.session.router.partitions())
        {
            many.listens(now, role, end, partitions.unsigned_abs());
        } else if let candidate::Event::Delivered { .. } = event {
            self.troubles.refused_appends.pause();
        }
        let node = self.roles[role].node_mut();
        match &mut self.many {
            Some(many) => many.tell(now, role, node, event),
            None => node.handle(now, Event::Election(event)),
        }
        self.touched.insert(role);
        self.follow_many();
        self.note_caught_up(role);
    }

    /// Notes a batch that can't be decoded, until something is read again: each answer about the log's end comes all the same.
    fn note_undecodable(&mut self, now: Time, role: usize, event: &candidate::Event) {
        use candidate::Event::{HelloAsked, Passed, ReachedEnd, Read, ReadHello, Undecodable};
        let reminder = &mut self.undecodable[role];
        if let Undecodable { offset, error: Some(error) } = event {
            reminder.begin(now, text::undecodable(self.session.topic(), *offset, error));
        } else if let HelloAsked { .. } | Passed { .. } | ReachedEnd { .. } | Read { .. } | ReadHello { .. } = event {
            reminder.end(now);
        }
    }

    /// That a batch of the role's journal can't be decoded, if so.
    pub fn undecodable(&self, role: usize) -> Option<&str> {
        self.undecodable[role].trouble().map(|(_, message)| message)
    }

    /// The same, if it is to be said now: at once and every 30 s.
    pub fn poll_undecodable(&mut self, now: Time, role: usize) -> Option<String> {
        self.undecodable[role].poll(now).map(|(message, _)| message)
    }

    /// Calls the node of a role, which may want actions afterwards, and may hold another lead than before.
    fn call(&mut self, now: Time, role: usize, call: impl FnOnce(&mut Node)) {
        let node = self.roles[role].node_mut();
        call(node);
        if let Some(many) = &mut self.many {
            many.observe(now, role, node.holding());
        }
        self.touched.insert(role);
    }

    /// Passes on the records of others, which were read before the event that follows.
    fn take_passed(&mut self, now: Time, role: usize) {
        if let Some(passed) = self.session.router.take_passed(number(role)) {
            self.call(now, role, |node| node.handle(now, Event::Election(passed)));
            self.note_caught_up(role);
        }
    }

    /// A node that has read everything learns of other elections' records only before it acts.
    fn note_caught_up(&mut self, role: usize) {
        if self.roles[role].node().is_caught_up() {
            self.session.router.note_caught_up(number(role));
        }
    }

    // ---- actions ------------------------------------------------------------------------------------------------------

    /// Marks a role, so that its node is asked for actions.
    pub fn touch(&mut self, role: usize) {
        self.touched.insert(role);
    }

    /// Does in Kafka what a role's node has requested. Returns whether a record was handed over.
    pub fn request(&mut self, role: usize, request: &Request) -> bool {
        let number = number(role);
        match request {
            Request::Identify => self.session.identify(),
            Request::JoinGroup => {
                if self.many.as_ref().is_none_or(ManyRoles::uses_group) {
                    self.session.join_group(number);
                }
            }
            Request::LeaveGroup => self.session.leave_group(number, self.roles[role].node().is_alone(clock::now())),
            Request::LookForEnd => self.session.look_for_end(number),
            Request::ReadAnew => self.session.read_anew(number),
            Request::ReadFrom(offset) => self.session.read_from(number, *offset),
            Request::RenewProducer => self.session.renew_producer(number),
            Request::SayHello(hello) => return self.session.say_hello(hello),
            Request::Send { record } => return self.session.send(number, record),
        }
        true
    }

    /// Whether the process stands in many elections.
    pub const fn has_many_roles(&self) -> bool {
        self.many.is_some()
    }

    /// Whether the process may claim vacancies. With many roles it introduces itself first, and may be refused until that has ended.
    pub fn may_claim(&self) -> bool {
        self.many.as_ref().is_none_or(ManyRoles::stands)
    }

    /// The time of the next call, for a role or for all of them together.
    pub fn poll_timeout(&self) -> Option<Time> {
        let spread = self.many.as_ref().and_then(ManyRoles::poll_timeout);
        let troubles = self.troubles.poll_timeout();
        [self.timeouts.first(), spread, troubles, self.session.poll_timeout()].into_iter().flatten().min()
    }

    /// The roles that are due by now.
    pub fn due(&self, now: Time) -> Vec<usize> {
        self.timeouts.due(now)
    }

    /// Begins the end of the process, which stands in no election any more: reads nothing more, leaves the group with all roles, and says the last
    /// hello, if it has said hello. A member that exits without leaving would delay the others by the group's session timeout.
    pub fn leave(&mut self) {
        let now = clock::now();
        self.session.stop_reading();
        let are_alone = self.roles.iter().all(|role| role.node().is_alone(now));
        for role in 0..self.roles.len() {
            self.session.leave_group(number(role), are_alone);
        }
        if let Some(last_hello) = self.many.as_ref().and_then(ManyRoles::last_hello) {
            self.session.say_hello(&last_hello);
        }
        self.left_by = Some(now + LEAVING_TAKES);
    }

    /// Until when the process waits with its exit, for the end of leaving or for its last hello; `None` if it does not wait.
    pub fn leaves_until(&self) -> Option<Time> {
        let left_by = self.left_by.filter(|left_by| self.session.is_leaving_group() && clock::now() < *left_by);
        [left_by, self.session.awaits_last_hello_until()].into_iter().flatten().min()
    }

    /// The hello that is to be written after the process's death; `None` with a single role, or if the process has not said hello.
    pub fn hello_after_death(&self) -> Option<Hello> {
        self.many.as_ref().and_then(ManyRoles::hello_after_death)
    }

    /// Performs the actions of the object that spreads the roles, until it has no more: an action on one role may cause an action on another.
    fn follow_many(&mut self) {
        while let Some(action) = self.many.as_mut().and_then(ManyRoles::poll_action) {
            match action {
                many_roles::Action::Hello(hello) => _ = self.session.say_hello(&hello),
                // Kafka answers, so claims and releases that are under way are awaited.
                many_roles::Action::Refuse(differs) => {
                    self.tell_all(&Event::Refused(Refusal::Roles(Box::new(differs))));
                }
                many_roles::Action::Note(note) => self.notes.push_back(note),
                many_roles::Action::Delay { role, extra } => self.tell_role(clock::now(), role, Event::SpreadBy(extra)),
                many_roles::Action::HandOver { role, to } => self.tell_role(clock::now(), role, Event::HandOver { to }),
            }
        }
    }
}

/// The number of a role by its index: a session's roles begin with 0.
fn number(role: usize) -> u32 {
    u32::try_from(role).unwrap_or(u32::MAX)
}

// ---- the time at which each of many roles is to be called again. Finding the earliest takes no search --------------

/// The timeouts, by role.
#[derive(Debug, Default)]
pub struct Timeouts {
    by_time: BTreeSet<(Time, usize)>,
    by_role: BTreeMap<usize, Time>,
}

impl Timeouts {
    /// Sets a role's timeout; `None` means never.
    pub fn set(&mut self, role: usize, at: Option<Time>) {
        if let Some(before) = self.by_role.remove(&role) {
            self.by_time.remove(&(before, role));
        }
        if let Some(at) = at {
            self.by_role.insert(role, at);
            self.by_time.insert((at, role));
        }
    }

    /// The earliest timeout.
    pub fn first(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The roles that are to be called by now, the longest due first.
    pub fn due(&self, now: Time) -> Vec<usize> {
        self.by_time.iter().take_while(|(at, _)| *at <= now).map(|(_, role)| *role).collect()
    }
}

/// This many random bytes, of the only source of randomness: the kernel's.
///
/// # Errors
///
/// When `/dev/urandom` can't be read.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
