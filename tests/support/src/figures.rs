//! The results of a bench, printed as a table and as JSON.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fmt::Write as _;

use serde_json::json;

/// One measured quantity with its samples.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured.
    what: String,
    /// The elector.
    elector: &'static str,
    /// The unit of the samples.
    unit: &'static str,
    /// In ascending order.
    samples: Vec<f64>,
}

impl Row {
    /// A row from at least one sample, in any order.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: &'static str, mut samples: Vec<f64>) -> Self {
        assert!(!samples.is_empty(), "a figure has samples");
        samples.sort_by(f64::total_cmp);
        Self { what: what.into(), elector: "", unit, samples }
    }

    /// A row in milliseconds from pairs of nanoseconds.
    #[must_use]
    pub fn between(what: impl Into<String>, pairs: impl IntoIterator<Item = (u64, u64)>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a difference of less than an hour")]
        let ms = |(from, to): (u64, u64)| (i128::from(to) - i128::from(from)) as f64 / 1e6;
        Self::new(what, "ms", pairs.into_iter().map(ms).collect())
    }

    fn median(&self) -> f64 {
        let middle = self.samples.len() / 2;
        if self.samples.len() % 2 == 1 {
            self.samples[middle]
        } else {
            f64::midpoint(self.samples[middle - 1], self.samples[middle])
        }
    }

    fn best(&self) -> f64 {
        self.samples[0]
    }

    fn worst(&self) -> f64 {
        self.samples[self.samples.len() - 1]
    }

    /// One line of JSON with every sample.
    fn json(&self) -> String {
        let (best, median, worst) = (self.best(), self.median(), self.worst());
        json!({
            "what": self.what, "elector": self.elector, "unit": self.unit, "n": self.samples.len(),
            "best": best, "median": median, "worst": worst, "samples": self.samples,
        })
        .to_string()
    }
}

/// Output of a bench: each row as JSON on stdout when it is measured, or all rows as a table at the end.
#[derive(Debug)]
pub struct Figures {
    json: bool,
    rows: Vec<Row>,
}

impl Figures {
    /// An empty report.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self { json, rows: Vec::new() }
    }

    /// Adds rows that were measured with this elector.
    pub fn tell(&mut self, elector: &'static str, measured: Vec<Row>) {
        for mut row in measured {
            row.elector = elector;
            if self.json {
                println!("{}", row.json());
            }
            self.rows.push(row);
        }
    }

    /// Prints the table, if it was requested.
    pub fn finish(self) {
        if !self.json {
            print!("{}", table(&self.rows));
        }
    }
}

/// The rows as a table in Markdown.
fn table(rows: &[Row]) -> String {
    let mut table = format!(
        "| {:<58} | {:<5} | {:>3} | {:>9} | {:>9} | {:>9} |      |\n",
        "", "elect", "n", "best", "median", "worst"
    );
    table.push_str("|---|---|--:|--:|--:|--:|---|\n");
    for row in rows {
        let (what, elector, n, unit) = (&row.what, row.elector, row.samples.len(), row.unit);
        let (best, median, worst) = (row.best(), row.median(), row.worst());
        let _ = writeln!(
            table,
            "| {what:<58} | {elector:<5} | {n:>3} | {best:>9.2} | {median:>9.2} | {worst:>9.2} | {unit:<4} |"
        );
    }
    table
}
