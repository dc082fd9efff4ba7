//! The main loop's timer. (tokio's own stand still while the machine sleeps.)

use std::io;

use neli_proto::time::Time;

use crate::process::ready::Ready;
use neli::program::alarm::Alarm;

/// An [`Alarm`] that can be awaited.
pub(crate) struct Timer {
    alarm: Alarm,
    ready: Ready,
}

impl Timer {
    /// A timer that is not set. To be called within a runtime.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor to spare.
    pub(crate) fn new() -> io::Result<Self> {
        let alarm = Alarm::new()?;
        Ok(Self { ready: Ready::of(&alarm)?, alarm })
    }

    /// Sets it anew; `None` is never.
    pub(crate) fn set(&mut self, at: Option<Time>) {
        // It can't fail on a descriptor that is ours.
        let _ = self.alarm.set(at);
    }

    /// Waits until it goes off.
    pub(crate) async fn due(&mut self) {
        self.ready.wait().await;
        self.alarm.acknowledge();
    }
}
