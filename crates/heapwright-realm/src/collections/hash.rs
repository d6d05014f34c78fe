//! The default hash of maps: one folded multiplication per word, from a seed of the process.
//!
//! ```text
//!   a number   state = fold(state ^ number, K)
//!   bytes      state = fold(8 of them ^ key, the next 8 ^ state)
//!   fold(a, b) combines the two halves of the 128-bit product
//! ```
//!
//! The hash is as in wyhash (Wang Yi) and foldhash (Orson Peters). Seed and key come from the
//! system. So no outsider knows which keys collide, or which bytes make a product zero and hide the
//! bytes before them. The hash is not cryptographic: an observer of look-up times may find
//! collisions. If that matters, give the map another [`BuildHasher`].
#![forbid(unsafe_code)]

use core::hash::{BuildHasher, Hasher};

use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU64, Ordering};

/// An odd number without a pattern: the fractional part of the golden ratio.
const K: u64 = 0x9e37_79b9_7f4a_7c15;
/// Another such number, of the square root of 3.
const L: u64 = 0xbb67_ae85_84ca_a73b;

/// Makes hashers that all begin with the seed of the process.
///
/// ```
/// use core::hash::BuildHasher;
/// use heapwright::gc::Seeded;
/// assert_eq!(Seeded::new().hash_one("text"), Seeded::new().hash_one("text"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    seed: u64,
    key: u64,
}

impl Seeded {
    /// Makes a `Seeded` with the process's seed.
    #[must_use]
    pub fn new() -> Self {
        static SEED: AtomicU64 = AtomicU64::new(0);
        let mut seed = SEED.load(Ordering::Relaxed);
        if seed == 0 {
            let mut bytes = [0; 8];
            os::random(&mut bytes);
            let drawn = u64::from_ne_bytes(bytes) | 1;
            // All threads use the seed that is stored first.
            seed = SEED
                .compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|known| known, |_| drawn);
        }
        Self { seed, key: seed.wrapping_mul(L) }
    }
}

impl Default for Seeded {
    fn default() -> Self {
        Self::new()
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folding;

    #[inline]
    fn build_hasher(&self) -> Folding {
        Folding { state: self.seed, key: self.key }
    }
}

/// The hasher of [`Seeded`].
#[derive(Clone, Debug)]
pub struct Folding {
    state: u64,
    key: u64,
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[inline]
fn word(bytes: &[u8], from: usize) -> u64 {
    u64::from_le_bytes(core::array::from_fn(|n| bytes[from + n]))
}

#[inline]
fn half(bytes: &[u8], from: usize) -> u64 {
    u64::from(u32::from_le_bytes(core::array::from_fn(|n| bytes[from + n])))
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while rest.len() > 16 {
            self.state = fold(word(rest, 0) ^ self.key, word(rest, 8) ^ self.state);
            rest = &rest[16..];
        }
        let length = rest.len();
        let (low, high) = match length {
            8.. => (word(rest, 0), word(rest, length - 8)),
            4.. => (half(rest, 0), half(rest, length - 4)),
            1.. => {
                (u64::from(rest[0]) | u64::from(rest[length / 2]) << 8, u64::from(rest[length - 1]))
            }
            0 => (0, 0),
        };
        let counted = self.state.wrapping_add((bytes.len() as u64).wrapping_mul(K));
        self.state = fold(low ^ self.key, high ^ counted);
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.state = fold(self.state ^ n, K);
    }

    #[inline]
    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The high half of a product depends little on the low halves of its factors.
        self.state ^ self.state.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn fixed() -> Folding {
        Folding { state: 0x1234_5678_9abc_def1, key: 0x0fed_cba9_8765_4321 }
    }

    fn of(bytes: &[u8]) -> u64 {
        let mut hasher = fixed();
        hasher.write(bytes);
        hasher.finish()
    }

    #[test]
    fn each_byte_and_the_length_count() {
        let mut seen = std::collections::HashSet::new();
        for length in 0..if cfg!(miri) { 20 } else { 70 } {
            let mut bytes = std::vec![0; length];
            assert!(seen.insert(of(&bytes)), "{length} zeros");
            for n in 0..length {
                bytes[n] = 1;
                assert!(seen.insert(of(&bytes)), "{length} bytes, {n} is 1");
                bytes[n] = 0;
            }
        }
    }

    /// A linear probe wants the low bits, whichever bits of the keys differ.
    #[test]
    fn low_bits_are_spread_whatever_differs_in_keys() {
        for shift in [0, 3, 4, 12, 16, 24, 32, 40, 48] {
            let mut counts = [0u32; 256];
            for n in 0..1u64 << 12 {
                let mut hasher = fixed();
                hasher.write_u64(n << shift);
                counts[(hasher.finish() & 255) as usize] += 1;
            }
            // 16 each are expected; the greatest of 256 random counts is about 29.
            let greatest = counts.iter().max().copied();
            assert!(
                greatest < Some(48),
                "{greatest:?} of 4096 keys that differ from bit {shift} on"
            );
        }
    }
}
