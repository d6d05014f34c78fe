//! The options of a heap: its sizes, its limits, and the promises of the runtime.
//!
//! Kept by `space`.

pub use super::abi::{
    GC_STRESS as STRESS, GC_VERIFY_BARRIERS as VERIFY_BARRIERS, GC_VERIFY_HEAP as VERIFY_HEAP,
};
use super::layout::Layout;

/// The options of a heap. [`Options::new`] suits most heaps.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// The size of this struct, as the caller knows it.
    pub size: usize,
    /// The pools' slot sizes.
    pub layout: Layout,
    /// The memory target, in percent of the live bytes. 0: 200.
    pub factor_percent: u32,
    /// The checks: `VERIFY_HEAP`, `VERIFY_BARRIERS`, `STRESS`.
    pub verify: u32,
    /// Bytes that each mutator may always allocate between two collections. 0: 4 MiB.
    pub least: usize,
    /// Bytes of pages and external memory beyond which no page is taken. 0: no limit.
    pub most: usize,
    /// The longest step on the allocation path, in nanoseconds, of an incremental heap.
    /// 0: 500,000.
    pub step_ns: u64,
    /// Whether the runtime reports all stores, so that marking goes in steps.
    pub incremental: bool,
    /// Whether the runtime reports all stores, so that most collections need not visit objects that
    /// survived earlier ones: see [`Mutator::write`](super::raw::Mutator::write).
    pub generations: bool,
    /// If there is much to mark, helper threads are started until this many threads mark, the
    /// collector and the stopped mutators included. All stopped mutators mark, even if they are
    /// more. Helpers end after a second without work. 0: one thread for each processor, up to 4; 1:
    /// no helpers. Never more than the processors.
    pub markers: u32,
    /// Whether objects move when the heap has many more pages than its goal allows. Then the
    /// runtime reports every reference by its place
    /// ([`Tracer::mark_slot`](super::raw::Tracer::mark_slot),
    /// [`Tracer::mark_range`](super::raw::Tracer::mark_range), handles). An object with any other
    /// reference stays where it is, unless the runtime uses `Tracer::mark_movable`.
    pub compact: bool,
    /// Whether objects of a runtime without a `trace` are scanned word for word. Each word that may
    /// be an address within an object keeps that object alive and in place. Without this option,
    /// the objects of such a runtime hold no references.
    pub conservative: bool,
    /// Whether memory for traced objects keeps the contents of dead objects, as memory for leaf
    /// objects always does. Then, before the next safepoint, the runtime must write everything in a
    /// new object that its trace function reads.
    pub uncleared: bool,
}

impl Options {
    /// The defaults: the fine layout, twice the live bytes, marking in one step.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            size: size_of::<Self>(),
            layout: Layout::Fine,
            factor_percent: 0,
            verify: 0,
            least: 0,
            most: 0,
            step_ns: 0,
            incremental: false,
            generations: false,
            markers: 0,
            compact: false,
            conservative: false,
            uncleared: false,
        }
    }

    pub(crate) fn factor_percent(&self) -> usize {
        if self.factor_percent == 0 { 200 } else { self.factor_percent.max(101) as usize }
    }

    pub(crate) fn least_bytes(&self) -> usize {
        if self.least == 0 { 4 << 20 } else { self.least }
    }

    pub(crate) fn most_bytes(&self) -> usize {
        if self.most == 0 { usize::MAX } else { self.most }
    }

    pub(crate) fn step(&self) -> u64 {
        if self.step_ns == 0 { 500_000 } else { self.step_ns }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
