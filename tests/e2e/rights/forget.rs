//! The rights that `forget` needs.

use harness::candidate::Elector;
use harness::rights::Operation::{self, Describe, Read as Reads, Write as Writes};
use harness::rights::{Resource, Rule};

use super::{Of, Tenancy};
use crate::once::{KEY, once, runs};

/// READ on the journal, READ and WRITE on the topic of facts, and no other right. Without one of them, one line names it.
#[test]
fn to_have_a_key_run_again() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    let election = &tenancy.guarded.election;
    assert_eq!(once(election, "true").start().status(), 0);

    let facts = format!("{}.once", tenancy.topic);
    let allow = |operation: Operation| {
        tenancy.rights.make(&[Rule::allow(tenancy.account.name(), Resource::Topic(&facts), operation)]);
    };
    let forget = || tenancy.look(&["forget", "--once", KEY]);
    let refused = |topic: &str, right: &str| {
        let answer = forget();
        assert_eq!((answer.text.as_str(), answer.status), ("", 125), "{answer:?}");
        let words = [format!("topic \"{topic}\""), format!("no right to {right}")];
        let is_one_line = answer.errors.lines().count() == 1;
        assert!(is_one_line && words.iter().all(|word| answer.errors.contains(word)), "{words:?}: {answer:?}");
    };
    refused(&tenancy.topic, "DESCRIBE");
    tenancy.allow(&[(Of::Topic, Describe)]);
    refused(&tenancy.topic, "READ");
    tenancy.allow(&[(Of::Topic, Reads)]);
    refused(&facts, "DESCRIBE");
    allow(Describe);
    refused(&facts, "READ");
    allow(Reads);
    refused(&facts, "WRITE");
    assert_eq!(once(election, "true").start().status(), 0);
    assert_eq!(runs(election), 1, "nothing was forgotten");
    allow(Writes);
    let answer = forget();
    assert_eq!((answer.errors.as_str(), answer.status), ("", 0), "{answer:?}");
    assert_eq!(once(election, "true").start().status(), 0);
    assert_eq!(runs(election), 2);
}
