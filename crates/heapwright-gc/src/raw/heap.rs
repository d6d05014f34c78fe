//! The collected heap, as a runtime has it: made, asked, ended.
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

// SAFETY: the runtime's callbacks may be called from any thread, by its duties.
unsafe impl Send for Heap {}
// SAFETY: what is not an atomic is behind locks; the runtime's callbacks may be called from any
// thread.
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap of its own. `None` where there is no memory.
    #[must_use]
    pub fn new(options: Options, runtime: Runtime) -> Option<Self> {
        inner::Heap::make(options, runtime).map(|slot| Self { slot })
    }

    pub(in super::super) fn inner(&self) -> &'static inner::Heap {
        &self.slot.value
    }

    /// Whether the calling thread has a mutator here.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let me = heapwright_substrate::os::thread_token();
        let mut found = false;
        self.inner().each_mutator(|mutator| found |= mutator.thread.get() == me);
        found
    }

    /// The calling thread joins; it must not have joined. Waits while the world stands still.
    /// `None` where there is no memory. A thread that ends at work with a mutator that it has
    /// attached detaches it.
    #[must_use]
    pub fn attach(&self) -> Option<Mutator> {
        let mutator = self.attach_unwatched()?;
        mutator.inner().note_attached();
        Some(mutator)
    }

    /// As [`Heap::attach`], for a mutator that another thread may have when this one ends.
    #[must_use]
    pub fn attach_unwatched(&self) -> Option<Mutator> {
        attached::Mutator::attach(self.inner()).map(Mutator::new)
    }

    /// A mutator that no thread has yet: as after [`Mutator::leave`], for the thread that calls
    /// [`Mutator::enter`]. Does not wait while the world stands still: the calling thread may be at
    /// work with a mutator of its own. `None` where there is no memory.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heap = Heap::new(Options::new(), Runtime::new()).expect("memory");
    /// let main = heap.attach().expect("memory");
    /// let away = heap.attach_away().expect("memory");
    /// // SAFETY: nobody waits for a mutator that is away; this thread leaves before it takes it.
    /// unsafe {
    ///     main.collect();
    ///     main.detach();
    ///     away.enter();
    ///     away.detach();
    /// }
    /// ```
    #[must_use]
    pub fn attach_away(&self) -> Option<Mutator> {
        attached::Mutator::join(self.inner()).map(Mutator::new)
    }

    /// The runtime has `bytes` more elsewhere that go with objects of the heap, or less: as
    /// [`Mutator::external`], for a thread that has no mutator. No allocation pays for them, but
    /// the next collection is due the sooner. Any thread may call this.
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

    /// The object that an address lies in: any address at all. Constant time, but for objects that
    /// mutators have just allocated: then their number.
    #[must_use]
    pub fn find(&self, address: *const u8) -> Option<*mut u8> {
        self.inner().find_fresh(address)
    }

    /// Bytes of the slot that an object of `size` bytes gets.
    #[must_use]
    pub fn slot_size(&self, size: usize) -> usize {
        let sizes = self.inner().space.sizes();
        let pool = sizes.pool(size);
        if pool == LARGE { size } else { sizes.slot(pool) }
    }

    /// The largest size that lies in a slot: what is larger is a large object.
    #[must_use]
    pub fn largest_slot(&self) -> usize {
        self.inner().space.sizes().largest()
    }

    /// What there is of it.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Changes how much memory it may have, as [`Options`] say it: `factor_percent` of what is
    /// live, `least` bytes between two collections in any case, `most` bytes in all; 0 is the
    /// default of each. It holds from now on. A heap that is larger than `most` already gets no
    /// page until a collection has made room. Any thread may call it. Takes time for each mutator.
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

    /// Has `policy` asked after each collection how many bytes may be live and garbage when the
    /// next one ends: while the world stands still, so it calls nothing of the heap and takes no
    /// lock that a mutator may hold. `least` and `most` hold in any case. `None`: nobody is asked.
    /// Any thread may call this.
    ///
    /// # Safety
    ///
    /// `policy` and `context` are there until this is called again or the heap ends.
    pub unsafe fn set_policy(&self, policy: Option<Policy>, context: *mut c_void) {
        self.inner().space.sizing.choose(policy, context);
    }

    /// From now on the heap may grow by the square root of what lives, of how fast it allocates,
    /// and of how slowly it is marked, and not by a factor (MemBalancer's rule: Kirisame, Shenoy,
    /// Panchekha, OOPSLA 2022): of several heaps with the same `bytes`, those get more memory that
    /// save more time with it. A heap of which `bytes` live, and which allocates as fast as it is
    /// marked, may double. 0: by the factor again. Any thread may call this.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// let heaps = [(); 3].map(|()| Heap::new(Options::new(), Runtime::new()).expect("memory"));
    /// heaps.iter().for_each(|heap| heap.balance(16 << 20));
    /// ```
    pub fn balance(&self, bytes: usize) {
        self.inner().space.sizing.balance(bytes);
    }

    /// Has a table of the runtime's own looked through in each collection: `pass` is called when
    /// all is marked, and again when objects have moved, while the world stands still. For each
    /// object in the table it asks [`Tracer::where_is`](super::Tracer::where_is), and drops the
    /// entry, or notes the new address. Objects in the table are not kept. It calls nothing else of
    /// the heap. False: there is no memory. Any thread may call this.
    ///
    /// # Safety
    ///
    /// `pass` and `context` are there until [`Heap::remove_weak_pass`] or the heap ends.
    pub unsafe fn add_weak_pass(&self, pass: WeakPass, context: *mut c_void) -> bool {
        self.inner().trace.weak_passes.add(pass, context)
    }

    /// Ends an [`Heap::add_weak_pass`] of the same pointer and context (Rust may make several
    /// pointers of one function: keep it). Whether there was one.
    pub fn remove_weak_pass(&self, pass: WeakPass, context: *mut c_void) -> bool {
        self.inner().trace.weak_passes.remove(pass, context)
    }

    /// Has `tell` called, once a collection, when finalizers have become due or guardians have
    /// something to retrieve: by the thread that collected, when the others have gone on. It does
    /// not call the heap. `None`: nobody is told.
    ///
    /// # Safety
    ///
    /// `tell` and `context` are there until this is called again or the heap ends.
    pub unsafe fn tell_when_due(&self, tell: Option<SomeAreDue>, context: *mut c_void) {
        self.inner().trace.due.choose(tell, context);
    }

    /// How many objects can be retrieved from guardians, and how many have no barriers.
    #[must_use]
    pub fn guarded(&self) -> (usize, usize) {
        (self.inner().trace.guardians.pending(), self.inner().trace.unprotected.count())
    }

    /// Gives all pages without objects to the system's side of the process. Returns bytes.
    pub fn trim(&self) -> usize {
        self.inner().space.trim()
    }

    /// Its number in the address map.
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
    /// `at` is from [`Heap::into_ptr`], and only one of those made of it is dropped.
    #[must_use]
    pub unsafe fn from_ptr(at: *mut c_void) -> Self {
        // SAFETY: by the contract.
        let slot = unsafe { Slot::<inner::Heap>::containing(at.cast()) };
        // SAFETY: by the contract; slots are never freed.
        Self { slot: unsafe { &*slot } }
    }
}

impl Drop for Heap {
    /// Ends the heap: objects of kind `FREED` are freed, and all memory goes back. Mutators
    /// that are still attached must not be used any more.
    fn drop(&mut self) {
        inner::Heap::end(self.slot);
    }
}
