//! Natural numbers of any length, each in a separate block.
//!
//! Limbs have 32 bits, the lowest comes first, and the highest is not zero (zero itself has one
//! limb). A block holds at least four limbs, as in similar packages. Division is Knuth's algorithm
//! D.

use crate::memory::Array;
use std::cmp::Ordering;

const LEAST_LIMBS: usize = 4;

pub(super) struct Number {
    limbs: Array<u32>,
    len: usize,
}

impl Number {
    pub(super) fn small(value: u32) -> Self {
        Self::from_limbs(&[value])
    }

    pub(super) fn from_limbs(limbs: &[u32]) -> Self {
        Self::build(limbs.len(), |to| to.copy_from_slice(limbs))
    }

    pub(super) fn copy(&self) -> Self {
        Self::from_limbs(self.limbs())
    }

    /// Makes a number of at most `len` limbs; `write` gets them as zeros.
    fn build(len: usize, write: impl FnOnce(&mut [u32])) -> Self {
        let mut limbs = Array::new(len.max(LEAST_LIMBS));
        write(&mut limbs[..len]);
        let len = limbs[..len].iter().rposition(|&limb| limb != 0).map_or(1, |top| top + 1);
        Self { limbs, len }
    }

    fn limbs(&self) -> &[u32] {
        &self.limbs[..self.len]
    }

    fn limb(&self, at: usize) -> u64 {
        self.limbs().get(at).map_or(0, |&limb| u64::from(limb))
    }

    pub(super) fn low(&self) -> u64 {
        self.limb(0) | self.limb(1) << 32
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.limbs() == other.limbs()
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.len.cmp(&other.len);
        by_length.then_with(|| self.limbs().iter().rev().cmp(other.limbs().iter().rev()))
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self::build(self.len.max(other.len) + 1, |to| {
            let mut carry = 0;
            for (at, limb) in to.iter_mut().enumerate() {
                carry += self.limb(at) + other.limb(at);
                *limb = carry as u32;
                carry >>= 32;
            }
        })
    }

    /// Returns the difference to a number that is not larger.
    pub(super) fn minus(&self, other: &Self) -> Self {
        Self::build(self.len, |to| {
            let mut borrow = 0;
            for (at, limb) in to.iter_mut().enumerate() {
                let difference = self.limb(at).wrapping_sub(other.limb(at) + borrow);
                *limb = difference as u32;
                borrow = difference >> 63;
            }
        })
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self::build(self.len + other.len, |to| {
            for (at, &factor) in self.limbs().iter().enumerate() {
                let mut carry = 0;
                for (limb, &other) in to[at..].iter_mut().zip(other.limbs()) {
                    carry += u64::from(*limb) + u64::from(factor) * u64::from(other);
                    *limb = carry as u32;
                    carry >>= 32;
                }
                to[at + other.len] = carry as u32;
            }
        })
    }

    pub(super) fn remainder_by(&self, divisor: u32) -> u32 {
        let divisor = u64::from(divisor);
        let step = |rest: u64, &limb: &u32| (rest << 32 | u64::from(limb)) % divisor;
        self.limbs().iter().rev().fold(0, step) as u32
    }

    pub(super) fn divided_by(&self, divisor: &Self) -> (Self, Self) {
        if self.compare(divisor) == Ordering::Less {
            return (Self::small(0), self.copy());
        }
        if divisor.len == 1 {
            return self.divided_by_limb(divisor.limbs[0]);
        }
        // Both numbers are shifted until the divisor's top bit is set. Then a digit guessed from
        // the top limbs is wrong by at most two.
        let shift = divisor.limbs()[divisor.len - 1].leading_zeros();
        let divisor = divisor.shifted_left(shift);
        let mut rest = self.shifted_left(shift);
        let (top, next) = (divisor.limb(divisor.len - 1), divisor.limb(divisor.len - 2));
        let digits = self.len - divisor.len + 1;
        let quotient = Self::build(digits, |to| {
            for at in (0..digits).rev() {
                let rest = &mut rest.limbs[at..=at + divisor.len];
                let [.., third, second, first] = *rest else { unreachable!("three limbs or more") };
                let head = u64::from(first) << 32 | u64::from(second);
                let mut digit = head / top;
                let mut left = head % top;
                while digit >> 32 != 0 || digit * next > (left << 32 | u64::from(third)) {
                    digit -= 1;
                    left += top;
                    if left >> 32 != 0 {
                        break;
                    }
                }
                if subtract_multiple(rest, divisor.limbs(), digit) {
                    digit -= 1;
                    add_back(rest, divisor.limbs());
                }
                to[at] = digit as u32;
            }
        });
        (quotient, rest.shifted_right(shift, divisor.len))
    }

    fn divided_by_limb(&self, divisor: u32) -> (Self, Self) {
        let mut rest = 0u64;
        let quotient = Self::build(self.len, |to| {
            for at in (0..self.len).rev() {
                let head = rest << 32 | self.limb(at);
                to[at] = (head / u64::from(divisor)) as u32;
                rest = head % u64::from(divisor);
            }
        });
        (quotient, Self::small(rest as u32))
    }

    /// Multiplies by a power of two below 2^32; the result has one limb more.
    fn shifted_left(&self, bits: u32) -> Self {
        Self::build(self.len + 1, |to| {
            let mut carry = 0;
            for (at, limb) in to.iter_mut().enumerate() {
                let wide = self.limb(at) << bits | carry;
                *limb = wide as u32;
                carry = wide >> 32;
            }
        })
    }

    /// Divides the lowest `len` limbs by a power of two below 2^32.
    fn shifted_right(&self, bits: u32, len: usize) -> Self {
        Self::build(len, |to| {
            for (at, limb) in to.iter_mut().enumerate() {
                let above = if at + 1 < len { u64::from(self.limbs[at + 1]) } else { 0 };
                *limb = ((above << 32 | u64::from(self.limbs[at])) >> bits) as u32;
            }
        })
    }

    /// Returns the root of a number of at least one, rounded down: Newton's method from above.
    pub(super) fn square_root(&self) -> Self {
        let two = Self::small(2);
        let mut root = Self::build(self.len / 2 + 2, |to| to[self.len / 2 + 1] = 1);
        loop {
            let next = root.plus(&self.divided_by(&root).0).divided_by(&two).0;
            if next.compare(&root) != Ordering::Less {
                return root;
            }
            root = next;
        }
    }
}

/// Does `rest -= digit * divisor`. Returns true if the result is negative.
fn subtract_multiple(rest: &mut [u32], divisor: &[u32], digit: u64) -> bool {
    let mut borrow = 0u64;
    for (limb, &divisor) in rest.iter_mut().zip(divisor) {
        let product = digit * u64::from(divisor) + borrow;
        let (difference, below) = limb.overflowing_sub(product as u32);
        *limb = difference;
        borrow = (product >> 32) + u64::from(below);
    }
    let top = rest.len() - 1;
    let below = u64::from(rest[top]) < borrow;
    rest[top] = rest[top].wrapping_sub(borrow as u32);
    below
}

/// Does `rest += divisor`, without the carry that undoes a borrow.
fn add_back(rest: &mut [u32], divisor: &[u32]) {
    let mut carry = 0u64;
    for (limb, &divisor) in rest.iter_mut().zip(divisor) {
        carry += u64::from(*limb) + u64::from(divisor);
        *limb = carry as u32;
        carry >>= 32;
    }
    let top = rest.len() - 1;
    rest[top] = rest[top].wrapping_add(carry as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn random(random: &mut Random, limbs: usize) -> Number {
        // Limbs of all ones and of zero reach the rare cases of division.
        let limbs: Vec<u32> = (0..limbs)
            .map(|_| match random.below(4) {
                0 => u32::MAX,
                1 => 0,
                2 => 0x8000_0000,
                _ => random.next() as u32,
            })
            .collect();
        Number::from_limbs(&limbs)
    }

    #[test]
    fn quotient_times_divisor_plus_remainder_is_the_number() {
        let mut chance = Random::new(1);
        for _ in 0..200_000 {
            let (long, short) = (chance.between(1, 9), chance.between(1, 5));
            let number = random(&mut chance, long);
            let divisor = random(&mut chance, short);
            if divisor.equals(&Number::small(0)) {
                continue;
            }
            let (quotient, rest) = number.divided_by(&divisor);
            assert_eq!(rest.compare(&divisor), Ordering::Less);
            assert!(quotient.times(&divisor).plus(&rest).equals(&number));
            assert!(number.minus(&rest).plus(&rest).equals(&number));
            if divisor.len == 1 {
                assert_eq!(u64::from(number.remainder_by(divisor.limbs[0])), rest.low());
            }
        }
    }

    #[test]
    fn a_root_is_the_largest_that_fits() {
        let mut chance = Random::new(2);
        for _ in 0..2_000 {
            let len = chance.between(1, 8);
            let number = random(&mut chance, len).plus(&Number::small(1));
            let root = number.square_root();
            let next = root.plus(&Number::small(1));
            assert_ne!(root.times(&root).compare(&number), Ordering::Greater);
            assert_eq!(next.times(&next).compare(&number), Ordering::Greater);
        }
    }
}
