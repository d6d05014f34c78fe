//! The mutator as a runtime sees it: attach, allocate, detach.
//!
//! ```text
//!   Mutator --> slot of the registry of mutators, never freed; a pointer to its value is the C
//!               handle, whose first fields the C header reads (see `shown`)
//! ```

use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr;

use heapwright_substrate::ids::Slot;

use super::super::KIND_MASK;
use super::super::heap::Heap;
use super::super::mutator as inner;

/// A thread's access to a heap.
pub struct Mutator {
    slot: &'static Slot<inner::Mutator>,
    /// Makes the type neither `Send` nor `Sync`: one thread at a time uses a mutator.
    one: PhantomData<*mut ()>,
}

impl Mutator {
    #[inline]
    pub(super) fn new(slot: &'static Slot<inner::Mutator>) -> Self {
        Self { slot, one: PhantomData }
    }

    pub(in super::super) fn inner(&self) -> &'static inner::Mutator {
        &self.slot.value
    }

    pub(super) fn heap(&self) -> &'static Heap {
        self.inner().heap()
    }

    /// Returns the mutator's C handle.
    #[must_use]
    pub fn into_ptr(self) -> *mut c_void {
        ptr::from_ref(self.slot).wrapping_byte_add(Slot::<inner::Mutator>::VALUE).cast_mut().cast()
    }

    /// The mutator's heap, as a handle for C.
    #[must_use]
    pub fn heap_ptr(&self) -> *mut c_void {
        ptr::from_ref(self.heap()).cast_mut().cast()
    }

    /// The mutator of a C handle.
    ///
    /// # Safety
    ///
    /// `at` is from [`Mutator::into_ptr`], and its mutator was not detached.
    #[must_use]
    #[inline]
    pub unsafe fn from_ptr(at: *mut c_void) -> Self {
        let value = at.cast::<inner::Mutator>();
        // SAFETY: by the contract; the value is in a slot that is never freed.
        let slot = unsafe { Slot::containing(value) };
        // SAFETY: the mutator's value lies in this slot, which is never freed.
        Self::new(unsafe { &*slot })
    }

    /// Makes the calling thread the mutator's thread. Only one thread at a time uses a mutator.
    #[inline]
    pub fn note_thread(&self) {
        self.inner().note_thread();
    }

    /// Detaches the calling thread, and ends the mutator.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    pub unsafe fn detach(self) {
        inner::Mutator::detach(self.slot);
    }

    /// Returns memory for an object of `size` bytes, zeroed if the object is traced and the heap is
    /// not [`uncleared`](super::Options#structfield.uncleared). Returns null if there is no memory
    /// under the limit, even after a collection, and the runtime's handler gave up
    /// ([`Runtime::out_of_memory`](super::Runtime#structfield.out_of_memory)). For an unknown kind
    /// the result is null, but a verified heap ends the program.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super). `kind` is `TRACED` or `LEAF`, and `FREED` or not, and
    /// `USER` or not.
    #[inline]
    #[must_use]
    pub unsafe fn alloc(&self, size: usize, kind: u32) -> *mut u8 {
        if kind > KIND_MASK {
            return self.unknown_kind();
        }
        let object = self.inner().alloc(size, kind as usize);
        if object.is_null() {
            return self.out_of_memory(size, kind);
        }
        object
    }

    #[cold]
    fn unknown_kind(&self) -> *mut u8 {
        if self.heap().space.is_verified() {
            Heap::refuse("a collected heap was asked for an object of an unknown kind");
        }
        ptr::null_mut()
    }

    /// Calls the runtime's handler until there is memory or it gives up. The frames from here up to
    /// the runtime's call own no resource, so the handler may jump out.
    #[cold]
    #[inline(never)]
    fn out_of_memory(&self, size: usize, kind: u32) -> *mut u8 {
        let me = ptr::from_ref(self.inner()).cast_mut().cast();
        while self.heap().runtime().out_of_memory(me, size, kind) {
            let object = self.inner().alloc(size, kind as usize);
            if !object.is_null() {
                return object;
            }
        }
        ptr::null_mut()
    }

    /// The runtime's word, set by [`Mutator::set_data`]; null at first. Takes no lock.
    #[inline]
    #[must_use]
    pub fn data(&self) -> *mut c_void {
        self.inner().data.get()
    }

    /// Sets the runtime's word, which the heap does not read.
    #[inline]
    pub fn set_data(&self, data: *mut c_void) {
        self.inner().data.set(data);
    }

    /// Requests `size` bytes for the object. Returns whether its slot has them. If not, or if a
    /// smaller slot suffices, the next compaction moves the object to a slot that fits. For that,
    /// the object must be movable, and the runtime must return the size again
    /// ([`Runtime::wanted`](super::Runtime#structfield.wanted)).
    ///
    /// # Safety
    ///
    /// `object` is of this heap, and the caller may change it.
    pub unsafe fn resize(&self, object: *mut u8, size: usize) -> bool {
        self.heap().space.resize(object, size, self.heap().page_limit())
    }

    /// Pays for `bytes` that [`Heap::account`](super::Heap::account) has added, as an allocation of
    /// that many bytes would. The heap sweeps, begins a collection if one is due, or marks.
    ///
    /// ```
    /// # use heapwright::gc::raw::{Heap, Options, Runtime};
    /// # let heap = Heap::new(Options { incremental: true, ..Options::new() }, Runtime::new()).expect("memory");
    /// # let mutator = heap.attach().expect("memory");
    /// for _ in 0..1000 {
    ///     heap.account(64 << 10);
    ///     // SAFETY: no object is wanted.
    ///     unsafe { mutator.pay(64 << 10) };
    /// }
    /// assert!(heap.statistics().cycles > 0);
    /// # // SAFETY: it has no objects.
    /// # unsafe { mutator.detach() };
    /// ```
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn pay(&self, bytes: usize) {
        let inner = self.inner();
        let _noted = inner.stack.enter();
        let heap = self.heap();
        heap.at_safepoint(inner);
        heap.pay(inner, bytes);
    }

    /// Adds `bytes` (or subtracts, if negative) to the memory that objects keep elsewhere.
    pub fn external(&self, bytes: isize) {
        self.heap().space.pacing.add_external(bytes);
        if bytes > 0 {
            self.inner().owe(bytes.unsigned_abs());
        }
    }
}
