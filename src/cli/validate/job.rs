//! The job: COMMAND, which is found as `execvp` would find it before anything is joined, so that no machine wins an election for a job that it can't
//! run; the commands beside it, whether it is run again, and the signal that asks it to stop.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use neli_proto::health::HealthPolicy;
use neli_proto::hooks::Hook;
use neli_proto::restart::{Limit, Restart, RestartPolicy};
use nix::libc;
use nix::sys::signal::Signal;
use nix::unistd::{AccessFlags, eaccess};

use super::{LONGEST, duration, positive_duration};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::exit::{ExitStatus, status_of, with_status};
use crate::process::spawn;
use crate::text::{parse_duration, quoted, reason};

pub(super) fn hooks(args: &ParsedArgs) -> Result<BTreeMap<Hook, OsString>> {
    let options = ["on-exit", "on-fence", "on-lead", "on-standby"];
    let hooks = [Hook::Exit, Hook::Fence, Hook::Lead, Hook::Standby].into_iter().zip(options);
    hooks.filter_map(|(hook, long)| Some(command(args, long).transpose()?.map(|line| (hook, line)))).collect()
}

pub(super) fn health(args: &ParsedArgs) -> Result<Option<HealthPolicy>> {
    let policy = HealthPolicy {
        interval: positive_duration(&args.setting("health-interval"))?,
        timeout: positive_duration(&args.setting("health-timeout"))?,
        failures: args.setting("health-failures").number_in(1.., "must be a whole number, 1 or more")?,
        start: duration(&args.setting("health-start"))?,
    };
    Ok(args.value("health-cmd").map(|_| policy))
}

/// A command line for the shell.
pub(super) fn command(args: &ParsedArgs, long: &'static str) -> Result<Option<OsString>> {
    let Some(value) = args.value(long) else { return Ok(None) };
    if value.text.to_string_lossy().trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    find(OsStr::new("/bin/sh"), None).map_err(|obstacle| anyhow!("{}: needs a shell: {obstacle}", value.name()))?;
    Ok(Some(value.text))
}

/// The most restarts in a limit: each is remembered.
const MOST_RESTARTS: u32 = 10_000;

/// Whether and when the job is run again.
pub(super) fn restart(args: &ParsedArgs) -> Result<RestartPolicy> {
    let restart = args.setting("restart");
    let (delay, limit) = (args.setting("restart-delay"), args.setting("restart-limit"));
    let policy = RestartPolicy {
        // The end of one job among many is no reason to give up its role.
        restart: if args.value("roles").is_some() && !restart.is_given() {
            Restart::Always
        } else {
            restart.one_of(&[("no", Restart::No), ("on-failure", Restart::OnFailure), ("always", Restart::Always)])?
        },
        delay: duration(&delay)?,
        limit: validate_limit(&limit)?,
    };
    let idle = [delay, limit].into_iter().find(|value| policy.restart == Restart::No && value.is_given());
    match idle {
        Some(value) => Err(value.refuse(format!("has no meaning with {}", restart.shown()))),
        None => Ok(policy),
    }
}

fn validate_limit(value: &Value) -> Result<Option<Limit>> {
    let text = value.text()?;
    if text == "none" {
        return Ok(None);
    }
    let limit = text.split_once('/').and_then(|(restarts, within)| {
        let digits = restarts.bytes().all(|byte| byte.is_ascii_digit());
        let restarts = restarts.parse().ok().filter(|restarts| digits && *restarts <= MOST_RESTARTS)?;
        let within = parse_duration(within)?;
        (!within.is_zero() && within <= LONGEST).then_some(Limit { restarts, within })
    });
    let must_be = format!(
        "must be none, or restarts/duration such as 10/5m: 0 to {MOST_RESTARTS} in more than 0 and at most 365d"
    );
    limit.map(Some).ok_or_else(|| value.refuse(must_be))
}

/// The number of `--stop-signal`, which is a name, with or without SIG, or a number; `None` for `none`.
pub(super) fn stop_signal(value: &Value) -> Result<Option<i32>> {
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
    let digits = |text: &str| text.parse().ok().filter(|_: &i32| text.bytes().all(|byte| byte.is_ascii_digit()));
    if let Some(number) = digits(text) {
        return Some(number).filter(|number| Signal::try_from(*number).is_ok() || is_real_time(*number));
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    if let Some(above) = name.strip_prefix("RTMIN") {
        let above = if above.is_empty() { Some(0) } else { above.strip_prefix('+').and_then(digits) };
        return above.map(|above| libc::SIGRTMIN().saturating_add(above)).filter(|number| is_real_time(*number));
    }
    if let Some(below) = name.strip_prefix("RTMAX") {
        let below = if below.is_empty() { Some(0) } else { below.strip_prefix('-').and_then(digits) };
        return below.map(|below| libc::SIGRTMAX().saturating_sub(below)).filter(|number| is_real_time(*number));
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

/// Finds the file of COMMAND; if there is none, the refusal suggests what was probably meant.
pub(super) fn find_command(command: &[OsString], path: Option<&OsStr>) -> Result<PathBuf> {
    let Some(program) = command.first() else {
        bail!("COMMAND is required; it comes after --, as in: neli-run --group .. -- COMMAND");
    };
    find(program, path).map_err(|refusal| match program.to_str().and_then(hint) {
        Some(hint) if status_of(&refusal) == ExitStatus::NOT_FOUND => not_found(hint),
        _ => refusal,
    })
}

/// Words that only a shell knows.
const WORDS_OF_SHELLS: [&str; 11] =
    [".", "cd", "exec", "export", "for", "if", "set", "source", "ulimit", "umask", "while"];

/// The refusal of a command that was not found, and is probably an option of `neli-run`, or for a shell.
fn hint(program: &str) -> Option<String> {
    let is_of_a_line = |letter: char| letter.is_whitespace() || "=|&;<>$*`('\"".contains(letter);
    let hint = if program.starts_with('-') {
        "options of neli-run come before --"
    } else if WORDS_OF_SHELLS.contains(&program) || program.contains(is_of_a_line) {
        "for a shell line use: -- sh -c '..'"
    } else {
        return None;
    };
    // A variable's value may be a password.
    let shown = program.split_once('=').map_or_else(|| program.to_owned(), |(variable, _)| format!("{variable}=.."));
    Some(format!("{}: not found; {hint}", quoted(OsStr::new(&shown))))
}

/// Finds the file, or refuses like the shell: 127 if there is none, 126 if there is one that can't be run.
fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf> {
    let shown = quoted(program);
    if program.is_empty() {
        return Err(not_found(format!("{shown}: not found")));
    }
    let mut nearest: Option<anyhow::Error> = None;
    for file in spawn::candidates(program, path) {
        // execvp continues after a file that can't be run, and fails for it only if it finds no other.
        match examine(&file, &shown) {
            Ok(()) => return Ok(file),
            Err(_) if nearest.as_ref().is_some_and(|known| status_of(known) == ExitStatus::CANNOT_RUN) => {}
            Err(refusal) => nearest = refusal.or(nearest),
        }
    }
    let is_in_path = if spawn::is_searched(program) { " in PATH" } else { "" };
    Err(nearest.unwrap_or_else(|| not_found(format!("{shown}: not found{is_in_path}"))))
}

fn not_found(line: String) -> anyhow::Error {
    with_status(ExitStatus::NOT_FOUND, line)
}

/// Whether the file can be run.
///
/// # Errors
///
/// Why not; `None` if there is no such file.
fn examine(file: &Path, program: &str) -> Result<(), Option<anyhow::Error>> {
    let refused = |why: &str| Err(Some(with_status(ExitStatus::CANNOT_RUN, format!("{program}: can't be run: {why}"))));
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => return refused("it is a directory"),
        Ok(metadata) if !metadata.is_file() => return refused("it is no regular file"),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Err(None),
        Err(error) => return refused(&reason(&error)),
    }
    // exec checks the effective ids, and refuses on a file system mounted noexec.
    if let Err(errno) = eaccess(file, AccessFlags::X_OK) {
        return refused(&errno.desc().to_lowercase());
    }
    let Some(interpreter) = interpreter(file).filter(|interpreter| !interpreter.exists()) else { return Ok(()) };
    let of_windows = if interpreter.as_os_str().as_bytes().ends_with(b"\r") {
        ": its lines end with CR LF; sed -i 's/\\r$//' makes them end with LF"
    } else {
        ""
    };
    let interpreter = quoted(interpreter.as_os_str());
    Err(Some(not_found(format!("{program}: its interpreter, {interpreter}, is not found{of_windows}"))))
}

/// The interpreter in a script's first line. A file that can be run but not read is accepted.
fn interpreter(file: &Path) -> Option<PathBuf> {
    // The kernel reads no further.
    let mut head = [0; 256];
    let length = File::open(file).ok()?.read(&mut head).ok()?;
    let line = head.get(..length)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // A carriage return belongs to the name.
    let name = line.trim_ascii_start().split(|byte| matches!(byte, b' ' | b'\t' | 0)).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name))).filter(|name| !name.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::signal_name;
    use std::os::unix::fs::PermissionsExt;

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

    fn file(directory: &Path, name: &str, mode: u32, content: &str) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refusal(program: impl AsRef<OsStr>, path: &Path) -> (u8, String) {
        let refusal = find(program.as_ref(), Some(path.as_os_str())).unwrap_err();
        (status_of(&refusal).code(), refusal.to_string())
    }

    #[test]
    fn the_first_that_can_be_run_is_run() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        std::fs::create_dir_all(&one).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        file(&one, "job", 0o644, "");
        let path = format!("{}:{}", one.display(), other.display());
        assert_eq!(
            find("job".as_ref(), Some(path.as_ref())).unwrap_err().to_string(),
            "job: can't be run: permission denied"
        );
        let job = file(&other, "job", 0o755, "no format that the kernel knows: /bin/sh runs it");
        assert_eq!(find("job".as_ref(), Some(path.as_ref())).unwrap(), job);
    }

    #[test]
    fn a_command_that_is_not_found_is_quoted_as_written() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "echo", 0o755, "");
        let message = |words: &[&str]| {
            let command: Vec<OsString> = words.iter().map(OsString::from).collect();
            let refusal = find_command(&command, Some(directory.path().as_os_str())).unwrap_err();
            assert_eq!(status_of(&refusal).code(), 127);
            refusal.to_string()
        };
        let shell = "not found; for a shell line use: -- sh -c '..'";
        for line in ["echo hi", "echo hi | cat", "echo 'a b'"] {
            assert_eq!(message(&[line]), format!("'{line}': {shell}"));
        }
        for line in ["FOO=hunter2", "FOO=hunter2 echo"] {
            assert_eq!(message(&[line, "hi"]), format!("FOO=..: {shell}"));
        }
        assert_eq!(message(&["no-such"]), "no-such: not found in PATH");
    }

    #[test]
    fn a_command_that_exec_refuses_is_refused_with_its_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        file(path, "broken", 0o755, "#! /no/such/shell -e\n");
        file(path, "of-windows", 0o755, "#!/bin/sh\r\necho hi\r\n");
        let lines = "its lines end with CR LF; sed -i 's/\\r$//' makes them end with LF";
        let refused = format!("of-windows: its interpreter, '/bin/sh\r', is not found: {lines}");
        assert_eq!(refusal("of-windows", path), (127, refused));
        std::fs::create_dir(path.join("folder")).unwrap();
        assert_eq!(refusal("absent", path), (127, "absent: not found in PATH".to_owned()));
        assert_eq!(refusal("./absent/", path), (127, "./absent/: not found".to_owned()));
        assert_eq!(refusal("", path), (127, "'': not found".to_owned()));
        assert_eq!(refusal("broken", path), (127, "broken: its interpreter, /no/such/shell, is not found".to_owned()));
        assert_eq!(refusal("folder", path), (126, "folder: can't be run: it is a directory".to_owned()));
        assert_eq!(refusal("/dev/null", path), (126, "/dev/null: can't be run: it is no regular file".to_owned()));
    }
}
