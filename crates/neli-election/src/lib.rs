//! Leader election on Kafka for async Rust: one of many processes does the work, the others stand by.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let broker = neli_election::EmbeddedBroker::start()?;
//! let election = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
//! # let election = neli_election::Election::builder("billing").embedded(&broker);
//! let election = election.join().await?;
//! # let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
//! # tokio::spawn({ let election = election.clone(); async move { runs.recv().await; election.leave().await } });
//! election
//!     .serve(|lease| {
//! #       let ran = ran.clone();
//!         async move {
//!             let mut times = tokio::time::interval(std::time::Duration::from_secs(1));
//!             loop {
//!                 tokio::select! {
//!                     // The lead is to be given up, and waits for this task to end.
//!                     _ = lease.ending() => return,
//!                     _ = times.tick() => {
//!                         // Before each effect.
//!                         if lease.is_valid() {
//!                             println!("the only one, in term {}", lease.token());
//! #                           let _ = ran.send(());
//!                         }
//!                     }
//!                 }
//!             }
//!         }
//!     })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! The protocol is that of `neli-run`, and so is the journal: a program with this library and a `neli-run` of the same group elect one
//! leader among them. Nothing but a Kafka topic is needed, `<group>.neli`, which is created if it is missing.
//!
//! `cargo add neli-election --path neli-run/crates/neli-election` adds it to a program, whose code calls it `neli_election`.
//!
//! # What is guaranteed
//!
//! **No two [leases](Lease) of one election are valid at once.** A lease is counted from when a record was *sent* that came back from
//! Kafka in order; it is over a margin before another candidate may lead, and [`Lease::is_valid`] is false from then on, whatever threads,
//! runtimes and the network do, also after the process was stopped or the machine slept. The assumptions are those of `neli-run`: Kafka
//! keeps the records that a consumer could read, nobody deletes or forges them, and the clocks of two machines run at rates within 1 % of
//! each other. A topic whose settings may lose records is refused, or an [`Event::Warning`] names them.
//!
//! **Before a lead is released in order, the tasks under it have ended**: at a revoke, a resignation, an operator's request and
//! [`Election::leave`], every task of [`Election::serve`], [`Lead::run`] and [`Lease::run`] is awaited, and the callback of
//! [`Builder::before_release`] after them.
//!
//! # What is not
//!
//! When the lease is over the task is dropped, which ends it **at the await where it is**. Code that does not reach an await continues, and
//! this library can't kill it. So:
//!
//! - ask [`Lease::is_valid`] before each effect; it takes no lock;
//! - give the store the [token](Lease::token), and let it refuse one that is lower than the highest that it has seen: that is safe even
//!   where an effect was under way for longer than the margin;
//! - or run the work under `neli-run`, whose guard kills it and all that it has started.
//!
//! A process that ends without [`Election::leave`] releases nothing, whether it is killed or its `main` returns: the other candidates wait
//! until its lease has run out. (`neli-run` has a second process that releases for a dead one.) So leave at SIGTERM, and await that.
//!
//! One at a time is not *once*: a task that was dropped in the middle has done a part of its work.
//!
//! # Which call
//!
//! | a program that | calls |
//! |---|---|
//! | does its work for as long as it leads | [`Election::serve`], with a task that ends at [`Lease::ending`] |
//! | may be interrupted at any await | [`Election::background`] |
//! | answers requests, some of them as the leader alone | [`Election::serve`], and [`Lease::run`] for each such request |
//! | must know where else to send such requests | [`Election::leadership`] |
//! | sends requests to the leader and never leads | [`Follower`] |
//! | has a loop of its own, and asks in each turn whether it leads | [`Election::lead_within`] and [`Lead::run`], as below |
//!
//! The last one is for a loop such as that around goNELI's `Pulse`.
//!
//! ```
//! # use std::time::Duration;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let broker = neli_election::EmbeddedBroker::start()?;
//! # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
//! let mut held = None;
//! # let mut turns = 0;
//! loop {
//!     if held.is_none() {
//!         held = election.lead_within(Duration::from_secs(1)).await?;
//!     }
//!     if let Some(lead) = &mut held {
//!         // One step. The lead is not released before it has ended.
//!         let step = lead.run(async |lease| println!("one row, with the fencing token {}", lease.token()));
//!         if step.await.is_err() {
//!             // This lead is over, and the next one is another.
//!             held = None;
//!         }
//!     }
//! #   turns += 1;
//! #   if turns == 3 { break }
//!     // What every process does, whether it leads or not.
//! }
//! # Ok(()) }
//! ```
//!
//! A lead under which no task runs is held until it is dropped or must be given up.
//!
//! # Many roles
//!
//! A process that leads some of many roles, shards for example, stands for all of them on one session with Kafka: [`Builder::roles`] or
//! [`Builder::named_roles`], and [`Builder::join_roles`]. Each role has an [`Election`] with its own lead. The processes share the roles fairly: a process that leads
//! more roles than its share gives up one lead after the other, each as at any other revoke.
//!
//! # What it does to the process
//!
//! It starts threads for each candidate, or once for all [roles](Builder::roles) of a process: one that sends the heartbeats, one that reports
//! [warnings](Builder::on_warning), some that wait for Kafka, and librdkafka's. It starts no process, touches no signal, reads no environment
//! variable, and sets nothing global. Heartbeats do not depend on the runtime's threads: a task that keeps them busy keeps its lead. Linux only:
//! leases are counted on `CLOCK_BOOTTIME`.
//!
//! The linker takes the crate's `cnd_init` and `cnd_timedwait` for those of the C library, so that librdkafka's waits last no longer if the wall
//! clock is set back. Other C code of the program waits in the same way.
//!
//! A child of the program that was forked without an `exec` must not act under a [`Lease`]: nothing ends or extends it there, so it may still
//! be valid in the child when the lead was released. A program that is executed inherits some pipes of librdkafka, which do not close on
//! `exec`; it should leave them alone.
//!
//! # Features of the crate
//!
//! - `ssl`, on by default: TLS, and the logins SASL SCRAM and OAUTHBEARER, by the system's OpenSSL. Without it [`Builder::property`]
//!   refuses properties that need it, and only a cluster that speaks plain text can be reached.
//! - `ssl-vendored`: OpenSSL is built with the program. `libz-static`: zlib is built with it too.
//! - `gssapi`: Kerberos, by the system's libsasl2.
//! - `oidc`: logins by tokens that a provider of `OpenID` Connect gives, by the system's libcurl.
//!
//! # What only `neli-run` has
//!
//! A kill of the work at the lease's end; `--once`, `--window` and `--schedule`, so that work succeeds once for a key or a time; priorities
//! (`--priority`, `--preempt`); an overlap of two leaders' work (`--overlap`: a candidate of this library does not stand in such an
//! election); restarts and back-off, health checks and hooks, which a program writes as its own code; `resign` and `end` by an operator,
//! `status`, `watch` and `history`, which work on the elections of this library, too. And a broker that the processes of a machine share
//! (`--embedded`): an [`EmbeddedBroker`] is this process's alone.
//!
//! # Rights
//!
//! A candidate needs READ and WRITE on the topic, READ on the group of the election's name (except with [`Elector::Log`]), and CREATE if
//! the topic is missing. A [`Follower`] needs READ on the topic alone.

#![deny(missing_docs)]

mod builder;
mod driver;
mod error;
mod event;
mod follower;
mod handle;
mod leadership;
mod lease;
mod roles;
mod task_guard;
mod waiter;
mod warnings;
mod wording;

pub use builder::{Builder, Elector, EmbeddedBroker};
pub use error::{Error, Lost, Reason};
pub use event::{Event, Events, Leader};
pub use follower::Follower;
pub use handle::{Election, Lead};
pub use leadership::Leadership;
pub use lease::Lease;
pub use roles::Roles;
