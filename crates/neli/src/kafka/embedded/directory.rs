//! The directory by which the candidates of a user on a machine find the embedded broker.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// The longest path of a socket, in bytes (`sockaddr_un` without the zero at its end).
const MAX_SOCKET_PATH: usize = 107;

/// A directory of this user that no other user can enter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerDirectory {
    path: PathBuf,
}

impl BrokerDirectory {
    /// The directory of this process's user: `$XDG_RUNTIME_DIR/neli-run`, else `/run/user/<uid>/neli-run`, else `/tmp/neli-run-<uid>`. It
    /// is created if it is missing.
    ///
    /// # Errors
    ///
    /// It can't be created, or another user could enter it.
    pub fn of_user() -> io::Result<Self> {
        let variable = std::env::var_os("XDG_RUNTIME_DIR");
        Self::at(&choose(variable.as_deref(), geteuid().as_raw(), Path::is_dir))
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

    /// A file that exists from before the broker accepts its first candidate until it ends in order. A broker that finds it knows that the
    /// previous one was killed, and that its own empty journal is not vacant yet.
    #[must_use]
    pub fn marker(&self) -> PathBuf {
        self.path.join("broker.open")
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
