//! The realm: a heap of its own with one root. Why it is sound is said at the crate's head.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use heapwright_gc::Statistics;
use heapwright_gc::raw::{self, Options, Runtime, Tracer};
use heapwright_substrate::unwinding::{self, Surfacing};

use super::mutation::{Mutation, Rootable};
use super::pointer::{self, Gc, Header};
use super::send::{Mode, OneThread};

/// A heap of its own with one root, used by one thread; a [`SendRealm`](super::SendRealm) by one at
/// a time.
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
    pub(super) mutator: core::mem::ManuallyDrop<raw::Mutator>,
    root: *mut *mut u8,
    pub(super) heap: raw::Heap,
    /// Dropped after the heap, whose end drops all objects.
    _surfacing: Surfacing,
    /// Invariant: a subtype of `R` may name another root.
    of: PhantomData<(*mut R, M)>,
}

/// A realm's mutator, for one call. At the end of the call, panics of its destructors go on.
pub(super) struct Here<'a> {
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

    /// A realm with the root that `root` makes, on a heap that is as `options` say. All layouts,
    /// limits and modes can be chosen: stores are always reported.
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
pub(super) const OPTIONS: Options = Options { generations: true, compact: true, ..Options::new() };

impl<R: ?Sized + for<'gc> Rootable<'gc>, M: Mode> Realm<R, M> {
    pub(super) fn make(
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

    pub(super) fn mutation<'gc>(&self) -> Mutation<'gc> {
        Mutation { mutator: &raw const *self.mutator, sends: M::SENDS, brand: PhantomData }
    }

    /// The mutator, for a call of the calling thread that may sweep.
    #[inline]
    pub(super) fn here(&self) -> Here<'_> {
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

    /// As [`Realm::compact`], but in steps: [`Realm::step`] does it, by and by. A realm does so by
    /// itself when it has many more pages than it may have (`compact` in its options).
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

    /// Writes a heap dump, which `heapwright heap` reads, in pieces to `sink`, which says whether
    /// it took them. Whether the dump is whole.
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
