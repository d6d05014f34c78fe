//! The registry: which object is mine?
//!
//! What is kept "per thread" (malloc's caches, the magazines of pools) is kept by one
//! of these, and a thread that asks for its own does not know how it was chosen:
//!
//! ```text
//!   exclusive      one a thread, by id; abandoned when the thread ends, adopted by a new one    no lock
//!   thread_index   one a thread, by a small number that is passed on when the thread ends      no lock
//!   shared         K for all threads; lock one, if it is held look for another (`policy`)      a lock each
//!   per_cpu        one a CPU; restartable sequences, or a lock that is hardly ever held
//! ```
//!
//! Memory grows with the threads, with K, with the CPUs. The option `cache=` selects the
//! model when the process starts. None of them knows what it keeps: each is a
//! registry of some `T`.
//!
//! ```text
//!   object                         cache=exclusive   shared:K, percpu       made
//!   malloc's caches                exclusive         shared, per_cpu        when the process starts
//!   what owners keep               thread_index      common, over these     when it is asked for
//!     (pools, by `places`)
//!   the debug heap's thread states thread_index      thread_index           when it is asked for
//! ```
//!
//! A cache of malloc's has slabs, and other threads send blocks home to it: it needs an id
//! in the address map, and a thread to adopt it. What a pool keeps for a thread is only at
//! hand there, and there are many pools: it is found by a number, and nothing needs doing
//! in each pool when a thread ends.
//!
//! **To keep something of your own** for each thread (the free regions of a collected
//! heap): a type of which zero is an empty one, [`places::Place`] for it, a
//! [`places::Places`] in each owner, and five duties:
//!
//! | duty | why |
//! |---|---|
//! | ask `exclusive` inline, and `enter` where that misses or its place is empty or full | the model is chosen behind the second |
//! | serve a thread that gets `None` from what lies behind | threads without an index, in their last destructors, without memory; a signal handler |
//! | take the lock of what lies behind after the place, never before | the order in which a fork takes them, too |
//! | hold the family's locks across a fork (`before_fork`, `after_fork`, then `forget_after_fork` in the child) | a shared place is whole in the child |
//! | empty `all` places before they are dropped | the memory is used again as it was left |
//!
//! This is a whole such owner, which gives out numbers; its test runs it under each model:
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

/// The most objects that threads can share, or CPUs that can have one.
#[cfg(not(loom))]
pub const MOST: usize = crate::options::MOST_SHARED;

#[cfg(not(loom))]
mod model {
    use super::MOST;
    use crate::options::{self, CacheModel};
    use crate::os::{self, rseq};
    use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// How the threads of this process come by their objects.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Model {
        /// Each has its own.
        Exclusive,
        /// They share so many.
        Shared(usize),
        /// They share so many, one a CPU.
        PerCpu(usize),
    }

    /// Objects that threads share if the option does not say how many.
    const DEFAULT_MOST: usize = 32;

    const UNKNOWN: usize = usize::MAX;

    /// How many are shared now; 0: none.
    static SHARED: AtomicUsize = AtomicUsize::new(UNKNOWN);
    /// Whether they are CPUs'. Written before the number.
    static BY_CPU: AtomicBool = AtomicBool::new(false);

    /// The process's model, as the options say.
    pub fn model() -> Model {
        match shared_most() {
            0 => Model::Exclusive,
            most if by_cpu() => Model::PerCpu(most),
            most => Model::Shared(most),
        }
    }

    /// How many objects threads share at most; 0: each has its own.
    #[inline]
    pub fn shared_most() -> usize {
        match SHARED.load(Ordering::Acquire) {
            UNKNOWN => begin(),
            most => most,
        }
    }

    /// Whether objects that are shared are CPUs'. Known once the number is.
    #[inline(always)]
    pub fn by_cpu() -> bool {
        BY_CPU.load(Ordering::Relaxed)
    }

    #[cold]
    fn begin() -> usize {
        let (most, by_cpu) = match options::get().cache {
            // What owners keep for a thread is little, and found by its index however many there
            // are.
            CacheModel::Auto | CacheModel::Exclusive => (0, false),
            CacheModel::Shared(0) => (os::cpus().min(DEFAULT_MOST), false),
            CacheModel::Shared(most) => (most, false),
            CacheModel::PerCpu => (rseq::possible_cpus().min(MOST), true),
        };
        BY_CPU.store(by_cpu, Ordering::Relaxed);
        // Unless another thread was first, and perhaps raised it already.
        let first = SHARED.compare_exchange(UNKNOWN, most, Ordering::AcqRel, Ordering::Acquire);
        first.map_or_else(|now| now, |_| most)
    }

    /// Raises the number of objects that threads share, unless it is that of the CPUs.
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
