//! Finds the elections of a command and their partitions, by the hellos of the group's candidates: that of `--role`, or those of all roles.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use neli_kafka::names::MOST_ROLES;
use neli_kafka::{ElectionId, Elections, IfMissing};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::mapping::Mapping;
use neli_proto::observer::{GroupHellos, Place};
use neli_proto::record::Offset;

use super::{Limit, Reading};
use crate::command::look::Look;
use crate::text::one_line;

/// At most this many records before the end of partition 0 are searched for a hello whose mapping contains the role.
const FARTHEST: Offset = 100_000;
/// If no hello contains it, the next reading begins this many times further back.
const FURTHER: Offset = 8;

/// The elections of a command, in the order of their roles' numbers.
#[derive(Clone, Debug)]
pub(in crate::command) struct FoundElections {
    /// Never empty.
    pub(in crate::command) elections: Vec<ElectionId>,
    /// The roles of the group's candidates, if they have several or if these have names.
    pub(in crate::command) mapping: Option<Mapping>,
}

impl FoundElections {
    /// Finds the role of `--role`, which is in its election's `role_name`, or otherwise all roles of the group. `tell` gets why Kafka does not
    /// answer, at once.
    ///
    /// # Errors
    /// There is no such role; or as for [`Reading::bounds`].
    pub(in crate::command) async fn find(look: &Look, tell: fn(&str)) -> Result<Self> {
        let Look { election, access, timeout, .. } = look;
        let limit = Limit::of_all(*timeout);
        let mut span = FIRST_SPAN;
        loop {
            // Two roles are requested, so that the number of partitions is passed on.
            let of_two = Elections { roles: 0..2, ..Elections::from(election) };
            let of_hellos = BTreeSet::from([Elections::PARTITION_OF_HELLOS]);
            let mut reading = Reading::start(access, of_two, of_hellos, IfMissing::Refuse)?.telling(tell);
            let bounds = reading.read_to_end(limit, |bounds| bounds.last(span), |_, _| {}).await?;
            let hellos = reading.topic.hellos(&election.group).cloned().unwrap_or_default();
            let is_found = match &election.role_name {
                Some(role) => hellos.find(role).is_some(),
                None => !hellos.mappings().is_empty(),
            };
            if is_found || bounds.last(span) == bounds.start || span >= FARTHEST {
                return Self::of(election, &hellos, reading.partitions.unwrap_or(1));
            }
            span = FARTHEST.min(span.saturating_mul(FURTHER));
        }
    }

    fn of(election: &ElectionId, hellos: &GroupHellos, partitions: i32) -> Result<Self> {
        let mappings = hellos.mappings();
        let mapping = hellos.all_roles(MOST_ROLES);
        let (of_role, roles) = match &election.role_name {
            Some(role) => match (hellos.find(role), &mapping) {
                (Some((of_role, number)), _) => (Some(of_role), number..number + 1),
                // No hello names the roles, so the number is taken for the partition.
                (None, None) => {
                    (None, role.parse().map(|number| number..number + 1).map_err(|_| unnamed(election, role))?)
                }
                (None, Some(mapping)) => bail!(unknown(election, role, mapping)),
            },
            None => (mapping.clone(), 0..mapping.as_ref().map_or(1, Mapping::count).min(MOST_ROLES)),
        };
        let names = of_role.iter().flat_map(Mapping::names).map(ToString::to_string).collect();
        let keys = Elections { roles, names, ..Elections::from(election) };
        // Partitions may have been added to the topic since these candidates counted them.
        let counted =
            |mapping: &Mapping| i32::try_from(mapping.partitions()).ok().filter(|counted| *counted <= partitions);
        let mapping = mapping.filter(|mapping| *mapping != Mapping::of_one_role());
        let elections = keys.roles.clone().map(|role| {
            let election = keys.election(role, partitions);
            let label = election.label();
            let place =
                mappings.iter().chain(&of_role).find_map(|mapping| Some((mapping.number(&label)?, counted(mapping)?)));
            let partition =
                place.map_or(election.partition, |(number, counted)| Elections::partition_of(number, counted));
            // So that messages about role 0 of several do not name the group alone.
            let role_name = mapping.as_ref().map(|_| label).or(election.role_name.clone());
            ElectionId { partition, role_name, ..election }
        });
        Ok(Self { elections: elections.collect(), mapping })
    }

    /// Begins to read the elections and the hellos of their candidates.
    ///
    /// # Errors
    ///
    /// As for [`Reading::start`].
    pub(in crate::command) fn read(&self, look: &Look) -> Result<Reading> {
        let partitions = self.elections.iter().map(|election| election.partition);
        let partitions = partitions.chain([Elections::PARTITION_OF_HELLOS]).collect();
        let of_topic = Elections { roles: 0..1, ..Elections::from(&look.election) };
        Reading::start(&look.access, of_topic, partitions, IfMissing::Refuse)
    }

    /// The only election.
    ///
    /// # Errors
    ///
    /// There are several, and this says what is to be given.
    pub(in crate::command) fn one(&self, otherwise: &str) -> Result<&ElectionId> {
        let group = match self.elections.as_slice() {
            [one] => return Ok(one),
            several => several.first().map_or("", |first| &first.group),
        };
        let roles = self.mapping.as_ref().map(Mapping::roles).unwrap_or_default();
        Err(anyhow!("{} has the roles {}: {otherwise}", one_line(group), one_line(&roles)))
    }

    /// The sentence about one of the elections, which it names if there are several.
    pub(super) fn of_role(&self, place: &Place, sentence: String) -> String {
        if self.elections.len() == 1 { sentence } else { format!("{}: {sentence}", place.role) }
    }

    /// Each election alone.
    pub(in crate::command) fn each(&self) -> impl Iterator<Item = Self> + '_ {
        self.elections.iter().map(|election| Self { elections: vec![election.clone()], ..self.clone() })
    }
}

/// One line: the role does not exist; these roles exist.
fn unknown(election: &ElectionId, role: &str, mapping: &Mapping) -> String {
    let (group, role) = (one_line(&election.group), one_line(role));
    let is_number = role.parse::<u32>().is_ok();
    let has = if is_number && !mapping.names().is_empty() { "roles with names:" } else { "no such role; it has" };
    format!("--role {role}: {group} has {has} {}", one_line(&mapping.roles()))
}

/// The error that no hello names the roles.
fn unnamed(election: &ElectionId, role: &str) -> anyhow::Error {
    anyhow!(
        "--role {}: no candidate of {} has said in topic \"{}\" how its roles are called; a number is found without that",
        one_line(role),
        one_line(&election.group),
        election.topic
    )
}

#[cfg(test)]
mod tests {
    use neli_proto::hello::Hello;

    use super::*;
    use crate::command::reading::read_at;

    /// The hellos of candidates with these mappings, the newest last.
    fn hellos(mappings: &[(&str, u32, bool)]) -> GroupHellos {
        let mut hellos = GroupHellos::default();
        for (offset, (roles, partitions, leaves)) in (0..).zip(mappings) {
            let line = format!(
                r#"{{"v":1,"kind":"hello","member":"{roles}","roles":"{roles}","partitions":{partitions},"joined":0,"leaves":{leaves}}}"#
            );
            hellos.read(read_at(), offset, Hello::parse(line.as_bytes()).expect("a hello"), None);
        }
        hellos
    }

    fn places(role: Option<&str>, mappings: &[(&str, u32, bool)]) -> Result<Vec<(String, i32)>, String> {
        let role_name = role.map(Into::into);
        let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name };
        let found = FoundElections::of(&election, &hellos(mappings), 3).map_err(|error| error.to_string())?;
        Ok(found.elections.iter().map(|election| (election.key(), election.partition)).collect())
    }

    fn place(role: &str, mappings: &[(&str, u32, bool)]) -> Result<(String, i32), String> {
        places(Some(role), mappings).map(|mut places| places.remove(0))
    }

    #[test]
    fn without_a_role_all_of_the_group_are_meant() {
        let all = places(None, &[("ingest,bill", 3, false)]);
        assert_eq!(all, Ok(vec![("g/ingest".into(), 0), ("g/bill".into(), 1)]));
        let all = places(None, &[("4", 3, false)]).expect("four");
        assert_eq!(all.iter().map(|(_, partition)| *partition).collect::<Vec<_>>(), [0, 1, 2, 0]);
        assert_eq!(places(None, &[]), Ok(vec![("g/0".into(), 0)]), "nobody has said hello");
        let mixed = [("2", 3, false), ("x,y,z", 2, false)];
        let all = places(None, &mixed).expect("five");
        let all: Vec<_> = all.iter().map(|(key, partition)| (key.as_str(), *partition)).collect();
        assert_eq!(all, [("g/x", 0), ("g/y", 1), ("g/z", 0), ("g/0", 0), ("g/1", 1)]);
        assert_eq!((place("z", &mixed), place("1", &mixed)), (Ok(("g/z".into(), 0)), Ok(("g/1".into(), 1))));
        assert_eq!(places(None, &[("a,b", 1, false), ("b,c", 1, false)]).expect("three").len(), 3);
        for of_stranger in [vec![("4000000000", 3, false)], vec![("4000000000", 3, false), ("x", 3, false)]] {
            assert!(places(None, &of_stranger).expect("roles").len() <= MOST_ROLES as usize + 1);
        }
    }

    #[test]
    fn a_command_that_acts_on_one_role_does_not_take_several() {
        let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: None };
        let found = |mappings| FoundElections::of(&election, &hellos(mappings), 3).expect("elections");
        let otherwise = "--role says which is meant";
        let error = found(&[("ingest,bill", 3, false)]).one(otherwise).expect_err("two").to_string();
        assert_eq!(error, "g has the roles ingest, bill: --role says which is meant");
        assert_eq!(found(&[("ingest", 3, false)]).one(otherwise).expect("one").key(), "g/ingest");
        let each: Vec<String> = found(&[("2", 3, false)]).each().map(|found| found.elections[0].key()).collect();
        assert_eq!(each, ["g/0", "g/1"]);
    }

    #[test]
    fn a_role_is_found_by_its_name_or_else_by_its_number() {
        assert_eq!(place("e", &[("a,b,c,d,e", 3, false)]), Ok(("g/e".into(), 1)));
        assert_eq!(place("4", &[("5", 3, false)]), Ok(("g/4".into(), 1)));
        let renamed = [("a,b", 3, false), ("a,b,c", 3, false)];
        assert_eq!(place("c", &renamed), Ok(("g/c".into(), 2)));
        assert_eq!(place("a", &[("a", 3, false)]), Ok(("g/a".into(), 0)));
    }

    #[test]
    fn a_role_is_where_the_candidates_have_it_and_not_in_a_partition_that_was_added() {
        assert_eq!(place("d", &[("a,b,c,d", 2, false)]), Ok(("g/d".into(), 1)));
        assert_eq!(place("d", &[("a,b,c,d", 100, false)]), Ok(("g/d".into(), 0)), "there is no partition 3");
    }

    /// The same list under another name of the candidate would be the same mapping.
    #[test]
    fn a_candidate_that_leaves_does_not_say_where_a_role_is() {
        assert_eq!(place("a", &[("x,a", 2, false), ("a,x", 2, true)]), Ok(("g/a".into(), 1)));
        assert_eq!(place("a", &[("a,x", 2, true)]), Ok(("g/a".into(), 0)), "the only one");
    }

    #[test]
    fn an_unknown_role_is_refused_with_a_list_of_the_roles() {
        let named = [("a,b", 3, false)];
        assert_eq!(place("x", &named), Err("--role x: g has no such role; it has a, b".into()));
        assert_eq!(place("0", &named), Err("--role 0: g has roles with names: a, b".into()));
        assert_eq!(place("7", &[("5", 3, false)]), Err("--role 7: g has no such role; it has 0 to 4".into()));
    }

    #[test]
    fn without_hellos_a_number_is_accepted() {
        assert_eq!(place("4", &[]), Ok(("g/4".into(), 1)));
        let message = place("x", &[]).unwrap_err();
        assert!(message.starts_with("--role x: no candidate of g has said in topic \"t\" "), "{message}");
    }
}
