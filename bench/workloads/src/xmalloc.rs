//! Producers allocate, consumers free.
//!
//! The model is the field's "xmalloc" (Lever and Boreham's "malloc performance in a multithreaded
//! Linux environment", 2000). Two threads fill batches with new blocks and put them into a short
//! queue; two others take the batches out and free all blocks. So every free is of another thread's
//! block. The workload shows the cost of returning blocks to their thread, and whether that works
//! at all.
//!
//! Life cycle: at most 36 batches of 256 blocks, mostly small; first made, first freed.

use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, joined, scaled};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const PRODUCERS: usize = 2;
const CONSUMERS: usize = 2;

const ROOM: usize = 32;

const BATCH: usize = 256;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "xmalloc",
    stands_for: "Pipelines in which some threads read and parse and others consume: all blocks \
                 are freed by threads that never allocate, so memory must find its way back to \
                 its makers.",
    threads: (PRODUCERS + CONSUMERS) as u32,
    live_bytes: 2_640_000,
    operations: 10_280_000,
    run,
};

type Batch = Vec<Block>;

/// A bounded queue that knows when no producer is left.
struct Queue {
    inside: Mutex<Inside>,
    filled: Condvar,
    emptied: Condvar,
}

struct Inside {
    batches: VecDeque<Batch>,
    producers: usize,
}

impl Queue {
    fn new() -> Self {
        // The queue has all its room from the start: consumers must not allocate.
        let inside = Inside { batches: VecDeque::with_capacity(ROOM), producers: PRODUCERS };
        Self { inside: Mutex::new(inside), filled: Condvar::new(), emptied: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, batch: Batch) {
        let full = |inside: &mut Inside| inside.batches.len() == ROOM;
        let waited = self.emptied.wait_while(self.lock(), full);
        let mut inside = waited.unwrap_or_else(PoisonError::into_inner);
        inside.batches.push_back(batch);
        self.filled.notify_one();
    }

    fn leave(&self) {
        self.lock().producers -= 1;
        self.filled.notify_all();
    }

    /// Takes a batch, or returns `None` if all producers are gone and all batches are taken.
    fn take(&self) -> Option<Batch> {
        let starved = |inside: &mut Inside| inside.batches.is_empty() && inside.producers > 0;
        let waited = self.filled.wait_while(self.lock(), starved);
        let mut inside = waited.unwrap_or_else(PoisonError::into_inner);
        let batch = inside.batches.pop_front();
        self.emptied.notify_one();
        batch
    }
}

fn run(scale: u32) -> u64 {
    let queue = Queue::new();
    let queue = &queue;
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            scope.spawn(move || {
                let mut random = Random::of(0x3a11, producer);
                for _ in 0..scaled(scale, 10_000, 20) {
                    queue.put(batch(&mut random));
                }
                queue.leave();
            });
        }
        let consumers: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(|| consume(queue))).collect();
        consumers.into_iter().map(joined).fold(0, u64::wrapping_add)
    })
}

fn batch(random: &mut Random) -> Batch {
    (0..BATCH).map(|_| Block::new(random.small_size(), random.next())).collect()
}

fn consume(queue: &Queue) -> u64 {
    let mut sum = 0u64;
    while let Some(batch) = queue.take() {
        sum = batch.into_iter().map(Block::release).fold(sum, u64::wrapping_add);
    }
    sum
}
