//! What is known of a candidate outside of its thread.

use std::sync::Arc;

use neli_proto::node::Status;
use neli_proto::record::Offset;
use tokio::sync::{broadcast, watch};

use crate::error::Error;
use crate::event::{Event, Leader};
use crate::lease::{Command, Commands, Tenure};

/// The state that handles and leads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) commands: Commands,
    pub(crate) state: watch::Receiver<State>,
    pub(crate) events: broadcast::Receiver<Event>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.commands.send(Command::Leave { all: false });
    }
}

/// What is known of a candidate outside of its thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// It has read the journal, the process may claim, and it stands for election.
    pub(crate) stands: bool,
    /// The term under which tasks may still run, or of which the release was not sent yet.
    pub(crate) unreleased: Option<Offset>,
    /// The lead that the candidate holds.
    pub(crate) tenure: Option<Arc<Tenure>>,
    pub(crate) leader: Option<Leader>,
    /// What the node knows, without the standbys.
    pub(crate) status: Status,
    /// Why Kafka does not answer, if it does not.
    pub(crate) trouble: Option<String>,
    /// That a batch of the journal can't be decoded, if so.
    pub(crate) undecodable: Option<String>,
    /// Why the candidate no longer stands for election, if so.
    pub(crate) ended: Option<Error>,
}

impl Shared {
    /// Waits until the state gives something, or the candidate stands no more.
    pub(crate) async fn wait_for<T>(&self, mut what: impl FnMut(&State) -> Option<T>) -> Result<T, Error> {
        let mut states = self.state.clone();
        loop {
            {
                let state = states.borrow_and_update();
                if let Some(error) = &state.ended {
                    return Err(error.clone());
                }
                if let Some(found) = what(&state) {
                    return Ok(found);
                }
            }
            if states.changed().await.is_err() {
                let ended = states.borrow().ended.clone();
                return Err(ended.unwrap_or_else(|| Error::System("the election's thread has panicked".to_owned())));
            }
        }
    }
}
