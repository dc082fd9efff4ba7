//! Why a topic is refused, and why its settings are unknown.

use alloc::string::String;
use core::error::Error;
use core::fmt;

use super::LEAST_RETENTION;

/// A setting for which a topic is refused, with its value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RefusedSetting {
    /// `cleanup.policy` of a journal.
    CleanupPolicy(String),
    /// `cleanup.policy` of a topic of facts.
    CleanupPolicyOfFacts(String),
    /// `retention.ms` of a journal.
    RetentionMs(i64),
}

impl RefusedSetting {
    /// Kafka's name of the setting.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CleanupPolicy(_) | Self::CleanupPolicyOfFacts(_) => "cleanup.policy",
            Self::RetentionMs(_) => "retention.ms",
        }
    }
}

/// Shows the setting, its value and the right value.
impl fmt::Display for RefusedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CleanupPolicy(policy) => write!(f, "cleanup.policy={policy}: must be delete"),
            Self::CleanupPolicyOfFacts(policy) => {
                write!(f, "cleanup.policy={policy}: must be compact or compact,delete")
            }
            Self::RetentionMs(retention) => {
                write!(f, "retention.ms={retention}: must be -1 or at least {}", LEAST_RETENTION.as_millis())
            }
        }
    }
}

impl Error for RefusedSetting {}

/// Why the topic's settings could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingsUnread(pub String);

impl fmt::Display for SettingsUnread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SettingsUnread {}
