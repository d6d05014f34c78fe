//! Guarded blocks of fast mode: a few blocks of a production program get guard pages.
//!
//! ```text
//!   drawn   draws a block: sample(request, draw)      a page between two guards, or its own span
//!   heap    free, realloc, size: the *block* decides  the records and checks of mode=debug
//!   fault   an access to a guard                      a report: block, stacks, thread; the end
//!
//!   memory=BYTES (4 MiB)   half   addresses of live blocks and guards (8 KiB a small block)
//!                          half   freed blocks that are remembered, guarded and without pages
//! ```
//!
//! A debug heap holds these blocks, next to the fast heap. The process is not in debug mode, so
//! only calls on guarded blocks arrive here. Findings use the debug heap's texts and record.
//!
//! **Ends of the process.** An invalid free, or an access to a guard, ends the process after a full
//! report. After a report of changed bytes beside a block, the program continues, because fast mode
//! without guards would not notice these bytes. Fast mode does not judge the call that made a block
//! or the size given to a free. Hardened mode judges both ([`made`]). There every finding ends the
//! process, but with `on_misuse=report` only a fault does.
//!
//! **Cost.** Live blocks take at most half of `memory` in addresses. Blocks up to an eighth of
//! `memory` are guarded. Metadata adds 24 KiB for each thread that had a guarded block, 1 KiB for
//! seven blocks, and up to [`STACKS`] for stacks. Called by `drawn`, `hooks`, `stats` and `walk`.

use core::ptr::{self, NonNull};

use heapwright_record::debug as record;

use crate::cache::draw::Draw;
use crate::ids::Slot;
use crate::options::{self, Hardening, Options};
use crate::os;
use crate::request::{Origin, Request, Return};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::text::Line;

use super::heap::Heap;
use super::report::Ends;
use super::slot::State;
use super::span::{Found, Span, Stage};
use super::take_heap;
use crate::options::debug::{Config, Detect, Guard};

const MEMORY: usize = 4 << 20;
const STACKS: usize = 32 << 20;

static HEAP: AtomicPtr<Slot<Heap>> = AtomicPtr::new(ptr::null_mut());
static MAKING: Lock<()> = Lock::new(());
/// The most bytes of addresses for live blocks.
static MOST: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

fn heap() -> Option<&'static Heap> {
    // SAFETY: the pointer is null or a heap, which is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
}

#[cold]
pub(crate) fn start(options: &Options) {
    let memory = if options.debug.memory == 0 { MEMORY } else { options.debug.memory };
    MOST.store(memory / 2, Ordering::Relaxed);
}

/// Waits until no thread makes the heap. Otherwise the lock would stay held in the child.
pub(super) fn before_fork() {
    MAKING.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
    unsafe { MAKING.release() };
}

/// Makes the heap when the first block is drawn, because it costs some 100 page faults. Returns
/// `None` without memory, or if another thread makes the heap.
#[cold]
#[inline(never)]
fn make() -> Option<&'static Heap> {
    let _making = MAKING.try_lock()?;
    if let Some(heap) = heap() {
        return Some(heap);
    }
    let options = options::get();
    let slot = take_heap()?;
    let heap = &slot.value;
    let (detect, ends) = match (options.hardening, options.reports_misuse) {
        (Hardening::Off, _) => (Detect::ALL, Ends::AtWrongPointers),
        (_, false) => (options.detect, Ends::Always),
        (_, true) => (options.detect, Ends::Never),
    };
    let config = Config {
        traces: options.debug.traces,
        guard: Guard::All,
        // The hardened heap checks these properties itself.
        detect: Detect { mismatch: false, size: false, ..detect },
        // The other half of `memory`.
        memory: MOST.load(Ordering::Relaxed),
        ..Config::DEFAULT
    };
    heap.begin(slot.id(), &config);
    heap.begin_for_guards(STACKS, ends);
    if let Some(prefix) = options::record_file() {
        heap.reporter.record_to(prefix);
    }
    if let Some(path) = options::sites_file()
        && !heap.flagged.read(path)
    {
        let line = Line::new().text("option \"sites\": \"").bytes(path.to_bytes());
        line.text("\" is no record of an earlier run (ignored)").write();
    }
    HEAP.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
    Some(heap)
}

/// Returns a guarded block, or `None` if none is available now. With [`Draw::IfNew`], only a new or
/// flagged stack gets one. The caller must be outside of the heap, and hold none of its locks.
pub(crate) fn sample(request: Request, draw: Draw) -> Option<NonNull<u8>> {
    let most = MOST.load(Ordering::Relaxed);
    if request.size > most / 4 || request.align > most / 4 {
        return None;
    }
    let heap = match heap() {
        Some(heap) => heap,
        None => make()?,
    };
    heap.allocate_guarded(request, draw, most)
}

/// Returns whether an address is in the memory of guarded blocks, in use or freed.
pub(crate) fn has(address: usize) -> bool {
    span(address).is_some()
}

#[inline]
fn span(address: usize) -> Option<(&'static Heap, &'static Span)> {
    let span = Span::of(address)?;
    let heap = heap()?;
    (span.heap.load(Ordering::Relaxed) == heap.id()).then_some((heap, span))
}

/// Frees a block. A mistake is reported, and may end the process ([`Ends`]).
///
/// # Safety
///
/// [`has`] is true for the block; if it is in use, no code uses it afterwards. The caller has not
/// interrupted the heap.
pub(crate) unsafe fn free(block: *mut u8, what: Return) {
    if let Some((heap, span)) = span(block.addr()) {
        // SAFETY: the caller promises that no code uses the block afterwards.
        unsafe { heap.free(span, block.addr(), what) };
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) origin: Origin,
    pub(crate) align: usize,
    pub(crate) size: usize,
}

pub(crate) fn made(address: usize) -> Option<Made> {
    let (_, span) = span(address)?;
    let Found::Slot(place) = span.locate(address) else { return None };
    let word = place.record().word();
    if !place.is_live_at(word, address) {
        return None;
    }
    let origin = Origin::of_record(record::Origin::from_u8(word.origin()));
    Some(Made { origin, align: word.align(), size: place.size(word) })
}

/// Returns a block's requested bytes, or reports that no block in use begins there ([`Ends`]).
pub(crate) fn size(block: *const u8, what: Return) -> usize {
    let size = span(block.addr()).and_then(|(heap, span)| heap.size_of(span, block.addr(), what));
    size.unwrap_or(0)
}

/// Visits the live blocks of the debug span at `unit`: address, bytes, and the heap's number. Stops
/// and returns false if `visit` does.
pub(crate) fn each_live_at(unit: usize, visit: &mut dyn FnMut(usize, usize, u32) -> bool) -> bool {
    let Some(heap) = heap() else { return true };
    let Some(span) = Span::heading(unit, heap.id()) else { return true };
    for bucket in span.all_buckets().filter(|bucket| bucket.record().stage() == Stage::Open) {
        for place in bucket.slots() {
            let word = place.record().word();
            if word.state() == State::Live
                && !visit(place.block().addr(), place.size(word), heap.id())
            {
                return false;
            }
        }
    }
    true
}

pub(crate) fn live() -> (u64, u64) {
    heap().map_or((0, 0), |heap| (heap.made().wrapping_sub(heap.freed()), heap.live_bytes()))
}

pub(crate) fn counts() -> (u64, u64, u64) {
    heap().map_or((0, 0, 0), |heap| (heap.made(), heap.freed(), heap.made_bytes()))
}

/// Checks the bytes beside all blocks at the process's end, once.
pub(crate) fn at_exit() {
    let Some(heap) = heap() else { return };
    let process = os::process_id();
    if !substrate::is_original_process() || ENDED.swap(process, Ordering::Relaxed) == process {
        return;
    }
    heap.sweep_last();
    heap.reporter.end(0, heap.made(), heap.freed(), heap.peak());
}
