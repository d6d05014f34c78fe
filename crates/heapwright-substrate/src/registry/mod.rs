//! The registry: finds the calling thread's object (malloc's caches, the magazines of pools).
//!
//! The option `cache=` selects one of these registries. The number of objects grows with the number
//! of threads, K or the number of CPUs.
//!
//! ```text
//!   exclusive      one per thread, by id; abandoned at its end, adopted by a new thread   no lock
//!   thread_index   one per thread, by a small number, which a later thread inherits       no lock
//!   shared         K for all threads; a thread locks its last one, or another (`policy`)  K locks
//!   per_cpu        one per CPU; restartable sequences, or locks that are hardly ever held
//!
//!   object                          cache=exclusive   shared:K, percpu      made
//!   malloc's caches                 exclusive         shared, per_cpu       at a thread's start,
//!                                                                           the process's start
//!   owners' objects                 thread_index      common, over these    on demand
//!     (pools, by `places`)
//!   the debug heap's thread states  thread_index      thread_index          on demand
//! ```
//!
//! Other threads send blocks back to a cache of malloc. So the cache needs an id in the address
//! map, and a thread that adopts it. A pool's object for a thread only holds free slots. So the
//! pool finds it by a number, and the end of a thread needs no work in each pool.
//!
//! **To keep an object of your own** for each thread, write a type with the trait
//! [`places::Place`], which states the duties. Put a [`places::Places`] into each owner. This
//! example of an owner gives out numbers:
//!
//! ```text
#![doc = include_str!("example.rs")]
//! ```

#[cfg(not(loom))]
pub mod common;
#[cfg(loom)]
mod common;
#[cfg(all(test, not(loom)))]
mod example;
#[cfg(not(loom))]
pub mod exclusive;
#[cfg(not(loom))]
pub mod per_cpu;
#[cfg(not(loom))]
pub mod places;
pub mod policy;
pub mod shared;
pub mod thread_index;

#[cfg(not(loom))]
pub use model::{Model, by_cpu, model, raise_shared, shared_most};

/// The most objects that threads can share. Also the most CPUs that can have an object.
#[cfg(not(loom))]
pub const MOST: usize = crate::options::MOST_SHARED;

#[cfg(not(loom))]
mod model {
    use super::MOST;
    use crate::options::{self, CacheModel};
    use crate::os::{self, rseq};
    use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// The way in which threads get their objects.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Model {
        /// Each thread has its own object.
        Exclusive,
        /// All threads share this number of objects.
        Shared(usize),
        /// All threads share this number of objects, one for each CPU.
        PerCpu(usize),
    }

    const DEFAULT_MOST: usize = 32;

    const UNKNOWN: usize = usize::MAX;

    static SHARED: AtomicUsize = AtomicUsize::new(UNKNOWN);
    /// Whether shared objects belong to CPUs. Written before `SHARED`.
    static BY_CPU: AtomicBool = AtomicBool::new(false);

    /// The process's model, from the options.
    pub fn model() -> Model {
        match shared_most() {
            0 => Model::Exclusive,
            most if by_cpu() => Model::PerCpu(most),
            most => Model::Shared(most),
        }
    }

    /// The most objects that threads share; 0: each thread has its own object.
    #[inline]
    pub fn shared_most() -> usize {
        match SHARED.load(Ordering::Acquire) {
            UNKNOWN => begin(),
            most => most,
        }
    }

    /// Whether shared objects belong to CPUs. Call [`shared_most`] or [`model`] before.
    #[inline(always)]
    pub fn by_cpu() -> bool {
        BY_CPU.load(Ordering::Relaxed)
    }

    #[cold]
    fn begin() -> usize {
        let (most, by_cpu) = match options::get().cache {
            CacheModel::Auto | CacheModel::Exclusive => (0, false),
            CacheModel::Shared(0) => (os::cpus().min(DEFAULT_MOST), false),
            CacheModel::Shared(most) => (most, false),
            CacheModel::PerCpu => (rseq::possible_cpus().min(MOST), true),
        };
        BY_CPU.store(by_cpu, Ordering::Relaxed);
        let first = SHARED.compare_exchange(UNKNOWN, most, Ordering::AcqRel, Ordering::Acquire);
        first.map_or_else(|now| now, |_| most)
    }

    /// Raises the number of objects in [`Model::Shared`]. No effect with other models.
    pub fn raise_shared(most: usize) {
        if let Model::Shared(_) = model() {
            SHARED.fetch_max(most.min(MOST), Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::example::Numbers;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn the_example_gives_every_number_once() {
        let (threads, each) = if cfg!(miri) { (3, 70) } else { (8, 20_000) };
        for _ in 0..3 {
            let numbers = Numbers::new();
            let mut all: Vec<usize> = std::thread::scope(|scope| {
                let take = || (0..each).map(|_| numbers.take()).collect::<Vec<_>>();
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), threads * each);
        }
    }
}
