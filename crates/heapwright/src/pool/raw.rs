//! The raw pool: slots of one size, known when the program runs.
//!
//! ```text
//!   alloc:   front  -->  frontier  -->  sets refill the front  -->  another segment
//!   free:    front  -->  (full) its older half into the sets
//! ```
//!
//! The first step of either operation is inline, and the others are out of line. Each fresh slot
//! takes the step to the frontier. The later steps run at most about once in 64 operations.
//!
//! Checked builds (feature `checked`) look each slot up at each operation; see `checked`.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::front::Front;
use super::layout::Shape;
use super::store::{Called, Config, Store, Walk};
use super::{Reset, Stats, checked};

/// A pool of raw slots of one size and alignment.
///
/// It is the base of [`Pool`](super::Pool). It also serves C, and sizes that are known only at run
/// time. A pool serves one thread at a time. Slots do not move. Freed slots are used again: the
/// slot freed last comes first, and older slots come in address order.
///
/// Dropping the pool releases all memory, slots in use included, without dropping their contents.
///
/// The idea is that of Zig's `MemoryPool`, with fresh slots in a row instead of on a list.
///
/// ```
/// use core::alloc::Layout;
/// use heapwright::pool::RawPool;
///
/// let mut pool = RawPool::new(Layout::new::<[u64; 4]>());
/// let slot = pool.alloc();
/// assert!(!slot.is_null() && pool.contains(slot));
/// // SAFETY: the slot is this pool's, and not used any more.
/// unsafe { pool.free(slot) };
/// assert_eq!(pool.alloc(), slot);
/// ```
pub struct RawPool {
    front: Front,
    store: Store,
}

// SAFETY: no part belongs to a thread; the pointers lead to memory that is the pool's alone.
unsafe impl Send for RawPool {}

impl RawPool {
    /// Creates an empty pool of slots for `layout`. Takes no memory yet.
    ///
    /// # Panics
    ///
    /// If the size is above one tebibyte, or the alignment above 4 GiB.
    #[must_use]
    pub const fn new(layout: Layout) -> Self {
        Self::builder(layout).build()
    }

    /// Creates a builder for a pool with a chosen name, limit and kind of pages.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// use heapwright::pool::RawPool;
    ///
    /// let layout = Layout::new::<u64>();
    /// let mut pool = RawPool::builder(layout).name("ids").limit(2).build();
    /// assert!(!pool.alloc().is_null() && !pool.alloc().is_null());
    /// assert!(pool.alloc().is_null());
    /// ```
    #[must_use]
    pub const fn builder(layout: Layout) -> RawBuilder {
        RawBuilder { layout, config: Config::of(Called::Name("raw")) }
    }

    pub(super) const fn with(layout: Layout, config: Config) -> Self {
        let shape = Shape::of_objects(layout.size(), layout.align());
        Self { front: Front::EMPTY, store: Store::new(shape, config) }
    }

    /// Returns an uninitialised slot, or null if there is no memory or the limit is reached. O(1),
    /// except for system calls when the pool grows.
    #[inline]
    #[must_use]
    pub fn alloc(&mut self) -> *mut u8 {
        match self.pop() {
            Some(slot) => slot.as_ptr(),
            None => self.alloc_slow(),
        }
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        if cfg!(feature = "checked") { None } else { self.front.pop() }
    }

    #[inline(never)]
    pub(super) fn alloc_slow(&mut self) -> *mut u8 {
        if cfg!(feature = "checked") {
            return checked::alloc(&mut self.store);
        }
        let slot = self.store.fresh();
        if slot.is_null() { self.alloc_cold() } else { slot }
    }

    #[cold]
    #[inline(never)]
    fn alloc_cold(&mut self) -> *mut u8 {
        if self.store.has_returned() {
            return self.front.refill(&mut self.store);
        }
        self.store.fresh_or_grow()
    }

    /// Frees a slot. O(1) amortised.
    ///
    /// A slot of another pool, or a slot that was freed twice, ends the process with one line.
    /// Plain builds check this when the front overflows, checked builds at each free.
    ///
    /// # Safety
    ///
    /// The slot belongs to this pool and is in use, and no code uses it afterwards.
    #[inline(always)]
    pub unsafe fn free(&mut self, slot: *mut u8) {
        if cfg!(feature = "checked") {
            // SAFETY: the caller promises a slot of this pool, in use, and not used afterwards.
            return unsafe { checked::free(&mut self.store, slot) };
        }
        // SAFETY: the caller promises a slot of this pool, in use, and not used afterwards.
        if !unsafe { self.front.push(slot) } {
            // SAFETY: the caller promises a slot of this pool, in use, and not used afterwards.
            unsafe { self.free_cold(slot) };
        }
    }

    /// Frees a slot when the front is full.
    ///
    /// # Safety
    ///
    /// As [`RawPool::free`].
    #[cold]
    #[inline(never)]
    unsafe fn free_cold(&mut self, slot: *mut u8) {
        // SAFETY: the caller promises that the slot is this pool's and not used afterwards.
        unsafe { self.front.overflow(&mut self.store, slot) };
    }

    /// Moves all free slots into the store's sets.
    pub(super) fn settle(&mut self) -> &mut Store {
        self.front.empty(&mut self.store);
        &mut self.store
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the number of slots in use. O(segments), at most 33.
    #[must_use]
    pub fn len(&mut self) -> usize {
        self.store.out() - self.front.len()
    }

    /// Returns whether no slot is in use.
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots that the pool has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }

    /// Returns the distance of slots: the size, at least 1, rounded up to the alignment.
    #[must_use]
    pub fn slot_size(&self) -> usize {
        self.store.shape().size()
    }

    /// Returns whether an address lies in this pool's memory. Any address is allowed. O(1).
    #[inline]
    #[must_use]
    pub fn contains(&self, address: *const u8) -> bool {
        self.store.segment_of(address.addr()).is_some()
    }

    /// Returns the index of the slot that begins at an address, if it was ever handed out. O(1).
    #[must_use]
    pub fn index_of(&mut self, slot: *const u8) -> Option<u32> {
        self.store.sync();
        let (segment, slot) = self.store.position(slot.addr())?;
        Some(self.store.index_of(segment, slot))
    }

    /// Returns the slot with an index, if the pool has memory there. O(1).
    #[must_use]
    pub fn slot_of(&self, index: u32) -> Option<*mut u8> {
        let (segment, slot) = self.store.shape().place(index);
        let found = self.store.segments().get(segment)?;
        (slot < found.slots()).then(|| found.slot(self.store.shape(), slot))
    }

    /// Reserves memory for `count` more slots. `touch` also makes its pages resident now. Fresh
    /// slots lie in address order. Returns false if there is no memory or the limit is reached.
    pub fn preheat(&mut self, count: usize, touch: bool) -> bool {
        self.store.preheat(count.saturating_sub(self.front.len()), touch)
    }

    /// Frees every slot and keeps as much memory as `how` says.
    pub fn reset(&mut self, how: Reset) {
        self.settle().reset(how);
    }

    /// Gives every page without a slot in use back to the kernel now. Returns the number of bytes.
    /// O(slots that were handed out / 64).
    pub fn trim(&mut self) -> usize {
        self.settle().trim()
    }

    /// Returns statistics of the pool.
    #[must_use]
    pub fn stats(&mut self) -> Stats {
        let held = self.front.len();
        let mut stats = self.store.stats();
        stats.live -= held;
        stats
    }

    /// Calls `visit` with every slot in use, in address order, until it returns false. Returns true
    /// if the walk reached the end.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// use heapwright::pool::RawPool;
    /// let mut pool = RawPool::new(Layout::new::<u64>());
    /// let slots = [pool.alloc(), pool.alloc()];
    /// let mut seen = Vec::new();
    /// assert!(pool.walk(|slot| { seen.push(slot); true }));
    /// assert_eq!(seen, slots);
    /// ```
    pub fn walk(&mut self, mut visit: impl FnMut(*mut u8) -> bool) -> bool {
        let mut walk = Walk::default();
        self.settle();
        while let Some((segment, slot)) = self.store.next_out(&mut walk) {
            if !visit(self.store.slot(segment, slot)) {
                return false;
            }
        }
        true
    }
}

impl Drop for RawPool {
    fn drop(&mut self) {
        self.settle();
        if cfg!(feature = "checked") {
            checked::at_end(&self.store);
        }
        self.store.end();
    }
}

/// Settings of a new [`RawPool`].
pub struct RawBuilder {
    layout: Layout,
    config: Config,
}

super::builder_choices!(RawBuilder);

impl RawBuilder {
    /// Makes the pool, which is empty.
    ///
    /// # Panics
    ///
    /// As [`RawPool::new`].
    #[must_use]
    pub const fn build(self) -> RawPool {
        RawPool::with(self.layout, self.config)
    }
}
