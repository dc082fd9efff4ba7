//! `--roles` and its related options: the number or the names of the roles, whether they are spread, and how many
//! this process leads.

use anyhow::Result;
use neli_kafka::names::{LONGEST_ROLE, MOST_ROLES, is_role_name, reads_as_number, validate_roles};

use super::timings;
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Roles;

/// Options that exclude it, with the reason.
const RIVALS: [(&str, &str); 5] = [
    ("once", "the key would be done for each role"),
    ("overlap", "two jobs of one role never run at once"),
    ("schedule", "each role would have a schedule of its own"),
    ("window", "the window would be done for each role"),
    ("wait", "a role may be led by another for as long as it likes"),
];
/// Options that exclude it while roles are spread, with the reason.
const RIVALS_OF_SPREAD: [(&str, &str); 2] = [
    ("claim-delay", "each candidate is to take its share; --spread no goes with it"),
    ("priority", "each candidate is to have a share; --spread no goes with it"),
];

/// The roles, if given.
///
/// # Errors
/// It is neither a number nor a list of names, or excludes another option.
pub(super) fn validate(args: &ParsedArgs) -> Result<Option<Roles>> {
    let [spread, max_roles] = ["spread", "max-roles"].map(|long| args.setting(long));
    let are_spread = spread.one_of(&[("yes", true), ("no", false)])?;
    let most = if max_roles.is_given() { Some(count(&max_roles)?) } else { None };
    let Some(value) = args.value("roles") else {
        return match [spread, max_roles].iter().find(|setting| setting.is_given()) {
            Some(idle) => Err(idle.refuse("has no meaning without --roles")),
            None => Ok(None),
        };
    };
    let of_spread = RIVALS_OF_SPREAD.iter().filter(|_| are_spread);
    for (rival, why) in RIVALS.iter().chain(of_spread) {
        if let Some(rival) = args.value(rival).filter(Value::is_given) {
            return Err(value.refuse(format!("can't be combined with {}: {why}", rival.shown())));
        }
    }
    if let Some((preempt, _)) = timings::preemption(args)?.filter(|_| max_roles.is_given()) {
        let why = "it would ask the leaders of more roles than it may lead";
        return Err(max_roles.refuse(format!("can't be combined with {}: {why}", preempt.shown())));
    }
    let (count, names) = count_and_names(&value)?;
    Ok(Some(Roles { text: value.text()?.to_owned(), count, names, are_spread, most }))
}

/// `--role`: the role that a subcommand is about, by its name or number.
pub(super) fn one(args: &ParsedArgs) -> Result<Option<String>> {
    let Some(value) = args.value("role") else { return Ok(None) };
    let text = value.text()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_role_name(text) || (is_number && number(text).is_none_or(|number| number >= MOST_ROLES)) {
        let last = MOST_ROLES - 1;
        return Err(value.refuse(format!(
            "must be a role's name (1 to {LONGEST_ROLE} of a-z A-Z 0-9 . _ -) or its number (0 to {last})"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// The number of roles in `--roles`, and their names if they are named.
pub(super) fn count_and_names(value: &Value) -> Result<(u32, Vec<String>)> {
    let text = value.text()?;
    if reads_as_number(text) || text.is_empty() {
        return Ok((count(value)?, Vec::new()));
    }
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    validate_roles(&names).map_err(|error| value.refuse(error))?;
    Ok((u32::try_from(names.len()).unwrap_or(u32::MAX), names))
}

fn count(value: &Value) -> Result<u32> {
    let text = value.text()?;
    let is_count = |count: &u32| (1..=MOST_ROLES).contains(count);
    number(text).filter(is_count).ok_or_else(|| match number(text.trim_start_matches('0')).filter(is_count) {
        Some(meant) => value.refuse(format!("must be written without a zero before it: {meant}")),
        None => value.refuse(format!("must be a whole number from 1 to {MOST_ROLES}, in digits alone")),
    })
}

/// A number as it is written in a key, without leading zeros.
pub(super) fn number(text: &str) -> Option<u32> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|number| is_canonical && *number <= MOST_ROLES)
}
