//! Arrays: free blocks of a CPU, taken and put without a lock.
//!
//! ```text
//!   per-CPU entry | stub | place of a thread's rseq area | sources | targets |
//!                                                             |         |    a pointer
//!                                                             v         v    for each CPU
//!   arrays   | top, floor of class 0 | of class 1 | ... | of runs of 1 to 4 units   16 bytes a row
//!            | 128 pointers, class 0 | class 1    | ... | of runs of 1 to 4 units   1 KiB a row
//!
//!   a row      floor           top          end, a multiple of 1 KiB less 8
//!                | free | free |     |     |
//!   take       top == floor? empty.  The pointer below `top`; commit: top - 8
//!   put        write at `top`; top + 8 a multiple of 1 KiB? full.  Commit: top + 8
//! ```
//!
//! `take` and `put` are restartable sequences (see `os::linux::rseq`). Preemption, migration or a
//! signal before the committing store aborts a sequence. The thread does not retry, because it
//! might loop for ever. It takes the lock of the CPU's shared cache (`magazines`) instead.
//!
//! **Closing.** Another thread can take over a CPU's arrays. It points takes (`sources`) at arrays
//! that are always empty, and puts (`targets`) at arrays that are always full. Then a fence
//! restarts each thread that is in a sequence on that CPU. From then on no other thread uses the
//! arrays. A pass drains idle CPUs in this way, and a fork closes all CPUs.
//!
//! Invariants: the blocks between floor and top are free, common and of the class, or are kept runs
//! of the row's length. Only sequences, and the thread that has closed the CPU, write `top`.
//!
//! Called by `heap`, by the other files of `cache`, and by statistics.

#[cfg_attr(all(target_os = "linux", not(miri), target_arch = "x86_64"), path = "x86_64.rs")]
#[cfg_attr(all(target_os = "linux", not(miri), target_arch = "aarch64"), path = "aarch64.rs")]
#[cfg_attr(
    not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "nowhere.rs"
)]
mod sequences;

use core::mem::offset_of;
use core::ops::RangeInclusive;
use core::ptr;

use super::LARGE;
use super::central::MIDDLE;
use super::depot::DepotChain;
use super::hot::{AREA_BIAS, Common, Hot, HotStub, Serve};
use super::{FORWARD_SIZED, central, draw, stash};
use crate::address_map::{CLASS_STEP, MAP};
use crate::chunk;
use crate::options;
use crate::os::rseq;
use crate::remote::Block;
use crate::size_class::{self, CLASSES, LINEAR_MAX, SLAB_MAX, UNIT};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{self, Lock};

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
pub(crate) use sequences::sequence;

// **Bound.** Of a class, a CPU's arrays take at most 127 blocks and 12 KiB, but at least one block.
// If every class is full, this is about 1 MiB. A busy class of blocks over 1 KiB gets a lower floor
// until the CPU rests. Then it has room for 64 blocks of up to 2 KiB each, or for 127 larger blocks
// (at most 512 KiB). Runs of one length take at most a stash's room, or a part of that room. All
// runs of a CPU take at most 8 MiB with few CPUs, or 832 KiB with many.

const CPUS: usize = crate::registry::MOST;
/// Bytes and alignment of a row. A pointer past a row's end has 0 in the bits of [`ROW_MASK`].
const ROW: usize = 1024;
const MOST_BLOCKS: usize = ROW / size_of::<usize>() - 1;
/// The most bytes of a class, unless one block is larger. If busy classes over [`MIDDLE`] had the
/// first bound, they would spend most of the time on slow paths.
const MOST_BYTES: usize = 12 << 10;
const MOST_BYTES_OF_BUSY: usize = 512 << 10;
/// The most blocks of a busy class up to [`LARGE`]: programs often allocate this many at once.
const PHASE: usize = 64;

const fn capacity(class: usize, is_busy: bool) -> usize {
    let size = size_class::size(class);
    let is_busy = is_busy && size > MIDDLE;
    let blocks = if is_busy { MOST_BYTES_OF_BUSY } else { MOST_BYTES } / size;
    let most = if is_busy && size <= LARGE { PHASE } else { MOST_BLOCKS };
    if blocks > most {
        most
    } else if blocks < 1 {
        1
    } else {
        blocks
    }
}

// **Runs.** Each length of large blocks up to 4 units (256 KiB) has a row, too. A run in a row is
// `Kind::Kept`, as in a stash, so that nothing takes it for a block. Runs go to the chunk if they
// stay unused between two passes, or before the CPU's threads make the process grow.

pub(crate) const LONGEST: usize = 4;
/// Sizes of large blocks whose runs have a row.
pub(crate) const RUN_SIZES: RangeInclusive<usize> = SLAB_MAX + 1..=LONGEST * UNIT;
/// Runs of a length may take a stash's room divided by this: programs use more short runs.
const PARTS_OF_STASH: [usize; LONGEST] = [1, 2, 4, 4];
const ROWS: usize = CLASSES + LONGEST;

/// The number of runs for which a row has places. A stash has room for `room` bytes.
fn runs_at_most(units: usize, room: usize) -> usize {
    (room / PARTS_OF_STASH[units - 1] / (units * UNIT)).clamp(1, MOST_BLOCKS)
}

const fn row_of_runs(units: usize) -> usize {
    CLASSES + units - 1
}

type Place = AtomicPtr<Block>;

#[repr(C)]
struct Top {
    /// The first place without a block.
    top: AtomicPtr<Place>,
    /// The first place that may have a block.
    floor: AtomicPtr<Place>,
}

#[repr(C, align(1024))]
struct Row([Place; ROW / size_of::<usize>()]);

#[repr(C)]
struct Arrays {
    tops: [Top; ROWS],
    rows: [Row; ROWS],
    /// At the last pass: the sum of all tops, and the top of each row of runs.
    seen: AtomicUsize,
    seen_runs: [AtomicUsize; LONGEST],
}

/// Arrays that are always empty, or always full.
#[repr(C)]
struct Stub {
    tops: [Top; ROWS],
    row: Row,
}

const _: () = assert!(size_of::<Top>() == CLASS_STEP);
const _: () = assert!(offset_of!(CpuEntry, hot) == 0);
const _: () = assert!(offset_of!(Arrays, tops) == 0 && offset_of!(Stub, tops) == 0);

/// The target of the fast word of each thread that uses arrays; there is one. Unless calls are
/// counted, negative heads distinguish its stub from other hot parts with closed lists.
#[repr(C, align(64))]
pub(crate) struct CpuEntry {
    hot: HotStub,
    /// The distance from the thread pointer to the thread's rseq area.
    rseq: isize,
    sources: [AtomicPtr<Arrays>; CPUS],
    targets: [AtomicPtr<Arrays>; CPUS],
}

pub(crate) const RSEQ: usize = offset_of!(CpuEntry, rseq);
pub(crate) const SOURCES: usize = offset_of!(CpuEntry, sources);
pub(crate) const TARGETS: usize = offset_of!(CpuEntry, targets);
pub(crate) const ROW_MASK: usize = ROW - 1;

static CPU_ENTRY: AtomicPtr<CpuEntry> = AtomicPtr::new(ptr::null_mut());
static ALWAYS_EMPTY: AtomicPtr<Arrays> = AtomicPtr::new(ptr::null_mut());
static ALWAYS_FULL: AtomicPtr<Arrays> = AtomicPtr::new(ptr::null_mut());
/// The heads of the per-CPU entry's lists while calls are not counted.
static HEAD: AtomicUsize = AtomicUsize::new(0);
static IS_READY: AtomicBool = AtomicBool::new(false);
static CAN_CLOSE: AtomicBool = AtomicBool::new(false);
static AT_REST: AtomicBool = AtomicBool::new(false);
/// Held while a thread makes or closes arrays.
static ORDER: Lock<()> = Lock::new(());
/// Aborted sequences, and, if every call is counted, committed sequences.
static ABORTS: AtomicU64 = AtomicU64::new(0);
static COMMITS: AtomicU64 = AtomicU64::new(0);

/// Readies the kernel for arrays, while the process has one thread: later, the call takes
/// milliseconds. Returns whether arrays are possible.
pub(crate) fn prepare() -> bool {
    // The sequences use a CPU's number as an index in the per-CPU entry without a check.
    let can = sequences::EXIST && rseq::numbers_are_below(CPUS) && rseq::offset().is_some();
    if can {
        CAN_CLOSE.store(rseq::register_fence(), Ordering::Relaxed);
        IS_READY.store(true, Ordering::Relaxed);
    }
    can
}

/// Sets up the arrays once, after [`prepare`]. `descriptor` describes the sequence of a `malloc`
/// outside this library, if there is one (see `heap::cpu`).
pub(crate) fn start(serve: &'static Serve, descriptor: Option<&[u64; 4]>) -> bool {
    // A failure is final.
    let is_ready = IS_READY.swap(false, Ordering::Relaxed);
    let Some(offset) = rseq::offset().filter(|_| is_ready) else { return false };
    let head = offset.cast_unsigned().wrapping_sub(AREA_BIAS);
    if head.cast_signed() >= 0 {
        return false;
    }
    let cpu_entry: *mut CpuEntry =
        chunk::metadata::alloc(size_of::<CpuEntry>(), align_of::<CpuEntry>()).cast();
    let (empty, full) = (make_stub(0), make_stub(MOST_BLOCKS));
    // SAFETY: null, or zeroed memory that no other thread knows; zero is valid.
    let Some(made) = (unsafe { cpu_entry.as_mut() }) else { return false };
    if empty.is_null() || full.is_null() {
        return false;
    }
    let forward_sized = FORWARD_SIZED.load(Ordering::Relaxed);
    HEAD.store(head, Ordering::Relaxed);
    let readable = chunk::expose_table();
    made.hot.become_stub(serve, Common::ToCpu, readable, forward_sized, head);
    if let Some(descriptor) = descriptor {
        made.hot.describe_sequence(*descriptor);
    }
    made.rseq = offset;
    ALWAYS_EMPTY.store(empty, Ordering::Relaxed);
    ALWAYS_FULL.store(full, Ordering::Relaxed);
    for cpu in 0..CPUS {
        made.sources[cpu].store(empty, Ordering::Relaxed);
        made.targets[cpu].store(full, Ordering::Relaxed);
    }
    CPU_ENTRY.store(cpu_entry, Ordering::Release);
    draw::look_again(count_calls);
    true
}

/// Arrays whose tops and floors are all the place `at` of one row, or null.
fn make_stub(at: usize) -> *mut Arrays {
    let stub: *mut Stub = chunk::metadata::alloc(size_of::<Stub>(), align_of::<Stub>()).cast();
    // SAFETY: null, or zeroed memory that no other thread knows; zero is valid.
    if let Some(made) = unsafe { stub.as_ref() } {
        let place = ptr::from_ref(&made.row.0[at]).cast_mut();
        for top in &made.tops {
            top.top.store(place, Ordering::Relaxed);
            top.floor.store(place, Ordering::Relaxed);
        }
    }
    stub.cast()
}

#[inline]
pub(crate) fn cpu_entry() -> Option<&'static CpuEntry> {
    // SAFETY: null, or the per-CPU entry, which is never freed.
    unsafe { CPU_ENTRY.load(Ordering::Acquire).as_ref() }
}

/// If `counted`, makes each `malloc` miss the arrays, so that `sampling` counts the call.
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is sampled without stacks"))]
pub(super) fn count_calls(counted: bool) {
    if let Some(cpu_entry) = cpu_entry() {
        cpu_entry.hot.set_heads(if counted { 0 } else { HEAD.load(Ordering::Relaxed) });
    }
}

/// See `cache::forward_sized_frees`.
///
/// # Safety
///
/// No other thread uses the heap during the call.
pub(super) unsafe fn forward_sized_frees() {
    if let Some(cpu_entry) = cpu_entry() {
        // SAFETY: by the contract there is no other thread.
        unsafe { cpu_entry.hot.forward_sized() };
    }
}

/// See `magazines::lower_limits`.
pub(super) fn lower_limit(readable: usize) {
    if let Some(cpu_entry) = cpu_entry() {
        cpu_entry.hot.lower_limit(readable);
    }
}

pub(crate) fn aborts() -> u64 {
    ABORTS.load(Ordering::Relaxed)
}

/// Committed sequences, if every call is counted.
pub(crate) fn commits() -> u64 {
    COMMITS.load(Ordering::Relaxed)
}

#[inline]
fn note_commit(is_one: bool) {
    if is_one && options::detailed() {
        COMMITS.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn note_abort() {
    ABORTS.fetch_add(1, Ordering::Relaxed);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Done,
    Full,
    Aborted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Block(*mut Block),
    Empty,
    Aborted,
}

impl Taken {
    #[inline]
    fn of(answer: *mut Block) -> Self {
        match answer.addr() {
            0 => Self::Empty,
            1 => Self::Aborted,
            _ => Self::Block(answer),
        }
    }
}

impl Put {
    #[inline]
    fn of(answer: usize) -> Self {
        match answer {
            0 => Self::Done,
            1 => Self::Aborted,
            _ => Self::Full,
        }
    }
}

impl CpuEntry {
    #[inline(always)]
    pub(crate) fn of(hot: &Hot) -> &Self {
        // SAFETY: by its closed lists, its tag or its table, the caller knows the per-CPU entry.
        unsafe { &*ptr::from_ref(hot).cast::<Self>() }
    }

    pub(crate) fn stub(&self) -> *mut u8 {
        (&raw const self.hot).cast_mut().cast()
    }

    /// Whether the kernel keeps the thread's rseq area, so that the thread may use the arrays.
    pub(crate) fn serves_this_thread(&self) -> bool {
        rseq::cpu(self.rseq).is_some_and(|cpu| cpu < CPUS)
    }

    pub(crate) fn cpu(&self) -> usize {
        rseq::cpu(self.rseq).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn take(&self, class: usize) -> Taken {
        let taken = Taken::of(sequences::take_at(self, class * CLASS_STEP));
        note_commit(matches!(taken, Taken::Block(_)));
        taken
    }

    /// # Safety
    ///
    /// The block is free, of a common slab, and the caller gives it away.
    #[inline]
    pub(crate) unsafe fn put(&self, class: usize, block: *mut Block) -> Put {
        // SAFETY: a free block of a common slab, which the caller gives away.
        let answer = unsafe { sequences::put_at(self, class * CLASS_STEP, block) };
        let put = Put::of(answer);
        note_commit(put == Put::Done);
        put
    }

    #[inline(always)]
    pub(crate) fn take_run(&self, units: usize) -> Taken {
        debug_assert!((1..=LONGEST).contains(&units));
        Taken::of(sequences::take_at(self, row_of_runs(units) * CLASS_STEP))
    }

    /// # Safety
    ///
    /// The run has this length, is kept, begins at `run`, and the caller gives it away.
    #[inline(always)]
    pub(crate) unsafe fn put_run(&self, units: usize, run: *mut Block) -> Put {
        debug_assert!((1..=LONGEST).contains(&units));
        // SAFETY: a run of the row's length, which the caller gives away.
        Put::of(unsafe { sequences::put_at(self, row_of_runs(units) * CLASS_STEP, run) })
    }

    /// Half the number of blocks of `class` that the CPU's arrays can hold.
    pub(crate) fn half(&self, cpu: usize, class: usize) -> usize {
        self.half_of_row(cpu, class)
    }

    pub(crate) fn half_of_runs(&self, cpu: usize, units: usize) -> usize {
        self.half_of_row(cpu, row_of_runs(units))
    }

    fn half_of_row(&self, cpu: usize, row: usize) -> usize {
        let Some(arrays) = made(cpu) else { return 1 };
        let end = ptr::from_ref(&arrays.rows[row].0[MOST_BLOCKS]).addr();
        let floor = arrays.tops[row].floor.load(Ordering::Relaxed).addr();
        ((end - floor) / size_of::<Place>()).div_ceil(2)
    }

    /// Makes room for more blocks of `class`, which is busy, in a CPU's arrays.
    #[cold]
    pub(crate) fn grow(&self, cpu: usize, class: usize) {
        if made(cpu).is_some_and(|arrays| arrays.can_hold_more(class)) {
            self.with_closed(cpu, |arrays| arrays.lower_floor(class));
        }
    }

    /// Makes the arrays of a CPU, if it has none.
    pub(crate) fn provide(&self, cpu: usize) {
        if cpu >= CPUS || made(cpu).is_some() || sync::is_interrupted() {
            return;
        }
        let Some(_order) = ORDER.try_lock() else { return };
        if made(cpu).is_some() {
            return;
        }
        let at: *mut Arrays =
            chunk::metadata::alloc(size_of::<Arrays>(), align_of::<Arrays>()).cast();
        // SAFETY: null, or zeroed memory that no other thread knows; zero is valid.
        let Some(arrays) = (unsafe { at.as_ref() }) else { return };
        for (row, top) in arrays.tops.iter().enumerate() {
            let floor = arrays.floor_of(row, false);
            top.top.store(floor, Ordering::Relaxed);
            top.floor.store(floor, Ordering::Relaxed);
        }
        MADE[cpu].store(at, Ordering::Release);
        self.open(Some(cpu));
    }

    /// Closes the CPU, or all CPUs. Returns false if the kernel cannot do this here.
    fn close(&self, cpu: Option<usize>) -> bool {
        if !CAN_CLOSE.load(Ordering::Relaxed) {
            return false;
        }
        let empty = ALWAYS_EMPTY.load(Ordering::Relaxed);
        let full = ALWAYS_FULL.load(Ordering::Relaxed);
        // CPUs without arrays are closed anyway, and no thread makes arrays now.
        for cpu in cpu.map_or(0..CPUS, |cpu| cpu..cpu + 1).filter(|&cpu| made(cpu).is_some()) {
            self.sources[cpu].store(empty, Ordering::SeqCst);
            self.targets[cpu].store(full, Ordering::SeqCst);
        }
        // If the kernel's fence cannot name one CPU, it restarts sequences on all CPUs.
        rseq::fence(cpu) || rseq::fence(None)
    }

    /// Closes a CPU, if possible, while `work` uses its arrays. A diverted CPU stays diverted.
    fn with_closed(&self, cpu: usize, work: impl FnOnce(&Arrays)) {
        let Some(arrays) = made(cpu) else { return };
        let Some(_order) = ORDER.try_lock() else { return };
        let was_open = ptr::eq(self.sources[cpu].load(Ordering::Relaxed), arrays);
        if self.close(Some(cpu)) {
            work(arrays);
        }
        if was_open {
            self.open(Some(cpu));
        }
    }

    fn open(&self, cpu: Option<usize>) {
        for cpu in cpu.map_or(0..CPUS, |cpu| cpu..cpu + 1) {
            let arrays = MADE[cpu].load(Ordering::Acquire);
            if !arrays.is_null() {
                self.sources[cpu].store(arrays, Ordering::Release);
                self.targets[cpu].store(arrays, Ordering::Release);
            }
        }
    }
}

/// If `on`, diverts all operations on a CPU to its shared cache. Otherwise opens its arrays again.
/// Unlike after `close`, a thread may still be in a sequence of the arrays that were diverted.
/// Returns false if the caller must try later.
#[must_use]
pub(super) fn divert(cpu: usize, on: bool) -> bool {
    let Some(cpu_entry) = cpu_entry().filter(|_| cpu < CPUS) else { return true };
    if on {
        if made(cpu).is_none() {
            return true;
        }
        cpu_entry.sources[cpu].store(ALWAYS_EMPTY.load(Ordering::Relaxed), Ordering::Relaxed);
        cpu_entry.targets[cpu].store(ALWAYS_FULL.load(Ordering::Relaxed), Ordering::Relaxed);
        return true;
    }
    // The lock's holder may have closed another CPU. Then it will not open this one.
    let Some(_order) = ORDER.try_lock() else { return false };
    cpu_entry.open(Some(cpu));
    true
}

/// Whether operations on a CPU that has arrays use its shared cache.
pub(super) fn is_diverted(cpu: usize) -> bool {
    let is_diverted = |cpu_entry: &CpuEntry| {
        let source = cpu_entry.sources[cpu].load(Ordering::Relaxed);
        made(cpu).is_some_and(|arrays| !ptr::eq(source, arrays))
    };
    cpu_entry().filter(|_| cpu < CPUS).is_some_and(is_diverted)
}

/// The arrays of each CPU, whether closed or not.
static MADE: [AtomicPtr<Arrays>; CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; CPUS];

fn made(cpu: usize) -> Option<&'static Arrays> {
    // SAFETY: null, or arrays, which are never freed.
    unsafe { MADE.get(cpu)?.load(Ordering::Acquire).as_ref() }
}

impl Arrays {
    fn floor_of(&self, row: usize, is_busy: bool) -> *mut Place {
        let capacity = match row.checked_sub(CLASSES) {
            None => capacity(row, is_busy),
            Some(at) => runs_at_most(at + 1, stash::room_bytes()),
        };
        ptr::from_ref(&self.rows[row].0[MOST_BLOCKS - capacity]).cast_mut()
    }

    fn count(&self, row: usize) -> usize {
        let Top { top, floor } = &self.tops[row];
        let (top, floor) = (top.load(Ordering::Relaxed), floor.load(Ordering::Relaxed));
        // (Other threads may be changing `top` and `floor`.)
        top.addr().saturating_sub(floor.addr()) / size_of::<Place>()
    }

    /// A number that usually changes when blocks come or go.
    fn sum(&self) -> usize {
        let tops = self.tops.iter();
        tops.fold(0, |sum: usize, top| sum.wrapping_add(top.top.load(Ordering::Relaxed).addr()))
    }

    /// A bit for each length with runs whose number has not changed since the last pass.
    fn runs_at_rest(&self) -> usize {
        let is_at_rest = |units: usize| {
            let (row, seen) = (row_of_runs(units), &self.seen_runs[units - 1]);
            let top = self.tops[row].top.load(Ordering::Relaxed).addr();
            seen.swap(top, Ordering::Relaxed) == top && self.count(row) > 0
        };
        (1..=LONGEST).fold(0, |bits, units| bits | usize::from(is_at_rest(units)) << units)
    }

    /// Whether a row from `first` on holds anything.
    fn holds(&self, first: usize) -> bool {
        (first..ROWS).any(|row| self.count(row) > 0)
    }

    fn can_hold_more(&self, class: usize) -> bool {
        self.floor_of(class, true) < self.tops[class].floor.load(Ordering::Relaxed)
    }

    /// Moves the floor of `class` down, and the blocks with it. The CPU must be closed.
    fn lower_floor(&self, class: usize) {
        let Top { top, floor } = &self.tops[class];
        let count = self.count(class);
        let (old, new) = (floor.load(Ordering::Relaxed), self.floor_of(class, true));
        if new >= old {
            return;
        }
        for index in 0..count {
            // SAFETY: a place between floor and top.
            let from = unsafe { &*old.wrapping_add(index) };
            // SAFETY: a place of the same row, because the new floor is below the old one.
            let to = unsafe { &*new.wrapping_add(index) };
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        floor.store(new, Ordering::Relaxed);
        top.store(new.wrapping_add(count), Ordering::Relaxed);
    }

    /// Gives all blocks to the central lists, all runs to the chunk. If `rests`, raises the floors.
    fn drain(&self, rests: bool) {
        for class in 0..CLASSES {
            let Top { top, floor } = &self.tops[class];
            let mut chain: *mut Block = ptr::null_mut();
            let count = self.count(class);
            let first = floor.load(Ordering::Relaxed);
            for index in 0..count {
                // SAFETY: a place between floor and top.
                let place = unsafe { &*first.wrapping_add(index) };
                let block = place.load(Ordering::Relaxed);
                // SAFETY: a free block that is the caller's now.
                unsafe { Block::set_next(block, chain) };
                chain = block;
            }
            let first = if rests { self.floor_of(class, false) } else { first };
            top.store(first, Ordering::Relaxed);
            floor.store(first, Ordering::Relaxed);
            // SAFETY: just linked; the arrays' blocks are of the class and the common owner.
            central::give(class, unsafe { DepotChain::of(chain, count) });
        }
        self.drain_runs(usize::MAX);
    }

    /// Gives the runs of the lengths with a bit in `lengths` to the chunk. The CPU must be closed,
    /// unless there is no other thread.
    fn drain_runs(&self, lengths: usize) {
        for units in (1..=LONGEST).filter(|units| lengths >> units & 1 != 0) {
            let row = row_of_runs(units);
            let Top { top, floor } = &self.tops[row];
            let first = floor.load(Ordering::Relaxed);
            for index in 0..self.count(row) {
                // SAFETY: a place between floor and top.
                let place = unsafe { &*first.wrapping_add(index) };
                chunk::give(MAP.unit_of(place.load(Ordering::Relaxed).addr()), units);
            }
            top.store(first, Ordering::Relaxed);
        }
    }
}

pub(super) fn drain(cpu: usize, rests: bool) {
    if let Some(cpu_entry) = cpu_entry() {
        cpu_entry.with_closed(cpu, |arrays| arrays.drain(rests));
    }
}

/// Drains CPUs where nothing has changed since the last pass. On other CPUs, drains the runs of
/// each length whose number is unchanged.
pub(super) fn drain_rested() {
    let Some(cpu_entry) = cpu_entry() else { return };
    for cpu in 0..central::sharing().min(CPUS) {
        let Some(arrays) = made(cpu) else { continue };
        let (sum, runs) = (arrays.sum(), arrays.runs_at_rest());
        if arrays.seen.swap(sum, Ordering::Relaxed) == sum && arrays.holds(0) {
            drain(cpu, true);
        } else if runs != 0 {
            cpu_entry.with_closed(cpu, |arrays| arrays.drain_runs(runs));
        }
    }
}

/// Gives the runs of this thread's CPU to the chunk, if a run of `units` units would take unused
/// memory. (The CPU need not be closed.)
pub(super) fn make_way(units: usize) {
    let Some(cpu_entry) = cpu_entry().filter(|cpu_entry| cpu_entry.serves_this_thread()) else {
        return;
    };
    let holds = made(cpu_entry.cpu()).is_some_and(|arrays| arrays.holds(CLASSES));
    if !holds || chunk::has_dirty(units) {
        return;
    }
    for units in 1..=LONGEST {
        while let Taken::Block(run) = cpu_entry.take_run(units) {
            chunk::give(MAP.unit_of(run.addr()), units);
        }
    }
}

/// For a forked child of a process with several threads.
pub(super) fn release_runs_after_fork() {
    (0..CPUS).filter_map(made).for_each(|arrays| arrays.drain_runs(usize::MAX));
}

pub(super) fn drain_all() {
    for cpu in 0..CPUS {
        drain(cpu, true);
    }
}

/// Blocks and bytes, roughly.
pub(crate) fn holding() -> (usize, usize) {
    let (mut blocks, mut bytes) = (0, 0);
    for arrays in (0..central::sharing().min(CPUS)).filter_map(made) {
        for class in 0..CLASSES {
            blocks += arrays.count(class);
            bytes += arrays.count(class) * size_class::size(class);
        }
    }
    (blocks, bytes)
}

/// Brings the arrays to rest for a fork. The caller holds all shared caches.
pub(super) fn before_fork() {
    ORDER.acquire();
    if let Some(cpu_entry) = cpu_entry() {
        // A sandbox that began later may refuse the fence that the kernel granted at the start.
        AT_REST.store(cpu_entry.close(None), Ordering::Relaxed);
    }
}

/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    if let Some(cpu_entry) = cpu_entry() {
        cpu_entry.open(None);
    }
    // SAFETY: by the contract this thread, or the thread that it is a copy of, holds the lock.
    unsafe { ORDER.release() };
}

/// Forgets arrays that were not at rest, in a forked child whose parent had other threads.
pub(super) fn forget_after_fork() {
    if AT_REST.load(Ordering::Relaxed) {
        return;
    }
    for arrays in (0..CPUS).filter_map(made) {
        for Top { top, floor } in &arrays.tops {
            top.store(floor.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

const _: () = assert!(offset_of!(CpuEntry, hot) == 0 && align_of::<CpuEntry>() >= 32);
const _: () = assert!(align_of::<Row>() == ROW);
const _: () = assert!(MIDDLE >= LINEAR_MAX);

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use crate::address_map::{Entry, Kind};
    use crate::chunk::Want;
    use crate::unit_record::Record;

    fn ways(cpu_entry: &CpuEntry, cpu: usize) -> [*mut Arrays; 2] {
        [&cpu_entry.sources[cpu], &cpu_entry.targets[cpu]]
            .map(|place| place.load(Ordering::Relaxed))
    }

    /// Returns `None` if arrays are not possible.
    fn started() -> Option<&'static CpuEntry> {
        let _one = super::super::magazines::RAISING.lock();
        if cpu_entry().is_none() && prepare() {
            start(crate::heap::SHARING.cpu_entry, None);
        }
        cpu_entry()
    }

    /// A try fails while another test drains a CPU. Do not call this while you hold a lock.
    fn provide(cpu_entry: &CpuEntry, cpu: usize) -> &'static Arrays {
        loop {
            cpu_entry.provide(cpu);
            if let Some(arrays) = made(cpu) {
                return arrays;
            }
            crate::os::yield_now();
        }
    }

    #[test]
    fn a_diverted_cpu_is_opened_in_the_end() {
        assert!(crate::substrate::open_and_begin());
        let Some(cpu_entry) = started() else { return };
        // No thread of these tests uses the per-CPU entry.
        let cpu = CPUS - 1;
        provide(cpu_entry, cpu);
        // The lock keeps forks away, which would open the CPU.
        let _none = super::super::magazines::RAISING.lock();
        let open = ways(cpu_entry, cpu);
        assert!(!open.contains(&ALWAYS_EMPTY.load(Ordering::Relaxed)));
        assert!(divert(cpu, true));
        assert_ne!(ways(cpu_entry, cpu), open);
        {
            let _drains_another = ORDER.lock();
            assert!(!divert(cpu, false), "nobody would try again");
        }
        assert!(divert(cpu, false));
        assert_eq!(ways(cpu_entry, cpu), open);
    }

    #[test]
    fn a_busy_class_gets_room_below_its_blocks() {
        assert!(crate::substrate::open_and_begin());
        let Some(cpu_entry) = started() else { return };
        let cpu = CPUS - 3;
        let arrays = provide(cpu_entry, cpu);
        let _none = super::super::magazines::RAISING.lock();
        let class = size_class::of(8000);
        let (few, many) = (capacity(class, false), capacity(class, true));
        assert!(few < many && cpu_entry.half(cpu, class) == few.div_ceil(2));
        let blocks = [[0_u64; 2]; 2];
        let Top { top, floor } = &arrays.tops[class];
        for block in &blocks {
            let place = top.load(Ordering::Relaxed);
            // SAFETY: the first place without a block; two places are free.
            unsafe { &*place }.store(ptr::from_ref(block).cast_mut().cast(), Ordering::Relaxed);
            top.store(place.wrapping_add(1), Ordering::Relaxed);
        }
        // `grow` does nothing while another test drains a CPU.
        while cpu_entry.half(cpu, class) != many.div_ceil(2) {
            cpu_entry.grow(cpu, class);
        }
        assert_eq!(arrays.count(class), 2);
        for (index, block) in blocks.iter().enumerate() {
            let place = floor.load(Ordering::Relaxed).wrapping_add(index);
            // SAFETY: a place between floor and top.
            let found = unsafe { &*place }.load(Ordering::Relaxed);
            assert_eq!(found.addr(), ptr::from_ref(block).addr());
        }
        // The test's blocks are no blocks of the heap.
        top.store(floor.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn with_run(arrays: &Arrays, units: usize) -> usize {
        let run = chunk::take(units, 1, Want::Any, Entry::LARGE_HEAD, Entry::large_rest).unwrap();
        MAP.record(run.unit).requested.store(Record::KEPT, Ordering::Relaxed);
        let top = &arrays.tops[row_of_runs(units)].top;
        let place = top.load(Ordering::Relaxed);
        // SAFETY: the first place without a run, of an empty row.
        unsafe { &*place }.store(MAP.address_of(run.unit).cast(), Ordering::Relaxed);
        top.store(place.wrapping_add(1), Ordering::Relaxed);
        run.unit
    }

    #[test]
    fn runs_that_nobody_takes_go_to_the_chunk_and_others_stay() {
        assert!(crate::substrate::open_and_begin());
        let Some(cpu_entry) = started() else { return };
        let arrays = provide(cpu_entry, CPUS - 4);
        let _none = super::super::magazines::RAISING.lock();
        let (short, long) = (with_run(arrays, 1), with_run(arrays, LONGEST));
        assert_eq!(arrays.runs_at_rest(), 0, "a pass that sees them for the first time");
        let more = with_run(arrays, 1);
        let rested = arrays.runs_at_rest();
        assert_eq!(rested, 1 << LONGEST);
        arrays.drain_runs(rested);
        assert_eq!(MAP.kind(long), Kind::Free);
        assert_eq!([short, more].map(|unit| MAP.kind(unit)), [Kind::Kept; 2]);
        assert_eq!(arrays.count(row_of_runs(1)), 2);
        arrays.drain(true);
        assert_eq!([short, more].map(|unit| MAP.kind(unit)), [Kind::Free; 2]);
        assert!(!arrays.holds(0));
    }

    #[test]
    fn a_cpu_holds_no_more_runs_than_its_rows_have_places() {
        for units in 1..=LONGEST {
            assert_eq!(runs_at_most(units, 0), 1);
            assert!(runs_at_most(units, usize::MAX / 2) <= MOST_BLOCKS);
        }
        let all =
            |room| (1..=LONGEST).map(|units| runs_at_most(units, room) * units).sum::<usize>();
        assert!(all(4 << 20) * UNIT <= 2 * (4 << 20));
    }

    #[test]
    fn a_child_forgets_arrays_that_were_not_at_rest() {
        assert!(crate::substrate::open_and_begin());
        let Some(cpu_entry) = started() else { return };
        let arrays = provide(cpu_entry, CPUS - 2);
        let _none = super::super::magazines::RAISING.lock();
        for (at_rest, left) in [(true, 1), (false, 0)] {
            let Top { top, floor } = &arrays.tops[0];
            top.store(floor.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            // `before_fork` stores false if the kernel refuses the fence.
            AT_REST.store(at_rest, Ordering::Relaxed);
            forget_after_fork();
            assert_eq!(arrays.count(0), left);
        }
    }
}
