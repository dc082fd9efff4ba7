//! The main loop's timer. (tokio's timers do not advance while the machine sleeps.)

use std::io;

use neli_proto::time::Time;

use crate::process::ready::Ready;
use neli_kafka::alarm::Alarm;

/// An [`Alarm`] that can be awaited.
pub(crate) struct Timer {
    alarm: Alarm,
    ready: Ready,
}

impl Timer {
    /// A timer that is not set. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let alarm = Alarm::new()?;
        Ok(Self { ready: Ready::of(&alarm)?, alarm })
    }

    /// Sets the time; `None` means never.
    pub(crate) fn set(&mut self, at: Option<Time>) {
        // It can't fail for our own descriptor.
        let _ = self.alarm.set(at);
    }

    /// Waits until the time has come.
    pub(crate) async fn due(&mut self) {
        self.ready.wait().await;
        self.alarm.acknowledge();
    }
}
