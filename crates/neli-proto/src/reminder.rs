//! Repeats a warning about a problem that lasts: at once, and then every 30 s, separately for each kind of problem.

use alloc::string::String;
use alloc::vec::Vec;
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
    /// Whether it has ended. Of several it is kept, to limit how soon it is reported again.
    is_over: bool,
}

impl Trouble {
    /// The text, and how long the problem has lasted, if it is due.
    fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        (now >= self.next).then(|| {
            self.next = now + INTERVAL;
            (self.what.clone(), now.since(self.since))
        })
    }
}

impl Reminder {
    /// Notes a problem that begins, or whose text changes. It is reported now if it is new.
    pub fn begin(&mut self, now: Time, what: String) {
        match &mut self.trouble {
            Some(trouble) => trouble.what = what,
            None => self.trouble = Some(Trouble { what, since: now, next: now, is_over: false }),
        }
    }

    /// Notes the end of the problem. Returns how long it lasted, if there was one.
    pub fn end(&mut self, now: Time) -> Option<Duration> {
        self.trouble.take().map(|trouble| now.since(trouble.since))
    }

    /// The present problem, and since when.
    pub fn trouble(&self) -> Option<(Time, &str)> {
        self.trouble.as_ref().map(|trouble| (trouble.since, trouble.what.as_str()))
    }

    /// The text to report now, and how long the problem has lasted.
    pub fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        self.trouble.as_mut()?.poll(now)
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.trouble.as_ref().map(|trouble| trouble.next)
    }
}

/// Reminders about several kinds of problems. Each is reported at once, and then every 30 s while it lasts. One that ends and begins again
/// within 30 s is not reported more often than that.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Reminders {
    /// The problems in the order in which they began; the last one is the latest.
    kinds: Vec<Trouble>,
}

impl Reminders {
    /// Notes a problem that begins or continues. It is reported now if it is new.
    pub fn begin(&mut self, now: Time, what: String) {
        self.kinds.retain(|kind| !kind.is_over || now < kind.next);
        let next = match self.kinds.iter().position(|kind| kind.what == what) {
            Some(at) if !self.kinds[at].is_over => return,
            // It has begun again, so it is the latest now, but is not reported sooner than before.
            Some(at) => self.kinds.remove(at).next,
            None => now,
        };
        self.kinds.push(Trouble { what, since: now, next, is_over: false });
    }

    /// Notes that all problems have ended.
    pub fn end(&mut self) {
        self.kinds.iter_mut().for_each(|kind| kind.is_over = true);
    }

    /// The latest present problem, and since when.
    pub fn trouble(&self) -> Option<(Time, &str)> {
        self.lasting().last().map(|trouble| (trouble.since, trouble.what.as_str()))
    }

    /// The text to report now, and how long that problem has lasted. Must be called until there is none.
    pub fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        self.kinds.iter_mut().filter(|kind| !kind.is_over).find_map(|kind| kind.poll(now))
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.lasting().map(|trouble| trouble.next).min()
    }

    fn lasting(&self) -> impl Iterator<Item = &Trouble> {
        self.kinds.iter().filter(|kind| !kind.is_over)
    }
}

/// The lasting problems of a process with Kafka, as its session reports them.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    /// No broker answers.
    pub outage: Reminder,
    /// The group does not take this process's member.
    pub group: Reminder,
    /// Appends that Kafka refuses, by Kafka's reasons.
    pub refused_appends: Reminders,
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
    fn each_kind_is_reported_at_once_then_every_thirty_seconds_and_never_more_often() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminders = Reminders::default();
        reminders.begin(at(1), "too large".to_owned());
        assert_eq!(reminders.poll(at(1)), Some(("too large".to_owned(), Duration::ZERO)));
        reminders.begin(at(2), "too large".to_owned());
        assert_eq!(reminders.poll(at(2)), None);
        reminders.begin(at(3), "not allowed".to_owned());
        assert_eq!(reminders.poll(at(3)), Some(("not allowed".to_owned(), Duration::ZERO)));
        assert_eq!(reminders.trouble(), Some((at(3), "not allowed")));
        assert_eq!(reminders.poll_timeout(), Some(at(31)));
        assert_eq!(reminders.poll(at(31)), Some(("too large".to_owned(), Duration::from_secs(30))));
        reminders.end();
        assert_eq!((reminders.trouble(), reminders.poll_timeout()), (None, None));

        reminders.begin(at(32), "not allowed".to_owned());
        assert_eq!(reminders.poll(at(32)), None, "it was said 29 s ago");
        assert_eq!(reminders.poll(at(33)), Some(("not allowed".to_owned(), Duration::from_secs(1))));
        reminders.end();
        reminders.begin(at(90), "not allowed".to_owned());
        assert_eq!(reminders.poll(at(90)), Some(("not allowed".to_owned(), Duration::ZERO)));
    }

    #[test]
    fn a_problem_that_lasts_is_not_reported_as_new() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminders = Reminders::default();
        reminders.begin(at(1), "too large".to_owned());
        assert!(reminders.poll(at(1)).is_some());
        reminders.begin(at(40), "too large".to_owned());
        assert_eq!(reminders.trouble(), Some((at(1), "too large")));
        assert_eq!(reminders.poll(at(40)), Some(("too large".to_owned(), Duration::from_secs(39))));
    }

    #[test]
    fn a_problem_that_begins_again_is_the_latest() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reminders = Reminders::default();
        for (seconds, what) in [(1, "too large"), (2, "not allowed")] {
            reminders.begin(at(seconds), what.to_owned());
            assert!(reminders.poll(at(seconds)).is_some());
        }
        reminders.end();
        for (seconds, what) in [(3, "not allowed"), (4, "too large")] {
            reminders.begin(at(seconds), what.to_owned());
            assert_eq!(reminders.poll(at(seconds)), None, "it was said a moment ago");
        }
        assert_eq!(reminders.trouble(), Some((at(4), "too large")));
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
