//! How Kafka is reached.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "brokers",
        short: Some('b'),
        takes: Takes::Value("HOST:PORT,.."),
        default: Default::None,
        section: Section::Kafka,
        help: "Kafka's bootstrap servers",
        more: "An IPv6 address stands in brackets: [::1]:9092. Either this or --embedded is required.",
    },
    Opt {
        long: "embedded",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "A trial without Kafka, on this machine alone",
        more: "The first candidate starts a small broker on loopback, the others find it, and it ends after the \
               last. Its journal is kept in memory, and no other machine can see it.",
    },
    Opt {
        long: "topic",
        short: Some('t'),
        takes: Takes::Value("NAME"),
        default: Default::Computed("<group>.neli"),
        section: Section::Kafka,
        help: "The journal's topic; made if missing",
        more: "Several elections may share one. 1 to 249 of a-z A-Z 0-9 . _ - and neither . nor ..",
    },
    Opt {
        long: "no-create-topic",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "Refuse to run when the topic is missing",
        more: "Or when somebody deleted it and made it again: that is not taken for the same one.",
    },
    Opt {
        long: "property",
        short: Some('X'),
        takes: Takes::Each("KEY=VALUE"),
        default: Default::None,
        section: Section::Kafka,
        help: "A librdkafka property; repeatable",
        more: "The last of one key counts. Refused are those that the protocol rests on, and those that another \
               option sets. Every user of the machine can read a command line: a password belongs into a \
               --properties file. NELI_RUN_PROPERTY holds one KEY=VALUE a line.",
    },
    Opt {
        long: "properties",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::None,
        section: Section::Kafka,
        help: "A file of KEY=VALUE lines: the place for passwords",
        more: "Blank lines, and lines that begin with #, are skipped. --property overrides it.",
    },
];
