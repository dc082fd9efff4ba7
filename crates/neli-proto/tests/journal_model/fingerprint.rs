//! States are identified by hashes of 128 bits: among ten million states the probability that two different ones collide is 1 in 10^24.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The fingerprint of anything that can be hashed.
pub(crate) fn of(thing: &impl Hash) -> u128 {
    let mut hasher = Fingerprinter { left: 0x243f_6a88_85a3_08d3, right: 0x1319_8a2e_0370_7344 };
    thing.hash(&mut hasher);
    let Fingerprinter { left, right } = hasher;
    (u128::from(fold(left, 0xa409_3822_299f_31d1)) << 64) | u128::from(fold(right, 0x082e_fa98_ec4e_6c89))
}

/// Two lanes of folded multiplication with different constants.
struct Fingerprinter {
    left: u64,
    right: u64,
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Fingerprinter {
    fn finish(&self) -> u64 {
        self.left
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.write_u64(chunk.iter().fold(chunk.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.left = fold(self.left ^ value ^ 0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c);
        self.right = fold(self.right.rotate_left(29) ^ value ^ 0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// For collections of fingerprints.
pub(crate) type ItsOwnHash = BuildHasherDefault<Identity>;

/// A fingerprint is its own hash.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let half = bytes.first_chunk().copied().unwrap_or_default();
        self.0 = u64::from_ne_bytes(half);
    }
}
