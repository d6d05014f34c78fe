//! `Trace` of the types of core and std.
//!
//! A type is here if it holds no references into a realm, or if it owns its contents and gives
//! access to them. Types that allocate need the feature `std`. Types that can be changed while they
//! are shared (`core::cell`, `Mutex`) are left out: no store into them would be reported.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Bound, ControlFlow, Deref, DerefMut};
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::trace::Trace;
use heapwright_gc::raw::Tracer;

macro_rules! without_references {
    ($($of:ty),* $(,)?) => { $(
        // SAFETY: the type holds no reference into a realm.
        unsafe impl Trace for $of {
            const TRACED: bool = false;
            const DROPS_ANYWHERE: bool = true;
            fn trace(&self, _: &Tracer) {}
        }
    )* };
}

without_references!(
    (),
    bool,
    char,
    str,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    core::num::NonZero<u8>,
    core::num::NonZero<u16>,
    core::num::NonZero<u32>,
    core::num::NonZero<u64>,
    core::num::NonZero<u128>,
    core::num::NonZero<usize>,
    core::num::NonZero<i8>,
    core::num::NonZero<i16>,
    core::num::NonZero<i32>,
    core::num::NonZero<i64>,
    core::num::NonZero<i128>,
    core::num::NonZero<isize>,
    core::sync::atomic::AtomicBool,
    core::sync::atomic::AtomicU8,
    core::sync::atomic::AtomicU16,
    core::sync::atomic::AtomicU32,
    core::sync::atomic::AtomicU64,
    core::sync::atomic::AtomicUsize,
    core::sync::atomic::AtomicI8,
    core::sync::atomic::AtomicI16,
    core::sync::atomic::AtomicI32,
    core::sync::atomic::AtomicI64,
    core::sync::atomic::AtomicIsize,
    core::alloc::Layout,
    core::any::TypeId,
    core::cmp::Ordering,
    core::convert::Infallible,
    core::ffi::CStr,
    core::fmt::Error,
    core::marker::PhantomPinned,
    core::net::IpAddr,
    core::net::Ipv4Addr,
    core::net::Ipv6Addr,
    core::net::SocketAddr,
    core::net::SocketAddrV4,
    core::net::SocketAddrV6,
    core::time::Duration,
    RangeFull,
);

// SAFETY: a value that lives for ever holds no reference into a realm, which would live shorter.
unsafe impl<T: 'static> Trace for &'static [T] {
    const TRACED: bool = false;
    fn trace(&self, _: &Tracer) {}
}

// This is not implemented for all `&'static T`: for a `T` that is not `Trace`, the compiler would
// then advise to borrow it.
without_references!(&'static str, &'static core::ffi::CStr);

/// A value of any `'static` type. Such a value holds no reference into a realm, so its type need
/// not be [`Trace`].
///
/// The value can be changed as anywhere else, for example through a `core::cell::Cell` or a
/// `Mutex`. Such a change needs no report.
///
/// ```
/// # use core::cell::Cell;
/// # use heapwright::{Rootable, gc::{Realm, Static}};
/// let mut realm = Realm::<Rootable!['gc => Static<Cell<u32>>]>::new(|_| Static(Cell::new(1)));
/// realm.mutate(|_, root| root.set(root.get() + 1));
/// assert_eq!(realm.mutate(|_, root| root.get()), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Static<T: 'static>(pub T);

impl<T> Deref for Static<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Static<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

// SAFETY: a 'static value holds no reference into a realm.
unsafe impl<T: 'static> Trace for Static<T> {
    const TRACED: bool = false;
    fn trace(&self, _: &Tracer) {}
}

// SAFETY: the type holds no value.
unsafe impl<T: Trace + ?Sized> Trace for PhantomData<T> {
    const TRACED: bool = false;
    fn trace(&self, _: &Tracer) {}
}

// SAFETY: the value, if there is one, is reported.
unsafe impl<T: Trace> Trace for Option<T> {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.iter().for_each(|value| value.trace(tracer));
    }
}

// SAFETY: the value or the error is the only content, and is reported.
unsafe impl<T: Trace, E: Trace> Trace for Result<T, E> {
    const TRACED: bool = T::TRACED || E::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE && E::DROPS_ANYWHERE;
    fn trace(&self, tracer: &Tracer) {
        match self {
            Ok(value) => value.trace(tracer),
            Err(error) => error.trace(tracer),
        }
    }
}

// SAFETY: all items are reported.
unsafe impl<T: Trace> Trace for [T] {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.iter().for_each(|value| value.trace(tracer));
    }
}

// SAFETY: all items are reported.
unsafe impl<T: Trace, const N: usize> Trace for [T; N] {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.as_slice().trace(tracer);
    }
}

macro_rules! tuple {
    ($($name:ident),*) => {
        // SAFETY: each part is reported.
        unsafe impl<$($name: Trace),*> Trace for ($($name,)*) {
            const TRACED: bool = $($name::TRACED)||*;
            const DROPS_ANYWHERE: bool = $($name::DROPS_ANYWHERE)&&*;
            #[inline]
            fn trace(&self, tracer: &Tracer) {
                #[allow(non_snake_case, reason = "the names of types are as good as any")]
                let ($($name,)*) = self;
                $($name.trace(tracer);)*
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);
tuple!(A, B, C, D, E, F, G);
tuple!(A, B, C, D, E, F, G, H);
tuple!(A, B, C, D, E, F, G, H, I);
tuple!(A, B, C, D, E, F, G, H, I, J);
tuple!(A, B, C, D, E, F, G, H, I, J, K);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L);

/// Implements `Trace` for types that give access to their contents. An expression gives each part.
macro_rules! parts {
    ($($of:ident<$name:ident> |$this:ident| $($part:expr),+;)*) => { $(
        // SAFETY: these are the type's parts, and each is reported.
        unsafe impl<$name: Trace> Trace for $of<$name> {
            const TRACED: bool = $name::TRACED;
            const DROPS_ANYWHERE: bool = $name::DROPS_ANYWHERE;
            #[inline]
            fn trace(&self, tracer: &Tracer) {
                let $this = self;
                $($part.trace(tracer);)+
            }
        }
    )* };
}

use core::cmp::Reverse;
use core::num::{Saturating, Wrapping};

parts! {
    Reverse<T> |this| this.0;
    Wrapping<T> |this| this.0;
    Saturating<T> |this| this.0;
    ManuallyDrop<T> |this| **this;
    Range<T> |this| this.start, this.end;
    RangeFrom<T> |this| this.start;
    RangeTo<T> |this| this.end;
    RangeToInclusive<T> |this| this.end;
    RangeInclusive<T> |this| this.start(), this.end();
}

// SAFETY: the bounding value, if there is one, is reported.
unsafe impl<T: Trace> Trace for Bound<T> {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    fn trace(&self, tracer: &Tracer) {
        match self {
            Self::Included(value) | Self::Excluded(value) => value.trace(tracer),
            Self::Unbounded => {}
        }
    }
}

// SAFETY: either value is reported.
unsafe impl<B: Trace, C: Trace> Trace for ControlFlow<B, C> {
    const TRACED: bool = B::TRACED || C::TRACED;
    const DROPS_ANYWHERE: bool = B::DROPS_ANYWHERE && C::DROPS_ANYWHERE;
    fn trace(&self, tracer: &Tracer) {
        match self {
            Self::Break(value) => value.trace(tracer),
            Self::Continue(value) => value.trace(tracer),
        }
    }
}

// SAFETY: the value, if there is one, is reported.
unsafe impl<T: Trace> Trace for core::task::Poll<T> {
    const TRACED: bool = T::TRACED;
    const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
    fn trace(&self, tracer: &Tracer) {
        match self {
            Self::Ready(value) => value.trace(tracer),
            Self::Pending => {}
        }
    }
}

/// Pointers to functions hold no reference. A pointer whose arguments are references of any
/// lifetime is `'static`. [`Static`] takes such a pointer, if its type names no realm's lifetime.
macro_rules! function {
    ($($name:ident),*) => {
        // SAFETY: code holds no reference.
        unsafe impl<Result: Trace, $($name: Trace),*> Trace for fn($($name),*) -> Result {
            const TRACED: bool = false;
            fn trace(&self, _: &Tracer) {}
        }
    };
}

function!();
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);

#[cfg(feature = "std")]
#[allow(clippy::disallowed_types, reason = "they are reported of, and not made")]
mod of_std {
    extern crate std;

    use std::borrow::{Cow, ToOwned};
    use std::boxed::Box;
    use std::collections::{
        BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque,
    };
    use std::rc::Rc;
    use std::string::String;
    use std::sync::Arc;
    use std::vec::Vec;

    use super::super::pointer::report;
    use super::{Trace, Tracer};

    without_references!(
        String,
        std::ffi::CString,
        std::ffi::OsStr,
        std::ffi::OsString,
        std::path::Path,
        std::path::PathBuf,
        std::thread::ThreadId,
        std::time::Instant,
        std::time::SystemTime
    );

    #[inline]
    fn owned<T: Trace>(value: &T, tracer: &Tracer, inside: impl FnOnce(&Tracer)) {
        let place = core::ptr::from_ref(value).cast_mut().cast();
        // SAFETY: `place` is a `T`, and stays one while it is traced, because no mutation runs.
        unsafe { tracer.owned(place, report::<T>, inside) };
    }

    // Owners of data elsewhere count as `TRACED`, whatever the data is. Otherwise the `TRACED` of a
    // recursive type would depend on itself.

    // SAFETY: the value in the box is reported.
    unsafe impl<T: Trace + ?Sized> Trace for Box<T> {
        const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE;
        fn trace(&self, tracer: &Tracer) {
            owned(self, tracer, |tracer| (**self).trace(tracer));
        }
    }

    // SAFETY: every `Rc` reports the value that it shares, and only reads it: no count changes.
    unsafe impl<T: Trace + ?Sized> Trace for Rc<T> {
        fn trace(&self, tracer: &Tracer) {
            owned(self, tracer, |tracer| (**self).trace(tracer));
        }
    }

    // SAFETY: every `Arc` reports the value that it shares, and only reads it: no count changes.
    unsafe impl<T: Trace + ?Sized> Trace for Arc<T> {
        fn trace(&self, tracer: &Tracer) {
            owned(self, tracer, |tracer| (**self).trace(tracer));
        }
    }

    // SAFETY: a 'static value holds no reference into a realm.
    unsafe impl<T: ToOwned + ?Sized + 'static> Trace for Cow<'static, T> {
        const TRACED: bool = false;
        fn trace(&self, _: &Tracer) {}
    }

    macro_rules! collection {
        ($of:ident<$($name:ident),*>) => {
            // SAFETY: all items are reported. A 'static hasher holds no reference.
            unsafe impl<$($name: Trace),*> Trace for $of<$($name),*> {
                const DROPS_ANYWHERE: bool = $($name::DROPS_ANYWHERE)&&*;
                fn trace(&self, tracer: &Tracer) {
                    owned(self, tracer, |tracer| {
                        self.iter().for_each(|item| collection!(@ tracer item $($name)*));
                    });
                }
            }
        };
        (@ $tracer:ident $item:ident $one:ident) => { $item.trace($tracer) };
        (@ $tracer:ident $item:ident $one:ident $two:ident) => {{
            $item.0.trace($tracer);
            $item.1.trace($tracer);
        }};
    }

    collection!(Vec<T>);
    collection!(VecDeque<T>);
    collection!(BTreeSet<T>);
    collection!(BTreeMap<K, V>);
    collection!(BinaryHeap<T>);
    collection!(LinkedList<T>);

    // SAFETY: all items are reported. The hasher is 'static, and holds no reference.
    unsafe impl<T: Trace, S: 'static> Trace for HashSet<T, S> {
        const DROPS_ANYWHERE: bool = T::DROPS_ANYWHERE && !core::mem::needs_drop::<S>();
        fn trace(&self, tracer: &Tracer) {
            owned(self, tracer, |tracer| self.iter().for_each(|item| item.trace(tracer)));
        }
    }

    // SAFETY: all keys and values are reported. The hasher is 'static, and holds no reference.
    unsafe impl<K: Trace, V: Trace, S: 'static> Trace for HashMap<K, V, S> {
        const DROPS_ANYWHERE: bool =
            K::DROPS_ANYWHERE && V::DROPS_ANYWHERE && !core::mem::needs_drop::<S>();
        fn trace(&self, tracer: &Tracer) {
            owned(self, tracer, |tracer| {
                self.iter().for_each(|(key, value)| {
                    key.trace(tracer);
                    value.trace(tracer);
                });
            });
        }
    }
}
