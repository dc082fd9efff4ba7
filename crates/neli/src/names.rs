//! Names of elections, topics and candidates.

/// The longest name of an election, in bytes: what Kafka lets a topic's name be.
pub const LONGEST_GROUP: usize = 249;
/// The longest name of a candidate, in bytes: a record must fit 1 KiB, and JSON may need two bytes for one.
pub const LONGEST_NAME: usize = 255;
/// The longest name that Kafka lets a topic have.
pub const LONGEST_TOPIC: usize = 249;

/// The most roles of a group.
pub const MOST_ROLES: u32 = 10_000;
/// The longest name of a role, in bytes.
pub const LONGEST_ROLE: usize = 64;
/// All names of roles together, with commas between them: a hello has them, and must fit 1 KiB.
const LONGEST_ROLE_LIST: usize = 400;

/// What the name of a topic must be.
pub const TOPIC: &str = "1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..";

/// How this machine is called; none where that can't be known, or is no text.
#[must_use]
pub fn host() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}

/// How a candidate is called that was given no name: `<host>:<pid>`.
#[must_use]
pub fn of_process() -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    format!("{}:{}", host.to_string_lossy(), std::process::id())
}

/// Whether Kafka lets a topic be called so.
#[must_use]
pub fn is_topic(name: &str) -> bool {
    let fits = (1..=LONGEST_TOPIC).contains(&name.len());
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
    fits && plain && name != "." && name != ".."
}

/// Checks the name of an election or of a candidate.
///
/// # Errors
///
/// What would be right.
pub fn validate(name: &str, longest: usize) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("must not be blank".to_owned());
    }
    if name.len() > longest {
        return Err(format!("must be at most {longest} bytes, and has {}", name.len()));
    }
    if name.contains(char::is_control) {
        return Err("must have no control characters".to_owned());
    }
    Ok(())
}

/// Whether a role may be called so, by a name or a number.
#[must_use]
pub fn is_role_name(name: &str) -> bool {
    let is_plain = name.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
    is_plain && (1..=LONGEST_ROLE).contains(&name.len())
}

/// Checks the names of a group's roles.
///
/// # Errors
///
/// Which is wrong, and what would be right.
pub fn validate_roles<T: AsRef<str>>(names: &[T]) -> Result<(), String> {
    for (at, name) in names.iter().enumerate() {
        let name = name.as_ref();
        if !is_role_name(name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!(
                "'{name}' is no name for a role: must be 1 to {LONGEST_ROLE} of a-z A-Z 0-9 . _ -, and no number"
            ));
        }
        if names[..at].iter().any(|known| known.as_ref() == name) {
            return Err(format!("'{name}' is named twice"));
        }
    }
    let length = names.iter().map(|name| name.as_ref().len() + 1).sum::<usize>().saturating_sub(1);
    if length > LONGEST_ROLE_LIST {
        return Err(format!("must be at most {LONGEST_ROLE_LIST} bytes, and has {length}; a number is shorter"));
    }
    Ok(())
}
