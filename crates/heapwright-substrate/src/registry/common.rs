//! Shared objects of one owner (a pool), made on demand.
//!
//! ```text
//!   a thread comes --> the object of its number --try--> has it
//!                          | held by another
//!                          v
//!                      fewer than K?  make as many again
//!                          v
//!                      `policy` looks for another; none free?  waits
//! ```
//!
//! There may be thousands of pools, each with one thread or a few. So a pool begins with one
//! object. Whenever a thread finds its object held, the pool doubles the number of objects, up to
//! the process's K (`shared_most`).
//!
//! **The object of a thread.** A thread has one number for all owners. Threads get numbers in turn.
//! A thread that finds its object held, and gets another object, takes that object's number. If
//! objects belong to CPUs, the number is the CPU's. The number modulo the number of objects selects
//! the object.
//!
//! **Fork.** A [`Family`] has all objects of one type, of all owners. They are recycled and never
//! freed, so that a fork can find and lock all of them. Called by `places` and `pool`.

use super::shared::{Held, Shared, Slot};

#[cfg(not(loom))]
pub use made::{Common, Family};

/// Locks `current`, or another object after `grow`. `None`: all were contended for too long.
#[inline(always)]
pub fn acquire<T, F, const MOST: usize>(
    shared: &Shared<T, F, MOST>,
    current: &'static Slot<T, F>,
    grow: impl FnOnce(),
) -> Option<Held<T, F>> {
    if current.try_lock() {
        return Some(Held::of(current));
    }
    grow();
    shared.acquire_contended(current)
}

#[cfg(not(loom))]
mod made {
    use core::ptr;

    use super::super::places::Place;
    use super::super::{MOST, by_cpu, per_cpu, shared_most, thread_index};
    use super::{Held, Shared, Slot, acquire};
    use crate::ids::{self, Recycled};
    use crate::sync::Lock;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    /// The objects of one owner. If all bytes are zero, there are no objects.
    pub struct Common<T: 'static> {
        shared: Shared<T, (), MOST>,
        /// Held while more objects are made, and across a fork.
        growing: Lock<()>,
    }

    impl<T: Place> Common<T> {
        #[inline(always)]
        fn number(by_cpu: bool) -> Option<usize> {
            if by_cpu { Some(per_cpu::cpu()) } else { thread_index::shared() }
        }

        #[cold]
        fn first_number() -> usize {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed) % shared_most().max(1);
            thread_index::set_shared(number);
            number
        }

        #[inline(always)]
        fn of(&self, number: usize) -> &'static Slot<T> {
            self.shared.nearest(number)
        }

        /// The inline part of [`Common::enter`]: if the lock of the calling thread's object is
        /// free, locks it. The caller must unlock it. `by_cpu`: whether objects belong to CPUs.
        #[inline(always)]
        pub fn try_enter(&self, by_cpu: bool) -> Option<&'static Slot<T>> {
            let current = self.of(Self::number(by_cpu)?);
            current.try_lock().then_some(current)
        }

        /// An object that only this thread uses until the result is dropped. `None`: all objects
        /// were contended for too long, perhaps because a signal handler interrupted a holder.
        pub fn enter(&'static self) -> Option<Held<T>> {
            let current = self.of(Self::number(by_cpu()).unwrap_or_else(Self::first_number));
            let held = acquire(&self.shared, current, || self.grow())?;
            if !ptr::eq(held.slot(), current) && !by_cpu() {
                thread_index::set_shared(held.slot().number());
            }
            Some(held)
        }

        #[cold]
        #[inline(never)]
        fn grow(&self) {
            let (count, most) = (self.shared.count(), shared_most());
            if count < most
                && let Some(_one) = self.growing.try_lock()
            {
                self.shared.raise(most.min(2 * count), make);
            }
        }

        /// All objects.
        pub fn all(&self) -> impl Iterator<Item = &'static T> {
            // SAFETY: safe methods of a `Place` are for any thread.
            self.shared.all().map(|slot| unsafe { slot.value() })
        }

        /// Locks each object that is not contended for too long, and calls `visit` with the object.
        pub fn visit(&self, mut visit: impl FnMut(&T)) {
            for held in self.shared.all().filter_map(|slot| self.shared.acquire_this(slot)) {
                visit(&held);
            }
        }
    }

    fn make<T: Place>(number: usize) -> Option<&'static Slot<T>> {
        // SAFETY: zero is a `Place`.
        unsafe { Slot::make(number) }.map(|slot| &*slot)
    }

    /// The shared objects of all owners of one type.
    pub struct Family<T: 'static> {
        all: Recycled<Common<T>>,
        held: AtomicUsize,
    }

    impl<T: Place> Family<T> {
        /// A family of no owners.
        pub const fn new() -> Self {
            Self { all: Recycled::new(), held: AtomicUsize::new(0) }
        }

        /// One object for an owner that has none. `None`: there is no memory.
        pub fn take(&self) -> Option<&'static ids::Slot<Common<T>>> {
            // SAFETY: zero is a `Common`.
            let taken = unsafe { self.all.take_zeroed() }?;
            let growing = taken.value.growing.lock();
            let made = taken.value.shared.raise(1, make);
            drop(growing);
            if made == 0 {
                self.all.give(taken);
                return None;
            }
            Some(taken)
        }

        /// Takes an owner's objects back. The owner must have emptied them.
        pub fn give(&self, taken: &'static ids::Slot<Common<T>>) {
            self.all.give(taken);
        }

        /// Holds the locks across a fork.
        pub fn before_fork(&self) {
            self.all.before_fork();
            let mut held = 0;
            for common in self.all.all() {
                common.growing.acquire();
                common.shared.all().for_each(Slot::before_fork);
                held += 1;
            }
            self.held.store(held, Ordering::Relaxed);
        }

        /// In a forked child: forgets waiting threads.
        pub fn forget_after_fork(&self) {
            for common in self.all.all() {
                common.shared.all().for_each(Slot::forget_sleepers_after_fork);
            }
        }

        /// Gives the locks back on either side of a fork.
        ///
        /// # Safety
        ///
        /// Follows [`Family::before_fork`] in the forking thread or its copy.
        pub unsafe fn after_fork(&self) {
            // Owners that other libraries' fork handlers made in the meantime are not locked.
            for common in self.all.all().take(self.held.load(Ordering::Relaxed)) {
                for slot in common.shared.all() {
                    // SAFETY: this thread (in a child: its original) has held the lock since
                    // before the fork.
                    unsafe { slot.after_fork() };
                }
                // SAFETY: this thread (in a child: its original) took the lock before the fork.
                unsafe { common.growing.release() };
            }
            // SAFETY: this thread (in a child: its original) took the locks before the fork.
            unsafe { self.all.after_fork() };
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    extern crate std;
    use loom::cell::UnsafeCell;
    use loom::sync::Mutex;
    use loom::thread;
    use std::boxed::Box;

    use super::*;

    /// Room for two objects. Each is a cell: loom reports two threads in it at the same time.
    struct Owner {
        shared: Shared<UnsafeCell<usize>, (), 2>,
        growing: Mutex<()>,
    }

    fn make(number: usize) -> Option<&'static Slot<UnsafeCell<usize>>> {
        Some(Box::leak(Box::new(Slot::new(number, (), UnsafeCell::new(0)))))
    }

    impl Owner {
        fn new() -> &'static Self {
            let owner =
                Box::leak(Box::new(Self { shared: Shared::new(), growing: Mutex::new(()) }));
            assert_eq!(owner.shared.raise(1, make), 1);
            owner
        }

        fn work(&self, number: usize) {
            let count = self.shared.count();
            let current = self.shared.slot(if number < count { number } else { number % count });
            let grow = || {
                if let Ok(_one) = self.growing.try_lock() {
                    self.shared.raise(2, make);
                }
            };
            let held = acquire(&self.shared, current, grow).expect("with loom, all wait");
            held.with_mut(|slots| {
                // SAFETY: this thread alone has the object; loom checks that.
                unsafe { *slots += 1 };
            });
        }

        fn found(&self) -> usize {
            let all = (0..self.shared.count()).map(|index| self.shared.slot(index));
            all.map(|slot| {
                // SAFETY: all threads have ended.
                let cell = unsafe { slot.value() };
                // SAFETY: all threads have ended, so no thread writes.
                cell.with(|slots| unsafe { *slots })
            })
            .sum()
        }
    }

    fn model(numbers: &'static [usize]) {
        loom::model(move || {
            let owner = Owner::new();
            let work = |&number| thread::spawn(move || owner.work(number));
            let others: std::vec::Vec<_> = numbers[1..].iter().map(work).collect();
            owner.work(numbers[0]);
            for other in others {
                other.join().unwrap();
            }
            assert_eq!(owner.found(), numbers.len());
        });
    }

    #[test]
    fn loom_a_shared_object_is_one_threads_at_a_time() {
        model(&[0, 1]);
    }

    #[test]
    fn loom_objects_made_meanwhile_are_found() {
        model(&[0, 1, 1]);
    }
}
