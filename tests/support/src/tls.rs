//! A throw-away certificate authority, and a broker's certificate by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install;

/// An authority that has signed one certificate, for a broker on loopback. A thing of a day: whoever trusts it has been
/// told to by a test.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// Makes one by `openssl`, in a directory of its own within `directory`.
    #[must_use]
    pub fn new(directory: &Path, name: &str) -> Self {
        let directory = directory.join(name);
        fs::create_dir(&directory).expect("the directory is ours");
        fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("the directory is ours");
        let openssl = |line: &str| {
            let mut tool = Command::new("openssl");
            tool.args(line.split(' ')).current_dir(&directory);
            install::run(&mut tool, "OpenSSL's tool: apt-get install openssl").unwrap_or_else(|why| panic!("{why}"));
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN={name} -days 2"));
        openssl(&format!("req {key} -keyout key.pem -out request.pem -subj /CN=broker"));
        openssl(
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem",
        );
        let read = |file: &str| fs::read_to_string(directory.join(file)).expect("openssl wrote it");
        fs::write(directory.join("broker.pem"), read("key.pem") + &read("cert.pem")).expect("the directory is ours");
        Self { directory }
    }

    /// Its own certificate: what `ssl.ca.location` takes.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// The broker's key and certificate, as Kafka takes them.
    pub(crate) fn keystore(&self) -> PathBuf {
        self.directory.join("broker.pem")
    }
}
