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
    /// The present problem.
    what: Option<String>,
    /// When it began.
    since: Time,
    /// When it is reported next. If it has ended: not sooner if it begins again.
    next: Time,
}

impl Reminder {
    /// Notes a problem that begins, or whose text changes. It is reported now if it is new.
    pub fn begin(&mut self, now: Time, what: String) {
        if self.what.replace(what).is_none() {
            (self.since, self.next) = (now, self.next.max(now));
        }
    }

    /// Notes the end of the problem. Returns how long it lasted, if there was one.
    pub fn end(&mut self, now: Time) -> Option<Duration> {
        self.next = Time::ZERO;
        self.what.take().map(|_| now.since(self.since))
    }

    /// Notes the end of a problem that may begin again at once: within 30 s it is not reported more often than that.
    pub fn pause(&mut self) {
        self.what = None;
    }

    /// The present problem, and since when.
    pub fn trouble(&self) -> Option<(Time, &str)> {
        self.what.as_deref().map(|what| (self.since, what))
    }

    /// The text to report now, and how long the problem has lasted.
    pub fn poll(&mut self, now: Time) -> Option<(String, Duration)> {
        let what = self.what.clone().filter(|_| now >= self.next)?;
        self.next = now + INTERVAL;
        Some((what, now.since(self.since)))
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.what.as_ref().map(|_| self.next)
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
    /// Whether one was refused since that was reported last. The next append, which shows whether they still are, may be 30 s later.
    was_refused_again: bool,
}

impl Troubles {
    /// Notes that Kafka has refused an append. While no broker answers, the outage is reported instead.
    pub fn append_was_refused(&mut self, now: Time, error: String) {
        if self.is_answered() {
            self.refused_appends.begin(now, error);
            self.was_refused_again = true;
        }
    }

    /// Notes that no broker answers. That the last append was not acknowledged is part of it.
    pub fn no_broker_answers(&mut self, now: Time, error: String) {
        self.outage.begin(now, error);
        self.refused_appends.pause();
        self.was_refused_again = false;
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
        if !self.was_refused_again {
            return None;
        }
        let (error, _) = self.refused_appends.poll(now)?;
        self.was_refused_again = false;
        Some(Note::AppendRefused { error })
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let refused_again = self.refused_appends.poll_timeout().filter(|_| self.was_refused_again);
        let reminders = [self.outage.poll_timeout(), self.group.poll_timeout(), refused_again];
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

    /// A standby appends nothing for 30 s.
    #[test]
    fn a_refused_append_is_reported_again_only_if_another_one_is_refused() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut troubles = Troubles::default();
        troubles.append_was_refused(at(1), "too large".to_owned());
        let refused = Some(Note::AppendRefused { error: "too large".to_owned() });
        assert_eq!(troubles.poll(at(1)), refused);
        assert_eq!((troubles.poll_timeout(), troubles.poll(at(31))), (None, None));
        troubles.append_was_refused(at(40), "too large".to_owned());
        assert_eq!((troubles.poll_timeout(), troubles.poll(at(40))), (Some(at(31)), refused.clone()));
        troubles.append_was_refused(at(41), "too large".to_owned());
        assert_eq!(troubles.poll(at(69)), None, "it was said 29 s ago");
        assert_eq!((troubles.poll_timeout(), troubles.poll(at(70))), (Some(at(70)), refused));
    }

    /// Otherwise it would be reported when Kafka answers again.
    #[test]
    fn a_refused_append_is_part_of_the_outage_that_follows() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut troubles = Troubles::default();
        for second in [1, 2] {
            troubles.append_was_refused(at(second), "no acknowledgement".to_owned());
            let _ = troubles.poll(at(second));
        }
        troubles.no_broker_answers(at(3), "no answer".to_owned());
        assert_eq!(
            troubles.poll(at(3)),
            Some(Note::BrokerDown { error: "no answer".to_owned(), down: Duration::ZERO })
        );
        assert_eq!(troubles.outage.end(at(10)), Some(Duration::from_secs(7)));
        assert_eq!(
            (troubles.poll_timeout(), troubles.poll(at(31)), troubles.refused_appends.trouble()),
            (None, None, None)
        );
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
