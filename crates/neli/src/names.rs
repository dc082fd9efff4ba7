//! Names of elections, topics and candidates.

/// The longest name of an election, in bytes: what Kafka lets a topic's name be.
pub const LONGEST_GROUP: usize = 249;
/// The longest name of a candidate, in bytes: a record must fit 1 KiB, and JSON may need two bytes for one.
pub const LONGEST_NAME: usize = 255;
/// The longest name that Kafka lets a topic have.
pub const LONGEST_TOPIC: usize = 249;

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
