//! Realms that go from thread to thread.
//!
//! ```text
//!   thread A   mutate, mutate, step |                      | mutate ...      one at a time: `&mut`
//!   thread B                        | step, mutate, mutate |
//! ```
//!
//! A realm moves to another thread with all its values, so all of them must be [`Send`]. References
//! are exempt, because they move with their objects. Four rules ensure this:
//!
//! - *Values that stay* from one [`mutate`](Realm::mutate) to the next are reachable from the root.
//!   The root's type names their types. A `Gc<'static, T>` is `Send` if `T` is. (No program ever
//!   has one.) So with `'static` for its lifetime, the root's type is `Send` exactly if all
//!   reachable types are. [`SendRealm`] requires that. A `dyn` type must name `Send`, and then it
//!   holds no `Gc` of another lifetime.
//! - *Values that do not stay* are garbage after the mutation that made them. The thread that
//!   sweeps drops them. So a type that needs a drop is allowed only if any thread may drop its
//!   values ([`Trace::DROPS_ANYWHERE`]). An allocation of any other type that needs a drop
//!   panics. (The root is exempt: it is `Send`, and may be a `Static<Vec<u8>>` or an `Arc`.)
//! - *Values that only their finalizers keep* are not reachable from the root, and any thread may
//!   call the finalizers. So a type may have finalizers only if it is `Send` with `'static` for its
//!   lifetime ([`Trace::SENDS`]). Then all that its values lead to is `Send`.
//! - *In a mutation* no reference changes threads: a `Gc<'gc, T>` is neither `Send` nor `Sync`.
//!
//! **Async.** A future that holds a [`SendRealm`] across an `.await` can be `Send`. A future that
//! holds a [`OneThread`] realm must always be polled on one thread. A mutation cannot be held
//! across an `.await`, because the future of an `async` block would name the mutation's lifetime.
//! So a task reads, waits, and mutates. Before it waits, it can call [`step`](Realm::step).
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
//! /// A slow request: the first poll finds it not ready.
//! async fn fetch(score: u64) -> u64 {
//!     let mut asked = false;
//!     std::future::poll_fn(|_| if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
//!     score
//! }
//!
//! async fn serve(mut scores: Scores, names: &'static [&'static str]) -> u64 {
//!     for (name, n) in names.iter().zip(1..) {
//!         let score = fetch(n * 10).await; // the future holds the realm
//!         scores.mutate(|mc, all| {
//!             let before = all.get(*name).unwrap_or(0);
//!             all.insert(mc, mc.alloc_str(name), before + score);
//!         });
//!         scores.step(Duration::from_micros(100));
//!     }
//!     scores.mutate(|_, all| all.get("ada").unwrap_or(0))
//! }
//!
//! // An executor that polls on a new thread each time.
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
//! // The future would hold references of the mutation.
//! let future = realm.mutate(|_, root| async move { fetch().await; **root });
//! ```
//!
//! **A program that compiles**
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
//! **Programs that do not compile.** The root leads to a value that is not `Send`:
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::{Cell, Gc, SendRealm}};
//! # use std::rc::Rc;
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, (u32, Rc<u8>)>>>];
//! let mut realm = SendRealm::<Root>::sendable(|_| Cell::new(None));
//! ```
//!
//! The type skips such a value, or a collection hides it:
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::{Gc, Map, SendRealm, Static, Str}};
//! # use std::rc::Rc;
//! # type Root = Rootable!['gc => Map<'gc, Str<'gc>, Gc<'gc, Static<Rc<u8>>>>];
//! let mut realm = SendRealm::<Root>::sendable(|mc| Map::new(mc));
//! ```
//!
//! A realm of one thread changes threads:
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::Realm};
//! let mut realm = Realm::<Rootable!['gc => u32]>::new(|_| 7);
//! std::thread::spawn(move || realm.collect());
//! ```
//!
//! Two threads look at one realm:
//!
//! ```compile_fail,E0277
//! # use heapwright::{Rootable, gc::SendRealm};
//! let realm = SendRealm::<Rootable!['gc => u32]>::sendable(|_| 7);
//! std::thread::scope(|scope| _ = scope.spawn(|| realm.statistics()));
//! ```
//!
//! A reference goes to another thread in a mutation:
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

/// Mode of a realm that stays with the thread that made it.
#[derive(Debug)]
pub enum OneThread {}

/// Mode of a realm that may go from thread to thread.
#[derive(Debug)]
pub enum AnyThread {}

/// The mode of a realm: [`OneThread`] or [`AnyThread`].
pub trait Mode: sealed::Sealed {
    /// Whether the realm may go from thread to thread.
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
    /// Only this file implements it.
    pub trait Sealed {}
    impl Sealed for super::OneThread {}
    impl Sealed for super::AnyThread {}
}

/// A realm that is [`Send`]: it may move to another thread, or be held across an `.await`.
/// [`Realm::sendable`] makes it.
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

// SAFETY: all values that the root or a finalizer (`admit_finalizer`) leads to are `Send`;
// references move with them. Any thread may drop the other values (`admit`). One thread at a time
// uses the heap and its mutator; `note_thread` names it.
unsafe impl<R> Send for Realm<R, AnyThread>
where
    R: ?Sized + for<'gc> Rootable<'gc>,
    <R as Rootable<'static>>::Root: Send,
{
}

impl<R: ?Sized + for<'gc> Rootable<'gc>> Realm<R, AnyThread> {
    /// Does the same as [`Realm::new`], for a realm that is [`Send`].
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

    /// Does the same as [`Realm::with`], for a realm that is [`Send`].
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
    #[inline]
    pub(super) fn admit<T: Trace>(&self) {
        if const { !T::DROPS_ANYWHERE } && self.sends {
            refuse(core::any::type_name::<T>(), "dropped there (`Trace::DROPS_ANYWHERE`)");
        }
    }

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
    // If the type is a `Static`, names the type of its value.
    let inner = name.strip_prefix(STATIC).and_then(|name| name.strip_suffix('>')).unwrap_or(name);
    panic!(
        "this realm may go to another thread, but nothing says that a {name} may be {what}. Put \
         the value into a type of your own that is `Send` and has no parameters: \
         `#[derive(Trace)] struct Mine(#[trace(skip)] {inner});`"
    )
}

const STATIC: &str = "heapwright_realm::standard::Static<";

#[cfg(test)]
mod tests {
    extern crate std;

    use super::super::Rootable;
    use super::SendRealm;

    #[test]
    fn a_refusal_names_the_type_that_works() {
        type Root = dyn for<'gc> Rootable<'gc, Root = super::super::Static<std::string::String>>;
        // The root itself is `Send`, as the compiler knows.
        let root = || super::super::Static(std::string::String::from("root"));
        let mut realm = SendRealm::<Root>::sendable(|_| root());
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            realm.mutate(|mc, _| _ = mc.alloc(root()));
        }));
        let said = refused.unwrap_err().downcast::<std::string::String>().unwrap();
        assert!(said.contains("struct Mine(#[trace(skip)] alloc::string::String);"), "{said}");
    }

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
