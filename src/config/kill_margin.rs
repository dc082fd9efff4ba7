//! The kill margin, if the guard has no real-time scheduling: how long before the lease's end the guard kills the job.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::config::Config;
use crate::text::shown_duration;

/// The shortest kill margin of a guard without real-time scheduling, which has to wait for a processor (measured by `benches/lateness.rs`).
const SHORTEST_ORDINARY_KILL_MARGIN: Duration = Duration::from_millis(300);
/// The rights with which the guard gets a processor at once.
const REAL_TIME: &str = "real-time scheduling for neli-run (ulimit -r 2, LimitRTPRIO=2, or CAP_SYS_NICE)";
/// With a CPU quota the margin is also at least this many of its periods.
const PERIODS: u32 = 3;

impl Config {
    /// Widens the kill margin for a guard without real-time scheduling, and warns about the consequence. Also warns if the lease is too
    /// short for the desired margin. `quota` is the quota of processor time for guard and job, if there is one: its file and its period.
    ///
    /// # Errors
    ///
    /// There is a quota, and the lease is too short for the margin that the quota requires.
    pub fn widen_kill_margin(&mut self, quota: Option<(&Path, Duration)>) -> Result<()> {
        let period = quota.map_or(Duration::ZERO, |(_, period)| period);
        let needed = (PERIODS * period).max(SHORTEST_ORDINARY_KILL_MARGIN);
        let timings = self.timings.clone().with_kill_margin_of(needed);
        let margin = timings.kill_margin();
        if let Some((file, _)) = quota {
            let better = format!("better: {REAL_TIME}, or no quota");
            let why =
                format!("a CPU quota ({}) holds up the guard, which may not schedule in real time", file.display());
            if margin < needed {
                bail!(
                    "{}: too short: {why}, so that it kills {} before the lease ends, and heartbeat interval ({}) \
                     and fence warning ({}) also take their time; {better}, or a longer lease",
                    self.lease_shown,
                    shown_duration(needed),
                    shown_duration(timings.heartbeat_interval()),
                    shown_duration(timings.fence_warning())
                );
            }
            self.warnings
                .push(format!("{why}: it kills the job {} before the lease ends; {better}", shown_duration(margin)));
        } else if margin < needed {
            self.warnings.push(format!(
                "{}: short for a guard without real-time scheduling: it kills the job {} before the lease ends, and \
                 not {}, because heartbeat interval ({}) and fence warning ({}) also take their time; on a busy \
                 machine the job may outlive its lease; better: \
                 {REAL_TIME}, or a longer lease",
                self.lease_shown,
                shown_duration(margin),
                shown_duration(needed),
                shown_duration(timings.heartbeat_interval()),
                shown_duration(timings.fence_warning())
            ));
        }
        self.timings = timings;
        Ok(())
    }
}
