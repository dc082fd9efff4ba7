//! `observe`: all elections of a cluster over HTTP, as one session reads them. It joins nothing and writes nothing.
//!
//! The loop feeds what is read to `State`, which the server's thread renders when it is asked. Both take its lock for some milliseconds at a time:
//! no lease depends on this process.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use neli_kafka::{Access, clock, names};
use neli_proto::fact::TOPIC_SUFFIX;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::Topics;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate;
use crate::command::look::access;
use crate::command::output::say;
use crate::command::reading::{self, Following, read_at, warn_of_unread};
use crate::command::wording;
use crate::exit::ExitStatus;
use crate::http;
use crate::process::{limits, locked, system};

mod json;
mod metrics;
mod page;
mod pages;
mod state;

pub use state::State;

use pages::Pages;

/// The time that a strip shows.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two returns of freed memory to the kernel. Once the day before was read, that is a quarter of the process's memory.
const GIVE_BACK_HEAP: Duration = Duration::from_secs(60);

/// Serves until TERM or INT.
///
/// # Errors
///
/// Too few files may be open, the address is not available, or Kafka refuses permanently.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let Some(listen) = validate::listen(args)? else {
        bail!("--listen is required: HOST:PORT, or :PORT for all addresses")
    };
    let (topics, group) = (topics(args)?, validate::group(args)?);
    let access = access(args)?;
    system::share_heaps();
    // Clients of HTTP must not take the descriptors that the connections with Kafka need.
    let _ = limits::raise_open_files();
    limits::open_files(http::OPEN_FILES)?;
    let bound = http::bind(&listen)?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("signals can't be handled")?;
    let waits = move || {
        if signals.forever().next().is_some() {
            system::exit_at_once(ExitStatus::SUCCESS.code());
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(waits).context("no thread for signals")?;
    reading::run(serve(&access, bound, topics, group))
}

/// `--topics`: the names of the topics to read, each with `*` for any characters.
fn topics(args: &ParsedArgs) -> Result<Vec<String>> {
    let Some(value) = args.value("topics") else { return Ok(vec!["*.neli".to_owned()]) };
    let is_pattern = |part: &String| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte))
    };
    let parts: Vec<String> = value.text()?.split(',').map(|part| part.trim().to_owned()).collect();
    if !parts.iter().all(is_pattern) {
        return Err(value.refuse("must be names of topics, with * for any characters, as in a.neli,*.neli"));
    }
    Ok(parts)
}

/// Whether the pattern means a topic of this name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, pattern)) = pattern.split_once('*') else { return name == pattern };
    let ends = |name: &str| (0..=name.len()).filter_map(|at| name.get(at..)).any(|name| matches(pattern, name));
    name.strip_prefix(first).is_some_and(ends)
}

async fn serve(access: &Access, bound: TcpListener, topics: Vec<String>, group: Option<String>) -> Result<ExitStatus> {
    let (patterns, mut said) = (topics.join(","), BTreeSet::new());
    let named: Vec<String> = topics.iter().filter(|pattern| !pattern.contains('*')).cloned().collect();
    let is_read = move |name: &str| {
        let journal = name.strip_suffix(TOPIC_SUFFIX).unwrap_or(name);
        topics.iter().any(|pattern| matches(pattern, journal))
    };
    let mut following = Following::start(access, named.iter().map(String::as_str), is_read)?;
    let topics = Topics::new(FIRST_SPAN, names::MOST_ROLES).with_past(DAY);
    let state = Arc::new(Mutex::new(State::new(topics, group)));
    let (address, served) = (bound.local_addr()?, Arc::clone(&state));
    http::serve(bound, move || Rc::new(Pages::new(served))).context("--listen: HTTP can't be served")?;
    say(&format!("listening on http://{address}/"));
    let mut heap_given_back = clock::now();
    loop {
        let events = following.next().await?;
        if clock::now().since(heap_given_back) >= GIVE_BACK_HEAP {
            heap_given_back = clock::now();
            system::give_back_heap();
        }
        let mut state = locked(&state);
        if events.is_empty() {
            state.tick(read_at());
            warn_of_unread(&mut said, &state.topics, awaited(&state, &patterns), say);
        }
        for event in events {
            if let Some(line) = state.handle(read_at(), event)? {
                say(&line);
            }
        }
        following.perform(&mut state.topics);
    }
}

/// That nothing is meant by `--topics` and `--group` yet.
fn awaited(state: &State, patterns: &str) -> Option<String> {
    let topics = Some(&state.topics).filter(|topics| topics.is_complete())?;
    if topics.topics().next().is_none() {
        return Some(format!(
            "--topics {patterns}: of the topics that this user may see none has such a name; waiting for one"
        ));
    }
    let group = state.group.as_ref().filter(|_| state.elections(read_at(), None).next().is_none())?;
    Some(wording::awaits_group(group, &format!("any topic {patterns} that this user may see")))
}

#[cfg(test)]
pub(crate) mod tests;
