//! Slots and their words: what block an address lies in, by arithmetic and one load.
//!
//! ```text
//!   words   | unit 0: 4096 words | unit 1: 4096 words | ...      8 KiB a unit, at a random place
//!             word i: slot i of the unit's slab
//! ```
//!
//! A smaller slot than 16 bytes there is not, so a unit has room for all of its words. Those of an
//! extent are committed with it (`slabs`), and read as zero: in the slab.
//!
//! Invariants: the word of a slot is changed by the thread that holds the slot (a live block's
//! holder, the thread in whose ring it is, the holder of its class's lock). It is a plain store:
//! two threads that free a block at once are found when it comes back to its slab, or is handed
//! out.
//!
//! Called by the rest of `hardened`.

use super::Extent;
use super::settings;
use super::word::{self, CANARY};
use crate::address_map::{Entry, HARDENED_EMPTY, Kind, MAP};
use crate::chunk;
use crate::os::{Memory, SYSTEM};
use crate::size_class::{self, UNIT};
use crate::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Words a unit.
pub(super) const A_UNIT: usize = UNIT / 16;

/// A slot.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Its first byte.
    pub(super) block: *mut u8,
    /// Its word.
    pub(super) word: *const AtomicU16,
    /// Its class.
    pub(super) class: usize,
    /// Whether it holds blocks of no bytes.
    pub(super) is_empty: bool,
}

/// A free slot, as rings know it.
#[derive(Clone, Copy)]
pub(super) struct Free {
    /// Its first byte.
    pub(super) block: *mut u8,
    /// Its word.
    pub(super) word: *const AtomicU16,
}

/// Units whose words are committed, from the first one on, where they are reserved as a whole.
static COMMITTED: AtomicUsize = AtomicUsize::new(0);
/// They are committed for so many units at a time.
const STEP: usize = 64;

/// Makes the words of `units` units readable and writable. False: there is no memory.
pub(super) fn commit(first: usize, units: usize) -> bool {
    if settings::get().is_limited {
        return commit_range(first, first + units);
    }
    // All up to there, so that they are one mapping. What is not touched costs nothing.
    let (from, to) = (COMMITTED.load(Ordering::Relaxed), (first + units).next_multiple_of(STEP));
    let done = to <= from || commit_range(from, to.min(chunk::most_units()));
    if done {
        COMMITTED.fetch_max(to, Ordering::Relaxed);
    }
    done
}

fn commit_range(first: usize, end: usize) -> bool {
    let page = SYSTEM.page_size();
    let at = word_of(first, 0).cast::<u8>().cast_mut();
    let end = word_of(end, 0).addr();
    let from = at.map_addr(|at| at & !(page - 1));
    let length = end.next_multiple_of(page) - from.addr();
    if settings::get().is_limited {
        // (What it shares a page with may have reserved that one.)
        let got = SYSTEM.reserve_at(from.addr(), length);
        if got.is_null() && page <= A_UNIT * size_of::<u16>() {
            return false;
        }
    }
    // SAFETY: a part of the reservation of the words, in whole pages; to commit what is committed
    // changes nothing.
    unsafe { SYSTEM.commit(from, length) }
}

/// Finds a place for the words of the process's window, and reserves it where address space is not
/// limited; else it is reserved extent by extent. Null: there is none.
pub(super) fn reserve(is_limited: bool) -> *mut AtomicU16 {
    let size = chunk::most_units() * A_UNIT * size_of::<u16>();
    let at = chunk::reserve_anywhere(size);
    if is_limited && !at.is_null() {
        // SAFETY: the reservation just made, which nobody has seen.
        unsafe { SYSTEM.release(at, size) };
    }
    at.cast()
}

/// The word of slot `index` of `unit`.
#[inline(always)]
pub(super) fn word_of(unit: usize, index: usize) -> *const AtomicU16 {
    settings::get().words.wrapping_add(unit * A_UNIT + index)
}

impl Slot {
    /// The slot `index` of the slab at `unit`.
    pub(super) fn at(unit: usize, class: usize, index: usize, is_empty: bool) -> Self {
        let block = MAP.address_of(unit).wrapping_add(index * size_class::size(class));
        Self { block, word: word_of(unit, index), class, is_empty }
    }

    /// The slot that an address lies in, and how far into it. `None`: the hardened heap has no slab
    /// there, or it is the rest behind the slab's last slot.
    pub(super) fn of(address: usize) -> Option<(Self, usize)> {
        let (unit, entry) = MAP.lookup(address);
        Self::in_unit(unit, entry, address)
    }

    /// [`Slot::of`], where the unit is known.
    pub(super) fn in_unit(unit: usize, entry: Entry, address: usize) -> Option<(Self, usize)> {
        let Kind::Slab(class) = entry.kind() else { return None };
        if !entry.is_hardened() {
            return None;
        }
        let offset = address & (UNIT - 1);
        let index = size_class::slot_of(class, offset);
        if index >= size_class::capacity(class) {
            return None;
        }
        let slot = Self::at(unit, class, index, entry.owner() == HARDENED_EMPTY);
        Some((slot, offset - index * size_class::size(class)))
    }

    /// The slot, which is free.
    pub(super) fn as_free(&self) -> Free {
        Free { block: self.block, word: self.word }
    }

    /// Reads its word.
    pub(super) fn read(&self) -> u16 {
        // SAFETY: the words of a slab are committed, and nothing is written there but by atomics.
        unsafe { &*self.word }.load(Ordering::Relaxed)
    }

    /// Changes its word: the caller holds the slot.
    pub(super) fn write(&self, word: u16) {
        // SAFETY: the words of a slab are committed, and nothing is written there but by atomics.
        unsafe { &*self.word }.store(word, Ordering::Relaxed);
    }

    /// Makes it a live block of `asked` bytes, which leave room for a canary: the caller holds the
    /// slot.
    pub(super) fn make_live(&self, maker: u16, asked: usize) {
        self.write(word::live(maker, self.size() - CANARY - asked));
        // SAFETY: the caller holds the slot.
        unsafe { end(self.block, asked, self.size()) };
    }

    /// Whether the end of the live block, of `asked` bytes, is as it was.
    pub(super) fn is_whole(&self, asked: usize) -> bool {
        // SAFETY: the slot is all of this heap's, and a multiple of 16 bytes.
        unsafe { is_whole(self.block, asked, self.size()) }
    }

    /// Whether the end of the live block was written: `malloc` makes a block live first.
    pub(super) fn has_end(&self, asked: usize) -> bool {
        // SAFETY: the slot has room for the bytes asked for and the canary.
        unsafe { self.block.wrapping_add(asked).cast::<u64>().read_unaligned() != 0 }
    }

    /// Its bytes.
    pub(super) fn size(&self) -> usize {
        size_class::size(self.class)
    }

    /// The block that it holds if its word is this one, or the free slot.
    pub(super) fn extent(&self, word: u16) -> Extent {
        let is_live = word::maker_of(word) != 0;
        let size = if is_live { self.asked(word) } else { self.size() };
        Extent { block: self.block.addr(), size, is_live }
    }

    /// The bytes asked for of a live block with this word.
    pub(super) fn asked(&self, word: u16) -> usize {
        if self.is_empty {
            return 0;
        }
        self.size() - CANARY - word::slack_of(word)
    }
}

/// Writes what follows the `asked` bytes of a block that has room for `room`: a canary, if it fits.
///
/// # Safety
///
/// The block is the caller's, and as long.
pub(super) unsafe fn end(block: *mut u8, asked: usize, room: usize) {
    if room - asked >= CANARY {
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: bytes of the block's room that were not asked for.
        unsafe { block.wrapping_add(asked).cast::<u64>().write_unaligned(canary) };
    }
}

/// Whether what follows the `asked` bytes of a block is as [`end`] left it: the canary, and zeros.
///
/// # Safety
///
/// The block is the caller's, and has room for `room` bytes, a multiple of 16.
pub(super) unsafe fn is_whole(block: *const u8, asked: usize, room: usize) -> bool {
    let mut used = asked;
    if room - asked >= CANARY {
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: bytes of the block's room.
        if unsafe { block.wrapping_add(asked).cast::<u64>().read_unaligned() } != canary {
            return false;
        }
        used += CANARY;
    }
    // Bytes up to a word, and then words.
    let aligned = used.next_multiple_of(8);
    for at in used..aligned {
        // SAFETY: a byte of the block's room, which ends at a multiple of 16.
        if unsafe { block.wrapping_add(at).read() } != 0 {
            return false;
        }
    }
    // SAFETY: the rest of the block's room.
    unsafe { is_zero(block.wrapping_add(aligned), room - aligned) }
}

/// Whether all of `size` bytes are zero.
///
/// # Safety
///
/// The bytes are the caller's, and `block` is aligned to 8.
pub(super) unsafe fn is_zero(block: *const u8, size: usize) -> bool {
    let mut any = 0;
    for at in 0..size / 8 {
        // SAFETY: a word of the caller's bytes.
        any |= unsafe { block.cast::<u64>().wrapping_add(at).read() };
    }
    for at in size & !7..size {
        // SAFETY: one of the last bytes of the caller's.
        any |= u64::from(unsafe { block.wrapping_add(at).read() });
    }
    any == 0
}

/// 16 bytes, as one register.
#[cfg(target_arch = "x86_64")]
type Lane = core::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Lane = u128;

/// 0 if the first 16 bytes are zero.
///
/// # Safety
///
/// The bytes are the caller's, and `block` is aligned to 8.
#[inline(always)]
pub(super) unsafe fn first_bits(block: *const u8) -> u64 {
    let words = block.cast::<u64>();
    // SAFETY: the first 8 of the caller's bytes.
    let first = unsafe { words.read() };
    // SAFETY: the next 8.
    first | unsafe { words.wrapping_add(1).read() }
}

/// 0 if all of `size` bytes are zero.
///
/// # Safety
///
/// The bytes are the caller's, `size` is a multiple of 16 and not 0, and `block` is aligned to 16.
#[inline(always)]
pub(super) unsafe fn all_bits(block: *const u8, size: usize) -> u64 {
    let lane = |at: usize| {
        // SAFETY: 16 of the caller's bytes.
        unsafe { block.wrapping_add(at).cast::<Lane>().read() }
    };
    let mut any = NONE;
    if size < 64 {
        // The middle one of three.
        any = or(or(lane(0), lane(size - 16)), lane((size / 2) & !15));
    } else {
        let mut left = size - 64;
        loop {
            any =
                or(any, or(or(lane(left), lane(left + 16)), or(lane(left + 32), lane(left + 48))));
            if left == 0 {
                break;
            }
            left = left.saturating_sub(64);
        }
    }
    u64::from(!is_none(any))
}

/// 0 if all of `size` bytes are zero: for long slots.
///
/// # Safety
///
/// The bytes are the caller's, `size` is a multiple of 128, and `block` is aligned to 16.
pub(super) unsafe fn long_bits(block: *const u8, size: usize) -> u64 {
    debug_assert!(size.is_multiple_of(128));
    let mut any = [NONE; 4];
    for at in (0..size).step_by(128) {
        let lane = |part: usize| {
            // SAFETY: 16 of the caller's bytes.
            unsafe { block.wrapping_add(at + part).cast::<Lane>().read() }
        };
        for (part, any) in any.iter_mut().enumerate() {
            *any = or(*any, or(lane(16 * part), lane(64 + 16 * part)));
        }
    }
    let [one, two, three, four] = any;
    u64::from(!is_none(or(or(one, two), or(three, four))))
}

/// Reads a word.
#[inline(always)]
pub(super) fn read(word: &AtomicU16) -> u64 {
    // The compiler widens what an atomic load gives once more.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let known: u64;
        // SAFETY: a load of an aligned word, which is what a relaxed one is.
        unsafe {
            core::arch::asm!(
                "movzx {known:e}, word ptr [{word}]",
                word = in(reg) word.as_ptr(),
                known = lateout(reg) known,
                options(readonly, nostack, preserves_flags),
            );
        }
        known
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    word.load(Ordering::Relaxed).into()
}

// SAFETY: a lane of zeros is a lane.
const NONE: Lane = unsafe { core::mem::zeroed() };

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn or(one: Lane, other: Lane) -> Lane {
    use core::arch::x86_64::_mm_or_si128;
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_or_si128(one, other) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_none(lane: Lane) -> bool {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8};
    // SAFETY: every x86-64 has SSE2.
    let equal = unsafe { _mm_cmpeq_epi8(lane, NONE) };
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_movemask_epi8(equal) == 0xffff }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn or(one: Lane, other: Lane) -> Lane {
    one | other
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn is_none(lane: Lane) -> bool {
    lane == 0
}

/// Makes `size` bytes zero, of which there are not many.
///
/// # Safety
///
/// The bytes are the caller's to change, `size` is a multiple of 16 and not 0, and `block` is
/// aligned to 16.
#[inline(always)]
pub(super) unsafe fn clear_quick(block: *mut u8, size: usize) {
    // Volatile, or the compiler would call the C library's function for a few stores.
    let put = |at: usize| {
        // SAFETY: 16 of the caller's bytes.
        unsafe { block.wrapping_add(at).cast::<Lane>().write_volatile(NONE) };
    };
    if size < 64 {
        put(0);
        put(size - 16);
        // The middle one of three.
        put((size / 2) & !15);
        return;
    }
    let mut left = size - 64;
    loop {
        put(left);
        put(left + 16);
        put(left + 32);
        put(left + 48);
        if left == 0 {
            break;
        }
        left = left.saturating_sub(64);
    }
}

/// Makes `size` bytes zero.
///
/// # Safety
///
/// The bytes are the caller's to change.
#[inline(never)]
pub(super) unsafe fn clear(block: *mut u8, size: usize) {
    // SAFETY: the bytes are the caller's.
    unsafe { block.write_bytes(0, size) };
}
