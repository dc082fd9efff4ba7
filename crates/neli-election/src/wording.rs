//! What users of the library are told to do: the layers below say what is wrong, and name no option of `neli-run`, since its users have options
//! and those of the library have the builder's methods.

use neli_kafka::{Words, one_line};
use neli_proto::mapping::Differs;
use neli_proto::note::{Loss, Note, Refusal};
use neli_proto::time::millis_rounded_up;

/// What messages about Kafka tell a program to do.
pub(crate) const WORDS: Words = Words {
    choose_another_group: "choose another",
    create_topic: "don't call create_topic(false)",
    own_broker: "if it is neli-run's embedded one, neli-run alone can use it",
    use_log_elector: "call elector(Elector::Log)",
    brokers: "call brokers",
    elector: "the order of candidates depends on the classic protocol; see elector",
    group: "it is the name that the builder was given",
    lease: "it follows from lease",
    topic: "the library makes the topic itself; see create_topic",
    for_a_trial: "",
    not_built: |_| None,
};

/// Why a candidate was refused. The name of another candidate can be any text.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    one_line(&match refusal {
        Refusal::Overlap { name, .. } => format!(
            "{name} stands in this election with an overlap, which the library does not have; start it without that"
        ),
        Refusal::Roles(differs) => roles_differ(differs),
        Refusal::Said(line) => line.to_string(),
        Refusal::TopicRemade => {
            "the topic was deleted and made again, and the new one is not accepted if create_topic is false".to_owned()
        }
    })
}

/// What a program must learn beside its events: why a lead ended in no orderly way, that a guarantee was broken, and that another candidate does
/// other work.
pub(crate) fn trouble(note: &Note) -> Option<String> {
    if let Note::Fenced { term, late: Some(late), .. } = note {
        Some(format!(
            "a task under the lead of term {term} may have run until {} ms after the lease's end, beside another leader's: check what \
             both wrote, and let tasks ask Lease::is_valid",
            millis_rounded_up(*late)
        ))
    } else if let Note::Fenced { term, loss: Loss::HistoryCut, .. } = note {
        Some(format!("the lead of term {term} is over: the journal was cut, or the topic made anew"))
    } else if let Note::FenceWarning { term, unconfirmed: Some(unconfirmed), .. }
    | Note::LeaseUnconfirmed { term, unconfirmed } = note
    {
        let unconfirmed = millis_rounded_up(*unconfirmed);
        Some(format!(
            "no broker has confirmed the topic's id for {unconfirmed} ms, so no heartbeat extends the lease of term {term}"
        ))
    } else if let Note::ReaderStuck { end, silent } = note {
        Some(format!(
            "the journal's reader has delivered no record for {} ms, although the log has records up to offset {end}: a new \
             reader replaces it",
            millis_rounded_up(*silent)
        ))
    } else if let Note::Superseded { term, by, .. } = note {
        let by = by.as_deref().unwrap_or("another candidate");
        Some(format!(
            "{by} leads although term {term} was not over here: check whether a machine's clock ran at a wrong rate, or a machine \
             was paused"
        ))
    } else if let Note::OnceDiffers { name, theirs, .. } = note {
        let name = name.as_deref().unwrap_or("another candidate");
        Some(format!(
            "{name} stands in this election with {theirs}, which the library does not do, so that its job does not run while this program \
             leads: choose another group"
        ))
    } else {
        None
    }
}

/// How another candidate's roles differ, and what to do.
pub(crate) fn roles_differ(differs: &Differs) -> String {
    differs.line("roles", "name")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use neli_proto::record::Why;

    use super::*;

    /// What a program with the library is never told, file by file: it has no hook for it.
    const NOT_OF_THE_LIBRARY: [(&str, &str); 8] = [
        // The facts of `--once`.
        ("kafka/src/facts.rs", "a longer --lease gives more"),
        ("src/fact.rs", "forget --force"),
        ("src/topic.rs", "--once-retention"),
        // The priority of a candidate of `neli-run`.
        ("candidate/claims.rs", "(--preempt)"),
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
    fn no_message_names_an_option_of_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut naming = Vec::new();
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
                if is_of_the_library && names_option(line) {
                    naming.push(format!("{name}: {line}"));
                }
            }
        }
        assert!(naming.is_empty(), "{naming:#?}");
    }

    #[test]
    fn the_end_of_a_lead_says_what_went_wrong() {
        let fenced = |loss, late: Option<u64>| {
            let (left, late) = (Duration::ZERO, late.map(Duration::from_millis));
            trouble(&Note::Fenced { term: 7, why: Why::Fenced, loss, left, late }).unwrap_or_default()
        };
        assert_eq!(fenced(Loss::LeaseOver, None), "");
        let late = fenced(Loss::LeaseOver, Some(40));
        assert!(late.starts_with("a task under the lead of term 7 may have run until 40 ms after"), "{late}");
        assert!(fenced(Loss::HistoryCut, None).contains("term 7 is over: the journal was cut"));
        let unconfirmed = trouble(&Note::LeaseUnconfirmed { term: 7, unconfirmed: Duration::from_secs(2) });
        assert!(unconfirmed.unwrap_or_default().starts_with("no broker has confirmed the topic's id for 2000 ms"));
    }

    #[test]
    fn a_program_reads_what_it_can_do() {
        let (name, theirs, ours) = (Some("web2".into()), "--once --retries 2".into(), "".into());
        assert_eq!(
            trouble(&Note::OnceDiffers { name, theirs, ours }).unwrap_or_default(),
            "web2 stands in this election with --once --retries 2, which the library does not do, so that its job does not run while this \
             program leads: choose another group"
        );
        let overlap = Refusal::Overlap { name: "web2".into(), is_theirs: true };
        assert_eq!(
            refusal(&overlap),
            "web2 stands in this election with an overlap, which the library does not have; start it without that"
        );
    }

    #[test]
    fn the_name_of_another_candidate_begins_no_line() {
        let overlap = Refusal::Overlap { name: "evil\n\u{1b}[2J".into(), is_theirs: true };
        let line = refusal(&overlap);
        assert!(line.starts_with("evil\\n\\u{1b}[2J stands"), "{line:?}");
    }
}
