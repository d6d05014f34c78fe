//! Interior mutability with a write barrier.
//!
//! A store into a marked or old object must be reported, so the caller passes the object that
//! contains the cell. The store checks that the cell lies in it.
//!
//! The barrier reports the object or the element, not the cell, because tracing follows after the
//! mutation. By then the mutation may have replaced the contents of a `Lock` *around* the cell, for
//! example by another variant of an enum.
//!
//! ```text
//!   a Gc's object   | header | [ Lock  [ Cell ] ] | [ Cell ] |      traced again: the whole object
//!   a Slice's       | header | length | [ Cell ] | [ Lock [ Cell ] ] | ...      the cell's element
//! ```
//!
//! No store changes the type of the object or the element. Many cells that change one by one are
//! better kept in a `Slice` than in an array in a `Gc`.

use core::cell::{self, UnsafeCell};
use core::fmt;

use super::mutation::Mutation;
use super::pointer::is_reported;
use super::slice::Object;
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

/// A cell in an object of a realm, whose value is copied in and out.
///
/// ```
/// # use heapwright::{Rootable, gc::{Cell, Realm}};
/// let mut realm = Realm::<Rootable!['gc => Cell<u32>]>::new(|_| Cell::new(1));
/// realm.mutate(|mc, root| {
///     root.set(mc, root, root.get() + 1);
///     assert_eq!(root.get(), 2);
/// });
/// ```
#[repr(transparent)]
pub struct Cell<T> {
    value: UnsafeCell<T>,
}

impl<T> Cell<T> {
    /// Creates a cell with this value.
    pub const fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value) }
    }
}

impl<T: Trace> Cell<T> {
    /// Stores a value, and drops the old one. `parent` is the object that contains the cell.
    ///
    /// # Panics
    ///
    /// If the cell does not lie in `parent`.
    #[inline]
    pub fn set<'gc, P: Object<'gc>>(&self, mc: &Mutation<'gc>, parent: P, value: T) {
        drop(self.replace(mc, parent, value));
    }

    /// Does the same as [`Cell::set`], and returns the old value.
    ///
    /// # Panics
    ///
    /// If the cell does not lie in `parent`.
    #[inline]
    pub fn replace<'gc, P: Object<'gc>>(&self, mc: &Mutation<'gc>, parent: P, value: T) -> T {
        touch(mc, parent, self);
        // SAFETY: the value is only copied, or traced while no mutation runs.
        unsafe { self.value.get().replace(value) }
    }
}

impl<T: Trace> Cell<T> {
    /// Does the same as [`Cell::set`] without a barrier, for values without references. It does not
    /// compile for other values.
    ///
    /// ```
    /// # use heapwright::{Rootable, gc::{Cell, Realm}};
    /// let mut realm = Realm::<Rootable!['gc => Cell<u32>]>::new(|_| Cell::new(1));
    /// assert_eq!(realm.mutate(|_, root| { root.put(2); root.get() }), 2);
    /// ```
    ///
    /// ```compile_fail
    /// # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
    /// # type Root = Rootable!['gc => Cell<Gc<'gc, u32>>];
    /// let mut realm = Realm::<Root>::new(|mc| Cell::new(mc.alloc(1)));
    /// realm.mutate(|mc, root| root.put(mc.alloc(2)));
    /// ```
    #[inline]
    pub fn put(&self, value: T) {
        const { assert!(!T::TRACED, "references are stored with `Cell::set`, which reports them") };
        // SAFETY: the value is only copied, or traced while no mutation runs.
        drop(unsafe { self.value.get().replace(value) });
    }
}

impl<T: Copy> Cell<T> {
    /// Returns the value.
    #[inline]
    pub fn get(&self) -> T {
        // SAFETY: no exclusive reference to the value exists: it is only copied.
        unsafe { self.value.get().read() }
    }
}

impl<T: Default> Default for Cell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

// SAFETY: the value is traced, and no mutation runs meanwhile.
unsafe impl<T: Trace> Trace for Cell<T> {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: no code changes the value while it is traced.
        unsafe { &*self.value.get() }.trace(tracer);
    }
}

/// A cell in an object of a realm, whose value is borrowed: by many readers or one writer.
///
/// ```
/// # use heapwright::{Rootable, gc::{Lock, Realm}};
/// let mut realm = Realm::<Rootable!['gc => Lock<[u32; 3]>]>::new(|_| Lock::new([1, 2, 3]));
/// realm.mutate(|mc, root| {
///     root.borrow_mut(mc, root)[1] = 5;
///     assert_eq!(root.borrow().iter().sum::<u32>(), 9);
/// });
/// ```
pub struct Lock<T> {
    value: cell::RefCell<T>,
}

impl<T> Lock<T> {
    /// Creates a cell with this value.
    pub const fn new(value: T) -> Self {
        Self { value: cell::RefCell::new(value) }
    }

    /// Borrows the value to read it.
    ///
    /// # Panics
    ///
    /// If the value is borrowed mutably.
    #[inline]
    pub fn borrow(&self) -> cell::Ref<'_, T> {
        self.value.borrow()
    }

    /// Does the same as [`Lock::borrow`] without a panic if the value is borrowed mutably.
    ///
    /// # Errors
    ///
    /// If the value is borrowed mutably.
    #[inline]
    pub fn try_borrow(&self) -> Result<cell::Ref<'_, T>, cell::BorrowError> {
        self.value.try_borrow()
    }
}

impl<T: Trace> Lock<T> {
    /// Borrows the value to change it. `parent` is the object that contains the lock.
    ///
    /// # Panics
    ///
    /// If the value is borrowed, or the lock does not lie in `parent`.
    #[inline]
    pub fn borrow_mut<'gc, 'a, P: Object<'gc>>(
        &'a self,
        mc: &'a Mutation<'gc>,
        parent: P,
    ) -> cell::RefMut<'a, T> {
        touch(mc, parent, self);
        self.value.borrow_mut()
    }

    /// Does the same as [`Lock::borrow_mut`] without a panic if the value is borrowed.
    ///
    /// ```
    /// # use heapwright::{Rootable, gc::{Lock, Realm}};
    /// let mut realm = Realm::<Rootable!['gc => Lock<u32>]>::new(|_| Lock::new(1));
    /// realm.mutate(|mc, root| {
    ///     let read = root.try_borrow().unwrap();
    ///     assert!(root.try_borrow_mut(mc, root).is_err());
    ///     drop(read);
    ///     *root.try_borrow_mut(mc, root).unwrap() += 1;
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// If the value is borrowed.
    ///
    /// # Panics
    ///
    /// If the lock does not lie in `parent`.
    #[inline]
    pub fn try_borrow_mut<'gc, 'a, P: Object<'gc>>(
        &'a self,
        mc: &'a Mutation<'gc>,
        parent: P,
    ) -> Result<cell::RefMut<'a, T>, cell::BorrowMutError> {
        touch(mc, parent, self);
        self.value.try_borrow_mut()
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

// SAFETY: the value is traced while no mutation runs, and no user of a forgotten borrow is left.
unsafe impl<T: Trace> Trace for Lock<T> {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: no code changes the value while it is traced.
        unsafe { &*self.value.as_ptr() }.trace(tracer);
    }
}

#[inline]
fn touch<'gc, P: Object<'gc>, T: Trace>(mc: &Mutation<'gc>, parent: P, cell: &T) {
    let at = core::ptr::from_ref(cell).addr();
    assert!(parent.has(at, size_of::<T>()), "the cell lies in another object");
    if const { is_reported::<T>() } {
        mc.touch(parent.start(), parent.retraced(at));
    }
}
