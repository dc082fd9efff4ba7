//! Mutants about many roles in one process: the wrong candidate leads a role, or two candidates look for it in different partitions.

use crate::mutant::Notice::{Node, Scenarios};
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AnswersUnawaited",
        breaks: "Roles: a process claims before the others have had time to object to its first hello",
        edits: &[edit("self.answered_by.get_or_insert(now + ‹ANSWERS›);", "Duration::ZERO")],
        noticed_by: &[Node(
            "many_roles::nothing_is_claimed_before_a_slow_answer_to_the_first_hello",
            "claims a role before its first hello was answered",
        )],
    },
    Mutant {
        name: "AnswerUnawaited",
        breaks: "Spread: a job is stopped for a candidate that may have died since its last hello",
        edits: &[edit("if ‹self.has_shown_itself(&to)› {", "(self.has_shown_itself(&to) || true)")],
        noticed_by: &[Node(
            "hellos_of_many::a_role_is_handed_over_only_when_the_one_that_is_to_have_it_has_answered",
            "stops a job for a candidate that has not answered",
        )],
    },
    Mutant {
        name: "AnswerOfRolesUnawaited",
        breaks: "Roles: a candidate without roles claims before a process with roles has had time to refuse it",
        edits: &[edit("due.max(read + ‹ANSWERS›)", "core::time::Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "AssignmentOutOfTurn",
        breaks: "Roles: a process that holds its share claims before another one that is to have the role, because the group has chosen it",
        edits: &[edit("self.assignment == Assignment::Own && ‹!spread.is_zero()›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ForesightOfMany",
        breaks: "Roles: a member predicts which member the group will choose, although the members hold other partitions too",
        edits: &[edit(
            "id.len() > LONGEST_GROUP_MEMBER || ‹self.precedence.is_one_of_many› {",
            "(self.precedence.is_one_of_many && false)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "MappingIgnored",
        breaks: "Roles: a process stands by beside one that maps a role to another partition, so that both would lead it",
        edits: &[edit("match own.refusal(&theirs, name).filter(|_| ‹!hello.leaves›) {", "false")],
        noticed_by: &[Node(
            "many_roles::nothing_is_claimed_beside_one_that_maps_a_role_elsewhere",
            "claims a role that another looks for in another partition",
        )],
    },
    Mutant {
        name: "RevokedOfMany",
        breaks: "Roles: a leader stands down when the group takes a role's partition away, although the number of roles decides",
        edits: &[edit("election.group.unused_partitions || ‹election.precedence.is_one_of_many›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorIgnored",
        breaks: "Spread: a candidate that reads that a release names another one claims as soon as if it named none",
        edits: &[edit("if is_anothers { ‹delay.max(PATIENCE)› }", "delay")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorOfOverlap",
        breaks: "resign --to: with --overlap the others do not wait for the named candidate, because no release names it before the claim",
        edits: &[edit(
            "Some(Body::Request { successor: Some(successor), .. }) => ‹Some(successor.clone())›,",
            "Some(successor.clone()).filter(|_| false)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorOutranked",
        breaks: "resign --to: the candidate that the release names waits for those of a higher priority",
        edits: &[edit(
            "return Some(Delay { fixed: ‹self.back_off›, random: Duration::ZERO });",
            "self.back_off + self.wait_for_higher(now)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SuccessorOfAnotherEnd",
        breaks: "Spread: a release names a successor although the lead did not end for it",
        edits: &[edit(
            "successor: ‹election.successor.clone().filter(|_| matches!(self.why, Why::Resigned | Why::Spread))›,",
            "election.successor.clone()",
        )],
        noticed_by: &[Scenarios],
    },
];
