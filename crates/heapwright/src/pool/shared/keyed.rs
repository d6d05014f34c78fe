//! Objects of a shared pool by key: found without a lock, kept by references.
//!
//! ```text
//!   key --index--> segment --> its leases --> lease --acquire--> a reference
//!                          \-> its first slot --> the object
//! ```
//!
//! A keyed object lies in a slot like any other object. A word far from the object, its *lease*,
//! holds the object's generation and counts the references to the object (`leases`). Only the first
//! key of a segment takes the pool's lock, to make the segment's leases.
//!
//! Invariants: leases stay until the pool's end, even after their segment is released. While a
//! lease holds an object, the segment stays, and `base` is the segment's first slot. The store
//! never makes one segment of all slots (`in_one`), so the store and `slots` find the same slot and
//! lease for an index.
//!
//! Called by users. `slots` holds the addresses of the segments.

use core::fmt;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::super::Refused;
use super::super::handle;
use super::super::keys::{Key, RawKey};
use super::super::layout::{SEGMENTS, Shape};
use super::SharedPool;
use super::slots::Slots;
use crate::address_map::{Kind, MAP};
use crate::leases::{Lease, Retired};
use crate::sync::atomic::{AtomicPtr, Ordering};

struct Segment {
    /// The first slot. Null until an object gets a key.
    base: AtomicPtr<u8>,
    /// Null until an object gets a key.
    leases: AtomicPtr<Lease>,
}

pub(super) struct Keyed([Segment; SEGMENTS]);

impl Keyed {
    pub(super) const fn new() -> Self {
        Self(
            [const {
                Segment {
                    base: AtomicPtr::new(ptr::null_mut()),
                    leases: AtomicPtr::new(ptr::null_mut()),
                }
            }; SEGMENTS],
        )
    }
}

/// Returns the index of a slot of a segment, for a key. `None` if the null key has this index.
fn key_index(shape: &Shape, segment: usize, slot: usize) -> Option<u32> {
    let index = u32::try_from(shape.first_index(segment) + slot as u64).ok()?;
    (index != RawKey::NULL.index()).then_some(index)
}

impl Slots {
    /// Returns the index of a slot that the caller took, and its lease. `None` if there is no
    /// memory for leases, or the slot has the null key's index.
    fn lease_of(&self, slot: NonNull<u8>) -> Option<(u32, &Lease)> {
        let address = slot.addr().get();
        let (unit, entry) = MAP.lookup(address);
        let head = if let Kind::PoolRest(head) = entry.kind() { head } else { unit };
        let record = MAP.record(head);
        let number = record.heap.load(Ordering::Relaxed) as usize;
        let colour = record.requested.load(Ordering::Relaxed);
        let base = MAP.address_of(head).wrapping_add(colour);
        let at = self.shape().slot_at(address.wrapping_sub(base.addr()))?;
        let segment = self.keyed.0.get(number)?;
        if segment.base.load(Ordering::Relaxed) != base {
            segment.base.store(base, Ordering::Relaxed);
        }
        let mut leases = segment.leases.load(Ordering::Acquire);
        if leases.is_null() {
            let mut store = self.store.made()?.lock();
            debug_assert_eq!(store.shape(), self.shape(), "indexes mean the same to both");
            leases = store.want_leases(number)?;
            segment.leases.store(leases, Ordering::Release);
        }
        let index = key_index(self.shape(), number, at)?;
        // SAFETY: the segment's leases stay until the pool's end. There is one lease for each index
        // of the segment in the store's shape. This shape is the same, and `at` is such an index.
        Some((index, unsafe { &*leases.wrapping_add(at) }))
    }

    /// Returns the lease of an index, its segment, and the number of its slot in the segment.
    #[inline(always)]
    fn lease_at(&self, index: u32) -> Option<(&Lease, &Segment, usize)> {
        let (number, at) = self.shape().place(index);
        let segment = self.keyed.0.get(number)?;
        let leases = segment.leases.load(Ordering::Acquire);
        if leases.is_null() {
            return None;
        }
        // SAFETY: the segment's leases stay until the pool's end. There is one lease for each index
        // of the segment in the store's shape. `place` used the same shape.
        Some((unsafe { &*leases.wrapping_add(at) }, segment, at))
    }

    /// Returns slot `at` of a segment. The slot's lease must hold an object that cannot end now.
    #[inline(always)]
    fn slot_at(&self, segment: &Segment, at: usize) -> *mut u8 {
        segment.base.load(Ordering::Relaxed).wrapping_add(at * self.shape().size())
    }
}

impl<T> SharedPool<T> {
    /// Makes an object with a key. O(1) amortised. See [`SharedPool::create`].
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// static USERS: SharedPool<String> = SharedPool::new();
    /// let key = USERS.insert(String::from("Ann"));
    /// let other = std::thread::spawn(move || USERS.get(key).map(|name| name.len()));
    /// assert_eq!(other.join().unwrap(), Some(3));
    /// assert!(USERS.remove(key) && !USERS.contains_key(key));
    /// ```
    #[inline]
    pub fn insert(&self, value: T) -> Key<T> {
        match self.try_insert(value) {
            Ok(key) => key,
            Err(_) => self.no_room(),
        }
    }

    /// Makes an object with a key. O(1) amortised.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no memory or the limit is reached.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<Key<T>, Refused<T>> {
        let Some(slot) = self.slots.alloc() else { return Err(Refused(value)) };
        let Some((index, lease)) = self.slots.lease_of(slot) else {
            // SAFETY: the slot was just taken, and nothing is in it.
            unsafe { self.slots.free(slot) };
            return Err(Refused(value));
        };
        // SAFETY: the slot has the type's size and alignment, and no other code has it.
        unsafe { slot.cast::<T>().write(value) };
        Ok(RawKey::of(index, lease.begin()).into())
    }

    /// Returns whether a key's object is alive. Other threads may end it. O(1), without a lock.
    #[must_use]
    pub fn contains_key(&self, key: Key<T>) -> bool {
        let raw = RawKey::from(key);
        self.slots.lease_at(raw.index()).is_some_and(|(lease, ..)| lease.is(raw.generation()))
    }

    /// Removes a key's object. The key is stale at once. The object is dropped now, or with the
    /// last reference. False if the key was stale. O(1), usually without a lock.
    pub fn remove(&self, key: Key<T>) -> bool {
        let raw = RawKey::from(key);
        let Some((lease, segment, at)) = self.slots.lease_at(raw.index()) else { return false };
        let retired = lease.retire(raw.generation(), false);
        if retired == Retired::Last
            && let Some(object) = NonNull::new(self.slots.slot_at(segment, at).cast::<T>())
        {
            lease.end();
            // SAFETY: the object was live, and the lease says that this thread alone has it.
            unsafe { handle::destroy(&self.slots, object) };
        }
        retired != Retired::Stale
    }

    /// Removes and returns the object of a key. The key becomes stale. `None` if the key was stale,
    /// or if there are references to the object. Then the object stays. O(1).
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let pool = SharedPool::new();
    /// let key = pool.insert(5);
    /// let five = pool.get(key);
    /// assert_eq!(pool.take(key), None);
    /// drop(five);
    /// assert_eq!((pool.take(key), pool.take(key)), (Some(5), None));
    /// ```
    pub fn take(&self, key: Key<T>) -> Option<T> {
        let raw = RawKey::from(key);
        let (lease, segment, at) = self.slots.lease_at(raw.index())?;
        if lease.retire(raw.generation(), true) != Retired::Last {
            return None;
        }
        let object = NonNull::new(self.slots.slot_at(segment, at).cast::<T>())?;
        lease.end();
        // SAFETY: the object was live, and the lease says that this thread alone has it.
        Some(unsafe { handle::take_out(&self.slots, object) })
    }
}

impl<T: Sync> SharedPool<T> {
    /// Returns a reference that keeps a key's object alive. `None` if the key is stale. O(1),
    /// without a lock. Takes an atomic exchange now, and an atomic addition at the reference's end.
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let pool = SharedPool::new();
    /// let key = pool.insert(String::from("kept"));
    /// let kept = pool.get(key).unwrap();
    /// assert!(pool.remove(key) && pool.get(key).is_none());
    /// assert_eq!((&**kept, pool.len()), ("kept", 1));
    /// drop(kept);
    /// assert_eq!(pool.len(), 0);
    /// ```
    ///
    /// A reference outlives neither its pool nor a reset:
    ///
    /// ```compile_fail,E0597
    /// use heapwright::pool::{SharedPool, SharedRef};
    /// let one: Option<SharedRef<'_, u32>>;
    /// {
    ///     let pool: SharedPool<u32> = SharedPool::new();
    ///     let key = pool.insert(1);
    ///     one = pool.get(key);
    /// }
    /// assert_eq!(one.as_deref(), Some(&1));
    /// ```
    ///
    /// ```compile_fail,E0502
    /// use heapwright::pool::{Reset, SharedPool};
    /// let mut pool: SharedPool<u32> = SharedPool::new();
    /// let key = pool.insert(1);
    /// let one = pool.get(key);
    /// pool.reset(Reset::FreeAll);
    /// assert_eq!(one.as_deref(), Some(&1));
    /// ```
    ///
    /// Objects that threads must not share cannot be looked up:
    ///
    /// ```compile_fail,E0277
    /// use core::cell::Cell;
    /// use heapwright::pool::SharedPool;
    /// let pool: SharedPool<Cell<u32>> = SharedPool::new();
    /// let key = pool.insert(Cell::new(1));
    /// let _ = pool.get(key);
    /// ```
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<T>) -> Option<SharedRef<'_, T>> {
        let raw = RawKey::from(key);
        let (lease, segment, at) = self.slots.lease_at(raw.index())?;
        if !lease.acquire(raw.generation()) {
            return None;
        }
        let object = NonNull::new(self.slots.slot_at(segment, at).cast())?;
        Some(SharedRef { object, lease, pool: self })
    }
}

/// A reference that keeps an object alive, from [`SharedPool::get`].
pub struct SharedRef<'p, T> {
    object: NonNull<T>,
    lease: &'p Lease,
    pool: &'p SharedPool<T>,
}

// SAFETY: another thread gets shared references (`T: Sync`) and may drop the object (`T: Send`).
unsafe impl<T: Send + Sync> Send for SharedRef<'_, T> {}
// SAFETY: a shared `SharedRef` gives only shared references to the object (`T: Sync`).
unsafe impl<T: Sync> Sync for SharedRef<'_, T> {}

impl<T> Deref for SharedRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lease keeps the object, and nothing gives mutable references meanwhile.
        unsafe { self.object.as_ref() }
    }
}

impl<T> Drop for SharedRef<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.lease.release() {
            self.lease.end();
            // SAFETY: the object was live, and the lease says that this thread alone has it.
            unsafe { handle::destroy(&self.pool.slots, self.object) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_the_null_index() {
        let shape = Shape::of_objects(1, 1);
        let (segment, slot) = shape.place(u32::MAX);
        assert_eq!(key_index(&shape, segment, slot), None);
        assert_eq!(key_index(&shape, segment, slot - 1), Some(u32::MAX - 1));
        assert_eq!(key_index(&shape, 0, 0), Some(0));
    }
}
