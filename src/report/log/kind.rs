//! The name and the level of each event.

use super::event::{Event, From};
use crate::config::LogFormat;
use crate::report::level::Level;

impl Event {
    /// The level of its line in this format. In text, an event that changes nothing is shown with `-v` only.
    #[must_use]
    pub const fn level_in(&self, format: LogFormat) -> Level {
        match (format, self) {
            (LogFormat::Text, Self::Assigned { leads: true, .. }) => Level::Debug,
            (LogFormat::Json | LogFormat::Text, _) => self.level(),
        }
    }

    const fn level(&self) -> Level {
        match self {
            Self::Debug { .. } | Self::Librdkafka { .. } => Level::Debug,
            Self::Error { .. } | Self::Fenced { .. } | Self::GuardLost { .. } | Self::Superseded { .. } => Level::Error,
            Self::BrokerDown { .. }
            // This is also shown with `-q`, because it contains the reason for a status that is not the job's.
            | Self::Exiting { status: 1.., from: From::NeliRun, .. }
            | Self::FenceWarning { .. }
            | Self::HookFailed { .. }
            | Self::JobExited { status: 1.., by_itself: true, .. }
            | Self::JobKilled { .. }
            // With the status of a run that failed elsewhere, this line says which run that was.
            | Self::OnceSkipped { done: false, .. }
            | Self::Released { delivered: false, .. }
            | Self::Unhealthy { .. }
            | Self::Warning { .. }
            | Self::WindowSkipped { .. } => Level::Warning,
            Self::Assigned { .. }
            | Self::BrokerUp { .. }
            | Self::Claiming { .. }
            | Self::Ended { .. }
            | Self::Exiting { .. }
            | Self::JobExited { .. }
            | Self::JobStarted { .. }
            | Self::Leading { .. }
            | Self::Listening { .. }
            | Self::Preempting { .. }
            | Self::OnceSkipped { .. }
            | Self::Overlapped { .. }
            | Self::Released { .. }
            | Self::Resigned { .. }
            | Self::Restarting { .. }
            | Self::Revoked { .. }
            | Self::Settling { .. }
            | Self::Standby { .. }
            | Self::Started { .. }
            | Self::Stopping { .. }
            | Self::TopicCreated { .. }
            | Self::WindowAwaited { .. }
            | Self::Yielding { .. } => Level::Info,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Assigned { .. } => "assigned",
            Self::BrokerDown { .. } => "broker_down",
            Self::BrokerUp { .. } => "broker_up",
            Self::Claiming { .. } => "claiming",
            Self::Debug { .. } => "debug",
            Self::Ended { .. } => "ended",
            Self::Error { .. } => "error",
            Self::Exiting { .. } => "exiting",
            Self::FenceWarning { .. } => "fence_warning",
            Self::Fenced { .. } => "fenced",
            Self::GuardLost { .. } => "guard_lost",
            Self::HookFailed { .. } => "hook_failed",
            Self::JobExited { .. } => "job_exited",
            Self::JobKilled { .. } => "job_killed",
            Self::JobStarted { .. } => "job_started",
            Self::Leading { .. } => "leading",
            Self::Librdkafka { .. } => "librdkafka",
            Self::Listening { .. } => "listening",
            Self::Preempting { .. } => "preempting",
            Self::OnceSkipped { .. } => "once_skipped",
            Self::Overlapped { .. } => "overlapped",
            Self::Released { .. } => "released",
            Self::Resigned { .. } => "resigned",
            Self::Restarting { .. } => "restarting",
            Self::Revoked { .. } => "revoked",
            Self::Settling { .. } => "settling",
            Self::Standby { .. } => "standby",
            Self::Started { .. } => "started",
            Self::Stopping { .. } => "stopping",
            Self::Superseded { .. } => "superseded",
            Self::TopicCreated { .. } => "topic_created",
            Self::Unhealthy { .. } => "unhealthy",
            Self::Warning { .. } => "warning",
            Self::WindowAwaited { .. } => "window_awaited",
            Self::WindowSkipped { .. } => "window_skipped",
            Self::Yielding { .. } => "yielding",
        }
    }
}
