//! Sampling: how a thread's own cache chooses the blocks of a heap profile without a countdown in `malloc`.
//!
//! ```text
//!   off   malloc <-- list <-- free
//!
//!   on    malloc <-- list <-- countdown <-- free          a block's bytes are subtracted when it comes into the list,
//!                     |       countdown <-- chains        because it leaves the list only by being allocated
//!                     | empty, and a sample is due
//!                   aside     the list as it was when the countdown reached zero
//! ```
//!
//! So `malloc` runs at its full speed, and blocks are handed out in the same order as without sampling. The block with
//! which the countdown reaches zero is to be a sample when it is allocated next: it and the list below it are put
//! *aside*. When the list is empty again, `malloc` takes the slow path, where a sample is *due*: the caller makes one in
//! place of the block (see `heap::sampling`), and the list gets back what was aside. `free` subtracts a block's bytes
//! in a slower function: while sampling is on, the hot part's limit is 0, so the fast path of `free` knows no block.
//!
//! The countdown begins at a random distance (`poisson`). A block whose bytes were subtracted may go back to its slab
//! without being allocated; that changes no other block's probability.
//!
//! A thread begins and ends to sample by itself, in its next slow operation after [`set_period`]. Threads that share
//! caches have no lists of their own: `heap::sampling` counts each of their calls, which miss in closed lists
//! (heads of null in the gate, [`HotStub::count_misses`](super::HotStub::count_misses) in shared caches).
//!
//! Invariants: while sampling is on, blocks in a list or aside were counted once since they came there, and all
//! others of the cache (withheld, in the depot) were not; list and aside together have as many
//! blocks as the list's room says. Only the thread itself touches either.
//!
//! Called by the slow paths of `cache`, and by `heap`.

use core::cell::Cell;
use core::ptr;

use super::depot::DepotChain;
use super::{Allocated, CACHES, Cache, Use, arrays, magazines};
use crate::address_map::CLASS_STEP;
use crate::os;
use crate::poisson;
use crate::remote::Block;
use crate::size_class::{self, CLASSES};
use crate::sync::atomic::{AtomicUsize, Ordering, fence};

/// Bytes from one sample to the next, on average; 0: nothing is sampled.
static PERIOD: AtomicUsize = AtomicUsize::new(0);

/// Bytes from one sample to the next, on average; 0: nothing is sampled.
#[inline(always)]
pub(crate) fn period() -> usize {
    PERIOD.load(Ordering::Relaxed)
}

/// Samples a block every `bytes` bytes from now on, or none (0). Each thread follows at its next slow operation.
pub(crate) fn set_period(bytes: usize) {
    PERIOD.store(bytes, Ordering::Relaxed);
    // What is made meanwhile looks at the period after it is there for all to see, and here it is looked for after that is set.
    fence(Ordering::SeqCst);
    arrays::count_calls(bytes != 0);
    magazines::count_calls(bytes != 0);
    for cache in CACHES.all() {
        cache.ask_to_follow_sampling();
    }
}

/// Has a gate or a shared cache that was just made count its calls, by `count`, if blocks are sampled.
pub(super) fn look_again(count: fn(bool)) {
    fence(Ordering::SeqCst);
    if period() != 0 {
        count(true);
        fence(Ordering::SeqCst);
        if period() == 0 {
            count(false);
        }
    }
}

/// What is kept of a class: as long as a [`super::List`], so that one offset leads to both.
#[repr(C)]
struct Side {
    /// What was in the list when the count came to its end.
    aside: Cell<*mut Block>,
    /// Samples that are due when the list is empty.
    due: Cell<u32>,
    /// Bytes in a block.
    size: Cell<u32>,
}

const _: () = assert!(size_of::<Side>() == CLASS_STEP);

/// What a cache knows of sampling. Zero: nothing is sampled.
#[repr(C)]
pub(crate) struct Sampling {
    /// Bytes to the next sample.
    left: Cell<usize>,
    sides: [Side; CLASSES],
    random: Cell<u64>,
    is_on: Cell<bool>,
}

impl Sampling {
    /// Whether blocks of the cache's are sampled.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Counts a block of `size` bytes. False: it is to be a sample.
    #[inline(always)]
    pub(crate) fn count(&self, size: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(size));
        if left > size {
            return true;
        }
        self.draw();
        false
    }

    #[cold]
    fn draw(&self) {
        let mut random = self.random.get();
        let left = match period() {
            // Sampling ends just now.
            0 => usize::MAX / 2,
            period => poisson::distance(&mut random, period),
        };
        self.left.set(left);
        self.random.set(random);
    }

    /// Counts a block of `class` that is about to be handed out without having been in the list. False: a sample is
    /// due in its place, and the caller keeps the block.
    pub(super) fn count_given(&self, class: usize) -> bool {
        if !self.is_on() || self.count(size_class::size(class)) {
            return true;
        }
        let due = &self.sides[class].due;
        due.set(due.get() + 1);
        false
    }

    /// The first block of a chain of `class` was counted and is to be a sample, whatever has become of the chain.
    #[cold]
    pub(super) fn stays_due(&self, class: usize) {
        let due = &self.sides[class].due;
        due.set(due.get().max(1));
    }

    /// Whether the next block of `class`, whose list is empty, is to be a sample.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        self.is_on() && self.sides[class].due.get() != 0
    }
}

impl Cache {
    /// Begins to sample, or ends. The calling thread is the cache's and has entered it, or the cache is no thread's and
    /// its lock is the caller's.
    pub(crate) fn follow_sampling(&self) {
        self.no_longer_asked_to_follow_sampling();
        // Anew, if it is on: the period may be another one.
        self.end_sampling();
        if period() != 0 && self.owned_by() == Use::Thread {
            self.begin_sampling();
        }
    }

    /// Ends to sample until the thread's next slow operation, for there can be no sample just now.
    pub(crate) fn pause_sampling(&self) {
        self.end_sampling();
        self.ask_to_follow_sampling();
    }

    fn begin_sampling(&self) {
        let sampling = &self.sampling;
        let seed = ptr::from_ref(self).addr() as u64 ^ os::now_ns().rotate_left(32);
        sampling.random.set(seed | 1);
        sampling.draw();
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
    }

    /// Ends to sample, as [`Cache::follow_sampling`].
    pub(super) fn end_sampling(&self) {
        if !self.sampling.is_on() {
            return;
        }
        for class in 0..CLASSES {
            let head = self.take_all_listed(class);
            self.hot.list(class).head.set(head);
        }
        self.sampling.is_on.set(false);
        self.hot.know_nothing(false);
    }

    /// In a forked child, for the cache of a thread that is not here, whose blocks are forgotten.
    pub(super) fn forget_sampling_after_fork(&self) {
        for side in &self.sampling.sides {
            side.aside.set(ptr::null_mut());
            side.due.set(0);
        }
        self.sampling.is_on.set(false);
        self.hot.know_nothing(false);
    }

    /// Takes a block of the cache's own back, whose thread's are sampled. True: the list is now too long.
    ///
    /// # Safety
    ///
    /// [`Sampling::is_on`]; the block is of the class whose list is at `offset`, of a slab of this cache, and free
    /// from now on.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn put_sampled(&self, offset: usize, block: *mut Block) -> bool {
        let side = ptr::from_ref(&self.sampling.sides).cast::<u8>().wrapping_add(offset);
        // SAFETY: a class's offset, where its side is as its list is in the hot part.
        let side = unsafe { &*side.cast::<Side>() };
        // SAFETY: the offset of a list.
        let list = unsafe { self.hot.list_at(offset) };
        if self.sampling.count(side.size.get() as usize) {
            // SAFETY: as the caller promises.
            return unsafe { list.push(block) };
        }
        self.put_aside(offset / CLASS_STEP, block);
        list.room.set(list.room.get() - 1);
        list.room.get() < 0
    }

    /// Puts a free block of `class` aside, which is to be a sample when it is allocated next.
    fn put_aside(&self, class: usize, block: *mut Block) {
        let (side, list) = (&self.sampling.sides[class], self.hot.list(class));
        if side.due.get() == 0 {
            side.aside.set(list.head.replace(ptr::null_mut()));
        }
        // Where one is due already, this one is due behind it.
        // SAFETY: a free block, which the caller gives away.
        unsafe { Block::set_next(block, side.aside.get()) };
        side.aside.set(block);
        side.due.set(side.due.get() + 1);
    }

    /// Takes a block of the cache's own back. True: the list is now too long.
    ///
    /// # Safety
    ///
    /// The block is of `class` and a slab of this cache, and free from now on.
    #[inline]
    #[must_use]
    pub(super) unsafe fn put_listed(&self, class: usize, block: *mut Block) -> bool {
        if self.sampling.is_on() {
            // SAFETY: just checked, and as the caller promises.
            return unsafe { self.put_sampled(class * CLASS_STEP, block) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.hot.list(class).push(block) }
    }

    /// Takes all blocks out of the list of `class`, and what is aside. Its room stays as it is.
    pub(super) fn take_all_listed(&self, class: usize) -> *mut Block {
        let list = self.hot.list(class).head.replace(ptr::null_mut());
        if !self.sampling.is_on() {
            return list;
        }
        // What was counted was so for nothing, and the sample in it, too.
        self.sampling.sides[class].due.set(0);
        let aside = self.sampling.sides[class].aside.replace(ptr::null_mut());
        join(list, aside)
    }

    /// Puts a chain of `count` blocks into the list of `class`, which has none. Its room stays as it is.
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

    /// Counts a chain of `count` blocks, which is the list of `class`, and cuts it before the first one that is to be a
    /// sample.
    #[cold]
    #[inline(never)]
    fn count_chain(&self, class: usize, head: *mut Block, count: usize) {
        let (sampling, size) = (&self.sampling, size_class::size(class));
        let (side, list) = (&sampling.sides[class], self.hot.list(class));
        let (mut left, mut is_cut) = (count, false);
        loop {
            let bytes = sampling.left.get();
            let before = (bytes - 1) / size;
            if before >= left {
                sampling.left.set(bytes - left * size);
                return;
            }
            if !is_cut && before == 0 {
                side.aside.set(join(list.head.replace(ptr::null_mut()), side.aside.get()));
            } else if !is_cut {
                // SAFETY: the chain has so many blocks, linked, and is this thread's.
                let (_counted, rest) = unsafe { DepotChain::of(head, count) }.cut(before);
                side.aside.set(join(rest.head(), side.aside.get()));
            }
            is_cut = true;
            side.due.set(side.due.get() + 1);
            left -= before + 1;
            sampling.draw();
        }
    }

    /// Whether the next block of `class`, whose list is empty, is to be a sample. If it is, the list gets back
    /// what was aside, unless another one is due. The block in whose place it is made is counted anew.
    pub(crate) fn take_due(&self, class: usize) -> bool {
        let (side, list) = (&self.sampling.sides[class], self.hot.list(class));
        let due = side.due.get();
        if due == 0 {
            return false;
        }
        side.due.set(due - 1);
        let block = side.aside.get();
        if !block.is_null() {
            // SAFETY: the first block aside, which are linked and this thread's.
            side.aside.set(unsafe { Block::next(block) });
        }
        if due == 1 {
            list.head.set(join(list.head.get(), side.aside.replace(ptr::null_mut())));
        }
        if !block.is_null() {
            if self.sampling.count(side.size.get() as usize) {
                // SAFETY: a free block, which was just taken.
                unsafe { Block::set_next(block, list.head.get()) };
                list.head.set(block);
            } else {
                self.put_aside(class, block);
            }
        }
        true
    }

    /// Hands out a block of `class`, whose list is empty, and fills the list. `None`: there is no memory, or a sample is
    /// due.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_counted(&self, class: usize) -> Option<Allocated> {
        loop {
            if self.sampling.is_due(class) {
                return None;
            }
            // A visitor may have raised the limit while sampling began.
            self.hot.know_nothing(true);
            // Null: the first one of the chain is to be a sample, or was, and the chain was withheld.
            let given = self.refill_uncounted(class)?;
            if !given.block.is_null() {
                return Some(given);
            }
        }
    }
}

/// Two chains as one; either may be empty. Takes a step for each block of the first.
fn join(first: *mut Block, second: *mut Block) -> *mut Block {
    if first.is_null() || second.is_null() {
        return if first.is_null() { second } else { first };
    }
    let mut last = first;
    loop {
        // SAFETY: a chain of free blocks, which is the caller's.
        let next = unsafe { Block::next(last) };
        if next.is_null() {
            break;
        }
        last = next;
    }
    // SAFETY: the last block of a chain that is the caller's.
    unsafe { Block::set_next(last, second) };
    first
}
