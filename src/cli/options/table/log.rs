//! What is logged, and where.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "log-format",
        short: None,
        takes: Takes::OneOf("text|json", &["text", "json"]),
        default: Default::Value("text"),
        section: Section::Log,
        help: "One sentence a line, or one JSON object",
        more: "",
    },
    Opt {
        long: "log-file",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::Computed("stderr"),
        section: Section::Log,
        help: "Append the log here, and leave stderr to the job",
        more: "",
    },
    Opt {
        long: "verbose",
        short: Some('v'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log what librdkafka says, too",
        more: "",
    },
    Opt {
        long: "quiet",
        short: Some('q'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log warnings and errors alone",
        more: "",
    },
];
