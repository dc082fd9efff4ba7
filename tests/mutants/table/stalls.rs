//! Mutants after which there is no leader any more, a leader's job is killed without need, or an order reaches the guard too late.

use crate::mutant::Notice::{Node, Scenarios};
use crate::mutant::{Mutant, edit, edit_in};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "HungGuardClaims",
        breaks: "R2: a candidate claims beside a guard that does not answer, and has not ended",
        edits: &[edit("self.next_guard.is_doubtful || ‹self.next_guard.is_killed› ||", "false")],
        noticed_by: &[Node("no_guard::beside_a_guard_that_does_not_answer_nothing_is_claimed", "claims(None)")],
    },
    Mutant {
        name: "ClaimLeftBehind",
        breaks: "R7: a candidate that is refused ends while its claim is under way, and nobody leads for a lease",
        edits: &[edit(
            "if ‹self.supervisor.job_may_be_alive() || self.candidate.holds_or_awaits()› {",
            "self.supervisor.job_may_be_alive()",
        )],
        noticed_by: &[Node("a_refused_candidate_awaits_its_claim_for_a_lease_and_releases_it", "assertion")],
    },
    Mutant {
        name: "ClaimWithoutGuard",
        breaks: "A candidate whose guards die at their setup claims again and again, and leads without a job",
        edits: &[edit("self.next_claim.is_held || ‹self.next_claim.lacks_guard›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ClaimsOfACrowd",
        breaks: "R2: after a void claim the next one comes within four round trips, even if many candidates stand by",
        edits: &[edit("self.precedence.standbys(now).max(ROUND_TRIPS)", "ROUND_TRIPS")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "CutByOneAnswer",
        breaks: "R1: one answer that the log ends below the records read counts as a cut, although a broker may give such an answer for \
                 a moment",
        edits: &[edit("lasted(since, asked, ‹SHRUNK_FOR›)", "Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "CutByTwoAnswersFarApart",
        breaks: "R1: a lower end that one broker has given for a moment counts until the log's end is known exactly, so that on a busy log \
                 another such answer much later counts as a cut",
        edits: &[edit("‹end >= *denied›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "CutHiddenByOwnBeats",
        breaks: "R1: after a topic was made anew, the leader's own heartbeats there hide that its end is below the records read before",
        edits: &[edit(
            "self.log.has_record(now, offset);",
            "if offset >= self.log.known_end.1 { self.signs = CutSigns::default(); } self.log.has_record(now, offset);",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "DeletedUnreadUnnoticed",
        breaks: "R1: records that were deleted before they were read do not count as a cut, if the reader is not told that its offset is out \
                 of range",
        edits: &[edit("if ‹start > self.reading.position› {", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "GoneByOneAnswer",
        breaks: "R1: one answer that there is no such topic counts as its end, although a broker that has just started may not know it yet",
        edits: &[edit("lasted(*self.missing.get_or_insert(asked), asked, ‹GONE_AFTER›)", "Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "HungReaderKept",
        breaks: "R1: a reader that delivers no records, although the log grows, is never replaced",
        edits: &[edit("self.listener.stuck_since().map(|since| since + self.patience_with_reader())", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "MarkersTakenForGaps",
        breaks: "L4: a transaction's marker counts as a missing record even where only whole segments are deleted",
        edits: &[edit("is_between && ‹self.gaps_are_markers›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ProducerKeptAfterCut",
        breaks: "After a topic was created again, the producer for the old topic still writes to it",
        edits: &[edit_in(
            "forget_history",
            "‹Action::Kafka(Request::RenewProducer)›, Action::Kafka(Request::ReadAnew)",
            "Action::RenewGuard",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ProducerKeptUnanswered",
        breaks: "R1: a producer whose claims get no answer for two leases is never replaced",
        edits: &[edit_in(
            "claim_went_unanswered",
            "self.actions.push_back(Action::Kafka(Request::RenewProducer));",
            "",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ProducerKeptForFacts",
        breaks: "K3: a producer whose facts are not acknowledged for two leases is never replaced",
        edits: &[edit_in(
            "renew_producer_if_stale",
            "self.actions.push_back(Action::Kafka(Request::RenewProducer));",
            "",
        )],
        noticed_by: &[Node(
            "once_answers::a_producer_whose_facts_are_not_acknowledged_for_two_leases_is_replaced",
            "it is never replaced",
        )],
    },
    Mutant {
        name: "StopBehindSignals",
        breaks: "A stop or a kill waits behind all signals that must be passed on to the job",
        edits: &[edit(
            "self.waiting.insert(‹before_signals›, (*order, along, 1));",
            "before_signals.max(self.waiting.len())",
        )],
        noticed_by: &[Node("orders::stop_and_kill_never_wait_behind_signals", "a stop waits behind signals")],
    },
    Mutant {
        name: "UnansweredCheckAwaited",
        breaks: "The supervisor waits for ever for a health command that the guard never answers",
        edits: &[edit("self.ended(now, CommandEnd::Unanswered, \"\".into());", "self.check = Check::Done;")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RevokedOfUnusedPartitions",
        breaks: "Group: a leader stands down when the group takes its partition away, although the group only balances unused partitions",
        edits: &[edit(
            "!is_assigned || ‹election.group.unused_partitions› || election.precedence.is_one_of_many",
            "false",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SpreadWithoutBound",
        breaks: "R2: after a void claim on a very slow link the next one may be minutes away",
        edits: &[edit(
            "RANDOM_DELAY.max(round_trip.saturating_mul(ways)).min(‹LONGEST_RANDOM_DELAY›)",
            "Duration::MAX",
        )],
        noticed_by: &[Scenarios],
    },
];
