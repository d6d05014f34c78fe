//! Pauses: how long the world was stopped, and how long sweeping took.
//!
//! Noted by `cycle` and `sweep`; read by `statistics`.

pub use super::abi::GC_PAUSE_BUCKETS as PAUSE_BUCKETS;
use super::cell::Num;
use heapwright_substrate::os;

/// The times of pauses, noted by the collector, and of sweeping. All-zero bytes: no pauses.
pub(super) struct Pauses {
    pub(super) count: Num,
    pub(super) wall: Times,
    pub(super) cpu: Times,
    /// From the collector's call to the moment that all mutators are stopped.
    pub(super) stopping: Times,
    sweep: Num,
}

pub(super) struct Times {
    pub(super) sum: Num,
    pub(super) most: Num,
    buckets: [Num; PAUSE_BUCKETS],
}

impl Times {
    fn add(&self, ns: u64) {
        self.sum.add(ns as usize);
        self.most.set(self.most.get().max(ns as usize));
        self.buckets[ns.max(1).ilog2() as usize].add(1);
    }

    fn clear(&self) {
        [&self.sum, &self.most].into_iter().chain(&self.buckets).for_each(|n| n.set(0));
    }

    pub(super) fn histogram(&self) -> [u64; PAUSE_BUCKETS] {
        core::array::from_fn(|bucket| self.buckets[bucket].get() as u64)
    }
}

pub(super) struct Began {
    asked: u64,
    stood: u64,
    cpu: u64,
}

impl Began {
    /// A pause that begins now. The collector requested the stop at `asked`, by the clock.
    pub(super) fn now(asked: u64) -> Self {
        Self { asked, stood: os::now_ns(), cpu: os::thread_cpu_ns() }
    }

    pub(super) fn cpu(&self) -> u64 {
        os::thread_cpu_ns().saturating_sub(self.cpu)
    }

    pub(super) fn stood(&self) -> u64 {
        self.stood
    }

    pub(super) fn waited(&self) -> u64 {
        self.stood.saturating_sub(self.asked)
    }
}

impl Pauses {
    /// Notes a pause, which ends now. Returns its time by the clock, and the thread's CPU time.
    pub(super) fn add(&self, began: &Began) -> (u64, u64) {
        let (wall, cpu) = (os::now_ns().saturating_sub(began.stood), began.cpu());
        self.count.add(1);
        self.wall.add(wall);
        self.cpu.add(cpu);
        self.stopping.add(began.waited());
        (wall, cpu)
    }

    /// Runs `sweep`, on any thread, and adds the time it took.
    pub(super) fn while_sweeping<T>(&self, sweep: impl FnOnce() -> T) -> T {
        let began = os::now_ns();
        let result = sweep();
        self.sweep.add_shared(os::now_ns().saturating_sub(began) as usize);
        result
    }

    pub(super) fn swept_ns(&self) -> usize {
        self.sweep.get()
    }

    pub(super) fn clear(&self) {
        [&self.count, &self.sweep].into_iter().for_each(|n| n.set(0));
        [&self.wall, &self.cpu, &self.stopping].into_iter().for_each(Times::clear);
    }
}
