//! Finalizers: functions for unreachable values. Each runs while its value, and all objects that
//! the value leads to, are live.
//!
//! ```text
//!   reachable --> unreachable --> due           --> Finalize::finalize --> dead: a sweep drops it
//!                 found by a      kept, with all    with a mutation   \
//!                 collection      that it leads to                     +-> stored: reachable again
//! ```
//! `Drop` of a value in a realm must use no reference, because the objects that the value led to
//! may be gone. A finalizer may use these objects, for example to update a table. The rules:
//!
//! - *When.* A collection that finds a value unreachable makes the finalizer due. (A minor
//!   collection finds only young values.) Only [`Realm::run_finalizers`] calls finalizers, on the
//!   calling thread. Dropping a realm calls none.
//! - *Its view.* The value, and all that it leads to, are unchanged and live until the finalizer
//!   was called. Some of these objects may have been finalized already. [`Weak`](super::weak::Weak)
//!   references to the value are empty by then, even those in other values that wait for their
//!   finalizers. Ephemerons with the value as key stay until the value is dead.
//! - *Order.* Finalizers that one collection made due run in the order of registration, even if one
//!   value leads to another.
//! - *Once.* A registration serves one call. A value may be registered again, also in its
//!   finalizer. A value that is registered twice is finalized twice.
//! - *Resurrection.* A value that a finalizer makes reachable from the root lives on, with all that
//!   it leads to. Weak references that were emptied stay empty.
//! - *Threads.* In a [`SendRealm`](super::send::SendRealm) only types that are `Send`
//!   ([`Trace::SENDS`]) may be registered, because any thread may call the finalizer.
//! - *Panics* go to the caller. The finalizer is not called again. The others are still due.
//!
//! Why this is sound: a mutation that registers a finalizer for a `Gc<'gc, T>` works for every
//! lifetime `'gc`. So the finalizer is valid for the lifetime of a later mutation, too.

use core::marker::PhantomData;
use core::ptr;

use super::mutation::{Mutation, Rootable};
use super::pointer::{Gc, out_of_memory};
use super::realm::Realm;
use super::send::Mode;
use super::trace::Trace;

/// A value with a finalizer, which [`Mutation::finalize`] registers.
///
/// ```
/// # #[cfg(feature = "derive")] {
/// use heapwright::Rootable;
/// use heapwright::gc::{Cell, Finalize, Gc, Mutation, Realm, Trace, Vector};
///
/// #[derive(Trace)]
/// struct Connection<'gc> {
///     number: u32,
///     idle: Vector<'gc, u32>,
/// }
///
/// impl<'gc> Finalize<'gc> for Connection<'gc> {
///     fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>) {
///         this.idle.push(mc, this.number); // what it leads to is there
///     }
/// }
///
/// type Root = Rootable!['gc => (Vector<'gc, u32>, Cell<Option<Gc<'gc, Connection<'gc>>>>)];
/// let mut realm = Realm::<Root>::new(|mc| {
///     let idle = Vector::new(mc);
///     let connection = mc.alloc(Connection { number: 7, idle });
///     mc.finalize(connection);
///     (idle, Cell::new(Some(connection)))
/// });
/// realm.collect();
/// assert_eq!(realm.run_finalizers(usize::MAX), 0); // the root leads to it
/// realm.mutate(|mc, root| root.as_ref().1.set(mc, root, None));
/// realm.collect();
/// assert_eq!(realm.run_finalizers(usize::MAX), 1);
/// assert_eq!(realm.mutate(|_, root| root.0.get(0)), Some(7));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{Self}` has no finalizer",
    note = "implement it for every lifetime: `impl<'gc> heapwright::gc::Finalize<'gc> for ...`"
)]
pub trait Finalize<'gc>: Trace + Sized {
    /// Called when `this` is unreachable. The value lives on if the function stores `this` in a
    /// reachable object.
    fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>);
}

struct Finalizer {
    /// Called with the value's object, and a pointer to the mutation.
    run: unsafe fn(*mut u8, *const ()),
}

struct Of<'gc, T>(PhantomData<Gc<'gc, T>>);

impl<'gc, T: Finalize<'gc>> Of<'gc, T> {
    const FINALIZER: &'static Finalizer = &Finalizer { run: Self::run };

    /// # Safety
    ///
    /// The object holds a value of this type, and the mutation is of its realm.
    unsafe fn run(object: *mut u8, mc: *const ()) {
        // SAFETY: by the contract.
        let mc: &Mutation<'gc> = unsafe { &*mc.cast() };
        // SAFETY: by the contract.
        let this = unsafe { Gc::from_object(object) };
        T::finalize(this, mc);
    }
}

/// The C function that is registered; it does nothing. A realm takes due finalizers and calls them
/// itself, so that they may panic.
unsafe extern "C" fn is_taken(_: *mut core::ffi::c_void, _: *mut core::ffi::c_void) {}

impl<'gc> Mutation<'gc> {
    /// Registers the [`Finalize`] of `value`. [`Realm::run_finalizers`] calls it after a collection
    /// finds `value` unreachable. Constant time; each major collection visits all registrations.
    ///
    /// # Panics
    ///
    /// If there is no memory. In a [`SendRealm`](super::SendRealm), if the type is not
    /// [`Trace::SENDS`].
    pub fn finalize<T: Finalize<'gc> + 'gc>(&self, value: Gc<'gc, T>) {
        self.admit_finalizer::<T>();
        // SAFETY: the realm's mutator, which outlives this.
        let mutator = unsafe { &*self.mutator };
        let context = ptr::from_ref(Of::<T>::FINALIZER).cast_mut().cast();
        // SAFETY: an object of the realm; the registered function does nothing.
        if !unsafe { mutator.finalize(value.object(), is_taken, context) } {
            out_of_memory(size_of::<[usize; 3]>());
        }
    }
}

impl<R: ?Sized + for<'gc> Rootable<'gc>, M: Mode> Realm<R, M> {
    /// Calls up to `most` due finalizers, each as in a [`Realm::mutate`]. Returns their number. The
    /// call may collect afterwards; finalizers that become due then are left for the next call.
    ///
    /// # Panics
    ///
    /// If a finalizer panics.
    pub fn run_finalizers(&mut self, most: usize) -> usize {
        let run = || {
            let mc = self.mutation();
            let mut count = 0;
            while count < most
                && let Some((object, finalizer)) = self.mutator.take_due()
            {
                // SAFETY: a realm's finalizers all have a `&'static Finalizer` as their context.
                let finalizer: &'static Finalizer = unsafe { &*finalizer.cast() };
                // SAFETY: the finalizer is of the object's type, by the registration. The object
                // was due, so it is there, and nothing is collected.
                unsafe { (finalizer.run)(object, ptr::from_ref(&mc).cast()) };
                count += 1;
            }
            count
        };
        // SAFETY: finalizers have a brand of their own, so `run` leaves no reference outside.
        unsafe { self.here().held(run) }
    }

    /// Returns the number of due finalizers.
    #[must_use]
    pub fn finalizers_due(&self) -> usize {
        self.mutator.finalizers_due()
    }
}
