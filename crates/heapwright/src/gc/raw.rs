//! The door for runtimes: everything by address, nothing checked.
//!
//! ```text
//!   Heap::new(Options, Runtime) --> Heap --attach--> Mutator --alloc--> *mut u8
//!                                                       |
//!                       runtime.trace(tracer, object) <-+ collects
//! ```
//!
//! **The runtime's duties**, to which every function here refers:
//!
//! 1. *Roots.* Where anything may be collected (an allocation, a safepoint, a step), every
//!    object that is still wanted is led to by a handle, by what [`Runtime::roots`](Runtime#structfield.roots) reports, by
//!    a C stack that is scanned, or by such an object.
//! 2. *Tracing.* [`Runtime::trace`](Runtime#structfield.trace) reports every reference that an object holds, by the address that
//!    `alloc` gave. It changes nothing, allocates nothing, and does not call the heap but
//!    through its tracer. It is called from any thread, by several at a time: mutators, and
//!    threads of the heap's own that only mark.
//! 3. *Initialising.* What is traced arrives zeroed, and zero is something that `trace`
//!    understands.
//! 4. *Barriers.* On a heap that is `incremental` or has `generations`, every store of a reference into an object
//!    that may have been seen by a safepoint goes through [`Mutator::write`], or is followed by
//!    [`Mutator::shade`] before the next safepoint.
//! 5. *Safepoints.* A thread that is attached allocates, polls, or is away ([`Mutator::away`])
//!    within reasonable time, or all others wait for it. A mutator is used by one thread at a
//!    time, and a thread has one mutator a heap.
//! 6. *Freeing.* [`Runtime::free`](Runtime#structfield.free) looks at no other object, allocates nothing, and does not
//!    unwind; nor does any other callback.
//!
//! **Moving.** On a heap that is [`compact`](Options#structfield.compact), or directed to
//! ([`Mutator::compact`]), objects move, where anything may be collected. Then also:
//!
//! 7. *Slots.* An object that may move is led to by handles and by slots that are reported as such
//!    ([`Tracer::mark_slot`], [`Tracer::mark_range`], weak ones), and by nothing else that is used afterwards. What is
//!    reported by value ([`Tracer::mark`]), may be led to by a stack that is scanned, or is pinned, stays.
//!
//! The heap's duties: what roots lead to is never freed, and moved only as above; what they do not lead to
//! is freed, at the latest in the second collection that begins afterwards; a step ends when its budget does,
//! within what one object takes to be traced or freed; no callback is called under a lock that an
//! allocation would need.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr;

use crate::ids::Slot;
use crate::sync::atomic::Ordering;

use super::KIND_MASK;
use super::cycle::{MARKING, MOVING, STORES};
use super::finalizers::{Entry, Finalizer};
use super::heap;
use super::layout::LARGE;
use super::mutator;
use super::statistics::Statistics;
use super::stored::{self, TracePlace};
pub use super::tracer::Tracer;

mod options;
mod runtime;

pub use options::{Options, STRESS, Sweep, VERIFY_BARRIERS, VERIFY_HEAP};
pub use runtime::Runtime;

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
    slot: &'static Slot<heap::Heap>,
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
        heap::Heap::make(options, runtime).map(|slot| Self { slot })
    }

    fn inner(&self) -> &'static heap::Heap {
        &self.slot.value
    }

    /// Whether the calling thread has a mutator here.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let me = crate::os::thread_token();
        let mut found = false;
        self.inner().each_mutator(|mutator| found |= mutator.thread.get() == me);
        found
    }

    /// The calling thread joins; it must not have joined. Waits while the world stands still.
    /// `None` where there is no memory.
    #[must_use]
    pub fn attach(&self) -> Option<Mutator> {
        mutator::Mutator::attach(self.inner()).map(|slot| Mutator { slot, one: PhantomData })
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
        let sizes = self.inner().sizes();
        let pool = sizes.pool(size);
        if pool == LARGE { size } else { sizes.slot(pool) }
    }

    /// The largest size that lies in a slot: what is larger is a large object.
    #[must_use]
    pub fn largest_slot(&self) -> usize {
        self.inner().sizes().largest()
    }

    /// What there is of it.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Gives all pages without objects to the system's side of the process. Returns bytes.
    pub fn trim(&self) -> usize {
        self.inner().supply.trim()
    }

    /// Its number in the address map.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner().id()
    }

    /// A handle for C: a pointer that [`Heap::from_ptr`] takes back.
    #[must_use]
    pub fn into_ptr(self) -> *mut c_void {
        let at = ptr::from_ref(self.slot).wrapping_byte_add(Slot::<heap::Heap>::VALUE);
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
        let slot = unsafe { Slot::<heap::Heap>::containing(at.cast()) };
        // SAFETY: by the contract; slots are never freed.
        Self { slot: unsafe { &*slot } }
    }
}

impl Drop for Heap {
    /// Ends the heap: objects of kind `FREED` are freed, and all memory goes back. Mutators
    /// that are still attached must not be used any more.
    fn drop(&mut self) {
        heap::Heap::end(self.slot);
    }
}

/// A thread's way into a heap.
pub struct Mutator {
    slot: &'static Slot<mutator::Mutator>,
    /// One thread at a time.
    one: PhantomData<*mut ()>,
}

impl Mutator {
    fn inner(&self) -> &'static mutator::Mutator {
        &self.slot.value
    }

    fn heap(&self) -> &'static heap::Heap {
        self.inner().heap()
    }

    /// The head that the C interface shows.
    #[must_use]
    pub fn into_ptr(self) -> *mut c_void {
        ptr::from_ref(self.slot)
            .wrapping_byte_add(Slot::<mutator::Mutator>::VALUE)
            .cast_mut()
            .cast()
    }

    /// The heap it is of, as a handle for C.
    #[must_use]
    pub fn heap_ptr(&self) -> *mut c_void {
        ptr::from_ref(self.heap()).cast_mut().cast()
    }

    /// The mutator of a head.
    ///
    /// # Safety
    ///
    /// `at` is from [`Mutator::into_ptr`], and its mutator was not detached.
    #[must_use]
    #[inline]
    pub unsafe fn from_ptr(at: *mut c_void) -> Self {
        let value = at.cast::<mutator::Mutator>();
        // SAFETY: by the contract; the value is in a slot that is never freed.
        let slot = unsafe { Slot::containing(value) };
        // SAFETY: the slot that the mutator's value is in, which is never freed.
        Self { slot: unsafe { &*slot }, one: PhantomData }
    }

    /// The calling thread leaves the heap.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    pub unsafe fn detach(self) {
        mutator::Mutator::detach(self.slot);
    }

    /// Memory for an object of `size` bytes: zeroed if it is traced. Null: there is none under
    /// the limit, even after a collection.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self). `kind` is `TRACED` or `LEAF`, and `FREED` or not.
    #[inline]
    #[must_use]
    pub unsafe fn alloc(&self, size: usize, kind: u32) -> *mut u8 {
        self.inner().alloc(size, (kind & KIND_MASK) as usize)
    }

    /// Stores a reference into an object.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self). `slot` is a place for a reference in `parent`.
    #[inline]
    pub unsafe fn write(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        // SAFETY: by the contract.
        unsafe { slot.write(child) };
        if self.inner().barrier.load(Ordering::Relaxed) != 0 {
            self.wrote(parent, slot, child);
        }
    }

    /// Reports that a reference to `child` was stored into `parent`.
    pub fn shade(&self, parent: *mut u8, child: *mut u8) {
        self.wrote(parent, ptr::null_mut(), child);
    }

    /// As [`Mutator::shade`], and says to where: cheaper, while objects are moved.
    #[cold]
    pub fn wrote(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        let (heap, inner) = (self.heap(), self.inner());
        let barrier = inner.barrier.load(Ordering::Relaxed);
        if barrier == 0 || child.is_null() || child.addr() & 7 != 0 {
            return;
        }
        if barrier & MOVING != 0 {
            heap.note_store(inner, parent, slot, child);
        }
        if !parent.is_null() && !heap.is_marked(parent) {
            return;
        }
        if barrier & MARKING != 0 {
            inner.tracer.shade(child);
        }
        if barrier & STORES != 0 && !parent.is_null() {
            heap.remember(inner, parent, child);
        }
    }

    /// Reports that something was stored into `parent`, or will be before the next safepoint: for who
    /// cannot say what.
    #[inline]
    pub fn touch(&self, parent: *mut u8) {
        self.touch_at(parent, parent, stored::whole);
    }

    /// As [`Mutator::touch`], of who says where in `parent`, and how that place is asked.
    #[inline]
    pub(super) fn touch_at(&self, parent: *mut u8, place: *mut u8, trace: TracePlace) {
        if self.inner().barrier.load(Ordering::Relaxed) != 0 {
            self.note_touched(parent, place, trace);
        }
    }

    #[cold]
    fn note_touched(&self, parent: *mut u8, place: *mut u8, trace: TracePlace) {
        let barrier = self.inner().barrier.load(Ordering::Relaxed);
        if barrier & (MARKING | MOVING) != 0 {
            self.heap().note_stored(self.inner(), parent, place, trace);
        }
        if barrier & STORES != 0 {
            self.heap().touch(self.inner(), parent);
        }
    }

    /// Calls `with`, during which nothing is collected, whatever is allocated; and then pays for it,
    /// which may collect. Where there is no memory, allocations in it are refused.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self) when it returns. The heap has no other mutator.
    pub(super) unsafe fn held<R>(&self, with: impl FnOnce() -> R) -> R {
        /// Lets go, also when unwinding.
        struct Hold<'a>(&'a heap::Heap);
        impl Drop for Hold<'_> {
            fn drop(&mut self) {
                self.0.cycle.hold(false);
            }
        }
        let hold = Hold(self.heap());
        hold.0.cycle.hold(true);
        let result = with();
        drop(hold);
        self.heap().pay_rest(self.inner());
        result
    }

    /// A root: a cell that may be read and written freely. `None` where there is no memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    #[must_use]
    pub unsafe fn new_root(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().handles.make(&self.inner().handles, object).map(<*mut _>::cast)
    }

    /// Frees a root.
    ///
    /// # Safety
    ///
    /// `cell` is a root of this heap that was not freed.
    pub unsafe fn free_root(&self, cell: *mut *mut u8) {
        self.heap().handles.free(&self.inner().handles, cell.cast());
    }

    /// A weak root: a cell that may be read and written freely, keeps nothing, and becomes null
    /// when what it leads to has died, before its finalizers run. `None` where there is no memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    #[must_use]
    pub unsafe fn new_weak(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().weak.handles.make(&self.inner().weak, object).map(<*mut _>::cast)
    }

    /// Frees a weak root.
    ///
    /// # Safety
    ///
    /// `cell` is a weak root of this heap that was not freed.
    pub unsafe fn free_weak(&self, cell: *mut *mut u8) {
        self.heap().weak.handles.free(&self.inner().weak, cell.cast());
    }

    /// From now on the thread's C stack up to `base` is scanned for addresses; null: no more.
    ///
    /// # Safety
    ///
    /// `base` is within the calling thread's stack, above all frames that may hold objects.
    pub unsafe fn scan_stack(&self, base: *const u8) {
        self.inner().stack.base.set(base.cast_mut());
    }

    /// Whether [`Mutator::safepoint`] has something to do.
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.inner().poll.load(Ordering::Relaxed) != 0
    }

    /// Stands still if the world does.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    #[inline]
    pub unsafe fn safepoint(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().at_safepoint(self.inner());
    }

    /// Calls `blocks`, which may block: others need not wait for this thread meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self); `blocks` touches no object and calls nothing here.
    pub unsafe fn away<R>(&self, blocks: impl FnOnce() -> R) -> R {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
        let result = blocks();
        self.heap().world.enter(&self.inner().handshake);
        result
    }

    /// The first half of [`Mutator::away`], for callers that cannot pass a function. What the
    /// caller keeps in registers is not seen, if its stack is scanned: `hw_gc_leave` sees it.
    ///
    /// # Safety
    ///
    /// As [`Mutator::away`]. The frame that calls this is there until [`Mutator::enter`].
    #[inline(always)]
    pub unsafe fn leave(&self) {
        self.inner().stack.note();
        self.heap().world.leave(&self.inner().handshake);
    }

    /// It is back.
    ///
    /// # Safety
    ///
    /// Follows [`Mutator::leave`].
    pub unsafe fn enter(&self) {
        self.heap().world.enter(&self.inner().handshake);
    }

    /// Collects for about `budget` nanoseconds: sweeps, marks, and begins a cycle if one is due.
    /// Whether nothing is left to do.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    #[inline]
    pub unsafe fn step(&self, budget: u64) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().step(self.inner(), budget)
    }

    /// A collection from its beginning to its end.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    #[inline]
    pub unsafe fn collect(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().collect(self.inner());
    }

    /// A collection from its beginning to its end, after which objects lie close together, and pages
    /// without objects have been given back. What is pinned, or reported by value, has not moved, nor what
    /// lies in its page.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self), and those of who has objects moved.
    #[inline]
    pub unsafe fn compact(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().compact(self.inner());
    }

    /// From now on a collection is due that compacts as [`Mutator::compact`] does, but for giving back
    /// pages that others may use: steps begin it.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self), and those of who has objects moved.
    pub unsafe fn ask_compact(&self) {
        self.heap().moving.ask();
        self.ask();
    }

    /// From now on an object stays where it is, until it is unpinned as often. It is not kept. False: it
    /// is none of this heap.
    pub fn pin(&self, object: *mut u8) -> bool {
        self.heap().pin(object)
    }

    /// Ends a [`Mutator::pin`]. Before the object dies.
    ///
    /// # Safety
    ///
    /// The object was pinned more often than unpinned.
    pub unsafe fn unpin(&self, object: *mut u8) {
        self.heap().unpin(object);
    }

    /// The object is to have `size` bytes. Whether it has them where it is. If not, or if a smaller
    /// slot would do, it is moved to one that suits when its heap is compacted next, if it may be moved,
    /// and the runtime says the size again ([`Runtime::wanted`](Runtime#structfield.wanted)).
    ///
    /// # Safety
    ///
    /// `object` is one of this heap, and the caller's to change.
    pub unsafe fn resize(&self, object: *mut u8, size: usize) -> bool {
        self.heap().resize(object, size)
    }

    /// From now on a collection is due: steps begin one.
    pub fn ask(&self) {
        self.heap().pacing.ask();
    }

    /// Until [`Mutator::resume_majors`], collections are minor ones, as far as the heap has
    /// generations and memory: for requests, between which there is time for a major one. Nests, also
    /// with those of other mutators. Within the first such scope of a heap there may be a major one,
    /// if it was chosen before.
    pub fn defer_majors(&self) {
        self.heap().generations.defer_majors();
    }

    /// Ends a [`Mutator::defer_majors`].
    pub fn resume_majors(&self) {
        self.heap().generations.resume_majors();
    }

    /// Whether the next collection is to be a major one, and would be but for
    /// [`Mutator::defer_majors`].
    #[must_use]
    pub fn is_major_owed(&self) -> bool {
        self.heap().generations.is_major_owed()
    }

    /// Whether a collection is due or under way.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.heap().is_owed()
    }

    /// Until [`Mutator::resume`], allocation does no collecting of its own. Nests.
    pub fn defer(&self) {
        self.inner().deferred.add(1);
    }

    /// Ends a [`Mutator::defer`].
    pub fn resume(&self) {
        self.inner().deferred.sub(1);
    }

    /// The runtime has `bytes` more (or less) elsewhere, which go with objects of the heap.
    pub fn external(&self, bytes: isize) {
        self.heap().pacing.add_external(bytes);
        if bytes > 0 {
            self.inner().owe(bytes.unsigned_abs());
        }
    }

    /// When nothing leads to the object any more, `run` is to be called. False: there is no memory.
    ///
    /// # Safety
    ///
    /// `object` is one of this heap; the duties of the [module](self) hold for `run`, but it
    /// may allocate.
    pub unsafe fn finalize(&self, object: *mut u8, run: Finalizer, context: *mut c_void) -> bool {
        self.heap().finalizers.lock().add(Entry { object, run, context })
    }

    /// Forgets all finalizers of an object that are not due yet. Returns how many. Linear in the
    /// number of all that are registered.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    pub unsafe fn cancel_finalizers(&self, object: *mut u8) -> usize {
        self.heap().finalizers.lock().cancel(object)
    }

    /// Runs up to `most` finalizers that are due. Returns how many.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    pub unsafe fn run_finalizers(&self, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            // When it is no longer due, it is no root any more: a handle keeps the object while
            // its finalizer runs. Without one, none runs.
            let (handles, own) = (&self.heap().handles, &self.inner().handles);
            let Some(root) = handles.make(own, ptr::null_mut()) else { break };
            let next = self.heap().finalizers.lock().next();
            if let Some(next) = &next {
                // SAFETY: a cell of the heap, which is this one's.
                unsafe { &*root }.store(next.object, Ordering::Relaxed);
                // The finalizer has its address.
                let pinned = self.heap().pin(next.object);
                // SAFETY: registered with `finalize`, for a live object.
                unsafe { (next.run)(next.object.cast(), next.context) };
                if pinned {
                    self.heap().unpin(next.object);
                }
            }
            handles.free(own, root);
            if next.is_none() {
                break;
            }
            count += 1;
        }
        count
    }

    /// Calls `visit` for each object: address, bytes of its slot, kind. Stops when it says
    /// false; whether it never did. The world stands still meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self); `visit` calls nothing of the heap.
    pub unsafe fn walk(&self, visit: impl FnMut(*mut u8, usize, u32) -> bool) -> bool {
        self.heap().walk(self.inner(), visit)
    }

    /// Writes a heap dump, which `heapwright heap` reads: `sink` is given its pieces, one after
    /// the other, and says whether it took them. Whether the dump is whole. The world stands
    /// still meanwhile.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self); `sink` calls nothing of the heap.
    pub unsafe fn dump(&self, sink: impl FnMut(&[u8]) -> bool) -> bool {
        self.heap().dump(self.inner(), sink)
    }

    /// Looks at every object that roots lead to, and says what is wrong. Returns how many things are.
    ///
    /// # Safety
    ///
    /// The duties of the [module](self).
    pub unsafe fn verify(&self) -> usize {
        self.heap().verify_now(self.inner())
    }
}

/// Bytes of the slot of an object of any collected heap; 0 for anything else.
#[must_use]
pub fn object_size(object: *const u8) -> usize {
    use crate::address_map::{Kind, MAP};
    let (unit, entry) = MAP.lookup(object.addr());
    let Kind::Collected(page_list) = entry.kind() else { return 0 };
    let Some(heap) = heap::of(entry.owner()) else { return 0 };
    if page_list / super::layout::KINDS == LARGE {
        heap.large_size(unit)
    } else {
        heap.slot(page_list)
    }
}

/// Where the C interface finds what it shows of a mutator and a tracer: see `heapwright_gc.h`.
pub mod shown {
    use super::super::layout::PAGE_LISTS;
    use super::super::mutator::Mutator;
    use super::super::region::Region;
    use super::Tracer;
    use core::mem::offset_of;

    const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
        size_of::<F>()
    }

    macro_rules! place {
        ($of:ty, $field:ident) => {
            (offset_of!($of, $field), size_of_field(|of: &$of| &of.$field))
        };
    }

    /// Regions of a mutator: pools times kinds.
    pub const REGIONS: usize = PAGE_LISTS;
    /// Where poll, barrier, heap, regions, places and marks are in a mutator: offset and size.
    pub const MUTATOR: [(usize, usize); 6] = [
        place!(Mutator, poll),
        place!(Mutator, barrier),
        place!(Mutator, heap),
        place!(Mutator, regions),
        place!(Mutator, places),
        place!(Mutator, marks),
    ];
    /// Where next, end and by_slot are in a tracer.
    pub const TRACER: [(usize, usize); 3] =
        [place!(Tracer, next), place!(Tracer, end), place!(Tracer, by_slot)];
    /// The bit of a mutator's barrier that says that objects are being moved.
    pub const MOVING: u32 = super::MOVING;
    /// Where next, end, slot and page are in a region.
    pub const REGION: [(usize, usize); 4] =
        [place!(Region, next), place!(Region, end), place!(Region, slot), place!(Region, page)];
    /// The size of a region.
    pub const REGION_SIZE: usize = size_of::<Region>();
}

/// [`Mutator::leave`] for a mutator's head, of a caller whose registers are to be seen.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[unsafe(naked)]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    core::arch::naked_asm!(
        "mov [rdi + {registers}], rbx",
        "mov [rdi + {registers} + 8], rbp",
        "mov [rdi + {registers} + 16], r12",
        "mov [rdi + {registers} + 24], r13",
        "mov [rdi + {registers} + 32], r14",
        "mov [rdi + {registers} + 40], r15",
        "mov [rdi + {top}], rsp",
        "jmp {leave}",
        registers = const core::mem::offset_of!(mutator::Mutator, stack.registers),
        top = const core::mem::offset_of!(mutator::Mutator, stack.top),
        leave = sym leave_saved,
    )
}

/// [`Mutator::leave`] for a mutator's head, of a caller whose registers are to be seen.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(all(target_os = "linux", target_arch = "aarch64", not(miri)))]
#[unsafe(naked)]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    core::arch::naked_asm!(
        "mov x1, {registers}",
        "add x1, x0, x1",
        "stp x19, x20, [x1]",
        "stp x21, x22, [x1, 16]",
        "stp x23, x24, [x1, 32]",
        "stp x25, x26, [x1, 48]",
        "stp x27, x28, [x1, 64]",
        "stp x29, x30, [x1, 80]",
        "mov x2, sp",
        "mov x1, {top}",
        "add x1, x0, x1",
        "str x2, [x1]",
        "b {leave}",
        registers = const core::mem::offset_of!(mutator::Mutator, stack.registers),
        top = const core::mem::offset_of!(mutator::Mutator, stack.top),
        leave = sym leave_saved,
    )
}

/// [`Mutator::leave`] for a mutator's head. Registers are not seen here.
///
/// # Safety
///
/// As [`Mutator::leave`]; `mutator` is from [`Mutator::into_ptr`].
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
pub unsafe extern "C" fn save_and_leave(mutator: *mut c_void) {
    // SAFETY: a mutator of `into_ptr`'s, whose registers were just saved, as the caller promises.
    unsafe { leave_saved(mutator) };
}

/// # Safety
///
/// As [`save_and_leave`].
unsafe extern "C" fn leave_saved(mutator: *mut c_void) {
    // SAFETY: by the contract.
    let mutator = unsafe { Mutator::from_ptr(mutator) };
    // SAFETY: by the contract.
    let mutator = mutator.inner();
    // Not `leave`: what the caller saved is what is to be scanned.
    mutator.heap().world.leave(&mutator.handshake);
}
