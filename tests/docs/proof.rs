//! The picture of the proof in docs/concepts.md: a leader is cut off, and another candidate leads after it. Its times are
//! the program's own durations at the defaults.

use std::fmt::Write;
use std::time::Duration;

use neli_proto::listener::silence;
use neli_proto::timings::{default_fence_warning, default_heartbeat_interval, kill_margin};

use super::{keep, root};

const LEASE: Duration = Duration::from_secs(20);
/// When the first candidate claims, its last heartbeat that comes back is sent, and its network is cut.
const CLAIM: Duration = Duration::from_secs(3);
const LAST: Duration = Duration::from_secs(12);
const CUT: Duration = Duration::from_secs(13);
/// From the sending of a record to its receipt, drawn larger than it is.
const WAY: Duration = Duration::from_millis(100);
/// The width of the picture's time.
const END: Duration = Duration::from_secs(60);
/// The first term.
const TERM: usize = 57;

#[test]
fn the_picture_of_the_proof_has_the_durations_of_the_program() {
    let picture = picture();
    keep("docs/concepts.svg", &picture);
    let page = std::fs::read_to_string(root("docs/concepts.md")).unwrap();
    for time in [LAST, LAST + LEASE] {
        assert!(page.contains(&format!("at {}", shown(time))), "docs/concepts.md does not say {}", shown(time));
    }
    assert!(page.contains(&format!("{} before the kill", shown(default_fence_warning(LEASE)))));
}

/// The horizontal place of a time, in pixels.
fn x(time: Duration) -> f64 {
    110.0 + (time.as_secs_f64() * 120.0).round() / 10.0
}

/// The time in seconds.
fn shown(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 100.0).round() / 100.0)
}

fn picture() -> String {
    let interval = default_heartbeat_interval(LEASE);
    let lease_end = LAST + LEASE;
    let kill = lease_end.saturating_sub(kill_margin(LEASE));
    let warning = kill.saturating_sub(default_fence_warning(LEASE));
    let heard = LAST + WAY;
    let silent = heard + silence(LEASE);
    let claim = silent + WAY;
    let start = claim + WAY * 2;
    let beats = |from: Duration, to: Duration| {
        (1..=100).map(move |beat| from + interval * beat).take_while(move |beat| *beat <= to).collect::<Vec<_>>()
    };
    let (first, second) = (beats(CLAIM, LAST), beats(claim, END));
    // One hello of the second candidate stands among the heartbeats.
    let next_term = TERM + first.len() + 2;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"330\" viewBox=\"0 0 860 330\" role=\"img\" \
         aria-labelledby=\"title desc\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <title id=\"title\">One election over a minute</title>\n\
         <desc id=\"desc\">db1 claims the lead at {} and runs the job under term {TERM}. Its network is cut at {}, so that no heartbeat of it \
         is read after that of {}. Its job is asked to stop at {} and killed at {}; its lease ends at {}. db2 stands by, has heard nothing for \
         a lease and one hundredth at {}, claims, and runs the job under term {next_term}.</desc>\n",
        shown(CLAIM),
        shown(CUT),
        shown(LAST),
        shown(warning),
        shown(kill),
        shown(lease_end),
        shown(silent),
    );
    svg.push_str(
        "<style>svg { background: #fff } text { fill: #1a1a1a } path { stroke: #1a1a1a; fill: none } .one { fill: #2f6fb0 } \
         .two { fill: #2e7d4f } .stops { fill: #d9822b } .name { font-weight: 600 } .on { fill: #fff } .cut { stroke: #b3261e; stroke-width: 2 } \
         text.cut { fill: #b3261e; stroke: none } .by { stroke: #888; stroke-width: 2; stroke-dasharray: 3 3 } .middle { text-anchor: middle } \
         .end { text-anchor: end }\n\
         @media (prefers-color-scheme: dark) { svg { background: #0d1117 } text { fill: #e6edf3 } path { stroke: #e6edf3 } \
         text.cut { fill: #ff7b72 } .cut { stroke: #ff7b72 } .by { stroke: #888 } }</style>\n",
    );
    let mut text = |x: f64, y: u32, class: &str, text: &str| {
        writeln!(svg, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>").unwrap();
    };
    for (y, name) in [(75, "db1"), (170, "journal"), (255, "db2")] {
        text(12.0, y, "name", name);
    }
    for second in (0..=END.as_secs()).step_by(10) {
        text(x(Duration::from_secs(second)), 320, "middle", &format!("{second} s"));
    }
    text(x(CUT) + 5.0, 28, "cut", "db1 is cut off");
    text(x(warning) - 4.0, 48, "end", "asked to stop");
    text(x(lease_end), 48, "", "killed by its guard (R4)");
    let lease_text =
        format!("lease of {}, from the sending of the last heartbeat that was read back (R3)", shown(LEASE));
    text(x(LAST + LEASE / 2), 125, "middle", &lease_text);
    text(x(CLAIM), 192, "middle", &format!("claim, offset {TERM}"));
    text(x(claim), 192, "middle", &format!("claim, offset {next_term} (L1)"));
    text(x(CLAIM + LEASE / 4), 148, "middle", "heartbeats");
    text(x(claim + LEASE / 2), 148, "middle", "heartbeats");
    text(x(Duration::from_secs(1)), 242, "", "stands by");
    let silence_text = format!("silence of {}: a lease and a hundredth (R2)", shown(silence(LEASE)));
    text(x(LAST + LEASE / 2), 287, "middle", &silence_text);
    let mut bar = |from: f64, to: f64, y: u32, height: u32, class: &str| {
        let width = ((to - from) * 10.0).round() / 10.0;
        writeln!(svg, "<rect x=\"{from}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"/>")
            .unwrap();
    };
    bar(x(CLAIM), x(kill), 56, 28, "one");
    bar(x(warning), x(kill), 56, 28, "stops");
    bar(x(start), x(END), 236, 28, "two");
    for (claim, beats, class) in [(CLAIM, &first, "one"), (claim, &second, "two")] {
        bar(x(claim) - 3.0, x(claim) + 3.0, 151, 28, class);
        for beat in beats {
            bar(x(*beat) - 3.0, x(*beat) + 3.0, 155, 20, class);
        }
    }
    let mut line = |class: &str, path: String| writeln!(svg, "<path d=\"{path}\" class=\"{class}\"/>").unwrap();
    line("", format!("M{} 165H{}M{} 300H{}", x(Duration::ZERO), x(END), x(Duration::ZERO), x(END)));
    for second in (0..=END.as_secs()).step_by(10) {
        line("", format!("M{} 300v5", x(Duration::from_secs(second))));
    }
    line("by", format!("M{} 70H{}", x(Duration::ZERO), x(CLAIM)));
    line("by", format!("M{} 250H{}", x(Duration::ZERO), x(claim)));
    line("cut", format!("M{} 30V96", x(CUT)));
    line("", format!("M{0} 108H{1}M{0} 103v10M{1} 103v10", x(LAST), x(lease_end)));
    line("", format!("M{0} 270H{1}M{0} 265v10M{1} 265v10", x(heard), x(silent)));
    let mut inside = |at: Duration, y: u32, text: &str| {
        writeln!(svg, "<text x=\"{}\" y=\"{y}\" class=\"on\">{text}</text>", x(at)).unwrap();
    };
    inside(CLAIM + LEASE / 2 + LEASE / 20, 75, &format!("job of db1, term {TERM}"));
    inside(start + LEASE / 20, 255, &format!("job of db2, term {next_term}"));
    svg + "</svg>\n"
}
