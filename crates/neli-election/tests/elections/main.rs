//! Elections by the library with its embedded broker: in one program, since the tests wait most of the time.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod before_release;
mod follower;
mod leases;
mod limit;
mod roles;
mod serving;
mod warnings;
mod web_example;
