//! Sampling: how a cache chooses blocks for a heap profile, without a countdown in `malloc`.
//!
//! ```text
//!   off   malloc <-- list <-- free
//!
//!   on    malloc <-- list <-- countdown <-- free     a block's bytes count as it enters the list,
//!                     |       countdown <-- chains   so that malloc need not count them
//!                     | empty, and a sample is due
//!                   aside     due | counted | counted | due | counted | .. the first is due
//!                              +------- below -------->+--- below ---> ...
//! ```
//!
//! So `malloc` runs at full speed, and hands out blocks in the same order as without sampling. The
//! block that takes the countdown to zero is *due*: a sample replaces it when it is allocated next.
//! This block and the list below it are put *aside*. The second word of a due block leads to the
//! next due block. When the list is empty again, `malloc` takes the slow path. This path makes a
//! sample in place of the due block (`heap::modes`), and the list gets back the blocks down to the
//! next due block. So each sample is made in the call that would have got its block. While sampling
//! is on, the hot part's limit is 0, so `free` takes a slower path, which counts the block's bytes.
//!
//! Invariants: while sampling is on, each block in a list or aside was counted once since it
//! entered. No other free block of the cache is counted. List and aside together have as many
//! blocks as the list's room says. The first block aside is due.
//!
//! Called by the slow paths of `cache`, by `heap` and by `drawn`.

use core::cell::Cell;
use core::ptr;

use super::depot::DepotChain;
use super::draw::{Countdown, period};
use super::{Allocated, Cache, Use};
use crate::address_map::CLASS_STEP;
use crate::remote::Block;
use crate::size_class::{self, CLASSES};

/// A side is as long as a [`super::List`], so that one offset leads to both.
#[repr(C)]
struct Side {
    /// The uppermost due block, and all blocks below it.
    aside: Cell<*mut Block>,
    /// The number of due samples, for blocks aside and for others.
    due: Cell<u32>,
    size: Cell<u32>,
}

const _: () = assert!(size_of::<Side>() == CLASS_STEP);

/// If all fields are zero, nothing is sampled.
#[repr(C)]
pub(crate) struct Sampling {
    /// Bytes to the next sample, from a random distance (`poisson`). A counted block may return to
    /// its slab unallocated, which changes no other block's probability.
    countdown: Countdown,
    sides: [Side; CLASSES],
    is_on: Cell<bool>,
    /// Whether refills and large blocks are checked: for a profile, or for guards (`guard_draw`).
    is_watched: Cell<bool>,
}

impl Sampling {
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.get()
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Counts a block of `size` bytes. Returns false if the block becomes a sample.
    #[inline(always)]
    pub(crate) fn count(&self, size: usize) -> bool {
        if self.countdown.left() > size {
            self.countdown.pass(size);
            return true;
        }
        self.countdown.draw(period());
        false
    }

    /// Counts a block that bypasses the list. Returns false if a sample is due in its place. Then
    /// the caller keeps the block.
    pub(super) fn count_given(&self, class: usize) -> bool {
        if !self.is_on() || self.count(size_class::size(class)) {
            return true;
        }
        let due = &self.sides[class].due;
        due.set(due.get() + 1);
        false
    }

    /// Keeps a sample of `class` due. (Forcing the list slow may have dropped it.)
    #[cold]
    pub(super) fn stays_due(&self, class: usize) {
        let due = &self.sides[class].due;
        due.set(due.get().max(1));
    }

    /// Whether the next block of `class`, whose list is empty, becomes a sample.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        self.is_on() && self.sides[class].due.get() != 0
    }
}

impl Cache {
    pub(super) fn watch(&self, watches: bool) {
        self.sampling.is_watched.set(watches);
        self.hot.draw_calls(watches);
        self.stash.count_fetches(watches);
    }

    /// Begins or ends sampling. The caller must own the cache and have entered it. If no thread
    /// owns the cache, the caller must hold its lock.
    ///
    /// A thread calls this in its next slow operation after `magazines::sample_every`. (Calls of
    /// threads that share caches are counted one by one in `heap::modes`. These calls miss: the
    /// per-CPU entry's heads are null, and the stubs of shared caches lead to another table.)
    pub(crate) fn follow_sampling(&self) {
        self.no_longer_asked_to_follow_sampling();
        // Begins anew, because the period may have changed.
        self.end_sampling();
        if period() != 0 && self.owned_by() == Use::Thread {
            self.begin_sampling();
        }
    }

    /// Ends sampling until the thread's next slow operation, because no sample is possible now.
    pub(crate) fn pause_sampling(&self) {
        self.end_sampling();
        self.ask_to_follow_sampling();
    }

    fn begin_sampling(&self) {
        let sampling = &self.sampling;
        sampling.countdown.begin(period());
        sampling.is_on.set(true);
        for class in 0..CLASSES {
            let side = &sampling.sides[class];
            side.size.set(size_class::size(class) as u32);
            side.due.set(0);
            let head = self.hot.list(class).head.replace(ptr::null_mut());
            if !head.is_null() {
                self.set_listed(class, head, self.length(class));
            }
        }
        self.hot.know_nothing(true);
        self.watch(true);
    }

    /// Has the conditions of [`Cache::follow_sampling`].
    pub(super) fn end_sampling(&self) {
        if !self.sampling.is_on() {
            return;
        }
        for class in 0..CLASSES {
            let head = self.take_all_listed(class);
            self.hot.list(class).head.set(head);
        }
        self.sampling.is_on.set(false);
        self.watch(self.guard_draw.is_on());
        self.hot.know_nothing(false);
    }

    /// For another thread's cache in a forked child, which forgets the cache's blocks.
    pub(super) fn forget_sampling_after_fork(&self) {
        for side in &self.sampling.sides {
            side.aside.set(ptr::null_mut());
            side.due.set(0);
        }
        self.sampling.is_on.set(false);
        self.watch(self.guard_draw.is_on());
        self.hot.know_nothing(false);
    }

    /// Frees a block while the cache is sampled. Returns whether the list is too long now.
    ///
    /// # Safety
    ///
    /// [`Sampling::is_on`] holds. The block is of the class whose list is at `offset`, of a slab of
    /// this cache, and free from now on.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn put_sampled(&self, offset: usize, block: *mut Block) -> bool {
        let side = ptr::from_ref(&self.sampling.sides).cast::<u8>().wrapping_add(offset);
        // SAFETY: a class's offset, which is the same for its side as for its list.
        let side = unsafe { &*side.cast::<Side>() };
        // SAFETY: the offset of a list.
        let list = unsafe { self.hot.list_at(offset) };
        if self.sampling.count(side.size.get() as usize) {
            // SAFETY: the block is of the list's class and this cache, and free from now on.
            return unsafe { list.push(block) };
        }
        self.put_aside(offset / CLASS_STEP, block);
        list.room.set(list.room.get() - 1);
        list.room.get() < 0
    }

    /// Puts a due block aside, with the list below it.
    fn put_aside(&self, class: usize, block: *mut Block) {
        let (side, list) = (&self.sampling.sides[class], self.hot.list(class));
        let below = side.aside.replace(block);
        let rest = join(list.head.replace(ptr::null_mut()), below);
        // SAFETY: a free block, which the caller gives away.
        unsafe { Block::set_next(block, rest) };
        // SAFETY: a free block, which the caller gives away.
        unsafe { Block::set_below(block, below) };
        side.due.set(side.due.get() + 1);
    }

    /// Puts a block into the list. Returns whether the list is too long now.
    ///
    /// # Safety
    ///
    /// The block is of `class` and a slab of this cache, and free from now on.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn put_listed(&self, class: usize, block: *mut Block) -> bool {
        if self.sampling.is_on() {
            // SAFETY: sampling is on. The block is of the class and this cache, and free from now
            // on.
            return unsafe { self.put_sampled(class * CLASS_STEP, block) };
        }
        // SAFETY: the block is of the list's class and this cache, and free from now on.
        unsafe { self.hot.list(class).push(block) }
    }

    /// Takes all blocks out of the list and from aside. Leaves the list's room unchanged.
    pub(super) fn take_all_listed(&self, class: usize) -> *mut Block {
        let list = self.hot.list(class).head.replace(ptr::null_mut());
        if !self.sampling.is_on() {
            return list;
        }
        // The blocks will be counted anew, so the due samples are dropped.
        self.sampling.sides[class].due.set(0);
        let aside = self.sampling.sides[class].aside.replace(ptr::null_mut());
        join(list, aside)
    }

    /// Puts a chain of `count` blocks into the empty list. Leaves its room unchanged.
    #[inline(always)]
    pub(super) fn set_listed(&self, class: usize, head: *mut Block, count: usize) {
        let list = self.hot.list(class);
        debug_assert!(list.head.get().is_null());
        debug_assert!(self.sampling.sides[class].aside.get().is_null());
        list.head.set(head);
        if self.sampling.is_on() && !head.is_null() {
            self.count_chain(class, head, count);
        }
    }

    /// Counts the list, and puts it aside from the first due block on. Nothing may be aside before.
    #[cold]
    #[inline(never)]
    fn count_chain(&self, class: usize, head: *mut Block, count: usize) {
        let (sampling, size) = (&self.sampling, size_class::size(class));
        let (side, list) = (&sampling.sides[class], self.hot.list(class));
        let (mut at, mut left, mut above) = (head, count, ptr::null_mut::<Block>());
        loop {
            let bytes = sampling.countdown.left();
            let before = (bytes - 1) / size;
            if before >= left {
                sampling.countdown.pass(left * size);
                return;
            }
            let due = if above.is_null() && before > 0 {
                // SAFETY: the chain has that many linked blocks, and is this thread's.
                let (_counted, rest) = unsafe { DepotChain::of(at, left) }.cut(before);
                rest.head()
            } else {
                behind(at, before)
            };
            if above.is_null() {
                if before == 0 {
                    list.head.set(ptr::null_mut());
                }
                side.aside.set(due);
            } else {
                // SAFETY: a free block of the chain, which is this thread's.
                unsafe { Block::set_below(above, due) };
            }
            // SAFETY: a free block of the chain, which is this thread's.
            unsafe { Block::set_below(due, ptr::null_mut()) };
            side.due.set(side.due.get() + 1);
            sampling.countdown.draw(period());
            left -= before + 1;
            // SAFETY: a linked block of the chain, which is this thread's.
            (above, at) = (due, unsafe { Block::next(due) });
        }
    }

    /// Whether the next block of `class`, whose list is empty, becomes a sample. If so, the list
    /// gets the blocks down to the next due one. The block that the sample replaces is counted
    /// anew.
    pub(crate) fn take_due(&self, class: usize) -> bool {
        let (side, list) = (&self.sampling.sides[class], self.hot.list(class));
        let due = side.due.get();
        if due == 0 {
            return false;
        }
        side.due.set(due - 1);
        let block = side.aside.get();
        if block.is_null() {
            return true;
        }
        // SAFETY: the first block aside, which is free, linked, and this thread's.
        let below = unsafe { Block::below(block) };
        // SAFETY: the first block aside, which is free, linked, and this thread's.
        let rest = unsafe { Block::next(block) };
        side.aside.set(below);
        list.head.set(join(list.head.get(), cut_before(rest, below)));
        if self.sampling.count(side.size.get() as usize) {
            // SAFETY: a free block, which was just taken.
            unsafe { Block::set_next(block, list.head.get()) };
            list.head.set(block);
        } else {
            self.put_aside(class, block);
        }
        true
    }

    /// [`Cache::refill`]. `None` if there is no memory, or a sample or guarded block is due.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_counted(&self, class: usize) -> Option<Allocated> {
        if !self.draws_guarded(class) {
            return None;
        }
        let given = self.refill_by_samples(class)?;
        self.count_for_guards(class);
        Some(given)
    }

    #[inline(always)]
    fn refill_by_samples(&self, class: usize) -> Option<Allocated> {
        if !self.sampling.is_on() {
            return self.refill_uncounted(class);
        }
        loop {
            if self.sampling.is_due(class) {
                return None;
            }
            // The limit may have been raised while sampling began.
            self.hot.know_nothing(true);
            // The block is null if the chain's first block is due, or was due before the list was
            // forced slow.
            let given = self.refill_uncounted(class)?;
            if !given.block.is_null() {
                return Some(given);
            }
        }
    }
}

/// Joins two chains, which may be empty. Walks the first.
fn join(first: *mut Block, second: *mut Block) -> *mut Block {
    if first.is_null() || second.is_null() {
        return if first.is_null() { second } else { first };
    }
    let last = last_before(first, ptr::null_mut());
    // SAFETY: the last block of a chain that is the caller's.
    unsafe { Block::set_next(last, second) };
    first
}

/// The part of a chain before its block `end`, or the whole chain if `end` is null.
fn cut_before(chain: *mut Block, end: *mut Block) -> *mut Block {
    if chain == end {
        return ptr::null_mut();
    }
    if !end.is_null() {
        // SAFETY: a block of a chain that is the caller's.
        unsafe { Block::set_next(last_before(chain, end), ptr::null_mut()) };
    }
    chain
}

/// `end` is a later block of the chain, or null.
fn last_before(chain: *mut Block, end: *mut Block) -> *mut Block {
    let mut last = chain;
    loop {
        // SAFETY: a chain of free blocks, which is the caller's.
        let next = unsafe { Block::next(last) };
        if next == end {
            return last;
        }
        last = next;
    }
}

/// The block `count` links behind `chain`, which is longer.
fn behind(chain: *mut Block, count: usize) -> *mut Block {
    let mut at = chain;
    for _ in 0..count {
        // SAFETY: a chain of free blocks, which is the caller's.
        at = unsafe { Block::next(at) };
    }
    at
}
