//! The mapping of roles to partitions as a follower learns it from the candidates' hellos.
//!
//! Each candidate keeps the number of partitions that the topic had when it started, and says it in its hellos. If partitions were added
//! since, a follower that counted the topic's own partitions would look for roles where they have no records, and would find no leader.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::hello::Hello;
use crate::mapping::Mapping;
use crate::note::MOST_REPORTED;
use crate::precedence::HELLO_INTERVAL;
use crate::record::Offset;
use crate::time::Time;

/// A living candidate's hello is read at the latest this long after the end of the log was reached.
const HELLO_COMES_WITHIN: Duration = HELLO_INTERVAL.saturating_add(Duration::from_secs(5));

/// By how many partitions the candidates map the followed roles.
#[derive(Clone, Debug, Default)]
pub struct FollowedMapping {
    /// The followed roles, as they are typed in hellos.
    typed: Box<str>,
    /// The number of partitions in the last hello of a candidate that stands for roles; before there was one, that in any hello.
    counted: Option<u32>,
    /// The offset of the last hello that was read. After a change of the number the log is read again.
    last: Option<Offset>,
    /// From when on a hello would have been read if there were a candidate.
    known_from: Option<Time>,
    /// Whether the end of partition 0 was reached: what is read then was written just now.
    is_at_end: bool,
    /// The mappings that were reported because they don't fit the followed roles.
    reported: BTreeSet<String>,
}

impl FollowedMapping {
    /// The mapping of these roles, before a hello was read. `typed`: a number, or names with commas between them.
    pub fn new(typed: &str) -> Self {
        Self { typed: typed.into(), ..Self::default() }
    }

    /// The number of partitions by which the candidates map roles to partitions; `None` before one of them has said it.
    pub const fn counted(&self) -> Option<u32> {
        self.counted
    }

    /// From when on the mapping counts as known, so that a role without records is a role that nobody leads; `None` if that can't be said yet.
    pub const fn known_from(&self) -> Option<Time> {
        self.known_from
    }

    /// Handles a hello that was read in partition 0 at `offset`. Returns a warning if its writer stands for none of the followed roles, or maps one of
    /// them to another partition whatever the number of partitions is; once for each mapping. A candidate of other roles may have gone before the
    /// reading began: it counts when it says hello again.
    pub fn received(&mut self, now: Time, offset: Offset, hello: &Hello) -> Option<String> {
        if self.last.is_some_and(|last| offset <= last) {
            return None;
        }
        self.last = Some(offset);
        let other = hello.mapping();
        let own = Mapping::new(&self.typed, other.partitions());
        let name = hello.name.as_deref().unwrap_or(hello.member.as_str());
        let warning = Self::warning(&own, &other, name);
        // The writer of a first hello may be refused, since it counts partitions that were added under running candidates; and one that has gone
        // may have been replaced by one that counts another number.
        let stands = hello.takes_roles() && !hello.stands_for_no_role();
        let shares_role = own.shares_role(&other);
        // A candidate of one role uses partition 0 alone, so it counts none.
        if hello.roles.is_some() && shares_role && (stands || self.counted.is_none()) {
            self.counted = Some(other.partitions());
            self.known_from = Some(now);
        }
        let is_new =
            |reported: &mut BTreeSet<_>| reported.len() < MOST_REPORTED && reported.insert(other.shown("roles"));
        let is_there = !hello.leaves && (shares_role || self.is_at_end);
        warning.filter(|_| is_there && is_new(&mut self.reported))
    }

    fn warning(own: &Mapping, other: &Mapping, name: &str) -> Option<String> {
        if let Some((role, [here, there])) = own.conflict(other) {
            return Some(format!(
                "role {role} is looked for in partition {here}, and {name} has it in partition {there} ({}): its leader will not be found; \
                 follow the same roles in the same order",
                other.shown("roles")
            ));
        }
        (!own.shares_role(other)).then(|| {
            format!(
                "{name} stands in this group for other roles ({}), and for none of those that are followed ({}); follow the roles of the \
                 candidates",
                other.roles(),
                own.roles()
            )
        })
    }

    /// Notes that the end of partition 0 was reached. `is_whole`: everything that the log still holds was read, so that the hello of each
    /// living candidate was among it.
    pub fn caught_up(&mut self, now: Time, is_whole: bool) {
        self.is_at_end = true;
        let from = if is_whole { now } else { now + HELLO_COMES_WITHIN };
        self.known_from = Some(self.known_from.map_or(from, |known| known.min(from)));
    }

    /// Forgets the number of partitions: the history of partition 0 was cut, or the topic was created again.
    pub fn history_cut(&mut self) {
        (self.counted, self.last, self.known_from, self.is_at_end) = (None, None, None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn hello(roles: &str, rest: &str) -> Hello {
        let line = format!(r#"{{"v":1,"member":"m","name":"web2","seq":1,"kind":"hello","roles":"{roles}"{rest}}}"#);
        Hello::parse(line.as_bytes()).unwrap()
    }

    /// A mapping, and the offset of the next hello.
    struct Fixture(FollowedMapping, Offset);

    impl Fixture {
        fn new(typed: &str) -> Self {
            Self(FollowedMapping::new(typed), 0)
        }

        fn read(&mut self, hello: &Hello) -> Option<String> {
            self.1 += 1;
            self.0.received(Time::ZERO, self.1 - 1, hello)
        }
    }

    #[test]
    fn the_number_of_partitions_is_that_of_the_candidates_that_stand() {
        let mut mapping = Fixture::new("4");
        assert_eq!((mapping.0.counted(), mapping.0.known_from()), (None, None));
        assert_eq!(mapping.read(&hello("4", r#","partitions":2"#)), None);
        assert_eq!((mapping.0.counted(), mapping.0.known_from()), (Some(2), Some(Time::ZERO)));
        mapping.read(&hello("4", r#","partitions":3"#));
        assert_eq!(mapping.0.counted(), Some(2), "it may be refused");
        assert_eq!(mapping.read(&hello("4", r#","partitions":3,"joined":1"#)), None);
        assert_eq!(mapping.0.counted(), Some(3));
        for gone in [r#","leaves":true"#, r#","left":"0-3""#] {
            mapping.read(&hello("4", &format!(r#","partitions":2,"joined":0{gone}"#)));
            assert_eq!(mapping.0.counted(), Some(3), "it leads no role: {gone}");
        }
        mapping.0.received(Time::ZERO, 0, &hello("4", r#","partitions":2,"joined":0"#));
        assert_eq!(mapping.0.counted(), Some(3), "the log is read again");
        mapping.0.history_cut();
        mapping.1 = 0;
        assert_eq!((mapping.0.counted(), mapping.0.known_from()), (None, None));
        mapping.read(&hello("4", r#","partitions":2,"leaves":true"#));
        assert_eq!(mapping.0.counted(), Some(2), "its releases are there");
    }

    #[test]
    fn a_candidate_of_one_role_says_nothing_about_it() {
        let mut mapping = Fixture::new("4");
        let line = br#"{"v":1,"member":"m","seq":1,"kind":"hello"}"#;
        assert_eq!(mapping.read(&Hello::parse(line).unwrap()), None);
        assert_eq!((mapping.0.counted(), mapping.0.known_from()), (None, None));
    }

    /// It may have gone, unless it says hello after the end of the log was reached.
    #[test]
    fn a_candidate_of_one_role_is_reported_where_roles_have_names_and_the_other_way_round() {
        let of_one = Hello::parse(br#"{"v":1,"member":"m","name":"web2","seq":1,"kind":"hello"}"#).unwrap();
        for (typed, other, expected) in [
            (
                "a,b",
                &of_one,
                Some(
                    "web2 stands in this group for other roles (0 alone), and for none of those that are followed (a, b)",
                ),
            ),
            (
                "1",
                &hello("a,b", r#","partitions":2"#),
                Some(
                    "web2 stands in this group for other roles (a, b), and for none of those that are followed (0 alone)",
                ),
            ),
            ("1", &hello("4", r#","partitions":4,"joined":0"#), None),
            ("1", &of_one, None),
        ] {
            let mut mapping = Fixture::new(typed);
            assert_eq!(mapping.read(other), None);
            mapping.0.caught_up(Time::ZERO, false);
            let warning = mapping.read(other);
            assert_eq!(warning.as_deref().and_then(|warning| Some(warning.split_once("; ")?.0)), expected);
            assert_eq!(mapping.read(other), None, "once");
        }
    }

    #[test]
    fn other_roles_are_reported_once() {
        let mut mapping = Fixture::new("a,b,c");
        mapping.0.caught_up(Time::ZERO, true);
        let fits = hello("c,a,b", r#","partitions":1,"joined":0"#);
        assert_eq!(mapping.read(&fits), None, "one partition holds them all");
        let other_order = hello("b,a,c", r#","partitions":2,"joined":0"#);
        assert_eq!(
            mapping.read(&other_order).as_deref(),
            Some(
                "role a is looked for in partition 0, and web2 has it in partition 1 (roles b,a,c on 2 partitions): its leader will not \
                 be found; follow the same roles in the same order"
            )
        );
        assert_eq!(mapping.read(&other_order), None);
        let others = hello("x,y", r#","partitions":3,"joined":0"#);
        assert_eq!(
            mapping.read(&others).as_deref(),
            Some(
                "web2 stands in this group for other roles (x, y), and for none of those that are followed (a, b, c); follow the roles of \
                 the candidates"
            )
        );
        assert_eq!(mapping.read(&others), None);
        assert_eq!(mapping.0.counted(), Some(2), "of those that share a role");
    }

    #[test]
    fn without_a_hello_it_is_known_once_one_would_have_been_read() {
        let later = Time::ZERO + Duration::from_secs(10);
        let mut mapping = Fixture::new("4");
        mapping.0.caught_up(Time::ZERO, false);
        let due = Time::ZERO + HELLO_COMES_WITHIN;
        assert_eq!(mapping.0.known_from(), Some(due));
        mapping.0.caught_up(later, false);
        assert_eq!(mapping.0.known_from(), Some(due), "the first time counts");
        mapping.0.caught_up(later, true);
        assert_eq!(mapping.0.known_from(), Some(later), "none was in the whole log");
    }
}
