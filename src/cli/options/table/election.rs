//! Options for the election, and for the order of the candidates' claims.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "name",
        short: None,
        takes: Takes::Value("NAME"),
        default: Default::Computed("<host>:<pid>"),
        section: Section::Election,
        help: "Name of this candidate, in the log and for the others",
        more: "1 to 255 bytes.",
    },
    Opt {
        long: "roles",
        short: None,
        takes: Takes::Value("N|NAME,.."),
        default: Default::None,
        section: Section::Election,
        help: "Stand in N elections, or in one for each name",
        more: "One job runs for each role that this candidate leads; NELI_ROLE contains the role. Give every \
               candidate the same roles. Not with --wait, --overlap, --once, --window or --schedule. See ROLES \
               in neli-run(1).",
    },
    Opt {
        long: "spread",
        short: None,
        takes: Takes::OneOf("yes|no", &["yes", "no"]),
        default: Default::Value("yes"),
        section: Section::Election,
        help: "Move roles until each candidate leads a fair share",
        more: "With no, roles stay where they are. yes can't be combined with --claim-delay or --priority.",
    },
    Opt {
        long: "max-roles",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Computed("no limit"),
        section: Section::Election,
        help: "Lead at most N roles in this process",
        more: "If all candidates together may lead fewer than --roles defines, some roles have no leader. A \
               warning says if the limit of open files allows fewer. Not with --preempt.",
    },
    Opt {
        long: "elect",
        short: None,
        takes: Takes::OneOf("group|log", &["group", "log"]),
        default: Default::Value("group"),
        section: Section::Election,
        help: "Which candidate claims first when nobody leads",
        more: "group: the member to which Kafka's consumer group assigns the partition. log: any candidate; no \
               right on a group is needed. See WHO GOES FIRST in neli-run(1).",
    },
    Opt {
        long: "patience",
        short: None,
        takes: Takes::Value("DURATION|never"),
        default: Default::Value("500ms"),
        section: Section::Election,
        help: "Time for which the group's choice alone may claim",
        more: "never: the others never claim (not with --claim-delay or --priority; with --roles they do, after 500ms). Not \
               with --elect log.",
    },
    Opt {
        long: "claim-delay",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Time to wait before each claim; for a last-resort machine",
        more: "",
    },
    Opt {
        long: "priority",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Claim before candidates of a lower priority",
        more: "0 to 1000. For each higher priority that stands by, a candidate claims 500ms later, with --elect \
               group also --patience later. Not with --patience never.",
    },
    Opt {
        long: "preempt",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Election,
        help: "Ask a leader of a lower priority to stand down",
        more: "The leader stops its job, and the candidate of the highest priority leads next. Needs a --priority \
               above 0.",
    },
    Opt {
        long: "preempt-after",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("1m"),
        section: Section::Election,
        help: "Time to stand by before --preempt asks",
        more: "At least 1s; ten times as long if this candidate's last lead was fenced or unhealthy, or its \
               guard died. Only with --preempt.",
    },
    Opt {
        long: "wait",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("no limit"),
        section: Section::Election,
        help: "Exit with 75 if not leading after this time",
        more: "Counted from the start, until the first lead; if the leader has died, neli-run first waits for \
               the end of its lease. With 0, neli-run leads at once or exits, after 5s if Kafka does not answer. \
               Must be more than --claim-delay.",
    },
];
