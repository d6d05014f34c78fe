//! References into a realm, and the header before each value.
//!
//! ```text
//!   object   | header: type's operations | value ......... |     in a slot
//!              ^ the object's address      ^ the value that a Gc derefs to
//! ```

use core::ffi::{CStr, c_char};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::sync::Lock;

use super::copied::copied;
use super::mutation::Mutation;
use super::printing;
use super::trace::Trace;
use heapwright_gc::raw::{TraceSlot, Tracer};
use heapwright_gc::{FREED, LEAF, TRACED};

pub(super) struct Type {
    pub(super) trace: unsafe fn(*mut u8, &Tracer),
    pub(super) drop: unsafe fn(*mut u8),
    pub(super) size: unsafe fn(*const u8) -> usize,
    pub(super) name: fn() -> &'static str,
}

/// The header at an object's start. Zero: the object has no value yet.
pub(super) struct Header {
    pub(super) of: Option<&'static Type>,
}

#[repr(C)]
pub(super) struct Boxed<T> {
    header: Header,
    value: T,
}

pub(super) const fn kind_of<T: Trace>() -> u32 {
    let traced = if T::TRACED { TRACED } else { LEAF };
    traced | if core::mem::needs_drop::<T>() { FREED } else { 0 }
}

impl<T: Trace> Boxed<T> {
    const TYPE: &'static Type = &Type {
        trace: Self::trace,
        drop: Self::drop,
        size: |_| size_of::<Self>(),
        name: core::any::type_name::<T>,
    };

    unsafe fn trace(object: *mut u8, tracer: &Tracer) {
        // SAFETY: the header says that the object has this type.
        unsafe { &*object.cast::<Self>() }.value.trace(tracer);
    }

    unsafe fn drop(object: *mut u8) {
        // SAFETY: the header says that the object has this type.
        let value = unsafe { &raw mut (*object.cast::<Self>()).value };
        // SAFETY: the object is dead, and its value is dropped once.
        unsafe { ptr::drop_in_place(value) };
    }
}

/// Names of types as C strings, found by their Rust names.
static NAMES: Lock<Option<&'static Named>> = Lock::new(None);

/// A name in side memory; its text follows it.
struct Named {
    next: Option<&'static Self>,
    name: &'static str,
    text: &'static CStr,
}

impl Header {
    /// Returns the type of an object; `None` if the object has no value yet.
    ///
    /// # Safety
    ///
    /// The object begins with a header or zero.
    unsafe fn of(object: *const u8) -> Option<&'static Type> {
        // SAFETY: by the contract.
        unsafe { &*object.cast::<Self>() }.of
    }

    /// # Safety
    ///
    /// The object begins with a header or zero.
    pub(super) unsafe fn trace(object: *mut u8, tracer: &Tracer) {
        // SAFETY: by the contract.
        if let Some(of) = unsafe { Self::of(object) } {
            // SAFETY: the object is of the type that its header says.
            unsafe { (of.trace)(object, tracer) };
        }
    }

    /// # Safety
    ///
    /// The object begins with a header or zero, and is dead.
    pub(super) unsafe fn drop(object: *mut u8) {
        // SAFETY: by the contract.
        if let Some(of) = unsafe { Self::of(object) } {
            // SAFETY: the object is of the type that its header says.
            unsafe { (of.drop)(object) };
        }
    }

    /// Bytes of the object; 0 if it has no value yet.
    ///
    /// # Safety
    ///
    /// The object begins with a header or zero.
    pub(super) unsafe fn size(object: *const u8) -> usize {
        // SAFETY: by the contract; the object is of the type that its header says.
        unsafe { Self::of(object) }.map_or(0, |of| unsafe { (of.size)(object) })
    }

    /// Returns the name of the object's type, as a string that is never freed. Takes a lock, so
    /// only dumps and verifiers call it.
    ///
    /// # Safety
    ///
    /// The object begins with a header or zero.
    pub(super) unsafe fn name(object: *const u8) -> *const c_char {
        // SAFETY: by the contract.
        let Some(of) = (unsafe { Self::of(object) }) else { return c"(no value yet)".as_ptr() };
        let name = (of.name)();
        let mut names = NAMES.lock();
        let mut all = core::iter::successors(*names, |named| named.next);
        if let Some(known) = all.find(|named| ptr::eq(named.name, name)) {
            return known.text.as_ptr();
        }
        let Some(side) = Side::take(size_of::<Named>() + name.len() + 1) else {
            return c"(no memory for its name)".as_ptr();
        };
        let named: *mut Named = side.at().cast();
        let copy: *mut u8 = named.wrapping_add(1).cast();
        // SAFETY: fresh memory with room for the text and one byte more, which stays zero.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len()) };
        // SAFETY: written above, and never given back.
        let bytes: &'static [u8] = unsafe { slice::from_raw_parts(copy, name.len() + 1) };
        let text = CStr::from_bytes_until_nul(bytes).unwrap_or_default();
        // SAFETY: fresh memory with room for it, aligned to a page.
        unsafe { named.write(Named { next: *names, name, text }) };
        // SAFETY: written above, and never given back.
        *names = Some(unsafe { &*named });
        text.as_ptr()
    }
}

/// A reference to a value in a realm. The value lives as long as it is reachable. The reference is
/// `Copy`, and never outlives its [`Realm::mutate`](super::Realm::mutate).
///
/// Two references are equal if their values are; [`Gc::is`] compares identities.
///
/// ```compile_fail
/// # use heapwright::{Rootable, gc::{Gc, Realm}};
/// let mut realm = Realm::<Rootable!['gc => u32]>::new(|_| 7);
/// let escaped: Gc<'_, u32> = realm.mutate(|_, root| root); // the lifetime is of this call alone
/// ```
pub struct Gc<'gc, T> {
    at: NonNull<Boxed<T>>,
    brand: PhantomData<fn(&'gc ()) -> &'gc ()>,
}

impl<'gc, T> Gc<'gc, T> {
    /// Returns the value, for the whole mutation.
    #[allow(
        clippy::should_implement_trait,
        reason = "what the trait gives lives as long as the Gc that is asked, this as long as any"
    )]
    #[inline]
    #[must_use]
    pub fn as_ref(self) -> &'gc T {
        // SAFETY: `at` leads to a live object while 'gc lasts. A shared value is borrowed
        // exclusively only through cells.
        &unsafe { &*self.at.as_ptr() }.value
    }

    /// Returns whether both references lead to the same value.
    #[inline]
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.at == other.at
    }

    /// Returns a number that no other value has now. A value that is not [pinned](Mutation::pin)
    /// may move after this [`Realm::mutate`](super::Realm::mutate), and then gets another number.
    #[inline]
    #[must_use]
    pub fn address(self) -> usize {
        // Not the object's own address, so that a program's number never equals a reference.
        self.at.addr().get() + core::mem::offset_of!(Boxed<T>, value)
    }

    #[inline]
    pub(crate) fn object(self) -> *mut u8 {
        self.at.as_ptr().cast()
    }

    /// # Safety
    ///
    /// The object is of the realm with this brand, and holds a value of this type.
    #[inline]
    pub(super) unsafe fn from_object(object: *mut u8) -> Self {
        // SAFETY: objects are not at null.
        Self { at: unsafe { NonNull::new_unchecked(object.cast()) }, brand: PhantomData }
    }

    #[inline]
    pub(super) fn covers(self, at: usize, size: usize) -> bool {
        let from = at.wrapping_sub(self.address());
        from <= size_of::<T>() && size <= size_of::<T>() - from
    }
}

impl<'gc> Mutation<'gc> {
    #[inline]
    pub(super) fn object(&self, size: usize, kind: u32) -> Option<NonNull<u8>> {
        // SAFETY: the realm's mutator, which outlives this.
        let mutator = unsafe { &*self.mutator };
        // SAFETY: the object is filled before a collection, and its `Trace` reports it.
        NonNull::new(unsafe { mutator.alloc(size, kind) })
    }

    /// Puts a value into the realm. Never collects.
    ///
    /// # Errors
    ///
    /// Returns the value if the system has no memory, or the limit leaves none.
    ///
    /// # Panics
    ///
    /// In a [`SendRealm`](super::SendRealm), if the type is not [`Trace::DROPS_ANYWHERE`].
    #[inline]
    pub fn try_alloc<T: Trace + 'gc>(&self, value: T) -> Result<Gc<'gc, T>, T> {
        self.admit::<T>();
        self.put(value)
    }

    /// [`Mutation::try_alloc`] without the check of the type.
    #[inline]
    pub(super) fn put<T: Trace + 'gc>(&self, value: T) -> Result<Gc<'gc, T>, T> {
        const { assert!(align_of::<T>() <= 8, "values of a realm are aligned to 8 bytes at most") };
        let Some(at) = self.object(size_of::<Boxed<T>>(), const { kind_of::<T>() }) else {
            return Err(value);
        };
        let at = at.cast::<Boxed<T>>();
        // SAFETY: fresh, and large enough.
        unsafe { at.write(Boxed { header: Header { of: Some(Boxed::<T>::TYPE) }, value }) };
        Ok(Gc { at, brand: PhantomData })
    }

    /// Puts a value into the realm. Never collects. Constant time, except when it needs a new page.
    ///
    /// # Panics
    ///
    /// If there is no memory, and as [`Mutation::try_alloc`].
    #[inline]
    pub fn alloc<T: Trace + 'gc>(&self, value: T) -> Gc<'gc, T> {
        match self.try_alloc(value) {
            Ok(object) => object,
            Err(_) => out_of_memory(size_of::<T>()),
        }
    }

    /// Pins a value. The value does not move while it lives, so a program may keep its address.
    pub fn pin<T>(&self, value: Gc<'gc, T>) {
        // SAFETY: the realm's mutator, which outlives this.
        unsafe { &*self.mutator }.pin(value.object());
    }

    /// Reports a store that is about to be made in an object. After this mutation the collector
    /// traces `place` again, with the pointer's provenance, by `trace`. Then `place` must hold a
    /// value of `trace`'s type.
    #[inline]
    pub(super) fn touch(&self, object: *mut u8, (place, trace): (*mut u8, TraceSlot)) {
        // SAFETY: the realm's mutator, which outlives this.
        unsafe { &*self.mutator }.touch_at(object, place, trace);
    }
}

/// # Safety
///
/// A `T` lies there, and no mutation runs.
pub(super) unsafe fn report<T: Trace>(place: *mut u8, tracer: &Tracer) {
    // SAFETY: by the contract.
    unsafe { &*place.cast::<T>() }.trace(tracer);
}

/// Returns whether a store of such a value must be reported. A value without size holds no
/// reference, and has the address of the next value.
pub(super) const fn is_reported<T: Trace>() -> bool {
    T::TRACED && size_of::<T>() != 0
}

#[cold]
#[inline(never)]
pub(super) fn out_of_memory(size: usize) -> ! {
    panic!("no memory for {size} bytes in a realm: its limit or the system's is reached");
}

copied!(Gc<'_, T>: T);

impl<T> Deref for Gc<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object lives while 'gc lasts, and the reference to this `Gc` lives no longer.
        &unsafe { &*self.at.as_ptr() }.value
    }
}

impl<T: PartialEq> PartialEq for Gc<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Gc<'_, T> {}

impl<T: Hash> Hash for Gc<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// Prints the value, or its address if it is already being printed.
impl<T: fmt::Debug> fmt::Debug for Gc<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printing::print(f, self.object(), |f| (**self).fmt(f))
    }
}

impl<T: fmt::Display> fmt::Display for Gc<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: no mutation has the brand `'static`, so no value of this type exists outside of a heap.
unsafe impl<T: Send> Send for Gc<'static, T> {}

// SAFETY: a `Gc` is one reference, which it reports.
unsafe impl<T: Trace> Trace for Gc<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: the slot leads to the object until a store, which the barrier reports.
        unsafe { tracer.mark_slot(ptr::from_ref(&self.at).cast_mut().cast()) };
    }
}
