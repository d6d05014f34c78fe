//! The collected heap as a runtime sees it: its creation, settings, queries and end.
//!
//! ```text
//!   Heap --> slot of the registry of heaps, never freed; a pointer to its value is the C handle
//! ```

use core::ffi::c_void;
use core::ptr;

use heapwright_substrate::ids::Slot;

use super::super::due::SomeAreDue;
use super::super::heap as inner;
use super::super::layout::LARGE;
use super::super::mutator as attached;
use super::super::runtime::WeakPass;
use super::super::sizing::Policy;
use super::super::statistics::Statistics;
use super::{Mutator, Options, Runtime};

/// A collected heap.
///
/// ```
/// use core::ffi::c_void;
/// use heapwright::gc::raw::{Heap, Options, Runtime, Tracer};
///
/// // A pair: two references.
/// unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
///     let pair = object.cast::<[*mut u8; 2]>();
///     // SAFETY: every object of this heap is a pair.
///     unsafe { *pair }.into_iter().for_each(|reference| tracer.mark(reference));
/// }
///
/// let runtime = Runtime { trace: Some(trace), ..Runtime::new() };
/// let heap = Heap::new(Options::new(), runtime).expect("memory");
/// // SAFETY: the duties of the module's documentation are kept.
/// unsafe {
///     let mutator = heap.attach().expect("memory");
///     let root = mutator.new_root(core::ptr::null_mut()).expect("memory");
///     for _ in 0..100_000 {
///         let pair = mutator.alloc(16, heapwright::gc::TRACED).cast::<[*mut u8; 2]>();
///         (*pair)[0] = *root; // each keeps the one before ...
///         *root = if heap.statistics().cycles % 2 == 0 { pair.cast() } else { core::ptr::null_mut() };
///     }
///     mutator.free_root(root);
///     mutator.detach();
/// }
/// ```
pub struct Heap {
    slot: &'static Slot<inner::Heap>,
}

// SAFETY: by the runtime's duties any thread may call its callbacks.
unsafe impl Send for Heap {}
// SAFETY: all fields are atomics or behind locks; any thread may call the runtime's callbacks.
unsafe impl Sync for Heap {}

impl Heap {
    /// Makes a heap. `None` if there is no memory.
    #[must_use]
    pub fn new(options: Options, runtime: Runtime) -> Option<Self> {
        inner::Heap::make(options, runtime).map(|slot| Self { slot })
    }

    pub(in super::super) fn inner(&self) -> &'static inner::Heap {
        &self.slot.value
    }

    /// Returns whether the calling thread has a mutator of this heap.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let me = heapwright_substrate::os::thread_token();
        let mut found = false;
        self.inner().each_mutator(|mutator| found |= mutator.thread.get() == me);
        found
    }

    /// Attaches the calling thread, which must not be attached. Waits while the world is stopped.
    /// `None` if there is no memory. If the thread ends in the heap, its mutator is detached.
    #[must_use]
    pub fn attach(&self) -> Option<Mutator> {
        let mutator = self.attach_unwatched()?;
        mutator.inner().note_attached();
        Some(mutator)
    }

    /// As [`Heap::attach`], for a mutator that may change threads: no thread's end detaches it.
    #[must_use]
    pub fn attach_unwatched(&self) -> Option<Mutator> {
        attached::Mutator::attach(self.inner()).map(Mutator::new)
    }

    /// Makes a mutator without a thread, in the state after [`Mutator::leave`]. A thread calls
    /// [`Mutator::enter`] to use it. This call does not wait while the world is stopped. So the
    /// calling thread may also have entered with another mutator. `None` if there is no memory.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heap = Heap::new(Options::new(), Runtime::new()).expect("memory");
    /// let main = heap.attach().expect("memory");
    /// let away = heap.attach_away().expect("memory");
    /// // SAFETY: nobody waits for `away`; this thread detaches `main` before it enters by `away`.
    /// unsafe {
    ///     main.collect();
    ///     main.detach();
    ///     away.enter();
    ///     away.detach();
    /// }
    /// ```
    #[must_use]
    pub fn attach_away(&self) -> Option<Mutator> {
        let slot = attached::Mutator::join(self.inner())?;
        slot.value.may_move.set(1);
        Some(Mutator::new(slot))
    }

    /// Adds `bytes` (or subtracts, if negative) to the memory that objects of the heap keep
    /// elsewhere. Unlike [`Mutator::external`], this needs no mutator. No allocation pays for the
    /// bytes, but the next collection is due sooner. Any thread may call this.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heap = Heap::new(Options::new(), Runtime::new()).expect("memory");
    /// heap.account(1 << 20);
    /// assert_eq!(heap.statistics().external_bytes, 1 << 20);
    /// ```
    pub fn account(&self, bytes: isize) {
        self.inner().space.pacing.add_external(bytes);
    }

    /// Returns the object that contains `address`, which may be any address. Takes constant time.
    /// For a new object or a free slot, takes time linear in the number of mutators.
    #[must_use]
    pub fn find(&self, address: *const u8) -> Option<*mut u8> {
        self.inner().find_fresh(address)
    }

    /// Bytes of the slot for an object of `size` bytes.
    #[must_use]
    pub fn slot_size(&self, size: usize) -> usize {
        let sizes = self.inner().space.sizes();
        let pool = sizes.pool(size);
        if pool == LARGE { size } else { sizes.slot(pool) }
    }

    /// The largest size that fits a slot; above it, an object is a large object.
    #[must_use]
    pub fn largest_slot(&self) -> usize {
        self.inner().space.sizes().largest()
    }

    /// The statistics of the heap.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Changes the heap's memory target, as in [`Options`]: `factor_percent` of the live bytes, at
    /// least `least` bytes for each mutator between two collections, and at most `most` bytes in
    /// all. 0 chooses a default. The target applies at once: a heap above `most` gets no page until
    /// a collection has made room. Any thread may call this.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heap = Heap::new(Options::new(), Runtime::new()).expect("memory");
    /// let goal = heap.statistics().goal_bytes;
    /// heap.set_target(0, 4 * goal as usize, 0);
    /// assert_eq!(heap.statistics().goal_bytes, 4 * goal);
    /// ```
    pub fn set_target(&self, factor_percent: u32, least: usize, most: usize) {
        let asked = Options { factor_percent, least, most, ..Options::new() };
        self.inner().set_target(asked.factor_percent(), asked.least_bytes(), asked.most_bytes());
    }

    /// Sets a function that chooses the next target after each collection. It returns how many
    /// bytes, live and garbage, there may be when the next collection ends. The function runs while
    /// the world is stopped. It calls nothing of the heap, and takes no lock that a mutator may
    /// hold. `least` and `most` still apply. `None` removes the function. Any thread may call this.
    ///
    /// # Safety
    ///
    /// `policy` and `context` are valid until the next call of this or the heap's end.
    pub unsafe fn set_policy(&self, policy: Option<Policy>, context: *mut c_void) {
        self.inner().space.sizing.choose(policy, context);
    }

    /// Makes the heap grow by a square root, not by a factor: the root of live bytes times
    /// allocation rate by marking rate (MemBalancer: Kirisame, Shenoy, Panchekha, OOPSLA 2022).
    /// Among heaps with the same `bytes`, a heap gets more memory if memory saves it more time. A
    /// heap with `bytes` live bytes that allocates as fast as it is marked may double. 0 restores
    /// the factor. Any thread may call this.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heaps = [(); 3].map(|()| Heap::new(Options::new(), Runtime::new()).expect("memory"));
    /// heaps.iter().for_each(|heap| heap.balance(16 << 20));
    /// ```
    pub fn balance(&self, bytes: usize) {
        self.inner().space.sizing.balance(bytes);
    }

    /// Registers a pass over a table of the runtime, such as an identity map. Each collection calls
    /// `pass` when all is marked, and again when objects have moved, while the world is stopped.
    /// For each object in the table, `pass` calls [`Tracer::where_is`](super::Tracer::where_is),
    /// and drops the entry or notes the new address. The table keeps no object alive. `pass` calls
    /// nothing else of the heap. Returns false if there is no memory. Any thread may call this.
    ///
    /// # Safety
    ///
    /// `pass` and `context` are valid until [`Heap::remove_weak_pass`] or the heap's end.
    pub unsafe fn add_weak_pass(&self, pass: WeakPass, context: *mut c_void) -> bool {
        self.inner().trace.weak_passes.add(pass, context)
    }

    /// Removes the pass with this pointer and context. (Rust may make several pointers to one
    /// function, so keep the pointer that was added.) Returns whether the pass was registered.
    pub fn remove_weak_pass(&self, pass: WeakPass, context: *mut c_void) -> bool {
        self.inner().trace.weak_passes.remove(pass, context)
    }

    /// Sets a function for due finalizers, and for guardians that have objects to retrieve. The
    /// thread that collected calls it at most once for a collection, after the world has resumed.
    /// The function does not call the heap. `None` removes the function.
    ///
    /// # Safety
    ///
    /// `tell` and `context` are valid until the next call of this or the heap's end.
    pub unsafe fn tell_when_due(&self, tell: Option<SomeAreDue>, context: *mut c_void) {
        self.inner().trace.due.choose(tell, context);
    }

    /// Returns the number of objects that can be retrieved from guardians, and the number of
    /// objects without barriers ([`Mutator::unprotect`]).
    #[must_use]
    pub fn guarded(&self) -> (usize, usize) {
        (self.inner().trace.guardians.pending(), self.inner().trace.unprotected.count())
    }

    /// Gives all empty pages, and the process's free runs, to the kernel. Returns about how many
    /// bytes of this heap the kernel took.
    pub fn trim(&self) -> usize {
        self.inner().space.trim()
    }

    /// Returns the heap's number in the address map.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner().space.id()
    }

    /// A handle for C: a pointer that [`Heap::from_ptr`] takes back.
    #[must_use]
    pub fn into_ptr(self) -> *mut c_void {
        let at = ptr::from_ref(self.slot).wrapping_byte_add(Slot::<inner::Heap>::VALUE);
        core::mem::forget(self);
        at.cast_mut().cast()
    }

    /// The heap of a handle.
    ///
    /// # Safety
    ///
    /// `at` is from [`Heap::into_ptr`], and only one `Heap` made from it is dropped.
    #[must_use]
    pub unsafe fn from_ptr(at: *mut c_void) -> Self {
        // SAFETY: by the contract.
        let slot = unsafe { Slot::<inner::Heap>::containing(at.cast()) };
        // SAFETY: by the contract; slots are never freed.
        Self { slot: unsafe { &*slot } }
    }
}

impl Drop for Heap {
    /// Ends the heap: objects of kind `FREED` are freed, and all memory goes back. Mutators that
    /// are still attached must not be used afterwards.
    fn drop(&mut self) {
        inner::Heap::end(self.slot);
    }
}
