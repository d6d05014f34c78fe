//! A lock that costs its owner two stores and a load, and others a system call.
//!
//! ```text
//!   owner     is_in = 1 | light | is_visited?  no: work, is_in = 0
//!                                              yes: is_in = 0, wait for the inner lock, work
//!   visitor   inner lock | is_visited = 1 | heavy | is_in?  no: work, is_visited = 0, unlock
//!                                                           yes: wait, or give up
//! ```
//!
//! One thread, the owner, takes it all the time; others come by a few times a second. So the fence
//! that each side needs between its store and its load (Dekker's algorithm) is paid by the visitor
//! alone: `membarrier` runs a fence in every thread of the process, and the owner's is then only
//! the compiler's. Where the kernel has no `membarrier`, a lock counts as visited for ever, so that
//! the owner takes the inner lock, too. (Dice, Huang, Yang: "Asymmetric Dekker synchronization",
//! 2001; biased locks and asymmetric fences since.)
//!
//! The inner lock alone excludes everybody but an owner who is in: an object that has no owner,
//! because many threads use it, or because it passes from one to the next, is locked by that.
//!
//! Invariants: `is_visited` is changed only by the thread that has the inner lock, or nobody else
//! knows the lock; `is_in` is set only by the owner; where both were found unset, by whoever looked
//! last, only one side works.
//!
//! Called by `cache` and `heap`.

use super::atomic::{AtomicBool, Ordering, fence};
use super::{Guard, Lock};

/// See the top of the file. Zero is a free one, on which [`OwnerLock::begin`] is called before it
/// has an owner.
pub struct OwnerLock {
    is_in: AtomicBool,
    is_visited: AtomicBool,
    inner: Lock<()>,
}

/// How often a visitor that waits looks whether the owner is still in.
#[cfg(not(loom))]
const PATIENCE: usize = 1000;

/// The owner is in.
pub struct Owning<'a> {
    lock: &'a OwnerLock,
    /// It came while a visitor was there, and had to wait for the lock.
    waited: Option<Guard<'a, ()>>,
}

/// The owner is in, and did not wait: a guard for short paths, of nothing but a store.
pub struct QuickOwning<'a>(&'a OwnerLock);

/// A visitor is in.
pub struct Visit<'a> {
    lock: &'a OwnerLock,
    _inner: Guard<'a, ()>,
}

impl OwnerLock {
    /// Readies a lock that nobody else knows yet.
    #[cfg(not(loom))]
    pub fn begin(&self) {
        self.is_visited.store(is_always_visited(), Ordering::Relaxed);
    }

    /// Waits until no visitor is in, and keeps them out.
    ///
    /// # Safety
    ///
    /// The calling thread is the owner: until the guard is dropped no other thread calls this.
    #[inline(always)]
    pub unsafe fn own(&self) -> Owning<'_> {
        self.is_in.store(true, Ordering::Relaxed);
        light();
        // Acquires what the last visitor did.
        if self.is_visited.load(Ordering::Acquire) {
            return self.own_after_visit();
        }
        Owning { lock: self, waited: None }
    }

    /// [`OwnerLock::own`], unless a visitor is in just now.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub unsafe fn try_own(&self) -> Option<QuickOwning<'_>> {
        self.is_in.store(true, Ordering::Relaxed);
        light();
        let owning = QuickOwning(self);
        // Acquires what the last visitor did.
        if self.is_visited.load(Ordering::Acquire) { None } else { Some(owning) }
    }

    #[cold]
    #[inline(never)]
    fn own_after_visit(&self) -> Owning<'_> {
        // The visitor may be waiting for this.
        self.is_in.store(false, Ordering::Release);
        Owning { lock: self, waited: Some(self.inner.lock()) }
    }

    /// Visits, unless the owner or another visitor is in just now.
    pub fn try_visit(&self) -> Option<Visit<'_>> {
        // Before the fence is paid for. It says nothing yet.
        if self.is_in.load(Ordering::Relaxed) {
            return None;
        }
        let visit = self.announce(self.inner.try_lock()?)?;
        self.has_left().then_some(visit)
    }

    /// Waits until nobody else is in, and visits. `None`: the kernel refuses the fence, or the
    /// owner stays in, for it does not run.
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

    /// Shows a visitor to the owner; dropped, it is gone again.
    fn announce<'a>(&'a self, inner: Guard<'a, ()>) -> Option<Visit<'a>> {
        self.is_visited.store(true, Ordering::Relaxed);
        let visit = Visit { lock: self, _inner: inner };
        heavy().then_some(visit)
    }

    /// Whether the owner is not in. Acquires what it did.
    fn has_left(&self) -> bool {
        !self.is_in.load(Ordering::Acquire)
    }

    /// Waits for the inner lock: for threads that have no owner among them.
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
        // SAFETY: as the caller promises.
        unsafe { self.inner.release() };
    }

    /// In a forked child: it is free, whoever was in.
    ///
    /// # Safety
    ///
    /// The threads that may have been in are not in this process, which has one thread.
    #[cfg(not(loom))]
    pub unsafe fn forget_after_fork(&self) {
        self.is_in.store(false, Ordering::Relaxed);
        self.is_visited.store(is_always_visited(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
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
        // Before the inner lock is given back, or it would hide the next visitor.
        self.lock.is_visited.store(is_always_visited(), Ordering::Release);
    }
}

/// Whether visitors run the fence in all threads. Set before the first lock is used.
#[cfg(not(loom))]
static VISITORS_FENCE: AtomicBool = AtomicBool::new(false);

/// Asks the kernel for the visitors' fence. Before any of these locks is used.
#[cfg(not(loom))]
pub fn prepare() {
    VISITORS_FENCE.store(crate::os::register_barrier(), Ordering::Relaxed);
}

/// Whether owners must take the inner lock, for visitors cannot run a fence in their threads.
fn is_always_visited() -> bool {
    #[cfg(not(loom))]
    return !VISITORS_FENCE.load(Ordering::Relaxed);
    #[cfg(loom)]
    false
}

/// The owner's fence.
#[inline(always)]
fn light() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// The visitor's fence. False: the kernel refuses it.
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
    // SAFETY: the count is touched only by whoever is in.
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
                    // SAFETY: this is the one thread that does.
                    let quick = (round % 2 == 0).then(|| unsafe { counted.0.try_own() }).flatten();
                    // SAFETY: this is the one thread that does.
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
        // SAFETY: this is the one thread that does.
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
    // SAFETY: the count is touched only by whoever is in, which is what loom verifies.
    unsafe impl Sync for Counted {}
    // SAFETY: the count is touched only by whoever is in, in whatever thread that is.
    unsafe impl Send for Counted {}

    fn add(count: &UnsafeCell<u64>) {
        // SAFETY: loom fails where another thread has it.
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
                    // SAFETY: this is the one thread that does.
                    let Some(_in) = (unsafe { counted.0.try_own() }) else { continue };
                    add(&counted.1);
                } else {
                    // SAFETY: this is the one thread that does.
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
