//! `DebugHeap`: the debug heap's handle for Rust programs.
//!
//! The first use makes the heap, so a handle can be a `static` and a `#[global_allocator]`.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use heapwright_record::debug::{Call, Finding};

use crate::ids::Slot;
use crate::options::{self, debug::Config};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, Ordering};

use super::heap::Heap;
use super::process;
use super::span::Span;
use super::{HEAPS, join_forks, take_heap};
use crate::request::{Origin, Request, Return};

/// The blocks that were live when a heap ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leaks {
    /// The number of blocks that were never freed.
    pub blocks: usize,
    /// The bytes requested for them.
    pub bytes: usize,
}

/// A heap that reports misuse of its blocks.
///
/// The idea comes from Zig's `DebugAllocator`. Apart from system calls, fills and copies, every
/// operation takes constant time. A heap takes about 100 KiB, and a block's record 24 bytes.
/// Mistakes are counted, and reported on standard error as they happen.
///
/// ```
/// use heapwright::debug::{Config, DebugHeap, FindingKind};
/// use std::alloc::{GlobalAlloc, Layout};
///
/// static HEAP: DebugHeap = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });
///
/// let layout = Layout::new::<u64>();
/// // SAFETY: the layout's size is not zero.
/// let block = unsafe { HEAP.alloc(layout) };
/// // SAFETY: the block is ours.
/// unsafe { HEAP.dealloc(block, layout) };
/// // SAFETY: a mistake, which the heap sees and does not do.
/// unsafe { HEAP.dealloc(block, layout) };
/// assert_eq!(HEAP.last_finding().unwrap().kind, FindingKind::DoubleFree);
/// ```
pub struct DebugHeap {
    config: Config,
    heap: AtomicPtr<Slot<Heap>>,
    starting: Lock<()>,
}

impl core::fmt::Debug for DebugHeap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DebugHeap").field("config", &self.config).finish_non_exhaustive()
    }
}

impl DebugHeap {
    /// Makes a handle with the settings of `config`. It allocates nothing before its first use.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self { config, heap: AtomicPtr::new(ptr::null_mut()), starting: Lock::new(()) }
    }

    #[inline]
    pub(super) fn heap(&self) -> Option<&'static Heap> {
        // SAFETY: the pointer is null or a heap, which is never freed.
        match unsafe { self.heap.load(Ordering::Acquire).as_ref() } {
            Some(slot) => Some(&slot.value),
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> Option<&'static Heap> {
        if !substrate::open(options::get) {
            return None;
        }
        // These calls come before another thread can find the heap and fork.
        substrate::begun();
        join_forks();
        let slot = {
            let _one = self.starting.lock();
            let slot = self.heap.load(Ordering::Acquire);
            // SAFETY: the pointer is null or a heap, which is never freed.
            if let Some(slot) = unsafe { slot.as_ref() } {
                return Some(&slot.value);
            }
            let slot = take_heap()?;
            slot.value.begin(slot.id(), &self.config);
            self.heap.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
            slot
        };
        Some(&slot.value)
    }

    /// Returns the number of mistakes found, repetitions included.
    #[must_use]
    pub fn findings(&self) -> u32 {
        self.heap().map_or(0, |heap| heap.reporter.found())
    }

    /// Returns the last mistake found, if any.
    #[must_use]
    pub fn last_finding(&self) -> Option<Finding> {
        self.heap()?.reporter.last()
    }

    /// Returns the live blocks and their bytes, in time proportional to the address space.
    #[must_use]
    pub fn live(&self) -> Leaks {
        let mut leaks = Leaks::default();
        if let Some(heap) = self.heap() {
            heap.each_live(|place, word, _| {
                leaks.blocks += 1;
                leaks.bytes += place.size(word);
            });
        }
        leaks
    }

    /// Returns the most bytes in use at once, as requested. The number may miss small blocks in the
    /// threads' current buckets, because it changes when a bucket is opened or a large block is
    /// made.
    ///
    /// ```
    /// use heapwright::debug::{Config, DebugHeap};
    /// use std::alloc::{GlobalAlloc, Layout};
    ///
    /// let heap = DebugHeap::new(Config::DEFAULT);
    /// let layout = Layout::new::<[u8; 5000]>();
    /// // SAFETY: the layout's size is not zero.
    /// let block = unsafe { heap.alloc(layout) };
    /// assert_eq!(heap.peak_bytes(), 5000);
    /// // SAFETY: allocated above.
    /// unsafe { heap.dealloc(block, layout) };
    /// assert_eq!(heap.peak_bytes(), 5000);
    /// ```
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.heap().map_or(0, Heap::peak)
    }

    /// Checks all blocks, live and freed, and reports writes that no call has found yet. Takes time
    /// in proportion to the heap.
    pub fn sweep(&self) {
        if let Some(heap) = self.heap() {
            heap.sweep_all(Call::Sweep);
        }
    }

    /// Returns the number of buckets with a live block or a free slot, and the bytes of records.
    #[must_use]
    pub fn buckets(&self) -> (usize, usize) {
        self.heap().map_or((0, 0), Heap::buckets)
    }

    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn made(&self) -> Option<&'static Heap> {
        // SAFETY: the pointer is null or a heap, which is never freed.
        unsafe { self.heap.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// Ends the heap: reports live blocks as leaks, once for each place, and releases all memory.
    /// Takes time in proportion to the heap. Blocks that are still in use become invalid. No
    /// collection can still borrow the heap, because the call consumes the handle.
    ///
    /// ```
    /// use heapwright::debug::{Config, DebugHeap, Leaks};
    /// use std::alloc::{GlobalAlloc, Layout};
    /// let heap = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });
    /// // SAFETY: the layout's size is not zero.
    /// let _lost = unsafe { heap.alloc(Layout::new::<u64>()) };
    /// assert_eq!(heap.deinit(), Leaks { blocks: 1, bytes: 8 });
    /// ```
    pub fn deinit(self) -> Leaks {
        // SAFETY: the caller owned the handle, so no borrow of it exists.
        unsafe { self.end() }
    }

    /// Ends a heap in a `static`, like [`DebugHeap::deinit`]. The next use makes a new one.
    ///
    /// # Safety
    ///
    /// No other code uses the heap meanwhile, and none uses its blocks from now on.
    pub unsafe fn end(&self) -> Leaks {
        let slot = {
            let _one = self.starting.lock();
            self.heap.swap(ptr::null_mut(), Ordering::AcqRel)
        };
        // SAFETY: the pointer is null or a heap, which is never freed.
        let Some(slot) = (unsafe { slot.as_ref() }) else { return Leaks::default() };
        let heap = &slot.value;
        heap.sweep_all(Call::Exit);
        let leaks = heap.report_leaks(0);
        heap.reporter.end(0, heap.made(), heap.freed(), heap.peak());
        heap.clear();
        HEAPS.give(slot);
        leaks
    }
}

// SAFETY: each slot or span is handed out once until it is freed, with the size and alignment
// requested. `realloc` copies.
unsafe impl GlobalAlloc for DebugHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.heap().map_or(ptr::null_mut(), |heap| heap.allocate(request(layout, false)))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.heap().map_or(ptr::null_mut(), |heap| heap.allocate(request(layout, true)))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(heap) = self.heap() else { return };
        let what = given(Call::RustDealloc, layout);
        match self.span(block) {
            // SAFETY: the caller keeps the contract of `dealloc`, or the call becomes a finding.
            Some(span) => unsafe { heap.free(span, block.addr(), what) },
            None => heap.foreign(block.addr(), what, process::region(block.addr())),
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(heap) = self.heap() else { return ptr::null_mut() };
        let what = given(Call::RustRealloc, layout);
        // SAFETY: the caller promises that size and alignment make a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match self.span(block) {
            // SAFETY: the caller keeps the contract of `realloc`, or the call becomes a finding.
            Some(span) => unsafe { heap.realloc(span, block.addr(), what, request(new, false)) },
            None => {
                heap.foreign(block.addr(), what, process::region(block.addr()));
                heap.allocate(request(new, false))
            }
        }
    }
}

impl DebugHeap {
    fn span(&self, block: *mut u8) -> Option<&'static Span> {
        let id = self.heap()?.id();
        Span::of(block.addr()).filter(|span| span.heap.load(Ordering::Relaxed) == id)
    }
}

fn request(layout: Layout, zero: bool) -> Request {
    Request { size: layout.size(), align: layout.align(), zero, origin: Origin::Rust }
}

fn given(call: Call, layout: Layout) -> Return {
    Return { call, origin: Origin::Rust, size: Some(layout.size()), align: Some(layout.align()) }
}

impl Heap {
    /// Reports every live block with a sequence number beyond `since` as a leak.
    pub(super) fn report_leaks(&'static self, since: u32) -> Leaks {
        let mut leaks = Leaks::default();
        self.each_live(|place, word, sequence| {
            if sequence.wrapping_sub(since).cast_signed() <= 0 {
                return;
            }
            leaks.blocks += 1;
            leaks.bytes += place.size(word);
            self.report_leak(place, word);
        });
        leaks
    }
}
