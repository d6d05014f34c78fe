//! Rules: how to find a frame's caller, in one word.
//!
//! Unwind tables describe a frame in a small language. A walk needs three facts from it, and nearly
//! every frame of every compiler fits this word:
//! ```text
//!   63          48 47          32 31                   8  7   6 5   4   3  2..0
//!  | ra offset    | fp offset    | cfa offset            |ln| fp  |dr |fp| kind |
//!    i16, words     i16, words     i24, bytes              \   \    \   \
//!                                  or, where dr is set:     \   \    \   base is fp, not sp
//!                                  i12 after, i12 offset     \   \    CFA = *(base+offset) + after
//!                                                             \   fp: 0 as it is, 1 at CFA + o,
//!                                                              \      2 at fp + o, 3 lost
//!                                                               return address: link register
//! ```
//!
//! CFA, the *canonical frame address*, is the stack pointer in the caller right
//! after the callee has returned. The return address is at `CFA + ra offset`.
//!
//! A rule is *plain* if it has no `dr`, no `ln`, and `fp` is 0 or 1. A walk follows plain rules
//! without a branch. If the frame pointer is unchanged, its offset is that of the return address,
//! so that the walk may load from there in any case.
//!
//! `tables` makes rules, `native::cache` keeps them, and `native::walk` uses them.

#![forbid(unsafe_code)]

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Sp,
    Fp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cfa {
    /// `base + offset`
    At { base: Base, offset: i64 },
    /// `*(base + offset) + after`: the stack was realigned.
    Through { base: Base, offset: i64, after: i64 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Return {
    /// At `CFA + offset`.
    Saved(i64),
    /// In the link register.
    Link,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// In its register.
    Same,
    /// At `CFA + offset`.
    AtCfa(i64),
    /// At `fp + offset`.
    AtFp(i64),
    /// Not known.
    Lost,
}

/// A rule in one word. The word 0 is no rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule(pub(super) u64);

const KIND: u64 = 7;
const FRAME: u64 = 4;
const BASE_FP: u64 = 1 << 3;
const THROUGH: u64 = 1 << 4;
const FP_AT_CFA: u64 = 1 << 5;
const FP_AT_FP: u64 = 2 << 5;
const FP: u64 = 3 << 5;
const LINK: u64 = 1 << 7;

/// Returns `value` in `bits` bits, or `None` if it does not fit.
fn fit(value: i64, bits: u32) -> Option<u64> {
    let half = 1i64 << (bits - 1);
    (-half..half).contains(&value).then_some(value as u64 & ((1 << bits) - 1))
}

/// Converts a byte offset to words, in 16 bits.
fn words(offset: i64) -> Option<u64> {
    if offset % 8 == 0 { fit(offset / 8, 16) } else { None }
}

impl Rule {
    /// The outermost frame: it has no caller.
    pub(super) const END: Self = Self(1);
    /// The kernel's frame below a signal handler.
    pub(super) const SIGNAL: Self = Self(2);
    /// A description that does not fit: the walk stops.
    pub(super) const UNKNOWN: Self = Self(3);
    /// No description: the walk tries the frame pointer.
    pub(super) const BY_FRAME_POINTER: Self = Self(5);

    /// Returns a frame's rule, or [`Rule::UNKNOWN`] if it does not fit in a word.
    pub(super) fn of_frame(cfa: Cfa, back: Return, frame: Frame) -> Self {
        Self::pack(cfa, back, frame).unwrap_or(Self::UNKNOWN)
    }

    fn pack(cfa: Cfa, back: Return, frame: Frame) -> Option<Self> {
        let (base, cfa) = match cfa {
            Cfa::At { base, offset } => (base, fit(offset, 24)? << 8),
            Cfa::Through { base, offset, after } => {
                (base, THROUGH | fit(offset, 12)? << 8 | fit(after, 12)? << 20)
            }
        };
        let (back, at) = match back {
            Return::Saved(offset) => (0, words(offset)?),
            Return::Link => (LINK, 0),
        };
        let frame = match frame {
            Frame::Same => at << 32,
            Frame::AtCfa(offset) => FP_AT_CFA | words(offset)? << 32,
            Frame::AtFp(offset) => FP_AT_FP | words(offset)? << 32,
            Frame::Lost => FP,
        };
        let base = if base == Base::Fp { BASE_FP } else { 0 };
        Some(Self(FRAME | base | cfa | back | at << 48 | frame))
    }

    pub(super) fn is_frame(self) -> bool {
        self.0 & KIND == FRAME
    }

    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.0 & (KIND | THROUGH | FP_AT_FP | LINK) == FRAME
    }

    #[inline(always)]
    pub(super) fn starts_from_fp(self) -> bool {
        self.0 & BASE_FP != 0
    }

    /// Returns whether the frame pointer was saved in memory (of a plain rule).
    #[inline(always)]
    pub(super) fn has_saved_fp(self) -> bool {
        self.0 & FP_AT_CFA != 0
    }

    /// Returns the bytes from the base to the CFA (of a plain rule).
    #[inline(always)]
    pub(super) fn cfa_offset(self) -> isize {
        ((self.0 << 32) as i64 >> 40) as isize
    }

    /// Returns the bytes from the CFA to the return address.
    #[inline(always)]
    pub(super) fn return_offset(self) -> isize {
        (self.0 as i64 >> 48) as isize * 8
    }

    /// Returns the bytes from the CFA (or the frame pointer) to the saved frame pointer. In a plain
    /// rule without a saved frame pointer: the bytes to the return address.
    #[inline(always)]
    pub(super) fn fp_offset(self) -> isize {
        ((self.0 << 16) as i64 >> 48) as isize * 8
    }

    pub(super) fn cfa(self) -> Cfa {
        let base = if self.starts_from_fp() { Base::Fp } else { Base::Sp };
        if self.0 & THROUGH == 0 {
            return Cfa::At { base, offset: self.cfa_offset() as i64 };
        }
        let offset = (self.0 << 44) as i64 >> 52;
        let after = (self.0 << 32) as i64 >> 52;
        Cfa::Through { base, offset, after }
    }

    pub(super) fn back(self) -> Return {
        if self.0 & LINK != 0 { Return::Link } else { Return::Saved(self.return_offset() as i64) }
    }

    pub(super) fn frame(self) -> Frame {
        match self.0 & FP {
            0 => Frame::Same,
            FP_AT_CFA => Frame::AtCfa(self.fp_offset() as i64),
            FP_AT_FP => Frame::AtFp(self.fp_offset() as i64),
            _ => Frame::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    fn base() -> impl Strategy<Value = Base> {
        prop_oneof![Just(Base::Sp), Just(Base::Fp)]
    }

    fn cfas() -> impl Strategy<Value = Cfa> {
        prop_oneof![
            (base(), -1i64 << 25..1 << 25).prop_map(|(base, offset)| Cfa::At { base, offset }),
            (base(), -4096i64..4096, -4096i64..4096)
                .prop_map(|(base, offset, after)| Cfa::Through { base, offset, after }),
        ]
    }

    fn offsets() -> impl Strategy<Value = i64> {
        prop_oneof![(-50_000i64..50_000).prop_map(|words| words * 8), any::<i64>()]
    }

    fn frames() -> impl Strategy<Value = Frame> {
        prop_oneof![
            Just(Frame::Same),
            Just(Frame::Lost),
            offsets().prop_map(Frame::AtCfa),
            offsets().prop_map(Frame::AtFp),
        ]
    }

    proptest! {
        #![proptest_config(cases(2000))]

        #[test]
        fn what_fits_is_what_was_put_in(cfa in cfas(), saved in prop::option::of(offsets()), frame in frames()) {
            let back = saved.map_or(Return::Link, Return::Saved);
            let rule = Rule::of_frame(cfa, back, frame);
            let fits_in_words = |o: i64| o % 8 == 0 && (-32768..32768).contains(&(o / 8));
            let fits = match cfa {
                Cfa::At { offset, .. } => (-1 << 23..1 << 23).contains(&offset),
                Cfa::Through { offset, after, .. } =>
                    [offset, after].iter().all(|o| (-2048..2048).contains(o)),
            } && saved.is_none_or(fits_in_words) && match frame {
                Frame::AtCfa(offset) | Frame::AtFp(offset) => fits_in_words(offset),
                Frame::Same | Frame::Lost => true,
            };
            prop_assert_eq!(rule.is_frame(), fits);
            if fits {
                prop_assert_eq!((rule.cfa(), rule.back(), rule.frame()), (cfa, back, frame));
                let plain = matches!(cfa, Cfa::At { .. }) && back != Return::Link
                    && matches!(frame, Frame::Same | Frame::AtCfa(_));
                prop_assert_eq!(rule.is_plain(), plain);
                if plain && frame == Frame::Same {
                    prop_assert_eq!(rule.fp_offset(), rule.return_offset());
                }
            } else {
                prop_assert_eq!(rule, Rule::UNKNOWN);
            }
        }

        #[test]
        fn any_word_can_be_asked(word in any::<u64>()) {
            let rule = Rule(word);
            let _ = (rule.cfa(), rule.back(), rule.frame());
            prop_assert!(!rule.is_plain() || rule.is_frame());
        }
    }

    #[test]
    fn the_rules_without_a_frame_have_none() {
        for rule in [Rule::END, Rule::SIGNAL, Rule::UNKNOWN, Rule::BY_FRAME_POINTER, Rule(0)] {
            assert!(!rule.is_frame() && !rule.is_plain());
        }
    }
}
