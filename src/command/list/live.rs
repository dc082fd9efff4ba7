//! `list --watch`: the elections live. On a terminal a table that fits it, with trouble first; elsewhere a line for each change.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::mem;

use anyhow::Result;
use neli_kafka::{TopicsEvent, clock, names};
use neli_proto::journal::{Journal, Origin};
use neli_proto::leadership::{Leadership, ReadAt, Unknown};
use neli_proto::observer::{Election, JudgedRecord, Place, Topics};
use neli_proto::time::Time;
use serde_json::Value;

use super::{List, Listed, Rank, SPAN, hidden, none, place};
use crate::command::output::{self, Style, Tone, checked, fitted, unless_closed};
use crate::command::reading::{self, SUFFIX, no_answer, pass_on, read_at, warn_of_unread};
use crate::command::wording::{self, counted, led_of};
use crate::exit::{ExitStatus, with_status};
use crate::report::election::sentence;
use crate::text::{json, one_line, timestamp};

/// Shows the elections until it is interrupted or stdout is closed.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer in time at the start, or stdout can't be written.
pub(super) fn main(list: &List) -> Result<ExitStatus> {
    reading::run(watch(list)).or_else(unless_closed)
}

async fn watch(list: &List) -> Result<ExitStatus> {
    let (mut following, mut watch) = (list.follow()?, Watch::new(list));
    loop {
        let events = following.next().await?;
        if events.is_empty() {
            watch.tick(read_at())?;
        } else {
            for event in events {
                watch.handle(read_at(), event)?;
            }
            watch.note_topics(read_at());
        }
        following.perform(&mut watch.topics);
        watch.print()?;
    }
}

struct Watch<'a> {
    list: &'a List,
    topics: Topics,
    /// When Kafka's first answer is late; `None` once it has come.
    answer_due: Option<Time>,
    /// Whether a table is drawn on a terminal; otherwise lines are printed.
    is_drawn: bool,
    /// The topics whose elections were told as they are, and then each change of them.
    told: BTreeSet<Box<str>>,
    /// `--json`: the elections that have a line.
    shown: BTreeSet<(Box<str>, Place)>,
    /// The elections of which it was told that they are unknown.
    unknown: BTreeSet<(Box<str>, Place)>,
    /// The lines to print.
    lines: Vec<String>,
    /// Why topics can't be read, and what there is none of, as far as it was said.
    said: BTreeSet<String>,
}

/// A row of the table.
struct Row {
    rank: Rank,
    name: String,
    standbys: String,
    text: String,
}

impl<'a> Watch<'a> {
    fn new(list: &'a List) -> Self {
        Self {
            list,
            topics: Topics::new(SPAN, names::MOST_ROLES),
            answer_due: Some(clock::now() + list.timeout),
            is_drawn: !list.json && output::is_drawable(),
            told: BTreeSet::new(),
            shown: BTreeSet::new(),
            unknown: BTreeSet::new(),
            lines: Vec::new(),
            said: BTreeSet::new(),
        }
    }

    fn handle(&mut self, at: ReadAt, event: TopicsEvent) -> Result<()> {
        // Until Kafka has answered once, the end of the time limit tells why not.
        let is_told = self.answer_due.is_none() || !matches!(event, TopicsEvent::Down(_));
        if let TopicsEvent::Answered { .. } = event {
            self.answer_due = None;
        }
        let TopicsEvent::Read { reading, topic, partition, record } = event else {
            if let Some(line) = pass_on(&mut self.topics, at, event)?.filter(|_| is_told) {
                self.say(&line);
            }
            return Ok(());
        };
        let judged = self.topics.read(at, (reading, &topic), partition, &record);
        if let Some(JudgedRecord { changes, election, .. }) = judged.filter(|_| self.told.contains(&*topic)) {
            let place = election.place().clone();
            // A record that is read before Kafka has answered again: how the election is now is told after the answer.
            if self.list.json && self.unknown.contains(&(Box::from(&*topic), place.clone())) {
                return Ok(());
            }
            let ms = record.written_ms.unwrap_or(at.wall_ms);
            let sentence = |change| wording::change(election.observer(), change);
            let sentences = changes.iter().map(sentence).collect();
            self.tell(at, (&topic, &place), ms, sentences);
        }
        Ok(())
    }

    /// Notes which topics can be told of since the last answer, and which are gone.
    fn note_topics(&mut self, at: ReadAt) {
        let live = self.topics.topics().filter(|(_, read)| read.is_live()).map(|(name, _)| Box::from(name)).collect();
        let before = mem::replace(&mut self.told, live);
        let is_said = !self.is_drawn && !self.list.json;
        for topic in before.iter().filter(|topic| is_said && self.topics.topic(topic).is_none()) {
            self.lines.push(format!("{} topic {topic} is gone", timestamp(at.wall_ms)));
        }
        let topics = &self.topics;
        let is_lost = |(topic, place): &(Box<str>, Place)| {
            topics.topic(topic).is_none_or(|read| read.is_live() && read.topic().election(place).is_none())
        };
        let lost: BTreeSet<_>;
        (lost, self.shown) = mem::take(&mut self.shown).into_iter().partition(is_lost);
        for (topic, place) in lost {
            let how = if topics.topic(&topic).is_some() { "was made anew" } else { "is gone" };
            self.lines.push(json(&unread(at, &topic, &place, &format!("topic {topic} {how}"))));
        }
        let mut said = mem::take(&mut self.said);
        warn_of_unread(&mut said, &self.topics, self.awaited(), |line| self.say(line));
        self.said = said;
        let mut current = Vec::new();
        let is_fresh = |name: &str| self.told.contains(name) && !before.contains(name);
        for (name, topic) in self.topics.topics_mut().filter(|(name, _)| is_fresh(name)) {
            for election in topic.elections_mut() {
                let sentence = format!("as of now: {}", sentence(election.told(at)));
                if self.list.has_dead || !election.observer().is_dead(at) {
                    current.push((Box::<str>::from(name), election.place().clone(), sentence));
                }
            }
        }
        self.tell_all(at, current);
    }

    /// That there is no topic or group as is asked for, once this is known.
    fn awaited(&self) -> Option<String> {
        let topic = self.list.topic.as_deref();
        if let Some(topic) = topic.filter(|topic| self.answer_due.is_none() && self.topics.topic(topic).is_none()) {
            return Some(format!("topic \"{topic}\" does not exist; waiting for it"));
        }
        let group = self.list.group.as_ref().filter(|_| self.topics.is_complete())?;
        let mut found = self.topics.topics().flat_map(|(_, read)| read.topic().elections());
        let is_there = found.any(|found| self.list.is_about(&found.place().group));
        (!is_there).then(|| wording::awaits_group(group, &place(topic)))
    }

    /// Tells of each election that it is unknown because Kafka does not answer, or its topic can't be read, although its records show it, and
    /// then how it is.
    fn tell_unknown(&mut self, at: ReadAt) {
        let mut changed = Vec::new();
        for (name, read) in self.topics.topics().filter(|(name, _)| self.told.contains(*name)) {
            for found in read.topic().elections() {
                let current = self.topics.leadership(at, read, found);
                let is_unknown = matches!(
                    current,
                    Leadership::Unknown(Unknown::NobodyAnswers | Unknown::NotHeard { .. } | Unknown::Unreadable)
                );
                let key = (Box::<str>::from(name), found.place().clone());
                let is_shown = self.list.has_dead || !found.observer().is_dead(at);
                if is_shown && is_unknown && self.unknown.insert(key.clone()) {
                    changed.push((key.0, key.1, sentence(current)));
                } else if !is_unknown && self.unknown.remove(&key) {
                    changed.push((key.0, key.1, format!("as of now: {}", sentence(current))));
                }
            }
        }
        self.tell_all(at, changed);
    }

    /// Notes what no record shows, and draws the table.
    fn tick(&mut self, at: ReadAt) -> Result<()> {
        if self.answer_due.is_some_and(|due| due <= at.now) {
            let why = self.topics.outage().map(|(_, why)| why);
            return Err(with_status(
                ExitStatus::UNKNOWN,
                no_answer(&self.list.access.bootstrap, self.list.timeout, why),
            ));
        }
        let mut silent = Vec::new();
        for (name, topic) in self.topics.topics_mut().filter(|(name, _)| self.told.contains(*name)) {
            for election in topic.elections_mut() {
                if let Some(sentence) = election.untold_silence(at).map(sentence) {
                    silent.push((Box::<str>::from(name), election.place().clone(), sentence));
                }
            }
        }
        self.tell_all(at, silent);
        self.topics.ask_about_silences(at);
        if !self.is_drawn {
            self.tell_unknown(at);
            return Ok(());
        }
        output::show(&self.page(at, Style::of_stdout(), output::rows().unwrap_or(usize::MAX)))
    }

    fn tell_all(&mut self, at: ReadAt, sentences: Vec<(Box<str>, Place, String)>) {
        for (topic, place, sentence) in sentences {
            self.tell(at, (&topic, &place), at.wall_ms, vec![sentence]);
        }
    }

    /// Adds a line for each sentence about an election; with `--json` one line with its state.
    fn tell(&mut self, at: ReadAt, (topic, place): (&str, &Place), ms: u64, sentences: Vec<String>) {
        if self.is_drawn || !self.list.is_about(&place.group) || sentences.is_empty() {
            return;
        }
        if !self.list.json {
            let name = name(topic, place);
            let lines =
                sentences.into_iter().map(|sentence| one_line(&format!("{} {name}: {sentence}", timestamp(ms))));
            return self.lines.extend(lines);
        }
        let read = self.topics.topic(topic);
        if let Some((read, election)) = read.and_then(|read| Some((read, read.topic().election(place)?))) {
            self.lines.push(json(&Listed::of(at, &self.topics, (topic, read), election).json()));
            self.shown.insert((topic.into(), place.clone()));
        }
    }

    fn print(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let text: String = self.lines.drain(..).map(|line| line + "\n").collect();
        checked(io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()))
    }

    /// Prints a line on stderr, unless there is a table, which shows it.
    fn say(&self, line: &str) {
        if !self.is_drawn {
            output::say(line);
        }
    }

    /// The table, on so many rows of a terminal, whose last one stays empty.
    fn page(&self, at: ReadAt, style: Style, rows: usize) -> String {
        let (mut table, mut unread, mut dead) = (Vec::new(), Vec::new(), 0);
        for (topic, read) in self.topics.topics() {
            if let Some(why) = read.trouble(None) {
                let (name, text) = (one_line(topic), one_line(why));
                unread.push(Row { rank: Rank::Unknown, name, standbys: "-".to_owned(), text });
            }
            let elections = read.topic().elections();
            for found in elections.filter(|found| self.list.is_about(&found.place().group)) {
                if found.observer().is_dead(at) && !self.list.has_dead {
                    dead += 1;
                } else {
                    table.push(Row::of(&Listed::of(at, &self.topics, (topic, read), found)));
                }
            }
        }
        let (head, tone) = match self.topics.outage() {
            Some((_, why)) => (format!("Kafka does not answer: {why}"), Tone::Unknown),
            None if self.answer_due.is_some() => ("Kafka has not answered yet".to_owned(), Tone::Unknown),
            None if table.is_empty() && unread.is_empty() => {
                (self.awaited().unwrap_or_else(|| none(self.list.topic.as_deref())), Tone::Unknown)
            }
            None => summary(&table, unread.len()),
        };
        unread.extend(table);
        drawn((&one_line(&head), tone), unread, &hidden(dead), style, rows)
    }
}

impl Row {
    fn of(listed: &Listed<'_>) -> Self {
        let [_, standbys, text] = listed.cells();
        Self { rank: Rank::of(listed), name: one_line(&name(listed.topic, listed.found.place())), standbys, text }
    }
}

/// `--json`: an election that can't be read any more, for this reason.
fn unread(at: ReadAt, topic: &str, place: &Place, why: &str) -> Value {
    let found = &Election::new(place, Journal::read_from(0, Origin::Beginning), 0, 0);
    let current = Leadership::Unknown(Unknown::Unreadable);
    let mut line = Listed { at, topic, found, current, standbys: Vec::new(), no_room: None }.json();
    line["why"] = format!("can't tell who leads: {why}").into();
    line
}

/// The election's name, and its topic if that has another one.
fn name(topic: &str, place: &Place) -> String {
    if topic.strip_suffix(SUFFIX) == Some(&place.group) { place.to_string() } else { format!("{place} in {topic}") }
}

/// How many of the elections are led, beside so many topics that can't be read; of one of both at least.
fn summary(rows: &[Row], unread: usize) -> (String, Tone) {
    let of = |rank: Rank| rows.iter().filter(|row| row.rank == rank).count();
    let (led, tone) = led_of("election", rows.len(), of(Rank::Led), of(Rank::Done), of(Rank::Vacant));
    if unread == 0 {
        return (led, tone);
    }
    let unread = format!("{} can't be read", counted(unread as u64, "topic"));
    let text = if rows.is_empty() { unread } else { format!("{led}; {unread}") };
    (text, if tone == Tone::Bad { tone } else { Tone::Unknown })
}

/// The head, a line for each election with the most urgent ones first, and otherwise as given, how many found no room, and the last line.
fn drawn((head, tone): (&str, Tone), mut table: Vec<Row>, last: &str, style: Style, rows: usize) -> String {
    let width = style.width();
    table.sort_by_key(|row| row.rank);
    let room = rows.saturating_sub(3 + last.lines().count());
    // If not all fit, one line says how many more there are.
    let shown = if table.len() <= room { table.len() } else { room.saturating_sub(1) };
    let rest = table.split_off(shown);
    let longest = table.iter().map(|row| row.name.chars().count()).max().unwrap_or_default().max(ELECTION.len());
    let name_width = longest.min(width / 3);
    let line = |name: &str, standbys: &str, text: &str| {
        fitted(&format!("{:name_width$}  {standbys:>8}  {text}", fitted(name, name_width)), width)
    };
    let mut lines = vec![style.paint(tone, &fitted(head, width)), line(ELECTION, "STANDBYS", "LEADER")];
    lines.extend(table.iter().map(|row| {
        let text = line(&row.name, &row.standbys, &row.text);
        match row.rank {
            Rank::Dead | Rank::Done | Rank::Led => text,
            Rank::Overdue | Rank::Unknown => style.paint(Tone::Unknown, &text),
            Rank::Vacant => style.paint(Tone::Bad, &text),
        }
    }));
    if !rest.is_empty() {
        let unled = rest.iter().filter(|row| row.rank < Rank::Led).count();
        let unled = if unled == 0 { String::new() } else { format!(", {unled} of them in trouble") };
        lines.push(fitted(&format!("and {} more{unled}", rest.len()), width));
    }
    lines.extend(last.lines().map(|line| fitted(line, width)));
    lines.into_iter().map(|line| line + "\n").collect()
}

const ELECTION: &str = "ELECTION";

#[cfg(test)]
mod tests {
    use neli_proto::kafka::LogsAnswer;
    use neli_proto::topic::TopicIdentity;

    use super::*;

    fn row(rank: Rank, name: &str) -> Row {
        Row { rank, name: name.to_owned(), standbys: "1".to_owned(), text: format!("{name} leads, heartbeat 1s ago") }
    }

    fn table(columns: usize, rows: usize, last: &str) -> Vec<String> {
        let all = vec![
            row(Rank::Led, "a-name-that-is-longer-than-a-third-of-the-terminal"),
            row(Rank::Led, "b"),
            row(Rank::Unknown, "d"),
            row(Rank::Vacant, "c"),
        ];
        let (head, tone) = summary(&all, 0);
        let style = Style { is_coloured: false, columns: Some(columns) };
        drawn((&head, tone), all, last, style, rows).lines().map(str::to_owned).collect()
    }

    #[test]
    fn it_fits_any_terminal_and_counts_what_it_leaves_out() {
        for (columns, rows) in [(80, 24), (80, 6), (80, 3), (40, 5), (20, 7), (1, 1), (200, 1)] {
            for last in ["", "2 elections not shown, dead for more than a week; --all shows all\n"] {
                let lines = table(columns, rows, last);
                assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns}: {lines:#?}");
                let least = 3 + last.lines().count();
                assert!(lines.len() < rows.max(least + 1), "{rows}: {lines:#?}");
            }
        }
        let lines = table(80, 6, "");
        assert_eq!(lines[0], "2 of 4 elections are led");
        assert!(lines[2].starts_with("c  ") && lines[3].starts_with("d  "), "{lines:#?}");
        assert_eq!(lines[4], "and 2 more");
        assert_eq!(table(80, 5, "")[3], "and 3 more, 1 of them in trouble");
        assert_eq!(
            table(80, 24, "")[4],
            "a-name-that-is-longer-th..         1  a-name-that-is-longer-than-a-third-of-th.."
        );
    }

    #[test]
    fn the_head_counts_elections() {
        let summary_of = |rows: &[Row]| summary(rows, 0);
        assert_eq!(summary_of(&[row(Rank::Led, "a")]), ("the election is led".to_owned(), Tone::Good));
        let rows = [row(Rank::Led, "a"), row(Rank::Done, "b")];
        assert_eq!(summary_of(&rows), ("1 of 2 elections are led, 1 done".to_owned(), Tone::Good));
        assert_eq!(summary_of(&[row(Rank::Vacant, "a")]), ("0 of 1 election are led".to_owned(), Tone::Bad));
    }

    #[test]
    fn a_topic_that_can_not_be_read_is_no_election() {
        let (led, vacant) = (row(Rank::Led, "a"), row(Rank::Vacant, "b"));
        assert_eq!(summary(&[], 2), ("2 topics can't be read".to_owned(), Tone::Unknown));
        let one_led = ("the election is led; 1 topic can't be read".to_owned(), Tone::Unknown);
        assert_eq!(summary(std::slice::from_ref(&led), 1), one_led);
        let one_of_two = ("1 of 2 elections are led; 1 topic can't be read".to_owned(), Tone::Bad);
        assert_eq!(summary(&[led, vacant], 1), one_of_two);
        let list = crate::cli::parse(&["neli-run", "list", "--watch", "--brokers", "a:9"].map(Into::into), Vec::new());
        let list = List::of(&list.unwrap()).unwrap();
        let mut watch = Watch { answer_due: None, ..Watch::new(&list) };
        let answer = LogsAnswer { identity: TopicIdentity::Unnamed, logs: Err("no right to READ it".into()) };
        let at = read_at();
        watch.topics.answered(at, at.now, [("g.neli".into(), answer)].into());
        let style = Style { is_coloured: false, columns: None };
        let page = watch.page(at, style, 24);
        assert!(page.starts_with("1 topic can't be read\n") && page.contains("g.neli"), "{page}");
    }
}
