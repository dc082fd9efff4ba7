//! The messages for the service manager (systemd, `Type=notify`): ready, the status text, the watchdog, and stopping.
//!
//! It never waits: messages that the socket does not accept now are sent again a little later. (The crates for this protocol wait for a
//! slow service manager; that could cost a lease.) [`Notifier::tell`] sends the watchdog message, so that the message stops if the main
//! loop, which calls it, hangs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use neli_proto::time::Time;

use crate::report::election::Trouble;
use crate::text::{cut, one_line, quoted, reason};

/// The delay before a message that was not accepted is sent again.
const AGAIN: Duration = Duration::from_millis(100);
/// The interval between two requests for more time: shorter than any sensible timeout.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest interval between two watchdog messages.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// The longest status in bytes: systemd reads 4,096 of a message.
const LONGEST_STATUS: usize = 2_000;

/// The connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The interval of watchdog messages, if they are wanted.
    interval: Option<Duration>,
    /// `READY=1` and `STOPPING=1`, each of which is sent once, if that was not done yet.
    unsent: Vec<&'static str>,
    /// What the last status text was made of: the state, and the trouble with Kafka.
    pub(crate) reported: Option<(String, Option<Trouble>)>,
    /// The status text, if it was not sent yet.
    status: Option<String>,
    /// When the leader will have missed three heartbeats, or its lease will be over, which the status text must say.
    pub(crate) silent_at: Option<Time>,
    /// When the next watchdog message is due.
    alive_at: Option<Time>,
    /// When this process will have ended.
    end: Option<Time>,
    /// When to ask for more time again.
    extend_at: Option<Time>,
    /// When to send the messages again that were not accepted.
    again_at: Option<Time>,
}

impl Notifier {
    /// The connection that `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` describe, and why there is none. `pid` is this process's. It is
    /// ready: the configuration is valid, COMMAND was found, and every signal is blocked.
    pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> (Self, Option<String>) {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let Some(name) = set("NOTIFY_SOCKET") else { return (Self::default(), None) };
        let socket = match open(&name) {
            Ok(socket) => socket,
            Err(error) => {
                let (name, reason) = (quoted(&name), reason(&error));
                let error = format!(
                    "NOTIFY_SOCKET={name}: {reason}; the service manager gets no notifications; unset it if \
                     there is none, as in a container that got it from its host"
                );
                return (Self::default(), Some(error));
            }
        };
        let interval = watchdog(set("WATCHDOG_USEC"), set("WATCHDOG_PID"), pid);
        let (unsent, alive_at) = (vec!["READY=1"], interval.map(|_| Time::ZERO));
        (Self { socket: Some(socket), interval, unsent, alive_at, ..Self::default() }, None)
    }

    /// Whether there is a service manager.
    pub(crate) const fn has_receiver(&self) -> bool {
        self.socket.is_some()
    }

    /// Reports the state as a text.
    pub(crate) fn status(&mut self, text: &str) {
        self.status = Some(cut(&one_line(text), LONGEST_STATUS).to_owned());
    }

    /// Reports that this process is ending, by `end` at the latest. It requests that much time, even if the unit's configuration allows
    /// less.
    pub(crate) fn stopping(&mut self, now: Time, end: Time) {
        if self.end.is_none() {
            self.unsent.push("STOPPING=1");
            (self.end, self.extend_at) = (Some(end), Some(now));
        }
    }

    /// When to report the state again, and to call [`tell`](Self::tell), unless something changes before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.socket.as_ref()?;
        // Nothing is sent before the time of the next attempt.
        self.again_at.or_else(|| [self.alive_at, self.extend_at, self.silent_at].into_iter().flatten().min())
    }

    /// Sends the messages that are due.
    pub(crate) fn tell(&mut self, now: Time) {
        let Some((socket, address)) = &self.socket else { return };
        if self.again_at.is_some_and(|again| now < again) {
            return;
        }
        let is_due = |at: Option<Time>| at.is_some_and(|at| now >= at);
        let (alive, extend) = (is_due(self.alive_at), is_due(self.extend_at));
        let once = |line: &'static str| self.unsent.contains(&line).then(|| line.to_owned());
        let lines = [
            once("READY=1"),
            self.status.as_ref().map(|status| format!("STATUS={status}")),
            once("STOPPING=1"),
            self.end.filter(|_| extend).map(|end| format!("EXTEND_TIMEOUT_USEC={}", end.since(now).as_micros())),
            alive.then(|| "WATCHDOG=1".to_owned()),
        ];
        let message = lines.into_iter().flatten().collect::<Vec<_>>().join("\n");
        if message.is_empty() {
            return;
        }
        if socket.send_to_addr(message.as_bytes(), address).is_err() {
            // The service manager is busy or restarting.
            self.again_at = Some(now + AGAIN);
            return;
        }
        (self.again_at, self.status) = (None, None);
        self.unsent.clear();
        if alive {
            self.alive_at = self.interval.map(|interval| now + interval);
        }
        if extend {
            // After the requested time the service manager decides.
            let next = now + EXTENSION_INTERVAL;
            self.extend_at = self.end.and_then(|end| (next < end).then_some(next));
        }
    }
}

/// Whether the variable is meant for this process alone, so that child processes must not get it.
pub(crate) fn is_own(variable: &OsStr) -> bool {
    variable == "NOTIFY_SOCKET" || variable.as_bytes().starts_with(b"WATCHDOG_")
}

/// A non-blocking socket, and the address, where somebody must listen: a path, or a name in the abstract namespace (`@name`).
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::other("must be an absolute path or @name")),
    };
    UnixDatagram::unbound()?.connect_addr(&address)?;
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// Half of the watchdog's timeout for the process `pid`; `None` if there is no watchdog, or it is for another process, whose environment this one
/// has inherited.
fn watchdog(usec: Option<OsString>, for_pid: Option<OsString>, pid: u32) -> Option<Duration> {
    let is_own = for_pid.is_none_or(|wanted| wanted.to_str() == Some(&pid.to_string()));
    let micros = usec?.to_str()?.parse().ok().filter(|micros| is_own && *micros > 0)?;
    Some((Duration::from_micros(micros) / 2).max(SHORTEST_INTERVAL))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const PID: u32 = 77;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(1_000_000 + ms)
    }

    /// A service manager with its own abstract address.
    fn manager(name: &str) -> (UnixDatagram, String) {
        let name = format!("neli-run-test-{}-{name}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        (socket, format!("@{name}"))
    }

    fn received(socket: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 4_096];
        let length = socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    fn notifier(variables: &[(&str, &str)]) -> (Notifier, Option<String>) {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        Notifier::of_environment(|name| variables.get(name).map(OsString::from), PID)
    }

    #[test]
    fn without_a_service_manager_nothing_is_sent() {
        for variables in [&[][..], &[("NOTIFY_SOCKET", "")], &[("WATCHDOG_USEC", "20000")]] {
            let (mut notifier, error) = notifier(variables);
            assert_eq!((notifier.has_receiver(), error), (false, None));
            notifier.tell(at(0));
            assert_eq!(notifier.poll_timeout(), None);
        }
    }

    #[test]
    fn each_message_is_sent_once_and_together_with_others() {
        let (socket, name) = manager("once");
        let (mut notifier, _) = notifier(&[("NOTIFY_SOCKET", &name)]);
        notifier.status("standing\nby");
        notifier.tell(at(0));
        assert_eq!(received(&socket).unwrap(), "READY=1\nSTATUS=standing\\nby");
        notifier.tell(at(1));
        assert_eq!((received(&socket), notifier.poll_timeout()), (None, None));
    }

    #[test]
    fn a_watchdog_message_is_sent_twice_in_the_timeout() {
        let (socket, name) = manager("alive");
        let variables = [("NOTIFY_SOCKET", name.as_str()), ("WATCHDOG_USEC", "20000"), ("WATCHDOG_PID", "77")];
        let (mut notifier, _) = notifier(&variables);
        notifier.tell(at(0));
        assert_eq!(received(&socket).unwrap(), "READY=1\nWATCHDOG=1");
        assert_eq!(notifier.poll_timeout(), Some(at(10)));
        notifier.tell(at(9));
        assert_eq!(received(&socket), None);
        notifier.tell(at(12));
        assert_eq!(received(&socket).unwrap(), "WATCHDOG=1");
        assert_eq!(notifier.poll_timeout(), Some(at(22)));
    }

    #[test]
    fn a_watchdog_of_another_process_gets_no_message() {
        let interval = |usec: &str, pid: Option<&str>| watchdog(Some(usec.into()), pid.map(Into::into), PID);
        assert_eq!(interval("30000000", Some("78")), None);
        assert_eq!(interval("30000000", None), Some(Duration::from_secs(15)));
        assert_eq!(interval("1", None), Some(SHORTEST_INTERVAL));
        for nonsense in ["0", "-1", "5s", ""] {
            assert_eq!(interval(nonsense, None), None, "{nonsense}");
        }
    }

    #[test]
    fn more_time_is_requested_again_until_the_end() {
        let (socket, name) = manager("time");
        let (mut notifier, _) = notifier(&[("NOTIFY_SOCKET", &name)]);
        notifier.tell(at(0));
        assert!(received(&socket).is_some());
        for ms in [0, 500, 1_000, 2_000] {
            notifier.stopping(at(ms), at(ms + 2_500));
            notifier.tell(at(ms));
        }
        assert_eq!(received(&socket).unwrap(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=2500000");
        assert_eq!(received(&socket).unwrap(), "EXTEND_TIMEOUT_USEC=1500000");
        assert_eq!(received(&socket).unwrap(), "EXTEND_TIMEOUT_USEC=500000");
        assert_eq!((received(&socket), notifier.poll_timeout()), (None, None));
    }

    #[test]
    fn a_status_that_was_not_accepted_is_sent_again() {
        let (socket, name) = manager("again");
        let (mut notifier, _) = notifier(&[("NOTIFY_SOCKET", &name)]);
        drop(socket);
        notifier.status("standing by");
        notifier.tell(at(0));
        let again = notifier.poll_timeout().unwrap();
        notifier.status("leading");
        let (socket, _) = manager("again");
        notifier.tell(at(1));
        assert_eq!(received(&socket), None, "not in a hurry");
        notifier.tell(again);
        assert_eq!(received(&socket).unwrap(), "READY=1\nSTATUS=leading");
        assert_eq!(notifier.poll_timeout(), None);
    }

    #[test]
    fn a_full_socket_delays_nothing() {
        let (socket, name) = manager("full");
        let (mut notifier, _) = notifier(&[("NOTIFY_SOCKET", &name)]);
        // More messages than any queue of datagrams can contain.
        for ms in 0..5_000 {
            notifier.status("standing by");
            notifier.tell(at(ms * 1_000));
        }
        assert!(notifier.poll_timeout().is_some());
        while received(&socket).is_some() {}
        notifier.tell(at(9_000_000));
        assert_eq!(received(&socket).unwrap(), "STATUS=standing by");
    }

    #[test]
    fn an_error_names_the_invalid_address() {
        let long = format!("/{}", "x".repeat(200));
        // A container may have got the variable from its host.
        let file = file!();
        let file = std::fs::canonicalize(file).unwrap();
        let names =
            ["relative/path", "vsock:2:1234", &long, "/missing/socket", "/dev/null", file.to_str().unwrap(), "@nobody"];
        for name in names {
            let (notifier, error) = notifier(&[("NOTIFY_SOCKET", name)]);
            assert!(!notifier.has_receiver());
            assert!(error.unwrap().starts_with(&format!("NOTIFY_SOCKET={name}: ")));
        }
    }
}
