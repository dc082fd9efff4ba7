//! The messages of the layers below are written for users of `neli-run`, and name its options. This module rewrites them for users of the
//! library, who have the builder's methods.

use neli_kafka::properties::{Fault, Instead};

/// A phrase of the layers below, and the same in the words of the library.
const PHRASES: [(&str, &str); 11] = [
    ("drop --no-create-topic", "don't call create_topic(false)"),
    ("use --elect log", "call elector(Elector::Log)"),
    (
        "it has members that are no neli-run; choose another --group",
        "it has members that are no candidates; choose another name",
    ),
    ("this name; choose another --group", "this name; choose another"),
    ("if it is neli-run's own, say --embedded", "if it is neli-run's embedded one, neli-run alone can use it"),
    (
        "the same --roles, or give candidates of other roles another --group",
        "the same roles, or give candidates of other roles another name",
    ),
    ("the same --roles, or none", "the same roles, or none"),
    ("no --roles", "no roles"),
    ("--roles ", "roles "),
    ("--overlap is missing: ", ""),
    (
        " stands in this election with it; all its candidates need it, or none",
        " stands in this election with an overlap, which the library does not have; start it without that",
    ),
];

/// Why a property was refused, and what to do instead.
pub(crate) fn fault(fault: &Fault) -> String {
    let Fault::NotYours(instead) = fault else { return fault.to_string() };
    let instead = match instead {
        Instead::Brokers => "call brokers",
        Instead::Elector => "the order of candidates depends on the classic protocol; see elector",
        Instead::Group => "it is the name that the builder was given",
        Instead::Lease => "it follows from lease",
        Instead::Nothing(why) => why,
        Instead::Topic => "the library makes the topic itself; see create_topic",
    };
    format!("{fault}: {instead}")
}

/// The line in the words of the library.
pub(crate) fn of_library(line: &str) -> String {
    PHRASES.iter().fold(line.to_owned(), |line, (option, method)| line.replace(option, method))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// What a program with the library is never told, file by file: it has no hook for it.
    const NOT_OF_THE_LIBRARY: [(&str, &str); 10] = [
        // The facts of `--once`.
        ("facts/topic_of_facts.rs", "drop --no-create-topic"),
        ("kafka/facts.rs", "a longer --lease gives more"),
        ("src/fact.rs", "forget --force"),
        ("topic/risk.rs", "--once-retention"),
        // The priority of a candidate of `neli-run`.
        ("candidate/preempting.rs", "(--preempt)"),
        // A candidate with an overlap of its own.
        ("candidate/overlapping.rs", "--overlap: "),
        // The command line of the broker's process.
        ("kafka/embedded.rs", "--idle-timeout"),
        // The options of Kafka's own commands.
        ("src/topic.rs", "kafka-configs.sh"),
        ("src/topic.rs", "kafka-reassign-partitions.sh"),
        ("src/wording.rs", ""),
    ];

    fn sources(directory: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        found
    }

    /// Where an option of the command line begins in a line of source, if one is in it.
    fn names_option(line: &str) -> bool {
        line.match_indices("--").any(|(at, _)| {
            let next = line[at + 2..].chars().next();
            !line[..at].ends_with('-') && next.is_some_and(|next| next.is_ascii_lowercase())
        })
    }

    #[test]
    fn each_option_that_a_message_names_has_its_words_here() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut unmapped = Vec::new();
        for file in [root.join("src"), root.join("../neli-proto/src")].iter().flat_map(|root| sources(root)) {
            let name = file.to_str().unwrap();
            let source = fs::read_to_string(&file).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//") && line.contains('"')) {
                let is_of_the_library = !name.ends_with("tests.rs")
                    && !NOT_OF_THE_LIBRARY.iter().any(|(file, part)| name.ends_with(file) && line.contains(part));
                if is_of_the_library && names_option(line) && names_option(&of_library(line)) {
                    unmapped.push(format!("{name}: {line}"));
                }
            }
        }
        assert!(unmapped.is_empty(), "{unmapped:#?}");
    }

    #[test]
    fn a_program_reads_the_names_of_its_own_methods() {
        let shown = of_library("topic \"t\": it does not exist; create it, or drop --no-create-topic");
        assert_eq!(shown, "topic \"t\": it does not exist; create it, or don't call create_topic(false)");
        let shown = of_library(
            "--overlap is missing: web2 stands in this election with it; all its candidates need it, or none",
        );
        assert_eq!(
            shown,
            "web2 stands in this election with an overlap, which the library does not have; start it without that"
        );
    }
}
