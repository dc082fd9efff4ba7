//! `watch`: how the law is looked at from outside, by people and by tests.
//!
//! It reads as every other reader does, and writes nothing. To know the law's verdict on the first record that it shows, it
//! begins up to 10,000 records further back.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::Arc;

use neli::program::{
    Access, Brokers, Client, Elections, KafkaEvent, Key, ReadRecord, Reader, ReadingEvent, Source, clock, embedded,
};
use neli_proto::journal::{Journal, Origin};
use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::mpsc::{Receiver, channel, error::TryRecvError};

use crate::command::watch::account::{Account, ReadAt};
use crate::config::{Watch, WatchFrom};
use crate::exit::{ExitStatus, StartupError};
use crate::process::timer::Timer;
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
pub fn main(watch: &Watch) -> Result<ExitStatus, StartupError> {
    match show(watch) {
        Ok(()) => Ok(ExitStatus::Success),
        // That the reader of stdout has gone is no error; a full disk is one.
        Err(Obstacle::Stdout(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitStatus::Success),
        Err(Obstacle::Stdout(error)) => Err(StartupError::new(format!("stdout: {}", reason(&error)))),
        Err(Obstacle::Refused(refusal)) => Err(refusal),
    }
}

/// What ends a show before its end.
enum Obstacle {
    Refused(StartupError),
    Stdout(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Stdout(error)
    }
}

impl From<StartupError> for Obstacle {
    fn from(refusal: StartupError) -> Self {
        Self::Refused(refusal)
    }
}

fn show(watch: &Watch) -> Result<(), Obstacle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(|error| cannot_wait(&error))?;
    runtime.block_on(async {
        let mut timer = Timer::new().map_err(|error| cannot_wait(&error))?;
        let access = access(&watch.client)?;
        let embedded = access.embedded.clone();
        let (sender, mut events) = channel(WAITING);
        let elections = Elections::from(&watch.election);
        let source = Source { access, elections, only: None, create_topic: false, joins_group: false };
        let reader = Reader::start(source, 0, sender)
            .map_err(|error| StartupError::new(format!("no thread for the reader: {}", reason(&error))))?;
        let mut show = Show { watch, embedded, reader, account: None, end: 0, caught_up: false };
        // What is in it when a refusal ends the show is written at its drop.
        let mut screen = BufWriter::new(io::stdout());
        loop {
            timer.set(show.account.as_ref().and_then(Account::poll_timeout));
            let step = match next(&mut events, &mut timer, &mut screen).await? {
                Input::Kafka(None) => return Err(StartupError::new("the reader's threads are gone").into()),
                Input::Kafka(Some(event)) => show.handle_kafka_event(event),
                Input::Timeout => Ok(show.handle_timeout()),
            };
            for line in show.account.as_mut().map(Account::take_lines).unwrap_or_default() {
                writeln!(screen, "{line}")?;
            }
            if let Step::Done = step? {
                return Ok(screen.flush()?);
            }
        }
    })
}

fn cannot_wait(error: &io::Error) -> StartupError {
    StartupError::new(format!("events can't be waited for: {}", reason(error)))
}

/// What there is to do.
enum Input {
    Kafka(Option<KafkaEvent>),
    Timeout,
}

/// What comes next; what was shown is written out before anything is waited for.
async fn next(events: &mut Receiver<KafkaEvent>, timer: &mut Timer, screen: &mut impl Write) -> io::Result<Input> {
    match events.try_recv() {
        Ok(event) => return Ok(Input::Kafka(Some(event))),
        Err(TryRecvError::Disconnected) => return Ok(Input::Kafka(None)),
        Err(TryRecvError::Empty) => screen.flush()?,
    }
    Ok(tokio::select! {
        biased;
        event = events.recv() => Input::Kafka(event),
        () = timer.due() => Input::Timeout,
    })
}

fn access(client: &Client) -> Result<Access, StartupError> {
    match &client.brokers {
        Brokers::At(bootstrap) => Ok(Access::at(bootstrap, &client.properties)),
        Brokers::Embedded => {
            let found = embedded::BrokerFinder::of_user().and_then(|finder| finder.find());
            let connection =
                found.map_err(|error| StartupError::new(format!("--embedded: {NO_BROKER} ({})", reason(&error))))?;
            Ok(Access::embedded(&connection, &client.properties))
        }
    }
}

const NO_BROKER: &str = "no broker runs for this user; a candidate with --embedded starts one";

/// Whether to go on.
enum Step {
    Done,
    On,
}

struct Show<'a> {
    watch: &'a Watch,
    /// The embedded broker, which lives for as long as this is held.
    embedded: Option<Arc<embedded::Connection>>,
    reader: Reader,
    /// Begun when the log's ends are known.
    account: Option<Account>,
    /// What was the end then.
    end: Offset,
    caught_up: bool,
}

impl Show<'_> {
    fn handle_timeout(&mut self) -> Step {
        if let Some(account) = &mut self.account {
            account.handle_timeout(read_at());
        }
        Step::On
    }

    fn handle_kafka_event(&mut self, event: KafkaEvent) -> Result<Step, StartupError> {
        let now = clock::now();
        match event {
            KafkaEvent::Down { .. } if self.embedded.is_some() => {
                return Err(StartupError::new("the embedded broker is gone, and its journal with it"));
            }
            KafkaEvent::Down { error } => say(&format!("Kafka does not answer: {error}; waiting")),
            KafkaEvent::Reading { partition, event, .. } => return self.handle_reading_event(now, partition, event),
            KafkaEvent::Refused { error } => return Err(StartupError::new(error)),
            KafkaEvent::Up => say("Kafka answers again"),
            KafkaEvent::Warning(warning) => say(&warning),
            // The embedded broker's move is for whoever follows it; here its end shows as silence.
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Partitions(_)
            | KafkaEvent::Topic { .. } => {}
        }
        Ok(Step::On)
    }

    fn handle_reading_event(&mut self, now: Time, partition: i32, event: ReadingEvent) -> Result<Step, StartupError> {
        match event {
            ReadingEvent::CaughtUp { next } => return Ok(self.read_up_to(next)),
            ReadingEvent::Cut => {
                let topic = &self.watch.election.topic;
                return Err(StartupError::new(format!("topic {topic}: its history was cut or made anew meanwhile")));
            }
            ReadingEvent::Ends { asked, start, end } => match &mut self.account {
                Some(account) => account.answered(now, asked, end),
                None => return self.begin(now, partition, asked, (start, end)),
            },
            ReadingEvent::Record(ReadRecord { offset, key, value, written_ms }) => {
                if let Some(account) = &mut self.account {
                    match key {
                        Key::Election(_) => account.read(read_at(), offset, value.as_deref(), written_ms),
                        Key::Hello(_) | Key::Other => account.read_other(now, offset),
                    }
                }
                return Ok(self.read_up_to(offset + 1));
            }
            ReadingEvent::Undecodable { offset, error } => {
                return Err(StartupError::new(format!(
                    "the records from offset {offset} on can't be decoded: {error}"
                )));
            }
        }
        Ok(Step::On)
    }

    /// The log held `start..end` when that was `asked`.
    fn begin(
        &mut self,
        now: Time,
        partition: i32,
        asked: Time,
        (start, end): (Offset, Offset),
    ) -> Result<Step, StartupError> {
        let first = match self.watch.from {
            WatchFrom::End => end,
            WatchFrom::Offset(offset) if offset > end => {
                return Err(StartupError::new(format!("--from {offset}: must be at most {end}, the log's end")));
            }
            WatchFrom::Offset(offset) => offset.max(start),
            WatchFrom::Start => start,
        };
        let from = start.max(first - RUN_UP);
        self.end = end;
        let origin = match () {
            () if from > start => Origin::Middle,
            () if from > 0 => Origin::CutHead,
            // A broker whose forerunner died may have lost what was there.
            () if self.embedded.as_ref().is_some_and(|broker| broker.trusted_from() > clock::now()) => Origin::Middle,
            () => Origin::Beginning,
        };
        let mut journal = Journal::read_from(from, origin);
        journal.answered(now, asked, end);
        self.account = Some(Account::new(self.watch.json, first, journal));
        self.reader.read_from(partition, from);
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
            account.caught_up(read_at());
        }
        Step::On
    }
}

fn read_at() -> ReadAt {
    ReadAt { now: clock::now(), wall_ms: clock::wall_ms() }
}

/// One line on stderr; where that is closed there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "neli-run: warning: {}", one_line(line));
}
