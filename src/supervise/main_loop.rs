//! The state of the main loop.

use neli_kafka::Nodes;
use neli_proto::guard::GuardStarts;

use crate::config::Config;
use crate::exit::ExitStatus;
use crate::process::descriptors::Reserve;
use crate::report::log::Logger;
use crate::supervise::embedded::EmbeddedBroker;
use crate::supervise::kafka_state::KafkaState;
use crate::supervise::listening::Publisher;
use crate::supervise::role::Role;
use crate::supervise::service_status::ServiceStatus;
use crate::supervise::settling::Settling;
use crate::supervise::shell::ShellState;
use crate::supervise::start::JobMaker;

/// The state that exists once in a process, and the nodes of its elections. Other modules add the methods.
pub(super) struct MainLoop {
    pub(super) config: Config,
    /// The elections' nodes, with this process's state in each election.
    pub(super) nodes: Nodes<Role>,
    pub(super) job_maker: JobMaker,
    /// With many roles: the order in which guards are started.
    pub(super) guard_starts: GuardStarts,
    /// Kafka's last refusal. Each role gets it, and one logs it.
    pub(super) refusal: Option<Box<str>>,
    pub(super) kafka: KafkaState,
    pub(super) shell: ShellState,
    pub(super) service_status: ServiceStatus,
    /// The publisher of snapshots, if HTTP is served.
    pub(super) publisher: Option<Publisher>,
    /// The progress of the start.
    pub(super) settling: Settling,
    pub(super) logger: Logger,
    /// The log for the output of other programs on stderr. It is the log itself, unless that goes to a file.
    pub(super) stderr: Logger,
    /// Descriptors for moments in which no other one is free.
    pub(super) reserve: Reserve,
    /// Descriptors for a Kafka client that replaces another one.
    pub(super) reserve_of_client: Reserve,
    /// The broker of `--embedded`.
    pub(super) broker: Option<EmbeddedBroker>,
    pub(super) has_warned_of_processor_time: bool,
    pub(super) has_warned_of_refused_waits: bool,
    /// Whether there may be more signals, answers of guards, or children that have ended, than one turn handles.
    pub(super) is_unfinished: bool,
    /// The exit status, once the process is ending.
    pub(super) ending: Option<ExitStatus>,
}
