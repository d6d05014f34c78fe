//! The pool of a type: owning handles, raw pointers, and resets that drop.
//!
//! A value is written into a slot here; how it ends, and gives the slot back whatever
//! its drop does, is `handle`'s. No reference to the raw pool is held while code of the
//! user runs, because that code may use the pool.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;

use super::handle::{self, Home};
use super::raw::RawPool;
use super::store::{Called, Config, Walk};
use super::{Refused, Reset, Stats, checked};
use crate::misuse;
use crate::refused::IN_REGISTERS;
use crate::unwinding;

/// Objects of one type, made and destroyed in a handful of instructions.
///
/// Three ways to hold an object, which may be mixed: [`Boxed`] handles that give
/// the slot back when they are dropped ([`Pool::boxed`]); raw pointers for those
/// that manage lifetimes ([`Pool::create`], [`Pool::destroy`]); and keys that go
/// stale ([`Pool::insert`], [`Pool::get`], [`Pool::remove`]). Objects do not move.
///
/// One thread at a time; [`SharedPool`](super::SharedPool) is for many. Dropping
/// the pool drops what is live and gives all memory back. Objects of no size take
/// a byte each.
///
/// The functions that begin with `try_` give the value back where there is no
/// memory or the limit is reached; the others end the process with one line.
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
/// nor a reset, nor can a pool be reset while a reference is out:
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
/// and what is put in must live as long as what the pool's type says:
///
/// ```compile_fail,E0597
/// use heapwright::pool::Pool;
/// let mut pool: Pool<&'static str> = Pool::new();
/// {
///     let text = String::from("short");
///     let short: &Pool<&str> = &pool;
///     let _ = short.insert(&text);
/// }
/// assert_eq!(pool.iter_mut().count(), 1);
/// ```
///
/// and it stays in its thread:
///
/// ```compile_fail,E0277
/// use heapwright::pool::Pool;
/// let pool: Pool<u32> = Pool::new();
/// std::thread::scope(|scope| scope.spawn(|| drop(pool.boxed(1))).join().unwrap());
/// ```
pub struct Pool<T> {
    raw: UnsafeCell<RawPool>,
    /// Invariant: values go in through a shared reference.
    objects: PhantomData<UnsafeCell<T>>,
}

impl<T> Pool<T> {
    /// An empty pool. Takes no memory yet.
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

    /// An empty pool whose name, limit and kind of pages can be chosen.
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

    /// A slot that is at hand.
    #[inline(always)]
    fn pop(&self) -> Option<NonNull<T>> {
        // SAFETY: one thread at a time; nobody holds a reference to the raw pool
        // across code that is not its own.
        unsafe { (*self.raw.get()).pop() }.map(NonNull::cast)
    }

    /// A slot where none was at hand. Ends the process where there is none at all.
    #[inline(never)]
    fn slot_slow(&self) -> NonNull<T> {
        match self.with_raw(|raw| NonNull::new(raw.alloc_slow().cast::<T>())) {
            Some(slot) => slot,
            None => self.no_room(),
        }
    }

    /// The rest of [`Pool::create`] for a value in registers: a call that is the last
    /// thing its caller does, so that the way there needs no register saved.
    #[inline(never)]
    fn create_slow(&self, value: T) -> NonNull<T> {
        let slot = self.slot_slow();
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        slot
    }

    /// # Safety
    ///
    /// The slot is this pool's and in use; what was in it is gone.
    #[inline(always)]
    pub(super) unsafe fn free(&self, slot: NonNull<T>) {
        // SAFETY: a pool is of one thread at a time, and no reference into it outlives a call.
        let raw = unsafe { &mut *self.raw.get() };
        // SAFETY: a slot of this pool, in use, and what was in it is gone, as the caller
        // promises.
        unsafe { raw.free(slot.as_ptr().cast()) };
    }

    pub(super) fn raw(&mut self) -> &mut RawPool {
        self.raw.get_mut()
    }

    /// Runs `with` on the raw pool, without code of the user's.
    pub(super) fn with_raw<R>(&self, with: impl FnOnce(&mut RawPool) -> R) -> R {
        // SAFETY: one thread at a time, and `with` is not the user's, so that this is
        // the only reference.
        with(unsafe { &mut *self.raw.get() })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no_room(&self) -> ! {
        misuse::no_room("pool ", self.with_raw(|raw| raw.store().name()))
    }

    /// Makes an object, owned by the handle.
    #[inline]
    #[must_use]
    pub fn boxed(&self, value: T) -> Boxed<'_, T> {
        Boxed { object: self.create(value), pool: self }
    }

    /// Makes an object, owned by the handle.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_boxed(&self, value: T) -> Result<Boxed<'_, T>, Refused<T>> {
        self.try_create(value).map(|object| Boxed { object, pool: self })
    }

    /// Makes an object that lives until [`Pool::destroy`], a reset, or the pool's end.
    #[inline]
    #[must_use]
    pub fn create(&self, value: T) -> NonNull<T> {
        let slot = match self.pop() {
            Some(slot) => slot,
            None if size_of::<T>() <= IN_REGISTERS => return self.create_slow(value),
            None => self.slot_slow(),
        };
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        slot
    }

    /// Makes an object that lives until [`Pool::destroy`], a reset, or the pool's end.
    ///
    /// # Errors
    ///
    /// The value, where there is no memory or the limit is reached.
    #[inline]
    pub fn try_create(&self, value: T) -> Result<NonNull<T>, Refused<T>> {
        let Some(slot) = self.alloc() else { return Err(Refused(value)) };
        // SAFETY: a slot of the type's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    /// Drops an object and takes its slot back, even if the drop panics.
    ///
    /// # Safety
    ///
    /// The object was created by this pool (or let go of by [`Boxed::into_raw`]; not
    /// inserted) and not destroyed; nobody uses it afterwards.
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
    /// As [`Pool::destroy`]: the handle will.
    #[inline]
    pub unsafe fn own(&self, object: NonNull<T>) -> Boxed<'_, T> {
        Boxed { object, pool: self }
    }

    /// Objects in use. O(segments).
    #[must_use]
    pub fn len(&self) -> usize {
        self.with_raw(RawPool::len)
    }

    /// Whether no object is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Objects it has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.with_raw(|raw| raw.capacity())
    }

    /// Whether an address lies in this pool's memory. O(1); any address may be
    /// asked about.
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
    }

    /// The index of an object: a number that no other object of this pool has while
    /// it lives, small if there were never many. O(1). `None` for what is no object
    /// of this pool.
    #[must_use]
    pub fn index_of(&self, object: *const T) -> Option<u32> {
        self.with_raw(|raw| raw.index_of(object.cast()))
    }

    /// Makes sure that `count` more objects can be made without asking for memory.
    /// Fresh ones will lie in order of their addresses; pages are put behind them
    /// now if `touch`. False: no memory, or the limit is reached.
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

    /// Gives every page without a live object to the kernel, now. Returns bytes.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let pool: Pool<[u8; 4096]> = Pool::new();
    /// let many: Vec<_> = (0..100).map(|_| pool.boxed([1; 4096])).collect();
    /// drop(many);
    /// assert!(pool.trim() >= 100 * 4096);
    /// ```
    pub fn trim(&self) -> usize {
        self.with_raw(RawPool::trim)
    }

    /// What there is.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.with_raw(RawPool::stats)
    }

    /// Drops what is live, in order of addresses, and keeps as much memory as `how`
    /// says. Keys go stale; generations are kept, so that they stay so.
    ///
    /// If a destructor panics, the others run all the same, and all slots are free when the panic
    /// goes on. If several panic, the first panic goes on. (Without the feature `std` the second
    /// panic ends the process, as it does for `Vec`.)
    pub fn reset(&mut self, how: Reset) {
        let mut ending = Ending { pool: self, walk: Walk::default(), how };
        ending.pool.raw().settle();
        ending.drop_live();
        drop(ending);
        unwinding::surface();
    }

    /// Live objects, in order of their addresses.
    ///
    /// ```
    /// use heapwright::pool::Pool;
    /// let mut pool = Pool::new();
    /// let [a, b, c] = [1, 2, 3].map(|n| pool.create(n));
    /// // SAFETY: created above, and not used afterwards.
    /// unsafe { pool.destroy(b) };
    /// assert_eq!(pool.iter_mut().map(|n| *n).sum::<i32>(), 4);
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.raw().settle();
        IterMut { pool: self, walk: Walk::default() }
    }

    /// Live objects, in order of their addresses. `&mut`, because a handle may be
    /// changing its object while only the pool is shared.
    pub fn iter(&mut self) -> impl Iterator<Item = &T> {
        self.iter_mut().map(|object| &*object)
    }
}

impl<'a, T> IntoIterator for &'a mut Pool<T> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
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

impl<T> Home<T> for Pool<T> {
    #[inline(always)]
    unsafe fn deallocate(&self, slot: NonNull<T>) {
        // SAFETY: a slot of this pool, in use, whose object is gone, as the caller promises.
        unsafe { self.free(slot) };
    }
}

/// A reset under way, which ends however a destructor does.
struct Ending<'p, T> {
    pool: &'p mut Pool<T>,
    walk: Walk,
    how: Reset,
}

impl<T> Ending<'_, T> {
    fn drop_live(&mut self) {
        let keyed = self.pool.raw().store().has_keys();
        if !mem::needs_drop::<T>() && !keyed {
            return;
        }
        while let Some((segment, slot)) = self.pool.raw().store().next_out(&mut self.walk) {
            if keyed {
                self.pool.make_stale(segment, slot);
            }
            let object = self.pool.raw().store().slot(segment, slot).cast::<T>();
            unwinding::caught(|| {
                // SAFETY: a live object, which the walk has passed.
                unsafe { object.drop_in_place() };
            });
        }
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        // What is left, if a destructor panicked.
        self.drop_live();
        self.pool.raw().reset(self.how);
    }
}

/// An object of a [`Pool`], owned: dropping it drops the object and gives its slot
/// back, even if the object's own drop panics.
///
/// ```
/// use heapwright::pool::Pool;
/// let pool = Pool::new();
/// let text = pool.boxed(String::from("moved"));
/// assert_eq!(text.into_inner(), "moved");
/// assert!(pool.is_empty());
/// ```
pub struct Boxed<'p, T> {
    object: NonNull<T>,
    pool: &'p Pool<T>,
}

super::handle_impls!(Boxed of Pool);

/// Live objects of a [`Pool`], in order of their addresses; see
/// [`Pool::iter_mut`].
pub struct IterMut<'p, T> {
    pool: &'p mut Pool<T>,
    walk: Walk,
}

impl<'p, T> Iterator for IterMut<'p, T> {
    type Item = &'p mut T;

    fn next(&mut self) -> Option<&'p mut T> {
        let store = self.pool.raw().store();
        let (segment, slot) = store.next_out(&mut self.walk)?;
        let object = store.slot(segment, slot).cast::<T>();
        // SAFETY: a live object, given out once, while the pool is borrowed alone.
        Some(unsafe { &mut *object })
    }
}

/// Chooses how a [`Pool`] is made.
pub struct Builder<T> {
    config: Config,
    made: PhantomData<fn() -> T>,
}

super::builder_choices!(Builder<T>);

impl<T> Builder<T> {
    /// The pool, empty.
    #[must_use]
    pub const fn build(self) -> Pool<T> {
        let raw = RawPool::with(Layout::new::<T>(), self.config);
        Pool { raw: UnsafeCell::new(raw), objects: PhantomData }
    }
}
