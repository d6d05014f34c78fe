//! Arithmetic with numbers longer than the machine's.
//!
//! The field's "cfrac" factors integers by the continued fraction of a square root, with a package
//! in which every intermediate number is a small block. This is the same mathematics, rewritten,
//! for the root of a 256-bit number N. Each step computes the numerator A of the convergent modulo
//! N. Every sum, product, quotient and remainder is a new block of 16 to 70 bytes that dies a few
//! operations later. The workload shows the bare cost of `malloc` and `free` in the cache.
//!
//! Every eighth step tests that A^2 is congruent to Q modulo N.
//!
//! Life cycle: a dozen blocks live; nearly all die within a step.

mod number;

use crate::checksum::fold;
use crate::{Workload, scaled};
use number::Number;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "cfrac",
    stands_for: "Arithmetic of big integers, as in cryptography and computer algebra: a very high \
                 rate of blocks of 16 to 70 bytes that die at once, the bare cost of malloc and \
                 free.",
    threads: 1,
    live_bytes: 1_000,
    operations: 14_000_000,
    run,
};

/// The primes by which Q is divided, as in the search for smooth numbers.
const PRIMES: [u32; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

const CHECK_EVERY: usize = 8;

fn run(scale: u32) -> u64 {
    let n = Number::from_limbs(&[
        0x9d3f_51c7,
        0x2c8e_77a1,
        0x5b06_e9d3,
        0xe1a4_4c6f,
        0x70d2_8b35,
        0xc59a_1e87,
        0x3647_fdb9,
        0xd4e1_9027,
    ]);
    let root = n.square_root();
    let (mut p, mut q) = (Number::small(0), Number::small(1));
    let mut a = root.copy();
    let (mut before, mut convergent) = (Number::small(1), root.copy());
    let mut sum = 0;
    for step in 1..=scaled(scale, 300_000, 200) {
        p = a.times(&q).minus(&p);
        let (next_q, nothing) = n.minus(&p.times(&p)).divided_by(&q);
        q = next_q;
        a = root.plus(&p).divided_by(&q).0;
        sum = fold(sum, nothing.low() ^ smooth_part(&q));
        if step % CHECK_EVERY == 0 {
            let square = convergent.times(&convergent).divided_by(&n).1;
            let expected = if step % 2 == 0 { q.copy() } else { n.minus(&q) };
            sum = fold(sum, u64::from(square.equals(&expected)));
        }
        let next = a.times(&convergent).plus(&before).divided_by(&n).1;
        before = std::mem::replace(&mut convergent, next);
    }
    fold(fold(sum, convergent.low()), q.low())
}

fn smooth_part(number: &Number) -> u64 {
    let mut rest = number.copy();
    let mut found = 1u64;
    for prime in PRIMES {
        if rest.remainder_by(prime) == 0 {
            rest = rest.divided_by(&Number::small(prime)).0;
            found = found.wrapping_mul(u64::from(prime));
        }
    }
    found ^ rest.low()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theory_holds_at_every_step() {
        // The continued fraction of the root of 13290059, Knuth's own example.
        let n = Number::small(13_290_059);
        let root = n.square_root();
        assert_eq!(root.low(), 3645);
        let (mut p, mut q, mut a) = (Number::small(0), Number::small(1), root.copy());
        let (mut before, mut convergent) = (Number::small(1), root.copy());
        for step in 1..50 {
            p = a.times(&q).minus(&p);
            let (next_q, nothing) = n.minus(&p.times(&p)).divided_by(&q);
            assert_eq!(nothing.low(), 0);
            q = next_q;
            a = root.plus(&p).divided_by(&q).0;
            let square = convergent.times(&convergent).divided_by(&n).1;
            let expected = if step % 2 == 0 { q.copy() } else { n.minus(&q) };
            assert!(square.equals(&expected), "step {step}");
            let next = a.times(&convergent).plus(&before).divided_by(&n).1;
            before = std::mem::replace(&mut convergent, next);
        }
    }
}
