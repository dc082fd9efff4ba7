//! `list`: the elections that are found in a topic, or in all topics whose names end in `.neli`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::{Access, names};
use neli_proto::leadership::{Leader, Leadership, ReadAt};
use neli_proto::observer::{Election, NoRoom, Place, ReadTopic, Standby, Topics};
use neli_proto::record::Offset;
use neli_proto::time::millis;
use serde_json::{Value, json};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate;
use crate::command::look::{TIMEOUT, access, timeout};
use crate::command::output::{self, Style, columns};
use crate::command::reading::{self, Following, Limit, SUFFIX, read_at, warn_of_clock};
use crate::command::wording::{self, leadership_in_table};
use crate::exit::{ExitStatus, with_status};
use crate::report::election::{sentence, state};
use crate::report::json::joined;
use crate::text::{self, counted, one_line, timestamp};

mod live;

/// How far before a partition's end the reading begins: an election without a record since then is not found.
pub(super) const SPAN: Offset = 100_000;

/// Shows the elections.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer, a log can't be read, or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let list = &List::of(args)?;
    if args.flag("watch")?.is_some() {
        return live::main(list);
    }
    let (topics, unread) = reading::run(find(list))?;
    let at = read_at();
    let found = || Listed::all(at, &topics);
    warn_of_clock(reading::observers(&topics, list.group.as_deref()));
    let is_about = |listed: &Listed<'_>| list.is_about(&listed.found.place().group);
    let meant: Vec<Listed<'_>> = found().filter(is_about).collect();
    if let (Some(group), true) = (list.group.as_ref().filter(|_| meant.is_empty()), unread.is_empty()) {
        let groups = found().map(|listed| listed.found.place().group.to_string()).collect();
        return Err(with_status(ExitStatus::VACANT, no_election(group, list.topic.as_deref(), &groups)));
    }
    if list.json {
        output::print(&meant.iter().map(|listed| text::json(&listed.json()) + "\n").collect::<String>())?;
    } else {
        let is_shown = |listed: &Listed<'_>| list.has_dead || !listed.found.observer().is_dead(at);
        let (shown, dead): (Vec<_>, Vec<_>) = meant.into_iter().partition(is_shown);
        let table = match shown.as_slice() {
            [] if unread.is_empty() => none(list.topic.as_deref()) + "\n",
            // What could not be read may have some.
            [] => String::new(),
            shown => table(shown),
        };
        output::print(&(table + &hidden(dead.len())))?;
    }
    if unread.is_empty() {
        return Ok(ExitStatus::SUCCESS);
    }
    Err(with_status(ExitStatus::UNKNOWN, format!("not all could be read: {}", wording::first_ten(unread.iter(), "; "))))
}

/// What is listed.
struct List {
    access: Access,
    /// `--topic`: the only topic to read.
    topic: Option<String>,
    /// `--group`: the only group whose elections are listed.
    group: Option<String>,
    /// Whether elections that are dead are listed too: with `--all`, `--group` or `--json`.
    has_dead: bool,
    json: bool,
    timeout: Duration,
}

impl List {
    fn of(args: &ParsedArgs) -> Result<Self> {
        let (topic, group, json) = (validate::topic(args)?, validate::group(args)?, args.flag("json")?.is_some());
        let has_dead = args.flag("all")?.is_some() || group.is_some() || json;
        let timeout = timeout(args, TIMEOUT)?;
        Ok(Self { topic, group, has_dead, json, timeout, access: access(args)? })
    }

    /// Begins to read the topic, or all.
    fn follow(&self) -> Result<Following> {
        let are_all = self.topic.is_none();
        Following::start(&self.access, self.topic.as_deref(), move |name| are_all && name.ends_with(SUFFIX))
    }

    /// Whether the elections of this group are meant.
    fn is_about(&self, group: &str) -> bool {
        self.group.as_deref().is_none_or(|only| only == group)
    }
}

/// The topics with their elections, and what could not be read.
async fn find(list: &List) -> Result<(Topics, Vec<String>)> {
    let (mut following, mut topics) = (list.follow()?, Topics::new(SPAN, names::MOST_ROLES));
    let limit = Limit::of_each_answer(list.timeout);
    let unread = following.read_to_ends(&mut topics, list.group.as_deref(), limit).await?;
    match (&list.topic, unread.as_slice()) {
        (Some(topic), _) if topics.topic(topic).is_none() => bail!("topic \"{topic}\" does not exist"),
        (Some(topic), [why, ..]) if topics.topic(topic).is_some_and(|read| read.trouble(None).is_some()) => {
            bail!("{why}")
        }
        // A topic or a partition that can't be read does not hide the others.
        _ => Ok((topics, unread)),
    }
}

/// How urgent an election is; the most urgent ones come first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Rank {
    Vacant,
    Overdue,
    Unknown,
    Led,
    /// Nobody has to lead.
    Done,
    /// For a week nothing was written of it.
    Dead,
}

impl Rank {
    pub(super) fn of(Listed { at, found, current, .. }: &Listed<'_>) -> Self {
        match current {
            _ if found.observer().is_dead(*at) => Self::Dead,
            _ if current.is_vacant() && found.observer().is_done(*at) => Self::Done,
            Leadership::Led { .. } => Self::Led,
            Leadership::Overdue { .. } => Self::Overdue,
            Leadership::Unknown(_) => Self::Unknown,
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Released { .. } | Leadership::Silent { .. } => {
                Self::Vacant
            }
        }
    }
}

/// An election of which this is known now.
pub(super) struct Listed<'a> {
    pub(super) at: ReadAt,
    pub(super) topic: &'a str,
    pub(super) found: &'a Election,
    pub(super) current: Leadership<'a>,
    pub(super) standbys: Vec<Standby<'a>>,
    /// `--max-roles`: there is no leader, and the standbys may lead fewer roles than there are.
    pub(super) no_room: Option<NoRoom>,
}

impl<'a> Listed<'a> {
    pub(super) fn of(at: ReadAt, topics: &Topics, found: (&'a str, &'a ReadTopic, &'a Election)) -> Self {
        let (topic, read, found) = found;
        let (current, standbys) = (topics.leadership(at, read, found), found.observer().standbys(at));
        let of_group = || read.topic().no_room(&found.place().group, &standbys);
        let no_room = if current.is_vacant() { of_group() } else { None };
        Self { at, topic, found, current, standbys, no_room }
    }

    fn all(at: ReadAt, topics: &'a Topics) -> impl Iterator<Item = Self> {
        reading::elections(topics).map(move |found| Self::of(at, topics, found))
    }

    /// The sentence about it, and why no standby may lead it too, if so.
    pub(super) fn said(&self, sentence: impl FnOnce(Leadership<'a>) -> String) -> String {
        wording::with_room(sentence(self.current), self.no_room.as_ref())
    }

    /// The end of its row in a table: its term, its standbys, and who leads.
    pub(super) fn cells(&self) -> [String; 3] {
        let term = self.current.leader().map_or_else(|| "-".to_owned(), |leader| leader.term.to_string());
        [term, self.standbys.len().to_string(), one_line(&self.said(leadership_in_table))]
    }

    /// How each line about it begins, also that of `status`.
    pub(super) fn head(&self) -> Value {
        let Place { partition, group, role } = self.found.place();
        json!({
            "ts": timestamp(self.at.wall_ms),
            "group": group,
            "role": role,
            "topic": self.topic,
            "partition": partition,
            "state": state(self.current),
            "why": (!self.current.is_usual()).then(|| self.said(sentence)),
        })
    }

    /// As docs/json.md describes it.
    pub(super) fn json(&self) -> Value {
        let (leader, observer) = (self.current.leader(), self.found.observer());
        let part = json!({
            "leader": leader.map(Leader::shown),
            "term": leader.map(|leader| leader.term),
            "heartbeat_age_ms": leader.map(|leader| millis(observer.age(leader.last_record, self.at))),
            "standbys": self.standbys.len(),
            "dead": observer.is_dead(self.at),
        });
        joined([self.head(), part])
    }
}

/// An error: there is no such group; these groups exist.
fn no_election(group: &str, topic: Option<&str>, groups: &BTreeSet<String>) -> String {
    let place = place(topic);
    let has = if groups.is_empty() {
        "nor of another".to_owned()
    } else {
        format!("groups found: {}", wording::groups(groups))
    };
    format!("no election of group \"{group}\" in {place}; {has}")
}

/// Where elections are looked for.
fn place(topic: Option<&str>) -> String {
    topic.map_or_else(|| format!("any topic *{SUFFIX} that this user may see"), |topic| format!("topic {topic}"))
}

/// The last line, about elections that are not shown.
fn hidden(dead: usize) -> String {
    if dead == 0 {
        return String::new();
    }
    format!("{} not shown, dead for more than a week; --all shows all\n", counted(dead as u64, "election"))
}

/// That nothing is found. Kafka does not tell of topics that this user may not see.
fn none(topic: Option<&str>) -> String {
    format!("no elections in {}", place(topic))
}

fn table(shown: &[Listed<'_>]) -> String {
    let cells = shown.iter().map(|listed| {
        let (Place { group, role, .. }, [term, standbys, current]) = (listed.found.place(), listed.cells());
        [one_line(group), one_line(role), listed.topic.to_owned(), term, standbys, current]
    });
    let head = ["GROUP", "ROLE", "TOPIC", "TERM", "STANDBYS", "LEADER"];
    columns(head, &cells.collect::<Vec<_>>(), Style::of_stdout())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use neli_proto::kafka::{LogRange, LogsAnswer};
    use neli_proto::record::LogRecord;
    use neli_proto::topic::TopicIdentity;

    use super::*;

    /// Only Kafka is the job's.
    #[test]
    fn inside_a_job_all_groups_are_listed() {
        let of_job = [("NELI_GROUP", "as"), ("NELI_TOPIC", "as.neli"), ("NELI_BROKERS", "kafka:9092")];
        let environment = of_job.map(|(name, value)| (name.into(), value.into())).to_vec();
        let args = crate::cli::parse(&["neli-run".into(), "list".into()], environment).unwrap();
        let list = List::of(&args).unwrap();
        assert_eq!((list.group, list.topic, &*list.access.bootstrap), (None, None, "kafka:9092"));
    }

    /// Kafka stops during the reading, whose rest may have another term.
    #[test]
    fn nothing_is_told_of_an_election_whose_topic_was_not_read_to_its_end() {
        let (at, mut topics) = (read_at(), Topics::new(SPAN, names::MOST_ROLES));
        let logs = Ok(BTreeMap::from([(0, Ok(LogRange { start: 0, recent: 0, end: 2 }))]));
        let answer = LogsAnswer { identity: TopicIdentity::Unnamed, logs };
        topics.answered(at, at.now, BTreeMap::from([("a.neli".into(), answer)]));
        let claim = br#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":5000}"#;
        let (key, value) = (Some(Box::from(&b"g/0"[..])), Some(Box::from(&claim[..])));
        let record = LogRecord { offset: 0, key, value, written_ms: Some(0), is_brokers_time: true };
        topics.read(at, (1, "a.neli"), 0, &record);
        let state =
            |topics: &Topics| Listed::all(at, topics).map(|listed| listed.json()["state"].clone()).collect::<Vec<_>>();
        assert_eq!(state(&topics), ["unknown"]);
        topics.no_answer(at.now, "refused");
        assert_eq!(state(&topics), ["unknown"]);
    }
}
