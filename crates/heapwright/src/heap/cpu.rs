//! Per-CPU caches: the sequences of the fast paths, and the calls that no sequence serves.
//!
//! ```text
//!   malloc, free --> restartable sequence (`calls`): done
//!                      | empty, full                      | aborted
//!                      v                                  v
//!                    half a row from, or to,           this block from, or to,
//!                    the CPU's shared cache            the CPU's shared cache
//! ```
//!
//! Each CPU has a shared cache (`cache::magazines`), with a lock. A refill or drain moves one block
//! at a time, each with a sequence: the thread may move to another CPU in between.
//!
//! The sequences jump to the functions with the C ABI, with the call's arguments still in place.
//!
//! Called by `fast`, `own`, `shared`, `modes` and `start`.

pub(super) use calls::{free, malloc};

use core::ffi::c_void;
use core::ptr;

use super::{foreign, shared, words};
use crate::address_map::{CLASS_STEP, Kind, MAP};
use crate::cache::arrays::{self, CpuEntry, Put, Taken};
use crate::cache::central::{self, ROW};
use crate::cache::large;
use crate::cache::magazines::Magazines;
use crate::cache::{Allocated, CACHES, Hot, Mismatch, Use, deferred};
use crate::chunk;
use crate::drawn;
use crate::memory_limit;
use crate::os::{self, Exit, rseq};
use crate::remote::Block;
use crate::request::{Origin, Return, Said};
use crate::size_class::{self, UNIT};
use crate::substrate;
use crate::sync;

/// Serves a call if the CPU's array for the list at `offset` is empty.
#[cold]
pub(crate) extern "C" fn empty(size: usize, cpu_entry: &CpuEntry, offset: usize) -> *mut u8 {
    if drawn::is_guarding()
        && let Some(block) =
            drawn::draw_for_shared(size, cpu_entry.half(cpu_entry.cpu(), offset / CLASS_STEP))
    {
        return block.as_ptr();
    }
    let block = refill(cpu_entry, offset / CLASS_STEP);
    if block.is_null() { shared::malloc_slowly(size) } else { block.cast() }
}

#[cold]
pub(crate) extern "C" fn aborted_malloc(
    size: usize,
    _cpu_entry: &CpuEntry,
    offset: usize,
) -> *mut u8 {
    arrays::note_abort();
    let block = shared::acquire().and_then(|held| {
        Magazines::note_fallback(&held);
        held.alloc(offset / CLASS_STEP)
    });
    block.map_or_else(|| shared::malloc_slowly(size), |Allocated { block, .. }| block)
}

/// Frees a block if the CPU's array of its class is full.
///
/// # Safety
///
/// As `heap::free`, for a block of a common slab.
#[cold]
pub(crate) unsafe extern "C" fn full(block: *mut u8, cpu_entry: &CpuEntry, mismatch: Mismatch) {
    // SAFETY: the caller gives away the block, of a common slab and the class in `mismatch`.
    unsafe { drain(cpu_entry, mismatch.class(), block.cast()) };
}

/// # Safety
///
/// As [`full`].
#[cold]
pub(crate) unsafe extern "C" fn aborted_free(
    block: *mut u8,
    _cpu_entry: &CpuEntry,
    mismatch: Mismatch,
) {
    arrays::note_abort();
    // SAFETY: the caller gives away the block, of a common slab and the class in `mismatch`.
    unsafe { put_in_shared(mismatch.class(), block.cast()) };
}

/// Serves `free` for an address at which no slot begins.
///
/// # Safety
///
/// As `heap::free`.
#[cold]
pub(crate) unsafe extern "C" fn odd(block: *mut u8, _cpu_entry: &CpuEntry, _rest: Mismatch) {
    // SAFETY: the caller gives the block away, whatever begins there.
    unsafe { foreign::give_back(block, Return::PLAIN) }
}

/// Takes a block of `class` for a call that no sequence served.
pub(super) fn take(cpu_entry: &CpuEntry, class: usize) -> *mut Block {
    match cpu_entry.take(class) {
        Taken::Block(block) => block,
        Taken::Empty => refill(cpu_entry, class),
        Taken::Aborted => {
            arrays::note_abort();
            core::ptr::null_mut()
        }
    }
}

/// Frees a block of `class` for a call that no sequence served.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
pub(super) unsafe fn give(cpu_entry: &CpuEntry, class: usize, block: *mut Block) {
    // SAFETY: a block of the class and the common owner, which the caller gives away.
    match unsafe { cpu_entry.put(class, block) } {
        Put::Done => {}
        // SAFETY: a block of the class and the common owner, which the caller gives away.
        Put::Full => unsafe { drain(cpu_entry, class, block) },
        Put::Aborted => {
            arrays::note_abort();
            // SAFETY: a block of the class and the common owner, which the caller gives away.
            unsafe { put_in_shared(class, block) };
        }
    }
}

/// Takes a block of `class` from the shared cache or a central row, and moves some more blocks to
/// the CPU's arrays. Returns null if there is no memory, or no lock is available.
fn refill(cpu_entry: &CpuEntry, class: usize) -> *mut Block {
    cpu_entry.provide(cpu_entry.cpu());
    let Some(held) = shared::acquire() else { return core::ptr::null_mut() };
    held.tend();
    // A signal handler must not wait for a class's lock, which its thread may hold.
    if !sync::is_interrupted() && held.is_empty_of(class) {
        let mut row = [core::ptr::null_mut(); ROW];
        let count = central::take_row(class, &mut row);
        if count > 0 {
            for (at, &more) in row[..count].iter().enumerate().skip(1) {
                // SAFETY: a free block of the class, which was in the row.
                if unsafe { cpu_entry.put(class, more) } != Put::Done {
                    for &rest in &row[at..count] {
                        // SAFETY: a free block of the class, which was in the row.
                        unsafe { held.free(class, rest) };
                    }
                    break;
                }
            }
            return row[0];
        }
    }
    let Some(Allocated { block, .. }) = held.alloc(class) else { return core::ptr::null_mut() };
    for _ in 1..half_of(cpu_entry, &held, class) {
        let more = held.list(class).pop();
        if more.is_null() {
            break;
        }
        // SAFETY: a free block of the class, which was in the list.
        if unsafe { cpu_entry.put(class, more) } != Put::Done {
            // SAFETY: a free block of the class, which was in the list and in no array.
            unsafe { held.free(class, more) };
            break;
        }
    }
    block.cast()
}

/// Half the blocks of `class` that the CPU's arrays can hold. A busy class's arrays grow first.
fn half_of(cpu_entry: &CpuEntry, held: &Magazines, class: usize) -> usize {
    let cpu = cpu_entry.cpu();
    if !sync::is_interrupted() && held.is_busy(class) {
        cpu_entry.grow(cpu, class);
    }
    cpu_entry.half(cpu, class)
}

/// Moves a block, and some of the CPU's blocks, to the shared cache or a central row.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
unsafe fn drain(cpu_entry: &CpuEntry, class: usize, block: *mut Block) {
    cpu_entry.provide(cpu_entry.cpu());
    let Some(held) = shared::acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { deferred::defer(class, block) };
    };
    held.tend();
    let mut row = [block; ROW];
    let mut count = 1;
    let half = half_of(cpu_entry, &held, class);
    let most = if held.has_room_for(class, half + 1) { half.min(ROW - 1) } else { ROW - 2 };
    while count <= most {
        let Taken::Block(more) = cpu_entry.take(class) else { break };
        row[count] = more;
        count += 1;
    }
    let is_row = !sync::is_interrupted() && !held.has_room_for(class, count);
    // SAFETY: free blocks of the class and the common owner: the caller's, and the arrays'.
    if is_row && unsafe { central::give_row(class, &row[..count]) } {
        return;
    }
    for &more in &row[..count] {
        // SAFETY: a free block of the class and the common owner, in no array and no row.
        unsafe { held.free(class, more) };
    }
}

/// # Safety
///
/// As [`drain`].
unsafe fn put_in_shared(class: usize, block: *mut Block) {
    let Some(held) = shared::acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { deferred::defer(class, block) };
    };
    Magazines::note_fallback(&held);
    // SAFETY: a block of the class and the common owner, which the caller gives away.
    unsafe { held.free(class, block) };
}

/// Serves a call for a large block or for no bytes, without an alignment.
pub(super) fn allocate_large(size: usize, hot: &Hot, origin: Origin) -> *mut u8 {
    // Calls for large blocks are counted if blocks are sampled or guarded.
    if arrays::RUN_SIZES.contains(&size) && !drawn::is_watched() {
        let block = take_run(CpuEntry::of(hot), size);
        return if block.is_null() { shared::malloc_slowly(size) } else { block };
    }
    shared::allocate_large(size, hot, origin)
}

/// Frees a block that is not common.
///
/// # Safety
///
/// As `heap::free`. `hot` is the per-CPU entry's, `mismatch` the tag mismatch of the block's entry.
pub(super) unsafe extern "C" fn free_other(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block away.
    unsafe { free_with(block, hot, mismatch, Return::PLAIN) }
}

/// [`free_other`] with the block's size, alignment or kind. The entry may be unread.
///
/// # Safety
///
/// As [`free_other`].
pub(super) unsafe fn give_back(
    block: *mut u8,
    hot: &Hot,
    mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away.
    unsafe { free_with(block, hot, hot.known(mismatch, block.addr()), what) }
}

/// # Safety
///
/// As [`free_other`] and [`give_back`].
#[inline(always)]
unsafe fn free_with(block: *mut u8, hot: &Hot, mismatch: Mismatch, what: Return) {
    let entry = hot.entry(mismatch);
    if hot.is_large_head(mismatch) && block.addr().is_multiple_of(UNIT) {
        let unit = hot.unit_of(block.addr());
        // SAFETY: the caller gives the large block away.
        if unsafe { give_run(CpuEntry::of(hot), unit, block) } || shared::keep_large(unit, hot) {
            return;
        }
    } else if let Kind::Slab(class) = entry.kind()
        && size_class::is_slot_start(
            (block.addr() & (UNIT - 1)) as u32,
            size_class::reciprocal(class),
        )
        && CACHES.get(entry.owner()).is_some_and(|cache| cache.owned_by() == Use::Thread)
    {
        // SAFETY: the caller gives the block of this owner and class away.
        return unsafe { shared::send_home(entry.owner(), class, block.cast()) };
    }
    // SAFETY: the caller gives the block away, and its entry says what it is.
    unsafe { foreign::give_back(block, what) }
}

/// A large block of one of [`arrays::RUN_SIZES`]. Returns null if there is no memory, if a sequence
/// was aborted, or if the lock is not available.
#[inline(always)]
pub(super) fn take_run(cpu_entry: &CpuEntry, size: usize) -> *mut u8 {
    let units = size.div_ceil(UNIT);
    match cpu_entry.take_run(units) {
        Taken::Block(run) => large::reuse(run.cast(), units, size),
        Taken::Empty => refill_runs(size),
        Taken::Aborted => {
            arrays::note_abort();
            ptr::null_mut()
        }
    }
}

/// Takes a run from the shared cache, and moves up to half a row of runs to the CPU's arrays.
#[cold]
#[inline(never)]
fn refill_runs(size: usize) -> *mut u8 {
    // A signal handler must not wait for a lock that its thread may hold.
    let Some(cpu_entry) = my_cpu_entry().filter(|_| !sync::is_interrupted()) else {
        return ptr::null_mut();
    };
    let units = size.div_ceil(UNIT);
    cpu_entry.provide(cpu_entry.cpu());
    let Some(held) = shared::acquire() else { return ptr::null_mut() };
    let Some(unit) = held.stash.take_exactly(units) else {
        let new = large::alloc(size, 1, false, &*held);
        return new.map_or(ptr::null_mut(), |new| new.block);
    };
    held.tend();
    for _ in 1..cpu_entry.half_of_runs(cpu_entry.cpu(), units) {
        let Some(more) = held.stash.take_exactly(units) else { break };
        // SAFETY: a run of this length, just taken from the stash.
        let put = unsafe { cpu_entry.put_run(units, MAP.address_of(more).cast()) };
        if put != Put::Done {
            keep_or_give(&held, more, units);
            break;
        }
    }
    large::reuse(MAP.address_of(unit), units, size)
}

/// Keeps the run of the large block at `unit`. Returns false, and does nothing, if no row has the
/// run's length, a first-class heap owns the block, or the block was freed before.
///
/// # Safety
///
/// As `heap::free`. The block begins at the unit.
#[inline(always)]
pub(super) unsafe fn give_run(cpu_entry: &CpuEntry, unit: usize, block: *mut u8) -> bool {
    let Some(units) = large::give_up(unit, arrays::LONGEST) else { return false };
    // SAFETY: the run is no block any more, and the caller's.
    let put = unsafe { cpu_entry.put_run(units, block.cast()) };
    if put != Put::Done {
        drain_runs(cpu_entry, unit, units, put);
    }
    true
}

/// Moves a run, and up to half a row of the CPU's runs, to the shared cache.
#[cold]
#[inline(never)]
fn drain_runs(cpu_entry: &CpuEntry, unit: usize, units: usize, put: Put) {
    if put == Put::Aborted {
        arrays::note_abort();
    }
    cpu_entry.provide(cpu_entry.cpu());
    let Some(held) = (!sync::is_interrupted()).then(shared::acquire).flatten() else {
        // SAFETY: the caller gives the run away, which was a block a moment ago.
        return unsafe { deferred::defer_run(unit) };
    };
    held.tend();
    keep_or_give(&held, unit, units);
    if put == Put::Aborted {
        return;
    }
    for _ in 1..cpu_entry.half_of_runs(cpu_entry.cpu(), units) {
        let Taken::Block(more) = cpu_entry.take_run(units) else { break };
        keep_or_give(&held, MAP.unit_of(more.addr()), units);
    }
}

fn keep_or_give(held: &Magazines, unit: usize, units: usize) {
    if !held.stash.keep(unit, units) {
        chunk::give(unit, units);
    }
}

/// The per-CPU entry, if the thread may put common blocks into its CPU's arrays.
pub(super) fn any_cpu_entry() -> Option<&'static CpuEntry> {
    arrays::cpu_entry().filter(|cpu_entry| cpu_entry.serves_this_thread() || enter_sequences())
}

/// The per-CPU entry, if the thread allocates from it.
pub(super) fn my_cpu_entry() -> Option<&'static CpuEntry> {
    words::uses_cpu_entry().then(arrays::cpu_entry).flatten()
}

/// The exit token of a thread that has an rseq area of heapwright and no cache. (No cache lies
/// there.)
pub(super) const NO_CACHE: *mut c_void = ptr::without_provenance_mut(2);

/// Registers an rseq area for the thread, if the C library has registered none. Returns whether the
/// thread has an area. Registers none in a child of `vfork`, whose parent would get the area's
/// words, and none in a sandbox, which may forbid the call.
#[cold]
#[inline(never)]
fn enter_sequences() -> bool {
    rseq::enter(|| {
        !memory_limit::is_in_sandbox()
            && substrate::is_original_process()
            && (!os::watched(Exit::Cache).is_null() || os::watch_this_thread(Exit::Cache, NO_CACHE))
    })
}

/// Unregisters the area of a thread that ends. In a sandbox the call may end the process, so the
/// area stays. Then the kernel may write to released memory, but only for a detached thread of
/// musl: after the thread has released its stack and before it ends.
pub(super) fn leave_sequences() {
    if !memory_limit::is_in_sandbox() {
        rseq::leave();
    }
}

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
pub(super) fn malloc_sequence() -> Option<&'static [u64; 4]> {
    let at: *const [u64; 4];
    // SAFETY: reads our own offset table: 0 for a weak symbol that is not defined.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_malloc_sequence",
            ".hidden __heapwright_0_1_malloc_sequence",
            "mov {0}, qword ptr [rip + __heapwright_0_1_malloc_sequence@GOTPCREL]",
            out(reg) at,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or the descriptor, which is never written to.
    unsafe { at.as_ref() }
}

#[cfg(not(all(target_os = "linux", not(miri), target_arch = "x86_64")))]
pub(super) const fn malloc_sequence() -> Option<&'static [u64; 4]> {
    None
}

/// `malloc` and `free` through a CPU's arrays on x86-64. The fast paths jump here.
#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
mod calls {
    use super::{aborted_free, aborted_malloc, empty, full, odd};
    use crate::cache::Hot;
    use crate::cache::arrays::{CpuEntry, ROW_MASK, SOURCES, TARGETS, sequence};
    use crate::cache::hot::BIASED_TO_CPU;

    const RECIPROCAL: usize = Hot::RECIPROCAL;

    #[unsafe(naked)]
    pub(crate) extern "C" fn malloc(size: usize, cpu_entry: &CpuEntry, offset: usize) -> *mut u8 {
        sequence!(
            [] entry "rsi" [
                "mov rcx, [rsi + rax*8 + {SOURCES}]",
                "mov r8, [rcx + rdx]",
                "cmp r8, [rcx + rdx + 8]",
                "je 6f",
                "mov rax, [r8 - 8]",
                "sub r8, 8",
                "mov [rcx + rdx], r8"
            ] ["ret", "6:", "jmp {empty}"]
            abort ["jmp {aborted}"]
            SOURCES = const SOURCES,
            empty = sym empty,
            aborted = sym aborted_malloc,
        )
    }

    /// # Safety
    ///
    /// As `heap::free`.
    #[unsafe(naked)]
    pub(crate) unsafe extern "C" fn free(block: *mut u8, cpu_entry: &CpuEntry, mismatch: usize) {
        sequence!(
            [
                "movzx eax, di",
                "imul eax, [rsi + rdx - {TURNED} + {RECIPROCAL}]",
                "cmp eax, 0xffff",
                "ja 8f"
            ] entry "rsi" [
                "mov rcx, [rsi + rax*8 + {TARGETS}]",
                "mov r8, [rcx + rdx - {TURNED}]",
                "mov [r8], rdi",
                "add r8, 8",
                "test r8d, {ROW_MASK}",
                "jz 6f",
                "mov [rcx + rdx - {TURNED}], r8"
            ] ["ret", "6:", "jmp {full}", "8:", "jmp {odd}"]
            abort ["jmp {aborted}"]
            TARGETS = const TARGETS,
            ROW_MASK = const ROW_MASK,
            TURNED = const BIASED_TO_CPU,
            RECIPROCAL = const RECIPROCAL,
            full = sym full,
            odd = sym odd,
            aborted = sym aborted_free,
        )
    }
}

/// The same in Rust, for aarch64, where no test counts the instructions of a call. Also compiles
/// for machines without sequences, which have no per-CPU entry.
#[cfg(not(all(target_os = "linux", not(miri), target_arch = "x86_64")))]
mod calls {
    use super::{aborted_free, aborted_malloc, empty, full, odd};
    use crate::address_map::CLASS_STEP;
    use crate::cache::Mismatch;
    use crate::cache::arrays::{CpuEntry, Put, Taken};
    use crate::cache::hot::BIASED_TO_CPU;
    use crate::size_class::{self, UNIT};

    pub(crate) fn malloc(size: usize, cpu_entry: &CpuEntry, offset: usize) -> *mut u8 {
        match cpu_entry.take(offset / CLASS_STEP) {
            Taken::Block(block) => block.cast(),
            Taken::Empty => empty(size, cpu_entry, offset),
            Taken::Aborted => aborted_malloc(size, cpu_entry, offset),
        }
    }

    /// # Safety
    ///
    /// As `heap::free`.
    pub(crate) unsafe fn free(block: *mut u8, cpu_entry: &CpuEntry, mismatch: usize) {
        // SAFETY: by the contract the number is an entry's tag mismatch.
        let left = unsafe { Mismatch::of(mismatch) };
        let class = (mismatch - BIASED_TO_CPU) / CLASS_STEP;
        let offset = (block.addr() & (UNIT - 1)) as u32;
        if !size_class::is_slot_start(offset, size_class::reciprocal(class)) {
            // SAFETY: the caller gives the block away, whatever begins there.
            return unsafe { odd(block, cpu_entry, left) };
        }
        // SAFETY: a slot begins at the block, which the caller gives away, in a common slab.
        match unsafe { cpu_entry.put(class, block.cast()) } {
            Put::Done => {}
            // SAFETY: the caller gives away the block of a common slab, which no array has.
            Put::Full => unsafe { full(block, cpu_entry, left) },
            // SAFETY: the caller gives away the block of a common slab, which no array has.
            Put::Aborted => unsafe { aborted_free(block, cpu_entry, left) },
        }
    }
}
