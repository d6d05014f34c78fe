//! The shared registry: K objects for all threads, each behind a lock.
//!
//! ```text
//!   slots    [ 0 | 1 | 2 | ..... | K-1 | not made yet ....... ]
//!   slot     | front .... | state 4 | sleepers 2 | number 2 | precedence 8 | the object ....
//!                           ^ a cache line begins here
//!
//!   acquire(current)   try it; if held, `policy` looks for another; else spin, then sleep
//! ```
//!
//! **The lock.** A try is one locked instruction, an unlock a plain store. A waiting thread counts
//! itself in `sleepers` and sleeps on `state`. An unlock reads `sleepers` after its store, but
//! nothing orders the two, so an unlock may miss a sleeper. Therefore a sleeper wakes by itself
//! after a millisecond, or later if more threads sleep. A waiter may be a signal handler that has
//! interrupted the lock's holder. So a waiter gives up when the lock has been contended for
//! `PATIENCE_NS`. A handler that has interrupted a slow operation does not wait at all: see
//! `sync::is_interrupted`.
//!
//! Invariants: slots below K exist, and are never freed; only the holder of a slot's lock accesses
//! its object. K may grow while threads run. Each thread remembers its last slot.
//!
//! The design is that of scudo's shared TSD registry after LLVM's review D47289. Called by `cache`
//! (malloc's caches, also those of CPUs) and `pool` (magazines).

use core::ops::Deref;

use crate::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use super::policy::{self, Caches, Choice};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// In `sleepers`: a maintenance poll is requested. See [`Slot::ask_to_poll`].
const POLL: u16 = 1 << 15;

const TAKES: Ordering = Ordering::Acquire;
const GIVES: Ordering = Ordering::Release;

#[inline(always)]
fn set(state: &AtomicU32) -> bool {
    #[cfg(not(loom))]
    return state.fetch_or(HELD, TAKES) & HELD == FREE;
    // Loom lets the store of an unlock come between the two halves of another thread's
    // read-modify-write. The memory model forbids that, so under loom a failed try writes nothing.
    #[cfg(loom)]
    state.compare_exchange(FREE, HELD, TAKES, Ordering::Relaxed).is_ok()
}

const SPINS: u32 = 100;
#[cfg(not(loom))]
const NAP_NS: u64 = 1_000_000;
/// If more threads sleep, a sleep is up to this many times longer, because wake-ups cost time.
#[cfg(not(loom))]
const MOST_NAPS: u64 = 64;
/// A waiter gives up when its lock has been contended for this time.
#[cfg(not(loom))]
const PATIENCE_NS: u64 = 200_000_000;

/// An object and its lock. Any thread may read `front`.
#[repr(C, align(64))]
pub struct Slot<T, F = ()> {
    front: F,
    state: AtomicU32,
    sleepers: AtomicU16,
    number: u16,
    /// The time of the first failed try since the slot was last locked; 0: no try has failed.
    precedence: AtomicUsize,
    value: T,
}

// SAFETY: only the holder of the lock accesses the value; the front is `Sync`.
unsafe impl<T: Send, F: Sync> Sync for Slot<T, F> {}

impl<T, F> Slot<T, F> {
    /// The offset of the front, for users of its address.
    #[cfg(not(loom))]
    pub const FRONT: usize = core::mem::offset_of!(Self, front);

    /// A free slot with this number in its registry.
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

    /// A free slot with this number, in zeroed metadata. `None`: there is no memory.
    ///
    /// # Safety
    ///
    /// Zero is valid for the front and the value.
    #[cfg(not(loom))]
    pub unsafe fn make(number: usize) -> Option<&'static mut Self> {
        let at: *mut Self =
            crate::chunk::metadata::alloc(size_of::<Self>(), align_of::<Self>()).cast();
        // SAFETY: null, or zeroed memory for a slot, which no other thread knows.
        let slot = unsafe { at.as_mut() }?;
        slot.number = number as u16;
        Some(slot)
    }

    /// The front and the value of a slot that no other thread knows.
    #[cfg(not(loom))]
    pub fn parts_mut(&mut self) -> (&mut F, &mut T) {
        (&mut self.front, &mut self.value)
    }

    /// The slot's number in the registry.
    #[cfg(not(loom))]
    pub fn number(&self) -> usize {
        self.number.into()
    }

    /// The part that any thread may read.
    #[inline(always)]
    pub fn front(&self) -> &F {
        &self.front
    }

    /// Tries to lock the slot: one locked instruction.
    #[inline(always)]
    pub fn try_lock(&self) -> bool {
        let free = set(&self.state);
        if free {
            self.precedence.store(0, Ordering::Relaxed);
        }
        free
    }

    /// Unlocks the slot.
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    #[inline(always)]
    pub unsafe fn unlock(&self) {
        // SAFETY: by the contract the caller holds the lock.
        if unsafe { self.unlock_asks() } {
            // A caller of `unlock` has usually done slow work, in which it has polled.
            let _poll = self.wake();
        }
    }

    /// Unlocks the slot. True: the caller must call [`Slot::wake`].
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    #[inline(always)]
    #[must_use]
    pub unsafe fn unlock_asks(&self) -> bool {
        self.state.store(FREE, GIVES);
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// The object.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, or uses only what any thread may use.
    #[inline(always)]
    pub unsafe fn value(&self) -> &T {
        &self.value
    }

    #[cold]
    fn note_failure(&self) {
        if self.precedence.load(Ordering::Relaxed) == 0 {
            self.precedence.store(clock(), Ordering::Relaxed);
        }
    }

    /// Wakes a thread that sleeps for the lock. Returns whether a maintenance poll is requested.
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

    /// Requests polls from callers of [`Slot::wake`], or ends that. Any thread may call this.
    #[cfg(not(loom))]
    pub fn ask_to_poll(&self, on: bool) {
        if on {
            self.sleepers.fetch_or(POLL, Ordering::Relaxed);
        } else {
            self.sleepers.fetch_and(!POLL, Ordering::Relaxed);
        }
    }

    /// Whether a maintenance poll is requested.
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
        // SAFETY: by the contract the value lies in such a slot, which is never freed.
        unsafe { &*slot }
    }

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
            // 0: the lock was taken again since the last failed try.
            if since != 0 && clock().wrapping_sub(since) > PATIENCE_NS as usize {
                break false;
            }
            let sleepers = u64::from(self.sleepers.load(Ordering::Relaxed) & !POLL);
            crate::os::futex_wait_for(&self.state, HELD, NAP_NS * sleepers.clamp(1, MOST_NAPS));
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        got
    }

    #[cfg(loom)]
    fn wait(&self) -> bool {
        let _ = SPINS;
        while !self.try_lock() {
            loom::thread::yield_now();
        }
        true
    }

    /// Holds the lock across a fork, so that no other thread is in the object.
    #[cfg(not(loom))]
    pub fn before_fork(&self) {
        while !self.wait() {
            crate::os::futex_wait_for(&self.state, HELD, NAP_NS);
        }
    }

    /// In a forked child: forgets sleeping threads, which the child lacks.
    #[cfg(not(loom))]
    pub fn forget_sleepers_after_fork(&self) {
        self.sleepers.fetch_and(POLL, Ordering::Relaxed);
    }

    /// Releases the lock on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Slot::before_fork`] in the forking thread or its copy.
    #[cfg(not(loom))]
    pub unsafe fn after_fork(&self) {
        // SAFETY: this thread (in a child: its original) has held the lock since before the fork.
        unsafe { self.unlock() };
    }
}

/// Grows with time, and is hardly ever 0.
#[cfg(not(loom))]
fn clock() -> usize {
    crate::os::now_ns() as usize
}

#[cfg(loom)]
fn clock() -> usize {
    1
}

fn holds_all() -> bool {
    #[cfg(not(loom))]
    return crate::sync::holds_all();
    #[cfg(loom)]
    false
}

fn is_interrupted() -> bool {
    #[cfg(not(loom))]
    return crate::sync::is_interrupted();
    #[cfg(loom)]
    false
}

/// A locked slot; unlocks it when dropped.
pub struct Held<T: 'static, F: 'static = ()> {
    slot: &'static Slot<T, F>,
    owes_unlock: bool,
    /// Failed tries before the lock.
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
    next: AtomicUsize,
}

impl<T, F, const MOST: usize> Shared<T, F, MOST> {
    /// An empty registry.
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

    /// An empty registry.
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

    /// The number of objects.
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

    /// The slot of a number, modulo the number of slots.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn nearest(&self, number: usize) -> &'static Slot<T, F> {
        let count = self.count();
        let remainder = || (number as u32 % count as u32) as usize;
        self.slot(if number < count { number } else { remainder() })
    }

    /// All slots.
    #[cfg(not(loom))]
    pub fn all(&self) -> impl Iterator<Item = &'static Slot<T, F>> {
        (0..self.count()).map(|index| self.slot(index))
    }

    /// Raises the number of objects to `count`. `make` makes the slot of a number; if it fails for
    /// lack of memory, there are fewer objects. Returns the number of objects. Only one thread at a
    /// time may call this.
    ///
    /// Other threads may use the registry meanwhile. The fields are written in this order: slots,
    /// strides, the number of strides, K. A reader that sees the old K with new strides may visit a
    /// slot twice, but stays in bounds.
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

    /// A slot for a thread that has none yet. Threads get the slots in turn.
    pub fn assign(&self) -> &'static Slot<T, F> {
        self.slot(self.next.fetch_add(1, Ordering::Relaxed) % self.count())
    }

    /// Locks the thread's last slot, or another. `None`: all were contended for too long.
    #[inline]
    pub fn acquire(&self, current: &'static Slot<T, F>) -> Option<Held<T, F>> {
        if current.try_lock() {
            return Some(Held { slot: current, owes_unlock: true, failed: 0, waited: false });
        }
        self.acquire_contended(current)
    }

    /// Locks this slot and no other. `None`: it was contended for too long.
    #[cfg(not(loom))]
    pub fn acquire_this(&self, slot: &'static Slot<T, F>) -> Option<Held<T, F>> {
        if holds_all() {
            return Some(Held { slot, owes_unlock: false, failed: 0, waited: false });
        }
        slot.wait().then(|| Held { slot, owes_unlock: true, failed: 0, waited: true })
    }

    /// [`Shared::acquire`] after a failed try of `current`.
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

/// The slots as the policy sees them: `count` is their number when the search began.
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

// The modules' paths are given because `bench/policies` includes this file.
#[cfg(all(test, loom))]
#[path = "shared/loom_tests.rs"]
mod loom_tests;
#[cfg(all(test, not(loom)))]
#[path = "shared/tests.rs"]
mod tests;
