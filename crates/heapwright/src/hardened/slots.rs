//! Slots and their words: arithmetic and one load find the block of an address.
//!
//! ```text
//!   words   | unit 0: 4096 words | unit 1: 4096 words | ...      8 KiB a unit, at a random place
//!             word i: slot i of the unit's slab
//! ```
//!
//! No slot is smaller than 16 bytes, so a unit has a word for each slot. The words of new slabs are
//! committed with the slabs' extent (`slabs`). They read as zero, which means "in a ring".
//!
//! Invariants: only the holder of a slot changes the slot's word, by a plain store. The holder is
//! the owner of the live block, the thread of the ring, or the holder of the class's lock. If two
//! threads free a block at once, the heap finds that when the slot returns to its slab or is handed
//! out. Called by the other files of `hardened`.

use core::ptr;

use super::Extent;
use super::settings;
use super::word::{self, CANARY};
use crate::address_map::{Entry, HARDENED_EMPTY, Kind, MAP};
use crate::chunk;
use crate::os::{Memory, SYSTEM};
use crate::size_class::{self, UNIT};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicU16, Ordering};

pub(super) const A_UNIT: usize = UNIT / 16;

#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) block: *mut u8,
    pub(super) word: *const AtomicU16,
    pub(super) class: usize,
    /// Whether the slot holds blocks of size 0.
    pub(super) is_empty: bool,
}

/// A free slot as rings store it.
#[derive(Clone, Copy)]
pub(super) struct Free {
    pub(super) block: *mut u8,
    pub(super) word: *const AtomicU16,
}

/// How many units, from the first on, have committed words, and reserved words. Beyond the reserved
/// words, each extent of slabs reserves its own.
struct Words {
    committed: usize,
    reserved: usize,
}

static WORDS: Lock<Words> = Lock::new(Words { committed: 0, reserved: 0 });
/// Words are committed for this many units at a time.
const STEP: usize = 64;

/// Makes the words of `units` units readable and writable. Returns false without memory.
pub(super) fn commit(first: usize, units: usize) -> bool {
    let mut words = WORDS.lock();
    let end = first + units;
    if end > words.reserved {
        return commit_range(first, end, words.reserved);
    }
    // Continues from the last commit, so that all words form one mapping. Untouched words are free.
    // (At a limit, memory may suffice for fewer words only.)
    for to in [end.next_multiple_of(STEP).min(words.reserved), end] {
        if to <= words.committed || commit_range(words.committed, to, words.reserved) {
            words.committed = words.committed.max(to);
            return true;
        }
    }
    false
}

fn commit_range(first: usize, end: usize, reserved: usize) -> bool {
    let page = SYSTEM.page_size();
    let page_of =
        |unit: usize| word_of(unit, 0).cast::<u8>().cast_mut().map_addr(|at| at & !(page - 1));
    let (at, end) = (page_of(first), word_of(end, 0).addr().next_multiple_of(page));
    let from = page_of(first.max(reserved)).addr();
    // (The next extent of slabs may have reserved the same page.)
    let size = end.saturating_sub(from);
    let new = if size > 0 { SYSTEM.reserve_at(from, size) } else { ptr::null_mut() };
    if size > 0 && new.is_null() && page <= A_UNIT * size_of::<u16>() {
        return false;
    }
    // SAFETY: the range is whole pages of the words' reservation. A second commit changes nothing.
    let done = unsafe { SYSTEM.commit(at, end - at.addr()) };
    if !done && !new.is_null() {
        // SAFETY: the range was reserved above, and no slab has these words.
        unsafe { SYSTEM.release(new, size) };
    }
    done
}

/// Reserves the window's words, or returns null. If address space is limited, extents of slabs
/// later reserve their parts, and this only chooses the place.
pub(super) fn reserve(is_limited: bool) -> *mut AtomicU16 {
    let units = chunk::most_units();
    let size = units * A_UNIT * size_of::<u16>();
    let at = chunk::reserve_anywhere(size);
    if is_limited && !at.is_null() {
        // SAFETY: the range is the new reservation, which no other code has seen.
        unsafe { SYSTEM.release(at, size) };
    } else if !at.is_null() {
        WORDS.lock().reserved = units;
    }
    at.cast()
}

/// Releases the reserved words that are not committed, because reserved addresses will be limited.
pub(super) fn give_up_reserve() {
    let mut words = WORDS.lock();
    let at = word_of(words.committed, 0).cast::<u8>().cast_mut();
    let size = (words.reserved - words.committed) * A_UNIT * size_of::<u16>();
    // SAFETY: these words were reserved and never committed. Commits hold the lock, too.
    if size > 0 && unsafe { SYSTEM.release(at, size) } {
        words.reserved = words.committed;
    }
}

pub(super) fn before_fork() {
    WORDS.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread, or the thread that it is a copy of, holds the lock.
    unsafe { WORDS.release() };
}

#[inline(always)]
pub(super) fn word_of(unit: usize, index: usize) -> *const AtomicU16 {
    settings::get().words.wrapping_add(unit * A_UNIT + index)
}

impl Slot {
    pub(super) fn at(unit: usize, class: usize, index: usize, is_empty: bool) -> Self {
        let block = MAP.address_of(unit).wrapping_add(index * size_class::size(class));
        Self { block, word: word_of(unit, index), class, is_empty }
    }

    /// Returns the slot of an address in a slab of this heap, and the offset in the slot.
    pub(super) fn of(address: usize) -> Option<(Self, usize)> {
        let (unit, entry) = MAP.lookup(address);
        Self::in_unit(unit, entry, address)
    }

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

    pub(super) fn as_free(&self) -> Free {
        Free { block: self.block, word: self.word }
    }

    pub(super) fn read(&self) -> u16 {
        // SAFETY: the words of a slab are committed, and only atomics write them.
        unsafe { &*self.word }.load(Ordering::Relaxed)
    }

    /// Changes the slot's word. The caller must hold the slot.
    pub(super) fn write(&self, word: u16) {
        // SAFETY: the words of a slab are committed, and only atomics write them.
        unsafe { &*self.word }.store(word, Ordering::Relaxed);
    }

    /// Makes the slot, which the caller must hold, a live block with a canary.
    pub(super) fn make_live(&self, maker: u16, asked: usize) {
        self.write(word::live(maker, self.size() - CANARY - asked));
        // SAFETY: the caller holds the slot.
        unsafe { end(self.block, asked, self.size()) };
    }

    /// Returns whether the canary and the zeros behind the live block of `asked` bytes are intact.
    pub(super) fn is_whole(&self, asked: usize) -> bool {
        // SAFETY: the slot is this heap's, and its size is a multiple of 16 bytes.
        unsafe { is_whole(self.block, asked, self.size()) }
    }

    /// Returns whether some canary lies behind a live block. (`malloc` writes it after the word.)
    pub(super) fn has_end(&self, asked: usize) -> bool {
        // SAFETY: the slot has room for the requested bytes and the canary.
        unsafe { self.block.wrapping_add(asked).cast::<u64>().read_unaligned() != 0 }
    }

    pub(super) fn size(&self) -> usize {
        size_class::size(self.class)
    }

    /// Returns the slot's block, live or free, if its word is `word`.
    pub(super) fn extent(&self, word: u16) -> Extent {
        let is_live = word::maker_of(word) != 0;
        let size = if is_live { self.asked(word) } else { self.size() };
        Extent { block: self.block.addr(), size, is_live }
    }

    pub(super) fn asked(&self, word: u16) -> usize {
        if self.is_empty {
            return 0;
        }
        self.size() - CANARY - word::slack_of(word)
    }
}

/// Writes the end of a block of `asked` bytes with room for `room` bytes: a canary, if it fits.
///
/// # Safety
///
/// The block is the caller's and has `room` bytes.
pub(super) unsafe fn end(block: *mut u8, asked: usize, room: usize) {
    if room - asked >= CANARY {
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: these bytes of the block were not requested.
        unsafe { block.wrapping_add(asked).cast::<u64>().write_unaligned(canary) };
    }
}

/// Returns whether the end of a block of `asked` bytes is as [`end`] left it.
///
/// # Safety
///
/// The block is the caller's, and has room for `room` bytes, a multiple of 16.
pub(super) unsafe fn is_whole(block: *const u8, asked: usize, room: usize) -> bool {
    let mut used = asked;
    if room - asked >= CANARY {
        let canary = word::canary(settings::get().secret, block.addr());
        // SAFETY: the bytes are in the block's room.
        if unsafe { block.wrapping_add(asked).cast::<u64>().read_unaligned() } != canary {
            return false;
        }
        used += CANARY;
    }
    let aligned = used.next_multiple_of(8);
    for at in used..aligned {
        // SAFETY: the byte is in the block's room, which ends at a multiple of 16.
        if unsafe { block.wrapping_add(at).read() } != 0 {
            return false;
        }
    }
    // SAFETY: the bytes are the rest of the block's room.
    unsafe { is_zero(block.wrapping_add(aligned), room - aligned) }
}

/// # Safety
///
/// The bytes are the caller's, and `block` is aligned to 8.
pub(super) unsafe fn is_zero(block: *const u8, size: usize) -> bool {
    let mut any = 0;
    for at in 0..size / 8 {
        // SAFETY: the word is part of the caller's bytes.
        any |= unsafe { block.cast::<u64>().wrapping_add(at).read() };
    }
    for at in size & !7..size {
        // SAFETY: the byte is one of the caller's last bytes.
        any |= u64::from(unsafe { block.wrapping_add(at).read() });
    }
    any == 0
}

/// 16 bytes: one register on x86-64.
#[cfg(target_arch = "x86_64")]
type Lane = core::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Lane = u128;

/// Returns 0 if the first 16 bytes are zero.
///
/// # Safety
///
/// The bytes are the caller's, and `block` is aligned to 8.
#[inline(always)]
pub(super) unsafe fn first_bits(block: *const u8) -> u64 {
    let words = block.cast::<u64>();
    // SAFETY: these are the first 8 of the caller's bytes.
    let first = unsafe { words.read() };
    // SAFETY: these are the next 8 of the caller's bytes.
    first | unsafe { words.wrapping_add(1).read() }
}

/// Returns 0 if all of `size` bytes are zero.
///
/// # Safety
///
/// The bytes are the caller's, `size` is a multiple of 16 and not 0, and `block` is aligned to 16.
#[inline(always)]
pub(super) unsafe fn all_bits(block: *const u8, size: usize) -> u64 {
    let lane = |at: usize| {
        // SAFETY: these are 16 of the caller's bytes.
        unsafe { block.wrapping_add(at).cast::<Lane>().read() }
    };
    let mut any = NONE;
    if size < 64 {
        // If there are three lanes, `size / 2` lies in the middle lane.
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

/// Returns 0 if all of `size` bytes are zero. For long slots.
///
/// # Safety
///
/// The bytes are the caller's, `size` is a multiple of 128, and `block` is aligned to 16.
pub(super) unsafe fn long_bits(block: *const u8, size: usize) -> u64 {
    debug_assert!(size.is_multiple_of(128));
    let mut any = [NONE; 4];
    for at in (0..size).step_by(128) {
        let lane = |part: usize| {
            // SAFETY: these are 16 of the caller's bytes.
            unsafe { block.wrapping_add(at + part).cast::<Lane>().read() }
        };
        for (part, any) in any.iter_mut().enumerate() {
            *any = or(*any, or(lane(16 * part), lane(64 + 16 * part)));
        }
    }
    let [one, two, three, four] = any;
    u64::from(!is_none(or(or(one, two), or(three, four))))
}

#[inline(always)]
pub(super) fn read(word: &AtomicU16) -> u64 {
    // The compiler would extend an atomic load's result a second time.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let known: u64;
        // SAFETY: the code only loads an aligned word, like a relaxed atomic load.
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

// SAFETY: all-zero bits are a valid lane.
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

/// Clears `size` bytes, quickly for small sizes.
///
/// # Safety
///
/// The bytes are the caller's to change, `size` is a multiple of 16 and not 0, and `block` is
/// aligned to 16.
#[inline(always)]
pub(super) unsafe fn clear_quick(block: *mut u8, size: usize) {
    // Volatile, because the compiler would call a library function for a few stores.
    let put = |at: usize| {
        // SAFETY: these are 16 of the caller's bytes.
        unsafe { block.wrapping_add(at).cast::<Lane>().write_volatile(NONE) };
    };
    if size < 64 {
        put(0);
        put(size - 16);
        // If there are three lanes, `size / 2` lies in the middle lane.
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

/// # Safety
///
/// The bytes are the caller's to change.
#[inline(never)]
pub(super) unsafe fn clear(block: *mut u8, size: usize) {
    // SAFETY: the bytes are the caller's.
    unsafe { block.write_bytes(0, size) };
}
