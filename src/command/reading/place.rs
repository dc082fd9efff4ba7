//! Finds the election of a command and its partition. `--role` is looked up in the mapping of the candidates' hellos.

use std::time::Duration;

use neli::program::{Access, ElectionId, Elections, Key, clock};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::mapping::Mapping;
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use super::seen::no_answer;
use super::{Input, Reading, Unread};
use crate::exit::StartupError;
use crate::text::one_line;

/// At most this many records before the end of partition 0 are searched for a hello whose mapping contains the role.
const FARTHEST: Offset = 100_000;
/// If no hello contains it, the next reading begins this many times further back.
const FURTHER: Offset = 8;

/// An election, and its partition.
#[derive(Clone, Debug)]
pub(in crate::command) struct Place {
    pub(in crate::command) election: ElectionId,
    pub(in crate::command) elections: Elections,
    /// The number of partitions by which the candidates map roles to partitions, if it had to be found.
    pub(super) counted: Option<i32>,
}

impl Place {
    /// Finds the election: role 0's unless `--role` names another, which is then in `role_name`.
    ///
    /// # Errors
    /// There is no such role; or an error of [`Unread`].
    pub(in crate::command) async fn find(
        access: &Access,
        election: &ElectionId,
        timeout: Duration,
    ) -> Result<Self, Unread> {
        let Some(role) = &election.role_name else {
            return Ok(Self { elections: Elections::from(election), election: election.clone(), counted: None });
        };
        let deadline = clock::now() + timeout;
        // Two roles are requested, so that all hellos and the number of partitions are passed on.
        let elections = Elections { roles: 0..2, ..Elections::from(election) };
        let mut reading = Reading::start(access, &elections, Elections::PARTITION_OF_HELLOS)?;
        let mut span = FIRST_SPAN;
        let found = loop {
            let found = Hellos::read(&mut reading, span, deadline, timeout).await?;
            if found.mappings.iter().any(|mapping| mapping.find(role).is_some()) || found.is_whole || span >= FARTHEST {
                break found;
            }
            span = FARTHEST.min(span.saturating_mul(FURTHER));
            reading.begin_anew()?;
        };
        let partitions = reading.partitions.unwrap_or(1);
        Ok(Self::of(election, role, &found.mappings, partitions)?)
    }

    /// The election of the role with this name or number, by the last hello whose mapping contains it.
    fn of(election: &ElectionId, role: &str, mappings: &[Mapping], partitions: i32) -> Result<Self, StartupError> {
        let known = mappings.iter().rev().find_map(|mapping| Some((mapping, mapping.find(role)?)));
        let (number, names, counted) = match known {
            Some((mapping, number)) => {
                let names = mapping.names().iter().map(ToString::to_string).collect();
                // Partitions may have been added to the topic since these candidates counted them.
                let counted = i32::try_from(mapping.partitions()).ok().filter(|counted| *counted <= partitions);
                (number, names, counted.unwrap_or(partitions))
            }
            // No hello names the roles, so the number is taken for the partition.
            None => match role.parse() {
                Ok(number) if mappings.is_empty() => (number, Vec::new(), partitions),
                _ => return Err(StartupError::new(unknown(election, role, mappings))),
            },
        };
        let elections = Elections { roles: number..number + 1, names: names.into(), ..Elections::from(election) };
        Ok(Self { election: elections.election(number, counted), elections, counted: Some(counted) })
    }

    /// Whether the hellos are in another partition than the election's records.
    pub(super) const fn has_hellos_elsewhere(&self) -> bool {
        self.election.partition != Elections::PARTITION_OF_HELLOS
    }
}

/// One line: the role does not exist; these roles exist.
fn unknown(election: &ElectionId, role: &str, mappings: &[Mapping]) -> String {
    let (group, role) = (one_line(&election.group), one_line(role));
    match mappings.last() {
        Some(mapping) => format!("--role {role}: {group} has no such role; it has {}", one_line(&mapping.roles())),
        None => format!(
            "--role {role}: no candidate of {group} has said in topic \"{}\" how its roles are called; a number is found without that",
            election.topic
        ),
    }
}

/// The mappings in the hellos before the end of partition 0.
struct Hellos {
    /// Each mapping once, the newest last. That of a candidate that leaves is not newer for that.
    mappings: Vec<Mapping>,
    /// Whether the whole retained log was read.
    is_whole: bool,
}

impl Hellos {
    fn take_in(&mut self, hello: &[u8]) {
        let Some(hello) = ProcessHello::parse(hello) else { return };
        let mapping = hello.mapping();
        if hello.leaves {
            if !self.mappings.contains(&mapping) {
                self.mappings.insert(0, mapping);
            }
            return;
        }
        self.mappings.retain(|known| *known != mapping);
        self.mappings.push(mapping);
    }

    async fn read(reading: &mut Reading, span: Offset, deadline: Time, timeout: Duration) -> Result<Self, Unread> {
        let mut found = Self { mappings: Vec::new(), is_whole: false };
        let (mut known_end, mut next, mut trouble) = (None, 0, None);
        loop {
            match reading.next(Some(deadline)).await? {
                Input::Ends { start, end, .. } if known_end.is_none() => {
                    next = start.max(end - span);
                    found.is_whole = next == start;
                    known_end = Some(end);
                    reading.read_from(next);
                }
                Input::Record(record) => {
                    next = record.offset + 1;
                    if let (Key::AnyHello, Some(value)) = (record.key, record.value) {
                        found.take_in(&value);
                    }
                }
                Input::CaughtUp(caught_up) => next = next.max(caught_up),
                Input::Cut => return Err(reading.history_cut().into()),
                Input::Down(error) => trouble = Some(error),
                Input::Timeout => return Err(Unread::NoAnswer(no_answer(timeout, trouble))),
                Input::Ends { .. } | Input::Hello(_) | Input::Up | Input::Warning(_) => {}
            }
            if known_end.is_some_and(|end| next >= end) {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(role: &str, mappings: &[Mapping]) -> Result<(String, i32), String> {
        let election =
            ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: Some(role.into()) };
        let place = Place::of(&election, role, mappings, 3).map_err(|error| error.to_string())?;
        Ok((place.election.key(), place.election.partition))
    }

    #[test]
    fn a_role_is_found_by_name_and_by_number() {
        let named = [Mapping::of_one_role(), Mapping::new("a,b,c,d,e", 3)];
        assert_eq!(place("e", &named), Ok(("g/e".into(), 1)));
        assert_eq!(place("4", &named), Ok(("g/e".into(), 1)));
        assert_eq!(place("4", &[Mapping::new("5", 3)]), Ok(("g/4".into(), 1)));
        let renamed = [Mapping::new("a,b", 3), Mapping::new("a,b,c", 3)];
        assert_eq!(place("c", &renamed), Ok(("g/c".into(), 2)), "the last hello tells");
        assert_eq!(place("a", &[Mapping::new("a", 3)]), Ok(("g/a".into(), 0)));
    }

    #[test]
    fn a_role_is_where_the_candidates_have_it_and_not_in_a_partition_that_was_added() {
        assert_eq!(place("d", &[Mapping::new("a,b,c,d", 2)]), Ok(("g/d".into(), 1)));
        assert_eq!(place("d", &[Mapping::new("a,b,c,d", 100)]), Ok(("g/d".into(), 0)), "there is no partition 3");
    }

    /// A candidate that is refused because of its mapping says hello, is answered, and says that it leaves.
    #[test]
    fn a_candidate_that_leaves_does_not_say_where_a_role_is() {
        let mut hellos = Hellos { mappings: Vec::new(), is_whole: true };
        for (partitions, leaves) in [(2, false), (3, false), (2, false), (3, true)] {
            let hello = format!(
                r#"{{"v":1,"kind":"hello","member":"m","roles":"a,b,c","partitions":{partitions},"leaves":{leaves}}}"#
            );
            hellos.take_in(hello.as_bytes());
        }
        assert_eq!(hellos.mappings, [3, 2].map(|partitions| Mapping::new("a,b,c", partitions)));
        let mut only = Hellos { mappings: Vec::new(), is_whole: true };
        only.take_in(br#"{"v":1,"kind":"hello","member":"m","roles":"a","partitions":1,"leaves":true}"#);
        assert_eq!(only.mappings, [Mapping::new("a", 1)]);
    }

    #[test]
    fn an_unknown_role_is_refused_with_a_list_of_the_roles() {
        assert_eq!(place("x", &[Mapping::new("a,b", 3)]), Err("--role x: g has no such role; it has a, b".into()));
        assert_eq!(place("7", &[Mapping::new("5", 3)]), Err("--role 7: g has no such role; it has 0 to 4".into()));
        assert_eq!(place("1", &[Mapping::of_one_role()]), Err("--role 1: g has no such role; it has 0 alone".into()));
    }

    #[test]
    fn without_hellos_a_number_is_accepted() {
        assert_eq!(place("4", &[]), Ok(("g/4".into(), 1)));
        let message = place("x", &[]).unwrap_err();
        assert!(message.starts_with("--role x: no candidate of g has said in topic \"t\" "), "{message}");
    }
}
