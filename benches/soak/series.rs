//! The samples of a process, and their output.

use harness::process::Process;
use harness::trend::Trend;
use serde_json::json;

/// A sampled quantity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    Descriptors,
    Threads,
    Resident,
    Proportional,
    Private,
}

impl Measure {
    /// All quantities, in the order of the table.
    pub(crate) const ALL: [Self; 5] =
        [Self::Descriptors, Self::Threads, Self::Resident, Self::Proportional, Self::Private];

    fn name(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Threads => "threads",
            Self::Resident => "resident, MB",
            Self::Proportional => "proportional, MB",
            Self::Private => "private, MB",
        }
    }

    /// Its present value.
    pub(crate) fn of(self, process: Process) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let count = |count: usize| count as f64;
        let memory = |fields: &[&str]| process.megabytes("smaps_rollup", fields).expect("it stays for the whole time");
        match self {
            Self::Descriptors => count(process.descriptors().len()),
            Self::Threads => count(process.threads().expect("it stays for the whole time")),
            Self::Resident => memory(&["Rss:"]),
            Self::Proportional => memory(&["Pss:"]),
            Self::Private => memory(&["Private_Clean:", "Private_Dirty:"]),
        }
    }

    /// The allowed rise of the level from the end of the first quarter to the end, and how many jumps are ignored. Both are 0 for
    /// quantities that are counted. The memory may rise, because an allocator keeps growing for a while; and if the machine stalls for
    /// seconds, a lease is lost and a second reader reads the journal again.
    fn allowed(self) -> (f64, usize) {
        match self {
            Self::Descriptors | Self::Threads => (0.5, 0),
            Self::Resident | Self::Proportional | Self::Private => (0.1, 2),
        }
    }
}

/// One quantity of one process over the whole time.
pub(crate) struct Series {
    elector: &'static str,
    resident: usize,
    process: &'static str,
    measure: Measure,
    samples: Vec<f64>,
}

impl Series {
    pub(crate) fn new(elector: &'static str, index: usize, process: &'static str, measure: Measure) -> Self {
        Self { elector, resident: index + 1, process, measure, samples: Vec::new() }
    }

    pub(crate) fn take(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    pub(crate) fn trend(&self) -> Trend {
        let (rise, jumps) = self.measure.allowed();
        Trend::of(&self.samples, rise, jumps)
    }

    /// A row of the table.
    pub(crate) fn line(&self) -> String {
        let Trend { first, last, rise, order, grows } = self.trend();
        let verdict = if grows { "GROWS" } else { "" };
        format!(
            "| {:<5} | {} | {:<10} | {:<16} | {first:>8.2} | {last:>8.2} | {rise:>7.3} | {order:>5.1} | {verdict:<5} |",
            self.elector,
            self.resident,
            self.process,
            self.measure.name()
        )
    }

    /// One line of JSON with every sample.
    pub(crate) fn json(&self) -> String {
        let Trend { first, last, rise, order, grows } = self.trend();
        json!({
            "elector": self.elector, "resident": self.resident, "process": self.process, "measure": self.measure.name(),
            "first": first, "last": last, "rise": rise, "order": order, "grows": grows, "samples": self.samples,
        })
        .to_string()
    }
}

/// The heading of the rows: medians of the first and the last quarter; how far the level rose from the end of the first quarter to the
/// end, and the significance of its order.
pub(crate) fn head() -> String {
    format!(
        "| {:<5} |   | {:<10} | {:<16} | {:>8} | {:>8} | {:>7} | {:>5} | {:<5} |\n|---|---|---|---|--:|--:|--:|--:|---|\n",
        "elect", "process", "", "first", "last", "rise", "order", ""
    )
}
