//! Repeats a warning about a problem that lasts: at once, and then every 30 s, separately for each kind of problem.

use alloc::string::String;
use core::time::Duration;

use crate::note::Note;
use crate::time::Time;

/// The time between two reminders.
pub(crate) const INTERVAL: Duration = Duration::from_secs(30);

/// The reminders about one kind of problem.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Reminder {
    trouble: Option<Trouble>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Trouble {
    what: String,
    since: Time,
    next: Time,
    /// Whether it has ended. It is kept, since it is not reported sooner if it begins again.
    is_over: bool,
}

impl Reminder {
    /// Notes a problem that begins, or whose text changes. It is reported now if it is new.
    pub fn begin(&mut self, now: Time, what: String) {
        let (since, next) = match &self.trouble {
            Some(trouble) if trouble.is_over => (now, trouble.next),
            Some(trouble) => (trouble.since, trouble.next),
            None => (now, now),
        };
        self.trouble = Some(Trouble { what, since, next, is_over: false });
    }

    /// Notes the end of the problem. Returns how long it lasted, if there was one.
    pub fn end(&mut self, now: Time) -> Option<Duration> {
        self.trouble.take().map(|trouble| now.since(trouble.since))
    }

    /// Notes the end of a problem that may begin again at once: within 30 s it is not reported more often than that.
    pub fn pause(&mut self) {
        self.trouble.iter_mut().for_each(|trouble| trouble.is_over = true);
    }

    /// The present problem, and since when.
    pub fn trouble(&self) -> Option<(Time, &str)> {
        self.lasting().map(|trouble| (trouble.since, trouble.what.as_str()))
    }

    /// The text to report now, and how long the problem has lasted.
    pub fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        let trouble = self.trouble.as_mut().filter(|trouble| !trouble.is_over && now >= trouble.next)?;
        trouble.next = now + INTERVAL;
        Some((trouble.what.clone(), now.since(trouble.since)))
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.lasting().map(|trouble| trouble.next)
    }

    fn lasting(&self) -> Option<&Trouble> {
        self.trouble.as_ref().filter(|trouble| !trouble.is_over)
    }
}

/// The lasting problems of a process with Kafka, as its session reports them.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    /// No broker answers.
    pub outage: Reminder,
    /// The group does not take this process's member.
    pub group: Reminder,
    /// Appends that Kafka refuses, with the last reason.
    pub refused_appends: Reminder,
}

impl Troubles {
    /// Notes that Kafka has refused an append. While no broker answers, the outage is reported instead.
    pub fn append_was_refused(&mut self, now: Time, error: String) {
        if self.is_answered() {
            self.refused_appends.begin(now, error);
        }
    }

    /// Whether a broker answers, as far as this process knows.
    pub fn is_answered(&self) -> bool {
        self.outage.trouble().is_none()
    }

    /// What is to be reported now. Must be called until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Note> {
        if let Some((error, down)) = self.outage.poll(now) {
            return Some(Note::BrokerDown { error, down });
        }
        if let Some((error, _)) = self.group.poll(now) {
            return Some(Note::GroupRefuses { error });
        }
        self.refused_appends.poll(now).map(|(error, _)| Note::AppendRefused { error })
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let reminders = [self.outage.poll_timeout(), self.group.poll_timeout(), self.refused_appends.poll_timeout()];
        reminders.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;

    #[test]
    fn one_that_begins_again_is_reported_every_thirty_seconds_and_never_more_often() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminder = Reminder::default();
        reminder.begin(at(1), "not allowed".to_owned());
        assert_eq!(reminder.poll(at(1)), Some(("not allowed".to_owned(), Duration::ZERO)));
        reminder.pause();
        assert_eq!(reminder.poll(at(31)), None);
        assert_eq!((reminder.trouble(), reminder.poll_timeout()), (None, None));
        reminder.begin(at(2), "too large".to_owned());
        assert_eq!(reminder.poll(at(30)), None, "it was said 29 s ago");
        assert_eq!(reminder.trouble(), Some((at(2), "too large")));
        assert_eq!(reminder.poll(at(31)), Some(("too large".to_owned(), Duration::from_secs(29))));
        reminder.pause();
        reminder.begin(at(90), "not allowed".to_owned());
        assert_eq!(reminder.poll(at(90)), Some(("not allowed".to_owned(), Duration::ZERO)));
    }

    #[test]
    fn it_is_reported_at_once_then_every_thirty_seconds_until_it_ends() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminder = Reminder::default();
        assert_eq!(reminder.poll(at(0)), None);
        reminder.begin(at(1), "refused".to_owned());
        assert_eq!(reminder.poll(at(1)), Some(("refused".to_owned(), Duration::ZERO)));
        reminder.begin(at(2), "unreachable".to_owned());
        assert_eq!(reminder.trouble(), Some((at(1), "unreachable")));
        assert_eq!(reminder.poll(at(30)), None);
        assert_eq!(reminder.poll_timeout(), Some(at(31)));
        assert_eq!(reminder.poll(at(31)), Some(("unreachable".to_owned(), Duration::from_secs(30))));
        assert_eq!(reminder.end(at(40)), Some(Duration::from_secs(39)));
        assert_eq!(reminder.poll_timeout(), None);
    }
}
