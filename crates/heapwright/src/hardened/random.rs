//! Random numbers that cannot be predicted from those before: ChaCha with 8 rounds (Bernstein, 2008).
//!
//! ```text
//!   key (256 bits, the kernel's) | counter  --8 rounds-->  16 words of 32 bits, taken one by one
//! ```
//!
//! One is a thread's (its cache's) or a size class's. It asks the kernel for its key when the first number is asked for. A
//! forked child forgets the key, so that parent and child do not make the same choices.
//!
//! Called by the rest of `hardened`, where slots are drawn and runs placed.
#![forbid(unsafe_code)]

use crate::os;

const WORDS: usize = 16;
const ROUNDS: usize = 8;

/// A stream of random numbers. Zeros are one that has no key yet.
pub(super) struct Random {
    has_key: bool,
    key: [u32; 8],
    counter: u64,
    block: [u32; WORDS],
    /// Words of `block` that are left.
    left: usize,
}

impl Random {
    pub(super) const fn new() -> Self {
        Self { has_key: false, key: [0; 8], counter: 0, block: [0; WORDS], left: 0 }
    }

    /// Begins anew, with another key.
    pub(super) fn forget(&mut self) {
        *self = Self::new();
    }

    /// The next 32 bits.
    pub(super) fn next(&mut self) -> u32 {
        if self.left == 0 {
            if !self.has_key {
                self.key = draw_key();
                self.has_key = true;
            }
            self.block = block(&self.key, self.counter);
            self.counter += 1;
            self.left = WORDS;
        }
        self.left -= 1;
        // What was given is not kept.
        core::mem::take(&mut self.block[self.left])
    }

    /// A number below `bound`, which is not 0. (Biased by less than `bound` in 2^32.)
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.next()) * bound as u64) >> 32) as usize
    }
}

/// A key of the kernel's.
fn draw_key() -> [u32; 8] {
    let mut bytes = [0; 32];
    os::random(&mut bytes);
    let mut key = [0; 8];
    for (word, bytes) in key.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    key
}

fn block(key: &[u32; 8], counter: u64) -> [u32; WORDS] {
    let mut input = [0; WORDS];
    input[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    input[4..12].copy_from_slice(key);
    (input[12], input[13]) = (counter as u32, (counter >> 32) as u32);
    let mut state = input;
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for (left, right) in [(16, 12), (8, 7)] {
            state[a] = state[a].wrapping_add(state[b]);
            state[d] = (state[d] ^ state[a]).rotate_left(left);
            state[c] = state[c].wrapping_add(state[d]);
            state[b] = (state[b] ^ state[c]).rotate_left(right);
        }
    };
    for _ in 0..ROUNDS / 2 {
        for column in 0..4 {
            quarter(column, column + 4, column + 8, column + 12);
        }
        for at in 0..4 {
            quarter(at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4);
        }
    }
    for (word, input) in state.iter_mut().zip(input) {
        *word = word.wrapping_add(input);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector for 8 rounds, a key of 256 zeros and no nonce (draft-strombergson-chacha-test-vectors).
    #[test]
    fn it_is_chacha8() {
        let words = block(&[0; 8], 0);
        let mut bytes = [0; 64];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        let expected = [0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6];
        assert_eq!(bytes[..8], expected);
    }

    #[test]
    fn a_stream_goes_on_and_stays_below_its_bound() {
        let mut random = Random { has_key: true, key: [7; 8], ..Random::new() };
        let mut seen = [0u32; 10];
        for _ in 0..1000 {
            seen[random.below(10)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50));
        let first = random.next();
        assert!((0..100).any(|_| random.next() != first));
    }
}
