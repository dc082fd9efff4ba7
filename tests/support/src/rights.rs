//! ACLs of a broker that has an authorizer, granted and revoked while it runs.
//!
//! rust-rdkafka has no call for ACLs, and Kafka's own tool takes seconds to start. So the three requests are encoded by hand.

use crate::kafka::Kafka;
use crate::request::Request;
use crate::wait;

/// The resource of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource<'a> {
    /// The cluster itself.
    Cluster,
    /// A consumer group; `*` means any.
    Group(&'a str),
    /// A topic; `*` means any.
    Topic(&'a str),
}

/// The operation of a rule, with the protocol's number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "Kafka's own names")]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Describe = 8,
    DescribeConfigs = 10,
}

/// Whether a rule allows or denies, with the protocol's number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Permission {
    Deny = 2,
    Allow = 3,
}

/// A user, a resource, an operation, and whether it is allowed; for connections from any host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    user: &'a str,
    resource: Resource<'a>,
    operation: Operation,
    permission: Permission,
}

impl<'a> Rule<'a> {
    /// A rule that allows.
    #[must_use]
    pub const fn allow(user: &'a str, resource: Resource<'a>, operation: Operation) -> Self {
        Self { user, resource, operation, permission: Permission::Allow }
    }

    /// A rule that denies, which takes precedence. (READ and WRITE imply DESCRIBE, so only a denial can remove DESCRIBE.)
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

    /// Encodes the rule, or the filter that matches exactly this rule: both have the same encoding.
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

/// Changes the rules of a broker as its superuser, because every client of that listener is one.
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

    /// Creates rules, and returns when they are in effect.
    pub fn make(&self, rules: &[Rule<'_>]) {
        let mut request = Request::new(30, 1); // CreateAcls
        request.i32(i32::try_from(rules.len()).unwrap());
        for rule in rules {
            rule.write(&mut request);
        }
        // Each result is an error code and an empty text.
        let results = self.ask(&request);
        assert_eq!(results[4..], [0; 4].repeat(rules.len()), "refused: {}", String::from_utf8_lossy(&results));
        self.await_all(rules, true);
    }

    /// Deletes rules, and returns when they are no longer in effect.
    pub fn unmake(&self, rules: &[Rule<'_>]) {
        let mut request = Request::new(31, 1); // DeleteAcls
        request.i32(i32::try_from(rules.len()).unwrap());
        for rule in rules {
            rule.write(&mut request);
        }
        self.ask(&request);
        self.await_all(rules, false);
    }

    /// Waits until the broker itself applies the rules, because the controller's answer does not show that.
    fn await_all(&self, rules: &[Rule<'_>], there: bool) {
        for rule in rules {
            wait::until_true("a rule that holds, or does no more", || self.knows(rule) == there);
        }
    }

    fn knows(&self, rule: &Rule<'_>) -> bool {
        let mut request = Request::new(29, 1); // DescribeAcls
        rule.write(&mut request);
        let answer = self.ask(&request);
        // The answer begins with an error code, an optional text, and the number of resources.
        assert_eq!(answer[..2], [0, 0], "refused: {}", String::from_utf8_lossy(&answer));
        let text = i16::from_be_bytes([answer[2], answer[3]]);
        let at = 4 + usize::try_from(text).unwrap_or(0);
        answer[at..at + 4] != [0; 4]
    }

    /// The answer, after the correlation id and the throttle time.
    fn ask(&self, request: &Request) -> Vec<u8> {
        let answer = request.send(&self.address).expect("the broker answers");
        answer.get(8..).expect("an answer has a head").to_vec()
    }
}
