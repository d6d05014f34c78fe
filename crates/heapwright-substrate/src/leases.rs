//! The word of a keyed object that threads share: its generation, and the number of references.
//!
//! ```text
//!   63  generation  32  31 retired  30  references  0
//!
//!   even: no object --begin--> odd --acquire, release--> odd, references
//!         ^                     | retire                   | retire
//!         | end                 v                          v
//!         +-------------- retired, none <----release-- retired, references
//! ```
//!
//! A lookup compares the generation and adds a reference in one exchange. A retired object gets no
//! more references. Exactly one thread ends the object: the thread that retires it, if there are no
//! references, and otherwise the thread that releases the last reference.
//!
//! Invariants: only the thread that took the slot calls `begin`, and only the thread that ends the
//! object calls `end`. A thread releases each acquired reference once. Called by `pool`.

use crate::sync::atomic::{AtomicU64, Ordering, fence};

const RETIRED: u64 = 1 << 31;
const REFERENCES: u64 = RETIRED - 1;

/// The word of one slot. It is zero if the slot never held a keyed object.
pub struct Lease(AtomicU64);

/// The result of [`Lease::retire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// The object is gone, or already retired.
    Stale,
    /// The last reference's release ends the object. (If `unheld`: the object is not retired.)
    Held,
    /// The caller ends the object.
    Last,
}

impl Lease {
    /// Creates the word of a slot without an object.
    #[cfg(any(test, loom))]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Publishes the object that the caller wrote into its slot. Returns the odd generation.
    #[inline]
    pub fn begin(&self) -> u32 {
        let generation = (self.0.load(Ordering::Relaxed) >> 32) as u32 | 1;
        self.0.store(u64::from(generation) << 32, Ordering::Release);
        generation
    }

    /// Adds a reference to the object of a generation. False: the object is gone or retired, or no
    /// more references can be counted.
    #[inline]
    pub fn acquire(&self, generation: u32) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word >> 31 == u64::from(generation) << 1 && word & REFERENCES != REFERENCES {
            let more = word + 1;
            match self.0.compare_exchange_weak(word, more, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Removes a reference. True: the caller must end the object.
    #[inline]
    pub fn release(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::Release);
        let last = before & (RETIRED | REFERENCES) == RETIRED | 1;
        if last {
            // The other threads' uses of the object come before its end.
            fence(Ordering::Acquire);
        }
        last
    }

    /// Retires the object of a generation. With `unheld`, an object that has references stays.
    #[inline]
    pub fn retire(&self, generation: u32, unheld: bool) -> Retired {
        let mut word = self.0.load(Ordering::Relaxed);
        while word >> 31 == u64::from(generation) << 1 {
            if unheld && word & REFERENCES != 0 {
                return Retired::Held;
            }
            let retired = word | RETIRED;
            match self.0.compare_exchange_weak(word, retired, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if word & REFERENCES == 0 => return Retired::Last,
                Ok(_) => return Retired::Held,
                Err(now) => word = now,
            }
        }
        Retired::Stale
    }

    /// Makes the generation even, and forgets leaked references. The slot holds no object now.
    #[inline]
    pub fn end(&self) {
        let generation = (self.0.load(Ordering::Relaxed) >> 32) as u32;
        let next = generation.wrapping_add(generation & 1);
        self.0.store(u64::from(next) << 32, Ordering::Release);
    }

    /// Returns whether the slot holds a keyed object, which may be retired.
    #[inline]
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed) >> 32 & 1 != 0
    }

    /// Returns whether a generation's object is there and not retired.
    #[inline]
    pub fn is(&self, generation: u32) -> bool {
        self.0.load(Ordering::Relaxed) >> 31 == u64::from(generation) << 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn generations_and_references_follow_the_picture() {
        let lease = Lease::new();
        assert!(!lease.holds() && !lease.acquire(1));
        assert_eq!(lease.begin(), 1);
        assert!(lease.is(1) && lease.acquire(1) && lease.acquire(1) && !lease.acquire(3));
        assert_eq!(lease.retire(1, true), Retired::Held);
        assert!(lease.is(1));
        assert_eq!(lease.retire(1, false), Retired::Held);
        assert_eq!(lease.retire(1, false), Retired::Stale);
        assert!(lease.holds() && !lease.is(1) && !lease.acquire(1));
        assert!(!lease.release() && lease.release());
        lease.end();
        assert!(!lease.holds());
        assert_eq!(lease.begin(), 3);
        assert_eq!(lease.retire(1, false), Retired::Stale);
        assert_eq!(lease.retire(3, true), Retired::Last);
        lease.end();
        assert_eq!(lease.begin(), 5);
        lease.0.store(5 << 32 | REFERENCES, Ordering::Relaxed);
        assert!(!lease.acquire(5), "the references are counted in full");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    extern crate std;

    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// loom reports two threads that touch the object without order.
    struct Shared {
        lease: Lease,
        object: UnsafeCell<u32>,
    }

    fn read(shared: &Shared, generation: u32) {
        if shared.lease.acquire(generation) {
            // SAFETY: the reference keeps the object: loom checks that.
            shared.object.with(|object| assert_eq!(unsafe { *object }, generation));
            if shared.lease.release() {
                end(shared);
            }
        }
    }

    fn end(shared: &Shared) {
        // SAFETY: the last thread has the object alone: loom checks that.
        shared.object.with_mut(|object| unsafe { *object += 1 });
        shared.lease.end();
    }

    fn shared() -> Arc<Shared> {
        let shared = Arc::new(Shared { lease: Lease::new(), object: UnsafeCell::new(1) });
        assert_eq!(shared.lease.begin(), 1);
        shared
    }

    #[test]
    fn loom_an_object_ends_once_and_after_all_reads() {
        loom::model(|| {
            let shared = shared();
            let readers = [(); 2].map(|()| {
                let shared = shared.clone();
                thread::spawn(move || read(&shared, 1))
            });
            if shared.lease.retire(1, false) == Retired::Last {
                end(&shared);
            }
            for reader in readers {
                reader.join().unwrap();
            }
            // SAFETY: the other threads are gone.
            shared.object.with(|object| assert_eq!(unsafe { *object }, 2, "it ended once"));
            assert!(!shared.lease.holds());
        });
    }

    #[test]
    fn loom_a_slot_that_is_used_again_shows_its_new_object() {
        loom::model(|| {
            let shared = shared();
            let reader = {
                let shared = shared.clone();
                thread::spawn(move || {
                    read(&shared, 1);
                    read(&shared, 3);
                })
            };
            if shared.lease.retire(1, true) == Retired::Last {
                end(&shared);
                // SAFETY: the slot is this thread's: loom checks that.
                shared.object.with_mut(|object| unsafe { *object = 3 });
                assert_eq!(shared.lease.begin(), 3);
            }
            reader.join().unwrap();
        });
    }

    #[test]
    fn loom_one_of_two_threads_retires() {
        loom::model(|| {
            let shared = shared();
            let other = {
                let shared = shared.clone();
                thread::spawn(move || shared.lease.retire(1, false) == Retired::Last)
            };
            let one = shared.lease.retire(1, false) == Retired::Last;
            assert!(one != other.join().unwrap(), "exactly one ends the object");
        });
    }
}
