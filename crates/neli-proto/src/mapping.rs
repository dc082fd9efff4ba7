//! The partition of each role. All candidates of an election must agree on it: two candidates that look for a role in different partitions
//! would both lead it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::role_set::RoleSet;

/// Maps roles to partitions: role `r`, counted from 0, is in partition `r` modulo the number of partitions.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Mapping {
    /// `--roles`, as typed.
    typed: Box<str>,
    /// The names of the roles, in the order in which they were typed; empty if the roles are numbers.
    names: Vec<Box<str>>,
    /// The number of roles.
    count: u32,
    partitions: u32,
}

impl Mapping {
    /// The mapping for a value of `--roles`: a number, or names with commas between them.
    pub fn new(typed: &str, partitions: u32) -> Self {
        let number = typed.trim().parse().ok();
        let names: Vec<Box<str>> =
            typed.split(',').map(|name| name.trim().into()).filter(|_| number.is_none()).collect();
        let count = number.unwrap_or_else(|| u32::try_from(names.len()).unwrap_or(u32::MAX));
        Self { typed: typed.into(), names, count, partitions: partitions.max(1) }
    }

    /// The mapping of a candidate without `--roles`: role 0 in partition 0.
    pub fn of_one_role() -> Self {
        Self::new("1", 1)
    }

    /// The roles that both mappings have, each by its number in this one and in the other.
    fn common<'a>(&'a self, other: &'a Self) -> Box<dyn Iterator<Item = (u32, u32)> + 'a> {
        if let Some(shared) = self.shared_numbers(other) {
            Box::new((0..shared).map(|number| (number, number)))
        } else if self.names.is_empty() {
            Box::new(other.common(self).map(|(there, here)| (here, there)))
        } else {
            Box::new((0..).zip(&self.names).filter_map(|(here, name)| Some((here, other.number(name)?))))
        }
    }

    /// The number of roles that both mappings have, if the roles of both are numbers.
    fn shared_numbers(&self, other: &Self) -> Option<u32> {
        (self.names.is_empty() && other.names.is_empty()).then(|| self.count.min(other.count))
    }

    /// The first role that the other mapping puts into another partition, with its partition here and there.
    pub(crate) fn conflict(&self, other: &Self) -> Option<(Box<str>, [u32; 2])> {
        let conflict = |(role, there): (u32, u32)| {
            let (here, there) = (role % self.partitions, there % other.partitions);
            (here != there).then(|| (self.label(role).into(), [here, there]))
        };
        if let Some(shared) = self.shared_numbers(other) {
            // Below the smaller number of partitions each role has a partition of its own; that number is the first role that wraps around.
            let first = self.partitions.min(other.partitions);
            return Some((first, first)).filter(|_| first < shared).and_then(conflict);
        }
        self.common(other).find_map(conflict)
    }

    /// Whether it is that of a candidate without `--roles`, or with one role that has no name.
    pub(crate) const fn is_of_one_role(&self) -> bool {
        self.names.is_empty() && self.count == 1
    }

    /// Why a candidate does not start beside the candidate `name`; `None` if the two agree.
    pub fn refusal(&self, other: &Self, name: &str) -> Option<Differs> {
        let how = if self.is_of_one_role() == other.is_of_one_role() {
            let (role, partitions) = self.conflict(other)?;
            Difference::Partition { role, partitions }
        } else {
            Difference::OneRole
        };
        Some(self.differs(other, name, how))
    }

    /// A warning that the candidate `name`, which has gone, had a role in another partition; `None` if it had not.
    pub(crate) fn warning_if_a_role_has_moved(&self, other: &Self, name: &str) -> Option<Differs> {
        let (role, partitions) = self.conflict(other)?;
        Some(self.differs(other, name, Difference::Moved { role, partitions }))
    }

    fn differs(&self, other: &Self, name: &str, how: Difference) -> Differs {
        Differs { own: self.clone(), other: other.clone(), name: name.into(), how }
    }

    /// Whether the mappings have a role in common. If not, they belong to different elections.
    pub(crate) fn shares_role(&self, other: &Self) -> bool {
        self.common(other).next().is_some()
    }

    /// The roles of this mapping, by its numbers, for which a candidate with the other mapping does not stand: those that the other mapping
    /// lacks, and those that the candidate has left, by the other mapping's numbers. On fewer partitions than roles two mappings may agree on
    /// each role's partition, and number the same names differently.
    pub(crate) fn roles_without(&self, other: &Self, left: &RoleSet) -> RoleSet {
        let (mut without, mut stands_for) = (RoleSet::of_first(self.count()), RoleSet::new());
        for (here, _) in self.common(other).filter(|(_, there)| !left.contains(*there)) {
            stands_for.insert(here);
        }
        without.remove(&stands_for);
        without
    }

    /// The number of roles for which a candidate with the other mapping stands, and which this mapping lacks. The candidate has left some of its
    /// roles, by the other mapping's numbers.
    pub(crate) fn roles_beyond(&self, other: &Self, left: &RoleSet) -> u32 {
        let mut lacking = other.roles_without(self, &RoleSet::new());
        lacking.remove(left);
        lacking.count()
    }

    /// A warning about the candidate `name`, if each has a role that the other lacks: a role may have been renamed, and run under both names. `None` also
    /// if the two do not stand side by side.
    pub(crate) fn warning_if_each_lacks_a_role(&self, other: &Self, name: &str) -> Option<Differs> {
        let each_lacks = !self.has_all_roles_of(other) && !other.has_all_roles_of(self);
        (each_lacks && self.refusal(other, name).is_none()).then(|| self.differs(other, name, Difference::Roles))
    }

    /// Whether each has all roles of the other, in whatever order.
    pub fn has_roles_of(&self, other: &Self) -> bool {
        self.has_all_roles_of(other) && other.has_all_roles_of(self)
    }

    fn has_all_roles_of(&self, other: &Self) -> bool {
        other.roles_without(self, &RoleSet::new()).is_empty()
    }

    /// The mapping, where `roles` is what a user gives the roles by.
    pub(crate) fn shown(&self, roles: &str) -> String {
        let Self { typed, partitions, .. } = self;
        if self.is_of_one_role() {
            return format!("no {roles}");
        }
        format!("{roles} {typed} on {partitions} partition{}", if *partitions == 1 { "" } else { "s" })
    }

    /// The names of the roles in their order; empty if the roles are numbers.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The role with this number as records and users call it: its name, or its number if it has none.
    pub(crate) fn label(&self, number: u32) -> String {
        self.names.get(number as usize).map_or_else(|| format!("{number}"), |name| String::from(&**name))
    }

    /// The label and the partition of each role, of at most so many.
    pub(crate) fn places(&self, most: u32) -> Vec<(String, i32)> {
        let partition = |number: u32| i32::try_from(number % self.partitions).unwrap_or_default();
        (0..self.count().min(most)).map(|number| (self.label(number), partition(number))).collect()
    }

    /// The number of partitions over which the roles are mapped.
    pub const fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The number of roles.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The roles in a form for users.
    pub fn roles(&self) -> String {
        match self.count.checked_sub(1) {
            _ if !self.names.is_empty() => self.names.join(", "),
            None | Some(0) => "0 alone".into(),
            Some(last) => format!("0 to {last}"),
        }
    }

    /// The number of the role that is called so, in records and by users: by its name where roles have names, otherwise by its number.
    pub fn number(&self, role: &str) -> Option<u32> {
        if self.names.is_empty() {
            let number: u32 = role.parse().ok()?;
            // A number counts only in the form that is written in keys.
            return (number < self.count && *format!("{number}") == *role).then_some(number);
        }
        u32::try_from(self.names.iter().position(|name| **name == *role)?).ok()
    }

    /// The same, if the role is in this partition.
    pub(crate) fn number_in(&self, partition: i32, role: &str) -> Option<u32> {
        self.number(role).filter(|number| i64::from(number % self.partitions) == i64::from(partition))
    }
}

/// Another candidate of the group has another mapping.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Differs {
    own: Mapping,
    other: Mapping,
    name: Box<str>,
    how: Difference,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Difference {
    /// One of the two stands for one role that has no name.
    OneRole,
    /// They look for a role in different partitions.
    Partition { role: Box<str>, partitions: [u32; 2] },
    /// The other one, which has gone, looked for a role in another partition.
    Moved { role: Box<str>, partitions: [u32; 2] },
    /// Each has a role that the other lacks.
    Roles,
}

impl Differs {
    /// Whether a third mapping has all roles that these two have in common.
    pub(crate) fn concerns_roles_of(&self, third: &Mapping) -> bool {
        let mut lacking = self.own.roles_without(third, &RoleSet::new());
        lacking.remove(&self.own.roles_without(&self.other, &RoleSet::new()));
        lacking.is_empty()
    }

    /// One line: how they differ, and what to do. `roles` and `group` are what a user gives these by: an option of the command line, or a method.
    pub fn line(&self, roles: &str, group: &str) -> String {
        let Self { own, other, name, how } = self;
        let [mine, theirs] = [own, other].map(|mapping| mapping.shown(roles));
        match how {
            Difference::OneRole => format!(
                "{mine}, and {name} stands in this group with {theirs}: all its candidates need the same {roles}, or none; stop all \
                 candidates before they start with another mapping"
            ),
            Difference::Partition { role, partitions: [here, there] } => format!(
                "{mine}: role {role} would be in partition {here}, and {name} has it in partition {there} ({theirs}): both would lead \
                 it; stop all candidates before they start with another mapping"
            ),
            Difference::Moved { role, partitions: [here, there] } => format!(
                "{mine}: role {role} is in partition {here}, and was in partition {there} when {name} stood ({theirs}): its fencing tokens, \
                 and perhaps those of other roles, may be lower than before; reset the highest one in stores that remember it"
            ),
            Difference::Roles => format!(
                "{name} stands in this group for other roles ({}) than those here ({}), and each list lacks a role of the other: each name is an \
                 election of its own, so the same work may run under two; give all candidates the same {roles}, or give candidates of other roles another {group}",
                other.roles(),
                own.roles()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(differs: &Differs) -> String {
        differs.line("--roles", "--group")
    }

    fn conflict(own: (&str, u32), other: (&str, u32)) -> Option<(Box<str>, u32, u32)> {
        let (own, other) = (Mapping::new(own.0, own.1), Mapping::new(other.0, other.1));
        let found = own.conflict(&other);
        assert_eq!(found.is_some(), other.conflict(&own).is_some());
        found.map(|(role, [here, there])| (role, here, there))
    }

    #[test]
    fn numbers_agree_if_the_partitions_do() {
        assert_eq!(conflict(("3", 3), ("1000", 3)), None, "more roles are no other mapping");
        assert_eq!(conflict(("3", 3), ("3", 4)), None, "none goes round");
        assert_eq!(conflict(("4", 3), ("4", 4)), Some(("3".into(), 0, 3)));
        assert_eq!(conflict(("4", 3), ("3", 4)), None);
        assert_eq!(conflict(("9", 3), ("1", 1)), None, "a candidate of one role");
    }

    #[test]
    fn the_same_roles_may_be_in_another_order() {
        let same = |own: &str, other: &str| {
            let (own, other) = (Mapping::new(own, 1), Mapping::new(other, 1));
            let same = own.has_roles_of(&other);
            assert_eq!(same, other.has_roles_of(&own));
            same
        };
        assert!(same("a,b", "b, a") && same("3", "3") && same("1,0", "2"));
        assert!(!same("a,b", "a,b,c") && !same("a,b", "a,c") && !same("2", "3") && !same("0,1,x", "2"));
    }

    #[test]
    fn names_agree_if_their_order_does() {
        assert_eq!(conflict(("a,b,c", 3), ("a,b,c,d", 3)), None);
        assert_eq!(conflict(("a,b,c", 3), ("b,a", 3)), Some(("a".into(), 0, 1)));
        assert_eq!(conflict(("a,b,c", 2), ("a,b,c", 3)), Some(("c".into(), 0, 2)));
        assert_eq!(conflict(("a,b", 2), ("c,d", 2)), None, "no role in common");
        assert_eq!(conflict(("a,b,c", 1), ("c,a", 1)), None, "one partition holds them all");
    }

    #[test]
    fn two_lists_of_which_each_lacks_a_role_of_the_other_are_reported() {
        let is_reported = |own: &str, other: &str| {
            let (own, other) = (Mapping::new(own, 3), Mapping::new(other, 3));
            let is_reported = own.warning_if_each_lacks_a_role(&other, "web2").is_some();
            assert_eq!(is_reported, other.warning_if_each_lacks_a_role(&own, "web1").is_some());
            is_reported
        };
        assert!(is_reported("a,b,c", "a,b,d"), "c may be called d now");
        assert!(!is_reported("5", "2") && !is_reported("a,b,c", "a,b"), "one is added");
        assert!(!is_reported("1,x", "x,1") && !is_reported("a,b,c", "c,d,e"), "one of the two is refused");
        assert!(is_reported("5", "a,b") && is_reported("a,b", "c,d") && is_reported("2", "01,7"));
        assert!(is_reported("2", "0,x") && !is_reported("2", "0"), "a name like a number");
        assert!(!is_reported("a", "1"), "a candidate of one role is refused");
        assert!(!is_reported("5", "0"), "it stands for none");
        assert_eq!(
            Mapping::new("5", 5)
                .warning_if_each_lacks_a_role(&Mapping::new("a,b", 5), "web2")
                .as_ref()
                .map(line)
                .as_deref(),
            Some(
                "web2 stands in this group for other roles (a, b) than those here (0 to 4), and each list lacks a role of the other: each name \
                 is an election of its own, so the same work may run under two; give all candidates the same --roles, or give candidates of \
                 other roles another --group"
            )
        );
    }

    #[test]
    fn a_name_may_look_like_a_number() {
        assert_eq!(conflict(("1,0", 2), ("2", 2)), Some(("1".into(), 0, 1)));
        assert_eq!(conflict(("x,01", 2), ("2", 2)), None, "01 is not called 1");
        assert_eq!(conflict(("x,0", 2), ("1", 1)), Some(("0".into(), 1, 0)));
    }

    #[test]
    fn the_roles_without_another_candidate() {
        for (own, other, left, without) in [
            ("a,b,c", "a,b,c", "0,2", "0,2"),
            ("a,b,c", "c,b,a", "0-1", "1-2"),
            ("a,b,c", "a,b", "1", "1-2"),
            ("a,b", "x,b,y", "0", "0"),
            ("x,0", "2", "1", "0"),
            ("x,0", "2", "0", "0-1"),
            ("9", "5", "1-3", "1-3,5-8"),
            ("5", "9", "1-3,7", "1-3"),
            ("4", "2,x,0", "", "1,3"),
            ("4", "2,x,0", "0-1", "1-3"),
            ("4", "x", "", "0-3"),
        ] {
            let (mapping, left) = (Mapping::new(own, 1), RoleSet::parse(left));
            assert_eq!(mapping.roles_without(&Mapping::new(other, 1), &left).text(), without, "{own} beside {other}");
        }
    }

    #[test]
    fn the_roles_of_another_candidate_that_this_process_does_not_have() {
        for (own, other, left, beyond) in [
            ("4", "6", "", 2),
            ("4", "9", "0-1,5-6,8", 2),
            ("6", "4", "", 0),
            ("a,b", "a,b,c,d", "3", 1),
            ("a,b", "d,b,c,a", "0-1", 1),
            ("a", "4", "", 4),
            ("4", "4", "1", 0),
        ] {
            let (mapping, left) = (Mapping::new(own, 1), RoleSet::parse(left));
            assert_eq!(mapping.roles_beyond(&Mapping::new(other, 1), &left), beyond, "{own} beside {other}");
        }
    }

    #[test]
    fn a_role_with_a_name_has_no_number_for_users() {
        let (named, numbered) = (Mapping::new("ingest,bill", 3), Mapping::new("7", 3));
        assert_eq!(["bill", "1", "01", ""].map(|role| named.number(role)), [Some(1), None, None, None]);
        assert_eq!(["6", "7", "06", "bill"].map(|role| numbered.number(role)), [Some(6), None, None, None]);
        assert_eq!((named.roles().as_str(), numbered.roles().as_str()), ("ingest, bill", "0 to 6"));
        assert_eq!(Mapping::of_one_role().roles(), "0 alone");
        assert_eq!([named, numbered, Mapping::of_one_role()].map(|mapping| mapping.count()), [2, 7, 1]);
    }

    #[test]
    fn a_refusal_names_the_other_candidate() {
        let (own, other) = (Mapping::new("4", 4), Mapping::new("4", 3));
        assert_eq!(
            own.refusal(&other, "web2").as_ref().map(line).as_deref(),
            Some(
                "--roles 4 on 4 partitions: role 3 would be in partition 3, and web2 has it in partition 0 (--roles 4 on 3 partitions): \
                 both would lead it; stop all candidates before they start with another mapping"
            )
        );
        assert_eq!(
            own.warning_if_a_role_has_moved(&other, "web2").as_ref().map(line).as_deref(),
            Some(
                "--roles 4 on 4 partitions: role 3 is in partition 3, and was in partition 0 when web2 stood (--roles 4 on 3 partitions): its \
                 fencing tokens, and perhaps those of other roles, may be lower than before; reset the highest one in stores that remember it"
            )
        );
        let (alone, rest) = (
            Mapping::of_one_role(),
            "all its candidates need the same --roles, or none; stop all candidates before they start with another mapping",
        );
        let refused = format!("--roles 4 on 4 partitions, and web1 stands in this group with no --roles: {rest}");
        assert_eq!(own.refusal(&alone, "web1").as_ref().map(line), Some(refused));
        let named = Mapping::new("ingest,bill", 2);
        let refused =
            format!("no --roles, and web1 stands in this group with --roles ingest,bill on 2 partitions: {rest}");
        assert_eq!(alone.refusal(&named, "web1").as_ref().map(line), Some(refused));
        assert_eq!(alone.refusal(&Mapping::new("1", 3), "web1"), None, "the same");
    }
}
