//! The pool that threads share: magazines of free slots, one store behind a lock.
//!
//! ```text
//!   thread --> its magazine of 126 slots                    no lock, no atomics; or a try-lock
//!                |  empty: 63 from the store     ^ full: 63 to it
//!                v                               |
//!              store (sets, frontier, segments), one lock
//!
//!   mod        SharedPool<T>: objects of a type, handles        walk   each object; reset; the end
//!   slots      where a slot comes from, and where it goes       whole  counts, trim, settle
//!   magazine   126 slots of a thread's, or of several           locked the store and its lock
//! ```
//!
//! Which magazine is a thread's is said by the process's cache model (`cache=`), and
//! known to `registry::places`: one for each thread index, passed on when the thread ends, or K
//! for all threads, each behind a lock. So a thousand threads cost a pool a thousand
//! magazines, or K. The first way is the fast path; where magazines are shared it misses,
//! and the cold one finds them.
//!
//! An object may be destroyed by any thread: its slot goes into *that* thread's
//! magazine. Nothing asks whose a slot is, so there is nothing to send home. A
//! producer and a consumer meet at the store's lock once in 63 objects each.
//!
//! Threads without a magazine (see `Places::enter`) go to the store.
//!
//! The store and its lock, like shared magazines, are recycled and never freed, so that
//! a fork can hold the locks of all pools, wherever the pools are. A magazine's lock is
//! taken before the store's.
//!
//! Used by everybody; the functions of a fork, by `pool::fork`.

mod locked;
mod magazine;
mod slots;
mod walk;
mod whole;

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::handle::{self, Home};
use super::layout::Shape;
use super::store::{Called, Config};
use super::{Refused, Stats};
use crate::misuse;
use crate::registry::places::Place;
use magazine::Magazine;
use slots::Slots;

/// Holds the locks across a fork.
pub(super) fn before_fork() {
    Magazine::family().before_fork();
    locked::before_fork();
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { locked::after_fork() };
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { Magazine::family().after_fork() };
}

/// In a forked child: forgets threads that waited.
pub(super) fn forget_after_fork() {
    Magazine::family().forget_after_fork();
}

/// Objects of one type that many threads make and destroy.
///
/// As [`Pool`](super::Pool), but `Sync`: each thread has a magazine of free slots
/// and takes no lock while it lasts; an object may be destroyed by any thread.
/// Objects come and go by handles ([`SharedBoxed`]) or raw.
///
/// Free slots in other magazines (at most 126 each) are not this thread's to
/// use; so a pool without a limit may be that much larger than its objects. With
/// a limit, exactly as many objects may live as it says, and each operation costs
/// one atomic addition more.
///
/// With many threads that use a pool now and then, a magazine for each may be too many.
/// A process that runs with `HEAPWRIGHT=cache=shared:K` has at most K a pool, each
/// behind a lock of its own that is hardly ever held.
///
/// After scudo's and tcmalloc's per-thread caches, and Bonwick's magazines.
///
/// ```
/// use heapwright::pool::SharedPool;
///
/// static WORDS: SharedPool<String> = SharedPool::new();
///
/// let made = WORDS.boxed(String::from("made here"));
/// std::thread::spawn(move || assert_eq!(*made, "made here")).join().unwrap();
/// assert_eq!(WORDS.len(), 0);
/// ```
///
/// A handle cannot outlive its pool:
///
/// ```compile_fail,E0597
/// use heapwright::pool::{SharedBoxed, SharedPool};
/// let handle: SharedBoxed<'_, u32>;
/// {
///     let pool: SharedPool<u32> = SharedPool::new();
///     handle = pool.boxed(1);
/// }
/// assert_eq!(*handle, 1);
/// ```
///
/// nor hold what lives shorter than the pool's type says:
///
/// ```compile_fail,E0597
/// use heapwright::pool::SharedPool;
/// let mut pool: SharedPool<&'static str> = SharedPool::new();
/// {
///     let text = String::from("short");
///     let short: &SharedPool<&str> = &pool;
///     std::mem::forget(short.boxed(&text));
/// }
/// pool.for_each(|text| println!("{text}"));
/// ```
///
/// nor go to another thread with what must stay:
///
/// ```compile_fail,E0277
/// use heapwright::pool::SharedPool;
/// use std::rc::Rc;
/// static POOL: SharedPool<Rc<u32>> = SharedPool::new();
/// ```
pub struct SharedPool<T> {
    slots: Slots,
    /// Invariant: values go in through a shared reference.
    objects: PhantomData<UnsafeCell<T>>,
}

// SAFETY: objects are made by one thread and dropped by another (`T: Send`); no
// reference to one is given out but by its handle. The slots are for many threads.
unsafe impl<T: Send> Sync for SharedPool<T> {}
// SAFETY: objects go to other threads where `T` may; the pool's slots are for many threads.
unsafe impl<T: Send> Send for SharedPool<T> {}

impl<T> SharedPool<T> {
    const SHAPE: Shape = Shape::of_objects(size_of::<T>(), align_of::<T>());

    /// An empty pool. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::builder().build()
    }

    /// An empty pool whose name, limit and kind of pages can be chosen.
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let pool = SharedPool::<u64>::builder().name("jobs").limit(1).build();
    /// let one = pool.boxed(1);
    /// assert!(pool.try_boxed(2).is_err());
    /// drop(one);
    /// assert!(pool.try_boxed(2).is_ok());
    /// ```
    #[must_use]
    pub const fn builder() -> SharedBuilder<T> {
        let config = Config::of(Called::Type(core::any::type_name::<T>));
        SharedBuilder { config, made: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn no_room(&self) -> ! {
        misuse::no_room("pool ", self.slots.name())
    }

    /// Makes an object, owned by the handle.
    #[inline]
    #[must_use]
    pub fn boxed(&self, value: T) -> SharedBoxed<'_, T> {
        SharedBoxed { object: self.create(value), pool: self }
    }

    /// Makes an object, owned by the handle.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_boxed(&self, value: T) -> Result<SharedBoxed<'_, T>, Refused<T>> {
        self.try_create(value).map(|object| SharedBoxed { object, pool: self })
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the
    /// pool's end.
    #[inline]
    #[must_use]
    pub fn create(&self, value: T) -> NonNull<T> {
        match self.try_create(value) {
            Ok(object) => object,
            Err(_) => self.no_room(),
        }
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the
    /// pool's end.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_create(&self, value: T) -> Result<NonNull<T>, Refused<T>> {
        let Some(slot) = self.slots.alloc() else { return Err(Refused(value)) };
        let slot = slot.cast::<T>();
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    /// Drops an object, in the calling thread, and takes its slot back, even if the
    /// drop panics.
    ///
    /// # Safety
    ///
    /// The object was created by this pool (or let go of by
    /// [`SharedBoxed::into_raw`]) and not destroyed; nobody uses it afterwards. If
    /// another thread created it, `T` is `Send`.
    #[inline]
    pub unsafe fn destroy(&self, object: NonNull<T>) {
        // SAFETY: created by this pool, not destroyed, and not used afterwards, as the caller
        // promises.
        unsafe { handle::destroy(self, object) };
    }

    /// Makes a handle of an object again.
    ///
    /// # Safety
    ///
    /// As [`SharedPool::destroy`]: the handle will.
    pub unsafe fn own(&self, object: NonNull<T>) -> SharedBoxed<'_, T> {
        SharedBoxed { object, pool: self }
    }

    /// Objects in use, give or take what other threads do meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no object is in use, give or take what other threads do meanwhile.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an address lies in this pool's memory. O(1), under the lock; any
    /// address may be asked about.
    #[must_use]
    pub fn contains(&self, object: *const T) -> bool {
        self.slots.contains(object.addr())
    }

    /// Makes sure that `count` more objects can be made without asking the kernel
    /// for memory; puts pages behind them now if `touch`. False: no memory.
    pub fn preheat(&self, count: usize, touch: bool) -> bool {
        self.slots.preheat(count, touch)
    }

    /// Gives every page to the kernel that holds no live object and no slot in another
    /// thread's magazine. Returns bytes.
    pub fn trim(&self) -> usize {
        self.slots.trim()
    }

    /// What there is, give or take what other threads do meanwhile.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.slots.stats()
    }
}

impl<T> Home<T> for SharedPool<T> {
    #[inline(always)]
    unsafe fn deallocate(&self, slot: NonNull<T>) {
        // SAFETY: a slot of this pool, in use, whose object is gone, as the caller promises.
        unsafe { self.slots.free(slot.cast()) };
    }
}

impl<T> Default for SharedPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for SharedPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPool").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// An object of a [`SharedPool`], owned: dropping it drops the object and gives its
/// slot back, in whichever thread.
pub struct SharedBoxed<'p, T> {
    object: NonNull<T>,
    pool: &'p SharedPool<T>,
}

// SAFETY: the handle owns the object; the pool is for many threads.
unsafe impl<T: Send> Send for SharedBoxed<'_, T> {}
// SAFETY: a shared handle gives shared references alone.
unsafe impl<T: Sync> Sync for SharedBoxed<'_, T> {}

super::handle_impls!(SharedBoxed of SharedPool);

/// Chooses how a [`SharedPool`] is made.
pub struct SharedBuilder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(SharedBuilder<T>);

impl<T> SharedBuilder<T> {
    /// The pool, empty.
    #[must_use]
    pub const fn build(self) -> SharedPool<T> {
        // A constant, so that a type that no pool can hold is refused when this is compiled.
        let shape = SharedPool::<T>::SHAPE;
        SharedPool { slots: Slots::new(shape, self.config), objects: PhantomData }
    }
}

#[cfg(test)]
impl<T> SharedPool<T> {
    /// The slots, for tests that look at the magazines.
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }
}
