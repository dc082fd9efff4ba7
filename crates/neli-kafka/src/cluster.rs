//! The cluster that this process has reached. Another cluster has a journal of its own, and so another leader: so whichever client is answered,
//! its cluster is compared with that of the first answer (R1).

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::time::Time;

use crate::clock;

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
    pub(super) id: Option<String>,
    /// The line about another cluster, once one was found.
    refusal: Option<String>,
    /// The bootstrap servers that belong to it.
    pub(super) known: BTreeSet<String>,
    pub(super) is_asking: bool,
    /// When the others were asked last.
    pub(super) asked: Option<Time>,
    /// How many of these have taken a connection, and have not said yet of which cluster they are.
    pub(super) slow: usize,
}

impl Cluster {
    pub(super) fn unknown(&self, bootstrap: &str) -> Vec<String> {
        bootstrap.split(',').filter(|server| !self.known.contains(*server)).map(str::to_owned).collect()
    }

    /// Whether the unknown servers are to be asked now.
    pub(super) fn begin_question(&mut self, bootstrap: &str) -> bool {
        let is_due = !self.is_asking && self.asked.is_none_or(|asked| clock::now().since(asked) >= AGAIN);
        let begins = is_due && bootstrap.contains(',') && !self.unknown(bootstrap).is_empty();
        self.is_asking |= begins;
        begins
    }

    /// Whether a client that was told this `id` is in this cluster, and no other one was found.
    pub(super) fn admit(&mut self, id: Option<String>) -> Result<(), String> {
        if let Some(id) = id {
            let known = self.id.get_or_insert_with(|| id.clone());
            if *known != id {
                let refusal = format!(
                    "answers of two clusters: the first of \"{known}\", and one of \"{id}\" now; {ONE_CLUSTER}; if the cluster was made anew, \
                     start again"
                );
                self.refuse(refusal);
            }
        }
        self.refusal.clone().map_or(Ok(()), Err)
    }

    /// Whether it is librdkafka's mock: an embedded broker.
    pub(super) fn is_embedded(&self) -> bool {
        self.id.as_ref().is_some_and(|id| id.starts_with(MOCK))
    }

    pub(super) fn refuse(&mut self, refusal: String) {
        // The first refusal stays.
        self.refusal.get_or_insert(refusal);
    }
}
