//! The pool of a type: owning handles, raw pointers, keys, and resets that drop.
//!
//! While the user's code runs, no reference to the raw pool exists, because that code may use it.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;

use super::handle::{self, Home};
use super::keys::KeyPool;
use super::raw::RawPool;
use super::store::{Called, Config, Walk};
use super::{Refused, Reset, Stats, checked};
use crate::misuse;
use crate::refused::IN_REGISTERS;
use crate::unwinding;

/// A pool of objects of one type, made and destroyed in a handful of instructions.
///
/// There are three ways to hold an object, and a pool may use them all:
/// - [`Boxed`] handles free the slot when they are dropped ([`Pool::boxed`]);
/// - raw pointers leave the lifetime to the caller ([`Pool::create`], [`Pool::destroy`]);
/// - keys become stale ([`Pool::insert`], [`Pool::get`], [`Pool::remove`]).
///
/// Objects with keys belong to the pool, so a shared borrow iterates over them
/// ([`Pool::iter`]). A pool for keys alone is a [`KeyPool`], which threads may share.
///
/// Objects do not move. Creating and destroying take constant time, amortised over growth. A pool
/// serves one thread at a time; [`SharedPool`](super::SharedPool) serves many. Dropping the pool
/// drops all live objects and releases its memory. Zero-sized objects take memory, too.
///
/// If there is no memory or the limit is reached, functions with `try_` return the value. Other
/// functions that make objects end the process with one line on standard error.
///
/// ```
/// use heapwright::pool::Pool;
///
/// let pool = Pool::new();
/// let hello = pool.boxed(String::from("hello"));
/// assert_eq!(hello.len(), 5);
/// assert_eq!(pool.len(), 1);
/// drop(hello);
/// assert_eq!(pool.len(), 0);
/// ```
///
/// A handle cannot outlive its pool:
///
/// ```compile_fail,E0597
/// use heapwright::pool::{Boxed, Pool};
/// let handle: Boxed<'_, u32>;
/// {
///     let pool: Pool<u32> = Pool::new();
///     handle = pool.boxed(1);
/// }
/// assert_eq!(*handle, 1);
/// ```
///
/// A handle cannot survive a reset, and no reference to an object may exist at a reset:
///
/// ```compile_fail,E0502
/// use heapwright::pool::{Pool, Reset};
/// let mut pool: Pool<u32> = Pool::new();
/// let handle = pool.boxed(1);
/// pool.reset(Reset::FreeAll);
/// assert_eq!(*handle, 1);
/// ```
///
/// ```compile_fail,E0502
/// use heapwright::pool::Pool;
/// let mut pool: Pool<u32> = Pool::new();
/// let key = pool.insert(1);
/// let one = pool.get(key);
/// pool.remove(key);
/// assert_eq!(one, Some(&1));
/// ```
///
/// A value must live as long as the pool's type says:
///
/// ```compile_fail,E0597
/// use heapwright::pool::Pool;
/// let mut pool: Pool<&'static str> = Pool::new();
/// {
///     let text = String::from("short");
///     let short: &Pool<&str> = &pool;
///     let _ = short.insert(&text);
/// }
/// assert_eq!(pool.live_mut().count(), 1);
/// ```
///
/// A pool stays in its thread while it is in use:
///
/// ```compile_fail,E0277
/// use heapwright::pool::Pool;
/// let pool: Pool<u32> = Pool::new();
/// std::thread::scope(|scope| scope.spawn(|| drop(pool.boxed(1))).join().unwrap());
/// ```
pub struct Pool<T> {
    raw: UnsafeCell<RawPool>,
    /// The objects with keys, in slots of their own.
    keyed: UnsafeCell<KeyPool<T>>,
    /// Makes the pool invariant in `T`: values go in through a shared reference.
    objects: PhantomData<UnsafeCell<T>>,
}

impl<T> Pool<T> {
    /// Creates an empty pool. Takes no memory yet.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool: Pool<[u8; 100]> = Pool::new();
    /// assert_eq!((pool.len(), pool.capacity()), (0, 0));
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a builder for a pool with a chosen name, limit and kind of pages.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool = Pool::<u64>::builder().name("sessions").limit(1).build();
    /// let one = pool.try_create(1).unwrap();
    /// assert_eq!(pool.try_create(2).unwrap_err().0, 2);
    /// // SAFETY: created above, and not used afterwards.
    /// unsafe { pool.destroy(one) };
    /// ```
    #[must_use]
    pub const fn builder() -> Builder<T> {
        let config = Config::of(Called::Type(core::any::type_name::<T>));
        Builder { config, made: PhantomData }
    }

    #[inline(always)]
    pub(super) fn alloc(&self) -> Option<NonNull<T>> {
        self.pop().or_else(|| self.with_raw(|raw| NonNull::new(raw.alloc_slow().cast())))
    }

    #[inline(always)]
    fn pop(&self) -> Option<NonNull<T>> {
        // SAFETY: the pool is not `Sync`, and no reference to the raw pool outlives a call.
        unsafe { (*self.raw.get()).pop() }.map(NonNull::cast)
    }

    #[inline(never)]
    fn slot_slow(&self) -> NonNull<T> {
        match self.with_raw(|raw| NonNull::new(raw.alloc_slow().cast::<T>())) {
            Some(slot) => slot,
            None => self.no_room(),
        }
    }

    /// A tail call of [`Pool::create`], for a value in registers, so that the fast path saves none.
    #[inline(never)]
    fn create_slow(&self, value: T) -> NonNull<T> {
        let slot = self.slot_slow();
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.write(value) };
        slot
    }

    pub(super) fn raw(&mut self) -> &mut RawPool {
        self.raw.get_mut()
    }

    #[inline(always)]
    pub(super) fn keyed_mut(&mut self) -> &mut KeyPool<T> {
        self.keyed.get_mut()
    }

    /// Runs `with` on the objects with keys. `with` must run no code of the user.
    #[inline(always)]
    pub(super) fn with_keyed<R>(&self, with: impl FnOnce(&mut KeyPool<T>) -> R) -> R {
        // SAFETY: the pool is not `Sync` and `with` runs no user code: there is no other reference.
        with(unsafe { &mut *self.keyed.get() })
    }

    /// Runs `with` on the raw pool. `with` must run no code of the user.
    pub(super) fn with_raw<R>(&self, with: impl FnOnce(&mut RawPool) -> R) -> R {
        // SAFETY: the pool is not `Sync` and `with` runs no user code: there is no other reference.
        with(unsafe { &mut *self.raw.get() })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no_room(&self) -> ! {
        misuse::no_room("pool ", self.with_raw(|raw| raw.store().name()))
    }

    /// Makes an object that the handle owns. O(1) amortised. See [`Pool::create`].
    #[inline]
    #[must_use]
    pub fn boxed(&self, value: T) -> Boxed<'_, T> {
        Boxed::of(self.create(value), &self.raw)
    }

    /// Makes an object that the handle owns. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_boxed(&self, value: T) -> Result<Boxed<'_, T>, Refused<T>> {
        self.try_create(value).map(|object| Boxed::of(object, &self.raw))
    }

    /// Makes an object that lives until [`Pool::destroy`], a reset, or the pool's end. O(1)
    /// amortised. Ends the process if there is no memory or the limit is reached.
    #[inline]
    #[must_use]
    pub fn create(&self, value: T) -> NonNull<T> {
        let slot = match self.pop() {
            Some(slot) => slot,
            None if size_of::<T>() <= IN_REGISTERS => return self.create_slow(value),
            None => self.slot_slow(),
        };
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.write(value) };
        slot
    }

    /// Makes an object that lives until [`Pool::destroy`], a reset, or the pool's end.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_create(&self, value: T) -> Result<NonNull<T>, Refused<T>> {
        let Some(slot) = self.alloc() else { return Err(Refused(value)) };
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    /// Drops an object and frees its slot, even if the drop panics. O(1) amortised.
    ///
    /// # Safety
    ///
    /// This pool created the object without a key ([`Boxed::into_raw`] may have released it). The
    /// object is not yet destroyed, and no code uses it afterwards.
    #[inline]
    pub unsafe fn destroy(&self, object: NonNull<T>) {
        // SAFETY: by the contract the object is this pool's, live, and not used afterwards.
        unsafe { handle::destroy(&self.raw, object) };
    }

    /// Makes a handle for an object that [`Pool::create`] returned.
    ///
    /// # Safety
    ///
    /// As for [`Pool::destroy`], which the handle calls when it is dropped.
    #[inline]
    pub unsafe fn own(&self, object: NonNull<T>) -> Boxed<'_, T> {
        Boxed::of(object, &self.raw)
    }

    /// Returns the number of objects in use. O(segments), at most 33.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with_raw(RawPool::len) + self.with_keyed(|keyed| keyed.len())
    }

    /// Returns whether no object is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of objects that the pool has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.with_raw(|raw| raw.capacity()) + self.with_keyed(|keyed| keyed.capacity())
    }

    /// Returns whether an address lies in this pool's memory. Any address is allowed. O(1).
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool = Pool::new();
    /// let seven = pool.boxed(7);
    /// assert!(pool.contains(&*seven) && !pool.contains(&7));
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, object: *const T) -> bool {
        self.with_raw(|raw| raw.contains(object.cast()))
            || self.with_keyed(|keyed| keyed.contains(object))
    }

    /// Returns the index of an object without a key. The index is a small number, unique among such
    /// objects of this pool while the object lives. O(1). `None` if no such slot begins there.
    #[must_use]
    pub fn index_of(&self, object: *const T) -> Option<u32> {
        self.with_raw(|raw| raw.index_of(object.cast()))
    }

    /// Reserves memory for `count` more objects without keys. `touch` makes its pages resident now.
    /// Fresh objects lie in address order. False if there is no memory, or the limit is reached.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool: Pool<u64> = Pool::new();
    /// assert!(pool.preheat(10_000, true));
    /// assert!(pool.capacity() >= 10_000);
    /// ```
    pub fn preheat(&self, count: usize, touch: bool) -> bool {
        self.with_raw(|raw| raw.preheat(count, touch))
    }

    /// Gives every page without a live object back to the kernel now. Returns the number of bytes.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool: Pool<[u8; 4096]> = Pool::new();
    /// let many: Vec<_> = (0..100).map(|_| pool.boxed([1; 4096])).collect();
    /// drop(many);
    /// assert!(pool.trim() >= 100 * 4096);
    /// ```
    pub fn trim(&self) -> usize {
        self.with_raw(RawPool::trim) + self.with_keyed(KeyPool::trim)
    }

    /// Returns statistics of the pool.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (raw, keyed) = (self.with_raw(RawPool::stats), self.with_keyed(|keyed| keyed.stats()));
        Stats {
            live: raw.live + keyed.live,
            capacity: raw.capacity + keyed.capacity,
            slot_size: raw.slot_size,
            segments: raw.segments + keyed.segments,
            reserved_bytes: raw.reserved_bytes + keyed.reserved_bytes,
        }
    }

    /// Drops all live objects. Objects without keys are dropped in address order. The pool keeps as
    /// much memory for objects of each kind as `how` says. All keys become stale and remain so.
    ///
    /// # Panics
    ///
    /// If a destructor panics, the other destructors still run and all slots are free before that
    /// panic continues. If several destructors panic, the first panic continues. Without the
    /// feature `std` a second panic ends the process.
    pub fn reset(&mut self, how: Reset) {
        let mut ending = Ending { pool: self, walk: Walk::default(), how };
        ending.pool.raw().settle();
        ending.drop_live();
        drop(ending);
        unwinding::surface();
    }

    /// Iterates over all live objects: first the objects without keys in address order, then the
    /// objects with keys. Takes time in proportion to the slots that were handed out. Needs `&mut
    /// self`, because a handle may change its object while the pool is shared.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let mut pool = Pool::new();
    /// let [a, b, c] = [1, 2, 3].map(|n| pool.create(n));
    /// // SAFETY: created above, and not used afterwards.
    /// unsafe { pool.destroy(b) };
    /// let _key = pool.insert(10);
    /// assert_eq!(pool.live_mut().map(|n| *n).sum::<i32>(), 14);
    /// ```
    pub fn live_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let raw = self.raw.get_mut();
        raw.settle();
        let mut walk = Walk::default();
        let others = core::iter::from_fn(move || {
            let (segment, slot) = raw.store().next_out(&mut walk)?;
            let object = raw.store().slot(segment, slot).cast::<T>();
            // SAFETY: the object is live and returned only once while the pool is borrowed mutably.
            Some(unsafe { &mut *object })
        });
        others.chain(self.keyed.get_mut().values_mut())
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        if cfg!(feature = "checked") {
            let raw = self.raw();
            raw.settle();
            checked::at_end(raw.store());
        }
        if mem::needs_drop::<T>() || cfg!(feature = "checked") {
            self.reset(Reset::FreeAll);
        }
    }
}

impl Home for UnsafeCell<RawPool> {
    #[inline(always)]
    unsafe fn deallocate(&self, slot: NonNull<u8>) {
        // SAFETY: the pool is not `Sync`, and no reference to the raw pool outlives a call.
        let raw = unsafe { &mut *self.get() };
        // SAFETY: the caller promises that the slot is this pool's and in use, its object gone.
        unsafe { raw.free(slot.as_ptr()) };
    }
}

/// A reset in progress. Its drop completes the reset even if a destructor panics.
struct Ending<'p, T> {
    pool: &'p mut Pool<T>,
    walk: Walk,
    how: Reset,
}

impl<T> Ending<'_, T> {
    fn drop_live(&mut self) {
        while mem::needs_drop::<T>()
            && let Some((segment, slot)) = self.pool.raw().store().next_out(&mut self.walk)
        {
            let object = self.pool.raw().store().slot(segment, slot).cast::<T>();
            unwinding::caught(|| {
                // SAFETY: the object is live, and the walk does not return to it.
                unsafe { object.drop_in_place() };
            });
        }
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        self.drop_live();
        self.pool.raw().reset(self.how);
        self.pool.keyed_mut().reset(self.how);
    }
}

/// An owned object of a [`Pool`]. Dropping the handle drops the object and frees its slot, even if
/// the object's drop panics.
///
/// ```
/// use heapwright::pool::Pool;
/// let pool = Pool::new();
/// let text = pool.boxed(String::from("moved"));
/// assert_eq!(text.into_inner(), "moved");
/// assert!(pool.is_empty());
/// ```
///
/// Handles compare, hash and print as their objects do. [`coerce!`](super::coerce) makes a handle
/// of a trait object.
pub struct Boxed<'p, T: ?Sized> {
    object: NonNull<T>,
    home: &'p UnsafeCell<RawPool>,
    /// Makes the handle invariant in `T`: the object may stay in the pool when the handle is gone.
    holds: PhantomData<*mut T>,
}

super::handle_impls!(Boxed of Pool, BoxedHome is UnsafeCell<RawPool>);

/// Settings of a new [`Pool`].
pub struct Builder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(Builder<T>);

impl<T> Builder<T> {
    /// Makes the pool, which is empty.
    #[must_use]
    pub const fn build(self) -> Pool<T> {
        let raw = RawPool::with(Layout::new::<T>(), self.config);
        let keyed = KeyPool::of(self.config);
        Pool { raw: UnsafeCell::new(raw), keyed: UnsafeCell::new(keyed), objects: PhantomData }
    }
}
