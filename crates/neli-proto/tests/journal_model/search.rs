//! Breadth first: every state is seen once, by the shortest way to it.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use crate::flaws::{WorldFlaw, break_only};
use crate::setup::Setup;
use crate::step::Step;
use crate::world::{Breach, World};

/// What a search found.
pub(crate) struct Found {
    /// How many states it saw.
    pub(crate) states: usize,
    /// How many steps the longest way took.
    pub(crate) depth: usize,
    /// What must never happen, and the way to it.
    pub(crate) trace: Option<Trace>,
}

/// The way to a breach.
pub(crate) struct Trace {
    pub(crate) breach: Breach,
    pub(crate) steps: usize,
    /// One line for each thing that happened.
    pub(crate) text: String,
}

/// How a state was come by.
struct Node {
    parent: usize,
    step: Step,
}

/// Fingerprints are their own hashes.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let half = bytes.first_chunk().copied().unwrap_or_default();
        self.0 = u64::from_ne_bytes(half);
    }
}

/// Looks at every state of the world, with `rule` broken, until something happens that must not. With a broken rule only
/// two jobs at once count, a job in a topic that nobody has judged, a release by a guard that has not read all, a forgotten key that is
/// taken for done, and what must never
/// become of a guard that is started late; with the right ones everything does. The variable `A_RULE_IS_BROKEN` says that a rule of the real objects is broken (`tests/mutants`).
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
    let first = World::new(&setup, false);
    let mut seen: HashSet<u128, BuildHasherDefault<Identity>> = HashSet::default();
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
                    let trace = tell(&setup, breach, &nodes, node);
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

/// Goes the way once more, and writes down what happens.
fn tell(setup: &Rc<Setup>, breach: Breach, nodes: &[Node], last: usize) -> Trace {
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
    let mut text = String::new();
    for line in world.trace.iter().flatten() {
        let _ = writeln!(text, "{line}");
    }
    Trace { breach, steps: steps.len(), text }
}
