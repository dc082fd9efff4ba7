//! `--stop-signal`: by name, with or without SIG, or by number.

use anyhow::Result;
use nix::libc;
use nix::sys::signal::Signal;

use crate::cli::parsed_args::Value;

/// The signal's number; `None` for `none`.
pub(super) fn validate(value: &Value) -> Result<Option<i32>> {
    let text = value.text()?;
    if text == "none" {
        return Ok(None);
    }
    let Some(number) = number(text) else {
        return Err(value.refuse(format!(
            "must be a signal's name or number, such as TERM, SIGINT, 15 or RTMIN+1 (numbers 1 to {}), or none",
            libc::SIGRTMAX()
        )));
    };
    match why_not(number) {
        Some(why) => Err(value.refuse(why)),
        None => Ok(Some(number)),
    }
}

fn number(text: &str) -> Option<i32> {
    let known = |number: &i32| Signal::try_from(*number).is_ok() || is_real_time(*number);
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(known);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let offset = |digits: &str| digits.parse::<i32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if name == "RTMIN" {
        return Some(libc::SIGRTMIN());
    }
    if name == "RTMAX" {
        return Some(libc::SIGRTMAX());
    }
    if let Some(above) = name.strip_prefix("RTMIN+") {
        return offset(above)
            .map(|above| libc::SIGRTMIN().saturating_add(above))
            .filter(|number| is_real_time(*number));
    }
    if let Some(below) = name.strip_prefix("RTMAX-") {
        return offset(below)
            .map(|below| libc::SIGRTMAX().saturating_sub(below))
            .filter(|number| is_real_time(*number));
    }
    format!("SIG{name}").parse::<Signal>().ok().map(|signal| signal as i32)
}

fn is_real_time(number: i32) -> bool {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&number)
}

/// Why a signal can't be the stop signal. The signal asks the job to end, and `neli-run` handles it like TERM.
fn why_not(number: i32) -> Option<&'static str> {
    match number {
        libc::SIGKILL => Some("asks nothing; for SIGKILL at once use --stop-timeout 0"),
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
            Some("stops a process for a while, and doesn't end it")
        }
        libc::SIGCONT => Some("follows every stop signal, so it can't be one"),
        libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV | libc::SIGTRAP | libc::SIGSYS => {
            Some("is what the kernel sends for a fault, and neli-run would take it for a stop")
        }
        libc::SIGCHLD | libc::SIGPIPE => Some("comes in normal operation, and neli-run would take it for a stop"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::signal_name;

    #[test]
    fn names_and_numbers() {
        for text in ["TERM", "SIGTERM", "15", "term", "sigterm"] {
            assert_eq!(number(text), Some(libc::SIGTERM), "{text}");
        }
        assert_eq!(number("RTMIN+1"), Some(libc::SIGRTMIN() + 1));
        assert_eq!(number("SIGRTMAX-1"), Some(libc::SIGRTMAX() - 1));
        assert_eq!(number("64"), Some(64));
    }

    #[test]
    fn a_name_that_is_no_signal_gives_none() {
        for text in ["", "0", "32", "65", "-1", "+15", "FOO", "SIG", "RTMIN+99", "RTMIN+-1", "RTMAX-99", "99999999999"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_reads_back() {
        for signal in (1..=64).filter(|signal| ![32, 33].contains(signal)) {
            assert_eq!(number(&signal_name(signal)), Some(signal));
        }
    }
}
