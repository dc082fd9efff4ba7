//! The cost of a time span: the broker's processor time and bytes, and the candidates' processor time.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::wait;

/// The cost of a time span.
pub(crate) struct Cost {
    /// The broker's processor time, in percent of one core.
    broker: f64,
    /// Kilobytes a second that the broker sent and received.
    bytes: [f64; 2],
    /// The mean processor time of each group's processes, in percent of one core.
    groups: Vec<f64>,
}

/// Observes the broker and groups of processes for this many seconds.
pub(crate) fn cost(broker: &Broker, groups: &[&[Process]], seconds: u64) -> Cost {
    let used = |processes: &[Process]| -> Duration {
        processes.iter().map(|process| process.processor_time().expect("the process runs")).sum()
    };
    let all = || (used(&[broker.process()]), groups.iter().map(|group| used(group)).collect::<Vec<_>>(), wait::now());
    let bytes_before = bytes(broker);
    let (broker_before, groups_before, began) = all();
    wait::pause(Duration::from_secs(seconds));
    let (broker_after, groups_after, ended) = all();
    let bytes_after = bytes(broker);

    let elapsed = number(ended - began) / 1e9;
    // A thread that ends meanwhile is no longer counted, so the difference may be negative.
    let busy = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / elapsed * 100.0;
    let grown = |which: usize| {
        let sum = |(socket, after): (&String, &[u64; 2])| {
            after[which] - bytes_before.get(socket).map_or(0, |before| before[which].min(after[which]))
        };
        number(bytes_after.iter().map(sum).sum()) / 1e3 / elapsed
    };
    let groups = groups.iter().zip(groups_before.into_iter().zip(groups_after));
    Cost {
        broker: busy(broker_before, broker_after),
        bytes: [grown(0), grown(1)],
        groups: groups.map(|(group, (before, after))| busy(before, after) / number(group.len() as u64)).collect(),
    }
}

impl Cost {
    /// The rows of the cost; `names` are those of the groups.
    pub(crate) fn rows(&self, when: &str, names: &[&str]) -> Vec<Row> {
        let row = |what: &str, unit: &'static str, value: f64| Row::new(format!("{when}: {what}"), unit, vec![value]);
        let mut rows = vec![
            row("the broker's processor, of one core", "%", self.broker),
            row("from the broker", "kB/s", self.bytes[0]),
            row("to the broker", "kB/s", self.bytes[1]),
        ];
        for (name, busy) in names.iter().zip(&self.groups) {
            rows.push(row(&format!("processor of {name}, of one core"), "%", *busy));
        }
        rows
    }
}

/// The bytes that the broker has sent and received over each of its connections.
fn bytes(broker: &Broker) -> HashMap<String, [u64; 2]> {
    let address = broker.address();
    let (_, port) = address.rsplit_once(':').expect("HOST:PORT");
    let mut ss = Command::new("ss");
    ss.args(["-tinHO", "state", "established", &format!("( sport = :{port} )")]);
    let answer = ss.output().expect("ss is part of iproute2: apt-get install iproute2");
    let text = String::from_utf8(answer.stdout).expect("ss writes text");
    let connection = |line: &str| {
        let field = |name: &str| {
            let value = line.split_whitespace().find_map(|word| word.strip_prefix(name));
            value.map_or(0, |value| value.parse().expect("a count"))
        };
        let peer = line.split_whitespace().nth(3).expect("its other end").to_owned();
        (peer, [field("bytes_sent:"), field("bytes_received:")])
    };
    text.lines().map(connection).collect()
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "less than 2^53")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
