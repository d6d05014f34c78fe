//! A Poisson process over allocated bytes, which selects the sampled blocks.
//!
//! ```text
//!   allocated bytes  ----------x--------------------x---x-----------------------x---->
//!                    [ block ][ block ][ block ]...      points, `period` bytes apart on average
//! ```
//!
//! A block is a sample if a point lies in it. The distances between points are exponentially
//! distributed. So a block of `n` bytes is a sample with the chance `1 - exp(-n / period)`, after
//! any earlier blocks. Each sample counts as 1 / chance blocks, and the sum of these numbers is an
//! unbiased estimate (Horvitz and Thompson, 1952). TCMalloc and jemalloc sample in the same way.
//! `core` has neither logarithms nor powers of e, so this file has both, to 12 digits.

#![forbid(unsafe_code)]

use core::f64::consts::{LN_2, SQRT_2};

const FRACTION: u32 = 52;
const EXPONENT_OF_1: u64 = 1023;

/// The next number of a random sequence (xorshift64*, Vigna 2016). `state` must not be 0.
pub fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Bytes to the next point, at least 1; on average `period`.
pub fn distance(state: &mut u64, period: usize) -> usize {
    let uniform = ((random(state) >> 11) + 1) as f64 / (1u64 << 53) as f64;
    ((-ln(uniform) * period as f64) as usize).saturating_add(1)
}

/// The chance that a block of `size` bytes is a sample, in (0, 1]. A size of 0 counts as 1.
pub fn chance(size: usize, period: usize) -> f64 {
    let periods = size.max(1) as f64 / period.max(1) as f64;
    // For small values the difference would lose digits. The series is exact enough.
    if periods < 1e-4 {
        return periods * (1.0 - periods / 2.0 + periods * periods / 6.0);
    }
    1.0 - exp_of_minus(periods)
}

/// The logarithm of a normal, positive number.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> FRACTION) as i64 - EXPONENT_OF_1 as i64;
    let fraction = bits & ((1 << FRACTION) - 1);
    let mut mantissa = f64::from_bits(fraction | EXPONENT_OF_1 << FRACTION);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s, and |s| is below 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for odd in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * square + 1.0 / odd;
    }
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// `exp(-x)` for `x` from 0 on.
fn exp_of_minus(x: f64) -> f64 {
    if x > 700.0 {
        return 0.0;
    }
    let halvings = (x / LN_2 + 0.5) as u64;
    let rest = x - halvings as f64 * LN_2;
    // |rest| is at most half of ln 2.
    let mut series = 1.0;
    for n in (1..=14).rev() {
        series = 1.0 - rest / f64::from(n) * series;
    }
    // At least 2^-1011: a normal number.
    series * f64::from_bits((EXPONENT_OF_1 - halvings) << FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::cases(500))]

        #[test]
        fn logarithms_are_right(x in f64::MIN_POSITIVE..1e300) {
            let exact = std::primitive::f64::ln(x);
            prop_assert!((ln(x) - exact).abs() <= 1e-12 * exact.abs().max(1e-3), "{x}");
        }

        #[test]
        fn powers_are_right(x in 0.0..700.0f64) {
            let exact = std::primitive::f64::exp(-x);
            prop_assert!((exp_of_minus(x) - exact).abs() <= 1e-12 * exact, "{x}");
        }

        #[test]
        fn chances_grow_with_the_size(size in 1usize..1 << 40, period in 1usize..1 << 30) {
            let (less, more) = (chance(size, period), chance(size + 1 + size / 8, period));
            prop_assert!(0.0 < less && less <= more && more <= 1.0);
            let exact = -std::primitive::f64::exp_m1(-(size as f64 / period as f64));
            prop_assert!((less - exact).abs() <= 1e-10 * exact, "{less} {exact}");
        }
    }

    #[test]
    fn distances_are_exponential() {
        const PERIOD: usize = 512 << 10;
        let draws = if cfg!(miri) { 2_000 } else { 200_000 };
        let mut state = 1;
        let (mut sum, mut beyond) = (0.0, 0);
        for _ in 0..draws {
            let distance = distance(&mut state, PERIOD);
            assert!(distance > 0);
            sum += distance as f64 / f64::from(draws);
            beyond += u32::from(distance > 2 * PERIOD);
        }
        // Six standard errors.
        let error = 6.0 / f64::from(draws).sqrt();
        assert!((sum / PERIOD as f64 - 1.0).abs() < error, "{sum}");
        let share = f64::from(beyond) / f64::from(draws);
        assert!((share - exp_of_minus(2.0)).abs() < error, "{share}");
    }

    #[test]
    fn samples_stand_for_all() {
        const PERIOD: usize = 10_000;
        for size in [16, 700, 10_000, 90_000] {
            let (mut state, mut estimate) = (7, 0.0);
            let blocks = if cfg!(miri) { 500 } else { 100_000 };
            let mut left = distance(&mut state, PERIOD);
            for _ in 0..blocks {
                if left > size {
                    left -= size;
                } else {
                    estimate += 1.0 / chance(size, PERIOD);
                    left = distance(&mut state, PERIOD);
                }
            }
            let samples = f64::from(blocks) * chance(size, PERIOD);
            let error = 6.0 / samples.sqrt();
            assert!((estimate / f64::from(blocks) - 1.0).abs() < error, "{size}: {estimate}");
        }
    }
}
