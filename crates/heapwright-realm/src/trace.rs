//! The trait by which a value reports its references.

use heapwright_gc::raw::Tracer;

/// A value that a realm may hold: it reports all its references.
///
/// `#[derive(Trace)]` (feature `derive`) implements the trait for structs and enums whose fields
/// implement the trait. A field of another type needs `#[trace(skip)]`, and must be `'static`.
///
/// A `Gc` in the object itself is reported by its address, and the collector updates it when the
/// value moves. A `Gc` in a `Box`, a `Vec` or a map pins its value. So arrays are better kept in
/// the realm ([`Slice`](super::Slice)).
///
/// # Safety
///
/// - [`Trace::trace`] calls the `trace` of every [`Gc`](super::Gc) in the value: of the `Gc` in its
///   place, or of a copy outside of all objects. It changes and allocates nothing. It may run on
///   another thread than the value's, while the value's thread is stopped.
/// - [`Trace::TRACED`] is true if the value may contain a `Gc`.
/// - [`Trace::DROPS_ANYWHERE`] is true only if any thread may drop a value. This holds for types
///   that are `Send` but for their references into the realm.
/// - [`Trace::SENDS`] is true only if the type is `Send` with `'static` for its realm's lifetime.
/// - If the type is `Send` with `'static` for its realm's lifetime, its values may go to another
///   thread with their realm, for any lifetime.
/// - A type implements the trait only if it is well-formed for any lifetime of a realm. The
///   implementation repeats the bounds of the type's definition, inferred bounds included. (An
///   `impl` takes inferred bounds for granted, as of `struct S<'a, 'gc>(&'a &'gc ())`. The compiler
///   does not check them.) Each type parameter is [`Trace`] or `'static`. A root that is
///   well-formed for `'static` alone would tell the function of
///   [`Realm::mutate`](super::Realm::mutate) that its lifetime is `'static`.
/// - The type's `Drop` uses only parts of the value that are `'static`, because the object of a
///   `Gc` may be gone. (The derive refuses types that implement `Drop`.)
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot lie in a realm: it does not report its references",
    label = "`heapwright::gc::Trace` is not implemented for `{Self}`",
    note = "a type of your own: `#[derive(heapwright::gc::Trace)]`, with heapwright's feature `derive`",
    note = "a type of another crate, without references: `#[trace(skip)]` at the field, or `heapwright::gc::Static<{Self}>`",
    note = "`Box`, `Vec`, `String`, `Rc`, `HashMap` and the like need heapwright's feature `std`; `gc::Vector`, `gc::Str` and `gc::Map` do not, and are better",
    note = "`Cell`, `RefCell` and `OnceCell` of `core` report no store: `gc::Cell` and `gc::Lock` do"
)]
pub unsafe trait Trace {
    /// Whether values of this type may contain references.
    const TRACED: bool = true;

    /// Whether any thread may drop a value of this type. A realm that changes threads
    /// ([`SendRealm`](super::SendRealm)) refuses values for which this is false. The default is
    /// true for types that need no drop. `#[derive(Trace)]` checks whether a type without type
    /// parameters is `Send`.
    const DROPS_ANYWHERE: bool = !core::mem::needs_drop::<Self>();

    /// Whether any thread may use a value of this type, as a [`SendRealm`](super::SendRealm)
    /// requires of values that its root leads to. Such a realm refuses a
    /// [finalizer](super::Finalize) for a type for which this is false. The default is false.
    /// `#[derive(Trace)]` checks whether a type without type parameters is `Send`.
    const SENDS: bool = false;

    /// Reports all references.
    fn trace(&self, tracer: &Tracer);
}
