//! The safe door: a collected heap whose references the compiler watches.
//!
//! ```text
//!   Realm<Rootable!['gc => Root<'gc>]>
//!     |  mutate(|mc, root| ...)        'gc: a lifetime of this call alone
//!     |       mc: &Mutation<'gc>       allocates
//!     |       root: Gc<'gc, Root>      leads to everything
//!     |
//!     +- between two calls: collects   no Gc<'gc, T> exists but those in the heap itself
//! ```
//!
//! **Why it is sound.** `mutate` takes a function that works for *every* lifetime `'gc`, so nothing
//! that has `'gc` in its type can leave it: not by its result, not through anything it borrows, not by
//! another realm, whose lifetime is another one (brands, after Launchbury and Peyton Jones's
//! `runST`; for Rust after gc-arena by Catherine West). While it runs nothing is collected: only lazily
//! swept what the last collection found dead. So in `mutate` every `Gc` leads to an object,
//! and between two calls the only ones that exist lie in objects that the root leads to, and whose
//! [`Trace`] reports them all. There is no stack to be scanned, and no root to be forgotten.
//!
//! A root's type must not bring in by another way what the function must not know. The compiler takes the types
//! of a function's arguments for well-formed, and looks at those of a `dyn for<'gc> Rootable<'gc, Root = ...>`
//! not at all: one that is well-formed for `'static` alone, as `&'static &'gc ()` is, would make `'gc` that. So
//! [`Trace`] is not implemented for such, nor for anything that names such (its contract says so), and what a
//! root is must be `Trace`, of every lifetime.
//!
//! **Why objects can be moved.** Moving one changes what leads to it, and nobody must have kept where it was. A
//! Rust reference to it (`&T`, what a `Gc` shows) lives as long as `'gc`: none is left when `mutate` has
//! returned. A `Gc` in another object is a word of that object, whose address `Trace` reports by lending
//! itself; the collector changes that word by way of its own pointer to the heap, while no reference to the
//! object exists. A `Gc` that lies elsewhere, in a `Box`, a `Vec` or a map's memory, it must not change
//! (`Trace` lends what is shared): what that leads to stays where it is as long as it does. So does what
//! [`Mutation::pin`] was called for. What is left of an address that somebody has noted is a number.
//!
//! **Stores.** An object is shared by all that have a `Gc` to it, so it changes through cells:
//! [`Cell`](super::Cell) for what is copied, [`Lock`](super::Lock) for what is borrowed. Both are given the
//! object in which they lie, because a store into an object that was looked at has to be reported to the
//! collector (the write barrier), and they look whether they do.
//!
//! **What does not compile**, each beside what does:
//!
//! ```
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let copied: u32 = realm.mutate(|_, root| *root.get().unwrap()); // a value may leave
//! # assert_eq!(copied, 7);
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let kept: Gc<'_, u32> = realm.mutate(|_, root| root.get().unwrap()); // a reference may not
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let mut kept = None;
//! realm.mutate(|_, root| kept = root.get()); // nor through what the function borrows
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut one = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let mut two = Realm::<Root>::new(|_| Cell::new(None));
//! one.mutate(|_, from| two.mutate(|mc, to| to.set(mc, to, from.get()))); // nor into another realm
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! std::thread::spawn(move || realm.collect()); // nor the realm to another thread
//! ```
//!
//! ```compile_fail
//! # use core::cell::Cell;
//! # use heapwright::{Rootable, gc::{Realm, Trace, Tracer}};
//! # struct Noisy<'a>(&'a Cell<u32>);
//! # unsafe impl Trace for Noisy<'_> { fn trace(&self, _: &Tracer) {} }
//! let mut realm = Realm::<Rootable!['gc => u8]>::new(|_| 0);
//! let count = Cell::new(0);
//! realm.mutate(|mc, _| { mc.alloc(Noisy(&count)); }); // nor may what lives shorter come in
//! ```
//!
//! ```compile_fail
//! # use core::marker::PhantomData;
//! # use heapwright::{Rootable, gc::{Gc, Realm}};
//! // nor may a root's type say that all references are of one lifetime
//! let mut realm = Realm::<Rootable!['gc => PhantomData<&'static &'gc ()>]>::new(|_| PhantomData);
//! let kept: Gc<'static, u32> = realm.mutate(|mc, _| mc.alloc(7));
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm, Weak}};
//! // wherever in it
//! type Root = Rootable!['gc => Cell<Option<Weak<'gc, &'static &'gc ()>>>];
//! let mut realm = Realm::<Root>::new(|_| Cell::new(None));
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! // nor may a type of its own leave to be inferred what is not asked for there, `'gc: 'a`:
//! #[derive(Trace)]
//! struct Outer<'a, 'gc>(Option<Inner<'a, 'gc>>);
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! #[derive(Trace)]
//! struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! #[derive(Trace)]
//! struct Outer<'a, 'gc: 'a>(Option<Inner<'a, 'gc>>);
//! // written, it is asked for, and this root has it for 'static alone
//! let mut realm = Realm::<Rootable!['gc => Outer<'static, 'gc>]>::new(|_| Outer(None));
//! let kept: Gc<'static, String> = realm.mutate(|mc, _| mc.alloc(String::from("kept")));
//! ```
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! # #[derive(Trace)]
//! # struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! # #[derive(Trace)]
//! # struct Outer<'a, 'gc: 'a>(Option<Inner<'a, 'gc>>);
//! // as of every lifetime, which is longer than itself
//! let mut realm = Realm::<Rootable!['gc => Outer<'gc, 'gc>]>::new(|_| Outer(None));
//! assert!(realm.mutate(|_, root| root.0.is_none()));
//! # }
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Realm, Rootable};
//! struct Like<T>(T);
//! impl<'gc> Rootable<'gc> for Like<for<'a> fn(&'a u8)> { type Root = [usize; 2]; }
//! impl<'gc> Rootable<'gc> for Like<fn(&'static u8)> { type Root = &'static str; }
//! let realm = Realm::<Like<for<'a> fn(&'a u8)>>::new(|_| [1, 2]);
//! let other: Realm<Like<fn(&'static u8)>> = realm; // a realm is of one type of root, not of its subtypes
//! ```
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     value: Gc<'gc, u32>,
//!     #[trace(skip)]
//!     file: Option<std::fs::File>, // what is skipped is 'static, and may be dropped
//! }
//! # }
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     #[trace(skip)]
//!     value: Gc<'gc, u32>, // a reference may not be skipped: this is `Trace` for 'static alone
//! }
//! Realm::<Rootable!['gc => Held<'gc>]>::new(|mc| Held { value: mc.alloc(7) });
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     value: Gc<'gc, u32>,
//! }
//! impl Drop for Held<'_> {
//!     fn drop(&mut self) {
//!         println!("{}", self.value); // what it leads to may be gone
//!     }
//! }
//! ```
//!
//! - `pointer`: references, and what stands before each object
//! - `cells`: interior mutability with a write barrier
//! - `slice`: arrays and strings in a slot of their own; `text`: how strings are built
//! - `buffer`: room for values, `growing`: that grows; `collections`: vector, deque, map and set, made of it without unsafe code
//! - `trace`: the trait; `standard`: the types of core and std that implement it
//! - `weak`: references that keep nothing; `finalize`: what is done when nothing else leads to a value
//! - `send`: realms that go from thread to thread
//!
//! One thread's at a time. Threads of the heap's own may call `trace`, which reads and
//! nothing else, while `mutate` does not run.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use heapwright_substrate::unwinding::{self, Surfacing};

use super::raw::{self, Options, Runtime, Tracer};
use super::statistics::Statistics;

mod buffer;
pub(super) mod cells;
pub(super) mod collections;
pub(super) mod finalize;
mod growing;
pub(super) mod pointer;
pub(super) mod send;
pub(super) mod slice;
pub(super) mod standard;
pub(super) mod text;
pub(super) mod trace;
pub(super) mod weak;

use pointer::{Gc, Header};
use send::{Mode, OneThread};
use trace::Trace;

/// A type for each lifetime: what a realm's root is. Made by `heapwright::Rootable!`.
pub trait Rootable<'gc> {
    /// The root, if references live as long.
    type Root: Trace + 'gc;
}

/// A heap of its own with one root, used by one thread; a [`SendRealm`](send::SendRealm) by one at a time.
///
/// A destructor that panics does not stop the call that runs it. This call ends its work first, and
/// then panics with the first panic of its destructors. Any call may sweep and run destructors,
/// [`mutate`](Realm::mutate) as well. (Without the feature `std` nothing catches a panic, and such
/// a destructor ends the process.)
///
/// A chain of a `Box` in a `Box` and so on is traced with bounded recursion. To *drop* such a
/// chain, std recurses as deep as the chain.
///
/// ```
/// # #[cfg(feature = "derive")] {
/// use heapwright::Rootable;
/// use heapwright::gc::{Cell, Gc, Realm, Trace};
///
/// #[derive(Trace)]
/// struct Node<'gc> {
///     value: u64,
///     next: Option<Gc<'gc, Node<'gc>>>,
/// }
///
/// let mut realm = Realm::<Rootable!['gc => Cell<Option<Gc<'gc, Node<'gc>>>>]>::new(|_| Cell::new(None));
/// for value in 0..1000 {
///     realm.mutate(|mc, root| {
///         let node = mc.alloc(Node { value, next: root.get() });
///         root.set(mc, root, Some(node));
///     });
/// }
/// let sum: u64 = realm.mutate(|_, root| {
///     core::iter::successors(root.get(), |node| node.next).map(|node| node.value).sum()
/// });
/// assert_eq!(sum, 499_500);
/// # }
/// ```
pub struct Realm<R: ?Sized + for<'gc> Rootable<'gc>, M = OneThread> {
    /// Dropped by hand, before the heap.
    mutator: core::mem::ManuallyDrop<raw::Mutator>,
    root: *mut *mut u8,
    heap: raw::Heap,
    /// Dropped after the heap, whose end drops all objects.
    _surfacing: Surfacing,
    /// Invariant: a subtype of `R` may name another root.
    of: PhantomData<(*mut R, M)>,
}

/// A realm's mutator, for one call. At the end of the call, panics of its destructors go on.
struct Here<'a> {
    mutator: &'a raw::Mutator,
    _surfacing: Surfacing,
}

impl Deref for Here<'_> {
    type Target = raw::Mutator;

    #[inline]
    fn deref(&self) -> &raw::Mutator {
        self.mutator
    }
}

/// What may be done in a [`Realm::mutate`].
pub struct Mutation<'gc> {
    pub(super) mutator: *const raw::Mutator,
    /// Whether the realm goes to other threads, so that not all values may be put into it.
    sends: bool,
    brand: PhantomData<fn(&'gc ()) -> &'gc ()>,
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: every object of a realm begins with a header, or with zero before it has one.
    unsafe { Header::trace(object.cast(), tracer) };
}

unsafe extern "C" fn free(object: *mut c_void, _: usize, _: *mut c_void) {
    unwinding::caught(|| {
        // SAFETY: an object of a realm begins with a header, or with zero; it is dead, and dropped
        // once.
        unsafe { Header::drop(object.cast()) };
    });
}

unsafe extern "C" fn wanted(object: *const c_void, _: *mut c_void) -> usize {
    // SAFETY: an object of a realm begins with a header, or with zero before it has one.
    unsafe { Header::size(object.cast()) }
}

unsafe extern "C" fn type_name(object: *const c_void, _: *mut c_void) -> *const c_char {
    // SAFETY: an object of a realm begins with a header, or with zero before it has one.
    unsafe { Header::name(object.cast()) }
}

impl<R: ?Sized + for<'gc> Rootable<'gc>> Realm<R> {
    /// A realm with the root that `root` makes.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn new(root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root) -> Self {
        Self::with(OPTIONS, root)
    }

    /// A realm with the root that `root` makes, on a heap that is as `options` say. All layouts, limits
    /// and modes can be chosen: stores are always reported.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn with(
        options: Options,
        root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root,
    ) -> Self {
        Self::make(options, root)
    }
}

/// What a realm is made with, if nothing else is said.
const OPTIONS: Options = Options { generations: true, compact: true, ..Options::new() };

impl<R: ?Sized + for<'gc> Rootable<'gc>, M: Mode> Realm<R, M> {
    fn make(
        options: Options,
        root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root,
    ) -> Self {
        let runtime = Runtime {
            trace: Some(trace),
            free: Some(free),
            type_name: Some(type_name),
            wanted: Some(wanted),
            ..Runtime::new()
        };
        let heap = raw::Heap::new(options, runtime).expect("memory for a realm");
        let mutator = heap.attach_unwatched().expect("memory for a realm");
        // SAFETY: the runtime's functions report roots and objects by the types' `Trace`.
        let cell = unsafe { mutator.new_root(core::ptr::null_mut()) }.expect("memory for a realm");
        let realm = Self {
            mutator: core::mem::ManuallyDrop::new(mutator),
            root: cell,
            heap,
            _surfacing: Surfacing,
            of: PhantomData,
        };
        let make = || {
            let mc = realm.mutation();
            // If the realm may go to other threads, its root's type is `Send`, by `sendable`.
            let Ok(made) = mc.put(root(&mc)) else { pointer::out_of_memory(size_of::<*mut u8>()) };
            let object = made.object();
            // SAFETY: the realm's cell; nothing is collected before it leads there.
            unsafe { realm.root.write(object) };
        };
        // SAFETY: the realm's cell; nothing is collected while its root is made, and nothing but
        // that leaves.
        unsafe { realm.here().held(make) };
        realm
    }

    fn mutation<'gc>(&self) -> Mutation<'gc> {
        Mutation { mutator: &raw const *self.mutator, sends: M::SENDS, brand: PhantomData }
    }

    /// The mutator, for a call of the calling thread that may sweep.
    #[inline]
    fn here(&self) -> Here<'_> {
        if M::SENDS {
            self.mutator.note_thread();
        }
        Here { mutator: &self.mutator, _surfacing: Surfacing }
    }

    /// Calls `with`, which may read, change and allocate. References do not leave it. What it has
    /// allocated is paid for when it returns: with a collection, or a step of one, if it is time.
    pub fn mutate<T>(
        &mut self,
        with: impl for<'gc> FnOnce(&Mutation<'gc>, Gc<'gc, <R as Rootable<'gc>>::Root>) -> T,
    ) -> T {
        let mutate = || {
            // SAFETY: the realm's cell, which is its own.
            let root = unsafe { self.root.read() };
            // SAFETY: it leads to the root, whose type is this one for any lifetime.
            let root = unsafe { Gc::from_object(root) };
            with(&self.mutation(), root)
        };
        // SAFETY: the brand keeps references in `mutate`: after it the heap alone has some.
        unsafe { self.here().held(mutate) }
    }

    /// Collects for about `budget`: sweeps, marks, and begins a collection if one is due. Whether
    /// nothing is left to do.
    pub fn step(&mut self, budget: Duration) -> bool {
        let budget = u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().step(budget) }
    }

    /// Whether [`Realm::step`] has something to do.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.mutator.is_owed()
    }

    /// From now on a collection is due: steps begin one.
    pub fn ask(&mut self) {
        self.mutator.ask();
    }

    /// A major collection from its beginning to its end.
    pub fn collect(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().collect() };
    }

    /// Collects, moves values to where they lie close together, and gives pages back that have none
    /// any more.
    pub fn compact(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().compact() };
    }

    /// As [`Realm::compact`], but in steps: [`Realm::step`] does it, by and by. A realm does so by itself
    /// when it has many more pages than it may have (`compact` in its options).
    pub fn ask_compact(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.mutator.ask_compact() };
    }

    /// Gives pages without values back. Returns bytes.
    pub fn trim(&mut self) -> usize {
        self.heap.trim()
    }

    /// Until [`Realm::resume_majors`], collections are minor ones as far as possible. Nests.
    pub fn defer_majors(&mut self) {
        self.mutator.defer_majors();
    }

    /// Ends a [`Realm::defer_majors`].
    pub fn resume_majors(&mut self) {
        self.mutator.resume_majors();
    }

    /// What there is of its heap.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.heap.statistics()
    }

    /// Writes a heap dump, which `heapwright heap` reads, in pieces to `sink`, which says whether it took
    /// them. Whether the dump is whole.
    pub fn dump(&mut self, sink: impl FnMut(&[u8]) -> bool) -> bool {
        // SAFETY: no reference is left but those in the heap; the sink has no way to it.
        unsafe { self.here().dump(sink) }
    }
}

impl<R: ?Sized + for<'gc> Rootable<'gc>, M> Drop for Realm<R, M> {
    /// Drops all objects, in no order, and gives all memory back.
    fn drop(&mut self) {
        // SAFETY: not used any more, and taken once.
        let mutator = unsafe { core::mem::ManuallyDrop::take(&mut self.mutator) };
        // SAFETY: the realm is dropped, so nobody uses the mutator any more.
        unsafe { mutator.detach() };
    }
}
