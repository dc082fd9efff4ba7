//! Options for the connection to Kafka.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "embedded",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "Try neli-run on this machine, without Kafka",
        more: "The first candidate starts a small broker, which ends after the last one. It keeps the journal in \
               memory, and other machines can't reach it.",
    },
    Opt {
        long: "topic",
        short: Some('t'),
        takes: Takes::Value("NAME"),
        default: Default::Computed("<group>.neli"),
        section: Section::Kafka,
        help: "Topic of the journal, made if missing",
        more: "Several elections may share a topic. 1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..",
    },
    Opt {
        long: "no-create-topic",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "Exit with 125 if the topic is missing",
        more: "Also if it is deleted and created again.",
    },
    Opt {
        long: "property",
        short: Some('X'),
        takes: Takes::Each("KEY=VALUE"),
        default: Default::None,
        section: Section::Kafka,
        help: "Set a property of librdkafka; repeatable",
        more: "The last value of a key counts; properties that the protocol needs, or that another option sets, \
               are refused. Every user of the machine can read a command line: put passwords into a --properties \
               file. NELI_RUN_PROPERTY holds one KEY=VALUE a line.",
    },
];
