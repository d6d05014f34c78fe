//! The realm: a heap of its own with one root. [`Realm`] says why it is sound.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use heapwright_gc::Statistics;
use heapwright_gc::raw::{self, Options, Runtime, Tracer};
use heapwright_substrate::unwinding::{self, Surfacing};

use super::mutation::{Fuel, Mutation, Rootable};
use super::pointer::{self, Gc, Header};
use super::send::{Mode, OneThread};

/// A heap with one root. One thread uses it. A [`SendRealm`](super::SendRealm) may change threads.
///
/// # A mutation never collects
///
/// [`mutate`](Realm::mutate) allocates, and lazily sweeps objects that the last collection found
/// dead, but it marks, moves and frees nothing else. The realm collects only after `mutate` has
/// returned, or in calls that take `&mut self` to collect, as [`step`](Realm::step) does.
///
/// This is sound because no reference outlives its mutation. The function works for *every*
/// lifetime `'gc`, so no value with `'gc` in its type leaves it, in the result or through a borrow.
/// It does not enter another realm, which has another lifetime. (Such brands are due to Launchbury
/// and Peyton Jones's `runST`, in Rust to gc-arena by Catherine West.) Between two mutations a `Gc`
/// exists only in objects that the root leads to, and the [`Trace`](super::Trace) of each reports
/// it. So the collector scans no stack, and a program cannot forget a root.
///
/// # Destructors
///
/// A call whose destructors panic ends its work first, and then panics with the first of these
/// panics. Any call may sweep and run destructors, `mutate` as well. Without the feature `std` a
/// panic ends the process.
///
/// Tracing a chain of a `Box` in a `Box` and so on has bounded recursion. To *drop* such a chain,
/// std recurses as deep as the chain.
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
    /// `Drop` drops it before the heap.
    pub(super) mutator: core::mem::ManuallyDrop<raw::Mutator>,
    root: *mut *mut u8,
    pub(super) heap: raw::Heap,
    /// Dropped after the heap, whose end drops all objects.
    _surfacing: Surfacing,
    /// Invariant: a subtype of `R` may name another root.
    of: PhantomData<(*mut R, M)>,
}

/// A realm's mutator, for one call. Its drop resumes a panic of the call's destructors.
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
        // SAFETY: an object of a realm begins with a header, or with zero. It is dead.
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
    /// Creates a realm with the root that `root` makes.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn new(root: impl for<'gc> FnOnce(&Mutation<'gc>) -> <R as Rootable<'gc>>::Root) -> Self {
        Self::with(OPTIONS, root)
    }

    /// Creates a realm with the root that `root` makes, on a heap with these `options`. Any layout,
    /// limit and mode works, because all stores are reported.
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
        // SAFETY: the runtime's functions report the references of objects by the types' `Trace`.
        // The cell is the only root.
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
            // SAFETY: the realm's cell; no collection runs before it leads to the root.
            unsafe { realm.root.write(object) };
        };
        // SAFETY: only the root, in the realm's cell, leaves `make`.
        unsafe { realm.here().held(make) };
        realm
    }

    pub(super) fn mutation<'gc>(&self) -> Mutation<'gc> {
        Mutation { mutator: &raw const *self.mutator, sends: M::SENDS, brand: PhantomData }
    }

    #[inline]
    pub(super) fn here(&self) -> Here<'_> {
        if M::SENDS {
            self.mutator.note_thread();
        }
        Here { mutator: &self.mutator, _surfacing: Surfacing }
    }

    /// Calls `with`, which may read and change objects, and allocate. References do not leave
    /// `with`. Nothing is collected until `with` returns. Then the realm pays for the allocated
    /// bytes: it runs a collection or a step of one, if that is due.
    pub fn mutate<T>(
        &mut self,
        with: impl for<'gc> FnOnce(&Mutation<'gc>, Gc<'gc, <R as Rootable<'gc>>::Root>) -> T,
    ) -> T {
        let mutate = || {
            // SAFETY: the realm's cell, which is its own.
            let root = unsafe { self.root.read() };
            // SAFETY: the cell leads to the root, which has this type for any lifetime.
            let root = unsafe { Gc::from_object(root) };
            with(&self.mutation(), root)
        };
        // SAFETY: the brand keeps references in `mutate`; afterwards only the heap holds any.
        unsafe { self.here().held(mutate) }
    }

    /// Calls `with` for one piece of work after another, until `with` returns a value. Between two
    /// pieces the realm collects, if a collection is due, as after [`mutate`](Realm::mutate). Long
    /// work needs this, because in one mutation its garbage would grow without bound.
    ///
    /// `with` keeps its state in the root, and calls [`Fuel::burn`] before each operation. Then a
    /// piece has at most `operations` operations, and allocates hardly more than 128 KiB.
    ///
    /// ```
    /// use heapwright::Rootable;
    /// use heapwright::gc::{Cell, Realm, Vector};
    ///
    /// // A machine that counts to a million, and makes garbage on the way.
    /// let mut realm = Realm::<Rootable!['gc => Cell<u64>]>::new(|_| Cell::new(0));
    /// let counted = realm.run(100_000, |mc, count, fuel| {
    ///     while fuel.burn() {
    ///         Vector::new(mc).push(mc, count.get());
    ///         count.put(count.get() + 1);
    ///         if count.get() == 1_000_000 {
    ///             return Some(count.get());
    ///         }
    ///     }
    ///     None
    /// });
    /// assert_eq!(counted, 1_000_000);
    /// assert!(realm.statistics().peak_bytes < 16 << 20);
    /// ```
    pub fn run<T>(
        &mut self,
        operations: usize,
        mut with: impl for<'gc> FnMut(
            &Mutation<'gc>,
            Gc<'gc, <R as Rootable<'gc>>::Root>,
            &mut Fuel,
        ) -> Option<T>,
    ) -> T {
        loop {
            if let Some(value) = self.mutate(|mc, root| with(mc, root, &mut mc.fuel(operations))) {
                return value;
            }
        }
    }

    /// Collects for about `budget`: sweeps, marks, and begins a collection if one is due. Returns
    /// whether no work is left.
    pub fn step(&mut self, budget: Duration) -> bool {
        let budget = u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().step(budget) }
    }

    /// Returns whether [`Realm::step`] has work to do.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.mutator.is_owed()
    }

    /// Makes a collection due: the next step begins one.
    pub fn ask(&mut self) {
        self.mutator.ask();
    }

    /// Runs a whole major collection.
    pub fn collect(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().collect() };
    }

    /// Collects, moves values close together, and gives empty pages back.
    pub fn compact(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.here().compact() };
    }

    /// Makes a compaction due, which [`Realm::step`] runs in steps. Empty pages stay. A realm with
    /// `compact` in its options compacts by itself if it has many more pages than its goal allows.
    pub fn ask_compact(&mut self) {
        // SAFETY: no reference is left but those in the heap.
        unsafe { self.mutator.ask_compact() };
    }

    /// Gives empty pages back. Returns their bytes.
    pub fn trim(&mut self) -> usize {
        self.heap.trim()
    }

    /// Makes collections minor where possible, until [`Realm::resume_majors`]. Calls nest.
    pub fn defer_majors(&mut self) {
        self.mutator.defer_majors();
    }

    /// Ends a [`Realm::defer_majors`].
    pub fn resume_majors(&mut self) {
        self.mutator.resume_majors();
    }

    /// Returns the statistics of the realm's heap.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.heap.statistics()
    }

    /// Writes a heap dump for `heapwright heap` to `sink`, piece by piece. `sink` returns whether
    /// it took the piece. Returns whether the dump is whole.
    pub fn dump(&mut self, sink: impl FnMut(&[u8]) -> bool) -> bool {
        // SAFETY: no reference is left but those in the heap, which the sink cannot reach.
        unsafe { self.here().dump(sink) }
    }
}

impl<R: ?Sized + for<'gc> Rootable<'gc>, M> Drop for Realm<R, M> {
    /// Drops all objects, in no order, and gives all memory back.
    fn drop(&mut self) {
        // SAFETY: this is the only `take`, and the mutator is not used afterwards.
        let mutator = unsafe { core::mem::ManuallyDrop::take(&mut self.mutator) };
        // SAFETY: the realm is dropped, so no other code uses the mutator.
        unsafe { mutator.detach() };
    }
}
