//! The shared registry: K objects for all threads, each behind a lock.
//!
//! ```text
//!   slots    [ 0 | 1 | 2 | ..... | K-1 | not made yet ....... ]
//!   slot     | front .... | state 4 | sleepers 2 | number 2 | precedence 8 | the object ....
//!                           one line begins here
//!
//!   acquire(current)   try it; held?  `policy` looks for another; none?  spin, then sleep
//! ```
//!
//! The registry does not remember which thread uses which slot: the thread does, in a word of
//! its own, and passes it. An acquire returns beside the slot whether an unlock is
//! owed (in a register: a flag in the slot would be a load for every caller).
//!
//! **The lock.** A try is one locked instruction, an unlock a plain store. A thread that has to
//! wait counts itself in `sleepers` and sleeps on `state`; an unlock looks at
//! `sleepers` after the store. Nothing orders that store before that load (it would
//! take a second locked instruction), so a sleeper can be missed by some nanoseconds:
//! it therefore never sleeps longer than a millisecond at a time. A waiter that
//! looks at a lock that has been contended for `PATIENCE_NS` gives up and returns that: it
//! may be a signal handler that has interrupted the very thread that holds the lock. (Not
//! its own wait counts, so such a handler waits in its first call and in no other.) A
//! handler that has interrupted its thread in the middle of something slow does not wait
//! at all: see `sync::is_interrupted`.
//!
//! **More of them.** K may be raised while threads run. What a reader needs is written
//! in the order in which it must not miss it: slots, strides, their number, K. A reader
//! that sees the old K with new strides may come by a cache twice, and is never outside.
//!
//! Invariants: slots below K are made, and never freed; the object is touched by the
//! holder of its lock alone.
//!
//! The design is that of scudo's shared TSD registry after LLVM's review D47289.
//!
//! Called by `cache` (malloc's caches, also those of CPUs) and `pool` (magazines).

use core::ops::Deref;

use crate::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use super::policy::{self, Caches, Choice};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// In `sleepers`: a maintenance poll is asked for, and the next unlock makes it. See
/// [`Slot::ask_to_poll`].
const POLL: u16 = 1 << 15;

/// The orders of taking a lock and of giving it back.
const TAKES: Ordering = Ordering::Acquire;
const GIVES: Ordering = Ordering::Release;

/// Makes a lock's word say that it is held. Returns whether it was free.
#[inline(always)]
fn set(state: &AtomicU32) -> bool {
    #[cfg(not(loom))]
    return state.fetch_or(HELD, TAKES) & HELD == FREE;
    // loom lets the store of an unlock come between the two halves of another thread's
    // read-modify-write, which the memory model does not; so here a try that fails writes nothing.
    #[cfg(loom)]
    state.compare_exchange(FREE, HELD, TAKES, Ordering::Relaxed).is_ok()
}

/// How often a waiter looks again before it sleeps.
const SPINS: u32 = 100;
/// How long a waiter sleeps before it looks for itself.
#[cfg(not(loom))]
const NAP_NS: u64 = 1_000_000;
/// So many times as long, at most, where more sleep: one of them will be woken, and a thousand that
/// look for themselves each millisecond would leave no time for anybody else.
#[cfg(not(loom))]
const MOST_NAPS: u64 = 64;
/// How long a lock may have been contended for, that a waiter still waits.
#[cfg(not(loom))]
const PATIENCE_NS: u64 = 200_000_000;

/// One of the objects, its lock, and in front of it what any thread may read.
#[repr(C, align(64))]
pub struct Slot<T, F = ()> {
    front: F,
    state: AtomicU32,
    sleepers: AtomicU16,
    /// Its number in the registry.
    number: u16,
    /// The clock at the first failed try since it was last locked; 0: none failed.
    precedence: AtomicUsize,
    value: T,
}

// SAFETY: the value is touched by the holder of the lock alone, the front by all.
unsafe impl<T: Send, F: Sync> Sync for Slot<T, F> {}

impl<T, F> Slot<T, F> {
    /// Where the front is, for those that come by its address.
    #[cfg(not(loom))]
    pub const FRONT: usize = core::mem::offset_of!(Self, front);

    /// A free slot, which will be this number in its registry.
    #[cfg(any(test, loom))]
    pub fn new(number: usize, front: F, value: T) -> Self {
        Self {
            front,
            state: AtomicU32::new(FREE),
            sleepers: AtomicU16::new(0),
            number: number as u16,
            precedence: AtomicUsize::new(0),
            value,
        }
    }

    /// A free slot of this number, of metadata that is zero but for that. `None`: there is no
    /// memory.
    ///
    /// # Safety
    ///
    /// Zero is valid for the front and the value.
    #[cfg(not(loom))]
    pub unsafe fn make(number: usize) -> Option<&'static mut Self> {
        let at: *mut Self =
            crate::chunk::metadata::alloc(size_of::<Self>(), align_of::<Self>()).cast();
        // SAFETY: null, or zeroed memory for a slot, which nobody else knows.
        let slot = unsafe { at.as_mut() }?;
        slot.number = number as u16;
        Some(slot)
    }

    /// The front and the value of a slot that nobody else knows.
    #[cfg(not(loom))]
    pub fn parts_mut(&mut self) -> (&mut F, &mut T) {
        (&mut self.front, &mut self.value)
    }

    /// Its number in the registry.
    #[cfg(not(loom))]
    pub fn number(&self) -> usize {
        self.number.into()
    }

    /// What any thread may read.
    #[inline(always)]
    pub fn front(&self) -> &F {
        &self.front
    }

    /// Tries to lock it: one locked instruction.
    #[inline(always)]
    pub fn try_lock(&self) -> bool {
        let free = set(&self.state);
        if free {
            self.precedence.store(0, Ordering::Relaxed);
        }
        free
    }

    /// Gives the lock back.
    ///
    /// # Safety
    ///
    /// The caller holds it.
    #[inline(always)]
    pub unsafe fn unlock(&self) {
        // SAFETY: the caller holds it.
        if unsafe { self.unlock_asks() } {
            // A caller of `unlock` has mostly done something slow, and polled already.
            let _poll = self.wake();
        }
    }

    /// Gives the lock back. Returns whether a thread sleeps for it, which the caller is to
    /// [`Slot::wake`]: it can do so in a tail call.
    ///
    /// # Safety
    ///
    /// The caller holds it.
    #[inline(always)]
    #[must_use]
    pub unsafe fn unlock_asks(&self) -> bool {
        self.state.store(FREE, GIVES);
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// What it keeps.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, or touches what any thread may.
    #[inline(always)]
    pub unsafe fn value(&self) -> &T {
        &self.value
    }

    /// After a try that failed: notes when, unless somebody has.
    #[cold]
    fn note_failure(&self) {
        if self.precedence.load(Ordering::Relaxed) == 0 {
            self.precedence.store(clock(), Ordering::Relaxed);
        }
    }

    /// Wakes a thread that sleeps for the lock. Returns whether a maintenance poll is asked for.
    #[cold]
    #[inline(never)]
    pub fn wake(&self) -> bool {
        let sleepers = self.sleepers.load(Ordering::Relaxed);
        #[cfg(not(loom))]
        if sleepers & !POLL != 0 {
            crate::os::futex_wake_one(&self.state);
        }
        sleepers & POLL != 0
    }

    /// Asks each unlock from now on for a maintenance poll, as if a thread slept for the lock; or
    /// no more. Any thread may ask.
    #[cfg(not(loom))]
    pub fn ask_to_poll(&self, on: bool) {
        if on {
            self.sleepers.fetch_or(POLL, Ordering::Relaxed);
        } else {
            self.sleepers.fetch_and(!POLL, Ordering::Relaxed);
        }
    }

    /// Whether each unlock is asked for one.
    #[cfg(not(loom))]
    pub fn is_asked_to_poll(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) & POLL != 0
    }

    /// The slot that keeps `value`.
    ///
    /// # Safety
    ///
    /// `value` is in a slot of this type that is never freed.
    #[cfg(not(loom))]
    pub unsafe fn containing(value: &T) -> &'static Self {
        let at = core::ptr::from_ref(value).cast::<u8>();
        let slot = at.wrapping_sub(core::mem::offset_of!(Self, value)).cast::<Self>();
        // SAFETY: by the contract.
        unsafe { &*slot }
    }

    /// Waits for the lock. False: it was not to be had in a long time.
    #[cfg(not(loom))]
    fn wait(&self) -> bool {
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return true;
            }
            core::hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let got = loop {
            if self.try_lock() {
                break true;
            }
            self.note_failure();
            let since = self.precedence.load(Ordering::Relaxed);
            // 0: it was given back, and taken again.
            if since != 0 && clock().wrapping_sub(since) > PATIENCE_NS as usize {
                break false;
            }
            let sleepers = u64::from(self.sleepers.load(Ordering::Relaxed) & !POLL);
            crate::os::futex_wait_for(&self.state, HELD, NAP_NS * sleepers.clamp(1, MOST_NAPS));
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        got
    }

    /// Waits for the lock: with loom, until it is there.
    #[cfg(loom)]
    fn wait(&self) -> bool {
        let _ = SPINS;
        while !self.try_lock() {
            loom::thread::yield_now();
        }
        true
    }

    /// Holds the lock across a fork: no other thread is in the object meanwhile.
    #[cfg(not(loom))]
    pub fn before_fork(&self) {
        while !self.wait() {
            // Contended for long, and yet it will be given back.
            crate::os::futex_wait_for(&self.state, HELD, NAP_NS);
        }
    }

    /// In a forked child: threads that slept are not here.
    #[cfg(not(loom))]
    pub fn forget_sleepers_after_fork(&self) {
        self.sleepers.fetch_and(POLL, Ordering::Relaxed);
    }

    /// Gives the lock back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Slot::before_fork`] in the forking thread or its copy.
    #[cfg(not(loom))]
    pub unsafe fn after_fork(&self) {
        // SAFETY: held before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.unlock() };
    }
}

/// A number that is larger later, and hardly ever 0.
#[cfg(not(loom))]
fn clock() -> usize {
    crate::os::now_ns() as usize
}

#[cfg(loom)]
fn clock() -> usize {
    1
}

/// Whether the calling thread holds every lock, because it forks.
fn holds_all() -> bool {
    #[cfg(not(loom))]
    return crate::sync::holds_all();
    #[cfg(loom)]
    false
}

/// Whether the caller must not wait: see `sync::is_interrupted`.
fn is_interrupted() -> bool {
    #[cfg(not(loom))]
    return crate::sync::is_interrupted();
    #[cfg(loom)]
    false
}

/// A slot that the caller holds; gives the lock back when dropped.
pub struct Held<T: 'static, F: 'static = ()> {
    slot: &'static Slot<T, F>,
    /// False where the thread held the lock already, across a fork.
    owes_unlock: bool,
    /// Tries that failed before.
    pub failed: u32,
    /// Whether the thread had to wait.
    pub waited: bool,
}

impl<T, F> Held<T, F> {
    /// A slot that the caller has just locked.
    pub fn of(slot: &'static Slot<T, F>) -> Self {
        Self { slot, owes_unlock: true, failed: 0, waited: false }
    }

    /// The slot.
    pub fn slot(&self) -> &'static Slot<T, F> {
        self.slot
    }
}

impl<T, F> Deref for Held<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { self.slot.value() }
    }
}

impl<T, F> Drop for Held<T, F> {
    fn drop(&mut self) {
        if self.owes_unlock {
            // SAFETY: the lock is held.
            unsafe { self.slot.unlock() };
        }
    }
}

/// At most `MOST` objects that all threads share.
pub struct Shared<T: 'static, F: 'static, const MOST: usize> {
    slots: [AtomicPtr<Slot<T, F>>; MOST],
    strides: [AtomicU16; MOST],
    stride_count: AtomicUsize,
    count: AtomicUsize,
    /// The next number, for threads that have none yet.
    next: AtomicUsize,
}

impl<T, F, const MOST: usize> Shared<T, F, MOST> {
    /// A registry of nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST],
            strides: [const { AtomicU16::new(0) }; MOST],
            stride_count: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// A registry of nothing.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            strides: core::array::from_fn(|_| AtomicU16::new(0)),
            stride_count: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// The slot of a number below [`Shared::count`].
    pub fn slot(&self, index: usize) -> &'static Slot<T, F> {
        let slot = self.slots[index].load(Ordering::Acquire);
        debug_assert!(!slot.is_null());
        // SAFETY: slots below the count were made before it was raised, and are never freed.
        unsafe { &*slot }
    }

    /// The slot of a number; where there are fewer, the remainder counts.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn nearest(&self, number: usize) -> &'static Slot<T, F> {
        let count = self.count();
        // Both are small, and this is a shorter division.
        let remainder = || (number as u32 % count as u32) as usize;
        self.slot(if number < count { number } else { remainder() })
    }

    /// All slots.
    #[cfg(not(loom))]
    pub fn all(&self) -> impl Iterator<Item = &'static Slot<T, F>> {
        (0..self.count()).map(|index| self.slot(index))
    }

    /// Raises the number of objects to `count`; `make` makes the slot of a number, or
    /// says that there is no memory: then there are fewer. Returns how many there are.
    ///
    /// One thread at a time may do this.
    pub fn raise(
        &self,
        count: usize,
        mut make: impl FnMut(usize) -> Option<&'static Slot<T, F>>,
    ) -> usize {
        let before = self.count();
        let mut made = before;
        while made < count.min(MOST) {
            let Some(slot) = make(made) else { break };
            let slot = core::ptr::from_ref(slot).cast_mut();
            self.slots[made].store(slot, Ordering::Release);
            made += 1;
        }
        if made > before {
            let mut strides = 0;
            for stride in policy::strides(made) {
                self.strides[strides].store(stride as u16, Ordering::Release);
                strides += 1;
            }
            self.stride_count.store(strides, Ordering::Release);
            self.count.store(made, Ordering::Release);
        }
        made
    }

    /// A slot for a thread that has none yet: each in turn.
    pub fn assign(&self) -> &'static Slot<T, F> {
        self.slot(self.next.fetch_add(1, Ordering::Relaxed) % self.count())
    }

    /// Locks the slot that the thread had last, or another; that is then the one that it
    /// has. `None`: none was to be had in a long time.
    #[inline]
    pub fn acquire(&self, current: &'static Slot<T, F>) -> Option<Held<T, F>> {
        if current.try_lock() {
            return Some(Held { slot: current, owes_unlock: true, failed: 0, waited: false });
        }
        self.acquire_contended(current)
    }

    /// Locks this slot and no other. `None`: it was not to be had in a long time.
    #[cfg(not(loom))]
    pub fn acquire_this(&self, slot: &'static Slot<T, F>) -> Option<Held<T, F>> {
        if holds_all() {
            return Some(Held { slot, owes_unlock: false, failed: 0, waited: false });
        }
        // Made only where it was got: one that is dropped gives the lock back.
        slot.wait().then(|| Held { slot, owes_unlock: true, failed: 0, waited: true })
    }

    /// [`Shared::acquire`] where a try of `current` has just failed.
    #[cold]
    #[inline(never)]
    pub fn acquire_contended(&self, current: &'static Slot<T, F>) -> Option<Held<T, F>> {
        if holds_all() {
            return Some(Held { slot: current, owes_unlock: false, failed: 0, waited: false });
        }
        current.note_failure();
        let seen = Seen { registry: self, count: self.count(), failed: core::cell::Cell::new(1) };
        let choice = policy::choose(&seen, current.number.into());
        let failed = seen.failed.get();
        match choice {
            Choice::Locked(index) => {
                Some(Held { slot: self.slot(index), owes_unlock: true, failed, waited: false })
            }
            Choice::Wait(_) if is_interrupted() => None,
            Choice::Wait(index) => {
                let slot = self.slot(index);
                let got = slot.wait();
                got.then(|| Held { slot, owes_unlock: true, failed, waited: true })
            }
        }
    }
}

/// The slots as the policy sees them: as many as there were when it began to look.
struct Seen<'a, T: 'static, F: 'static, const MOST: usize> {
    registry: &'a Shared<T, F, MOST>,
    count: usize,
    failed: core::cell::Cell<u32>,
}

impl<T, F, const MOST: usize> Caches for Seen<'_, T, F, MOST> {
    fn count(&self) -> usize {
        self.count
    }

    fn strides(&self) -> usize {
        self.registry.stride_count.load(Ordering::Acquire)
    }

    fn stride(&self, index: usize) -> usize {
        self.registry.strides[index].load(Ordering::Acquire).into()
    }

    fn try_lock(&self, cache: usize) -> bool {
        let slot = self.registry.slot(cache);
        let got = slot.try_lock();
        if !got {
            slot.note_failure();
            self.failed.set(self.failed.get() + 1);
        }
        got
    }

    fn precedence(&self, cache: usize) -> usize {
        self.registry.slot(cache).precedence.load(Ordering::Relaxed)
    }
}

// (The modules' paths are given because `bench/policies` includes this file.)
#[cfg(all(test, loom))]
#[path = "shared/loom_tests.rs"]
mod loom_tests;
#[cfg(all(test, not(loom)))]
#[path = "shared/tests.rs"]
mod tests;
