//! A user and a PID namespace beside a test's jobs, as a rootless container of the same user has.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The namespaces, and their first process, which waits for no child.
#[derive(Debug)]
pub struct PidNamespace(Child);

impl PidNamespace {
    /// Creates them behind these words (`setpriv ...`); `None` if this machine does not allow that.
    #[must_use]
    pub fn new(prefix: &[&str]) -> Option<Self> {
        let unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
        let first = ["--", "sh", "-c", "echo ready; read end"];
        let words: Vec<&str> = [prefix, &unshare, &first].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("unshare is part of util-linux: apt-get install util-linux");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("a pipe can be read");
        let namespace = Self(child);
        (line == "ready\n").then_some(namespace)
    }

    /// The words that run a command in it as the same user.
    #[must_use]
    pub fn enter(&self) -> String {
        let of = format!("/proc/{}/ns", self.0.id());
        format!("nsenter --user={of}/user --pid={of}/pid_for_children --preserve-credentials --")
    }
}

impl Drop for PidNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
