//! The pool that threads share: magazines of free slots, and one store behind a lock.
//!
//! ```text
//!   thread --> its magazine of 126 slots                  no lock; or a try-lock, if shared
//!                |  empty: 63 from the store     ^ full: 63 to the store
//!                v                               |
//!              store (sets, frontier, segments), one lock
//!
//!   mod        SharedPool<T>: objects of a type, handles        walk   each object; reset; the end
//!   slots      how slots come and go                            whole  counts, trim, settle
//!   magazine   126 slots of a thread, or of several             locked the store and its lock
//!   keyed      objects by key: a word a slot, found without a lock
//! ```
//!
//! The process's cache model (`cache=`) assigns magazines, in `registry::places`. In one model,
//! each thread index has a magazine, which the index's next thread inherits. In the other models,
//! all threads share K magazines, each behind a lock. Only the slow path finds these.
//!
//! A slot goes into the magazine of the thread that destroys its object. Slots have no owner, so
//! there are no remote frees. A producer and a consumer each take the store's lock once in 63
//! objects. Threads without a magazine (see `Places::enter`) use the store directly.
//!
//! Stores with their locks, and shared magazines, are recycled and never freed. So a fork can hold
//! the locks of all pools. A magazine's lock is taken before the store's.
//!
//! Called by users; `pool::fork` calls the functions for a fork.

mod keyed;
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

pub use keyed::SharedRef;

pub(super) fn before_fork() {
    Magazine::family().before_fork();
    locked::before_fork();
}

/// Releases the locks after a fork, in the parent and in the child.
///
/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { locked::after_fork() };
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { Magazine::family().after_fork() };
}

/// Forgets waiting threads in a forked child.
pub(super) fn forget_after_fork() {
    Magazine::family().forget_after_fork();
}

/// A pool of objects of one type, for many threads.
///
/// The pool is like [`Pool`](super::Pool), but `Sync`. Each thread has a magazine of 126 free slots
/// and takes no lock until the magazine is empty or full: at most once in 63 operations. Any thread
/// may destroy an object. Objects are held by handles ([`SharedBoxed`]), raw pointers or keys. A
/// lookup by key takes no lock. The object that it finds stays even if another thread removes the
/// key ([`SharedPool::get`]).
///
/// A thread cannot use free slots of other magazines. So in addition to its objects, a pool may
/// hold 126 free slots for each thread. With a limit, exactly that many objects may live, and each
/// operation costs one more atomic operation.
///
/// If many threads use a pool rarely, a magazine for each thread may take too much memory. A
/// process with `HEAPWRIGHT=cache=shared:K` has at most K magazines a pool, each behind a lock.
///
/// The idea is that of the thread caches of scudo and tcmalloc, and of Bonwick's magazines.
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
/// A pool cannot hold a reference that lives shorter than the pool's type says:
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
/// The objects must be `Send`:
///
/// ```compile_fail,E0277
/// use heapwright::pool::SharedPool;
/// use std::rc::Rc;
/// static POOL: SharedPool<Rc<u32>> = SharedPool::new();
/// ```
pub struct SharedPool<T> {
    slots: Slots,
    /// Makes the pool invariant in `T`: values go in through a shared reference.
    objects: PhantomData<UnsafeCell<T>>,
}

// SAFETY: `T: Send` lets another thread drop an object. References come only from owning handles,
// or from `get`, which requires `T: Sync`. `Slots` is made for many threads.
unsafe impl<T: Send> Sync for SharedPool<T> {}
// SAFETY: objects move to other threads only if `T` may; `Slots` is made for many threads.
unsafe impl<T: Send> Send for SharedPool<T> {}

impl<T> SharedPool<T> {
    const SHAPE: Shape = Shape::of_objects(size_of::<T>(), align_of::<T>());

    /// Creates an empty pool. Takes no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a builder for a pool with a chosen name, limit and kind of pages.
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

    /// Makes an object that the handle owns. O(1) amortised. See [`SharedPool::create`].
    #[inline]
    #[must_use]
    pub fn boxed(&self, value: T) -> SharedBoxed<'_, T> {
        SharedBoxed::of(self.create(value), &self.slots)
    }

    /// Makes an object that the handle owns. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_boxed(&self, value: T) -> Result<SharedBoxed<'_, T>, Refused<T>> {
        self.try_create(value).map(|object| SharedBoxed::of(object, &self.slots))
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the pool's end. O(1)
    /// amortised. Ends the process if there is no memory or the limit is reached.
    #[inline]
    #[must_use]
    pub fn create(&self, value: T) -> NonNull<T> {
        match self.try_create(value) {
            Ok(object) => object,
            Err(_) => self.no_room(),
        }
    }

    /// Makes an object that lives until [`SharedPool::destroy`], a reset, or the pool's end.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_create(&self, value: T) -> Result<NonNull<T>, Refused<T>> {
        let Some(slot) = self.slots.alloc() else { return Err(Refused(value)) };
        let slot = slot.cast::<T>();
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    /// Drops an object in the calling thread and frees its slot, even if the drop panics. O(1)
    /// amortised.
    ///
    /// # Safety
    ///
    /// This pool created the object without a key ([`SharedBoxed::into_raw`] may have released it).
    /// The object is not yet destroyed, and no code uses it afterwards. If another thread created
    /// it, `T` is `Send`.
    #[inline]
    pub unsafe fn destroy(&self, object: NonNull<T>) {
        // SAFETY: by the contract the object is this pool's, live, and not used afterwards.
        unsafe { handle::destroy(&self.slots, object) };
    }

    /// Makes a handle for an object that [`SharedPool::create`] returned.
    ///
    /// # Safety
    ///
    /// As for [`SharedPool::destroy`], which the handle calls when it is dropped.
    pub unsafe fn own(&self, object: NonNull<T>) -> SharedBoxed<'_, T> {
        SharedBoxed::of(object, &self.slots)
    }

    /// Returns the number of objects in use, while other threads may change it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether no object is in use, while other threads may change that.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether an address lies in this pool's memory. Any is allowed. O(1), under a lock.
    #[must_use]
    pub fn contains(&self, object: *const T) -> bool {
        self.slots.contains(object.addr())
    }

    /// Reserves memory for `count` more objects. `touch` also makes its pages resident now. Returns
    /// false if there is no memory.
    pub fn preheat(&self, count: usize, touch: bool) -> bool {
        self.slots.preheat(count, touch)
    }

    /// Gives pages back to the kernel: every page without a live object and without a slot in
    /// another thread's magazine. Returns the number of bytes.
    pub fn trim(&self) -> usize {
        self.slots.trim()
    }

    /// Returns statistics, while other threads may change the numbers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.slots.stats()
    }
}

impl Home for Slots {
    #[inline(always)]
    unsafe fn deallocate(&self, slot: NonNull<u8>) {
        // SAFETY: the caller promises that the slot is this pool's and in use, its object gone.
        unsafe { self.free(slot) };
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

/// An owned object of a [`SharedPool`]. Dropping the handle drops the object and frees its slot, in
/// any thread.
///
/// Handles compare, hash and print as their objects do. [`coerce!`](super::coerce) makes a handle
/// of a trait object.
pub struct SharedBoxed<'p, T: ?Sized> {
    object: NonNull<T>,
    home: &'p Slots,
    /// Makes the handle invariant in `T`: the object may stay in the pool when the handle is gone.
    holds: PhantomData<*mut T>,
}

// SAFETY: the handle owns the object; the pool is made for many threads.
unsafe impl<T: ?Sized + Send> Send for SharedBoxed<'_, T> {}
// SAFETY: a shared handle gives only shared references.
unsafe impl<T: ?Sized + Sync> Sync for SharedBoxed<'_, T> {}

super::handle_impls!(SharedBoxed of SharedPool, SharedBoxedHome is Slots);

/// Settings of a new [`SharedPool`].
pub struct SharedBuilder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(SharedBuilder<T>);

impl<T> SharedBuilder<T> {
    /// Makes the pool, which is empty. A type that no pool can hold is an error at compile time.
    #[must_use]
    pub const fn build(self) -> SharedPool<T> {
        let shape = SharedPool::<T>::SHAPE;
        SharedPool { slots: Slots::new(shape, self.config), objects: PhantomData }
    }
}

#[cfg(test)]
impl<T> SharedPool<T> {
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }
}
