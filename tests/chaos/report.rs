//! The result of a run, and the files that are written after a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use harness::judge::shares::{FAIR_WITHIN, Shares, handed_to_the_dead};
use harness::judge::{Counts, Overlap, claims, leaderless};
use harness::wait;
use serde_json::Value;

use crate::fault::Fault;
use crate::run::{Parameters, Run};

/// The number of violations that are shown. If a rule is broken, each run of a key may be one.
const MOST_SHOWN: usize = 20;

/// The result of a run.
pub(crate) struct Outcome {
    /// Lines for the terminal.
    pub(crate) text: String,
    /// The violations; empty if there are none.
    pub(crate) violations: Vec<String>,
    /// The time from the first lead to the end, or to the first violation.
    pub(crate) took: Duration,
    /// The directory of the timeline and the journal, if there are any.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) counts: Counts,
    /// How often the leader changed to another candidate.
    pub(crate) changes: usize,
    /// The longest time without a leader while nothing was broken.
    pub(crate) leaderless: Duration,
    pub(crate) strikes: BTreeMap<Fault, u32>,
    pub(crate) latest: u64,
}

/// The verdicts in the journal.
#[derive(Default)]
struct Verdicts {
    lines: String,
    /// Each claim's offset, and whether it took effect under the law.
    claims: BTreeMap<u64, bool>,
    effective: usize,
}

/// The command line that repeats a run.
pub(crate) fn command_line(parameters: &Parameters) -> String {
    let Parameters {
        seed,
        duration,
        elections,
        candidates,
        brokers,
        elector,
        roles,
        overlap,
        keys,
        windows,
        only,
        special_run,
        changes,
        mutant,
        program,
        ..
    } = parameters;
    let mut text = String::from("cargo test ");
    let _ = write!(
        text,
        "--test chaos -- --seed {seed} --duration {} --candidates {candidates} --brokers {brokers} --elect {}",
        humantime::format_duration(*duration),
        elector.name()
    );
    if *elections > 1 {
        let _ = write!(text, " --elections {elections}");
    }
    if *roles > 1 {
        let _ = write!(text, " --roles {roles}");
    }
    if let Some(overlap) = overlap {
        let _ = write!(text, " --overlap {}", humantime::format_duration(*overlap));
    }
    if *keys {
        text += " --keys";
    }
    if let Some(windows) = windows {
        let _ = write!(text, " {}", windows.shown());
    }
    if *changes {
        text += " --changes";
    }
    if let Some(special_run) = special_run {
        let _ = write!(text, " --run {}", special_run.to_possible_value().expect("each has a name").get_name());
    }
    for fault in
        only.iter().filter(|fault| !special_run.is_some_and(|special_run| special_run.faults().contains(*fault)))
    {
        let _ = write!(text, " --only {}", fault.to_possible_value().expect("each has a name").get_name());
    }
    if let Some(mutant) = mutant {
        let _ = write!(text, " --program {} --mutant {mutant}", program.display());
    }
    text
}

/// Judges a finished run.
pub(crate) fn judge(mut run: Run<'_>) -> Outcome {
    let now = wait::now();
    let took = Duration::from_nanos(now - run.began);
    let verdicts: Vec<Verdicts> = (0..run.histories.len()).map(|role| verdicts(&run, role)).collect();
    for (from, until) in run.stranger.outages() {
        run.axis.disturb(from, until);
    }
    for (from, until) in run.environment.disturbed() {
        run.axis.disturb(from, until);
    }
    let mut violations = std::mem::take(&mut run.violations);
    let broke_early = !violations.is_empty() || run.environment.is_given_up();
    // Another election failed: what this one shows is not complete, and no reason to call it broken.
    let was_given_up = violations.is_empty() && run.environment.is_given_up();
    violations.extend(verdicts.iter().enumerate().flat_map(|(role, verdicts)| without_effect(&run, role, verdicts)));

    if !was_given_up {
        violations.extend(run.judge_keys());
    }
    let windows = run.parameters.windows.filter(|_| !was_given_up).map(|_| run.judge_windows()).unwrap_or_default();
    violations.extend(windows.violations);
    let load = load();
    let longest_lease = run.parameters.longest_lease();
    let tolerance = tolerance(load);
    let bound = leaderless::bound(longest_lease);
    let mut leaderless = Duration::ZERO;
    for (role, history) in run.histories.iter().enumerate() {
        let longest = leaderless::longest(&history.job_runs, &run.axis, run.began);
        // Between two keys there is no leader.
        if !broke_early && !run.parameters.runs_once() {
            let violation = longest.violation(bound, tolerance, run.began);
            violations.extend(violation.map(|violation| run.called(role) + &violation));
        }
        leaderless = leaderless.max(longest.lasted);
    }

    let mut text = summary(&run, &verdicts, &violations, (leaderless, bound, load, tolerance), took);
    if !windows.shown.is_empty() {
        let _ = writeln!(text, "  {}", windows.shown);
    }
    // Fair shares that came late are logged even if the load explains the delay.
    let is_slow = run.shares.as_ref().is_some_and(|shares| shares.after > FAIR_WITHIN);
    let is_remarkable = !violations.is_empty() || leaderless > bound || is_slow;
    let directory = is_remarkable.then(|| write_down(&mut run, &verdicts, &text));
    Outcome {
        text,
        violations,
        took,
        directory,
        counts: run.counts(),
        changes: run.changes(),
        leaderless,
        strikes: run.strikes.clone(),
        latest: run.latest().0.by,
    }
}

fn summary(
    run: &Run<'_>,
    verdicts: &[Verdicts],
    violations: &[String],
    (leaderless, bound, load, tolerance): (Duration, Duration, f64, f64),
    took: Duration,
) -> String {
    let parameters = run.parameters;
    let of_all = run.histories.iter().enumerate();
    let job_runs = of_all.flat_map(|(role, history)| history.job_runs.iter().map(move |job_run| (role, job_run)));
    let terms: BTreeSet<_> = job_runs.map(|(role, job_run)| (role, job_run.generation, job_run.term)).collect();
    let all_overlaps = || run.histories.iter().flat_map(|history| history.overlaps.values());
    let excused = all_overlaps().filter_map(|overlap| overlap.excuse);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for excuse in excused {
        *counts.entry(excuse).or_default() += 1;
    }
    let overlaps = all_overlaps().filter(|overlap| overlap.excuse.is_none()).count();
    let effective: usize = verdicts.iter().map(|verdicts| verdicts.effective).sum();
    let claims: usize = verdicts.iter().map(|verdicts| verdicts.claims.len()).sum();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "chaos: seed {}, election {} of {}, {} candidates, {} roles, {} brokers, elector {}{}: {}",
        parameters.seed,
        parameters.election + 1,
        parameters.elections,
        parameters.candidates,
        parameters.roles,
        parameters.brokers,
        parameters.elector.name(),
        parameters.mutant.as_ref().map_or(String::new(), |mutant| format!(", mutant {mutant}")),
        if violations.is_empty() { "all is well" } else { "VIOLATED" }
    );
    for violation in violations.iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "  !! {violation}");
    }
    if violations.len() > MOST_SHOWN {
        let _ = writeln!(text, "  !! and {} more", violations.len() - MOST_SHOWN);
    }
    let _ = writeln!(
        text,
        "  leaderships {} in {} s, {} of them of another candidate than before ({} effective claims in the journal, {} void)",
        terms.len(),
        took.as_secs(),
        run.changes(),
        effective,
        claims - effective
    );
    let Counts { orphans, shrunk, .. } = run.counts();
    let _ = writeln!(text, "  overlaps {overlaps}, orphans {orphans}, terms that did not grow {shrunk}");
    let _ = writeln!(text, "  together without being a violation: {counts:?}");
    let (after_deadline, after_term) = run.latest();
    let _ = writeln!(text, "  latest beat after its deadline {after_deadline}");
    let _ = writeln!(text, "  latest beat after its deadline or its term's end {after_term}");
    let _ = writeln!(
        text,
        "  longest without a leader outside of faults {leaderless:?} (bound {bound:?}, times {tolerance:.1} for the load)"
    );
    if let Some(keys) = &run.keys {
        let _ = writeln!(text, "  {}", keys.shown);
    }
    if let Some(Shares { held, after, bound, moves }) = &run.shares {
        let _ = writeln!(
            text,
            "  shares at the end {held:?}, {after:?} after the last role was led (bound {bound:?}), {moves} roles handed over by then"
        );
        let lines: Vec<Value> =
            verdicts.iter().flat_map(|verdicts| verdicts.lines.lines()).filter_map(as_json).collect();
        let dead = handed_to_the_dead(lines.iter());
        let _ = writeln!(text, "  roles handed to candidates that wrote nothing after that: {dead}");
    }
    let _ =
        writeln!(text, "  load {load:.1}, longest pause of the chaos itself {:?}", Duration::from_nanos(run.overslept));
    let faults: Vec<String> = run.strikes.iter().map(|(fault, count)| format!("{fault:?} {count}")).collect();
    let _ = writeln!(text, "  faults {}: {}", run.strikes.values().sum::<u32>(), faults.join(", "));
    let _ = writeln!(text, "  again: {}", command_line(parameters));
    text
}

fn as_json(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

/// Every record of a role's election with the law's verdict, by `neli-run watch` without a mutant; and the error of that command.
pub(crate) fn journal(run: &Run<'_>, role: usize) -> (Vec<Value>, String) {
    let kafka = run.environment.cluster().kafka();
    let mut watch = Command::new(&run.parameters.program);
    watch.args([
        "watch",
        "--json",
        "--from",
        "start",
        "--until-end",
        "--role",
        &role.to_string(),
        "--group",
        &run.group,
        "--brokers",
        kafka.address(),
    ]);
    let answer = watch.output().expect("the program is there");
    let lines = String::from_utf8_lossy(&answer.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    // A silence is reported by a line without a record.
    let lines = lines.filter(|line: &Value| line["event"] == "record").collect();
    let error = String::from_utf8_lossy(&answer.stderr).into_owned();
    (lines, if answer.status.success() { String::new() } else { error })
}

/// Whether a job has run in the term of a claim without effect, by the journals as they are now.
pub(crate) fn shows_void_claim(run: &Run<'_>) -> bool {
    (0..run.histories.len()).any(|role| !without_effect(run, role, &verdicts(run, role)).is_empty())
}

/// The violations that a job of this role ran in the term of a claim without effect.
fn without_effect(run: &Run<'_>, role: usize, verdicts: &Verdicts) -> Vec<String> {
    let found = claims::without_effect(&run.histories[role].job_runs, &verdicts.claims);
    found.into_iter().map(|violation| run.called(role) + &violation).collect()
}

/// The verdicts on the claims.
fn verdicts(run: &Run<'_>, role: usize) -> Verdicts {
    let (lines, error) = journal(run, role);
    let claims = claims::of_lines(&lines);
    let effective = claims.values().filter(|is_effective| **is_effective).count();
    let mut verdicts = Verdicts { claims, effective, ..Verdicts::default() };
    for line in lines {
        let _ = writeln!(verdicts.lines, "{line}");
    }
    if !error.is_empty() {
        let _ = writeln!(verdicts.lines, "watch: {error}");
    }
    verdicts
}

/// Writes the timeline and the journals, and returns their directory.
fn write_down(run: &mut Run<'_>, verdicts: &[Verdicts], text: &str) -> PathBuf {
    for slot in &mut run.slots {
        slot.note(&mut run.axis);
    }
    for role in 0..run.histories.len() {
        let (called, history) = (run.called(role), &run.histories[role]);
        for job_run in &history.job_runs {
            let who = format!("job c{}", job_run.slot);
            run.axis.note_at(
                job_run.span.0,
                &who,
                format!("{called}term {}: first word of {}", job_run.term, job_run.main),
            );
            run.axis.note_at(job_run.span.1, &who, format!("{called}term {}: last word", job_run.term));
        }
        for Overlap { terms, slots, span, excuse } in history.overlaps.values() {
            let what = format!("{called}terms {terms:?} of slot {slots:?} together, excuse {excuse:?}");
            run.axis.note_at(span.0, "OVERLAP", what.clone());
            run.axis.note_at(span.1, "OVERLAP", format!("{what}: end"));
        }
    }
    for (from, until) in run.stranger.outages() {
        run.axis.note_at(from, "kafka", "takes nothing");
        run.axis.note_at(until, "kafka", "takes records again");
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos").join(&run.group);
    fs::create_dir_all(&directory).expect("target/ can be written");
    let origin = run.began;
    fs::write(directory.join("report.txt"), text).expect("target/ can be written");
    fs::write(directory.join("axis.txt"), run.axis.print(origin)).expect("target/ can be written");
    for (role, verdicts) in verdicts.iter().enumerate() {
        let name = if role == 0 { "journal.jsonl".to_owned() } else { format!("journal.{role}.jsonl") };
        fs::write(directory.join(name), &verdicts.lines).expect("target/ can be written");
    }
    directory
}

/// The machine's load average over a minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").expect("/proc is mounted");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// The factor by which all steps may take longer on a machine with this load.
pub(crate) fn tolerance(load: f64) -> f64 {
    let cores = std::thread::available_parallelism();
    (load / cores.map_or(1.0, |cores| f64::from(u32::try_from(cores.get()).unwrap_or(1)))).max(1.0)
}
