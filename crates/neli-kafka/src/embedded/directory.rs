//! The directory by which the candidates of a user on a machine find the embedded broker, and the lock that tells a new broker whether a
//! process of an earlier one is left.

use std::ffi::{OsStr, c_int};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::geteuid;

/// The longest path of a socket, in bytes (`sockaddr_un` without the zero at its end).
const MAX_SOCKET_PATH: usize = 107;

/// A directory of this user that no other user can enter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerDirectory {
    path: PathBuf,
}

impl BrokerDirectory {
    /// The directory of this process's user: `neli-run` below `runtime` (`XDG_RUNTIME_DIR`), else `/run/user/<uid>/neli-run`, else
    /// `/tmp/neli-run-<uid>`. It is created if it is missing.
    ///
    /// # Errors
    ///
    /// It can't be created, or another user could enter it.
    pub(crate) fn below(runtime: Option<&OsStr>) -> io::Result<Self> {
        Self::at(&choose(runtime, geteuid().as_raw(), Path::is_dir))
    }

    /// This directory. It is created if it is missing.
    ///
    /// # Errors
    ///
    /// It can't be created, another user could enter it, or its path is too long for a socket in it.
    pub fn at(path: &Path) -> io::Result<Self> {
        let directory = Self { path: path.to_owned() };
        let shown = path.display();
        if directory.socket().as_os_str().len() > MAX_SOCKET_PATH {
            return Err(io::Error::other(format!("{shown}: too long a name for a socket in it; set XDG_RUNTIME_DIR")));
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io::Error::new(error.kind(), format!("{shown}: {error}")));
            }
            Ok(()) | Err(_) => {}
        }
        // Links are not followed, because a link's owner could change it.
        let found = fs::symlink_metadata(path)?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other(format!("{shown}: not a directory of this user's alone (mode 0700)")));
        }
        Ok(directory)
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The broker's socket, to which candidates connect.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join("broker.sock")
    }

    /// The lock file, which the broker locks while it lives.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.path.join("broker.lock")
    }

    /// Holds the lock of the candidates, beside others, until the file is closed: a candidate does so from before it reads the journal until
    /// it ends, and a guard from before it starts a job. The lock belongs to this process alone (fcntl(2), `F_SETLK`): no process that it
    /// starts has it. It is lost if the process closes the file by another descriptor, so nothing else in the process may open it.
    ///
    /// # Errors
    ///
    /// The file can't be opened or locked.
    pub fn hold(&self) -> io::Result<File> {
        let file = self.candidates()?;
        fcntl(&file, FcntlArg::F_SETLK(&whole_file(libc::F_RDLCK)))?;
        Ok(file)
    }

    /// The line about another process that holds that lock: a candidate or a guard that an ended broker has left. This process must not hold the
    /// lock, or loses it.
    ///
    /// # Errors
    ///
    /// The file can't be opened, or the kernel can't be asked.
    pub fn holder(&self) -> io::Result<Option<String>> {
        let mut lock = whole_file(libc::F_WRLCK);
        fcntl(&self.candidates()?, FcntlArg::F_GETLK(&mut lock))?;
        let process = match lock.l_pid {
            0 => "a process in another PID namespace".to_owned(),
            pid => format!("process {pid}"),
        };
        Ok((c_int::from(lock.l_type) != libc::F_UNLCK).then(|| {
            format!(
                "the last broker has ended, and its journal with it, but {process}, which is a candidate of it or a guard, still runs, and so may \
                 its job; end it, or wait until it has ended"
            )
        }))
    }

    fn candidates(&self) -> io::Result<File> {
        File::options().create(true).truncate(false).read(true).write(true).open(self.path.join("candidates.lock"))
    }
}

/// A lock of this kind on a whole file.
fn whole_file(kind: c_int) -> libc::flock {
    libc::flock {
        // The kinds are small numbers.
        l_type: kind.try_into().unwrap_or_default(),
        l_whence: libc::SEEK_SET.try_into().unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn choose(variable: Option<&OsStr>, uid: u32, is_dir: impl Fn(&Path) -> bool) -> PathBuf {
    let system = PathBuf::from(format!("/run/user/{uid}"));
    let variable = variable.map(PathBuf::from).filter(|path| path.is_absolute());
    match variable.into_iter().chain([system]).find(|path| is_dir(path)) {
        Some(path) => path.join("neli-run"),
        None => PathBuf::from(format!("/tmp/neli-run-{uid}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_users_runtime_directory_is_preferred() {
        let at = |variable: Option<&str>, there: &[&str]| {
            choose(variable.map(OsStr::new), 7, |path| there.iter().any(|known| Path::new(known) == path))
        };
        assert_eq!(at(Some("/x"), &["/x", "/run/user/7"]), Path::new("/x/neli-run"));
        assert_eq!(at(Some("/x"), &["/run/user/7"]), Path::new("/run/user/7/neli-run"));
        assert_eq!(at(Some("x"), &["x"]), Path::new("/tmp/neli-run-7"));
        assert_eq!(at(None, &[]), Path::new("/tmp/neli-run-7"));
    }

    #[test]
    fn a_directory_that_others_could_enter_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("neli-run");
        let directory = BrokerDirectory::at(&inner).unwrap();
        assert_eq!(BrokerDirectory::at(&inner).unwrap(), directory);
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(BrokerDirectory::at(&inner).is_err());
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o700)).unwrap();
        symlink(&inner, base.path().join("link")).unwrap();
        assert!(BrokerDirectory::at(&base.path().join("link")).is_err());
        assert!(BrokerDirectory::at(&base.path().join("x".repeat(100))).is_err());
    }
}
