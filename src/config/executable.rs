//! COMMAND, looked for as `execvp` would: before anything is joined, so that no machine wins an election for a job that
//! it can't run.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, eaccess};

use crate::cli::given::quoted;
use crate::exit::{ExitStatus, Refusal};

/// Where glibc looks when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds the file, or says what the exec would say: 127 when there is none, 126 when there is one and it can't be run.
pub(super) fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    let shown = quoted(program);
    let not_found = || Refusal::with(ExitStatus::NotFound, format!("{shown}: not found"));
    if program.is_empty() {
        return Err(not_found());
    }
    if program.as_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        return match examine(&file) {
            Ok(()) => Ok(file),
            Err(Obstacle::Missing) => Err(not_found()),
            Err(Obstacle::Interpreter(interpreter)) => Err(Refusal::with(
                ExitStatus::NotFound,
                format!("{shown}: its interpreter {} is not found", quoted(interpreter.as_os_str())),
            )),
            Err(Obstacle::Refused(why)) => Err(Refusal::with(ExitStatus::CannotRun, format!("{shown}: {why}"))),
        };
    }
    let mut refused = None;
    for directory in path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes().split(|byte| *byte == b':') {
        // An empty entry is the working directory.
        let directory = if directory.is_empty() { b"." } else { directory };
        let file = Path::new(OsStr::from_bytes(directory)).join(program);
        match examine(&file) {
            Ok(()) => return Ok(file),
            // execvp goes on, and says so only when it finds no other.
            Err(Obstacle::Refused(why)) => {
                refused.get_or_insert(Refusal::with(
                    ExitStatus::CannotRun,
                    format!("{shown}: {}: {why}", quoted(file.as_os_str())),
                ));
            }
            Err(Obstacle::Interpreter(_) | Obstacle::Missing) => {}
        }
    }
    Err(refused.unwrap_or_else(|| Refusal::with(ExitStatus::NotFound, format!("{shown}: not found in PATH"))))
}

/// Why a file can't be run.
enum Obstacle {
    /// `#!` names a file that is not there.
    Interpreter(PathBuf),
    /// There is no such file.
    Missing,
    /// There is, but.
    Refused(String),
}

fn examine(file: &Path) -> Result<(), Obstacle> {
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => return Err(Obstacle::Refused("is a directory".to_owned())),
        Ok(metadata) if !metadata.is_file() => return Err(Obstacle::Refused("is not a regular file".to_owned())),
        Ok(_) => {}
        Err(error) => {
            return Err(match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ENOENT | Errno::ENOTDIR) => Obstacle::Missing,
                Some(errno) => Obstacle::Refused(errno.desc().to_lowercase()),
                None => Obstacle::Refused(error.to_string()),
            });
        }
    }
    // The exec goes by the effective ids, and refuses on a file system mounted noexec.
    eaccess(file, AccessFlags::X_OK).map_err(|errno| {
        let denied = errno == Errno::EACCES;
        Obstacle::Refused(if denied { "can't be executed".to_owned() } else { errno.desc().to_lowercase() })
    })?;
    match interpreter(file) {
        Some(interpreter) if !interpreter.exists() => Err(Obstacle::Interpreter(interpreter)),
        _ => Ok(()),
    }
}

/// What a script's first line names. A file that may be run and not read is taken as it is.
fn interpreter(file: &Path) -> Option<PathBuf> {
    // The kernel reads no further.
    let mut head = [0; 256];
    let length = File::open(file).ok()?.read(&mut head).ok()?;
    let line = head.get(..length)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.trim_ascii_start().split(|byte| byte.is_ascii_whitespace() || *byte == 0).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name))).filter(|name| !name.as_os_str().is_empty())
}
