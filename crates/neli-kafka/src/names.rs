//! Names of elections, topics and candidates.

/// The longest name of a candidate, in bytes: a record must fit 1 KiB, and JSON may need two bytes for one.
pub const LONGEST_NAME: usize = 255;
/// The longest name of a topic, by Kafka's rule, and of an election, in bytes.
pub const LONGEST_TOPIC: usize = 249;

/// The most roles of a group.
pub const MOST_ROLES: u32 = 10_000;
/// The longest name of a role, in bytes.
pub const LONGEST_ROLE: usize = 64;
/// All names of roles together, with commas between them: a hello has them, and must fit 1 KiB.
const LONGEST_ROLE_LIST: usize = 400;

/// The rule for the name of a topic.
pub const TOPIC: &str = "1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..";

/// The name of this machine; none if it can't be read, or is no text.
pub fn host() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}

/// The default name of a candidate: `<host>:<pid>`.
pub fn of_process() -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    format!("{}:{}", host.to_string_lossy(), std::process::id())
}

/// Whether Kafka allows this name for a topic.
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

/// Checks the name of an election.
///
/// # Errors
///
/// What would be right.
pub fn validate_group(name: &str) -> Result<(), String> {
    validate_visible(name, LONGEST_TOPIC)
}

/// Checks a name of which two that look the same would be two.
///
/// # Errors
///
/// What would be right.
pub fn validate_visible(name: &str, longest: usize) -> Result<(), String> {
    validate(name, longest)?;
    let refused =
        |invisible: char| Err(format!("must have no invisible characters, such as its {}", invisible.escape_unicode()));
    name.chars().find(|character| is_invisible(*character)).map_or(Ok(()), refused)
}

/// Whether nobody can see the character: one of Unicode's format characters, or its separators of lines and paragraphs.
pub const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Whether this may be a role's name or number.
pub fn is_role_name(name: &str) -> bool {
    let is_plain = name.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
    is_plain && (1..=LONGEST_ROLE).contains(&name.len())
}

/// A role's number as it is written in a key: in digits alone, without a 0 before them.
pub fn role_number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text)
}

/// Whether this reads as a number, also in another notation than that of a role's number: `07`, `-1`, `1.5`, `1e3`, `0x4`.
pub fn reads_as_number(text: &str) -> bool {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let digits = plain.trim_start_matches(['-', '+']);
    let is_of_radix =
        |(prefix, radix)| digits.strip_prefix(prefix).is_some_and(|of| u128::from_str_radix(of, radix).is_ok());
    // A word may be the name of such a number: inf.
    [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().any(is_of_radix)
        || (plain.contains(|digit: char| digit.is_ascii_digit()) && plain.parse::<f64>().is_ok())
}

/// Checks the names of a group's roles.
///
/// # Errors
///
/// Which is wrong, and what would be right.
pub fn validate_roles<T: AsRef<str>>(names: &[T]) -> Result<(), String> {
    for (at, name) in names.iter().enumerate() {
        let name = name.as_ref();
        // The key of a hello ends like that of such a role.
        if !is_role_name(name) || reads_as_number(name) || name == "hello" {
            return Err(format!(
                "'{name}' is no name for a role: must be 1 to {LONGEST_ROLE} of a-z A-Z 0-9 . _ -, and neither a number nor hello"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_as_a_number_is_no_name_of_a_role() {
        for number in ["3", "03", "-1", "1.5", "1e3", "1E-3", "0x4", "0XFF", "0b1", "1_000", "-0", ".5", "5."] {
            assert!(reads_as_number(number), "{number}");
            let refusal = validate_roles(&["a", number]).unwrap_err();
            assert!(refusal.starts_with(&format!("'{number}' is no name for a role")), "{refusal}");
        }
        for name in
            ["ingest", "v1", "1st", "eu-1", "1.2.3", "2024-01", "0xy", "0x", "0b2", "inf", "nan", "e3", "-", "."]
        {
            assert_eq!(validate_roles(&[name]), Ok(()), "{name}");
        }
    }
}
