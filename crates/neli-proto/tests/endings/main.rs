//! How a run, a term and `neli-run` itself end (docs/options.md, Exit statuses; man/neli-run.1.in, SIGNALS): every pair of causes, and a stop
//! at every instant. Node and guard are the real objects; Kafka and the job are simulated.

mod cases;
mod causes;
mod fixture;
#[path = "../records/mod.rs"]
mod records;
mod stops;
