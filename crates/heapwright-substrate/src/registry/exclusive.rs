//! The exclusive registry: each thread has an object of its own, found by id (`ids`).
//!
//! ```text
//!   a thread starts: it adopts an abandoned object, or makes a new one
//!   a thread ends:   its object is abandoned; any thread may claim it for a moment
//! ```
//!
//! Called by `cache`, for the caches of threads.

use core::ptr;

use crate::ids::Ids;
use crate::remote::Ownership;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// An object of the registry.
pub trait Member: Sized {
    /// Makes the object of `id` in zeroed memory. The caller then has the object's ownership.
    ///
    /// # Safety
    ///
    /// `at` is zeroed, aligned memory for one object, and no other thread knows it.
    unsafe fn make(at: *mut Self, id: u32);
    /// The right to act as the object's owner.
    fn ownership(&self) -> &Ownership;
    /// The registry's link for abandoned objects.
    fn abandoned(&self) -> &AtomicPtr<Self>;
}

struct Abandoned<T> {
    first: *mut T,
    next_visit: *mut T,
}

// SAFETY: the pointers lead to objects that any thread may reach.
unsafe impl<T> Send for Abandoned<T> {}

/// All objects of one kind.
pub struct Exclusive<T> {
    ids: Ids<T>,
    abandoned: Lock<Abandoned<T>>,
}

impl<T: Member + 'static> Exclusive<T> {
    /// An empty registry.
    pub const fn new() -> Self {
        Self {
            ids: Ids::new(),
            abandoned: Lock::new(Abandoned { first: ptr::null_mut(), next_visit: ptr::null_mut() }),
        }
    }

    /// The object of `id`.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.ids.get(id)
    }

    /// All objects, in order of their ids.
    pub fn all(&self) -> impl Iterator<Item = &'static T> {
        self.ids.all()
    }

    /// The number of objects that were ever made.
    pub fn made(&self) -> usize {
        self.ids.made()
    }

    /// An abandoned object, or a new one, for the calling thread. `None`: there is no memory.
    pub fn adopt_or_make(&self) -> Option<&T> {
        let mut abandoned = self.abandoned.lock();
        if let Some(object) = Self::adopt(&mut abandoned) {
            return Some(object);
        }
        // SAFETY: `Ids` gives the zeroed, aligned memory that `Member` requires.
        let make = |at, id| unsafe { T::make(at, id) };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    fn adopt(abandoned: &mut Abandoned<T>) -> Option<&'static T> {
        let mut before: Option<&T> = None;
        let mut at = abandoned.first;
        while !at.is_null() {
            // SAFETY: objects are never freed.
            let object = unsafe { &*at };
            let next = object.abandoned().load(Ordering::Relaxed);
            if object.ownership().try_claim() {
                if abandoned.next_visit == at {
                    abandoned.next_visit = next;
                }
                match before {
                    None => abandoned.first = next,
                    Some(before) => before.abandoned().store(next, Ordering::Relaxed),
                }
                object.ownership().hold();
                return Some(object);
            }
            before = Some(object);
            at = next;
        }
        None
    }

    /// Makes an object. `prepare` gets the object before other threads can find it.
    pub fn make_new(&self, prepare: impl FnOnce(&T)) -> Option<&T> {
        let _unique = self.abandoned.lock();
        let make = |at: *mut T, id| {
            // SAFETY: `Ids` gives the zeroed, aligned memory that `Member` requires.
            unsafe { T::make(at, id) };
            // SAFETY: just made, and never freed.
            prepare(unsafe { &*at });
        };
        // SAFETY: the lock is held, and `make` makes the object.
        unsafe { self.ids.make(make) }
    }

    /// Abandons an object whose thread ends. The caller must then give up the object's ownership.
    pub fn abandon(&self, object: &T) {
        let mut abandoned = self.abandoned.lock();
        object.abandoned().store(abandoned.first, Ordering::Relaxed);
        abandoned.first = ptr::from_ref(object).cast_mut();
    }

    /// Claims up to `most` abandoned objects, one after the other, and calls `visit` with each.
    /// Begins where the last call ended. `visit` must give up the claim, and returns true to stop
    /// the walk. The result is whether the walk was stopped. If the lock is held, visits no object.
    pub fn visit_abandoned(&self, most: usize, mut visit: impl FnMut(&T) -> bool) -> bool {
        let Some(mut abandoned) = self.abandoned.try_lock() else { return false };
        let from =
            if abandoned.next_visit.is_null() { abandoned.first } else { abandoned.next_visit };
        let mut at = from;
        for _ in 0..most {
            // SAFETY: objects are never freed.
            let Some(object) = (unsafe { at.as_ref() }) else { break };
            let next = object.abandoned().load(Ordering::Relaxed);
            at = if next.is_null() { abandoned.first } else { next };
            abandoned.next_visit = at;
            if object.ownership().try_claim() && visit(object) {
                return true;
            }
            if at == from {
                break;
            }
        }
        false
    }

    /// In a forked child: abandons exactly the objects for which `is_gone` is true.
    pub fn abandon_after_fork(&self, is_gone: impl Fn(&T) -> bool) {
        *self.abandoned.lock() = Abandoned { first: ptr::null_mut(), next_visit: ptr::null_mut() };
        for object in self.all().filter(|object| is_gone(object)) {
            self.abandon(object);
        }
    }

    /// Holds the lock across a fork.
    pub fn before_fork(&self) {
        self.abandoned.acquire();
    }

    /// Gives the lock back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Exclusive::before_fork`] in the forking thread or its copy.
    pub unsafe fn after_fork(&self) {
        // SAFETY: by the contract this thread (or its original) holds the lock.
        unsafe { self.abandoned.release() };
    }
}
