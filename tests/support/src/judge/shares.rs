use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::{JobRun, nanos};

/// The time within which shares are fair after the last change (docs/protocol.md, Many roles in one process), if no candidate is barred.
pub const FAIR_WITHIN: Duration = Duration::from_mins(1);

/// Shares that were fair for this time count as stable.
const STAYS_FAIR: Duration = Duration::from_secs(2);

/// A candidate that did not take a role gets none from the one that handed it over for this time, doubled at each repetition.
const BARRED: Duration = Duration::from_mins(1);

/// The result of the check for fair shares.
#[derive(Clone, Debug)]
pub struct Shares {
    /// The number of roles that each slot leads.
    pub held: Vec<usize>,
    /// The time since all roles had leaders again.
    pub after: Duration,
    /// The allowed time.
    pub bound: Duration,
    /// The number of roles that were handed over meanwhile.
    pub moves: usize,
}

/// What is seen of the shares at one moment.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The number of roles that each slot leads.
    pub held: Vec<usize>,
    /// The number of roles.
    pub roles: usize,
    /// When a lead last ended for another reason than fair shares; 0 if none has.
    pub lost_at: u64,
    /// The number of roles that were handed over so far.
    pub moves: usize,
    /// The factor by which things may take longer on this machine.
    pub tolerance: f64,
}

/// What follows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// There is time left.
    NotYet,
    /// The shares are fair, and stay so.
    Fair,
    /// The time is over: whether more is allowed must be looked up in the journals, once ([`Fairness::allow`]).
    Late,
    /// The violation.
    Unfair(String),
}

/// Watches whether the roles come to be shared fairly.
#[derive(Debug)]
pub struct Fairness {
    from: u64,
    bound: Duration,
    has_asked: bool,
    fair_since: Option<u64>,
    /// The result so far.
    pub shares: Option<Shares>,
}

impl Fairness {
    /// From `from` on nothing is broken.
    #[must_use]
    pub fn new(from: u64) -> Self {
        Self { from, bound: FAIR_WITHIN, has_asked: false, fair_since: None, shares: None }
    }

    /// Allows so much more time, and returns all that is allowed.
    pub fn allow(&mut self, more: Duration) -> Duration {
        self.bound += more;
        self.bound
    }

    /// Judges the present shares.
    pub fn look(&mut self, now: u64, seen: Seen) -> Verdict {
        let Seen { held, roles, lost_at, moves, tolerance } = seen;
        let (least, most) = (roles / held.len(), roles.div_ceil(held.len()));
        let is_led = held.iter().sum::<usize>() == roles;
        if is_led && held.iter().all(|held| (least..=most).contains(held)) {
            let since = *self.fair_since.get_or_insert(now);
            let after = Duration::from_nanos(since - self.from);
            self.shares = Some(Shares { held, after, bound: self.bound, moves });
            return if since + nanos(STAYS_FAIR) <= now { Verdict::Fair } else { Verdict::NotYet };
        }
        self.fair_since = None;
        // A lost lead restarts the time, because a busy machine loses some leads. The number of restarts is limited.
        let begins = lost_at.max(self.from).min(self.from + nanos(self.bound.mul_f64(tolerance - 1.0)));
        if now <= begins + nanos(self.bound) {
            return Verdict::NotYet;
        }
        if !self.has_asked {
            self.has_asked = true;
            return Verdict::Late;
        }
        let violation = format!("shares are {held:?}, and not fair within {:?}", self.bound);
        self.shares = Some(Shares { held, after: Duration::from_nanos(now - self.from), bound: self.bound, moves });
        Verdict::Unfair(violation)
    }
}

/// The journal of a role with the law's verdicts, as `neli-run watch --json` shows it, and the runs of its job.
#[derive(Clone, Debug)]
pub struct RoleHistory<'a> {
    /// The records.
    pub lines: Vec<Value>,
    /// The runs.
    pub job_runs: &'a [JobRun],
}

/// How long after `from` a candidate may get no role, according to the journals of the candidates that are present, which have these names.
#[must_use]
pub fn excuse(from: u64, roles: &[RoleHistory<'_>], names: &[String]) -> Duration {
    let mut bars: HashMap<(String, String), (u32, u64)> = HashMap::new();
    for RoleHistory { lines, job_runs } in roles {
        let mut release = Value::Null;
        for line in lines.iter().filter(|line| line["verdict"] == "effective") {
            let record = &line["record"];
            if record["kind"] == "release" {
                release = record.clone();
            }
            if record["kind"] != "claim" {
                continue;
            }
            let Value::Object(mut release) = release.take() else { continue };
            let mut taken = |field: &str| match release.remove(field) {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            let (why, to, giver) = (taken("why"), taken("successor"), taken("name"));
            if why != "spread" {
                continue;
            }
            let led = job_runs.iter().rev().find(|job_run| Some(job_run.term) == line["offset"].as_u64());
            let at = led.map_or(0, |job_run| job_run.span.0);
            let is_taken = record["member"] == *to;
            let bar = bars.entry((giver, to)).or_default();
            *bar = if is_taken { (0, 0) } else { (bar.0 + 1, at + nanos(twice(BARRED, bar.0))) };
        }
    }
    let barred = bars.iter().filter(|((giver, _), _)| names.contains(giver)).map(|(_, (_, until))| *until);
    Duration::from_nanos(barred.max().unwrap_or_default().max(from) - from)
}

/// How many releases for a fair share name a successor that wrote no claim and no beat after that, in any role: it was dead by then. The lines
/// are those of all roles' journals, as above.
#[must_use]
pub fn handed_to_the_dead<'a>(lines: impl Iterator<Item = &'a Value> + Clone) -> usize {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut last: HashMap<String, String> = HashMap::new();
    for line in lines.clone().filter(|line| ["beat", "claim"].iter().any(|kind| line["record"]["kind"] == *kind)) {
        let newest = last.entry(text(&line["record"]["member"])).or_default();
        *newest = text(&line["ts"]).max(std::mem::take(newest));
    }
    let named = lines.filter(|line| line["verdict"] == "effective" && line["record"]["why"] == "spread");
    // A candidate of an earlier version may name none.
    let named = named.filter(|line| line["record"]["successor"].is_string());
    named.filter(|line| last.get(&text(&line["record"]["successor"])).is_none_or(|at| *at < text(&line["ts"]))).count()
}

/// A duration doubled this many times.
fn twice(span: Duration, times: u32) -> Duration {
    span.saturating_mul(1 << times.min(6))
}

#[cfg(test)]
mod tests;
