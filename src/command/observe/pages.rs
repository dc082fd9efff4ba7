//! The answer for each path. What is costly to render is kept for a second, so that many requests cost little.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use neli_kafka::clock;

use super::page::Overview;
use super::state::State;
use super::{json, page};
use crate::command::reading::read_at;
use crate::http::{Events, HTML, JAVA_SCRIPT, JSON, Kept, METRICS, Site, ok, text, unavailable};
use crate::process::locked;
use crate::text::spoken;

/// For this time a rendered body is used again.
const FRESH_FOR: Duration = Duration::from_secs(1);

const SCRIPT: &str = include_str!("page.js");

const PATHS: &str =
    "no such path; the paths are / /election/GROUP /elections /elections/GROUP /events /healthz /metrics /readyz";

/// The site.
pub(super) struct Pages {
    state: Arc<Mutex<State>>,
    overview: Kept<Rc<Overview>>,
    elections: Kept<Bytes>,
    metrics: Kept<Bytes>,
}

fn kept<T: Clone>(last: &Kept<T>, render: impl FnOnce() -> T) -> T {
    last.get(clock::now(), FRESH_FOR, |_| true, render)
}

impl Pages {
    pub(super) const fn new(state: Arc<Mutex<State>>) -> Self {
        Self { state, overview: Kept::new(), elections: Kept::new(), metrics: Kept::new() }
    }

    fn overview(&self) -> Rc<Overview> {
        kept(&self.overview, || Rc::new(Overview::of(&locked(&self.state), read_at())))
    }

    fn readiness(&self) -> Response<Bytes> {
        let state = locked(&self.state);
        match state.topics.outage() {
            Some((since, why)) => {
                unavailable(&format!("no broker reached for {}: {why}", spoken(clock::now().since(since))))
            }
            None if !state.topics.is_complete() => unavailable("the topics are not read yet"),
            None => text(StatusCode::OK, "ok"),
        }
    }
}

impl Site for Pages {
    fn answer(&self, path: &str) -> Response<Bytes> {
        let rendered = |render: fn(&State, neli_proto::leadership::ReadAt) -> String| {
            Bytes::from(render(&locked(&self.state), read_at()))
        };
        match path {
            "/" => ok(HTML, self.overview().page().into()),
            "/elections" => ok(JSON, kept(&self.elections, || rendered(State::json))),
            // It answers, so the server runs; the other thread has nothing that could hang but for the lock, which this takes.
            "/healthz" => {
                drop(locked(&self.state));
                text(StatusCode::OK, "ok")
            }
            "/metrics" => ok(METRICS, kept(&self.metrics, || rendered(State::metrics))),
            "/page.js" => ok(JAVA_SCRIPT, Bytes::from_static(SCRIPT.as_bytes())),
            "/readyz" => self.readiness(),
            _ => {
                let (of_json, of_page) = (path.strip_prefix("/elections/"), path.strip_prefix("/election/"));
                let Some(group) = of_json.or(of_page).and_then(decoded) else {
                    return text(StatusCode::NOT_FOUND, PATHS);
                };
                let (state, at) = (locked(&self.state), read_at());
                if state.elections(at, Some(&group)).next().is_none() {
                    return text(StatusCode::NOT_FOUND, "no election of such a group was found");
                }
                if of_json.is_some() {
                    return ok(JSON, json::of_group(&state, &group, at).into());
                }
                ok(HTML, page::of_group(&state, &group, at).into())
            }
        }
    }

    /// The groups that have changed since the last event of this client, and the order of all.
    fn events(self: Rc<Self>) -> Events {
        let (mut last, mut sent): (Option<Rc<Overview>>, BTreeMap<String, u64>) = (None, BTreeMap::new());
        Box::new(move || {
            let overview = self.overview();
            if last.as_ref().is_some_and(|last| Rc::ptr_eq(last, &overview)) {
                return None;
            }
            last = Some(Rc::clone(&overview));
            Some(overview.event(&mut sent).into())
        })
    }
}

/// A part of a path without its encoding; `None` if that is wrong.
fn decoded(part: &str) -> Option<String> {
    if let ".;" | "..;" = part {
        return part.strip_suffix(';').map(str::to_owned);
    }
    let (mut bytes, mut rest) = (Vec::new(), part.as_bytes());
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::observe::page::encoded;

    #[test]
    fn a_group_of_any_name_has_a_path() {
        for group in ["billing", "a/b", "<script>", "100%", "Zoë ..", "", ".", "..", "..;", "..."] {
            assert_eq!(decoded(&encoded(group)).as_deref(), Some(group));
            assert!(encoded(group).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%;".contains(&byte)));
            assert!(![".", ".."].contains(&encoded(group).as_str()), "a browser would leave it out");
        }
        for wrong in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
