//! The state of a slot in 16 bits, as pure arithmetic.
//!
//! ```text
//!   15   13 12                 0
//!   | maker | slack            |    maker > 0: live; slack: the slot's bytes less the requested
//!                                   bytes and the canary
//!   | 0     | 0 or 1           |    free: in some thread's ring, or in its slab
//! ```
//!
//! The word of a slot lies in a separate table (`slots`), so no block leads to it. It reveals a
//! double free, a free by the wrong function, and a free of a block that was never handed out.
//! Called by the other files of `hardened`.
#![forbid(unsafe_code)]

use crate::request::Origin;

/// Bytes of the canary, which follows the requested bytes.
pub(super) const CANARY: usize = 8;
/// A slot in a thread's ring, or never drawn. `malloc` tests for 0.
pub(super) const IN_RING: u16 = 0;
/// A freed slot in its slab.
pub(super) const IN_SLAB: u16 = 1;

const MAKER_SHIFT: u32 = 13;
pub(super) const MOST_SLACK: usize = (1 << MAKER_SHIFT) - 1;

/// Returns the maker of a block, which decides the calls that may free it. A `new` with an explicit
/// alignment is a maker of its own, because `delete` must name the alignment, too.
pub(super) const fn maker(origin: Origin, is_aligned: bool) -> u16 {
    match origin {
        Origin::Malloc
        | Origin::Aligned
        | Origin::PosixMemalign
        | Origin::Realloc
        | Origin::Pool
        | Origin::Arena
        | Origin::Heap => 1,
        Origin::New if is_aligned => 5,
        Origin::NewArray if is_aligned => 6,
        Origin::New => 2,
        Origin::NewArray => 3,
        Origin::Rust => 4,
    }
}

pub(super) const fn maker_name(maker: u16) -> &'static str {
    match maker {
        1 => "malloc",
        2 => "new",
        3 => "new[]",
        5 => "new with an alignment",
        6 => "new[] with an alignment",
        _ => "Rust's allocator",
    }
}

#[inline(always)]
pub(super) const fn live(maker: u16, slack: usize) -> u16 {
    maker << MAKER_SHIFT | slack as u16
}

/// Returns a slot's maker, or 0 for a free slot.
#[inline(always)]
pub(super) const fn maker_of(word: u16) -> u16 {
    word >> MAKER_SHIFT
}

#[inline(always)]
pub(super) const fn slack_of(word: u16) -> usize {
    word as usize & MOST_SLACK
}

/// Returns the canary behind the last byte of the block at `address`: 56 secret bits above a zero
/// byte. An unterminated string ends there, and a zero written there changes nothing.
#[inline(always)]
pub(super) const fn canary(secret: u64, address: usize) -> u64 {
    (secret ^ address as u64) & !0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_in() {
        for origin in [Origin::Malloc, Origin::New, Origin::NewArray, Origin::Rust] {
            for slack in [0, 1, 15, 4095, MOST_SLACK] {
                for is_aligned in [false, true] {
                    let maker = maker(origin, is_aligned);
                    let word = live(maker, slack);
                    assert_eq!((maker_of(word), slack_of(word)), (maker, slack));
                    assert!(word != IN_RING && word != IN_SLAB);
                }
            }
        }
        assert_eq!((maker_of(IN_RING), maker_of(IN_SLAB)), (0, 0));
        assert_eq!(maker(Origin::Aligned, true), maker(Origin::Malloc, false));
    }

    #[test]
    fn a_canary_ends_strings_and_differs_by_address() {
        assert_eq!(canary(u64::MAX, 16).to_le_bytes()[0], 0);
        assert_ne!(canary(1 << 40, 0x1000), canary(1 << 40, 0x2000));
    }
}
