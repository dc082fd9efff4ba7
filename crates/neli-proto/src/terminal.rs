//! The terminal of `neli-run`.

/// Which process group has the foreground of `neli-run`'s terminal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Foreground {
    /// Neither the job's nor `neli-run`'s, or there is no terminal.
    Elsewhere,
    /// The job's.
    Job,
    /// That of `neli-run`'s own process group.
    NeliRun,
}
