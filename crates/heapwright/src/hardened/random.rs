//! Random numbers that cannot be predicted from earlier ones: ChaCha with 8 rounds (Bernstein,
//! 2008).
//!
//! ```text
//!   the process's key (256 bits, the kernel's) | process, stream  --8 rounds-->  the stream's key
//!   the stream's key                           | counter          --8 rounds-->  16 words
//! ```
//!
//! Each cache, each class and the queue of large blocks has a stream. The heap asks the kernel for
//! the key when it starts. A forked child asks again, but not in a sandbox. There the process's id
//! makes the child's keys differ from the parent's. Called by the other files of `hardened`, which
//! draw slots and place runs.
#![forbid(unsafe_code)]

use crate::os;
use crate::substrate;
use crate::sync::atomic::{AtomicU32, Ordering};

/// The number of forks from the first process to this one, plus 1.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Makes all streams of a forked child begin anew, with other keys.
pub(super) fn choose_anew() {
    if !os::is_filtered() {
        begin();
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

const WORDS: usize = 16;
const ROUNDS: usize = 8;
pub(super) const MOST_SHUFFLED: u32 = 4096;
/// 64 random bits make [`CHOICES`] choices among up to [`FEW`] things, and fewer among more.
const FEW: u32 = 128;
const CHOICES: u32 = 6;
const CHOICES_AMONG_MANY: u32 = 3;

/// A stream of random numbers. The zero value has no key yet.
pub(super) struct Random {
    generation: u32,
    key: [u32; 8],
    counter: u64,
    block: [u32; WORDS],
    left: usize,
}

impl Random {
    pub(super) const fn new() -> Self {
        Self { generation: 0, key: [0; 8], counter: 0, block: [0; WORDS], left: 0 }
    }

    pub(super) fn next(&mut self) -> u32 {
        let generation = GENERATION.load(Ordering::Relaxed);
        if self.left == 0 || self.generation != generation {
            if self.generation != generation {
                self.key = draw_key();
                self.generation = generation;
            }
            self.block = block(&self.key, self.counter);
            self.counter += 1;
            self.left = WORDS;
        }
        self.left -= 1;
        // A used word is erased.
        core::mem::take(&mut self.block[self.left])
    }

    /// Returns a number below `bound`, which must not be 0. (The bias is below `bound` in 2^32.)
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.next()) * bound as u64) >> 32) as usize
    }

    /// Puts `count` things, at most [`MOST_SHUFFLED`], into random order (Fisher and Yates). Passes
    /// pairs of places to `change`, which must exchange them. 64 random bits are a fraction between
    /// 0 and 1. The fraction times a bound has an integer part, which is a choice, and a fractional
    /// part, which is the next fraction. The bias of a choice is at most 2^-22.
    #[inline]
    pub(super) fn shuffle(&mut self, count: u32, mut change: impl FnMut(u32, u32)) {
        debug_assert!(count <= MOST_SHUFFLED);
        let (mut fraction, mut choices) = (0, 0);
        for at in (1..count).rev() {
            if choices == 0 {
                fraction = u64::from(self.next()) << 32 | u64::from(self.next());
                choices = if at < FEW { CHOICES } else { CHOICES_AMONG_MANY };
            }
            choices -= 1;
            let product = u128::from(fraction) * u128::from(at + 1);
            fraction = product as u64;
            change(at, (product >> 64) as u32);
        }
    }
}

/// The process's key, and the number of keys drawn from it.
static PROCESS_KEY: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];
static DRAWN: AtomicU32 = AtomicU32::new(0);

pub(super) fn begin() {
    let mut bytes = [0; 32];
    os::random(&mut bytes);
    for (word, bytes) in PROCESS_KEY.iter().zip(bytes.chunks_exact(4)) {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        // If the kernel refuses a key, the key drawn before stays in use.
        word.fetch_xor(u32::from_ne_bytes(bytes), Ordering::Relaxed);
    }
}

fn draw_key() -> [u32; 8] {
    let mut key = [0; 8];
    for (word, secret) in key.iter_mut().zip(&PROCESS_KEY) {
        *word = secret.load(Ordering::Relaxed);
    }
    let number = DRAWN.fetch_add(1, Ordering::Relaxed);
    let words = block(&key, u64::from(substrate::process()) << 32 | u64::from(number));
    key.copy_from_slice(&words[..8]);
    key
}

/// Four words, one of each column, which the compiler keeps in a vector.
type Row = [u32; 4];

fn block(key: &[u32; 8], counter: u64) -> [u32; WORDS] {
    let [k0, k1, k2, k3, k4, k5, k6, k7] = *key;
    let input: [Row; 4] = [
        [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574],
        [k0, k1, k2, k3],
        [k4, k5, k6, k7],
        [counter as u32, (counter >> 32) as u32, 0, 0],
    ];
    let mut state = input;
    for _ in 0..ROUNDS / 2 {
        // First the columns, then the diagonals, which are columns of rotated rows.
        state = quarters(state);
        let [a, [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]] = state;
        state = quarters([a, [b1, b2, b3, b0], [c2, c3, c0, c1], [d3, d0, d1, d2]]);
        let [a, [b1, b2, b3, b0], [c2, c3, c0, c1], [d3, d0, d1, d2]] = state;
        state = [a, [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]];
    }
    let mut words = [0; WORDS];
    for (at, word) in words.iter_mut().enumerate() {
        *word = state[at / 4][at % 4].wrapping_add(input[at / 4][at % 4]);
    }
    words
}

#[inline(always)]
fn quarters([mut a, mut b, mut c, mut d]: [Row; 4]) -> [Row; 4] {
    for (left, right) in [(16, 12), (8, 7)] {
        a = add(a, b);
        d = turn(d, a, left);
        c = add(c, d);
        b = turn(b, c, right);
    }
    [a, b, c, d]
}

#[inline(always)]
fn add(one: Row, other: Row) -> Row {
    core::array::from_fn(|at| one[at].wrapping_add(other[at]))
}

#[inline(always)]
fn turn(one: Row, other: Row, by: u32) -> Row {
    core::array::from_fn(|at| (one[at] ^ other[at]).rotate_left(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first vector for 8 rounds, 256 zeros and no nonce
    /// (draft-strombergson-chacha-test-vectors).
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
        let mut random = Random { generation: 1, key: [7; 8], ..Random::new() };
        let mut seen = [0u32; 10];
        for _ in 0..1000 {
            seen[random.below(10)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50));
        let first = random.next();
        assert!((0..100).any(|_| random.next() != first));
    }

    #[test]
    fn a_shuffle_is_fair() {
        const THINGS: usize = 8;
        let rounds = if cfg!(miri) { 400 } else { 8000 };
        let mut random = Random { generation: 1, key: [9; 8], ..Random::new() };
        let mut seen = [[0; THINGS]; THINGS];
        for _ in 0..rounds {
            let mut things: [usize; THINGS] = core::array::from_fn(|at| at);
            random.shuffle(THINGS as u32, |at, other| things.swap(at as usize, other as usize));
            things.iter().zip(&mut seen).for_each(|(&thing, seen)| seen[thing] += 1);
        }
        let mean = rounds / THINGS;
        assert!(seen.iter().flatten().all(|&count| count > mean / 2 && count < mean * 3 / 2));
    }
}
