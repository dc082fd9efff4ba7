//! The Kafka keys of records: which election a record is of.

use super::LogRecord;

/// The Kafka key of an election's record, `<group>/<role>`, or of a hello, `<group>/<role>/hello`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ElectionKey<'a> {
    /// The group.
    pub group: &'a str,
    /// The role's name or number.
    pub role: &'a str,
    /// Whether it is that of a hello.
    pub is_hello: bool,
}

impl<'a> ElectionKey<'a> {
    /// The parts of a record's key; `None` if it is no election's.
    #[must_use]
    pub fn parse(key: &'a [u8]) -> Option<Self> {
        let key = core::str::from_utf8(key).ok()?;
        // The key of a role that is called `hello` ends like that of a hello, but has no other role before it.
        let of_hello = key.strip_suffix("/hello").filter(|label| label.contains('/'));
        let (label, is_hello) = of_hello.map_or((key, false), |label| (label, true));
        let (group, role) = label.rsplit_once('/')?;
        (!group.is_empty() && !role.is_empty()).then_some(Self { group, role, is_hello })
    }

    /// The same, if the record is of this group.
    pub(crate) fn of_group(key: &'a [u8], group: &'a str) -> Option<Self> {
        let (role, is_hello) = label_of_group(key, group)?;
        Some(Self { group, role: core::str::from_utf8(role).ok()?, is_hello })
    }
}

/// The label of the role, and whether it is the key of a hello, if the key is one of this group. Garbage may have any bytes as a label.
#[must_use]
pub fn label_of_group<'a>(key: &'a [u8], group: &str) -> Option<(&'a [u8], bool)> {
    let rest = key.strip_prefix(group.as_bytes())?.strip_prefix(b"/")?;
    let (label, is_hello) = rest.strip_suffix(b"/hello").map_or((rest, false), |label| (label, true));
    (!label.is_empty() && !label.contains(&b'/')).then_some((label, is_hello))
}

/// Whether a record is a hello of a candidate of the group, for any role.
#[must_use]
pub fn is_hello_of(group: &str, record: &LogRecord) -> bool {
    record.key.as_deref().and_then(|key| ElectionKey::of_group(key, group)).is_some_and(|key| key.is_hello)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_election() {
        let elections = ["a/0", "a/b/ingest", "a/0/hello", "a/hello", "a/hello/hello", "a", "/0", "a/", "", "/hello"]
            .map(|key| ElectionKey::parse(key.as_bytes()));
        let key = |group, role, is_hello| Some(ElectionKey { group, role, is_hello });
        let of_a = [key("a", "0", true), key("a", "hello", false), key("a", "hello", true)];
        let expected = [&[key("a", "0", false), key("a/b", "ingest", false)][..], &of_a, &[None; 5]].concat();
        assert_eq!(elections[..], expected);
        let of_b = |role, is_hello| Some(ElectionKey { group: "a/b", role, is_hello });
        assert_eq!(ElectionKey::of_group(b"a/b/hello", "a/b"), of_b("hello", false));
        assert_eq!(ElectionKey::of_group(b"a/b/c/hello", "a/b"), of_b("c", true));
        assert_eq!(ElectionKey::of_group(b"a/b/c/d", "a/b"), None);
    }
}
