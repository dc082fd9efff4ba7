//! A throw-away certificate authority, and certificates by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::install;
pub use crate::node::SecureAddresses;

/// A new key, without a password.
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority that signs for brokers on loopback, and for whoever a test wants. A thing of a day: whoever trusts it has
/// been told to by a test.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    /// Gone with it, where it is nobody else's.
    _own: Option<TempDir>,
}

/// A key and the certificate that goes with it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What `ssl.certificate.location` takes.
    pub certificate: PathBuf,
    /// What `ssl.key.location` takes.
    pub key: PathBuf,
}

impl Identity {
    /// The librdkafka properties of whoever shows it.
    #[must_use]
    pub fn properties(&self) -> Vec<(String, String)> {
        let pairs = [("ssl.certificate.location", &self.certificate), ("ssl.key.location", &self.key)];
        pairs.map(|(key, path)| (key.to_owned(), path.display().to_string())).to_vec()
    }
}

impl Authority {
    /// Makes one by `openssl`; its files go with it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let directory = install::scratch();
        let authority = Self::settled(directory.path(), name);
        Self { _own: Some(directory), ..authority }
    }

    /// One in a broker's directory, with the broker's certificates, one good and one that has expired.
    pub(crate) fn of_broker(directory: &Path) -> Self {
        let authority = Self::settled(directory, "authority");
        authority.keystore_of("broker", 2);
        authority.keystore_of("expired", -1);
        authority
    }

    /// Its own certificate: what `ssl.ca.location` takes.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// A new key, and a certificate that its owner is called so.
    #[must_use]
    pub fn identity(&self, name: &str) -> Identity {
        self.sign(name, 2, KEY)
    }

    /// The same with a certificate that has expired.
    #[must_use]
    pub fn expired_identity(&self, name: &str) -> Identity {
        self.sign(name, -1, KEY)
    }

    /// The same with a key that only this password opens; it has no space.
    #[must_use]
    pub fn locked_identity(&self, name: &str, password: &str) -> Identity {
        self.sign(name, 2, &format!("{} -passout pass:{password}", KEY.trim_end_matches(" -nodes")))
    }

    /// The broker's key and certificate, as Kafka takes them.
    pub(crate) fn keystore(&self) -> PathBuf {
        self.file("broker.keystore")
    }

    /// The broker's key, and a certificate that has expired.
    pub(crate) fn expired_keystore(&self) -> PathBuf {
        self.file("expired.keystore")
    }

    fn settled(directory: &Path, name: &str) -> Self {
        let authority = Self { directory: directory.to_owned(), _own: None };
        fs::write(authority.file("names"), "subjectAltName=IP:127.0.0.1\n").expect("the directory is ours");
        authority.openssl(&format!("req -x509 {KEY} -keyout ca.key -out ca.pem -subj /CN={name} -days 2"));
        authority
    }

    fn keystore_of(&self, name: &str, days: i32) {
        let Identity { certificate, key } = self.sign(name, days, KEY);
        let read = |file: PathBuf| fs::read_to_string(file).expect("openssl wrote it");
        fs::write(self.file(&format!("{name}.keystore")), read(key) + &read(certificate))
            .expect("the directory is ours");
    }

    fn sign(&self, name: &str, days: i32, key: &str) -> Identity {
        // One name may have several, asked for at one time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let serial = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        let stem = format!("{name}-{serial}");
        self.openssl(&format!("req {key} -keyout {stem}.key -out {stem}.request -subj /CN={name}"));
        self.openssl(&format!(
            "x509 -req -in {stem}.request -CA ca.pem -CAkey ca.key -set_serial {serial} -days {days} -extfile names -out \
             {stem}.pem"
        ));
        Identity { certificate: self.file(&format!("{stem}.pem")), key: self.file(&format!("{stem}.key")) }
    }

    fn openssl(&self, line: &str) {
        let mut tool = Command::new("openssl");
        tool.args(line.split(' ')).current_dir(&self.directory);
        install::run(&mut tool, "OpenSSL's tool: apt-get install openssl").unwrap_or_else(|why| panic!("{why}"));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}
