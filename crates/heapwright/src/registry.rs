//! The registry: objects of which a thread has one, by id, for ever.
//!
//! ```text
//!   id --> segment (64, 128, 256, ...) --> pointer --> object
//!
//!   a thread starts: adopt one that rests, else make one
//!   a thread ends:   its object rests; anyone may claim it for a moment
//! ```
//!
//! Objects are made in the heap's metadata and never freed, so an id that was
//! read from an address map entry a moment ago always leads to a valid object,
//! whatever has happened since. Ids count up from 1; 0 is nobody.
//!
//! This is the door for other thread-cache models: whoever asks for "my
//! object" gets one, and does not learn how it was chosen.
//!
//! `Registry<T>` knows nothing of caches; `cache` makes it one of caches.

use core::ptr;

use crate::address_map::MAX_OWNER;
use crate::chunk::metadata;
use crate::remote::Tenure;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{Guard, Lock};

const FIRST_SEGMENT: usize = 64;
const SEGMENTS: usize = 19;

/// What the registry needs of an object.
pub(crate) trait Member: Sized {
    /// Makes the object of `id` in zeroed memory. The caller holds its tenure.
    ///
    /// # Safety
    ///
    /// `at` is zeroed, aligned memory for one object that nobody else knows.
    unsafe fn make(at: *mut Self, id: u32);
    /// Who may act as its owner.
    fn tenure(&self) -> &Tenure;
    /// The registry's link for objects at rest.
    fn resting(&self) -> &AtomicPtr<Self>;
}

struct Resting<T> {
    first: *mut T,
    /// Where the next visit begins; null: at the first.
    next_visit: *mut T,
}

// SAFETY: the pointers lead to objects that any thread may reach.
unsafe impl<T> Send for Resting<T> {}

/// All objects of one kind.
pub(crate) struct Registry<T> {
    segments: [AtomicPtr<AtomicPtr<T>>; SEGMENTS],
    made: AtomicU32,
    resting: Lock<Resting<T>>,
}

/// Where the object of `id` is: a segment and an index in it.
const fn place(id: u32) -> (usize, usize) {
    let n = id as usize - 1 + FIRST_SEGMENT;
    let segment = (n / FIRST_SEGMENT).ilog2() as usize;
    (segment, n - (FIRST_SEGMENT << segment))
}

const _: () = assert!(place(MAX_OWNER).0 < SEGMENTS);

impl<T: Member + 'static> Registry<T> {
    /// A registry of nothing.
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            made: AtomicU32::new(0),
            resting: Lock::new(Resting { first: ptr::null_mut(), next_visit: ptr::null_mut() }),
        }
    }

    /// The object of `id`.
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
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
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        (1..=self.made.load(Ordering::Acquire)).filter_map(|id| self.get(id))
    }

    /// How many objects were ever made.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed) as usize
    }

    /// An object for the calling thread: one that rests, or a new one. `None`
    /// where there is no memory.
    pub(crate) fn adopt_or_make(&self) -> Option<&T> {
        let mut resting = self.resting.lock();
        if let Some(object) = Self::adopt(&mut resting) {
            return Some(object);
        }
        self.make(resting, |_| {})
    }

    /// Takes the first object at rest that nobody works on just now.
    fn adopt(resting: &mut Resting<T>) -> Option<&'static T> {
        let mut before: Option<&T> = None;
        let mut at = resting.first;
        while !at.is_null() {
            // SAFETY: objects are never freed.
            let object = unsafe { &*at };
            let next = object.resting().load(Ordering::Relaxed);
            if object.tenure().try_claim() {
                if resting.next_visit == at {
                    resting.next_visit = next;
                }
                match before {
                    None => resting.first = next,
                    Some(before) => before.resting().store(next, Ordering::Relaxed),
                }
                object.tenure().hold();
                return Some(object);
            }
            before = Some(object);
            at = next;
        }
        None
    }

    /// Makes an object. The lock makes ids unique.
    /// `prepare` gets it before anyone else can find it.
    pub(crate) fn make_new(&self, prepare: impl FnOnce(&T)) -> Option<&T> {
        self.make(self.resting.lock(), prepare)
    }

    fn make(&self, lock: Guard<'_, Resting<T>>, prepare: impl FnOnce(&T)) -> Option<&T> {
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
        // SAFETY: zeroed memory that nobody else knows.
        unsafe { T::make(object, id) };
        // SAFETY: just made, and never freed.
        prepare(unsafe { &*object });
        let slot = self.segments[segment].load(Ordering::Relaxed).wrapping_add(index);
        // SAFETY: `index` is in the segment.
        unsafe { &*slot }.store(object, Ordering::Release);
        self.made.store(id, Ordering::Release);
        drop(lock);
        // SAFETY: just made, and never freed.
        Some(unsafe { &*object })
    }

    /// Puts an object to rest whose thread ended. The caller still holds its
    /// tenure and lets go of it next.
    pub(crate) fn rest(&self, object: &T) {
        let mut resting = self.resting.lock();
        object.resting().store(resting.first, Ordering::Relaxed);
        resting.first = ptr::from_ref(object).cast_mut();
    }

    /// Calls `visit` with up to `most` objects at rest, claimed for the moment,
    /// going on where the last visit ended; it lets go of the object, and returns
    /// true to stop. Returns whether it did. Gives up where the registry is busy.
    pub(crate) fn visit_resting(&self, most: usize, mut visit: impl FnMut(&T) -> bool) -> bool {
        let Some(mut resting) = self.resting.try_lock() else { return false };
        let from = if resting.next_visit.is_null() { resting.first } else { resting.next_visit };
        let mut at = from;
        for _ in 0..most {
            // SAFETY: objects are never freed.
            let Some(object) = (unsafe { at.as_ref() }) else { break };
            let next = object.resting().load(Ordering::Relaxed);
            at = if next.is_null() { resting.first } else { next };
            resting.next_visit = at;
            if object.tenure().try_claim() && visit(object) {
                return true;
            }
            if at == from {
                break;
            }
        }
        false
    }

    /// In a forked child: puts exactly the objects to rest that `rests` picks.
    pub(crate) fn rest_after_fork(&self, rests: impl Fn(&T) -> bool) {
        *self.resting.lock() = Resting { first: ptr::null_mut(), next_visit: ptr::null_mut() };
        for object in self.all().filter(|object| rests(object)) {
            self.rest(object);
        }
    }

    /// Holds the lock across a fork.
    pub(crate) fn before_fork(&self) {
        self.resting.acquire();
    }

    /// Gives the lock back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Registry::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: by the contract this thread (or its original) holds the lock.
        unsafe { self.resting.release() };
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
