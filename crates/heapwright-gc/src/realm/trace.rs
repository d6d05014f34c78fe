//! How a value reports the references in it.

use core::marker::PhantomData;

use super::super::raw::Tracer;

/// A value that may lie in a realm: it reports all references in it.
///
/// `#[derive(Trace)]` (feature `derive`) implements it for structs and enums whose fields do; a field
/// that holds none and does not implement it has `#[trace(skip)]`, and must be `'static`.
///
/// A `Gc` in the object itself is reported by its address, and is changed when its value is moved; one in a
/// `Box`, a `Vec` or a map keeps its value where it is. So arrays are better kept in the realm
/// ([`Slice`](super::super::Slice)).
///
/// # Safety
///
/// - [`Trace::trace`] hands every [`Gc`](super::super::Gc) in the value to its own `trace`, where it is,
///   or a copy of it that lies outside of all objects. It
///   changes nothing, allocates nothing, and may run on another thread than the value's, while that
///   stands still.
/// - [`Trace::TRACED`] is true if there may be one.
/// - If the value is dropped, its `Drop` uses nothing in it that is not `'static`: what a `Gc` led to may
///   be gone. (The derive refuses types that implement `Drop`.)
pub unsafe trait Trace {
    /// Whether there may be references in values of this type.
    const TRACED: bool = true;

    /// Reports all references.
    fn trace(&self, tracer: &Tracer);
}

macro_rules! without_references {
    ($($of:ty),* $(,)?) => { $(
        // SAFETY: there are none in it.
        unsafe impl Trace for $of {
            const TRACED: bool = false;
            fn trace(&self, _: &Tracer) {}
        }
    )* };
}

without_references!(
    (),
    bool,
    char,
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
    core::num::NonZero<usize>,
    &'static str,
    core::time::Duration,
    core::cmp::Ordering,
);

// SAFETY: what is shared for ever holds no reference, whose lifetime is shorter.
unsafe impl<T: 'static> Trace for &'static [T] {
    const TRACED: bool = false;
    fn trace(&self, _: &Tracer) {}
}

// SAFETY: there is no value in it.
unsafe impl<T: ?Sized> Trace for PhantomData<T> {
    const TRACED: bool = false;
    fn trace(&self, _: &Tracer) {}
}

// SAFETY: all there may be in it is reported.
unsafe impl<T: Trace> Trace for Option<T> {
    const TRACED: bool = T::TRACED;
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.iter().for_each(|value| value.trace(tracer));
    }
}

// SAFETY: the value or the error is all that is in it, and is reported.
unsafe impl<T: Trace, E: Trace> Trace for Result<T, E> {
    const TRACED: bool = T::TRACED || E::TRACED;
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
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.iter().for_each(|value| value.trace(tracer));
    }
}

// SAFETY: all items are reported.
unsafe impl<T: Trace, const N: usize> Trace for [T; N] {
    const TRACED: bool = T::TRACED;
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

#[cfg(feature = "std")]
#[allow(clippy::disallowed_types, reason = "they are reported of, and not made")]
mod of_std {
    extern crate std;

    use std::boxed::Box;
    use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
    use std::string::String;
    use std::vec::Vec;

    use super::{Trace, Tracer};

    without_references!(
        String,
        std::path::PathBuf,
        std::ffi::OsString,
        std::time::Instant,
        std::time::SystemTime
    );

    // Of what lies elsewhere `TRACED` is true whatever it is: a tree's is in its own definition.

    // SAFETY: all that is in it is reported.
    unsafe impl<T: Trace + ?Sized> Trace for Box<T> {
        fn trace(&self, tracer: &Tracer) {
            (**self).trace(tracer);
        }
    }

    macro_rules! collection {
        ($of:ident<$($name:ident),*>) => {
            // SAFETY: all items are reported; how it hashes or compares is 'static, and holds no
            // reference.
            unsafe impl<$($name: Trace),*> Trace for $of<$($name),*> {
                fn trace(&self, tracer: &Tracer) {
                    self.iter().for_each(|item| collection!(@ tracer item $($name)*));
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

    // SAFETY: all items are reported; how it hashes or compares is 'static, and holds no reference.
    unsafe impl<T: Trace, S: 'static> Trace for HashSet<T, S> {
        fn trace(&self, tracer: &Tracer) {
            self.iter().for_each(|item| item.trace(tracer));
        }
    }

    // SAFETY: all keys and values are reported; how it hashes is 'static, and holds no reference.
    unsafe impl<K: Trace, V: Trace, S: 'static> Trace for HashMap<K, V, S> {
        fn trace(&self, tracer: &Tracer) {
            self.iter().for_each(|(key, value)| {
                key.trace(tracer);
                value.trace(tracer);
            });
        }
    }
}
