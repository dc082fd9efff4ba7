//! Looks at a tree of processes in every order with what happens to them: each ends, leaves its children to the root, or starts another.
//! The root waits for none of them, as if each was traced: so the dead stay.

use std::collections::HashSet;

use neli_proto::guard::has_tree_ended;

/// As many processes as there may be below the root.
const MOST: usize = 4;

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Process {
    /// The index of its parent; `None` is the root.
    parent: Option<usize>,
    lives: bool,
}

/// A state: the processes by their pids, and the looks so far. A look reads one process after the other, as a scan of `/proc` does.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct State {
    processes: [Option<Process>; MOST],
    /// The pid that the present look reads next.
    next: usize,
    looks: [Vec<(usize, bool)>; 2],
    look: usize,
}

impl State {
    fn with(processes: &[(usize, Option<usize>, bool)]) -> Self {
        let mut state = Self::default();
        for (pid, parent, lives) in processes {
            state.processes[*pid] = Some(Process { parent: *parent, lives: *lives });
        }
        state
    }

    fn is_alive(&self) -> bool {
        self.processes.iter().flatten().any(|process| process.lives)
    }

    /// Each state that may follow, with what has happened.
    fn successors(&self) -> Vec<(String, Self)> {
        let mut successors = Vec::new();
        if self.look < self.looks.len() {
            let mut after = self.clone();
            if let Some(Process { parent: None, lives }) = self.processes[self.next] {
                after.looks[self.look].push((self.next, lives));
            }
            after.next += 1;
            if after.next == MOST {
                (after.next, after.look) = (0, self.look + 1);
            }
            successors.push((format!("look {} reads {}", self.look + 1, self.next), after));
        }
        for pid in (0..MOST).filter(|pid| self.processes[*pid].is_some_and(|process| process.lives)) {
            let mut after = self.clone();
            for process in after.processes.iter_mut().flatten().filter(|process| process.parent == Some(pid)) {
                process.parent = None;
            }
            after.processes[pid].iter_mut().for_each(|process| process.lives = false);
            successors.push((format!("{pid} ends"), after));
            for child in (0..MOST).filter(|child| self.processes[*child].is_none()) {
                let mut after = self.clone();
                after.processes[child] = Some(Process { parent: Some(pid), lives: true });
                successors.push((format!("{pid} starts {child}"), after));
            }
        }
        successors
    }

    /// Whether the two looks take a tree for ended of which a process lives.
    fn is_wrong(&self) -> bool {
        let [first, second] = &self.looks;
        self.look == self.looks.len() && has_tree_ended(first, second) && self.is_alive()
    }
}

/// Searches all states after `first`; returns the number of them in which the tree was found to have ended.
fn search(name: &str, first: State) -> usize {
    let mut seen = HashSet::from([first.clone()]);
    let mut unseen = vec![(first, Vec::new())];
    let mut ended = 0;
    while let Some((state, trace)) = unseen.pop() {
        assert!(!state.is_wrong(), "{name}: TakenForGone after {trace:?}");
        ended += usize::from(state.look == 2 && !state.is_alive());
        for (step, after) in state.successors() {
            if seen.insert(after.clone()) {
                let trace: Vec<String> = trace.iter().cloned().chain([step]).collect();
                unseen.push((after, trace));
            }
        }
    }
    ended
}

/// Each order of death, reparenting and looking, from each of these beginnings.
#[test]
fn a_tree_of_which_a_process_lives_is_never_taken_for_gone() {
    const ROOT: Option<usize> = None;
    let beginnings: [(&str, State); 5] = [
        ("a dead guard whose job is the root's already", State::with(&[(0, ROOT, false), (1, ROOT, true)])),
        ("a guard that dies while its job lives", State::with(&[(0, ROOT, true), (1, Some(0), true)])),
        ("a guard that dies after its job", State::with(&[(0, ROOT, true), (1, Some(0), false)])),
        ("a guard with a higher pid than its job", State::with(&[(3, ROOT, true), (1, Some(3), true)])),
        ("a chain that ends from the top", State::with(&[(2, ROOT, true), (1, Some(2), true), (0, Some(1), true)])),
    ];
    for (name, state) in beginnings {
        assert!(search(name, state) > 0, "{name}: it ends in some order");
    }
}
