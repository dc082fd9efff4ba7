//! The cluster that this process has reached. Another cluster has a journal of its own, and so another leader: so whichever client is answered,
//! its cluster is compared with that of the first answer (R1).

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::client::{Client, ClientContext};

use crate::clock;
use crate::librdkafka::cluster_id;

/// The time between two questions to the bootstrap servers that have not answered.
const AGAIN: Duration = Duration::from_secs(20);

/// What the id of each mock begins with.
const MOCK: &str = "mockCluster";

/// What is wrong with two clusters, and what to do.
pub(super) const ONE_CLUSTER: &str =
    "each cluster would have a leader of its own, so name servers of one cluster alone";

/// The cluster that a process has reached.
#[derive(Debug, Default)]
pub struct Cluster {
    /// Its id, by the first answer.
    pub(super) id: OnceLock<String>,
    /// The line about another cluster, once one was found.
    refusal: OnceLock<String>,
    pub(super) servers: Mutex<Servers>,
}

#[derive(Debug, Default)]
pub(super) struct Servers {
    /// The bootstrap servers that belong to the cluster.
    pub(super) known: BTreeSet<String>,
    pub(super) is_asking: bool,
    /// When the others were asked last.
    pub(super) asked: Option<Time>,
}

impl Servers {
    pub(super) fn unknown(&self, bootstrap: &str) -> Vec<String> {
        bootstrap.split(',').filter(|server| !self.known.contains(*server)).map(str::to_owned).collect()
    }

    /// Whether the unknown ones are to be asked now.
    pub(super) fn begin_question(&mut self, bootstrap: &str) -> bool {
        let is_due = !self.is_asking && self.asked.is_none_or(|asked| clock::now().since(asked) >= AGAIN);
        let begins = is_due && bootstrap.contains(',') && !self.unknown(bootstrap).is_empty();
        self.is_asking |= begins;
        begins
    }
}

impl Cluster {
    /// See [`Access::admit`](super::access::Access::admit).
    pub(super) fn admit(&self, client: &Client<impl ClientContext>) -> Result<(), String> {
        if let Some(id) = cluster_id(client) {
            let known = self.id.get_or_init(|| id.clone());
            if *known != id {
                self.refuse(format!(
                    "answers of two clusters: the first of \"{known}\", and one of \"{id}\" now; {ONE_CLUSTER}; if the cluster was made anew, \
                     start again"
                ));
            }
        }
        self.refusal.get().map_or(Ok(()), |refusal| Err(refusal.clone()))
    }

    /// Whether the cluster that was reached is librdkafka's mock: an embedded broker.
    pub(super) fn is_embedded(&self) -> bool {
        self.id.get().is_some_and(|id| id.starts_with(MOCK))
    }

    pub(super) fn refuse(&self, refusal: String) {
        // The first refusal stays.
        let _ = self.refusal.set(refusal);
    }
}
