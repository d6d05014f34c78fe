//! Large blocks of the hardened heap: a run of units between guards of random length.
//!
//! ```text
//!   run     | guard, 1 to 4 units | block | canary, zeros | guard: unit's rest, 1 to 4 units |
//!                                 ^ a unit               ^ a page
//!
//!   record  of the block's first unit: its units, usable bytes, bytes requested, HARDENED as its
//!           heap; in fields that slabs use, the units of the guards and the maker
//! ```
//!
//! A write past the page of the last byte hits the guard. A write within that page is found when
//! the block is freed or resized. A freed block becomes inaccessible at once, and its pages go back
//! to the kernel (or see `warm`). Freed blocks wait in a queue, but runs over [`QUEUED_UNITS`] go
//! to the chunk at once. The queue's older half serves, in random order, requests of the same
//! number of units. Runs that leave it return to the chunk.
//!
//! Invariants: the holder of a block owns its record. A free sets `requested` to [`Record::KEPT`]
//! by an exchange. If two threads free a block, one of them fails. A thread takes the queue's lock
//! with no other lock of this heap, and before the chunk's. Called by `mod`.

use super::Extent;
use super::judge::{self, Wrong};
use super::random::Random;
use super::slots;
use super::warm::Place;
use super::word::CANARY;
use crate::address_map::{Entry, HARDENED, Kind, MAP};
use crate::chunk::{self, Want, large_block};
use crate::os::{self, Memory, SYSTEM};
use crate::request::{Request, Return};
use crate::size_class::UNIT;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{self, Lock};
use crate::unit_record::Record;

/// The most freed blocks that wait, and the most units that they take together.
const QUEUED: usize = 64;
const QUEUED_UNITS: usize = (256 << 20) / UNIT;
const MOST_GUARD: usize = 4;

/// A waiting run: its first unit, and the units of the first guard, the block and the second guard.
#[derive(Clone, Copy)]
struct Run {
    first: usize,
    before: usize,
    units: usize,
    after: usize,
}

impl Run {
    const NONE: Self = Self { first: 0, before: 0, units: 0, after: 0 };

    fn all(self) -> usize {
        self.before + self.units + self.after
    }

    fn block(self) -> usize {
        self.first + self.before
    }

    fn of(unit: usize) -> Self {
        let record = MAP.record(unit);
        let before = record.carved.load(Ordering::Relaxed) as usize;
        let after = record.free.load(Ordering::Relaxed) as usize;
        let units = record.units.load(Ordering::Relaxed) as usize;
        Self { first: unit - before, before, units, after }
    }

    fn place(self) -> Place {
        let usable = large_block::usable(MAP.record(self.block()));
        let (block, before, behind) = (self.block(), self.before, self.units + self.after);
        Place { block, before, behind, usable }
    }

    /// Makes a run from the queue usable again for a block of `usable` bytes, which read as zero.
    /// Returns false if the kernel refused. Then the run is not the caller's any more.
    fn begin_again(self, usable: usize) -> bool {
        let place = self.place();
        if place.is_warm() {
            if place.usable == usable {
                let is_open = place.reuse();
                if !is_open {
                    self.give_as(false, 0);
                }
                return is_open;
            }
            if !place.cool() {
                self.give_as(false, 0);
                return false;
            }
        }
        place.begin_again();
        // SAFETY: the run was taken out of the queue, and no other code knows it.
        let is_open = unsafe { os::unguard(MAP.address_of(self.block()), usable) };
        if !is_open {
            self.give_as(true, 0);
        }
        is_open
    }

    /// Returns the run to the chunk. Its last `empty` bytes have no pages.
    fn give(self, empty: usize) {
        let place = self.place();
        self.give_as(!place.is_warm() || place.cool(), empty);
    }

    /// As [`Run::give`], for a cold run, or one that the kernel refused to make cold.
    fn give_as(self, is_cold: bool, empty: usize) {
        // Guards are removed as they were made, because the kernel may limit the calls.
        let guards = [
            (self.first, self.before),
            (self.block(), self.units),
            (self.block() + self.units, self.after),
        ];
        let unguard = |&(unit, units): &(usize, usize)| {
            // SAFETY: the run is this heap's, and no code uses it.
            unsafe { os::unguard(MAP.address_of(unit), units * UNIT) }
        };
        let has_guards = !guards.iter().all(unguard);
        self.place().forget();
        if has_guards && os::guards_are_light() {
            // The kernel refused. A guard could stay in a later block, so the addresses are lost.
            return;
        }
        MAP.set_entries(self.first, self.all(), Entry::GUARD);
        MAP.record(self.block()).carved.store(0, Ordering::Relaxed);
        MAP.record(self.block()).free.store(0, Ordering::Relaxed);
        MAP.record(self.block()).purged.store(0, Ordering::Relaxed);
        if is_cold && !has_guards {
            return chunk::give_moved(self.first, self.all(), empty);
        }
        // At a limit of writable memory, the kernel makes nothing accessible.
        // SAFETY: the run is this heap's, and no code uses it.
        unsafe { chunk::give_inaccessible(self.first, self.all()) };
    }
}

/// A ring of freed blocks, the oldest at `next`.
struct Queue {
    runs: [Run; QUEUED],
    next: usize,
    units: usize,
    random: Random,
}

static QUEUE: Lock<Queue> =
    Lock::new(Queue { runs: [Run::NONE; QUEUED], next: 0, units: 0, random: Random::new() });

impl Queue {
    /// Removes a run of `units` units from the older half, from a random run on.
    fn take(&mut self, units: usize) -> Option<Run> {
        let from = self.random.below(QUEUED / 2);
        let at = (from..from + QUEUED / 2)
            .map(|at| (self.next + at % (QUEUED / 2)) % QUEUED)
            .find(|&at| self.runs[at].units == units)?;
        let run = core::mem::replace(&mut self.runs[at], Run::NONE);
        self.units -= run.all();
        Some(run)
    }

    /// Adds a run. Passes the runs that leave the queue for it to `goes`.
    fn put(&mut self, run: Run, mut goes: impl FnMut(Run)) {
        self.units += run.all();
        let mut out = core::mem::replace(&mut self.runs[self.next], run);
        self.next = (self.next + 1) % QUEUED;
        let mut at = self.next;
        // The last run to leave may be the new run itself, if it alone is too long.
        for _ in 0..=QUEUED {
            if out.units > 0 {
                self.units -= out.all();
                goes(out);
            }
            if self.units <= QUEUED_UNITS {
                return;
            }
            debug_assert!(self.units > 0);
            out = core::mem::replace(&mut self.runs[at], Run::NONE);
            at = (at + 1) % QUEUED;
        }
    }

    fn guards(&mut self) -> (usize, usize) {
        (1 + self.random.below(MOST_GUARD), 1 + self.random.below(MOST_GUARD))
    }
}

/// A field of the record holds the maker of a block, and the logarithm of its alignment.
const ALIGN_SHIFT: u32 = 8;
const MAKER: u16 = (1 << ALIGN_SHIFT) - 1;

fn made_as(request: Request) -> u16 {
    super::maker_of(request) | (request.align.trailing_zeros() as u16) << ALIGN_SHIFT
}

/// Returns the usable bytes of a block of `size` bytes: whole pages, at least one.
fn whole_pages(size: usize) -> usize {
    size.max(1).next_multiple_of(SYSTEM.page_size())
}

/// Returns the rest of the block's units behind its usable bytes, and the guard.
fn behind(run: Run, usable: usize) -> (*mut u8, usize) {
    let block = MAP.address_of(run.block());
    (block.wrapping_add(usable), (run.units + run.after) * UNIT - usable)
}

/// Returns a block. The size is 0 only if the alignment exceeds that of empty slots.
pub(super) fn allocate(request: Request) -> *mut u8 {
    allocate_with_room(request, 0)
}

/// Like [`allocate`], for a block that will probably grow again. The run has half as many units in
/// addition. These stay guarded until the block grows.
pub(super) fn allocate_to_grow(request: Request) -> *mut u8 {
    let room = request.size.div_ceil(UNIT) / 2;
    let block = allocate_with_room(request, room);
    if block.is_null() { allocate(request) } else { block }
}

fn allocate_with_room(request: Request, room: usize) -> *mut u8 {
    let Request { size, align, .. } = request;
    let usable = whole_pages(size);
    // A signal handler that may have interrupted the holder of a lock gets no block.
    if sync::is_interrupted() || os::is_more_than_there_is(usable) {
        return core::ptr::null_mut();
    }
    let units = usable.div_ceil(UNIT) + room;
    let reused = if align <= UNIT { QUEUE.lock().take(units) } else { None };
    let reused = reused.filter(|run| run.begin_again(usable));
    // Waiting blocks are released before a request is refused.
    let take_at_last = || {
        trim();
        take(units, align)
    };
    let Some(run) = reused.or_else(|| take(units, align)).or_else(take_at_last) else {
        return core::ptr::null_mut();
    };
    let unit = run.block();
    let block = MAP.address_of(unit);
    if reused.is_none() {
        // SAFETY: the units before the block belong to the new run.
        unsafe { os::guard(MAP.address_of(run.first), run.before * UNIT) };
        let (at, length) = behind(run, usable);
        // SAFETY: the pages behind the block belong to the new run.
        unsafe { os::guard(at, length) };
    }
    let record = MAP.record(unit);
    record.units.store(run.units as u32, Ordering::Relaxed);
    record.carved.store(run.before as u16, Ordering::Relaxed);
    record.free.store(run.after as u16, Ordering::Relaxed);
    record.purged.store(made_as(request), Ordering::Relaxed);
    record.heap.store(HARDENED, Ordering::Relaxed);
    record.usable.store(usable, Ordering::Relaxed);
    record.requested.store(size, Ordering::Relaxed);
    if reused.is_none() {
        run.place().begin();
    }
    // SAFETY: the bytes are the usable bytes of a new block, which no other code knows yet.
    unsafe { slots::end(block, size, usable) };
    MAP.set_entries(unit + 1, run.units - 1, Entry::large_rest(unit));
    // A reader of the entry sees this record, too: the block has no tail to cut off.
    fence(Ordering::Release);
    MAP.set_entry(unit, Entry::LARGE_HEAD);
    block
}

fn take(units: usize, align: usize) -> Option<Run> {
    let (before, after) =
        if chunk::is_limited() || os::has_data_limit() { (1, 1) } else { QUEUE.lock().guards() };
    let step = align.div_ceil(UNIT).max(1);
    let before = if step > 1 { step } else { before };
    if before > u16::MAX as usize {
        return None;
    }
    let all = before.checked_add(units)?.checked_add(after)?;
    let taken = chunk::take(all, step, Want::Zero, Entry::GUARD, |_| Entry::GUARD)?;
    let run = Run { first: taken.unit, before, units, after };
    if !taken.zero {
        // The guards, too: the kernel may refuse them, and the chunk takes back only zeros.
        let at = MAP.address_of(run.first);
        // SAFETY: the new run is committed, and no other code knows it.
        unsafe { SYSTEM.make_zero(at, all * UNIT) };
    }
    Some(run)
}

fn unit_of(address: usize) -> Option<usize> {
    let (unit, entry) = MAP.lookup(address);
    let is_one = entry == Entry::LARGE_HEAD
        && address.is_multiple_of(UNIT)
        && MAP.record(unit).heap.load(Ordering::Relaxed) == HARDENED;
    is_one.then_some(unit)
}

/// Returns the block, live or just freed, that contains an address.
pub(super) fn find(address: usize) -> Option<Extent> {
    let (unit, entry) = MAP.lookup(address);
    let head = match entry.kind() {
        Kind::LargeHead => unit,
        Kind::LargeRest(head) => head,
        _ => return None,
    };
    let record = MAP.record(head);
    if record.heap.load(Ordering::Relaxed) != HARDENED {
        return None;
    }
    let block = MAP.address_of(head).addr();
    let asked = record.requested.load(Ordering::Relaxed);
    let is_live = asked != Record::KEPT;
    Some(Extent { block, size: if is_live { asked } else { large_block::usable(record) }, is_live })
}

pub(super) fn asked(address: usize) -> Option<usize> {
    asked_of(unit_of(address)?)
}

fn asked_of(unit: usize) -> Option<usize> {
    let asked = MAP.record(unit).requested.load(Ordering::Relaxed);
    (asked != Record::KEPT).then_some(asked)
}

/// Makes pages of a block inaccessible. If the kernel refuses, makes the pages read as zero.
///
/// # Safety
///
/// The range is whole pages of a block that the caller gives up.
unsafe fn take_away(at: *mut u8, length: usize) {
    // SAFETY: the caller gives up the pages.
    if !unsafe { os::guard(at, length) } {
        // SAFETY: the caller gives up the pages.
        unsafe { SYSTEM.make_zero(at, length) };
    }
}

/// Frees a large block. Returns false if the block is not this heap's.
pub(super) fn free(block: *mut u8, what: Return) -> bool {
    let Some(unit) = unit_of(block.addr()) else { return false };
    let record = MAP.record(unit);
    let usable = large_block::usable(record);
    if let Some(asked) = asked_of(unit) {
        look_at(unit, asked, what);
    }
    if record.requested.swap(Record::KEPT, Ordering::Acquire) == Record::KEPT {
        judge::report(Wrong::DoubleFree, what.call.word(), block.addr(), usable);
        return true;
    }
    let run = Run::of(unit);
    let is_lost = sync::is_interrupted();
    if run.all() > QUEUED_UNITS && !is_lost {
        // A run this long never waits in the queue, so guards on its pages do not pay.
        // SAFETY: the caller gives up the block.
        unsafe { SYSTEM.make_zero(block, usable) };
        run.give(0);
        return true;
    }
    let place = run.place();
    if is_lost || !place.free() {
        // SAFETY: the caller gives up the block. (The bytes behind it are guarded or zero.)
        unsafe { take_away(block, usable) };
        chunk::note_purged(usable);
        if is_lost || !place.cool_live() {
            // The addresses are lost: a signal handler waits for no lock, or the kernel refused.
            return true;
        }
    }
    let mut out = [Run::NONE; QUEUED + 1];
    let mut count = 0;
    QUEUE.lock().put(run, |run| {
        out[count] = run;
        count += 1;
    });
    out[..count].iter().for_each(|run| run.give(run.all() * UNIT));
    true
}

fn look_at(unit: usize, asked: usize, what: Return) {
    let record = MAP.record(unit);
    let (block, usable) = (MAP.address_of(unit), large_block::usable(record));
    let made = record.purged.load(Ordering::Relaxed);
    let (made, align) = (made & MAKER, 1 << (made >> ALIGN_SHIFT));
    let align = super::known_align(made, align);
    super::compare(made, align, asked, block.addr(), what, |told| {
        told.max(1) <= usable - SYSTEM.page_size() || told > usable
    });
    // SAFETY: the bytes are the usable bytes of a live block: whole pages.
    if !unsafe { slots::is_whole(block, asked, usable) } {
        judge::report(Wrong::Overflow, what.call.word(), block.addr(), asked);
    }
}

/// Returns the requested bytes of the live block at an address, after the checks of [`free`].
pub(super) fn checked(address: usize, what: Return) -> Option<usize> {
    let unit = unit_of(address)?;
    let asked = asked_of(unit)?;
    look_at(unit, asked, what);
    Some(asked)
}

/// From this size on, a resize moves pages instead of copying bytes.
pub(super) const MOVE_PAGES: usize = 1 << 20;

/// Resizes a block in place to `size` bytes, more than a slot has, or returns false.
pub(super) fn resize(block: *mut u8, size: usize) -> bool {
    let Some(unit) = unit_of(block.addr()) else { return false };
    let record = MAP.record(unit);
    let (usable, asked) = (large_block::usable(record), record.requested.load(Ordering::Relaxed));
    let wanted = whole_pages(size);
    let run = Run::of(unit);
    // A block shrinks in place. Below half its size it moves instead, to free its addresses.
    if wanted > run.units * UNIT || wanted < usable / 2 {
        return false;
    }
    if wanted != usable && !run.place().cool_live() {
        return false;
    }
    // The canary's bytes become the program's.
    let rest = (usable - asked).min(CANARY);
    if rest == CANARY {
        // SAFETY: the bytes are usable.
        unsafe { block.wrapping_add(asked).write_bytes(0, CANARY) };
    }
    if wanted > usable {
        // SAFETY: the pages belong to the block's run and become the program's.
        if !unsafe { os::unguard(block.wrapping_add(usable), wanted - usable) } {
            // SAFETY: the bytes are the usable bytes of the caller's block.
            unsafe { slots::end(block, asked, usable) };
            return false;
        }
    } else {
        if size < asked {
            // The bytes behind the end must read as zero.
            let from = block.wrapping_add(size);
            // SAFETY: the program gives up these bytes of its block.
            unsafe { from.write_bytes(0, wanted.min(asked).saturating_sub(size)) };
        }
        if wanted < usable {
            // SAFETY: the program gives up these pages. The bytes behind them are guarded already.
            unsafe { take_away(block.wrapping_add(wanted), usable - wanted) };
        }
    }
    record.usable.store(wanted, Ordering::Relaxed);
    record.requested.store(size, Ordering::Relaxed);
    // SAFETY: the bytes are the usable bytes of the caller's block.
    unsafe { slots::end(block, size, wanted) };
    true
}

pub(super) fn before_fork() {
    QUEUE.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
    unsafe { QUEUE.release() };
}

/// Gives back the queue of freed blocks. Returns whether there were any.
pub(super) fn trim() -> bool {
    let mut out = [Run::NONE; QUEUED];
    {
        let mut queue = QUEUE.lock();
        core::mem::swap(&mut out, &mut queue.runs);
        queue.units = 0;
    }
    let runs = || out.iter().filter(|run| run.units > 0);
    runs().for_each(|run| run.give(run.all() * UNIT));
    runs().next().is_some()
}
