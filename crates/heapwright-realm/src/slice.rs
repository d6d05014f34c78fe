//! Arrays and strings of a realm: any number of values in one slot.
//!
//! ```text
//!   object   | header | length | value | value | value | ...      a Slice is one word
//! ```

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;

use heapwright_substrate::unwinding;

use super::copied::copied;
use super::mutation::Mutation;
use super::pointer::{Gc, Header, Type, kind_of, out_of_memory};
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

#[repr(C)]
struct Head {
    header: Header,
    length: usize,
}

/// A reference to an array in a realm. The length never changes. Elements that are to change are
/// [`Cell`](super::Cell)s or [`Lock`](super::Lock)s.
///
/// ```
/// # use heapwright::{Rootable, gc::{Cell, Realm, Slice}};
/// let mut realm = Realm::<Rootable!['gc => Slice<'gc, Cell<usize>>]>::new(|mc| {
///     mc.alloc_slice(10, |n| Cell::new(n * n))
/// });
/// realm.mutate(|mc, root| {
///     let squares = *root.as_ref();
///     squares[3].set(mc, squares, 1000);
///     assert_eq!(squares.iter().map(Cell::get).sum::<usize>(), 285 - 9 + 1000);
/// });
/// ```
pub struct Slice<'gc, T> {
    at: NonNull<Head>,
    of: PhantomData<(Gc<'gc, T>, T)>,
}

impl<'gc, T> Slice<'gc, T> {
    /// Returns the values, for the whole mutation.
    #[inline]
    #[must_use]
    pub fn as_slice(self) -> &'gc [T] {
        // SAFETY: nothing is collected while 'gc lasts, so the values stay.
        unsafe { slice::from_raw_parts(self.values(), self.length()) }
    }

    fn length(self) -> usize {
        // SAFETY: nothing is collected while 'gc lasts, so `at` leads to a live object.
        unsafe { (*self.at.as_ptr()).length }
    }

    fn values(self) -> *mut T {
        self.at.as_ptr().wrapping_add(1).cast()
    }

    /// Returns whether both are the same array.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.at == other.at
    }

    fn object(self) -> *mut u8 {
        self.at.as_ptr().cast()
    }

    unsafe fn from_object(object: *mut u8) -> Self {
        // SAFETY: the object is such an array, so it does not lie at null.
        Self { at: unsafe { NonNull::new_unchecked(object.cast()) }, of: PhantomData }
    }
}

impl<T: Trace> Slice<'_, T> {
    const TYPE: &'static Type = &Type {
        trace: Self::trace_all,
        drop: Self::drop_all,
        size: Self::size_of_all,
        name: core::any::type_name::<[T]>,
    };

    /// Sets the header, so that the heap traces and drops the values.
    ///
    /// # Safety
    ///
    /// All values were written.
    unsafe fn open(self) {
        // SAFETY: an object of this type, which is not reachable yet.
        unsafe { (*self.at.as_ptr()).header = Header { of: Some(Self::TYPE) } };
    }

    unsafe fn size_of_all(object: *const u8) -> usize {
        // SAFETY: the header says that the object is such an array.
        let all = unsafe { Self::from_object(object.cast_mut()) };
        size_of::<Head>() + size_of::<T>() * all.length()
    }

    unsafe fn trace_all(object: *mut u8, tracer: &Tracer) {
        // SAFETY: the header says that the object is such an array.
        unsafe { Self::from_object(object) }.deref().trace(tracer);
    }

    unsafe fn drop_all(object: *mut u8) {
        // SAFETY: the header says that the object is such an array.
        let all = unsafe { Self::from_object(object) };
        // SAFETY: the object is dead, and this is called once.
        unsafe { unwinding::drop_each(all.values(), all.length()) };
    }
}

impl<'gc> Mutation<'gc> {
    /// Creates an array of `length` values. `value` makes each value from its position.
    ///
    /// # Panics
    ///
    /// If there is no memory. If `value` panics: then the values made before are not dropped. In a
    /// [`SendRealm`](super::SendRealm), if the type is not [`Trace::DROPS_ANYWHERE`].
    pub fn alloc_slice<T: Trace + 'gc>(
        &self,
        length: usize,
        mut value: impl FnMut(usize) -> T,
    ) -> Slice<'gc, T> {
        let made = self.head::<T>(length);
        for n in 0..length {
            // SAFETY: within the object, which has room for all values.
            unsafe { made.values().wrapping_add(n).write(value(n)) };
        }
        // The references in these values are still valid, because a mutation never collects.
        // SAFETY: all values were written.
        unsafe { made.open() };
        made
    }

    /// Allocates memory for an array of `length` values, which is not reachable yet.
    fn head<T: Trace + 'gc>(&self, length: usize) -> Slice<'gc, T> {
        const { assert!(align_of::<T>() <= 8, "values of a realm are aligned to 8 bytes at most") };
        self.admit::<T>();
        let size = size_of::<T>().checked_mul(length);
        let Some(size) = size.and_then(|size| size.checked_add(size_of::<Head>())) else {
            out_of_memory(usize::MAX)
        };
        let Some(at) = self.object(size, const { kind_of::<T>() }) else { out_of_memory(size) };
        let at = at.cast::<Head>();
        // Without a header the collector reads nothing of the object.
        // SAFETY: fresh, and large enough.
        unsafe { at.write(Head { header: Header { of: None }, length }) };
        Slice { at, of: PhantomData }
    }

    /// Creates a string with this text.
    pub fn alloc_str(&self, text: &str) -> Str<'gc> {
        self.join(&[text])
    }

    /// Creates a string with these texts, one behind the other.
    pub fn join(&self, texts: &[&str]) -> Str<'gc> {
        let length = texts.iter().try_fold(0usize, |sum, text| sum.checked_add(text.len()));
        let length = length.unwrap_or_else(|| out_of_memory(usize::MAX));
        let bytes = self.head::<u8>(length);
        let mut to = bytes.values();
        for text in texts {
            // SAFETY: within the object, which has room for all of them.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), to, text.len()) };
            to = to.wrapping_add(text.len());
        }
        // SAFETY: all is written.
        unsafe { bytes.open() };
        Str { bytes }
    }
}

copied!(Slice<'_, T>: T);

impl<T> Deref for Slice<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: nothing is collected while the slice exists, so the values stay.
        unsafe { slice::from_raw_parts(self.values(), self.length()) }
    }
}

/// Prints the values, or the address if the array is already being printed.
impl<T: fmt::Debug> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::printing::print(f, self.object(), |f| (**self).fmt(f))
    }
}

impl<T: PartialEq> PartialEq for Slice<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Slice<'_, T> {}

impl<T: PartialOrd> PartialOrd for Slice<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord> Ord for Slice<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash> Hash for Slice<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

// SAFETY: no mutation has the brand `'static`, so no value of this type exists outside of a heap.
unsafe impl<T: Send> Send for Slice<'static, T> {}

// SAFETY: a `Slice` is one reference, which it reports.
unsafe impl<T: Trace> Trace for Slice<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: `at` is the object's own slot, and leads to a live object of this heap.
        unsafe { tracer.mark_slot(ptr::from_ref(&self.at).cast_mut().cast()) };
    }
}

/// A reference to a string in a realm.
///
/// ```
/// # use heapwright::{Rootable, gc::{Realm, Str}};
/// let mut realm = Realm::<Rootable!['gc => Str<'gc>]>::new(|mc| mc.alloc_str("two words"));
/// realm.mutate(|mc, root| {
///     assert_eq!(root.split(' ').count(), 2);
///     assert_eq!(&*mc.join(&[&root, "!"]), "two words!");
/// });
/// ```
///
/// A `Str` compares and hashes as its text, so a `&str` finds a key of a [`Map`](super::Map) of
/// strings. [`StrBuilder`](super::StrBuilder) makes a string piece by piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Str<'gc> {
    bytes: Slice<'gc, u8>,
}

impl<'gc> Str<'gc> {
    /// Returns the text, for the whole mutation.
    #[must_use]
    pub fn as_str(self) -> &'gc str {
        // SAFETY: the bytes are whole texts.
        unsafe { str::from_utf8_unchecked(self.bytes.as_slice()) }
    }

    /// Returns whether both are the same string.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.bytes.is(other.bytes)
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str<'_> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Str<'_> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: a `Str` is one reference, which it reports.
unsafe impl Trace for Str<'_> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.bytes.trace(tracer);
    }
}

/// A reference to an object that may contain a cell.
pub trait Object<'gc>: Copy + sealed::Object {}

impl<'gc, T> Object<'gc> for Gc<'gc, T> {}
impl<'gc, T: Trace> Object<'gc> for Slice<'gc, T> {}

pub(super) mod sealed {
    use super::super::pointer::{Header, report};
    use super::{Gc, Slice, Trace};
    use heapwright_gc::raw::TraceSlot;

    /// The properties of an object that the barrier uses.
    pub trait Object {
        /// Returns the object's start.
        fn start(self) -> *mut u8;
        /// Returns whether `size` bytes from the address `at` on lie in the object's value.
        fn has(self, at: usize, size: usize) -> bool;
        /// Returns the place to trace again after a store at the address `at` in the value (not at
        /// its end), and the function that traces the place.
        fn retraced(self, at: usize) -> (*mut u8, TraceSlot);
    }

    impl<T> Object for Gc<'_, T> {
        #[inline]
        fn start(self) -> *mut u8 {
            self.object()
        }

        #[inline]
        fn has(self, at: usize, size: usize) -> bool {
            self.covers(at, size)
        }

        #[inline]
        fn retraced(self, _: usize) -> (*mut u8, TraceSlot) {
            (self.object(), Header::trace)
        }
    }

    impl<T: Trace> Object for Slice<'_, T> {
        #[inline]
        fn start(self) -> *mut u8 {
            self.object()
        }

        #[inline]
        fn has(self, at: usize, size: usize) -> bool {
            let from = at.wrapping_sub(self.values().addr());
            let has = size_of::<T>() * self.length();
            from <= has && size <= has - from
        }

        #[inline]
        fn retraced(self, at: usize) -> (*mut u8, TraceSlot) {
            let element = (at - self.values().addr()).checked_div(size_of::<T>()).unwrap_or(0);
            (self.values().wrapping_add(element).cast(), report::<T>)
        }
    }
}
