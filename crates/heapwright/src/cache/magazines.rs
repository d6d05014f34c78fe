//! Magazines: a shared cache without an owner, above the central lists.
//!
//! ```text
//!   slot (see `registry::shared`)
//!   0      stub: the target of threads' fast words
//!   1408   | state | sleepers | number | precedence | list 0 | list 1 | list 2 |  one line
//!   1472   | list 3 | ....                                           16 bytes a class
//!   2704   | bins: a spare chain a class ....      | stash | ....
//!
//!   list too long   --> it becomes the spare; the old spare goes to the central lists
//!   list empty      <-- the spare; else a chain from the central lists
//! ```
//!
//! Each class has two chains (Bonwick's magazines). So a thread that frees and allocates around a
//! boundary moves one chain back and forth, without the central lists. All moves are of whole
//! chains, in constant time.
//!
//! `malloc` and `free` reach the stub first, and miss: its lists are empty, and its tag is no
//! slab's. The tag mismatch can show whether a block is common (see `hot::Common`).
//!
//! Invariants: a block is in one list, one spare, one depot or a bit of its slab. Only the holder
//! of the slot's lock accesses anything but the atomics.
//!
//! Called by `heap`, `drawn` and statistics, and by other files of `cache`.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;

use super::central::{self, MIDDLE, Supply, chain_length};
use super::depot::DepotChain;
use super::forced_slow::{ForcedSlow, Polls};
use super::stash::{self, Stash};
use super::visit::{self, Thief};
use super::{
    Allocated, CACHES, Common, Counters, Hot, HotStub, List, Serve, arrays, deferred, draw,
    first_length,
};
use crate::address_map::MAP;
use crate::chunk;
use crate::os;
pub(crate) use crate::registry::MOST;
use crate::registry::shared::{Shared, Slot};
use crate::remote::Block;
use crate::size_class::{self, CLASSES};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{self, Lock};

// **Bound.** A cache holds at most two chains of a class. Lists and spares together hold less than
// 2 MiB; the stash has its own bound. Blocks in a cache that no thread used for a purge delay go to
// the central lists.

/// A class of blocks over [`MIDDLE`] is busy after this many slow operations in one tick.
const BUSY: u32 = 64;
/// The most bytes in all spare chains of a cache, if [`central::share`] is not less.
const SPARES: usize = 256 << 10;
pub(crate) static ALL: Shared<Magazines, HotStub, MOST> = Shared::new();

pub(crate) type SharedCache = Slot<Magazines, HotStub>;

pub(super) struct Bin {
    spare: Cell<*mut Block>,
    pub(super) spare_count: Cell<u32>,
    /// `room` of the list when it is empty.
    pub(super) base: Cell<i32>,
    /// Blocks that the next refill asks for, at most.
    want: Cell<u32>,
    /// Slow operations in the tick `slow_at`, and whether a tick had many since the last release.
    slow: Cell<u32>,
    slow_at: Cell<u32>,
    is_busy: Cell<bool>,
    /// The list, while it is forced slow.
    pub(super) forced_slow: ForcedSlow,
}

pub(crate) struct Uses {
    /// Failed tries of other caches before a thread got this one.
    pub(crate) failed_tries: AtomicU64,
    pub(crate) waits: AtomicU64,
    /// Operations that took the lock although the CPU's arrays should have served them.
    pub(crate) fallbacks: AtomicU64,
}

/// The data behind a slot's lock. A new cache is zero except for the fields that [`make`] sets.
#[repr(C)]
pub(crate) struct Magazines {
    /// As in exclusive caches (`hot::List`): the same few instructions push and pop.
    lists: [List; CLASSES],
    pub(super) bins: [Bin; CLASSES],
    pub(crate) stash: Stash,
    thief: Thief,
    spares: Cell<usize>,
    /// The tick of the last slow operation.
    pub(super) now: Cell<u32>,
    /// How many more operations take the slow path (see `maintenance`).
    pub(super) polls: Polls,
    /// Whether lists were forced slow in this tick, and whether operations polled.
    pub(super) has_forced_slow: Cell<bool>,
    pub(super) has_polled: Cell<bool>,
    /// Whether no slow operation came after the last pass.
    pub(super) rested: Cell<bool>,
    /// Whether a refill has ever asked the central lists for blocks.
    used: AtomicBool,
    listed_blocks: AtomicUsize,
    listed_bytes: AtomicUsize,
    pub(crate) counters: Counters,
    pub(crate) uses: Uses,
}

// SAFETY: only the holder of the slot's lock accesses the magazines, and the lock passes between
// threads with acquire and release. The pointers lead to free blocks that nothing else refers to.
unsafe impl Send for Magazines {}

const _: () = assert!(offset_of!(Magazines, lists) == 0);
// A thread's fast word leads to the front, which begins the slot.
const _: () = assert!(SharedCache::FRONT == 0);

/// A thread's current cache, by the target of its fast word.
#[inline(always)]
pub(crate) fn of(stub: &Hot) -> &'static SharedCache {
    // SAFETY: a stub is the front of a slot, and slots are never freed.
    unsafe { &*ptr::from_ref(stub).cast::<SharedCache>() }
}

/// Returns `None` if there is no memory.
fn make(number: usize, serve: &'static Serve, common: Common) -> Option<&'static SharedCache> {
    // SAFETY: zero is valid for every field.
    let slot = unsafe { SharedCache::make(number) }?;
    let (stub, magazines) = slot.parts_mut();
    let forward_sized = super::FORWARD_SIZED.load(Ordering::Relaxed);
    stub.become_stub(serve, common, chunk::expose_table(), forward_sized, 0);
    for class in 0..CLASSES {
        magazines.lists[class].reciprocal = size_class::reciprocal(class);
        magazines.bins[class].want.set(first_length(class) as u32);
        magazines.fill(class, DepotChain::EMPTY);
    }
    Some(slot)
}

/// Held while a thread makes caches or lowers their limits, and across a fork, which must release
/// as many slots' locks as it took.
pub(super) static RAISING: Lock<()> = Lock::new(());

/// Begins or ends counting each `malloc` from a shared cache (`sampling`).
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is sampled without stacks"))]
pub(super) fn count_calls(counted: bool) {
    for cache in ALL.all() {
        cache.front().draw_calls(counted);
    }
}

/// Samples a block every `bytes` bytes, or none (0). Threads follow at their next slow operation.
#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "nothing is sampled without stacks"))]
pub(crate) fn sample_every(bytes: usize) {
    draw::set_period(bytes);
    arrays::count_calls(bytes != 0);
    count_calls(bytes != 0);
    for cache in CACHES.all() {
        cache.ask_to_follow_sampling();
    }
}

static ARE_OF_CPUS: AtomicBool = AtomicBool::new(false);

/// Whether each cache belongs to a CPU. If the CPU has arrays, its cache is behind them.
pub(super) fn are_of_cpus() -> bool {
    ARE_OF_CPUS.load(Ordering::Relaxed)
}

/// Raises the number of caches to `count`. Returns their number.
pub(crate) fn raise(count: usize, serve: &'static Serve) -> usize {
    let _one = RAISING.lock();
    let made = ALL.raise(count, |number| make(number, serve, Common::ToShared));
    central::note_sharing(ALL.count());
    draw::look_again(count_calls);
    stash::note_made(made.max(1));
    made
}

/// Makes `count` caches, one for each CPU, and sets up arrays if possible (`arrays::prepare`).
/// Returns false if there is no memory. `serve` is the caches' table, `cpu_entry` the arrays'.
pub(crate) fn start_by_cpu(
    count: usize,
    serve: &'static Serve,
    cpu_entry: &'static Serve,
    descriptor: Option<&[u64; 4]>,
) -> bool {
    let _one = RAISING.lock();
    ARE_OF_CPUS.store(true, Ordering::Relaxed);
    let made = ALL.raise(count, |number| make(number, serve, Common::Nowhere)) > 0;
    central::note_sharing(ALL.count());
    // CPUs that are possible but absent have caches that keep nothing.
    stash::note_made(os::cpus().min(count));
    if made && arrays::cpu_entry().is_none() {
        arrays::start(cpu_entry, descriptor);
    }
    made
}

/// # Safety
///
/// No other thread uses the heap during the call.
pub(super) unsafe fn forward_sized_frees() {
    for slot in ALL.all() {
        // SAFETY: by the contract there is no other thread.
        unsafe { slot.front().forward_sized() };
    }
}

/// Lowers all limits to the address map's, then runs `give_up`, which makes the table beyond them
/// unreadable. No cache is made in the meantime, because it would take over the old limit.
pub(crate) fn lower_limits(give_up: impl FnOnce()) {
    let _one = RAISING.lock();
    let readable = MAP.limit();
    for slot in ALL.all() {
        slot.front().lower_limit(readable);
    }
    arrays::lower_limit(readable);
    give_up();
}

impl Magazines {
    /// Counts an operation that the CPU's arrays should have served.
    pub(crate) fn note_fallback(&self) {
        let fallbacks = &self.uses.fallbacks;
        fallbacks.store(fallbacks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn list(&self, class: usize) -> &List {
        &self.lists[class]
    }

    /// # Safety
    ///
    /// `offset` is a multiple of a list's size below all lists' size.
    #[inline(always)]
    pub(crate) unsafe fn list_at(&self, offset: usize) -> &List {
        // SAFETY: the lists come first, and by the contract this is one of them.
        let list = unsafe { ptr::from_ref(self).cast::<u8>().add(offset) };
        // SAFETY: one of the lists, which live as long as the magazines.
        unsafe { &*list.cast::<List>() }
    }

    /// Returns `None` if there is no memory.
    #[inline]
    pub(crate) fn alloc(&self, class: usize) -> Option<Allocated> {
        let block = self.list(class).pop();
        if !block.is_null() {
            return Some(Allocated { block: block.cast(), zero: false });
        }
        self.refill(class)
    }

    /// # Safety
    ///
    /// The block is of `class`, of a common slab, and in use.
    #[inline]
    pub(crate) unsafe fn free(&self, class: usize, block: *mut Block) {
        // SAFETY: a block of the class and the common owner, which the caller gives away.
        if unsafe { self.list(class).push(block) } {
            self.overflow(class);
        }
    }

    pub(crate) fn chain_length(&self, class: usize) -> usize {
        chain_length(class, self.bins[class].is_busy.get())
    }

    /// Counts a slow operation. True after every [`BUSY`] in a tick: the arrays should hold more.
    pub(crate) fn is_busy(&self, class: usize) -> bool {
        let bin = &self.bins[class];
        if size_class::size(class) <= MIDDLE {
            return false;
        }
        let now = self.now.get();
        let slow = if bin.slow_at.replace(now) == now { bin.slow.get() + 1 } else { 1 };
        bin.slow.set(slow);
        if !slow.is_multiple_of(BUSY) {
            return false;
        }
        bin.is_busy.set(true);
        central::note_busy(class);
        true
    }

    /// Gives back runs if a run of `units` units would otherwise take unused memory. They come from
    /// the CPU's arrays, this stash and a thread's stash.
    pub(crate) fn make_way(&self, units: usize) {
        arrays::make_way(units);
        self.stash.make_way(units);
        self.thief.make_way(0, units);
    }

    /// Whether neither list nor spare has a block of `class`.
    pub(crate) fn is_empty_of(&self, class: usize) -> bool {
        self.lists[class].head.get().is_null() && self.bins[class].spare_count.get() == 0
    }

    /// Whether `count` more blocks of `class` fit into the list. Middle blocks, whose lists are
    /// short, also fit if there is no spare, so that the list can become the spare.
    pub(crate) fn has_room_for(&self, class: usize, count: usize) -> bool {
        let is_middle = size_class::size(class) > MIDDLE;
        self.lists[class].room.get() >= count as i32
            || is_middle && self.bins[class].spare_count.get() == 0
    }

    pub(super) fn length(&self, class: usize) -> usize {
        (self.bins[class].base.get() - self.lists[class].room.get()).max(0) as usize
    }

    /// Makes a chain the list of `class`, and forgets the old list.
    pub(super) fn fill(&self, class: usize, chain: DepotChain) {
        let room = self.chain_length(class).saturating_sub(chain.count()) as i32;
        self.lists[class].head.set(chain.head());
        self.lists[class].room.set(room);
        self.bins[class].base.set(room + chain.count() as i32);
        debug_assert!(!self.bins[class].forced_slow.is_on());
    }

    pub(super) fn empty(&self, class: usize) -> DepotChain {
        let (head, count) = (self.lists[class].head.get(), self.length(class));
        // SAFETY: the list's blocks, which the list forgets here.
        let chain = unsafe { DepotChain::of(head, count) };
        self.fill(class, DepotChain::EMPTY);
        chain
    }

    pub(super) fn take_spare(&self, class: usize) -> DepotChain {
        let bin = &self.bins[class];
        let head = bin.spare.replace(ptr::null_mut());
        // SAFETY: the chain that `set_spare` stored, which no call has taken since.
        let chain = unsafe { DepotChain::of(head, bin.spare_count.replace(0) as usize) };
        self.spares.set(self.spares.get() - chain.count() * size_class::size(class));
        chain
    }

    /// Makes a chain the spare of `class`, which has none.
    pub(super) fn set_spare(&self, class: usize, chain: DepotChain) {
        self.bins[class].spare.set(chain.head());
        self.bins[class].spare_count.set(chain.count() as u32);
        self.spares.set(self.spares.get() + chain.count() * size_class::size(class));
    }

    /// Refills the empty list of `class`, and hands out a block.
    #[cold]
    pub(crate) fn refill(&self, class: usize) -> Option<Allocated> {
        let polls = self.bins[class].forced_slow.polls();
        if let Some(block) = self.pop_forced_slow(class) {
            return Some(Allocated { block: block.cast(), zero: false });
        }
        let spare = self.take_spare(class);
        self.tend();
        let chain = if spare.count() > 0 {
            spare
        } else if sync::is_interrupted() {
            return deferred::reserved(class)
                .map(|block| Allocated { block: block.cast(), zero: false });
        } else {
            let want = &self.bins[class].want;
            let most = want.get();
            want.set((2 * most).min(self.chain_length(class) as u32));
            self.used.store(true, Ordering::Relaxed);
            let Supply { chain, zero } = central::take(class, most as usize)?;
            if zero {
                return Some(Allocated { block: chain.head().cast(), zero });
            }
            chain
        };
        let forced_slow = &self.bins[class].forced_slow;
        let (chain, polls) = if forced_slow.is_on() {
            // `tend` forced the list slow just now, with blocks that signal handlers had left.
            (chain.before(forced_slow.take()), forced_slow.polls_left.get())
        } else {
            (chain, polls.saturating_sub(1))
        };
        self.fill(class, chain);
        let block = self.list(class).pop();
        self.stay_forced_slow(class, polls);
        Some(Allocated { block: block.cast(), zero: false })
    }

    /// Makes the list of `class`, which is too long, the spare.
    #[cold]
    pub(crate) fn overflow(&self, class: usize) {
        if sync::is_interrupted() {
            // The list stays too long until the next free.
            return;
        }
        if self.push_forced_slow(class) {
            return;
        }
        let spare = self.take_spare(class);
        let chain = self.empty(class);
        let bytes = chain.count() * size_class::size(class);
        if spare.count() > 0 {
            self.tend();
            central::give(class, spare);
        }
        if self.spares.get() + bytes > central::share().min(SPARES) {
            central::give(class, chain);
            return;
        }
        self.set_spare(class, chain);
    }

    pub(crate) fn release(&self) {
        self.stash.release();
        self.stash.give_extra_back();
        for class in 0..CLASSES {
            let forced_slow = self.bins[class].forced_slow.take();
            let (list, spare) = (self.empty(class), self.take_spare(class));
            for chain in [forced_slow, list, spare] {
                central::give(class, chain);
            }
            self.bins[class].want.set(first_length(class) as u32);
            self.bins[class].is_busy.set(false);
        }
        self.publish();
    }

    pub(crate) fn publish(&self) {
        let (mut blocks, mut bytes) = (0, 0);
        for class in 0..CLASSES {
            let aside =
                self.bins[class].spare_count.get() as usize + self.bins[class].forced_slow.count();
            let here = self.length(class) + aside;
            blocks += here;
            bytes += here * size_class::size(class);
        }
        self.listed_blocks.store(blocks, Ordering::Relaxed);
        self.listed_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Blocks and bytes, when last published.
    pub(crate) fn cached(&self) -> (usize, usize) {
        (self.listed_blocks.load(Ordering::Relaxed), self.listed_bytes.load(Ordering::Relaxed))
    }
}

/// A pass over caches and central lists. Each tick makes a part of it.
pub(super) struct Pass {
    pub(super) began: u32,
    /// The class that the pass has reached. `CLASSES`: the pass is over.
    pub(super) class: usize,
    pub(super) begins: bool,
}

pub(super) static PASS: Lock<Pass> = Lock::new(Pass { began: 0, class: CLASSES, begins: true });

/// Returns the bytes that went to the kernel.
pub(crate) fn purge_all() -> usize {
    arrays::drain_all();
    for slot in ALL.all() {
        if let Some(held) = ALL.acquire_this(slot) {
            held.release();
        }
    }
    central::purge_all()
}

/// Gives back free memory because none is left: from arrays, central lists, threads' stashes except
/// that of `me`, and caches that no thread holds. Call this without a class's lock.
pub(crate) fn release_all(me: u32) {
    visit::release_stashes(me);
    if ALL.count() == 0 || sync::is_interrupted() {
        return;
    }
    arrays::drain_all();
    for slot in ALL.all().filter(|slot| slot.try_lock()) {
        // SAFETY: this thread has just locked the slot.
        unsafe { slot.value() }.release();
        // SAFETY: this thread holds the slot's lock.
        unsafe { slot.unlock() };
    }
    central::purge_all();
}

pub(crate) fn release_stashes_after_fork() {
    arrays::release_runs_after_fork();
    for slot in ALL.all() {
        if let Some(held) = ALL.acquire_this(slot) {
            held.stash.release();
        }
    }
}

/// Holds the caches across a fork.
pub(crate) fn hold_slots() {
    RAISING.acquire();
    PASS.acquire();
    for slot in ALL.all() {
        slot.before_fork();
    }
}

/// Follows [`hold_slots`].
pub(crate) fn before_fork() {
    arrays::before_fork();
    central::before_fork();
}

pub(crate) fn forget_after_fork() {
    for slot in ALL.all() {
        slot.forget_sleepers_after_fork();
    }
    arrays::forget_after_fork();
    deferred::forget_after_fork();
}

/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(crate) unsafe fn after_fork() {
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { central::after_fork() };
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { arrays::after_fork() };
}

/// # Safety
///
/// Follows [`hold_slots`] in the forking thread or its copy in the child.
pub(crate) unsafe fn let_slots_go() {
    for slot in ALL.all() {
        // SAFETY: this thread, or the thread that it is a copy of, held the slot before the fork.
        unsafe { slot.after_fork() };
    }
    // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
    unsafe { PASS.release() };
    // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
    unsafe { RAISING.release() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_made_during_a_fork() {
        hold_slots();
        let kept_out = RAISING.try_lock().is_none();
        // SAFETY: `hold_slots` took these locks.
        unsafe { let_slots_go() };
        assert!(kept_out, "its lock would be given back, and was never taken");
        assert!(RAISING.try_lock().is_some());
    }
}
