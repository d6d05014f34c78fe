//! Fills the uninitialised bytes of fresh blocks (option `fill`), so that a program that reads them
//! behaves differently from run to run.
//!
//! ```text
//!   malloc   | undefined ......................... |     calloc: none
//!   realloc  | copied ......... | undefined ...... |     counts as a new block of its call's site
//!                     pattern <-+-> zeros                the point that fill=N:before-... names
//! ```
//!
//! A site's pattern depends on its key (`flagged::key`, equal in each run), the number of earlier
//! blocks, and the place in the block. It does not depend on addresses. Seed 0 fills with zeros.
//! With an odd seed each byte has its lowest bit set and its highest bit clear. The next seed
//! inverts all bits. So a word is positive and odd, or negative and even: no word is an address,
//! and no byte is zero.
//!
//! At most 16 MiB of a block are filled, because programs request more than they use. Called by
//! `place` and `resize`.

use core::ptr;

use heapwright_record::debug::{Finding, FindingKind};

use crate::options;
use crate::options::fill::{Fill, MOST_NAMED, Point};
use crate::request::Request;
use crate::segments::Segments;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::flagged;
use super::super::span::Span;
use super::Heap;
use super::deallocate::slot_of;
use super::findings::of_block;

const MOST_FILLED: usize = 16 << 20;

pub(super) struct Fresh {
    is_on: AtomicBool,
    /// The sites' keys by stack number, or 0 before their computation.
    keys: Segments<AtomicU64, 4096, 21>,
    /// The blocks so far: at all sites, at the site of `before`, and at each site of `at`.
    all: AtomicU64,
    before: AtomicU64,
    at: [AtomicU64; MOST_NAMED],
}

impl Fresh {
    pub(super) const fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            keys: Segments::new(),
            all: AtomicU64::new(0),
            before: AtomicU64::new(0),
            at: [const { AtomicU64::new(0) }; MOST_NAMED],
        }
    }
}

impl Heap {
    pub(in crate::debug) fn fill_fresh_blocks(&self) {
        self.fresh.is_on.store(options::fill().seed.is_some(), Ordering::Relaxed);
    }

    /// Fills the uninitialised bytes, from `defined` on, of a new block that `stack` requested.
    #[inline(always)]
    pub(super) fn fill_undefined(
        &'static self,
        block: *mut u8,
        request: Request,
        defined: usize,
        stack: u32,
    ) {
        if self.fresh.is_on.load(Ordering::Relaxed)
            && !request.zero
            && defined < request.size
            && !block.is_null()
        {
            self.fill_undefined_slowly(block, request.size, defined, stack);
        }
    }

    #[cold]
    #[inline(never)]
    fn fill_undefined_slowly(
        &'static self,
        block: *mut u8,
        size: usize,
        defined: usize,
        stack: u32,
    ) {
        let fill = options::fill();
        let (Some(seed), site) = (fill.seed, self.site_key(stack, fill)) else { return };
        let number = self.fresh.all.fetch_add(1, Ordering::Relaxed);
        let end = size.min(defined.saturating_add(MOST_FILLED));
        let with_pattern = self.with_pattern(site, size, fill).clamp(defined, end);
        let first = mix(mix(u64::from(seed.div_ceil(2)), site), number);
        let flip = if seed.is_multiple_of(2) { u64::MAX } else { 0 };
        let mut at = defined;
        while seed != 0 && at < with_pattern {
            let word = (pattern(first, at as u64 / 8) ^ flip).to_le_bytes();
            let from = at % 8;
            let count = (8 - from).min(with_pattern - at);
            // SAFETY: the bytes belong to the block, which only this call has.
            unsafe {
                ptr::copy_nonoverlapping(word[from..].as_ptr(), block.wrapping_add(at), count)
            };
            at += count;
        }
        // SAFETY: the remaining bytes belong to the block, which only this call has.
        unsafe { block.wrapping_add(at).write_bytes(0, end - at) };
        self.note_if_asked(block, site, fill);
    }

    /// Returns a site's key, which is equal in every run.
    fn site_key(&self, stack: u32, fill: &Fill) -> u64 {
        // Stack numbers are at least two apart.
        let known = self.fresh.keys.get_or_make(stack as usize / 2);
        match known.map_or(0, |known| known.load(Ordering::Relaxed)) {
            0 => {
                let key = flagged::key(stack).max(1);
                if let Some(known) = known {
                    known.store(key, Ordering::Relaxed);
                }
                if fill.lists {
                    self.reporter.record_site(key, FindingKind::Uninitialised);
                }
                key
            }
            key => key,
        }
    }

    /// Returns how many bytes of the block lie before the point in `fill`.
    fn with_pattern(&self, site: u64, size: usize, fill: &Fill) -> usize {
        if fill.without().contains(&site) {
            return 0;
        }
        let Point { site: of, block, byte } = fill.before;
        if site != of {
            return if site < of { size } else { 0 };
        }
        let number = self.fresh.before.fetch_add(1, Ordering::Relaxed);
        match number.cmp(&block) {
            core::cmp::Ordering::Less => size,
            core::cmp::Ordering::Equal => usize::try_from(byte).unwrap_or(size),
            core::cmp::Ordering::Greater => 0,
        }
    }

    fn note_if_asked(&'static self, block: *mut u8, site: u64, fill: &Fill) {
        for (which, point) in fill.at().iter().enumerate().filter(|(_, point)| point.site == site) {
            if self.fresh.at[which].fetch_add(1, Ordering::Relaxed) != point.block {
                continue;
            }
            let slot = Span::of(block.addr()).and_then(|span| slot_of(span, block.addr()));
            let Some((place, word)) = slot else { continue };
            self.report(Finding {
                kind: FindingKind::Uninitialised,
                pointer: block.addr() as u64 + point.byte,
                offset: point.byte.cast_signed(),
                value: which as u8,
                ..of_block(place, word)
            });
        }
    }
}

fn pattern(first: u64, word: u64) -> u64 {
    mix(first, word) & 0x7e7e_7e7e_7e7e_7e7e | 0x0101_0101_0101_0101
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_the_pattern_is_a_zero_or_the_same_the_other_way() {
        for word in 0..1000 {
            for byte in pattern(mix(1, 2), word).to_le_bytes() {
                assert!(byte & 0x81 == 1 && !byte & 0x81 == 0x80);
            }
        }
        assert_ne!(pattern(1, 0), pattern(2, 0));
        assert_ne!(pattern(1, 0), pattern(1, 1));
    }
}
