//! Ids: objects by number, made once and never freed.
//!
//! ```text
//!   id --> segment (64, 128, 256, ...) --> pointer --> object
//! ```
//!
//! Objects are made in the heap's metadata and never freed, so an id that was
//! read from an address map entry a moment ago always leads to a valid object,
//! whatever has happened since. Ids count up from 1; 0 is nobody. Finding one
//! takes no lock; making one is its caller's to serialise.
//!
//! [`Recycled`] hands such objects out and takes them back: what must outlive
//! whoever has it, because a fork may have to hold its lock, or a late reader find it.
//!
//! `registry` makes thread caches of them; `names`, `pool` and `arena` recycle theirs.

use core::ptr;

use crate::address_map::MAX_OWNER;
use crate::chunk::metadata;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const FIRST_SEGMENT: usize = 64;
const SEGMENTS: usize = 19;

/// All objects of one kind.
pub(crate) struct Ids<T> {
    segments: [AtomicPtr<AtomicPtr<T>>; SEGMENTS],
    made: AtomicU32,
}

/// Where the object of `id` is: a segment and an index in it.
const fn place(id: u32) -> (usize, usize) {
    let n = id as usize - 1 + FIRST_SEGMENT;
    let segment = (n / FIRST_SEGMENT).ilog2() as usize;
    (segment, n - (FIRST_SEGMENT << segment))
}

const _: () = assert!(place(MAX_OWNER).0 < SEGMENTS);

impl<T: 'static> Ids<T> {
    /// Nothing, so far.
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            made: AtomicU32::new(0),
        }
    }

    /// The object of `id`.
    pub(crate) fn get(&self, id: u32) -> Option<&'static T> {
        if id == 0 || id > self.made.load(Ordering::Acquire) {
            return None;
        }
        let (segment, index) = place(id);
        let slot = self.segments[segment].load(Ordering::Acquire).wrapping_add(index);
        // SAFETY: `made` is raised after the segment and the slot are written.
        let slot = unsafe { &*slot };
        // SAFETY: as above; objects are never freed.
        unsafe { slot.load(Ordering::Acquire).as_ref() }
    }

    /// All objects, in order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static T> {
        (1..=self.made.load(Ordering::Acquire)).filter_map(|id| self.get(id))
    }

    /// How many objects were ever made.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed) as usize
    }

    /// Makes the next object: `make` is given zeroed memory for it, which nobody
    /// else knows, and its id. `None` where there is no memory, or no id left.
    ///
    /// # Safety
    ///
    /// Only one thread at a time makes objects here; after `make` the memory
    /// holds one.
    pub(crate) unsafe fn make(&self, make: impl FnOnce(*mut T, u32)) -> Option<&'static T> {
        let id = self.made.load(Ordering::Relaxed) + 1;
        if id > MAX_OWNER {
            return None;
        }
        let (segment, index) = place(id);
        if self.segments[segment].load(Ordering::Relaxed).is_null() {
            let slots = FIRST_SEGMENT << segment;
            let fresh = metadata::alloc(slots * size_of::<AtomicPtr<T>>(), align_of::<usize>());
            if fresh.is_null() {
                return None;
            }
            self.segments[segment].store(fresh.cast(), Ordering::Release);
        }
        let object: *mut T = metadata::alloc(size_of::<T>(), align_of::<T>()).cast();
        if object.is_null() {
            return None;
        }
        make(object, id);
        let slot = self.segments[segment].load(Ordering::Relaxed).wrapping_add(index);
        // SAFETY: `index` is in the segment.
        unsafe { &*slot }.store(object, Ordering::Release);
        self.made.store(id, Ordering::Release);
        // SAFETY: just made, and never freed.
        Some(unsafe { &*object })
    }
}

/// An object that is handed out again and again.
pub(crate) struct Slot<T> {
    id: u32,
    /// The next one that nobody has.
    vacant: AtomicPtr<Slot<T>>,
    pub(crate) value: T,
}

impl<T> Slot<T> {
    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}

struct Vacant<T>(*mut Slot<T>);

// SAFETY: leads to objects that any thread may reach and nobody frees.
unsafe impl<T> Send for Vacant<T> {}

/// Objects of one kind, handed out and taken back.
pub(crate) struct Recycled<T> {
    ids: Ids<Slot<T>>,
    vacant: Lock<Vacant<T>>,
}

impl<T: Sync + 'static> Recycled<T> {
    /// None, so far.
    pub(crate) const fn new() -> Self {
        Self { ids: Ids::new(), vacant: Lock::new(Vacant(ptr::null_mut())) }
    }

    /// An object that nobody has: one that was given back, as it was left, or
    /// `fresh`. `None` where there is no memory.
    pub(crate) fn take(&self, fresh: T) -> Option<&'static Slot<T>> {
        let mut vacant = self.vacant.lock();
        // SAFETY: null, or an object, which is never freed.
        if let Some(found) = unsafe { vacant.0.as_ref() } {
            vacant.0 = found.vacant.load(Ordering::Relaxed);
            return Some(found);
        }
        let make = |at: *mut Slot<T>, id| {
            let made = Slot { id, vacant: AtomicPtr::new(ptr::null_mut()), value: fresh };
            // SAFETY: memory for one object, which nobody else knows.
            unsafe { at.write(made) };
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// As [`Recycled::take`], for objects that are too large for a stack: a new one is
    /// a copy of `fresh`, byte by byte.
    ///
    /// # Safety
    ///
    /// Nobody ever uses `fresh`, and it does not know where it is.
    #[cfg(feature = "debug")]
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn take_copy(&self, fresh: &'static T) -> Option<&'static Slot<T>> {
        let mut vacant = self.vacant.lock();
        // SAFETY: null, or an object, which is never freed.
        if let Some(found) = unsafe { vacant.0.as_ref() } {
            vacant.0 = found.vacant.load(Ordering::Relaxed);
            return Some(found);
        }
        let make = |at: *mut Slot<T>, id| {
            // SAFETY: memory for one object, as for all that follow.
            let value = unsafe { &raw mut (*at).value };
            // SAFETY: by the contract a copy is as good.
            unsafe { ptr::copy_nonoverlapping(fresh, value, 1) };
            // Zeroed memory: nothing is vacant behind it.
            // SAFETY: as above.
            let place = unsafe { &raw mut (*at).id };
            // SAFETY: as above.
            unsafe { place.write(id) };
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// Takes an object back.
    pub(crate) fn give(&self, slot: &'static Slot<T>) {
        let mut vacant = self.vacant.lock();
        slot.vacant.store(vacant.0, Ordering::Relaxed);
        vacant.0 = ptr::from_ref(slot).cast_mut();
    }

    /// The object of an id, whoever has it.
    pub(crate) fn get(&self, id: u32) -> Option<&'static T> {
        self.ids.get(id).map(|slot| &slot.value)
    }

    /// All objects, those that nobody has as well.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static T> {
        self.ids.all().map(|slot| &slot.value)
    }

    /// Holds the lock across a fork: no object is made meanwhile.
    pub(crate) fn before_fork(&self) {
        self.vacant.acquire();
    }

    /// Gives the lock back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Recycled::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: by the contract this thread (or its original) holds the lock.
        unsafe { self.vacant.release() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fill_segments_without_a_gap() {
        let mut last = (0, usize::MAX);
        for id in 1..if cfg!(miri) { 1_000 } else { 100_000 } {
            let (segment, index) = place(id);
            assert!(index < FIRST_SEGMENT << segment);
            let follows = segment == last.0 && index == last.1.wrapping_add(1);
            let opens =
                segment == last.0 + 1 && index == 0 && last.1 + 1 == FIRST_SEGMENT << last.0;
            assert!(follows || opens, "{id}");
            last = (segment, index);
        }
    }
}
