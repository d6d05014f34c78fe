//! How a value reports the references in it.

use heapwright_gc::raw::Tracer;

/// A value that may lie in a realm: it reports all references in it.
///
/// `#[derive(Trace)]` (feature `derive`) implements it for structs and enums whose fields do; a
/// field that holds none and does not implement it has `#[trace(skip)]`, and must be `'static`.
///
/// A `Gc` in the object itself is reported by its address, and is changed when its value is moved;
/// one in a `Box`, a `Vec` or a map keeps its value where it is. So arrays are better kept in the
/// realm ([`Slice`](super::Slice)).
///
/// # Safety
///
/// - [`Trace::trace`] hands every [`Gc`](super::Gc) in the value to its own `trace`, where it is,
///   or a copy of it that lies outside of all objects. It
///   changes nothing, allocates nothing, and may run on another thread than the value's, while that
///   stands still.
/// - [`Trace::TRACED`] is true if there may be one.
/// - [`Trace::DROPS_ANYWHERE`] is true only if dropping a value on another thread than the one that
///   made it is sound, as it is for types that are `Send` but for their references into the realm.
/// - [`Trace::SENDS`] is true only if the type is `Send` with `'static` for its realm's lifetime.
/// - If the type is `Send` with `'static` for its realm's lifetime, values of it may go to another
///   thread with their realm, whatever that lifetime is.
/// - It is implemented only where the type is well-formed, whatever lifetime a realm has: the
///   implementation writes the bounds of the type's definition again, inferred bounds, too (an
///   `impl` takes these for granted where they are not written, as of
///   `struct S<'a, 'gc>(&'a &'gc ())`, and nobody is asked for them), and each of its type
///   parameters is [`Trace`] or `'static`. A root that is well-formed for `'static` alone would
///   tell [`Realm::mutate`](super::Realm::mutate)'s function that its lifetime is that.
/// - If the value is dropped, its `Drop` uses nothing in it that is not `'static`: what a `Gc` led
///   to may be gone. (The derive refuses types that implement `Drop`.)
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot lie in a realm: it does not say which references are in it",
    label = "`heapwright::gc::Trace` is not implemented for `{Self}`",
    note = "a type of your own: `#[derive(heapwright::gc::Trace)]`, with heapwright's feature `derive`",
    note = "a type of another crate, without references: `#[trace(skip)]` at the field, or `heapwright::gc::Static<{Self}>`",
    note = "`Box`, `Vec`, `String`, `Rc`, `HashMap` and their like: heapwright's feature `std`; without it, and better: `gc::Vector`, `gc::Str`, `gc::Map`",
    note = "`Cell`, `RefCell` and `OnceCell` of `core` report no store: `gc::Cell` and `gc::Lock` do"
)]
pub unsafe trait Trace {
    /// Whether there may be references in values of this type.
    const TRACED: bool = true;

    /// Whether a value of this type may be dropped by another thread than the one that made it. A
    /// realm that goes to other threads ([`SendRealm`](super::SendRealm)) refuses values for which
    /// this is false. As it stands it says so of all types that have nothing to drop;
    /// `#[derive(Trace)]` finds out whether a type is `Send`, if it has no type parameters.
    const DROPS_ANYWHERE: bool = !core::mem::needs_drop::<Self>();

    /// Whether a value of this type may be used by another thread than the one that made it, as
    /// what the root of a [`SendRealm`](super::SendRealm) leads to may be: such a realm takes no
    /// [finalizer](super::Finalize) of a type for which this is false. As it stands it is;
    /// `#[derive(Trace)]` finds out whether a type is `Send`, if it has no type parameters.
    const SENDS: bool = false;

    /// Reports all references.
    fn trace(&self, tracer: &Tracer);
}
