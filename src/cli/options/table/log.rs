//! Options for the log.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "log-format",
        short: None,
        takes: Takes::OneOf("text|json", &["text", "json"]),
        default: Default::Value("text"),
        section: Section::Log,
        help: "Log a sentence a line, or a JSON object a line",
        more: "",
    },
    Opt {
        long: "log-file",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::Computed("stderr"),
        section: Section::Log,
        help: "Append the log to this file, and keep stderr for the job",
        more: "",
    },
    Opt {
        long: "verbose",
        short: Some('v'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log the messages of librdkafka, too",
        more: "",
    },
    Opt {
        long: "quiet",
        short: Some('q'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log only warnings and errors",
        more: "",
    },
];
