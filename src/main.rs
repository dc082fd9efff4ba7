//! Parses, calls, and turns the outcome into an exit status.

fn main() {}
