//! Which election, and who claims it.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "group",
        short: Some('g'),
        takes: Takes::Value("NAME"),
        default: Default::None,
        section: Section::Election,
        help: "The election, and the consumer group's id (required)",
        more: "Every machine that runs the same line with the same group is a candidate. At most 249 bytes.",
    },
    Opt {
        long: "name",
        short: None,
        takes: Takes::Value("NAME"),
        default: Default::Computed("<host>:<pid>"),
        section: Section::Election,
        help: "What this candidate is called",
        more: "In the log, in watch, and by the other candidates. At most 255 bytes.",
    },
    Opt {
        long: "roles",
        short: None,
        takes: Takes::Value("N|NAME,.."),
        default: Default::None,
        section: Section::Election,
        help: "Several elections in this process: so many, or of each name",
        more: "A job runs for each role that is led here, with its name or number in NELI_ROLE. Every candidate of the group \
               must be given the same. Role r, counted from 0, is on partition r mod partitions; a missing topic is made \
               with a partition for each role, up to 100. --restart is always, unless given; with no, a role whose job has \
               ended is stood for no more by this process, which ends when no role is left to it, with the highest status. \
               Not with --wait or --once; the jobs are given no terminal.",
    },
    Opt {
        long: "spread",
        short: None,
        takes: Takes::OneOf("yes|no", &["yes", "no"]),
        default: Default::Value("yes"),
        section: Section::Election,
        help: "Hand roles over until each candidate has a fair share",
        more: "With yes each candidate leads as many of the --roles as any other, or one more, within a minute of a join or a \
               leave, with no more moves than that takes. With no nothing is moved for it. With --elect group and as many \
               partitions as roles the group's assignment says who is to lead which; else each counts what the others lead, \
               and hands over one role at a time. Not with --claim-delay or --priority.",
    },
    Opt {
        long: "max-roles",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Computed("no limit"),
        section: Section::Election,
        help: "Lead no more of the --roles than so many here",
        more: "What is beyond the limits of all candidates is led by nobody.",
    },
    Opt {
        long: "elect",
        short: None,
        takes: Takes::OneOf("group|log", &["group", "log"]),
        default: Default::Value("group"),
        section: Section::Election,
        help: "Who claims a vacancy first: the group's choice, or anybody",
        more: "With group: the member of the consumer group to which Kafka assigns the partition. It decides \
               precedence alone: with either, the journal says who leads, and no two jobs run at once. With log the first claim wins, and no group is joined, which spares Kafka a member and candidates the rights for it; both are equally fast.",
    },
    Opt {
        long: "patience",
        short: None,
        takes: Takes::Value("DURATION|never"),
        default: Default::Value("500ms"),
        section: Section::Election,
        help: "How long the others leave a vacancy to the group's choice",
        more: "With never, nobody but the group's choice ever claims; not with --claim-delay. Not with --elect \
               log.",
    },
    Opt {
        long: "claim-delay",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Wait before claiming a vacancy: for a machine of last resort",
        more: "",
    },
    Opt {
        long: "priority",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Who has more claims a vacancy first",
        more: "0 to 1000. Each higher one that is known to stand by costs a candidate 500ms more before it claims, with --elect \
               group the patience besides. It is precedence alone: one that is not heard may be led before. Not with --patience \
               never.",
    },
    Opt {
        long: "preempt",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Election,
        help: "Ask a leader of lower priority to stand down",
        more: "Its job is stopped in order, and then whoever has the highest priority leads. A leader of the same priority, or \
               a higher one, is never asked. Needs a --priority above 0.",
    },
    Opt {
        long: "preempt-after",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("1m"),
        section: Section::Election,
        help: "Stand by this long before asking it",
        more: "1s or more. Ten times as long after a lead of its own that was fenced, unhealthy, or whose guard died; and not \
               while its own last runs have failed. Not without --preempt.",
    },
    Opt {
        long: "wait",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("for ever"),
        section: Section::Election,
        help: "Exit with 75 when not leading after this long",
        more: "Counted from the start of the process, to the first lead only. A living leader means 75; one \
               that has died without a word is waited out, however long that takes. With 0: lead a vacant \
               election, else 75. While Kafka gives no answer: 75 after this long (with 0: after 5s). Must be \
               more than --claim-delay.",
    },
];
