//! A lock that costs its owner two stores and a load, and each visitor a system call.
//!
//! ```text
//!   owner     is_in = 1 | light | is_visited?  no: work, is_in = 0
//!                                              yes: is_in = 0, wait for the inner lock, work
//!   visitor   inner lock | is_visited = 1 | heavy | is_in?  no: work, is_visited = 0, unlock
//!                                                           yes: wait, or give up
//! ```
//!
//! The owner is one thread, which takes the lock often; visitors are rare. Each side needs a fence
//! between its store and its load (Dekker's algorithm). The visitor makes both fences: `membarrier`
//! runs a fence in every thread of the process. So the owner's own fence is only for the compiler.
//! Without `membarrier` a lock counts as visited for ever, and the owner always takes the inner
//! lock. (Dice, Huang, Yang: "Asymmetric Dekker synchronization", 2001; biased locks and asymmetric
//! fences since.)
//!
//! The inner lock alone excludes all threads except an owner who is in. It is also the lock of an
//! object without an owner. Called by `cache` and `heap`.
//!
//! Invariants: only the holder of the inner lock changes `is_visited`, unless no other thread knows
//! the lock. Only the owner sets `is_in`. A visitor works only after it found `is_in` unset. The
//! owner works only after it found `is_visited` unset, or with the inner lock. So only one works.

use super::atomic::{AtomicBool, Ordering, fence};
use super::{Guard, Lock};

/// A lock with one owner and rare visitors. Zero is free; [`OwnerLock::begin`] readies it.
pub struct OwnerLock {
    is_in: AtomicBool,
    is_visited: AtomicBool,
    inner: Lock<()>,
}

#[cfg(not(loom))]
const PATIENCE: usize = 1000;

/// The owner is in.
pub struct Owning<'a> {
    lock: &'a OwnerLock,
    /// The inner lock, if the owner found the lock visited.
    waited: Option<Guard<'a, ()>>,
}

/// The owner is in, and did not wait. The drop of this guard is one store.
pub struct QuickOwning<'a>(&'a OwnerLock);

/// A visitor is in.
pub struct Visit<'a> {
    lock: &'a OwnerLock,
    _inner: Guard<'a, ()>,
}

impl OwnerLock {
    /// Readies a lock that no other thread knows yet.
    #[cfg(not(loom))]
    pub fn begin(&self) {
        self.is_visited.store(is_always_visited(), Ordering::Relaxed);
    }

    /// Waits until no visitor is in, and keeps visitors out.
    ///
    /// # Safety
    ///
    /// The calling thread is the owner: until the guard is dropped no other thread calls this.
    #[inline(always)]
    pub unsafe fn own(&self) -> Owning<'_> {
        self.is_in.store(true, Ordering::Relaxed);
        light();
        // Acquires the last visitor's writes.
        if self.is_visited.load(Ordering::Acquire) {
            return self.own_after_visit();
        }
        Owning { lock: self, waited: None }
    }

    /// [`OwnerLock::own`]. `None`: a visitor is in, or there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// As for [`OwnerLock::own`].
    #[inline(always)]
    pub unsafe fn try_own(&self) -> Option<QuickOwning<'_>> {
        self.is_in.store(true, Ordering::Relaxed);
        light();
        let owning = QuickOwning(self);
        // Acquires the last visitor's writes.
        if self.is_visited.load(Ordering::Acquire) { None } else { Some(owning) }
    }

    #[cold]
    #[inline(never)]
    fn own_after_visit(&self) -> Owning<'_> {
        // A visitor may be waiting for this store.
        self.is_in.store(false, Ordering::Release);
        Owning { lock: self, waited: Some(self.inner.lock()) }
    }

    /// Visits. `None`: the owner or another visitor is in, or the kernel refuses the fence.
    pub fn try_visit(&self) -> Option<Visit<'_>> {
        // This early look only avoids the costly fence. It proves nothing.
        if self.is_in.load(Ordering::Relaxed) {
            return None;
        }
        let visit = self.announce(self.inner.try_lock()?)?;
        self.has_left().then_some(visit)
    }

    /// Waits until no other thread is in, and visits. `None`: the kernel refuses the fence, or the
    /// owner stays in for too long, perhaps because it does not run.
    #[cfg(not(loom))]
    pub fn visit(&self) -> Option<Visit<'_>> {
        let visit = self.announce(self.inner.lock())?;
        for _ in 0..PATIENCE {
            if self.has_left() {
                return Some(visit);
            }
            crate::os::yield_now();
        }
        None
    }

    fn announce<'a>(&'a self, inner: Guard<'a, ()>) -> Option<Visit<'a>> {
        self.is_visited.store(true, Ordering::Relaxed);
        let visit = Visit { lock: self, _inner: inner };
        heavy().then_some(visit)
    }

    /// Acquires the owner's writes.
    fn has_left(&self) -> bool {
        !self.is_in.load(Ordering::Acquire)
    }

    /// Waits for the inner lock, for an object without an owner.
    #[cfg(not(loom))]
    pub fn lock(&self) -> Guard<'_, ()> {
        self.inner.lock()
    }

    /// Takes the inner lock if it is free.
    #[cfg(not(loom))]
    pub fn try_lock(&self) -> Option<Guard<'_, ()>> {
        self.inner.try_lock()
    }

    /// Takes the inner lock without a guard, around a fork. See [`Lock::acquire`].
    #[cfg(not(loom))]
    pub fn acquire(&self) -> bool {
        self.inner.acquire()
    }

    /// Gives the inner lock back.
    ///
    /// # Safety
    ///
    /// As [`Lock::release`].
    #[cfg(not(loom))]
    pub unsafe fn release(&self) {
        // SAFETY: by the contract of this function.
        unsafe { self.inner.release() };
    }

    /// In a forked child: frees the lock, which any thread may have held.
    ///
    /// # Safety
    ///
    /// The threads that may have been in are not in this process, which has one thread.
    #[cfg(not(loom))]
    pub unsafe fn forget_after_fork(&self) {
        self.is_in.store(false, Ordering::Relaxed);
        self.is_visited.store(is_always_visited(), Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { self.inner.release() };
    }
}

impl Drop for Owning<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.waited.is_none() {
            self.lock.is_in.store(false, Ordering::Release);
        }
    }
}

impl Drop for QuickOwning<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.is_in.store(false, Ordering::Release);
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // This store precedes the release of the inner lock. A later store could clear the next
        // visitor's flag.
        self.lock.is_visited.store(is_always_visited(), Ordering::Release);
    }
}

/// Whether `membarrier` is available: set before the first lock is used.
#[cfg(not(loom))]
static VISITORS_FENCE: AtomicBool = AtomicBool::new(false);

/// Registers the process for `membarrier`. Call this before any of these locks is used.
#[cfg(not(loom))]
pub fn prepare() {
    VISITORS_FENCE.store(crate::os::register_barrier(), Ordering::Relaxed);
}

fn is_always_visited() -> bool {
    #[cfg(not(loom))]
    return !VISITORS_FENCE.load(Ordering::Relaxed);
    #[cfg(loom)]
    false
}

#[inline(always)]
fn light() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

fn heavy() -> bool {
    #[cfg(not(loom))]
    if VISITORS_FENCE.load(Ordering::Relaxed) {
        return crate::os::barrier_in_all_threads();
    }
    fence(Ordering::SeqCst);
    true
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;
    extern crate std;

    struct Counted(OwnerLock, Cell<u64>);
    // SAFETY: only the side that is in accesses the count.
    unsafe impl Sync for Counted {}

    #[test]
    fn an_owner_and_visitors_count_together() {
        prepare();
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let counted = Counted(new(), Cell::new(0));
        let (counted, visits) = (&counted, core::sync::atomic::AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..rounds {
                    // SAFETY: this is the only thread that calls `own` or `try_own`.
                    let quick = (round % 2 == 0).then(|| unsafe { counted.0.try_own() }).flatten();
                    // SAFETY: this is the only thread that calls `own` or `try_own`.
                    let slow = quick.is_none().then(|| unsafe { counted.0.own() });
                    counted.1.set(counted.1.get() + 1);
                    drop((quick, slow));
                }
            });
            for way in 0..2 {
                let visits = &visits;
                scope.spawn(move || {
                    for _ in 0..rounds / 20 {
                        let visit =
                            if way == 0 { counted.0.try_visit() } else { counted.0.visit() };
                        if visit.is_some() {
                            counted.1.set(counted.1.get() + 1);
                            visits.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(counted.1.get(), rounds + visits.into_inner());
    }

    #[test]
    fn a_visitor_finds_the_owner_in_and_an_owner_finds_the_lock_held() {
        prepare();
        let lock = new();
        // SAFETY: this is the only thread that calls `own` or `try_own`.
        let owning = unsafe { lock.own() };
        assert!(lock.try_visit().is_none());
        drop(owning);
        let visit = lock.try_visit();
        assert!(visit.is_some() && lock.try_visit().is_none() && lock.try_lock().is_none());
        drop(visit);
        let held = lock.lock();
        assert!(lock.try_visit().is_none());
        drop(held);
        assert!(lock.try_visit().is_some());
    }

    fn new() -> OwnerLock {
        let lock = OwnerLock {
            is_in: AtomicBool::new(false),
            is_visited: AtomicBool::new(false),
            inner: Lock::new(()),
        };
        lock.begin();
        lock
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Counted(OwnerLock, UnsafeCell<u64>);
    // SAFETY: only the side that is in accesses the count, which loom verifies.
    unsafe impl Sync for Counted {}
    // SAFETY: only the side that is in accesses the count, in any thread.
    unsafe impl Send for Counted {}

    fn add(count: &UnsafeCell<u64>) {
        // SAFETY: loom fails if another thread accesses it.
        count.with_mut(|count| unsafe { *count += 1 });
    }

    fn race(visitors: usize, owner_rounds: u64, is_quick: bool) {
        loom::model(move || {
            let lock = OwnerLock {
                is_in: AtomicBool::new(false),
                is_visited: AtomicBool::new(false),
                inner: Lock::new(()),
            };
            let counted = Arc::new(Counted(lock, UnsafeCell::new(0)));
            let visitors: std::vec::Vec<_> = (0..visitors)
                .map(|_| {
                    let counted = Arc::clone(&counted);
                    thread::spawn(move || {
                        let visit = counted.0.try_visit();
                        if visit.is_some() {
                            add(&counted.1);
                        }
                        u64::from(visit.is_some())
                    })
                })
                .collect();
            let mut owned = 0;
            for _ in 0..owner_rounds {
                if is_quick {
                    // SAFETY: this is the only thread that calls `own` or `try_own`.
                    let Some(_in) = (unsafe { counted.0.try_own() }) else { continue };
                    add(&counted.1);
                } else {
                    // SAFETY: this is the only thread that calls `own` or `try_own`.
                    let _in = unsafe { counted.0.own() };
                    add(&counted.1);
                }
                owned += 1;
            }
            let visits: u64 = visitors.into_iter().map(|visitor| visitor.join().unwrap()).sum();
            // SAFETY: the others have ended.
            counted.1.with(|count| assert_eq!(unsafe { *count }, owned + visits));
        });
    }

    extern crate std;

    #[test]
    fn loom_an_owner_and_a_visitor_are_never_in_at_once() {
        race(1, 2, false);
        race(1, 2, true);
    }

    #[test]
    fn loom_an_owner_and_two_visitors_are_never_in_at_once() {
        race(2, 1, false);
    }
}
