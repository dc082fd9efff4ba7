//! This process's members of the group: the current one, and earlier ones that are leaving. One member stands for all roles.

/// `M` is [`Member`](crate::group::Member), except in tests.
#[derive(Debug)]
pub(super) struct Members<M> {
    current: Option<M>,
    /// The number of members so far, which is the number of the last one.
    count: u32,
    /// The members that have not left yet.
    leaving: u32,
}

impl<M> Members<M> {
    /// The members of a process that has not joined the group yet.
    pub(super) const fn none() -> Self {
        Self { current: None, count: 0, leaving: 0 }
    }

    /// Joins the group by a new member, which gets the next number.
    pub(super) fn join<E>(&mut self, join: impl FnOnce(u32) -> Result<M, E>) -> Result<(), E> {
        self.count += 1;
        self.current = Some(join(self.count)?);
        Ok(())
    }

    /// Takes the current member, which is to leave, if there is one. It counts as leaving until it has [left](Self::left).
    pub(super) fn leave(&mut self) -> Option<M> {
        let member = self.current.take()?;
        self.leaving += 1;
        Some(member)
    }

    /// A member that was leaving has left.
    pub(super) fn left(&mut self) {
        self.leaving = self.leaving.saturating_sub(1);
    }

    /// Whether the member with this number is the current one. Reports of earlier members no longer count.
    pub(super) const fn is_current(&self, number: u32) -> bool {
        self.current.is_some() && number == self.count
    }

    /// The current member, if there is one.
    pub(super) const fn current(&self) -> Option<&M> {
        self.current.as_ref()
    }

    /// Whether there is a current member.
    pub(super) const fn is_in_group(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a member is still leaving.
    pub(super) const fn are_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// Stops waiting for members that are leaving.
    pub(super) const fn stop_waiting(&mut self) {
        self.leaving = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_left_is_no_longer_current() {
        let mut members = Members::none();
        let join = |members: &mut Members<u32>| members.join(Ok::<_, String>).map(|()| members.count);
        assert!(!members.is_current(0) && !members.is_current(1));
        let first = join(&mut members).unwrap();
        assert!(members.is_current(first));
        assert_eq!(members.leave(), Some(first));
        assert!(!members.is_current(first), "its words that are still on their way");
        let second = join(&mut members).unwrap();
        assert!(members.is_current(second) && !members.is_current(first));
        assert!(members.are_leaving());
        members.left();
        assert!(!members.are_leaving() && members.is_in_group());
        assert_eq!(members.join(|_| Err("no thread".to_owned())), Err("no thread".to_owned()));
    }
}
