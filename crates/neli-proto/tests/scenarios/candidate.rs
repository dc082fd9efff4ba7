//! Scenarios of a candidate, which is called `me`.

mod outcome;

use std::collections::BTreeMap;
use std::time::Duration;

use neli_proto::candidate::{
    Action, Candidate, Durations, Elector, Event, JobEnd, JobReport, Position, Setup, Timings,
};
use neli_proto::guard::Grant;
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::precedence::Assignment;
use neli_proto::random::Random;
use neli_proto::record::{Body, Job, JobState, KeyedRun, Offset, Overlap, Record, What, Why};
use neli_proto::role_set::RoleSet;
use neli_proto::supervisor::{Departure, JobIs, Local, NothingLeft, Wanted};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::proof::nothing_left;
use crate::records::{Written, hello};
use crate::words::{Words, begin, member, seen_end};
use crate::{Subject, actions_of};
use outcome::{NO_IDS, shown_action, shown_change};

/// A candidate and its time.
pub(crate) struct Scenario {
    candidate: Candidate,
    now: Time,
    /// The records that it has sent, by their sequence numbers.
    sent: BTreeMap<u64, Written>,
    lease: Duration,
    /// The last grant to run a job that it gave.
    grant: Option<Grant>,
    /// What it wants of its job.
    wanted: Option<Wanted>,
    departed: Option<Departure>,
    /// The job's state.
    report: JobReport,
    lacks_guard: bool,
    /// Whether it was told to be suspended.
    is_suspended: bool,
    /// Whether it holds and awaits nothing since then, so that its process is suspended.
    has_suspended: bool,
}

impl Scenario {
    /// `candidate lease=1s heartbeat=300ms margin=20ms warning=0 elect=log|group|never patience=500ms delay=0 wait=2s ids
    /// priority=10 preempt preempt-after=1m overlap=100ms once=v1 one-of-many`.
    pub(crate) fn begin(words: &Words<'_>) -> (Self, Vec<String>) {
        let lease = words.span_of("lease").unwrap_or(Duration::from_secs(1));
        let patience = words.span_of("patience").unwrap_or(Duration::from_millis(500));
        let elector = match words.value("elect") {
            None | Some("log") => Elector::Log,
            Some("group") => Elector::Group(Some(patience)),
            Some("never") => Elector::Group(None),
            Some(other) => panic!("{other} is no elector"),
        };
        let timings = Timings::new(
            Durations {
                lease,
                heartbeat_interval: words.span_of("heartbeat").unwrap_or(lease * 3 / 10),
                kill_margin: words.span_of("margin").unwrap_or(Duration::from_millis(20)),
                fence_warning: words.span_of("warning").unwrap_or(Duration::ZERO),
                preempt_after: words
                    .says("preempt")
                    .then(|| words.span_of("preempt-after").unwrap_or(Duration::from_secs(60))),
                overlap: words.span_of("overlap"),
            },
            elector,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let hello = hello("me", words.number_of("priority").unwrap_or(0));
        let hello = Hello { once: words.value("once").map(Into::into), ..hello };
        let now = begin();
        let setup = Setup { hello, timings, started: now, wait: words.span_of("wait"), first_span: FIRST_SPAN };
        let candidate = Candidate::new(now, setup, Random::from_seed(1));
        let mut candidate = if words.says("one-of-many") { candidate.one_of_many() } else { candidate };
        if let Some(delay) = words.span_of("delay") {
            candidate.spread_by(now, Some(delay));
        }
        // Most scenarios have a broker without topic ids. Then the candidate does not ask for ids.
        if !words.says("ids") {
            candidate.handle(now, Event::TopicIdentified { asked: now, identity: TopicIdentity::Unnamed });
        }
        let report = JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now };
        let mut scenario = Self {
            candidate,
            now,
            sent: BTreeMap::new(),
            lease,
            grant: None,
            wanted: None,
            departed: None,
            report,
            lacks_guard: false,
            is_suspended: false,
            has_suspended: false,
        };
        let mut actions = actions_of(&mut scenario);
        actions.retain(|action| words.says("ids") || action != NO_IDS);
        (scenario, actions)
    }

    /// Handles a line about this machine; returns whether it is one.
    fn meet_locally(&mut self, words: &Words<'_>) -> bool {
        let now = self.now;
        match words.verb() {
            "continued" => self.is_suspended = false,
            "fenced" => return self.set_job(Some(self.alive(Some(words.why())))),
            "guard-is-missing" => self.lacks_guard = true,
            "guard-lives" => self.lacks_guard = false,
            "hand-over" => self.candidate.hand_over(now, member(words.needed("to", words.value("to")))),
            "job" => {
                self.report = JobReport {
                    state: job_state(words.word(1)),
                    pid: words.number_of("pid"),
                    attempt: words.number_of("attempt").unwrap_or(1),
                    since: now,
                };
                return self.set_job(Some(self.alive(None)));
            }
            "nothing-left" => {
                return self.set_job(Some(JobIs::Gone(JobEnd {
                    proof: self.proof(words.number_of("of")),
                    why: words.why(),
                    exit: words.number_of("exit"),
                    leaving: words.says("leaving"),
                    once: words.value("once").map(|key| KeyedRun { key: key.into(), is_window: None }),
                    fenced: None,
                    seen: seen_end(words),
                    back_off: words.span_of("back-off").unwrap_or_default(),
                })));
            }
            "spread-by" => self.candidate.spread_by(now, words.span_of("extra")),
            "stand-down" if words.why() == Why::Suspended => self.is_suspended = true,
            "stand-down" => self.candidate.stand_down(now, words.why(), words.says("leaving")),
            _ => return false,
        }
        self.set_job(None)
    }

    fn set_job(&mut self, job: Option<JobIs>) -> bool {
        let (lacks_guard, is_stopped, is_suspended) = (self.lacks_guard, false, self.is_suspended);
        self.candidate.set_local(self.now, Local { job, lacks_guard, is_stopped, is_suspended });
        true
    }

    /// The job of the last term, of which a process may be alive.
    fn alive(&self, fenced: Option<Why>) -> JobIs {
        let term = self.grant.map_or(-1, |grant| grant.term);
        JobIs::Alive { term, report: self.report, is_unhealthy: false, fenced }
    }

    /// The proof that no process of the job is left, for its term or another one. Only a supervisor can make it, from its guard's
    /// answer.
    fn proof(&self, term: Option<Offset>) -> NothingLeft {
        let grant = self.grant.unwrap_or_else(|| panic!("it has not led"));
        nothing_left(self.now, Grant { term: term.unwrap_or(grant.term), ..grant })
    }

    fn event(&self, words: &Words<'_>) -> Event {
        match words.verb() {
            "answered" => {
                let held = words.range(1);
                Event::Answered { asked: words.time_of("asked").unwrap_or(self.now), start: held.start, end: held.end }
            }
            "cut" => Event::HistoryCut,
            "delivered" => Event::Delivered { seq: words.number(1) },
            "end" => Event::ReachedEnd { next: words.number(1) },
            "group-refuses" => Event::GroupRefuses { words: Some("Inconsistent group protocol".into()) },
            "group-takes" => Event::GroupRefuses { words: None },
            "judged" => Event::TopicJudged {
                cut_is_harmless: !words.says("harmful"),
                gaps_are_markers: words.says("gaps-are-markers"),
            },
            "named" => Event::Named { id: words.word(1).into() },
            "passed" => {
                let offsets = words.range(1);
                Event::Passed { first: offsets.start, last: offsets.end - 1 }
            }
            "other" => {
                let offset = words.number(1);
                Self::hello(words)
                    .map_or(Event::Passed { first: offset, last: offset }, |hello| Written::from(hello).read_at(offset))
            }
            "process" => Written::from(process_hello(words)).read_at(words.number(1)),
            "read" => Event::Read { offset: words.number(1), record: self.record(words), written_ms: None },
            "revoked" => Event::Revoked,
            "standing" => Event::AssignmentChanged(match words.word(1) {
                "assigned" => Assignment::Own,
                "elsewhere" => Assignment::Elsewhere,
                "unknown" => Assignment::Unknown,
                other => panic!("{other} is no standing"),
            }),
            "topic" => Event::TopicIdentified {
                asked: words.time_of("asked").unwrap_or(self.now),
                identity: match words.word(1) {
                    "missing" => TopicIdentity::Missing,
                    "unnamed" => TopicIdentity::Unnamed,
                    _ => TopicIdentity::Id { high: 0, low: words.number(1) },
                },
            },
            "undecodable" => Event::Undecodable { offset: 0, error: None },
            "unused-partitions" => Event::UnusedPartitions,
            "undelivered" => Event::Undelivered { seq: words.number(1), may_be_in_log: !words.says("refused") },
            other => panic!("nothing is called {other}"),
        }
    }

    /// `hello=b`, or `hello=b@member-id-in-the-group`, and `priority=10`, `once=v1` and `version=2`; `shortened` if it was too long.
    fn hello(words: &Words<'_>) -> Option<Hello> {
        let (who, id) = words.value("hello").map(|hello| hello.split_once('@').unwrap_or((hello, "")))?;
        let group_member = Some(id.into()).filter(|_| !id.is_empty());
        let priority = words.number_of("priority").unwrap_or(0);
        let (overlap_ms, leaves) = (words.says("overlaps").then_some(1_000), words.says("leaves"));
        let once = words.value("once").map(Into::into);
        let joined = words.number_of("joined");
        let version = words.value("version").map(Into::into);
        let hello = Hello::new(member(who), (!words.says("shortened")).then(|| who.into()));
        Some(Hello { group_member, priority, overlap_ms, once, joined, leaves, version, ..hello })
    }

    /// `nonsense` (undecodable), `sent 3` (a record of the candidate itself), or a record in full.
    fn record(&self, words: &Words<'_>) -> Option<Record> {
        let by = words.value("by");
        let lease_ms = || {
            let lease = words.span_of("lease").unwrap_or(self.lease);
            u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
        };
        let offset = |key: &str| words.needed(key, words.number_of(key));
        let body = match words.word(2) {
            "nonsense" => return None,
            "sent" => {
                let seq = words.number(3);
                // A hello under the election's key is no record.
                let written = self.sent.get(&seq).unwrap_or_else(|| panic!("{seq} was not sent"));
                return written.record().cloned();
            }
            "beat" => Body::Beat {
                term: offset("term"),
                seen: offset("seen"),
                lease_ms: lease_ms(),
                job: words.value("state").map(|state| {
                    let state = job_state(state);
                    Job { state, pid: None, attempt: None, since_ms: None }
                }),
                overlap: overlap(words),
            },
            "claim" => Body::Claim { after: offset("after"), lease_ms: lease_ms(), overlap: overlap(words) },
            "end" => {
                Body::Request { what: What::End, term: None, by: by.map(Into::into), reason: None, successor: None }
            }
            "release" => Body::Release {
                term: offset("term"),
                seen: offset("seen"),
                why: words.value("why").map(Into::into),
                exit: None,
                late_ms: words.number_of("late-ms"),
                group_member: words.value("left").map(Into::into),
                once: words.value("once").map(|key| KeyedRun { key: key.into(), is_window: None }),
                successor: words.value("for").map(member),
            },
            "resign" => Body::Request {
                what: What::Resign,
                term: words.number_of("term"),
                by: by.map(Into::into),
                reason: None,
                successor: words.value("for").map(member),
            },
            other => panic!("{other} is no record"),
        };
        Some(Record { member: by.map(member), name: by.map(Into::into), seq: words.number_of("seq"), body })
    }
}

impl Subject for Scenario {
    fn now(&mut self) -> &mut Time {
        &mut self.now
    }

    fn meet(&mut self, words: &Words<'_>) {
        match words.verb() {
            "give-up" => self.candidate.give_up(self.now),
            "others" => {
                for offset in words.range(1) {
                    self.candidate.handle(self.now, Event::Passed { first: offset, last: offset });
                }
            }
            _ if self.meet_locally(words) => {}
            _ => self.candidate.handle(self.now, self.event(words)),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.candidate.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.candidate.poll_timeout()
    }

    fn actions(&mut self) -> Vec<String> {
        let wanted = self.candidate.wants();
        let mut actions = shown_change(self.now, self.wanted, wanted);
        self.grant = wanted.map(|wanted| wanted.grant).or(self.grant);
        self.wanted = wanted;
        while let Some(action) = self.candidate.poll_action() {
            if let Action::Kafka(request) = &action
                && let Some(written) = Written::of(request)
            {
                self.sent.extend(written.seq().map(|seq| (seq, written)));
            }
            let alone = action == Action::Kafka(Request::LeaveGroup) && self.candidate.is_alone(self.now);
            actions.push(format!(
                "{}{}",
                shown_action(action),
                if alone { ", in which nobody else is known" } else { "" }
            ));
        }
        let has_suspended = self.candidate.position() == Position::Suspended;
        if has_suspended && !self.has_suspended {
            actions.push("has the process suspended".to_owned());
        }
        self.has_suspended = has_suspended;
        let departed = self.candidate.departed().filter(|_| self.departed.is_none());
        actions.extend(departed.map(|departure| format!("departs: {departure:?}")));
        self.departed = self.candidate.departed();
        actions
    }
}

fn job_state(word: &str) -> JobState {
    match word {
        "restarting" => JobState::Restarting,
        "running" => JobState::Running,
        "starting" => JobState::Starting,
        "stopping" => JobState::Stopping,
        other => panic!("{other} is no state of a job"),
    }
}

/// `by=b roles=3 partitions=3 joined=4 left=0-2 leaves`.
fn process_hello(words: &Words<'_>) -> Hello {
    let by = words.needed("by", words.value("by"));
    Hello {
        roles: words.value("roles").map(Into::into),
        partitions: words.number_of("partitions"),
        joined: words.number_of("joined"),
        left: words.value("left").map(RoleSet::parse).unwrap_or_default(),
        leaves: words.says("leaves"),
        ..Hello::new(member(by), Some(by.into()))
    }
}

/// `overlap=100ms over=3 yields`.
fn overlap(words: &Words<'_>) -> Option<Overlap> {
    let within = words.span_of("overlap")?;
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    Some(Overlap { within_ms, over: words.number_of("over"), yields: words.says("yields") })
}
