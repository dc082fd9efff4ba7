//! `watch`: how the law is looked at from outside, by people and by tests.
//!
//! It reads as every other reader does, and writes nothing. To know the law's word on the first record that it shows, it
//! begins up to 10,000 records further back.

use std::io::{BufWriter, ErrorKind, Write};

use tokio::sync::mpsc::{Receiver, channel, error::TryRecvError};

use crate::command::watch::account::Account;
use crate::config::{Client, Watch, WatchFrom};
use crate::driver::broker::Access;
use crate::driver::clock;
use crate::driver::journal::{Key, Seen};
use crate::driver::reader::{Reader, Source};
use crate::exit::{ExitStatus, Refusal};
use crate::logic::record::Offset;
use crate::text::{one_line, reason};

mod account;

/// What waits to be shown, at most.
const WAITING: usize = 1_000;
/// How far before the first record that is shown the reading begins.
const RUN_UP: Offset = 10_000;

/// Shows the election until the end that was asked for, or until stdout is closed.
///
/// # Errors
///
/// Kafka refuses for good, `--from` lies behind the end, the history is cut or can't be decoded, or stdout takes no more.
pub fn main(watch: &Watch) -> Result<ExitStatus, Refusal> {
    let (sender, mut seen) = channel(WAITING);
    let source = Source { access: access(&watch.client)?, election: watch.election.clone(), create_topic: false };
    let reader = Reader::start(source, 0, sender)
        .map_err(|error| Refusal::new(format!("no thread for the reader: {}", reason(&error))))?;
    let mut screen = BufWriter::new(std::io::stdout());
    let mut show = Show { watch, reader, account: None, end: 0, caught_up: false };
    loop {
        let shown = next(&mut seen, &mut screen).and_then(|event| {
            let Some(event) = event else { return Ok(Err(Refusal::new("the reader's threads are gone"))) };
            let step = show.see(event);
            let lines = show.account.as_mut().map(Account::take_lines).unwrap_or_default();
            lines.iter().try_for_each(|line| writeln!(screen, "{line}"))?;
            Ok(step)
        });
        match shown {
            Ok(Ok(Step::On)) => {}
            Ok(Ok(Step::Done)) => {
                return screen.flush().map_or_else(|error| closed(&error), |()| Ok(ExitStatus::Success));
            }
            Ok(Err(refusal)) => return screen.flush().map_or_else(|error| closed(&error), |()| Err(refusal)),
            Err(error) => return closed(&error),
        }
    }
}

/// Whoever reads no further has seen enough; a full disk is another matter.
fn closed(error: &std::io::Error) -> Result<ExitStatus, Refusal> {
    if error.kind() == ErrorKind::BrokenPipe {
        return Ok(ExitStatus::Success);
    }
    Err(Refusal::new(format!("stdout: {}", reason(error))))
}

/// The next event; what was shown is written out before anything is waited for.
fn next(seen: &mut Receiver<Seen>, screen: &mut impl Write) -> std::io::Result<Option<Seen>> {
    match seen.try_recv() {
        Ok(event) => Ok(Some(event)),
        Err(TryRecvError::Disconnected) => Ok(None),
        Err(TryRecvError::Empty) => {
            screen.flush()?;
            Ok(seen.blocking_recv())
        }
    }
}

fn access(client: &Client) -> Result<Access, Refusal> {
    Access::try_from(client).map_err(|error| Refusal::new(error.to_string()))
}

/// Whether to go on.
enum Step {
    Done,
    On,
}

struct Show<'a> {
    watch: &'a Watch,
    reader: Reader,
    /// Begun when the log's ends are known.
    account: Option<Account>,
    /// What was the end then.
    end: Offset,
    caught_up: bool,
}

impl Show<'_> {
    fn see(&mut self, event: Seen) -> Result<Step, Refusal> {
        let now = clock::now();
        match event {
            Seen::CaughtUp { next, .. } => return Ok(self.read_up_to(next)),
            Seen::Cut { .. } => {
                let topic = &self.watch.election.topic;
                return Err(Refusal::new(format!("topic {topic}: its history was cut or made anew meanwhile")));
            }
            Seen::Down { error } => say(&format!("Kafka does not answer: {error}; waiting")),
            Seen::Ends { asked, start, end, .. } => match &mut self.account {
                Some(account) => account.answered(now, asked, end),
                None => return self.begin(start, end),
            },
            Seen::Record { offset, key, value, written_ms, .. } => {
                if let Some(account) = &mut self.account {
                    match key {
                        Key::Election => account.read(now, offset, value.as_deref(), written_ms),
                        Key::Hello | Key::Other => account.read_other(now, offset),
                    }
                }
                return Ok(self.read_up_to(offset + 1));
            }
            Seen::Refused { error } => return Err(Refusal::new(error)),
            Seen::Undecodable { offset, error, .. } => {
                return Err(Refusal::new(format!("the records from offset {offset} on can't be decoded: {error}")));
            }
            Seen::Up => say("Kafka answers again"),
            Seen::Warning(warning) => say(&warning),
            // The embedded broker's move is for whoever follows it; here its end shows as silence.
            Seen::Delivered { .. } | Seen::Moved(_) | Seen::NotDelivered { .. } | Seen::Topic(_) => {}
        }
        Ok(Step::On)
    }

    /// The log holds `start..end`.
    fn begin(&mut self, start: Offset, end: Offset) -> Result<Step, Refusal> {
        let first = match self.watch.from {
            WatchFrom::End => end,
            WatchFrom::Offset(offset) if offset > end => {
                return Err(Refusal::new(format!("--from {offset}: must be at most {end}, the log's end")));
            }
            WatchFrom::Offset(offset) => offset.max(start),
            WatchFrom::Start => start,
        };
        let from = start.max(first - RUN_UP);
        self.end = end;
        self.account = Some(Account::new(self.watch.json, from, start, first, end, clock::now()));
        self.reader.read_from(from);
        Ok(self.read_up_to(from))
    }

    fn read_up_to(&mut self, next: Offset) -> Step {
        if next < self.end {
            return Step::On;
        }
        if self.watch.until_end {
            return Step::Done;
        }
        if !std::mem::replace(&mut self.caught_up, true)
            && let Some(account) = &mut self.account
        {
            account.caught_up(clock::wall_ms());
        }
        Step::On
    }
}

/// One line on stderr; where that is closed there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "neli-run: warning: {}", one_line(line));
}
