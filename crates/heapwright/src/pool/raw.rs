//! The raw pool: slots of one size, known when the program runs.
//!
//! ```text
//!   alloc:   front  -->  frontier  -->  sets refill the front  -->  another segment
//!   free:    front  -->  (full) its older half into the sets
//! ```
//!
//! The first step of each is inline: a handful of instructions. All that follows
//! is out of line and pays for sixty-four operations at a time.
//!
//! In checked builds (feature `checked`) each operation also looks its slot up:
//! a slot is given back once, to its own pool, and not written to afterwards.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::front::Front;
use super::layout::Shape;
use super::store::{Called, Config, Store, Walk};
use super::{Reset, Stats, checked};

/// Slots of one size and alignment, raw.
///
/// What [`Pool`](super::Pool) is made of, for callers that learn the size only when
/// they run, and for C. One thread at a time. Slots stay where they are; memory
/// that is given back to the pool is used again, the last first, and after many
/// others in order of their addresses.
///
/// Dropping the pool gives all its memory back, slots in use included: it knows
/// nothing of what is in them.
///
/// After Zig's `MemoryPool`, with fresh slots in a row instead of on a list.
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

// SAFETY: nothing in it belongs to a thread; the pointers lead to memory that is
// the pool's alone.
unsafe impl Send for RawPool {}

impl RawPool {
    /// An empty pool of slots for `layout`. Takes no memory yet.
    ///
    /// # Panics
    ///
    /// Where the layout is of more than a tebibyte, or aligned to more than 4 GiB.
    #[must_use]
    pub const fn new(layout: Layout) -> Self {
        Self::builder(layout).build()
    }

    /// An empty pool whose name, limit and kind of pages can be chosen.
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

    /// A slot, uninitialised; null where there is no memory or the limit is
    /// reached. O(1), but for the system calls of growth.
    #[inline]
    #[must_use]
    pub fn alloc(&mut self) -> *mut u8 {
        match self.pop() {
            Some(slot) => slot.as_ptr(),
            None => self.alloc_slow(),
        }
    }

    /// A slot that is at hand: the part of [`RawPool::alloc`] that is worth
    /// having inline.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        if cfg!(feature = "checked") { None } else { self.front.pop() }
    }

    /// The rest of [`RawPool::alloc`].
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

    /// Gives a slot back. O(1).
    ///
    /// Where the pool looks closer (when its front overflows, and always in checked
    /// builds), a slot of another pool, or one that is free already, ends the
    /// process with one line that says whose it is.
    ///
    /// # Safety
    ///
    /// The slot is of this pool, in use, and nobody uses it afterwards.
    #[inline(always)]
    pub unsafe fn free(&mut self, slot: *mut u8) {
        if cfg!(feature = "checked") {
            // SAFETY: a slot of this pool, in use, that nobody uses afterwards, as the caller
            // promises.
            return unsafe { checked::free(&mut self.store, slot) };
        }
        // SAFETY: a slot of this pool, in use, that nobody uses afterwards, as the caller
        // promises.
        if !unsafe { self.front.push(slot) } {
            // SAFETY: a slot of this pool, in use, that nobody uses afterwards, as the caller
            // promises.
            unsafe { self.free_cold(slot) };
        }
    }

    /// # Safety
    ///
    /// As [`RawPool::free`].
    #[cold]
    #[inline(never)]
    unsafe fn free_cold(&mut self, slot: *mut u8) {
        // SAFETY: the slot is this pool's, and nobody uses it any more, as the caller promises.
        unsafe { self.front.overflow(&mut self.store, slot) };
    }

    /// Puts everything free into the store's sets.
    pub(super) fn settle(&mut self) -> &mut Store {
        self.front.empty(&mut self.store);
        &mut self.store
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Slots in use.
    #[must_use]
    pub fn len(&mut self) -> usize {
        self.store.out() - self.front.len()
    }

    /// Whether no slot is in use.
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Slots it has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }

    /// Bytes from one slot to the next: the size asked for, rounded up to the
    /// alignment, and at least 1.
    #[must_use]
    pub fn slot_size(&self) -> usize {
        self.store.shape().size()
    }

    /// Whether an address lies in this pool's memory, in a slot that is in use or
    /// not. O(1); any address may be asked about.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: *const u8) -> bool {
        self.store.segment_of(address.addr()).is_some()
    }

    /// The index of the slot that begins at an address, if one does that was
    /// handed out. O(1).
    #[must_use]
    pub fn index_of(&mut self, slot: *const u8) -> Option<u32> {
        self.store.sync();
        let (segment, slot) = self.store.position(slot.addr())?;
        Some(self.store.index_of(segment, slot))
    }

    /// The slot with an index, if the pool has memory there. O(1).
    #[must_use]
    pub fn slot_of(&self, index: u32) -> Option<*mut u8> {
        let (segment, slot) = self.store.shape().place(index);
        let found = self.store.segments().get(segment)?;
        (slot < found.slots()).then(|| found.slot(self.store.shape(), slot))
    }

    /// Makes sure that `count` slots can be handed out without asking for memory,
    /// fresh ones in order of their addresses; puts pages behind them now if
    /// `touch`. False: no memory, or the limit is reached.
    pub fn preheat(&mut self, count: usize, touch: bool) -> bool {
        self.store.preheat(count.saturating_sub(self.front.len()), touch)
    }

    /// Takes every slot back, and keeps as much memory as `how` says.
    pub fn reset(&mut self, how: Reset) {
        self.settle().reset(how);
    }

    /// Gives every page that holds no slot in use to the kernel, now. Returns
    /// bytes. O(slots that were handed out / 64).
    pub fn trim(&mut self) -> usize {
        self.settle().trim()
    }

    /// What there is.
    #[must_use]
    pub fn stats(&mut self) -> Stats {
        let held = self.front.len();
        let mut stats = self.store.stats();
        stats.live -= held;
        stats
    }

    /// Calls `visit` with every slot in use, in order of their addresses, until it
    /// returns false. Returns whether the walk came to the end.
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

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
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

/// Chooses how a [`RawPool`] is made.
pub struct RawBuilder {
    layout: Layout,
    config: Config,
}

super::builder_choices!(RawBuilder);

impl RawBuilder {
    /// The pool, empty.
    ///
    /// # Panics
    ///
    /// As [`RawPool::new`].
    #[must_use]
    pub const fn build(self) -> RawPool {
        RawPool::with(self.layout, self.config)
    }
}
