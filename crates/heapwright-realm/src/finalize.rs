//! Finalizers: what a value does when nothing leads to it any more, while all that it leads to is
//! there.
//!
//! ```text
//!   reachable --> nothing leads to it --> due            --> Finalize::finalize --> dead, and dropped by a later sweep
//!                 a collection sees it    kept, with all     with a mutation     \
//!                                         that it leads to                        +-> stored somewhere: reachable again
//! ```
//!
//! `Drop` of a value in a realm sees no reference: it is called by the sweep, in no order, when
//! what the value led to may be gone. A finalizer is for what needs it: telling a table in the
//! realm, closing in order, handing a resource back to a pool. The rules:
//!
//! - *When.* A collection that finds that nothing leads to a value makes its finalizer due: a major
//!   one for any value, a minor one for those that are young. It is called by
//!   [`Realm::run_finalizers`] and by nothing else: on the thread that calls, never in an
//!   allocation, a step or another mutation. A realm that is dropped calls none.
//! - *What it sees.* Its value, and all that the value leads to, unchanged: they stay alive until
//!   the finalizer was called. Some of them may have been finalized already.
//!   [`Weak`](super::weak::Weak) references to the value are empty by then, also those in other
//!   values that wait for their finalizers. Ephemerons with the value as key stay until it is dead.
//! - *Order.* Those that one collection made due: as they were registered, even if one leads to
//!   another.
//! - *Once.* A registration is used up by one call. It may be registered again, in the finalizer,
//!   too; twice: called twice.
//! - *Resurrection.* What a finalizer stores where the root leads lives on, as any value does, and
//!   with it all that it leads to. Weak references that were emptied stay so.
//! - *Threads.* In a [`SendRealm`](super::send::SendRealm) it may be called by another thread than
//!   the one that made the value, which nothing but the registration may have kept since: so only
//!   types are registered that are `Send` ([`Trace::SENDS`]).
//! - *Panics* go to the caller of [`Realm::run_finalizers`]; that finalizer is used up, the others
//!   are still due.
//!
//! Why it is sound: a finalizer is registered for a `Gc<'gc, T>` in a mutation, which is to say for
//! every lifetime `'gc`; so calling it in a later mutation, of another lifetime, is calling a
//! function that exists for that one, too: as of `Trace`.

use core::marker::PhantomData;
use core::ptr;

use super::mutation::{Mutation, Rootable};
use super::pointer::{Gc, out_of_memory};
use super::realm::Realm;
use super::send::Mode;
use super::trace::Trace;

/// A value that does something when nothing leads to it any more, if it was registered with
/// [`Mutation::finalize`].
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
    /// Nothing else leads to `this`, which lives on if it is stored somewhere.
    fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>);
}

/// How a finalizer is called.
struct Finalizer {
    /// With the value's object, and a pointer to the mutation.
    run: unsafe fn(*mut u8, *const ()),
}

/// The finalizer of a type.
struct Of<'gc, T>(PhantomData<Gc<'gc, T>>);

impl<'gc, T: Finalize<'gc>> Of<'gc, T> {
    const FINALIZER: &'static Finalizer = &Finalizer { run: Self::run };

    /// # Safety
    ///
    /// The object has such a value, and the mutation is of its realm.
    unsafe fn run(object: *mut u8, mc: *const ()) {
        // SAFETY: by the contract.
        let mc: &Mutation<'gc> = unsafe { &*mc.cast() };
        // SAFETY: by the contract.
        let this = unsafe { Gc::from_object(object) };
        T::finalize(this, mc);
    }
}

/// Stands where runtimes have a function of C's: a realm takes what is due and calls it itself, so
/// that it may panic.
unsafe extern "C" fn is_taken(_: *mut core::ffi::c_void, _: *mut core::ffi::c_void) {}

impl<'gc> Mutation<'gc> {
    /// When a collection finds that nothing leads to `value`, its [`Finalize`] is to be called by
    /// [`Realm::run_finalizers`]. Constant time; each collection looks at all that are registered.
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
        // SAFETY: an object of the realm; what is called does nothing.
        if !unsafe { mutator.finalize(value.object(), is_taken, context) } {
            out_of_memory(size_of::<[usize; 3]>());
        }
    }
}

impl<R: ?Sized + for<'gc> Rootable<'gc>, M: Mode> Realm<R, M> {
    /// Calls up to `most` finalizers that are due, one after the other, each as in a
    /// [`Realm::mutate`]. Returns how many. Those that become due by what it collects afterwards
    /// are left for the next call.
    ///
    /// # Panics
    ///
    /// If a finalizer does.
    pub fn run_finalizers(&mut self, most: usize) -> usize {
        let run = || {
            let mc = self.mutation();
            let mut count = 0;
            while count < most
                && let Some((object, finalizer)) = self.mutator.take_due()
            {
                // SAFETY: `Mutation::finalize` put it there, and a realm's finalizers are all from
                // there.
                let finalizer: &'static Finalizer = unsafe { &*finalizer.cast() };
                // SAFETY: the type's that the object was registered with; it was due, so it is
                // there, and nothing is collected.
                unsafe { (finalizer.run)(object, ptr::from_ref(&mc).cast()) };
                count += 1;
            }
            count
        };
        // SAFETY: finalizers have a brand of their own, so `run` leaves no reference outside.
        unsafe { self.here().held(run) }
    }

    /// How many finalizers are due.
    #[must_use]
    pub fn finalizers_due(&self) -> usize {
        self.mutator.finalizers_due()
    }
}
