//! `list --watch`: the elections live. On a terminal a table that fits it, with trouble first; elsewhere a line for each change.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::Result;
use neli_kafka::{TopicsEvent, clock, names};
use neli_proto::journal::{Journal, Origin};
use neli_proto::leadership::{Leadership, ReadAt, Unknown};
use neli_proto::observer::{Election, JudgedRecord, Place, ReadTopic, Topics};
use neli_proto::time::Time;
use serde_json::Value;

use super::{List, Listed, Rank, SPAN, hidden, none, place};
use crate::command::output::{self, Style, Tone, fitted, unless_closed};
use crate::command::reading::{
    self, Key, SUFFIX, elections, no_answer, pass_on, read_at, untold_silences, warn_of_unread,
};
use crate::command::wording::{self, led_of};
use crate::exit::ExitStatus;
use crate::report::election::sentence;
use crate::text::{counted, json, one_line, timestamp};

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
    /// The topics of which each change is told: those that were read to their ends at the last tick, and are not read anew.
    live: BTreeSet<Box<str>>,
    /// The elections that were told, and what was told last.
    told: BTreeMap<Key, Told>,
    /// The lines to print.
    lines: Vec<String>,
    /// Why topics can't be read, and what there is none of, as far as it was said.
    said: BTreeSet<String>,
}

/// What was told last of an election.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
struct Told {
    /// That it is unknown although its records show how it is.
    is_unknown: bool,
    /// `--json`: how many stand by.
    standbys: usize,
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
            live: BTreeSet::new(),
            told: BTreeMap::new(),
            lines: Vec::new(),
            said: BTreeSet::new(),
        }
    }

    fn handle(&mut self, at: ReadAt, event: TopicsEvent) -> Result<()> {
        // A table shows it. Until Kafka has answered once, the end of the time limit tells why not.
        let is_told = !self.is_drawn && (self.answer_due.is_none() || !matches!(event, TopicsEvent::Down(_)));
        if let TopicsEvent::Answered { .. } = event {
            self.answer_due = None;
        }
        let TopicsEvent::Read { reading, topic, partition, record } = event else {
            if let Some(line) = pass_on(&mut self.topics, at, event)?.filter(|_| is_told) {
                output::say(&line);
            }
            return Ok(());
        };
        let judged = self.topics.read(at, (reading, &topic), partition, &record);
        let Some(JudgedRecord { changes, election, is_live }) = judged else { return Ok(()) };
        if !is_live {
            // It is read anew. After its end it is told how its elections are.
            self.live.remove(&*topic);
        }
        let place = election.place();
        if changes.is_empty() || !self.live.contains(&*topic) || !self.list.is_about(&place.group) {
            return Ok(());
        }
        let sentences = changes.iter().map(|change| wording::change(election.observer(), change)).collect();
        let key = (Box::from(&*topic), place.clone());
        // Of a record that is read before Kafka has answered again: how the election is now is told after the answer.
        if !self.told.entry(key.clone()).or_default().is_unknown || !self.list.json {
            self.tell(at, &key, record.written_ms.unwrap_or(at.wall_ms), sentences);
        }
        Ok(())
    }

    /// That there is no topic or group as is asked for, once this is known.
    fn awaited(&self) -> Option<String> {
        let topic = self.list.topic.as_deref();
        if let Some(topic) = topic.filter(|topic| self.answer_due.is_none() && self.topics.topic(topic).is_none()) {
            return Some(format!("topic \"{topic}\" does not exist; waiting for it"));
        }
        let group = self.list.group.as_ref().filter(|_| self.topics.is_complete())?;
        let is_there = elections(&self.topics).any(|(.., found)| self.list.is_about(&found.place().group));
        (!is_there).then(|| wording::awaits_group(group, &place(topic)))
    }

    /// Notes what no record shows, and draws the table.
    fn tick(&mut self, at: ReadAt) -> Result<()> {
        if self.answer_due.is_some_and(|due| due <= at.now) {
            let why = self.topics.outage().map(|(_, why)| why);
            return Err(no_answer(&self.list.access, self.list.timeout, why));
        }
        self.topics.ask_about_silences(at);
        if self.is_drawn {
            return output::show(&self.page(at, Style::of_stdout(), output::rows().unwrap_or(usize::MAX)));
        }
        self.tell_gone(at);
        self.tell_current(at);
        let awaited = self.awaited();
        warn_of_unread(&mut self.said, &self.topics, awaited, output::say);
        Ok(())
    }

    /// Tells of the topics, or with `--json` of the elections, that are gone.
    fn tell_gone(&mut self, at: ReadAt) {
        let topics = &self.topics;
        let gone = self.live.iter().filter(|topic| !self.list.json && topics.topic(topic).is_none());
        self.lines.extend(gone.map(|topic| format!("{} topic {topic} is gone", timestamp(at.wall_ms))));
        let is_lost = |((topic, place), _): &(Key, Told)| {
            topics.topic(topic).is_none_or(|read| read.is_live() && read.topic().election(place).is_none())
        };
        let lost: BTreeMap<_, _>;
        (lost, self.told) = mem::take(&mut self.told).into_iter().partition(is_lost);
        for (topic, place) in lost.into_keys().filter(|_| self.list.json) {
            let how = if topics.topic(&topic).is_some() { "was made anew" } else { "is gone" };
            self.lines.push(json(&unread(at, &topic, &place, &format!("topic {topic} {how}"))));
        }
    }

    /// Tells of each election that was not told how it is, and then what no record shows: that its leader is silent, and that it is unknown because
    /// Kafka does not answer, or its topic can't be read; with `--json` also how many stand by.
    fn tell_current(&mut self, at: ReadAt) {
        let silences = untold_silences(&mut self.topics, at).into_iter();
        let silent: BTreeSet<Key> = silences.map(|(key, _)| key).collect();
        let live = self.topics.topics().filter(|(_, read)| read.is_live());
        let before = mem::replace(&mut self.live, live.map(|(name, _)| Box::from(name)).collect());
        let mut lines = Vec::new();
        let is_shown = |found: &Election| {
            self.list.is_about(&found.place().group) && (self.list.has_dead || !found.observer().is_dead(at))
        };
        for (name, read, found) in elections(&self.topics).filter(|(_, read, found)| read.is_live() && is_shown(found))
        {
            let (current, key) = (self.topics.leadership(at, read, found), (Box::from(name), found.place().clone()));
            let is_unknown = matches!(
                current,
                Leadership::Unknown(
                    Unknown::Cut | Unknown::NobodyAnswers | Unknown::NotHeard { .. } | Unknown::Unreadable
                )
            );
            let standbys = if self.list.json { found.observer().standbys(at).len() } else { 0 };
            let (now, told) = (Told { is_unknown, standbys }, self.told.get(&key).filter(|_| before.contains(name)));
            if told != Some(&now) || !is_unknown && silent.contains(&key) {
                let how = if told.is_some_and(|told| !told.is_unknown) { "" } else { "as of now: " };
                lines.push((key, now, format!("{how}{}", sentence(current))));
            }
        }
        for (key, now, sentence) in lines {
            self.tell(at, &key, at.wall_ms, vec![sentence]);
            self.told.insert(key, now);
        }
    }

    /// Adds a line for each sentence about an election; with `--json` one line with its state.
    fn tell(&mut self, at: ReadAt, key: &Key, ms: u64, sentences: Vec<String>) {
        let (topic, place) = key;
        if !self.list.json {
            let name = name(topic, place);
            let lines =
                sentences.into_iter().map(|sentence| one_line(&format!("{} {name}: {sentence}", timestamp(ms))));
            return self.lines.extend(lines);
        }
        let read = self.topics.topic(topic);
        if let Some((read, election)) = read.and_then(|read| Some((read, read.topic().election(place)?))) {
            let listed = Listed::of(at, &self.topics, (topic, read, election));
            self.told.entry(key.clone()).or_default().standbys = listed.standbys.len();
            self.lines.push(json(&listed.json()));
        }
    }

    fn print(&mut self) -> Result<()> {
        output::write(&self.lines.drain(..).map(|line| line + "\n").collect::<String>())
    }

    /// The table, on so many rows of a terminal, whose last one stays empty.
    fn page(&self, at: ReadAt, style: Style, rows: usize) -> String {
        let (mut table, mut dead) = (Vec::new(), 0);
        let unread = reading::unread(&self.topics).map(|(topic, why)| {
            let (name, text) = (one_line(topic), one_line(why));
            Row { rank: Rank::Unknown, name, standbys: "-".to_owned(), text }
        });
        let mut unread: Vec<Row> = unread.collect();
        let is_about = |(.., found): &(&str, &ReadTopic, &Election)| self.list.is_about(&found.place().group);
        for found in elections(&self.topics).filter(is_about) {
            if found.2.observer().is_dead(at) && !self.list.has_dead {
                dead += 1;
            } else {
                table.push(Row::of(&Listed::of(at, &self.topics, found)));
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
