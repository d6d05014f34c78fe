//! Realms that go from thread to thread.
//!
//! ```text
//!   thread A   mutate, mutate, step |                      | mutate ...       one at a time: `&mut`
//!   thread B                        | step, mutate, mutate |
//! ```
//!
//! A realm is given to another thread with all that is in it, so all of it must be [`Send`]; but
//! for the references, which go with what they lead to. Four things say so:
//!
//! - *What stays* in a realm from one [`mutate`](Realm::mutate) to the next, the root leads to, and
//!   the root's type names the types of all that it may lead to. A `Gc<'static, T>` is `Send` if
//!   `T` is; nobody ever has one, because `mutate` gives references of every lifetime and of none
//!   in particular. But with `'static` for its lifetime the root's type is `Send` exactly if all
//!   that it leads to is, and that is the bound of
//!   [`SendRealm`]: [`Send`] is found out by the compiler, for types that lead to themselves, too. `dyn` types
//!   do not hide anything: they say that they are `Send`, and then no `Gc` of another lifetime is
//!   in one.
//! - *Values that do not stay*, garbage of the mutation that made them, may be of any type. The
//!   thread that sweeps drops them. A type with something to drop is therefore allowed only if its
//!   values may be dropped on any thread ([`Trace::DROPS_ANYWHERE`]). This is a constant of the
//!   type: for most types the program verifies nothing at run time. A first value of another type
//!   is refused with a panic. (The root itself is `Send`: it may be a `Static<Vec<u8>>` or an
//!   `Arc`.)
//! - *Values that only their finalizers keep* may be of any type, too, and any thread may call the
//!   finalizers. A type may therefore have finalizers only if it is `Send` with `'static` for its
//!   lifetime, like the types that the root leads to. ([`Trace::SENDS`] says so, a constant as
//!   well.) All that its values lead to is `Send` then.
//! - *In a mutation* nothing goes anywhere: a `Gc<'gc, T>` is neither `Send` nor `Sync`.
//!
//! **Async.** A future that has a realm is as `Send` as the realm: it may be held across an
//! `.await`, on any executor; one of [`OneThread`]'s on executors that poll where the future was
//! made. What cannot be is a mutation: its function returns nothing that names its lifetime, and a
//! future of an `async` block would. So a task reads, waits, and mutates: what must be kept
//! meanwhile is in the realm, and what the task keeps is a number, a name or a place in a queue
//! there. While it waits is the time for [`step`](Realm::step).
//!
//! ```
//! use heapwright::Rootable;
//! use heapwright::gc::{Map, SendRealm, Str};
//! use std::future::Future;
//! use std::pin::Pin;
//! use std::task::{Context, Poll, Waker};
//! use std::time::Duration;
//!
//! type Scores = SendRealm<Rootable!['gc => Map<'gc, Str<'gc>, u64>]>;
//!
//! /// What takes its time: it is not ready when it is asked first.
//! async fn fetch(score: u64) -> u64 {
//!     let mut asked = false;
//!     std::future::poll_fn(|_| if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
//!     score
//! }
//!
//! async fn serve(mut scores: Scores, names: &'static [&'static str]) -> u64 {
//!     for (name, n) in names.iter().zip(1..) {
//!         let score = fetch(n * 10).await; // the realm waits, too
//!         scores.mutate(|mc, all| {
//!             let before = all.get(*name).unwrap_or(0);
//!             all.insert(mc, mc.alloc_str(name), before + score);
//!         });
//!         scores.step(Duration::from_micros(100));
//!     }
//!     scores.mutate(|_, all| all.get("ada").unwrap_or(0))
//! }
//!
//! // An executor that has each poll on another thread.
//! let mut task: Pin<Box<dyn Future<Output = u64> + Send>> =
//!     Box::pin(serve(Scores::sendable(|mc| Map::new(mc)), &["ada", "bob", "ada"]));
//! let answer = loop {
//!     let (polled, same) = std::thread::spawn(move || {
//!         (task.as_mut().poll(&mut Context::from_waker(Waker::noop())), task)
//!     }).join().unwrap();
//!     task = same;
//!     if let Poll::Ready(answer) = polled {
//!         break answer;
//!     }
//! };
//! assert_eq!(answer, 40);
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::SendRealm};
//! # async fn fetch() {}
//! # let mut realm = SendRealm::<Rootable!['gc => u32]>::sendable(|_| 7);
//! // The future would have the mutation's references.
//! let future = realm.mutate(|_, root| async move { fetch().await; **root });
//! ```
//!
//! **What compiles**
//!
//! ```
//! # use heapwright::{Rootable, gc::{Cell, Gc, SendRealm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, (u32, &'static str)>>>];
//! let mut realm = SendRealm::<Root>::sendable(|mc| Cell::new(Some(mc.alloc((7, "seven")))));
//! let seven = std::thread::spawn(move || {
//!     realm.collect();
//!     realm.mutate(|_, root| root.get().map(|pair| pair.1))
//! });
//! assert_eq!(seven.join().unwrap(), Some("seven"));
//! ```
//!
//! **What does not**: a root that leads to something that is not `Send`,
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::{Cell, Gc, SendRealm}};
//! # use std::rc::Rc;
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, (u32, Rc<u8>)>>>];
//! let mut realm = SendRealm::<Root>::sendable(|_| Cell::new(None));
//! ```
//!
//! or has it skipped or hidden in a collection,
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::{Gc, Map, SendRealm, Static, Str}};
//! # use std::rc::Rc;
//! # type Root = Rootable!['gc => Map<'gc, Str<'gc>, Gc<'gc, Static<Rc<u8>>>>];
//! let mut realm = SendRealm::<Root>::sendable(|mc| Map::new(mc));
//! ```
//!
//! a realm of one thread,
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::Realm};
//! let mut realm = Realm::<Rootable!['gc => u32]>::new(|_| 7);
//! std::thread::spawn(move || realm.collect());
//! ```
//!
//! a realm that two threads look at,
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::SendRealm};
//! let realm = SendRealm::<Rootable!['gc => u32]>::sendable(|_| 7);
//! std::thread::scope(|scope| _ = scope.spawn(|| realm.statistics()));
//! ```
//!
//! and a reference that goes to another thread in a mutation:
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, SendRealm}};
//! let mut realm = SendRealm::<Rootable!['gc => Cell<u32>]>::sendable(|_| Cell::new(7));
//! realm.mutate(|_, root| std::thread::scope(|scope| _ = scope.spawn(move || root.put(8))));
//! ```

use super::mutation::{Mutation, Rootable};
use super::realm::{OPTIONS, Realm};
use super::trace::Trace;
use heapwright_gc::raw::Options;

/// Of a realm: it stays with the thread that made it.
#[derive(Debug)]
pub enum OneThread {}

/// Of a realm: it may go from thread to thread.
#[derive(Debug)]
pub enum AnyThread {}

/// Whose a realm is: [`OneThread`]'s or [`AnyThread`]'s.
pub trait Mode: sealed::Sealed {
    /// Whether it may go from thread to thread.
    #[doc(hidden)]
    const SENDS: bool;
}

impl Mode for OneThread {
    const SENDS: bool = false;
}

impl Mode for AnyThread {
    const SENDS: bool = true;
}

mod sealed {
    /// Implemented here alone.
    pub trait Sealed {}
    impl Sealed for super::OneThread {}
    impl Sealed for super::AnyThread {}
}

/// A realm that is [`Send`]: it may be given to another thread, or held across an `.await`. Made by
/// [`Realm::sendable`].
///
/// ```
/// use heapwright::Rootable;
/// use heapwright::gc::{SendRealm, Vector};
///
/// type Numbers = SendRealm<Rootable!['gc => Vector<'gc, u64>]>;
/// let mut numbers = Numbers::sendable(|mc| Vector::new(mc));
/// for n in 0..3 {
///     // Each thread has it for a while.
///     numbers = std::thread::spawn(move || {
///         numbers.mutate(|mc, all| all.push(mc, n));
///         numbers
///     }).join().unwrap();
/// }
/// assert_eq!(numbers.mutate(|_, all| all.iter().sum::<u64>()), 3);
/// ```
pub type SendRealm<R> = Realm<R, AnyThread>;

// SAFETY: all that the root leads to is `Send` but for references, which go with it; so is what
// finalizers lead to (`admit_finalizer`); other values that were put into it may be dropped by any
// thread (`admit`). The heap and its mutator are used by one thread at a time, which `note_thread`
// names.
unsafe impl<R> Send for Realm<R, AnyThread>
where
    R: ?Sized + for<'gc> Rootable<'gc>,
    <R as Rootable<'static>>::Root: Send,
{
}

impl<R: ?Sized + for<'gc> Rootable<'gc>> Realm<R, AnyThread> {
    /// As [`Realm::new`], of a realm that is [`Send`]: all that its root can lead to is.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn sendable(
        root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root,
    ) -> Self
    where
        <R as Rootable<'static>>::Root: Send,
    {
        Self::make(OPTIONS, root)
    }

    /// As [`Realm::with`], of a realm that is [`Send`]: all that its root can lead to is.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn sendable_with(
        options: Options,
        root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root,
    ) -> Self
    where
        <R as Rootable<'static>>::Root: Send,
    {
        Self::make(options, root)
    }
}

impl Mutation<'_> {
    /// Panics if values of this type may not be put into the realm.
    #[inline]
    pub(super) fn admit<T: Trace>(&self) {
        if const { !T::DROPS_ANYWHERE } && self.sends {
            refuse(core::any::type_name::<T>(), "dropped there (`Trace::DROPS_ANYWHERE`)");
        }
    }

    /// Panics if values of this type may not have a finalizer in the realm.
    #[inline]
    pub(super) fn admit_finalizer<T: Trace>(&self) {
        if const { !T::SENDS } && self.sends {
            refuse(core::any::type_name::<T>(), "finalized there (`Trace::SENDS`)");
        }
    }
}

#[cold]
#[inline(never)]
fn refuse(name: &str, what: &str) -> ! {
    panic!(
        "this realm may go to another thread, and of {name} it is not known whether it may be {what}: `#[derive(Trace)]` knows it of types that are `Send` and have no parameters"
    )
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::super::Rootable;
    use super::SendRealm;

    #[test]
    fn a_realm_knows_whose_it_is() {
        type Root = dyn for<'gc> Rootable<'gc, Root = u32>;
        let mut realm = SendRealm::<Root>::sendable(|_| 7);
        assert!(realm.heap.is_attached());
        let moved = move || {
            assert!(!realm.heap.is_attached());
            realm.step(core::time::Duration::ZERO);
            assert!(realm.heap.is_attached());
        };
        std::thread::spawn(moved).join().unwrap();
    }
}
