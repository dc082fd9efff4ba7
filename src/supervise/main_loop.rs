//! The state of the main loop.

use neli::program::{Nodes, embedded};
use neli_proto::guard::GuardStarts;

use crate::config::Config;
use crate::exit::ExitStatus;
use crate::process::descriptors::Reserve;
use crate::report::log::Logger;
use crate::supervise::kafka_state::KafkaState;
use crate::supervise::listening::Publisher;
use crate::supervise::role::Role;
use crate::supervise::service_status::ServiceStatus;
use crate::supervise::session::Session;
use crate::supervise::settling::Settling;
use crate::supervise::start::JobMaker;

/// What exists once in a process, and the nodes of its elections. The other modules add its methods.
pub(super) struct MainLoop {
    pub(super) config: Config,
    /// The elections' nodes, with all that this process has in each election.
    pub(super) nodes: Nodes<Role>,
    pub(super) job_maker: JobMaker,
    /// Where there are many roles: whose guard is started next.
    pub(super) guard_starts: GuardStarts,
    /// Kafka's last refusal: each role gets it, and one logs it.
    pub(super) refusal: Option<Box<str>>,
    pub(super) kafka: KafkaState,
    pub(super) session: Session,
    pub(super) service_status: ServiceStatus,
    /// Where HTTP is served.
    pub(super) publisher: Option<Publisher>,
    /// How far the start has come.
    pub(super) settling: Settling,
    pub(super) logger: Logger,
    /// The way to stderr for what others write: the log's, unless that goes to a file.
    pub(super) stderr: Logger,
    /// For the moments in which one more descriptor is needed, whatever else is open.
    pub(super) reserve: Reserve,
    /// The same for a client of Kafka that is made anew.
    pub(super) reserve_of_client: Reserve,
    /// The embedded brokers that this process has started: children that are no part of a job.
    pub(super) brokers_started: embedded::StartedBrokers,
    /// How the process is to end, once it is.
    pub(super) ending: Option<ExitStatus>,
}
