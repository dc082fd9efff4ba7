use std::collections::BTreeMap;

use serde_json::Value;

use super::JobRun;

/// Each claim's offset, and whether it took effect under the law, by the lines of `neli-run watch --json`.
#[must_use]
pub fn of_lines(lines: &[Value]) -> BTreeMap<u64, bool> {
    let claims = lines.iter().filter(|line| line["record"]["kind"] == "claim");
    let judged = claims.filter_map(|line| {
        let offset = line["offset"].as_u64().expect("an offset");
        match line["verdict"].as_str() {
            Some("effective") => Some((offset, true)),
            Some("void" | "nonsense") => Some((offset, false)),
            _ => None,
        }
    });
    judged.collect()
}

/// The violations that a job ran under a claim without effect. Of a topic that was created again only the last journal is known.
#[must_use]
pub fn without_effect(job_runs: &[JobRun], claims: &BTreeMap<u64, bool>) -> Vec<String> {
    let last_topic = job_runs.iter().map(|job_run| job_run.generation).max().unwrap_or_default();
    let of_it = job_runs.iter().filter(|job_run| job_run.generation == last_topic);
    let void = of_it.filter(|job_run| claims.get(&job_run.term) == Some(&false));
    void.map(|job_run| format!("a job ran in term {} of a claim that the law calls void", job_run.term)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn run(term: u64, generation: u32) -> JobRun {
        JobRun { generation, ..JobRun::of_file(Path::new(&format!("0.0.{term}"))) }
    }

    #[test]
    fn a_job_under_a_claim_without_effect_is_reported() {
        let line = |offset: u64, kind: &str, verdict: &str| json!({"offset": offset, "record": {"kind": kind}, "verdict": verdict});
        let claims = of_lines(&[
            line(3, "claim", "effective"),
            line(4, "claim", "void"),
            line(5, "claim", "nonsense"),
            line(6, "claim", "undecided"),
            line(7, "beat", "void"),
        ]);
        let terms = |runs: &[JobRun]| without_effect(runs, &claims);
        let what = |term: u64| format!("a job ran in term {term} of a claim that the law calls void");
        assert_eq!(terms(&[run(3, 0), run(6, 0), run(7, 0)]), [""; 0]);
        assert_eq!(terms(&[run(3, 0), run(4, 0), run(5, 0)]), [what(4), what(5)]);
        assert_eq!(terms(&[run(4, 0), run(3, 1)]), [""; 0], "the journal is that of another topic");
    }
}
