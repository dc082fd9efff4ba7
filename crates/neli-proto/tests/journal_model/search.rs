//! Breadth-first search: it visits every state once, by a shortest trace.

use std::collections::HashSet;
use std::fmt::Write;
use std::rc::Rc;

use crate::fingerprint;
use crate::flaws::{WorldFlaw, break_only};
use crate::setup::Setup;
use crate::step::Step;
use crate::world::{Breach, World};

/// The result of a search.
pub(crate) struct Found {
    /// The number of states.
    pub(crate) states: usize,
    /// The length of the longest trace.
    pub(crate) depth: usize,
    /// A breach and the trace to it, if there is one.
    pub(crate) trace: Option<Trace>,
}

/// The trace to a breach.
pub(crate) struct Trace {
    pub(crate) breach: Breach,
    pub(crate) steps: usize,
    /// One line per step.
    pub(crate) text: String,
}

/// How a state was reached.
struct Node {
    parent: usize,
    step: Step,
}

/// Visits every state of the world, with `rule` broken, until a breach is found. With a broken rule only these breaches count: two jobs
/// at the same time, a job in a topic that was not judged, a release by a guard with unread orders, a forgotten key that counts as done,
/// and the breaches about a guard that starts late. With the right rules every breach counts. The variable `A_RULE_IS_BROKEN` states that a
/// rule of the real objects is broken (`tests/mutants`).
pub(crate) fn search(setup: Setup, rule: Option<WorldFlaw>) -> Found {
    break_only(rule);
    let setup = Rc::new(setup);
    let is_right = rule.is_none() && std::env::var_os("A_RULE_IS_BROKEN").is_none();
    let counts = |breach: Breach| {
        is_right
            || matches!(
                breach,
                Breach::DeadlineMovedBack
                    | Breach::KeptForgotten
                    | Breach::RanAgain
                    | Breach::ReleasedUnread
                    | Breach::StartedLate
                    | Breach::TwoJobs
                    | Breach::Unjudged
                    | Breach::UnstartedKilled
            )
    };
    let first = World::new(&setup, false).remembering_transitions();
    let mut seen: HashSet<u128, fingerprint::ItsOwnHash> = HashSet::default();
    seen.insert(first.fingerprint());
    let mut nodes = vec![Node { parent: 0, step: Step::Tick }];
    let mut level = vec![(0, first)];
    let mut steps = Vec::new();
    let mut depth = 0;
    while !level.is_empty() && depth < setup.depth {
        depth += 1;
        let mut next_level = Vec::new();
        for (parent, world) in level {
            world.enabled(&mut steps);
            for step in steps.drain(..) {
                let mut next = world.clone();
                next.take(step);
                if !seen.insert(next.fingerprint()) {
                    continue;
                }
                nodes.push(Node { parent, step });
                let node = nodes.len() - 1;
                if let Some(breach) = next.breach().filter(|breach| counts(*breach)) {
                    let trace = trace_to(&setup, breach, &nodes, node);
                    return Found { states: seen.len(), depth, trace: Some(trace) };
                }
                next_level.push((node, next));
            }
            assert!(seen.len() < setup.most_states, "{}: the world is too large to be searched", setup.name);
        }
        level = next_level;
    }
    break_only(None);
    Found { states: seen.len(), depth, trace: None }
}

/// Repeats the trace and writes its steps as text.
fn trace_to(setup: &Rc<Setup>, breach: Breach, nodes: &[Node], last: usize) -> Trace {
    let mut steps = Vec::new();
    let mut node = last;
    while node != 0 {
        steps.push(nodes[node].step);
        node = nodes[node].parent;
    }
    let mut world = World::new(setup, true);
    for step in steps.iter().rev() {
        world.take(*step);
    }
    assert_eq!(world.breach(), Some(breach), "the trace does not lead to the breach that was found");
    let mut text = String::new();
    for line in world.trace.iter().flatten() {
        let _ = writeln!(text, "{line}");
    }
    Trace { breach, steps: steps.len(), text }
}
