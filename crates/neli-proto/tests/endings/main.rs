//! How a run, a term and `neli-run` itself come to an end (README.md, Exit statuses; man/neli-run.1.in, SIGNALS): every
//! two causes, and a stop at every instant. Node and guard are the real ones; Kafka and the job are the fixture's.

mod cases;
mod causes;
mod fixture;
#[path = "../records/mod.rs"]
mod records;
mod stops;
