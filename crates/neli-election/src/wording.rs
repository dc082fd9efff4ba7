//! The messages of the layers below are written for users of `neli-run`, and name its options. This module rewrites them for users of the
//! library, who have the builder's methods.

use neli_kafka::properties::{Fault, Instead};
use neli_proto::mapping::Differs;
use neli_proto::note::Refusal;

/// A phrase of the layers below, and the same in the words of the library.
const PHRASES: [(&str, &str); 5] = [
    ("drop --no-create-topic", "don't call create_topic(false)"),
    ("use --elect log", "call elector(Elector::Log)"),
    (
        "it has members that are no neli-run; choose another --group",
        "it has members that are no candidates; choose another name",
    ),
    ("this name; choose another --group", "this name; choose another"),
    ("if it is neli-run's own, say --embedded", "if it is neli-run's embedded one, neli-run alone can use it"),
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

/// Why a candidate was refused.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Overlap { name, .. } => format!(
            "{name} stands in this election with an overlap, which the library does not have; start it without that"
        ),
        Refusal::Roles(differs) => roles_differ(differs),
        Refusal::Said(line) => of_library(line),
        Refusal::TopicRemade => {
            "the topic was deleted and made again, and the new one is not accepted if create_topic is false".to_owned()
        }
    }
}

/// How another candidate's roles differ, and what to do.
pub(crate) fn roles_differ(differs: &Differs) -> String {
    differs.line("roles", "name")
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
    const NOT_OF_THE_LIBRARY: [(&str, &str); 8] = [
        // The facts of `--once`.
        ("kafka/src/facts.rs", "a longer --lease gives more"),
        ("src/fact.rs", "forget --force"),
        ("topic/risk.rs", "--once-retention"),
        // The priority of a candidate of `neli-run`.
        ("candidate/preempting.rs", "(--preempt)"),
        // The command line of the broker's process.
        ("kafka/src/embedded.rs", "--idle-timeout"),
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
        for file in [root.join("src"), root.join("../neli-kafka/src"), root.join("../neli-proto/src")]
            .iter()
            .flat_map(|root| sources(root))
        {
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
        let overlap = Refusal::Overlap { name: "web2".into(), is_theirs: true };
        assert_eq!(
            refusal(&overlap),
            "web2 stands in this election with an overlap, which the library does not have; start it without that"
        );
    }
}
