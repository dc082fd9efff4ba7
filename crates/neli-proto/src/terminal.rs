//! The terminal of `neli-run`.

/// The process group that has the foreground of `neli-run`'s terminal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Foreground {
    /// Neither the job's nor that of `neli-run`, or there is no terminal.
    Elsewhere,
    /// The job's.
    Job,
    /// That of `neli-run`'s own process group.
    NeliRun,
}
