//! The page of all elections, and that of a group. Each is whole without JavaScript; with it the table follows the elections.
//!
//! Names come from topics that others write to. Every text passes [`html`], and no script runs but the server's own `page.js`: the policy of the
//! page's content allows none within it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use neli_proto::leadership::{Leader, ReadAt};
use neli_proto::observer::KnownCandidate;
use neli_proto::time::millis;
use serde_json::json;

use super::DAY;
use super::state::{Shown, State};
use crate::command::history::{HEAD, by_broker, cells, draw, rows, strip};
use crate::command::list::{Listed, Rank};
use crate::command::reading::unread;
use crate::report::election::sentence_at;
use crate::text::{self, counted, date, html, span, spoken};

/// A strip is drawn anew this often, so that a row that is otherwise unchanged is not sent again.
const STRIP_STEP_MS: u64 = 60_000;

const COLUMNS: [&str; 8] =
    ["Election", "State", "Since", "Lease left", "Standbys", "Last change", "Runs", "Last 24 hours"];

/// All elections as they are shown at one moment.
pub(super) struct Overview {
    /// What is said above the table.
    head: String,
    /// The body of each group's part of the table, with its id; the most urgent come first.
    groups: Vec<(String, String)>,
    ts: String,
}

/// A part of a path, percent-encoded. A browser would take `.` and `..` for steps in the path, encoded or not.
pub(super) fn encoded(part: &str) -> String {
    if let "." | ".." = part {
        return format!("{part};");
    }
    let byte = |byte: u8| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    part.bytes().map(byte).collect()
}

impl State {
    /// `/`.
    pub fn page(&self, at: ReadAt) -> String {
        Overview::of(self, at).page()
    }
}

impl Overview {
    pub(super) fn of(state: &State, at: ReadAt) -> Self {
        let mut groups: BTreeMap<(&str, &str), Vec<Shown<'_>>> = BTreeMap::new();
        for shown in state.elections(at, None) {
            groups.entry((shown.topic, &shown.found.place().group)).or_default().push(shown);
        }
        let all: Vec<&Shown<'_>> = groups.values().flatten().collect();
        let head = head(state, &all, at);
        let rank = |of: &[Shown<'_>]| of.iter().map(Shown::rank).min().unwrap_or(Rank::Dead);
        let mut ordered: Vec<_> = groups.iter().map(|((topic, group), of)| (rank(of), *group, *topic, of)).collect();
        ordered.sort_by_key(|(rank, group, topic, _)| (*rank, *group, *topic));
        let groups = ordered.into_iter().map(|(rank, group, topic, of)| {
            let id = format!("g{:016x}", hash(&(topic, group)));
            let body = body(&id, rank, group, of);
            (id, body)
        });
        Self { groups: groups.collect(), head, ts: date(at.wall_ms) }
    }

    pub(super) fn page(&self) -> String {
        let mut page = beginning("elections");
        let columns = heads(&COLUMNS);
        let groups: String = self.groups.iter().map(|(_, body)| body.as_str()).collect();
        let none = if self.groups.is_empty() {
            "<p id=\"none\">no elections in the topics that this user may see</p>"
        } else {
            ""
        };
        // Writing to a String can't fail.
        let _ = write!(
            page,
            "<h1>Elections</h1>\n<div id=\"head\">{}</div>\n<form id=\"tools\" hidden>\
             <label>Filter <input id=\"filter\" type=\"search\" placeholder=\"name, topic, state\"></label> \
             <label>Sort <select id=\"sort\"><option value=\"\">trouble first</option><option value=\"name\">by name</option></select></label> \
             <label><input id=\"dead\" type=\"checkbox\"> dead for a week</label></form>\n\
             <table id=\"elections\"><thead><tr>{columns}</tr></thead>\n{groups}</table>\n{none}\n\
             <p class=\"dim\"><a href=\"elections\">JSON</a> · <a href=\"metrics\">metrics</a> · \
             <span id=\"age\">as of {}; reload for newer</span></p>\n\
             <script src=\"page.js\"></script>\n</body>\n</html>\n",
            self.head, self.ts
        );
        page
    }

    /// The event for a client to which these bodies, by their hashes, were sent.
    pub(super) fn event(&self, sent: &mut BTreeMap<String, u64>) -> Vec<u8> {
        let mut changed = BTreeMap::new();
        for (id, body) in &self.groups {
            let hash = hash(body);
            if sent.insert(id.clone(), hash) != Some(hash) {
                changed.insert(id.as_str(), body.as_str());
            }
        }
        let order: Vec<&str> = self.groups.iter().map(|(id, _)| id.as_str()).collect();
        if sent.len() > order.len() {
            let there: std::collections::BTreeSet<&str> = order.iter().copied().collect();
            sent.retain(|id, _| there.contains(id.as_str()));
        }
        let event = json!({ "ts": self.ts, "head": self.head, "order": order, "changed": changed });
        format!("data: {}\n\n", text::json(&event)).into_bytes()
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn outage(state: &State, at: ReadAt) -> Option<String> {
    let (since, why) = state.topics.outage()?;
    Some(format!("<p class=\"bad\">Kafka has not answered for {}: {}</p>", spoken(at.now.since(since)), html(why)))
}

/// What is said above the table.
fn head(state: &State, all: &[&Shown<'_>], at: ReadAt) -> String {
    let mut head = String::new();
    if let Some(outage) = outage(state, at) {
        head += &outage;
    } else if !state.topics.is_complete() {
        head.push_str("<p>the topics are being read</p>");
    }
    for (_, why) in unread(&state.topics) {
        let _ = write!(head, "<p class=\"bad\">{}</p>", html(why));
    }
    let of = |rank: Rank| all.iter().filter(|shown| shown.rank() == rank).count() as u64;
    let some = |rank: Rank, what: &str| if of(rank) > 0 { format!(", {} {what}", of(rank)) } else { String::new() };
    let _ = write!(
        head,
        "<p>{}: {} led, {} without a leader, {} unknown{}{}</p>",
        counted(all.len() as u64, "election"),
        of(Rank::Led),
        of(Rank::Vacant) + of(Rank::Overdue),
        of(Rank::Unknown),
        some(Rank::Done, "done"),
        some(Rank::Dead, "dead for a week")
    );
    head
}

/// A group's part of the table: a row for each role, and one above them if there are several.
fn body(id: &str, rank: Rank, group: &str, of: &[Shown<'_>]) -> String {
    let class = class(rank);
    let several = if of.len() > 1 { " several" } else { "" };
    let mut body = format!("<tbody id=\"{id}\" class=\"{class}{several}\" data-name=\"{}\">", html(group));
    if let [first, _, ..] = of {
        let led = of.iter().filter(|shown| shown.rank() == Rank::Led).count();
        let _ = write!(
            body,
            "<tr class=\"{class} head\"><th scope=\"rowgroup\">{} <span class=\"dim\">{}</span></th>\
             <td colspan=\"7\" data-label=\"State\"><button type=\"button\" hidden aria-expanded=\"true\">roles</button> {led} of {} roles are led</td></tr>",
            link(group),
            html(first.topic),
            of.len()
        );
    }
    for shown in of {
        body.push_str(&row(shown, of.len() == 1));
    }
    body + "</tbody>\n"
}

const fn class(rank: Rank) -> &'static str {
    match rank {
        Rank::Dead => "dead",
        Rank::Done => "done",
        Rank::Led => "led",
        Rank::Overdue | Rank::Vacant => "vacant",
        Rank::Unknown => "unknown",
    }
}

fn link(group: &str) -> String {
    format!("<a href=\"election/{}\">{}</a>", encoded(group), html(group))
}

/// A row of the table. It has no age that grows each second, so that it is sent again only when something has changed.
fn row(shown: &Shown<'_>, is_alone: bool) -> String {
    let (place, observer, at) = (shown.found.place(), shown.found.observer(), shown.at);
    let name = if is_alone {
        let role = if *place.role == *"0" { String::new() } else { format!("/{}", html(&place.role)) };
        format!("{}{role} <span class=\"dim\">{}</span>", link(&place.group), html(shown.topic))
    } else {
        html(&place.role)
    };
    let trouble = shown.trouble().map_or_else(String::new, |why| format!(" <span class=\"bad\">{}</span>", html(why)));
    let leader = shown.current.leader();
    let left = |leader: &Leader| {
        let left = leader.lease.saturating_sub(observer.age(leader.last_record, at));
        format!("{}s of {}", left.as_secs(), spoken(leader.lease))
    };
    let none = || "-".to_owned();
    let change = shown.notes.and_then(|notes| notes.changes.back());
    let cells = [
        format!("{}{trouble}", html(&shown.said(|current| sentence_at(current, Some(at.wall_ms))))),
        leader.and_then(|leader| leader.claimed_ms).map_or_else(none, date),
        leader.filter(|_| shown.current.is_led()).map_or_else(none, left),
        shown.standbys.len().to_string(),
        change.map_or_else(none, |(ms, what)| format!("{} <span class=\"dim\">{}</span>", html(what), date(*ms))),
        runs(shown).map_or_else(none, |runs| html(&runs)),
        day(shown),
    ];
    let cells = COLUMNS[1..].iter().zip(cells);
    let cells: Vec<String> = cells.map(|(column, cell)| format!("<td data-label=\"{column}\">{cell}</td>")).collect();
    let role = if is_alone { "" } else { " role" };
    format!("<tr class=\"{}{role}\"><th scope=\"row\">{name}</th>{}</tr>", class(shown.rank()), cells.concat())
}

/// The recorded runs, in a few words.
fn runs(shown: &Shown<'_>) -> Option<String> {
    let run = shown.run?;
    let success = run.account.success.as_ref().and_then(|success| success.at_ms);
    let success = success.map_or_else(|| "no success yet".to_owned(), |ms| format!("last success {}", date(ms)));
    let next = run.next_windows(shown.at.wall_ms).first().map(|ms| format!("; next {}", date(*ms)));
    Some(format!("{success}{}", next.unwrap_or_default()))
}

/// The strip of the last 24 hours.
fn day(shown: &Shown<'_>) -> String {
    let at = by_broker(shown.found.observer(), shown.found.known_at(shown.at));
    let step = ReadAt { wall_ms: at.wall_ms / STRIP_STEP_MS * STRIP_STEP_MS, ..at };
    let from_ms = step.wall_ms.saturating_sub(millis(DAY));
    let known = shown.known_since_ms().map(|ms| format!("<span class=\"dim\">read from {} on</span>", date(ms)));
    strip(&rows(shown.found, step, from_ms), from_ms..step.wall_ms) + &known.unwrap_or_default()
}

/// The page of a group: each of its elections with its candidates, its terms and its last changes.
pub(super) fn of_group(state: &State, group: &str, at: ReadAt) -> String {
    let mut page = beginning(group);
    let _ = write!(page, "<p><a href=\"..\">all elections</a></p>\n<h1>{}</h1>\n", html(group));
    if let Some(outage) = outage(state, at) {
        page += &(outage + "\n");
    }
    for shown in state.elections(at, Some(group)) {
        section(&mut page, &shown);
    }
    let _ = write!(
        page,
        "<p class=\"dim\"><a href=\"../elections/{}\">JSON</a> · as of {}; reload for newer</p>\n</body>\n</html>\n",
        encoded(group),
        date(at.wall_ms)
    );
    page
}

fn section(page: &mut String, shown: &Shown<'_>) {
    let Listed { current, found, .. } = shown.listed;
    let (observer, at) = (found.observer(), by_broker(found.observer(), found.known_at(shown.at)));
    let sentence = shown.said(|current| sentence_at(current, Some(shown.at.wall_ms)));
    let _ = write!(
        page,
        "<section class=\"{}\"><h2>{}: {}</h2>\n<p class=\"dim\">topic {}, partition {}{}</p>\n",
        class(shown.rank()),
        html(&shown.found.place().to_string()),
        html(&sentence),
        html(shown.topic),
        found.place().partition,
        shown.trouble().map_or_else(String::new, |why| format!("; {}", html(why)))
    );
    if let Some(leader) = current.leader() {
        let age = span(observer.age(leader.last_record, shown.at));
        let _ = writeln!(page, "<p>term {}, lease {}, last heartbeat {age} ago</p>", leader.term, spoken(leader.lease));
    }
    let hello = observer.leaders_hello().map(|hello| (hello, observer.age(hello.received, shown.at)));
    let standbys = shown.standbys.iter().map(|standby| (standby.candidate, standby.age));
    let all: Vec<_> = hello.into_iter().chain(standbys).collect();
    if !all.is_empty() {
        let differs = differing(&all.iter().map(|(candidate, _)| *candidate).collect::<Vec<_>>());
        page.push_str("<h3>Candidates</h3>\n");
        let head = ["name", "host", "pid", "version", "elect", "priority", "max roles", "hello", "own page"];
        let cells = all.iter().enumerate().map(|(number, (candidate, age))| {
            let mut cells = candidate_cells(candidate);
            if number == 0 && hello.is_some() && current.may_lead().is_some() {
                cells[0] += " (leads)";
            }
            let marked = cells.iter().zip(differs).map(|(cell, differs)| (html(cell), differs));
            marked.chain([(format!("{} ago", span(*age)), false), (own_page(candidate), false)]).collect()
        });
        table(page, &head, cells);
    }
    let terms = rows(found, at, 0);
    let _ = writeln!(
        page,
        "<h3>Terms</h3>\n<div class=\"drawing\">{}</div>",
        draw(&shown.found.place().to_string(), &terms, 0..at.wall_ms)
    );
    let plain = |[_, cells @ ..]: [String; 7]| cells.iter().map(|cell| (html(cell), false)).collect();
    table(page, &HEAD[1..], terms.iter().rev().map(|term| plain(cells("", term, at.wall_ms))));
    page.push_str("<h3>Last changes</h3>\n<ol reversed>\n");
    for (ms, what) in shown.notes.iter().flat_map(|notes| notes.changes.iter().rev()) {
        let _ = writeln!(page, "<li>{} {}</li>", date(*ms), html(what));
    }
    page.push_str("</ol>\n</section>\n");
}

/// What a hello tells of a candidate, in the order of the table.
fn candidate_cells(candidate: &KnownCandidate) -> [String; 7] {
    let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or("-").to_owned();
    [
        candidate.shown().to_owned(),
        text(&candidate.hello.host),
        candidate.hello.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        text(&candidate.hello.version),
        text(&candidate.hello.elector),
        candidate.hello.priority.to_string(),
        candidate.max_roles().map_or_else(|| "-".to_owned(), |most| most.to_string()),
    ]
}

/// Of each cell whether it is an option, or the version, and candidates differ in it.
fn differing(all: &[&KnownCandidate]) -> [bool; 7] {
    let cells: Vec<[String; 7]> = all.iter().map(|candidate| candidate_cells(candidate)).collect();
    std::array::from_fn(|at| at > 2 && cells.windows(2).any(|two| two[0][at] != two[1][at]))
}

/// Where the candidate serves its own page: a link, if other machines can follow it.
fn own_page(candidate: &KnownCandidate) -> String {
    let Some(listen) = &candidate.hello.listen else { return "-".to_owned() };
    let link = |url: String| format!("<a href=\"{}\">{}</a>", html(&url), html(listen));
    url_elsewhere(listen, candidate.hello.host.as_deref()).map_or_else(|| html(listen), link)
}

/// The URL of an address that is bound on this host, for other machines. There is none for a loopback address, nor for one that is valid on one
/// link alone, which no URL can name. A host that listens on all its addresses is reached by its name.
fn url_elsewhere(listen: &str, host: Option<&str>) -> Option<String> {
    let address: SocketAddr = listen.parse().ok()?;
    let is_of_link = matches!(address, SocketAddr::V6(v6) if v6.ip().segments()[0] & 0xffc0 == 0xfe80);
    match address.ip().to_canonical() {
        ip if ip.is_loopback() || is_of_link => None,
        ip if ip.is_unspecified() => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            let host = host.filter(|host| !host.is_empty() && host.bytes().all(is_name))?;
            Some(format!("http://{host}:{}/", address.port()))
        }
        _ => Some(format!("http://{address}/")),
    }
}

/// A table of cells in HTML, each with whether it is marked.
fn table(page: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<(String, bool)>>) {
    let _ = writeln!(page, "<div class=\"wide\"><table><thead><tr>{}</tr></thead><tbody>", heads(head));
    for row in rows {
        let mark = |marked| if marked { " class=\"bad\"" } else { "" };
        let cells = row.iter().map(|(cell, marked)| format!("<td{}>{cell}</td>", mark(*marked)));
        let _ = writeln!(page, "<tr>{}</tr>", cells.collect::<Vec<_>>().concat());
    }
    page.push_str("</tbody></table></div>\n");
}

/// The cells of a table's head.
fn heads(columns: &[&str]) -> String {
    columns.iter().map(|column| format!("<th scope=\"col\">{column}</th>")).collect::<Vec<_>>().concat()
}

fn beginning(title: &str) -> String {
    BEGINNING.replace("{title}", &html(title)) + PATTERN
}

/// The hatching of silences.
const PATTERN: &str = "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" \
                       patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"3\" height=\"6\" fill=\"#e9b44c\"/>\
                       </pattern></defs></svg>\n";

const BEGINNING: &str = include_str!("beginning.html");
