//! The program that a process executes. All its memory is allocated in advance, because nothing may be allocated between fork and exec.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The search path if the environment has no PATH: glibc's `_CS_PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program, its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Image {
    /// The possible files of the program, in the order in which `execvp` would try them.
    pub(crate) paths: Vec<CString>,
    /// Its arguments, including the zeroth.
    pub(crate) arguments: Vec<CString>,
    /// Its environment: `NAME=value`.
    pub(crate) environment: Vec<CString>,
}

impl Image {
    /// `command` as `execvp` finds it, with the PATH of `environment` (not of this process).
    ///
    /// # Errors
    ///
    /// There is no command, or a string contains a NUL (`InvalidInput`).
    pub fn found_by_path(command: &[OsString], environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let name = command.first().ok_or(io::ErrorKind::InvalidInput)?;
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        Ok(Self {
            paths: c_strings(candidates(name, path).map(PathBuf::into_os_string))?,
            arguments: c_strings(command.iter().cloned())?,
            environment: c_strings(environment.iter().map(|(name, value)| assignment(name, value)))?,
        })
    }

    /// `line` as a command line of the shell.
    ///
    /// # Errors
    ///
    /// A string contains a NUL (`InvalidInput`).
    pub fn of_shell(line: &OsStr, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let command = ["/bin/sh".into(), "-c".into(), line.to_owned()];
        Self::found_by_path(&command, environment)
    }

    /// The program at `path`, with this environment.
    ///
    /// # Errors
    ///
    /// A string contains a NUL (`InvalidInput`).
    pub fn at(
        path: &Path,
        arguments: Vec<OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        Ok(Self {
            paths: c_strings([path.as_os_str().to_owned()])?,
            arguments: c_strings(arguments)?,
            environment: c_strings(environment.into_iter().map(|(name, value)| assignment(&name, &value)))?,
        })
    }
}

/// The files that `execvp` tries for `name`: the path itself if it contains a slash, otherwise one per directory of the PATH, where an
/// empty entry is the working directory.
pub(crate) fn candidates(name: &OsStr, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let path = if is_searched(name) { path.unwrap_or(OsStr::new(DEFAULT_PATH)) } else { OsStr::new("") };
    let directories = path.as_bytes().split(|byte| *byte == b':').filter(move |_| !name.is_empty());
    directories.map(move |directory| Path::new(OsStr::from_bytes(directory)).join(name))
}

/// Whether the PATH is searched for a program of this name.
pub(crate) fn is_searched(name: &OsStr) -> bool {
    !name.as_bytes().contains(&b'/')
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    let mut text = name.to_owned();
    text.push("=");
    text.push(value);
    text
}

fn c_strings(texts: impl IntoIterator<Item = OsString>) -> io::Result<Vec<CString>> {
    texts.into_iter().map(|text| Ok(CString::new(text.into_vec())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &str, path: Option<&str>) -> Vec<String> {
        let paths = candidates(OsStr::new(name), path.map(OsStr::new));
        paths.map(|path| path.into_os_string().into_string().unwrap()).collect()
    }

    #[test]
    fn a_name_with_a_slash_is_a_path() {
        assert_eq!(tried("./job", Some("/bin")), ["./job"]);
        assert_eq!(tried("/opt/job", None), ["/opt/job"]);
    }

    #[test]
    fn a_name_is_tried_in_each_directory_of_the_path() {
        assert_eq!(tried("job", Some("/usr/bin:/bin")), ["/usr/bin/job", "/bin/job"]);
        assert_eq!(tried("job", None), ["/bin/job", "/usr/bin/job"]);
    }

    #[test]
    fn an_empty_entry_of_the_path_is_the_working_directory() {
        assert_eq!(tried("job", Some(":/bin:")), ["job", "/bin/job", "job"]);
        assert_eq!(tried("job", Some("")), ["job"]);
    }

    #[test]
    fn an_empty_name_has_no_path() {
        assert!(tried("", Some("/bin")).is_empty());
    }

    #[test]
    fn a_nul_within_is_refused() {
        let command = [OsString::from("job"), OsString::from("a\0b")];
        assert_eq!(Image::found_by_path(&command, &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Image::found_by_path(&[], &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
