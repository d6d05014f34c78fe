//! References of a realm that keep no object alive.
//!
//! ```text
//!   Weak --> | header | object |            a box of its own in the heap, with one weak reference
//!   Ephemeron --> | header | key | value |
//! ```
//!
//! Because of the box, a `Weak` may lie anywhere, even in a `Vec` or an enum. When the object has
//! died, the collector writes null into the box. The box lives as long as it is reachable.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;

use super::copied::copied;
use super::mutation::Mutation;
use super::pointer::Gc;
use super::trace::Trace;
use heapwright_gc::raw::Tracer;

/// The place of a weak reference, which the collector writes while no mutation runs.
struct Box<const N: usize>(UnsafeCell<[*mut u8; N]>);

impl<const N: usize> Box<N> {
    fn get(&self) -> [*mut u8; N] {
        // SAFETY: only the collector writes it, while no mutation runs.
        unsafe { self.0.get().read() }
    }
}

// SAFETY: the weak reference is reported as weak, and lies in its object while that lives.
unsafe impl Trace for Box<1> {
    fn trace(&self, tracer: &Tracer) {
        // SAFETY: the weak reference lies in the object that is traced.
        unsafe { tracer.mark_weak(self.0.get().cast()) };
    }
}

// SAFETY: the ephemeron is reported as one, and lies in its object while that lives.
unsafe impl Trace for Box<2> {
    fn trace(&self, tracer: &Tracer) {
        let key = self.0.get().cast::<*mut u8>();
        // SAFETY: key and value lie in the object that is traced, for as long as that lives.
        unsafe { tracer.mark_ephemeron(key, key.wrapping_add(1)) };
    }
}

/// A reference that does not keep its value alive. It is empty when the value has died, and `Copy`.
///
/// ```
/// # use heapwright::{Rootable, gc::{Cell, Gc, Realm, Weak}};
/// type Root = Rootable!['gc => (Cell<Option<Gc<'gc, u32>>>, Weak<'gc, u32>)];
/// let mut realm = Realm::<Root>::new(|mc| {
///     let value = mc.alloc(7);
///     (Cell::new(Some(value)), mc.weak(value))
/// });
/// realm.collect();
/// realm.mutate(|mc, root| {
///     assert_eq!(*root.1.get().unwrap(), 7);
///     // From now on only the weak reference leads to the value.
///     root.as_ref().0.set(mc, root, None);
/// });
/// realm.collect();
/// realm.mutate(|_, root| assert!(root.1.get().is_none()));
/// ```
pub struct Weak<'gc, T> {
    place: Gc<'gc, Box<1>>,
    of: PhantomData<Gc<'gc, T>>,
}

impl<'gc, T> Weak<'gc, T> {
    /// Returns the value, if it lives.
    #[must_use]
    pub fn get(self) -> Option<Gc<'gc, T>> {
        let [object] = self.place.as_ref().get();
        // SAFETY: `Mutation::weak` put the object there; the word is null once the object has died.
        (!object.is_null()).then(|| unsafe { Gc::from_object(object) })
    }
}

// SAFETY: no mutation has the brand `'static`, so no value of this type exists outside of a heap.
unsafe impl<T: Send> Send for Weak<'static, T> {}

copied!(Weak<'_, T>: T);

impl<T: fmt::Debug> fmt::Debug for Weak<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

// SAFETY: its box is reported.
unsafe impl<T: Trace> Trace for Weak<'_, T> {
    fn trace(&self, tracer: &Tracer) {
        self.place.trace(tracer);
    }
}

/// A value that lives as long as its key. An ephemeron is `Copy`, and empty when the key has died.
///
/// ```
/// # use heapwright::{Rootable, gc::{Cell, Ephemeron, Gc, Realm}};
/// type Root = Rootable!['gc => (Cell<Option<Gc<'gc, u32>>>, Ephemeron<'gc, u32, u64>)];
/// let mut realm = Realm::<Root>::new(|mc| {
///     let key = mc.alloc(7);
///     (Cell::new(Some(key)), mc.ephemeron(key, mc.alloc(49)))
/// });
/// realm.collect();
/// realm.mutate(|mc, root| {
///     assert_eq!(root.1.get().map(|(key, value)| (*key, *value)), Some((7, 49)));
///     root.as_ref().0.set(mc, root, None);
/// });
/// realm.collect();
/// realm.mutate(|_, root| assert!(root.1.get().is_none()));
/// ```
pub struct Ephemeron<'gc, K, V> {
    place: Gc<'gc, Box<2>>,
    of: PhantomData<(Gc<'gc, K>, Gc<'gc, V>)>,
}

impl<'gc, K, V> Ephemeron<'gc, K, V> {
    /// Returns the key and the value, if the key lives.
    #[must_use]
    pub fn get(self) -> Option<(Gc<'gc, K>, Gc<'gc, V>)> {
        let [key, value] = self.place.as_ref().get();
        if key.is_null() {
            return None;
        }
        // SAFETY: `Mutation::ephemeron` put both words there. Both are null once the key has died.
        let key = unsafe { Gc::from_object(key) };
        // SAFETY: `Mutation::ephemeron` put the value there as a `Gc` of this type. The word is
        // null once the key has died.
        Some((key, unsafe { Gc::from_object(value) }))
    }
}

// SAFETY: no mutation has the brand `'static`, so no value of this type exists outside of a heap.
unsafe impl<K: Send, V: Send> Send for Ephemeron<'static, K, V> {}

copied!(Ephemeron<'_, K, V>: K, V);

// SAFETY: its box is reported.
unsafe impl<K: Trace, V: Trace> Trace for Ephemeron<'_, K, V> {
    fn trace(&self, tracer: &Tracer) {
        self.place.trace(tracer);
    }
}

impl<'gc> Mutation<'gc> {
    /// Creates a weak reference to a value.
    pub fn weak<T>(&self, value: Gc<'gc, T>) -> Weak<'gc, T> {
        let place = self.alloc(Box(UnsafeCell::new([value.object()])));
        Weak { place, of: PhantomData }
    }

    /// Creates an ephemeron: the value lives as long as the key.
    pub fn ephemeron<K, V>(&self, key: Gc<'gc, K>, value: Gc<'gc, V>) -> Ephemeron<'gc, K, V> {
        let place = self.alloc(Box(UnsafeCell::new([key.object(), value.object()])));
        Ephemeron { place, of: PhantomData }
    }
}
