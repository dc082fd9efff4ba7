//! Rights on a broker that has an authorizer, given and taken while it runs.
//!
//! librdkafka's binding has no call for rights, and Kafka's own tool costs seconds of Java: the three requests are written by
//! hand.

use crate::kafka::Kafka;
use crate::request::Request;
use crate::wait;

/// What a rule is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource<'a> {
    /// The cluster itself.
    Cluster,
    /// A consumer group; `*` is any.
    Group(&'a str),
    /// A topic; `*` is any.
    Topic(&'a str),
}

/// What a rule allows, as the protocol numbers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "Kafka's own names")]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Describe = 8,
    DescribeConfigs = 10,
}

/// Whether a rule allows or denies, as the protocol numbers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Permission {
    Deny = 2,
    Allow = 3,
}

/// A user, a thing, and what may or may not be done to it; from any host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    user: &'a str,
    resource: Resource<'a>,
    operation: Operation,
    permission: Permission,
}

impl<'a> Rule<'a> {
    /// A right.
    #[must_use]
    pub const fn allow(user: &'a str, resource: Resource<'a>, operation: Operation) -> Self {
        Self { user, resource, operation, permission: Permission::Allow }
    }

    /// What is denied, whatever else is allowed. (READ and WRITE imply DESCRIBE: only so can it be missing.)
    #[must_use]
    pub const fn deny(user: &'a str, resource: Resource<'a>, operation: Operation) -> Self {
        Self { user, resource, operation, permission: Permission::Deny }
    }

    fn resource(&self) -> (i8, &'a str) {
        match self.resource {
            Resource::Topic(name) => (2, name),
            Resource::Group(name) => (3, name),
            Resource::Cluster => (4, "kafka-cluster"),
        }
    }

    /// The rule, or the filter that finds it and no other: they are written alike.
    fn write(&self, request: &mut Request) {
        let (kind, name) = self.resource();
        request.i8(kind);
        request.text(name);
        request.i8(3); // the name is literal, and `*` any
        request.text(&format!("User:{}", self.user));
        request.text("*"); // from any host
        request.i8(self.operation as i8);
        request.i8(self.permission as i8);
    }
}

/// Who sets the rules: whoever comes without a login is the superuser.
#[derive(Clone, Debug)]
pub struct Rights {
    address: String,
}

impl Rights {
    /// The rules of this Kafka.
    #[must_use]
    pub fn of(kafka: &Kafka) -> Self {
        Self::at(kafka.address())
    }

    /// The rules of the broker with this address.
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// Makes rules, and returns when they hold.
    pub fn make(&self, rules: &[Rule<'_>]) {
        let mut request = Request::new(30, 1); // CreateAcls
        request.i32(i32::try_from(rules.len()).unwrap());
        for rule in rules {
            rule.write(&mut request);
        }
        // Of each: an error number and an empty text.
        let results = self.ask(&request);
        assert_eq!(results[4..], [0; 4].repeat(rules.len()), "refused: {}", String::from_utf8_lossy(&results));
        self.await_all(rules, true);
    }

    /// Unmakes rules, and returns when they hold no more.
    pub fn unmake(&self, rules: &[Rule<'_>]) {
        let mut request = Request::new(31, 1); // DeleteAcls
        request.i32(i32::try_from(rules.len()).unwrap());
        for rule in rules {
            rule.write(&mut request);
        }
        self.ask(&request);
        self.await_all(rules, false);
    }

    /// The controller has decided; what counts is what the broker knows.
    fn await_all(&self, rules: &[Rule<'_>], there: bool) {
        for rule in rules {
            wait::until_true("a rule that holds, or does no more", || self.knows(rule) == there);
        }
    }

    fn knows(&self, rule: &Rule<'_>) -> bool {
        let mut request = Request::new(29, 1); // DescribeAcls
        rule.write(&mut request);
        let answer = self.ask(&request);
        // An error number, a text or none, and how many resources there are to show.
        assert_eq!(answer[..2], [0, 0], "refused: {}", String::from_utf8_lossy(&answer));
        let text = i16::from_be_bytes([answer[2], answer[3]]);
        let at = 4 + usize::try_from(text).unwrap_or(0);
        answer[at..at + 4] != [0; 4]
    }

    /// The answer, after correlation and throttle time.
    fn ask(&self, request: &Request) -> Vec<u8> {
        let answer = request.send(&self.address).expect("the broker answers");
        answer.get(8..).expect("an answer has a head").to_vec()
    }
}
