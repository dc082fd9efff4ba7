//! A link to a network namespace, through a pair of virtual interfaces.
//!
//! Packets that enter a cut link are lost without any report: TCP retransmits until it gives up, and a connecting client gets no answer.
//! A wire of [`crate::network`] can't do that, because its near end always accepts.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use crate::wait;

/// A namespace at the far end of a link. In it, 127.0.0.1 is this machine's 127.0.0.1, over the link. The namespace ends when this is
/// dropped, or with the process that created it.
#[derive(Debug)]
pub struct NetnsLink {
    /// A process that keeps the namespace alive by reading a pipe to which nothing is written.
    keeper: Child,
    near: Ipv4Addr,
    far: Ipv4Addr,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// From the namespace.
    There,
    /// To the namespace.
    Back,
    /// Both directions.
    Both,
}

/// The script at the near end: $1 is the keeper's pid, $2 and $3 are the addresses of the near and the far end.
const NEAR: &str = r#"
    ip link add "neli$1" type veth peer name link netns "$1"
    ip address add "$2" peer "$3" dev "neli$1"
    echo 1 >"/proc/sys/net/ipv4/conf/neli$1/route_localnet"
    ip link set "neli$1" up
"#;

/// The script at the far end. The namespace's own loopback stays down, so that 127.0.0.1 is not local to it.
const FAR: &str = r#"
    ip address add "$3" peer "$2" dev link
    echo 1 >/proc/sys/net/ipv4/conf/link/route_localnet
    ip link set link up
    ip route add 127.0.0.1 via "$2" dev link src "$3"
"#;

/// A hardware address that no interface has.
const NOBODY: &str = "02:00:00:00:00:01";

impl NetnsLink {
    /// Creates a working link.
    ///
    /// # Errors
    ///
    /// There is no `ip`, or a namespace or an interface may not be created. The error shows the reason.
    pub fn lay() -> Result<Self, String> {
        let mut keeper = Command::new("unshare");
        keeper.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().expect("unshare is part of util-linux: apt-get install util-linux");
        // Addresses from the network that RFC 2544 reserves for benchmarks, four for each possible process.
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + keeper.id() % (1 << 15) * 4;
        let link = Self { keeper, near: (first + 1).into(), far: (first + 2).into() };
        let ours = namespace("self");
        let id = link.keeper.id().to_string();
        let made = wait::until("a namespace, or none", || match namespace(&id) {
            None => Some(false),
            theirs => (theirs != ours).then_some(true),
        });
        if !made {
            return Err("this machine gives us no network namespace; root may".to_owned());
        }
        link.run(&[], NEAR)?;
        link.run(&link.far_end(), FAR)?;
        Ok(link)
    }

    /// A command prefix that runs the rest of its arguments in the namespace.
    #[must_use]
    pub fn far_end(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.keeper.id())]
    }

    /// Drops all packets in this direction from now on.
    pub fn cut(&self, way: Way) {
        // Packets are sent to a hardware address that no interface has.
        let forge = format!("lladdr {NOBODY} nud permanent");
        if way != Way::There {
            self.run(&[], &format!(r#"ip neighbour replace "$3" dev "neli$1" {forge}"#))
                .expect("ip can set the neighbour");
        }
        if way != Way::Back {
            self.run(&self.far_end(), &format!(r#"ip neighbour replace "$2" dev link {forge}"#))
                .expect("ip can set the neighbour");
        }
    }

    /// Restores both directions.
    pub fn mend(&self) {
        self.run(&[], r#"ip neighbour flush dev "neli$1" nud permanent"#).expect("ip can set the neighbour");
        self.run(&self.far_end(), "ip neighbour flush dev link nud permanent").expect("ip can set the neighbour");
    }

    /// Runs a script with a command prefix.
    fn run(&self, prefix: &[String], script: &str) -> Result<(), String> {
        let arguments = [self.keeper.id().to_string(), self.near.to_string(), self.far.to_string()];
        let shell = ["sh", "-ec", script, "sh"].map(str::to_owned);
        let words = [prefix, &shell, &arguments].concat();
        let answer = Command::new(&words[0]).args(&words[1..]).output().expect("every Linux has a shell");
        if answer.status.success() {
            Ok(())
        } else {
            Err(format!("{} (apt-get install iproute2)", String::from_utf8_lossy(&answer.stderr).trim()))
        }
    }
}

impl Drop for NetnsLink {
    fn drop(&mut self) {
        // The namespace ends with its last process, and the interfaces end with the namespace.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// A process's network namespace; `None` if there is no such process or it has ended.
fn namespace(process: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
    Some(link.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Whether a process in the namespace can connect to `port` on this side.
    fn connects(link: &NetnsLink, port: u16) -> bool {
        let [enter, namespace] = link.far_end();
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let answer = Command::new(enter).args([&namespace, "timeout", "0.5", "bash", "-c", &script]).output();
        answer.expect("nsenter is part of util-linux").status.success()
    }

    #[test]
    fn a_cut_connection_is_silent_until_it_is_mended() {
        let link = match NetnsLink::lay() {
            Ok(link) => link,
            Err(why) => return crate::not_tested(&format!("links: {why}")),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        assert!(connects(&link, port));
        for way in [Way::There, Way::Back, Way::Both] {
            link.cut(way);
            assert!(!connects(&link, port), "{way:?}");
            link.mend();
            assert!(connects(&link, port), "{way:?}");
        }
    }
}
