//! `watch`: shows how the law judges each record, for users and for tests. It reads like every other reader and writes nothing. It begins
//! up to 10,000 records before the first shown one, so that it knows the law's verdict on that one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::KafkaEvent;
use neli_proto::leadership::ReadAt;
use neli_proto::listener::{FIRST_SPAN, LogBounds};
use neli_proto::observer::Election;
use neli_proto::record::{LogRecord, Offset, is_hello_of};
use neli_proto::time::millis;

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate::duration;
use crate::command::look::{LONG_TIMEOUT, Look};
use crate::command::output::{self, checked, unless_closed};
use crate::command::reading::{self, FoundElections, Limit, News, Observation, read_at};
use crate::command::status;
use crate::command::watch::printout::Printout;
use crate::command::wording::no_record;
use crate::exit::{ExitStatus, status_of};

mod printout;

/// How far before the first shown record the reading begins.
const RUN_UP: Offset = 10_000;

/// Shows the election until the requested end, or until stdout is closed: on a terminal as a page, unless lines were
/// requested.
///
/// # Errors
/// Kafka refuses permanently, `--from` is behind the end, the history was cut or can't be decoded, or stdout can't be
/// written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let (until_end, has_hellos) = (args.flag("until-end")?.is_some(), args.flag("all")?.is_some());
    let (from, look) = (from(args)?, &Look::of(args, LONG_TIMEOUT)?);
    let wants_lines = look.json || has_hellos || until_end || from.is_some();
    if !wants_lines && output::is_drawable() {
        return status::shown(look, true);
    }
    let show = Show { from, until_end, has_hellos, printouts: Vec::new(), is_live: false };
    match reading::run(show.run(look)) {
        Ok(()) => Ok(ExitStatus::SUCCESS),
        Err(error) if status_of(&error) == ExitStatus::UNKNOWN => Err(error.context("can't tell who leads")),
        Err(refusal) => unless_closed(refusal),
    }
}

/// `--from`: where the output begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Beginning {
    End,
    Offset(Offset),
    /// At the records that were appended this long ago; with the longest time, at the log's start.
    Since(Duration),
}

fn from(args: &ParsedArgs) -> Result<Option<Beginning>> {
    const EXPECTED: &str =
        "must be start, end, an offset (0 or more), or how long ago (at most 365d), such as 30m or 1h";
    let Some(value) = args.value("from") else { return Ok(None) };
    let from = match value.text()? {
        "end" => Beginning::End,
        "start" => Beginning::Since(Duration::MAX),
        text => match text.parse() {
            Ok(offset) if offset >= 0 => Beginning::Offset(offset),
            _ => Beginning::Since(duration(&value).map_err(|_| value.refuse(EXPECTED))?),
        },
    };
    Ok(Some(from))
}

/// The offset of the first record that is shown, in a log with these bounds.
fn first_shown(from: Option<Beginning>, bounds: &LogBounds) -> Offset {
    match from.unwrap_or(Beginning::End) {
        Beginning::End => bounds.end,
        Beginning::Offset(offset) => offset.max(bounds.start),
        Beginning::Since(_) => bounds.start,
    }
}

struct Show {
    from: Option<Beginning>,
    until_end: bool,
    /// `--all`: whether hellos are shown too.
    has_hellos: bool,
    /// The output of each election, in their order.
    printouts: Vec<Printout>,
    /// Whether the logs were read up to the ends that they had at the start.
    is_live: bool,
}

impl Show {
    async fn run(mut self, look: &Look) -> Result<()> {
        let limit = Limit::of_all(look.timeout);
        let found = FoundElections::find(look, output::say).await?;
        let partitions: BTreeSet<i32> = found.elections.iter().map(|election| election.partition).collect();
        if let (Some(Beginning::Offset(offset)), 2..) = (self.from, partitions.len()) {
            found.one(&format!("--from {offset} is in one partition, and --role says in which"))?;
        }
        let from = |bounds: &LogBounds, has_election| {
            let first = first_shown(self.from, bounds);
            if has_election { bounds.start.max(first - RUN_UP) } else { bounds.last(FIRST_SPAN) }
        };
        let reading = found.read(look)?.telling(output::say);
        let mut observation = Observation::begin(reading, found, limit, from).await?;
        let bounds = observation.reading.bounds(limit).await?;
        self.begin(look.json, &observation.found, &bounds)?;
        // If a refusal ends the display, the buffer is written when it is dropped.
        let mut screen = BufWriter::new(io::stdout());
        loop {
            if observation.reading.topic.is_read() && !self.is_live {
                self.caught_up(&mut observation);
            }
            self.print(&mut screen)?;
            if self.is_live && self.until_end {
                return checked(screen.flush());
            }
            let at = read_at();
            // What there is already.
            let mut news = observation.next(Some(at.now)).await?;
            if news.is_none() {
                self.tell_silences(&mut observation, at);
                self.print(&mut screen)?;
                // The output is flushed before each wait.
                checked(screen.flush())?;
                let due = observation.seen().filter_map(|seen| seen.read.silence_due(at)).min();
                news = observation.next(due).await?;
            }
            if let Some(news) = news {
                self.handle(&observation, news);
            }
        }
    }

    /// Begins the output, since the bounds of all logs are known.
    fn begin(&mut self, json: bool, found: &FoundElections, all_bounds: &BTreeMap<i32, LogBounds>) -> Result<()> {
        for election in &found.elections {
            let Some(bounds) = all_bounds.get(&election.partition) else { continue };
            if let Some(Beginning::Offset(offset)) = self.from
                && offset > bounds.end
            {
                bail!("--from {offset}: must be at most {}, the log's end", bounds.end);
            }
            let since_ms = match self.from {
                Some(Beginning::Since(span)) => read_at().wall_ms.saturating_sub(millis(span)),
                Some(Beginning::End | Beginning::Offset(_)) | None => 0,
            };
            let (is_one_of_many, first) = (found.elections.len() > 1, first_shown(self.from, bounds));
            self.printouts.push(Printout::new(json, election, is_one_of_many, first, since_ms));
        }
        Ok(())
    }

    fn handle(&mut self, observation: &Observation, (event, judged): News) {
        let at = read_at();
        let KafkaEvent::ReadForDisplay { partition, record, .. } = event else { return };
        if let Some((place, judged)) = judged
            && let Some(printout) = self.printouts.iter_mut().find(|printout| printout.place == place)
            && let Some(election) = observation.reading.topic.election(&place)
        {
            printout.judged(at, election.observer(), &record, judged, self.is_live);
        }
        self.hello(observation, partition, &record);
    }

    /// Tells of the leaders' silences, which no record reports, once Kafka's answer shows them.
    fn tell_silences(&mut self, observation: &mut Observation, at: ReadAt) {
        if self.is_live {
            self.each(observation, |printout, election| printout.tell_silence(at, election));
            observation.ask_about_silences(at);
        }
    }

    fn each(&mut self, observation: &mut Observation, mut tell: impl FnMut(&mut Printout, &mut Election)) {
        for printout in &mut self.printouts {
            if let Some(election) = observation.reading.topic.election_mut(&printout.place) {
                tell(printout, election);
            }
        }
    }

    fn print(&mut self, screen: &mut impl Write) -> Result<()> {
        let mut lines = self.printouts.iter_mut().flat_map(Printout::take_lines);
        lines.try_for_each(|line| checked(writeln!(screen, "{line}")))
    }

    /// `--all`: shows the record if it is a hello.
    fn hello(&mut self, observation: &Observation, partition: i32, record: &LogRecord) {
        let Ok(first) = observation.first() else { return };
        // The offset where an election was read from has no meaning in another partition.
        let is_elsewhere = self.printouts.iter().all(|printout| printout.place.partition != partition);
        let is_shown =
            self.has_hellos && (!is_elsewhere || self.is_live || matches!(self.from, Some(Beginning::Since(_))));
        if let Some(printout) = self.printouts.first_mut()
            && is_shown
            && record.value.is_some()
            && is_hello_of(&first.election.group, record)
        {
            printout.hello(read_at(), first.read.observer(), partition, record);
        }
    }

    /// Everything was read up to the ends that the logs had at the start.
    fn caught_up(&mut self, observation: &mut Observation) {
        // If there are other elections, the name may be mistyped. Without others, this election may be the first one.
        if let Ok(first) = observation.first()
            && !observation.seen().any(|seen| seen.read.is_known())
            && !first.other_groups.is_empty()
        {
            output::say(&format!("warning: {}", no_record(first.election, first.other_groups)));
        }
        self.is_live = true;
        observation.reading.topic.caught_up();
        let (at, is_read_on, is_past_shown) = (read_at(), !self.until_end, self.from.is_some());
        self.each(observation, |printout, election| {
            if is_read_on {
                printout.caught_up(at, election);
            } else if is_past_shown {
                printout.tell_silence(at, election);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_begins_where_it_is_asked_to() {
        let hour_ago = Beginning::Since(Duration::from_secs(3_600));
        for (text, begins) in [
            ("57", Beginning::Offset(57)),
            ("start", Beginning::Since(Duration::MAX)),
            ("end", Beginning::End),
            ("1h", hour_ago),
        ] {
            let line = ["neli-run", "watch", "--from", text].map(Into::into);
            assert_eq!(from(&crate::cli::parse(&line, Vec::new()).unwrap()).unwrap(), Some(begins));
        }
    }
}
