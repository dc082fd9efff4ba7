//! A trouble that lasts is said at once, and then every 30 s.

use std::time::Duration;

use super::time::Time;

/// Between two reminders.
const INTERVAL: Duration = Duration::from_secs(30);

/// What is to be said of one kind of trouble.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Reminder {
    trouble: Option<Trouble>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Trouble {
    what: String,
    since: Time,
    next: Time,
}

impl Reminder {
    /// The trouble begins, or goes on in other words. Said now when it is new.
    pub fn begin(&mut self, now: Time, what: String) {
        match &mut self.trouble {
            Some(trouble) => trouble.what = what,
            None => self.trouble = Some(Trouble { what, since: now, next: now }),
        }
    }

    /// The trouble is over: how long it lasted, when it was there.
    pub fn end(&mut self, now: Time) -> Option<Duration> {
        self.trouble.take().map(|trouble| now.since(trouble.since))
    }

    /// The trouble that is there, and since when.
    #[must_use]
    pub fn trouble(&self) -> Option<(Time, &str)> {
        self.trouble.as_ref().map(|trouble| (trouble.since, trouble.what.as_str()))
    }

    /// What to say now, and for how long it has been so.
    pub fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        let trouble = self.trouble.as_mut().filter(|trouble| now >= trouble.next)?;
        trouble.next = now + INTERVAL;
        Some((trouble.what.clone(), now.since(trouble.since)))
    }

    /// When to call [`poll`](Self::poll) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.trouble.as_ref().map(|trouble| trouble.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_then_every_thirty_seconds_until_it_ends() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminder = Reminder::default();
        assert_eq!(reminder.poll(at(0)), None);
        reminder.begin(at(1), "refused".to_owned());
        assert_eq!(reminder.poll(at(1)), Some(("refused".to_owned(), Duration::ZERO)));
        reminder.begin(at(2), "unreachable".to_owned());
        assert_eq!(reminder.poll(at(30)), None);
        assert_eq!(reminder.poll_timeout(), Some(at(31)));
        assert_eq!(reminder.poll(at(31)), Some(("unreachable".to_owned(), Duration::from_secs(30))));
        assert_eq!(reminder.end(at(40)), Some(Duration::from_secs(39)));
        assert_eq!(reminder.poll_timeout(), None);
    }
}
