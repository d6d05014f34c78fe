//! Counts: a heap's operations and live bytes, summed over its states.
//!
//! Only the thread in a state writes its counts. While threads run, a sum mixes different moments.
//! Called by `place`, `resize`, `fork`, `leaks`, and `debug`'s entry points.

use crate::sync::atomic::Ordering;
use crate::text::Line;

use super::super::leaks;
use super::super::thread_state::ThreadState;
use super::Heap;

impl Heap {
    fn sum(&self, of: impl Fn(&ThreadState) -> u64) -> u64 {
        self.all_states().map(of).sum()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        // This order keeps a free in between from making the result negative.
        let freed = self.sum(|state| state.freed_bytes.load(Ordering::Relaxed));
        self.sum(|state| state.made_bytes.load(Ordering::Relaxed)).saturating_sub(freed)
    }

    /// Returns the live bytes, and updates the peak. Called at a query, when a bucket is opened or
    /// retired, or a lone block is made or resized. So the peak may miss blocks in current buckets.
    pub(super) fn note_peak(&self) -> u64 {
        let live = self.live_bytes();
        if self.is_process_heap() {
            let blocks = || self.made().wrapping_sub(self.freed());
            leaks::note_live(self.reporter.now(), self.sequence_now(), blocks, live);
        }
        // Only a new peak needs a locked instruction.
        if live > self.peak_live.load(Ordering::Relaxed) {
            self.peak_live.fetch_max(live, Ordering::Relaxed);
        }
        live
    }

    pub(in crate::debug) fn peak(&self) -> u64 {
        self.note_peak();
        self.peak_live.load(Ordering::Relaxed)
    }

    /// Returns the last sequence number, which some thread may still hold in reserve.
    pub(in crate::debug) fn sequence_now(&self) -> u32 {
        self.sequence.load(Ordering::Relaxed)
    }

    pub(crate) fn made_bytes(&self) -> u64 {
        self.sum(|state| state.made_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn made(&self) -> u64 {
        self.sum(|state| state.made.load(Ordering::Relaxed))
    }

    pub(crate) fn freed(&self) -> u64 {
        self.sum(|state| state.freed.load(Ordering::Relaxed))
    }

    /// Leaves out of the counts the library's own block, which was made to prepare this thread.
    pub(in crate::debug) fn leave_out_own_block(&'static self) {
        if let Some(entered) = self.enter() {
            entered.state().count_one_less();
        }
    }

    pub(in crate::debug) fn print_figures(&'static self) {
        let (mut captures, mut memo_hits, mut depot_hits, mut rules) = (0, 0, 0, 0);
        let (mut stacks, mut stack_bytes) = (0, 0);
        for state in self.all_states() {
            // SAFETY: other threads may be in their states, but only counts are read, at the end.
            let counts = unsafe { state.mine() }.scratch.counts();
            captures += counts.captures as usize;
            memo_hits += counts.memo_hits as usize;
            depot_hits += counts.depot_hits as usize;
            rules += counts.rule_misses as usize;
            (stacks, stack_bytes) = (counts.stacks as usize, counts.bytes as usize);
        }
        let (buckets, bytes, records, history) = {
            let Some(store) = self.store.lock_soon() else { return };
            (store.open_buckets, store.open_bytes, store.side.used(), store.history())
        };
        let live = self.made().wrapping_sub(self.freed()) as usize;
        let line = Line::new().text("debug: buckets=").number(buckets);
        let line = line.text(" bucket_bytes=").number(bytes).text(" live=").number(live);
        let line = line.text(" record_bytes=").number(records);
        let line = line.text(" history_bytes=").number(history);
        let line = line.text(" threads=").number(self.threads.count() as usize);
        let line = line.text(" captures=").number(captures);
        let line = line.text(" memo_hits=").number(memo_hits);
        let line = line.text(" depot_hits=").number(depot_hits);
        let line = line.text(" rules=").number(rules);
        let line = line.text(" stacks=").number(stacks);
        line.text(" stack_bytes=").number(stack_bytes).write();
    }

    pub(crate) fn buckets(&self) -> (usize, usize) {
        let store = self.store.lock();
        (store.open_buckets, store.side.used())
    }
}
