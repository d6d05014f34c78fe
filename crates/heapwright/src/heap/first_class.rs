//! First-class heaps: a heap of one's own, given back all at once.
//!
//! A heap is a cache with a lock in place of a thread. Any thread may use any
//! heap; users take turns. A block may be freed through its heap or through
//! plain `free`, from any thread: the block's record says whose it is.
//! Destroying a heap gives every block back without visiting one, in time
//! proportional to its slabs and large blocks.
//!
//! Destroyed heaps' caches are recycled by the next heap, ids included.

use core::ptr;

use crate::address_map::MAP;
use crate::cache::{CACHES, Cache};
use crate::registry::exclusive::Member;
use crate::remote::Block;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::start::{self, Mine};
use super::{door, large, sampling};
use crate::request::{Origin, Request};

/// A heap of one's own. Used by address; see [`Heap::create`].
#[repr(transparent)]
pub struct Heap(Cache);

struct Vacant(*mut Cache);

// SAFETY: leads to caches, which any thread may reach.
unsafe impl Send for Vacant {}

static VACANT: Lock<Vacant> = Lock::new(Vacant(ptr::null_mut()));
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// First-class heaps that exist now.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

impl Heap {
    /// Makes an empty heap. Null where there is no memory.
    ///
    /// ```
    /// use heapwright::heap::Heap;
    /// let heap = Heap::create();
    /// assert!(!heap.is_null());
    /// // SAFETY: the heap exists.
    /// let block = unsafe { Heap::alloc(heap, 100, 16, true) };
    /// assert!(!block.is_null());
    /// // SAFETY: the heap exists; none of its blocks is used any more.
    /// unsafe { Heap::destroy(heap) };
    /// ```
    #[must_use]
    pub fn create() -> *mut Self {
        if matches!(start::mine(), Mine::Nothing) {
            return ptr::null_mut();
        }
        let mut vacant = VACANT.lock();
        // SAFETY: null, or a cache, which is never freed.
        let cache = match unsafe { vacant.0.as_ref() } {
            Some(cache) => {
                vacant.0 = cache.abandoned().load(Ordering::Relaxed);
                Some(cache)
            }
            None => CACHES.make_new(Cache::become_heap),
        };
        drop(vacant);
        let Some(cache) = cache else { return ptr::null_mut() };
        LIVE.fetch_add(1, Ordering::Relaxed);
        ptr::from_ref(cache).cast_mut().cast()
    }

    /// Allocates a block in the heap. Null where there is no memory, or `align`
    /// is no power of two.
    ///
    /// # Safety
    ///
    /// The heap exists.
    #[must_use]
    pub unsafe fn alloc(heap: *mut Self, size: usize, align: usize, zeroed: bool) -> *mut u8 {
        if size > isize::MAX as usize || !align.is_power_of_two() || align > isize::MAX as usize {
            return ptr::null_mut();
        }
        // SAFETY: by the contract the heap exists; it is a cache.
        let cache = unsafe { &(*heap).0 };
        let request = Request { size, align, zero: zeroed, origin: Origin::Malloc };
        let order = cache.lock.lock();
        let block = door::allocate_from(cache, request);
        drop(order);
        sampling::note_made(block, request);
        block
    }

    /// Frees a block of the heap; null does nothing. A block of another heap
    /// ends the process with one line that says so.
    ///
    /// # Safety
    ///
    /// The heap exists; the block is in use, and nobody uses it afterwards.
    pub unsafe fn free(heap: *mut Self, block: *mut u8) {
        // SAFETY: by the contract the heap exists; caches are never freed.
        let cache: &'static Cache = unsafe { &*heap.cast::<Cache>() };
        // SAFETY: the block is in use, and nobody uses it afterwards, as the caller promises.
        unsafe { door::free_of_heap(cache, block) };
    }

    /// Gives the heap and all its blocks back. Null does nothing.
    ///
    /// # Safety
    ///
    /// The heap exists, and nobody uses it or a block of it afterwards.
    pub unsafe fn destroy(heap: *mut Self) {
        // SAFETY: null, or by the contract a heap, whose cache is never freed.
        let Some(cache) = (unsafe { heap.cast::<Cache>().as_ref() }) else { return };
        sampling::note_destroyed(cache.id());
        let order = cache.lock.lock();
        while let Some(unit) = cache.large.first() {
            cache.large.remove(&MAP, unit);
            let was_there = large::free(unit, |_, _| false);
            debug_assert!(was_there);
        }
        cache.give_all_slabs();
        drop(order);
        let mut vacant = VACANT.lock();
        cache.abandoned().store(vacant.0, Ordering::Relaxed);
        vacant.0 = ptr::from_ref(cache).cast_mut();
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Frees a slot of a heap's slab, from any thread.
///
/// # Safety
///
/// The block is of `class`, of a slab of `heap`, and in use.
pub(super) unsafe fn free_slot(heap: &Cache, class: usize, block: *mut Block) {
    let _order = heap.lock.lock();
    // SAFETY: the block is of this class and heap, which the lock makes us the owner of.
    unsafe { heap.free(class, block) };
}

/// Holds the locks across a fork.
pub(super) fn before_fork() {
    VACANT.acquire();
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    // SAFETY: by the contract this thread (or the one it is a copy of) holds it.
    unsafe { VACANT.release() };
}
