//! A certificate authority for tests, and its certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::install;
pub use crate::node::SecureAddresses;

/// A new key, without a password.
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority that signs certificates for brokers on loopback and for clients, valid for a day. A client trusts it only if a test
/// configures that.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    /// Its own directory, if it has one; deleted when this is dropped.
    _own: Option<TempDir>,
}

/// A key with its certificate.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The value of `ssl.certificate.location`.
    pub certificate: PathBuf,
    /// The value of `ssl.key.location`.
    pub key: PathBuf,
}

impl Identity {
    /// The librdkafka properties of a client that shows this certificate.
    #[must_use]
    pub fn properties(&self) -> Vec<(String, String)> {
        let pairs = [("ssl.certificate.location", &self.certificate), ("ssl.key.location", &self.key)];
        pairs.map(|(key, path)| (key.to_owned(), path.display().to_string())).to_vec()
    }
}

impl Authority {
    /// Creates an authority by `openssl`; its files are deleted with it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let directory = install::scratch();
        let authority = Self::settled(directory.path(), name);
        Self { _own: Some(directory), ..authority }
    }

    /// An authority in a broker's directory, with a valid and an expired certificate for the broker.
    pub(crate) fn of_broker(directory: &Path) -> Self {
        let authority = Self::settled(directory, "authority");
        authority.keystore_of("broker", 2);
        authority.keystore_of("expired", -1);
        authority
    }

    /// The authority's own certificate: the value of `ssl.ca.location`.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// A new key, and a certificate for an owner with this name.
    #[must_use]
    pub fn identity(&self, name: &str) -> Identity {
        self.sign(name, 2, KEY)
    }

    /// Like [`identity`](Self::identity), with an expired certificate.
    #[must_use]
    pub fn expired_identity(&self, name: &str) -> Identity {
        self.sign(name, -1, KEY)
    }

    /// Like [`identity`](Self::identity), with a key that is encrypted with this password, which contains no space.
    #[must_use]
    pub fn locked_identity(&self, name: &str, password: &str) -> Identity {
        self.sign(name, 2, &format!("{} -passout pass:{password}", KEY.trim_end_matches(" -nodes")))
    }

    /// The broker's key and certificate in Kafka's format.
    pub(crate) fn keystore(&self) -> PathBuf {
        self.file("broker.keystore")
    }

    /// The broker's key with an expired certificate, in Kafka's format.
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
        // Several certificates may be made for one name at the same time.
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
