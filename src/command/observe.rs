//! `observe`: all elections of a cluster over HTTP, as one session reads them. It joins nothing and writes nothing.
//!
//! The loop feeds what is read to `State`, which the server's thread renders when it is asked. Both take its lock for some milliseconds at a time:
//! no lease depends on this process.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use neli_kafka::{TopicsEvent, TopicsReader, clock, names};
use neli_proto::fact::TOPIC_SUFFIX;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::Topics;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc::channel;

use crate::command::reading::{self, read_at};
use crate::command::wording;
use crate::config::Observe;
use crate::exit::ExitStatus;
use crate::http::{self, Bound};
use crate::process::system;
use crate::text::one_line;

mod json;
mod metrics;
mod page;
mod pages;
mod state;

use pages::Pages;
use state::State;

/// The capacity of the queue of events.
const WAITING: usize = 10_000;
/// So many events are handled under one lock.
const TOGETHER: usize = 1_000;
/// The time that a strip shows.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two looks at what no record shows: silences, and time without a leader.
const TICK: Duration = Duration::from_secs(1);

/// Serves until TERM or INT.
///
/// # Errors
///
/// The address is not available, or Kafka refuses permanently.
pub fn main(observe: &Observe) -> Result<ExitStatus> {
    let bound = Bound::bind(&observe.listen).context(observe.listen.shown.clone())?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("signals can't be handled")?;
    let waits = move || {
        if signals.forever().next().is_some() {
            system::exit_at_once(ExitStatus::Success.code());
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(waits).context("no thread for signals")?;
    reading::run(serve(observe, bound))
}

async fn serve(observe: &Observe, bound: Bound) -> Result<ExitStatus> {
    let access = reading::access(&observe.client)?;
    let (sender, mut events) = channel(WAITING);
    let is_meant = observe.topics.clone();
    let is_read = move |name: &str| is_meant.matches(name.strip_suffix(TOPIC_SUFFIX).unwrap_or(name));
    let reader = TopicsReader::start(&access, is_read, sender).map_err(|error| anyhow!(error))?;
    let topics = Topics::new(FIRST_SPAN, names::MOST_ROLES).with_past(DAY);
    let state = Arc::new(Mutex::new(State::new(topics, observe.group.clone())));
    let (address, served) = (bound.address, Arc::clone(&state));
    http::serve(bound, move || Rc::new(Pages::new(served))).context("--listen: HTTP can't be served")?;
    say(&format!("listening on http://{address}/"));
    let (mut told, mut timer, mut some) = (Told::default(), reading::timer()?, Vec::new());
    timer.set(Some(clock::now() + TICK));
    loop {
        tokio::select! {
            biased;
            () = timer.due() => {
                lock(&state).tick(read_at());
                timer.set(Some(clock::now() + TICK));
            }
            count = events.recv_many(&mut some, TOGETHER) => {
                if count == 0 {
                    return Err(anyhow!("the reader's threads are gone"));
                }
                let mut state = lock(&state);
                for event in some.drain(..) {
                    told.tell(observe, &event);
                    state.handle(read_at(), event)?;
                }
                told.tell_unread(&state.topics);
                told.tell_group(observe, &state);
            }
        }
        let mut state = lock(&state);
        while let Some(action) = state.topics.poll_action() {
            reader.perform(action);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was said on stderr, so that nothing is said again while it lasts.
#[derive(Default)]
struct Told {
    outage: bool,
    nothing_matches: bool,
    /// That there is no election of the group, or that there was one.
    group: bool,
    unread: BTreeSet<String>,
}

impl Told {
    fn tell(&mut self, observe: &Observe, event: &TopicsEvent) {
        match event {
            TopicsEvent::Answered { topics, all, .. } => {
                if std::mem::take(&mut self.outage) {
                    say("Kafka answers again");
                }
                let is_nothing = topics.is_empty();
                if is_nothing && !self.nothing_matches {
                    say(&format!(
                        "warning: --topics {}: of {all} topics that this user may see none has such a name; waiting for one",
                        observe.topics
                    ));
                }
                self.nothing_matches = is_nothing;
            }
            TopicsEvent::Down(why) => {
                if !std::mem::replace(&mut self.outage, true) {
                    say(&format!("warning: {}", wording::kafka_is_away(why)));
                }
            }
            TopicsEvent::Warning(warning) => say(&format!("warning: {warning}")),
            TopicsEvent::PastBegins { .. } | TopicsEvent::Read { .. } | TopicsEvent::Refused(_) => {}
        }
    }

    fn tell_unread(&mut self, topics: &Topics) {
        let unread = topics.topics().filter_map(|(_, read)| read.trouble(None)).map(str::to_owned);
        let unread: BTreeSet<String> = unread.collect();
        for why in unread.difference(&self.unread) {
            say(&format!("warning: {why}; the others are shown"));
        }
        self.unread = unread;
    }

    fn tell_group(&mut self, observe: &Observe, state: &State) {
        let is_known = !self.nothing_matches && state.topics.is_complete();
        let Some(group) = observe.group.as_ref().filter(|_| is_known && !self.group) else { return };
        self.group = true;
        if state.elections(read_at()).next().is_none() {
            let place = format!("any topic {} that this user may see", observe.topics);
            say(&format!("warning: {}", wording::awaits_group(group, &place)));
        }
    }
}

/// Prints a line on stderr. If stderr is closed, it is lost.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "neli-run: {}", one_line(line));
}

#[cfg(test)]
pub(crate) mod tests;
