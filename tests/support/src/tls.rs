//! A throw-away certificate authority, and a broker's certificate by it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::install;

/// An authority that has signed one certificate, for a broker on loopback. A thing of a day: whoever trusts it has been
/// told to by a test.
#[derive(Debug)]
pub struct Authority {
    directory: TempDir,
}

impl Authority {
    /// Makes one by `openssl`; its files go with it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let directory = install::scratch();
        let at = directory.path();
        fs::write(at.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("the directory is ours");
        let openssl = |line: &str| {
            let mut tool = Command::new("openssl");
            tool.args(line.split(' ')).current_dir(at);
            install::run(&mut tool, "OpenSSL's tool: apt-get install openssl").unwrap_or_else(|why| panic!("{why}"));
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN={name} -days 2"));
        openssl(&format!("req {key} -keyout key.pem -out request.pem -subj /CN=broker"));
        openssl(
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem",
        );
        let read = |file: &str| fs::read_to_string(at.join(file)).expect("openssl wrote it");
        fs::write(at.join("broker.pem"), read("key.pem") + &read("cert.pem")).expect("the directory is ours");
        Self { directory }
    }

    /// Its own certificate: what `ssl.ca.location` takes.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// The broker's key and certificate, as Kafka takes them.
    pub(crate) fn keystore(&self) -> PathBuf {
        self.directory.path().join("broker.pem")
    }
}
