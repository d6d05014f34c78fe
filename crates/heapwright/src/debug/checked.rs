//! `Checked` checks the blocks of any other allocator.
//!
//! ```text
//!   the other's block    | front: 32, or the alignment | user's bytes | back: 32 to 47 |
//!                          ........ PATTERN, 64 at most  PATTERN freed  PATTERN
//!
//!   record (see `table`)  stacks, threads, size, alignment, state: by the block's address
//! ```
//!
//! The memory comes from the other allocator, but no metadata lies beside the program's bytes.
//! Pointers are looked up and not followed, so a pointer that no allocation returned is not
//! touched.
//!
//! A freed block is filled and quarantined. When the quarantine costs more than the configuration's
//! `memory`, the oldest block is verified once more, and goes back to the other allocator. There
//! are no guard pages, because the pages belong to the other allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use heapwright_record::debug::{Access, Call, Finding, FindingKind, Moment, Origin, Region};

use crate::options::debug::Config;

use super::bytes::{self, Damage};
use super::heap::Heap;
use super::process;
use super::table::{Claim, Entry, State};
use super::{DebugHeap, Leaks};

const FRONT: usize = 32;
const BACK: usize = 32;
const NEAR: usize = 64;
const QUARANTINE_LEAST: usize = 2 << 20;
/// The cost of a quarantined block in addition to its memory, in bytes.
const ENTRY_COST: usize = 64;

/// An allocator that checks the blocks of another one.
///
/// Each block costs 64 to 79 bytes of the other allocator's memory, and 52 bytes of records. (A
/// block with an alignment above 32 costs its alignment and 32 to 47 bytes.) Each operation takes
/// constant time. Freed memory is quarantined before it goes back to the other allocator.
///
/// `Checked` is a `GlobalAlloc`, so it can be the `#[global_allocator]`. A reference to it is an
/// `Allocator` if a feature for that is enabled.
///
/// ```
/// use heapwright::debug::{Checked, Config, FindingKind};
/// use std::alloc::{GlobalAlloc, Layout, System};
///
/// static HEAP: Checked<System> = Checked::with(System, Config { quiet: true, ..Config::DEFAULT });
///
/// let layout = Layout::new::<[u8; 40]>();
/// // SAFETY: the layout's size is not zero.
/// let block = unsafe { HEAP.alloc(layout) };
/// // SAFETY: a mistake: one byte too far; there is room for it.
/// unsafe { block.add(40).write(0x41) };
/// // SAFETY: the block is ours.
/// unsafe { HEAP.dealloc(block, layout) };
/// let finding = HEAP.last_finding().unwrap();
/// assert_eq!((finding.kind, finding.offset), (FindingKind::Overflow, 40));
/// ```
pub struct Checked<A> {
    inner: A,
    heap: DebugHeap,
}

impl<A: core::fmt::Debug> core::fmt::Debug for Checked<A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Checked").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
struct Shape {
    /// The bytes before the block, and the number of them that are checked.
    front: usize,
    near: usize,
    size: usize,
    back: usize,
    layout: Layout,
}

impl Shape {
    fn of(size: usize, align: usize) -> Option<Self> {
        let align = align.max(16);
        let front = FRONT.max(align);
        let back = BACK + (size.wrapping_neg() % 16);
        let total = size.checked_add(front + back)?;
        let layout = Layout::from_size_align(total, align).ok()?;
        Some(Self { front, near: front.min(NEAR), size, back, layout })
    }

    fn of_entry(entry: &Entry) -> Self {
        // `insert` accepted this size and alignment, so the shape exists.
        Self::of(entry.size, entry.align()).unwrap_or(Self {
            front: FRONT,
            near: FRONT,
            size: 0,
            back: 0,
            layout: Layout::new::<u8>(),
        })
    }

    fn cost(entry: &Entry) -> usize {
        Self::of_entry(entry).layout.size() + ENTRY_COST
    }
}

impl<A> Checked<A> {
    /// Checks the blocks of `inner` with 16 frames for each stack and all checks enabled.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self::with(inner, Config::DEFAULT)
    }

    /// Checks the blocks of `inner` as `config` says. The fields `traces`, `detect`, `memory`,
    /// `limit`, `retain`, `stop_first`, `quiet` and `log` mean the same as for a [`DebugHeap`]. The
    /// other fields concern guards and buckets, and have no effect.
    #[must_use]
    pub const fn with(inner: A, config: Config) -> Self {
        Self { inner, heap: DebugHeap::new(config) }
    }

    /// Returns the allocator whose blocks are checked.
    #[must_use]
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// Returns the number of mistakes found, repetitions included.
    #[must_use]
    pub fn findings(&self) -> u32 {
        self.heap.findings()
    }

    /// Returns the last mistake found, if any.
    #[must_use]
    pub fn last_finding(&self) -> Option<Finding> {
        self.heap.last_finding()
    }

    /// Returns the live blocks and their bytes. Takes constant time.
    #[must_use]
    pub fn live(&self) -> Leaks {
        self.heap.heap().map_or_else(Leaks::default, |heap| {
            let table = heap.table.lock();
            Leaks { blocks: table.live, bytes: table.live_bytes }
        })
    }

    /// Checks all blocks, live and quarantined, and reports writes that no call has found yet.
    /// Takes time in proportion to the blocks and their bytes.
    pub fn sweep(&self) {
        if let Some(heap) = self.heap.heap() {
            sweep(heap, Call::Sweep);
        }
    }
}

impl<A: GlobalAlloc> Checked<A> {
    /// Ends the heap. Reports live blocks as leaks, once for each place. Returns all blocks, also
    /// live ones, to the other allocator.
    ///
    /// ```
    /// use heapwright::debug::{Checked, Config};
    /// use std::alloc::{GlobalAlloc, Layout, System};
    /// let heap = Checked::with(System, Config { quiet: true, ..Config::DEFAULT });
    /// // SAFETY: the layout's size is not zero.
    /// let _lost = unsafe { heap.alloc(Layout::new::<u64>()) };
    /// assert_eq!(heap.deinit().blocks, 1);
    /// ```
    pub fn deinit(self) -> Leaks {
        let Some(heap) = self.heap.made() else { return Leaks::default() };
        sweep(heap, Call::Exit);
        let mut leaks = Leaks::default();
        let made = heap.table.lock().made();
        for index in 0..made {
            let entry = heap.table.lock().get(index);
            if entry.state == State::Live {
                leaks.blocks += 1;
                leaks.bytes += entry.size;
                report_leak(heap, &entry);
            }
            if matches!(entry.state, State::Live | State::Quarantined) {
                let shape = Shape::of_entry(&entry);
                let base = entry.block().wrapping_sub(shape.front);
                // SAFETY: the block came from `inner` with this layout, and no code uses it.
                unsafe { self.inner.dealloc(base, shape.layout) };
            }
        }
        self.heap.deinit();
        leaks
    }

    #[inline]
    fn place(&self, layout: Layout, zero: bool) -> *mut u8 {
        let Some(heap) = self.heap.heap() else { return ptr::null_mut() };
        let Some(by) = heap.moment() else { return ptr::null_mut() };
        let block = self.place_by(heap, layout, zero, by);
        if heap.reporter.logs() {
            let call = if zero { Call::Calloc } else { Call::Malloc };
            heap.reporter.log(call, block.addr(), layout.size(), by.stack);
        }
        block
    }

    fn place_by(&self, heap: &'static Heap, layout: Layout, zero: bool, by: Moment) -> *mut u8 {
        let size = layout.size();
        let Some(shape) = Shape::of(size, layout.align()) else { return ptr::null_mut() };
        let limit = self.heap.config().limit;
        if limit != 0 && heap.table.lock().live_bytes.saturating_add(size) > limit {
            return ptr::null_mut();
        }
        let base = match zero {
            // SAFETY: a shape's size is never zero.
            false => unsafe { self.inner.alloc(shape.layout) },
            // SAFETY: a shape's size is never zero, so the layout's is not.
            true => unsafe { self.inner.alloc_zeroed(shape.layout) },
        };
        if base.is_null() {
            return base;
        }
        let block = base.wrapping_add(shape.front);
        // SAFETY: `block` was just allocated with this shape, so its bytes are ours.
        unsafe { bytes::fill(block.wrapping_sub(shape.near), shape.near) };
        // SAFETY: these bytes lie behind the block and within its shape, which is ours.
        unsafe { bytes::fill(block.wrapping_add(size), shape.back) };
        if heap.table.lock().insert(block, size, layout.align(), by) {
            return block;
        }
        // SAFETY: the memory was just allocated with this layout, and no code has it yet.
        unsafe { self.inner.dealloc(base, shape.layout) };
        ptr::null_mut()
    }

    /// Takes a block back. Reports a finding and returns false if no live block begins there.
    ///
    /// # Safety
    ///
    /// If the block is in use, no code uses it afterwards.
    unsafe fn deallocate_block(
        &self,
        heap: &'static Heap,
        address: usize,
        layout: Layout,
        call: Call,
        by: Moment,
    ) -> bool {
        let claim = heap.table.lock().claim(address, by);
        let (index, entry) = match claim {
            Claim::Taken(index, entry) => (index, entry),
            wrong => {
                not_a_block(heap, &wrong, Passed { address, layout, call, by });
                return false;
            }
        };
        let detect = self.heap.config().detect;
        let live = entry.before();
        if detect.size && (layout.size() != entry.size || layout.align() != entry.align()) {
            let wrong_size = layout.size() != entry.size;
            heap.report(Finding {
                kind: if wrong_size {
                    FindingKind::SizeMismatch
                } else {
                    FindingKind::AlignmentMismatch
                },
                call,
                pointer: address as u64,
                given_size: layout.size() as u64,
                given_align: layout.align() as u64,
                here: by,
                ..known(&live)
            });
        }
        let shape = Shape::of_entry(&entry);
        if detect.canary {
            edges(&live, shape, &mut |entry, damage| damaged(heap, entry, damage, call, by));
        }
        if detect.fill {
            // SAFETY: the block was freed, so no code uses its bytes.
            unsafe { bytes::fill(entry.block(), shape.size) };
        }
        heap.table.lock().quarantine(index, Shape::cost(&entry));
        self.give_oldest(heap, by);
        true
    }

    /// Returns the oldest quarantined blocks to the other allocator until the rest fits the budget.
    fn give_oldest(&self, heap: &'static Heap, by: Moment) {
        let config = self.heap.config();
        loop {
            let oldest = {
                let mut table = heap.table.lock();
                let budget = match config.memory {
                    _ if config.retain => usize::MAX,
                    0 => QUARANTINE_LEAST.max(table.live_bytes / 4),
                    memory => memory,
                };
                table.oldest(budget, Shape::cost)
            };
            let Some((index, entry)) = oldest else { return };
            let shape = Shape::of_entry(&entry);
            if config.detect.fill {
                filled(&entry, shape, &mut |entry, damage| {
                    damaged(heap, entry, damage, Call::Retire, by);
                });
            }
            heap.table.lock().is_gone(index);
            let base = entry.block().wrapping_sub(shape.front);
            // SAFETY: the block came from `inner` with this layout, and its users freed it.
            unsafe { self.inner.dealloc(base, shape.layout) };
        }
    }
}

#[derive(Clone, Copy)]
struct Passed {
    address: usize,
    layout: Layout,
    call: Call,
    by: Moment,
}

/// Reports a pointer at which no live block begins.
#[cold]
fn not_a_block(heap: &'static Heap, claim: &Claim, given: Passed) {
    let is_realloc = given.call == Call::RustRealloc;
    let invalid = if is_realloc { FindingKind::InvalidRealloc } else { FindingKind::InvalidFree };
    let (kind, about) = match claim {
        Claim::Freed(_) if !is_realloc && !heap.config().detect.double_free => return,
        Claim::Freed(entry) if is_realloc => (FindingKind::ReallocAfterFree, known(entry)),
        Claim::Freed(entry) => (FindingKind::DoubleFree, known(entry)),
        Claim::Inside(entry) if is_realloc => (invalid, known(entry)),
        Claim::Inside(entry) => (FindingKind::InteriorFree, known(entry)),
        _ => {
            let region = process::region(given.address);
            (invalid, Finding { region, ..Finding::default() })
        }
    };
    heap.report(Finding {
        kind,
        call: given.call,
        pointer: given.address as u64,
        offset: if about.block == 0 { 0 } else { given.address as i64 - about.block as i64 },
        given_size: given.layout.size() as u64,
        given_align: given.layout.align() as u64,
        here: given.by,
        ..about
    });
}

pub(super) fn report_leak(heap: &'static Heap, entry: &Entry) {
    heap.report(Finding { kind: FindingKind::Leak, call: Call::Exit, ..known(entry) });
}

fn known(entry: &Entry) -> Finding {
    Finding {
        origin: Origin::Rust,
        region: Region::Block,
        pointer: entry.block().addr() as u64,
        block: entry.block().addr() as u64,
        size: entry.size as u64,
        align: entry.align() as u64,
        allocated: entry.allocated(),
        freed: entry.was_freed(),
        ..Finding::default()
    }
}

/// Checks the bytes around a block, and repairs them. `found` receives the changed bytes with their
/// offset from the block's start.
fn edges(entry: &Entry, shape: Shape, found: &mut dyn FnMut(&Entry, (isize, Damage))) {
    let before = (entry.block().wrapping_sub(shape.near), shape.near);
    let behind = (entry.block().wrapping_add(shape.size), shape.back);
    for (from, length) in [before, behind] {
        look(entry, from, length, found);
    }
}

fn filled(entry: &Entry, shape: Shape, found: &mut dyn FnMut(&Entry, (isize, Damage))) {
    let from = entry.block().wrapping_sub(shape.near);
    look(entry, from, shape.near + shape.size + shape.back, found);
}

fn look(
    entry: &Entry,
    from: *mut u8,
    length: usize,
    found: &mut dyn FnMut(&Entry, (isize, Damage)),
) {
    // SAFETY: the bytes belong to the block's shape, which the other allocator returned.
    if let Some(damage) = unsafe { bytes::check(from, length) } {
        // SAFETY: the damaged bytes belong to the block's shape, and no thread uses them.
        unsafe { bytes::fill(from.wrapping_add(damage.first), damage.length) };
        let first = from.addr().wrapping_add(damage.first);
        found(entry, (first.wrapping_sub(entry.block().addr()).cast_signed(), damage));
    }
}

#[cold]
fn damaged(
    heap: &'static Heap,
    entry: &Entry,
    (offset, damage): (isize, Damage),
    call: Call,
    by: Moment,
) {
    let kind = match offset {
        ..0 => FindingKind::Underflow,
        _ if offset.cast_unsigned() >= entry.size => FindingKind::Overflow,
        _ => FindingKind::WriteAfterFree,
    };
    heap.report(Finding {
        kind,
        call,
        access: Access::Write,
        value: damage.value,
        length: damage.length as u64,
        offset: offset as i64,
        pointer: entry.block().addr().wrapping_add_signed(offset) as u64,
        here: by,
        ..known(entry)
    });
}

pub(super) fn sweep(heap: &'static Heap, call: Call) {
    let Some(by) = heap.moment() else { return };
    let detect = heap.config().detect;
    let made = heap.table.lock().made();
    for index in 0..made {
        let mut found: [Option<(Entry, (isize, Damage))>; 2] = [None; 2];
        {
            // While the lock is held, no block returns to its allocator.
            let table = heap.table.lock();
            if index >= table.made() {
                return;
            }
            let entry = table.get(index);
            let shape = Shape::of_entry(&entry);
            let mut keep = |entry: &Entry, damage| {
                let free = if found[0].is_none() { 0 } else { 1 };
                found[free] = Some((*entry, damage));
            };
            match entry.state {
                State::Live if detect.canary => edges(&entry, shape, &mut keep),
                State::Quarantined if detect.fill => filled(&entry, shape, &mut keep),
                _ => {}
            }
        }
        for (entry, damage) in found.into_iter().flatten() {
            damaged(heap, &entry, damage, call, by);
        }
    }
}

// SAFETY: each block lies in one block of the other allocator, which is returned once, after the
// program freed the block in it. `realloc` copies.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Checked<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.place(layout, false)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.place(layout, true)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(heap) = self.heap.heap() else { return };
        let Some(by) = heap.moment() else { return };
        // SAFETY: the caller keeps the contract of `dealloc`, or the call becomes a finding.
        unsafe { self.deallocate_block(heap, block.addr(), layout, Call::RustDealloc, by) };
        if heap.reporter.logs() {
            heap.reporter.log(Call::RustDealloc, block.addr(), 0, by.stack);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(heap) = self.heap.heap() else { return ptr::null_mut() };
        let Some(by) = heap.moment() else { return ptr::null_mut() };
        // SAFETY: the caller promises that size and alignment make a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let new = self.place_by(heap, wanted, false, by);
        if new.is_null() {
            return new;
        }
        let old = heap.table.lock().live_at(block.addr()).map(|entry| entry.size);
        // A pointer to no block is reported below; the program continues with the new block.
        if let Some(old) = old {
            // SAFETY: `old` is the length of the caller's block, and the new one has `size` bytes.
            unsafe { ptr::copy_nonoverlapping(block, new, old.min(size)) };
        }
        // SAFETY: the caller keeps the contract of `realloc`, or the call becomes a finding.
        unsafe { self.deallocate_block(heap, block.addr(), layout, Call::RustRealloc, by) };
        if heap.reporter.logs() {
            heap.reporter.log(Call::RustRealloc, new.addr(), size, by.stack);
        }
        new
    }
}

#[cfg(test)]
mod tests;
