//! The only source of randomness: the kernel's.

use std::fs::File;
use std::io::{self, Read};

/// This many random bytes.
///
/// # Errors
///
/// When `/dev/urandom` can't be read.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
