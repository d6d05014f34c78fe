//! Guarded blocks of fast mode: a few blocks of a program in production stand between guard pages.
//!
//! ```text
//!   drawn          draws a block --> sample(request, draw)  --> one page between two guards, or a span of its own
//!   door           free, realloc, size: the *block* decides -->  the same records and checks as in mode=debug
//!   fault          an access to a guard                     -->  one report: block, stacks, thread; then the end
//!
//!   memory=BYTES (4 MiB)   half: what live blocks take of the address space, guards included (8 KiB a small block)
//!                          half: freed blocks that are remembered, each without a page, behind a guard
//! ```
//!
//! It is a debug heap of its own beside the fast heap: the process does not debug, so no other call
//! comes here. What it finds is told in the debug heap's words, on standard error and in the record
//! (`record=`), which `heapwright report` reads.
//!
//! **What ends the process.** What ends it in fast mode (a free of what is no block in use), once
//! it is reported in full; and an access to a guard, as a fault does. What fast mode would not have
//! noticed (bytes beside a block that were changed, found when it is freed or at exit) is reported,
//! and the program goes on. Which call made a block, and the size that a free gives, are not judged
//! in fast mode. In hardened mode they are ([`made`]), and all that is found ends the process, or
//! with `on_misuse=report` nothing but a fault does.
//!
//! **What it may cost.** Live blocks take as many bytes of addresses as half of `memory` (blocks in
//! pages half of that in memory), and blocks up to an eighth of it are guarded. Then: 24 KiB for
//! each thread that had one, 1 KiB for seven blocks, and up to [`STACKS`] of stacks.
//!
//! Called by `drawn`, and by `stats`.

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

/// Bytes that guarded blocks, and the memory of them, may take where `memory=` does not say.
const MEMORY: usize = 4 << 20;
/// Bytes that stacks may take.
const STACKS: usize = 32 << 20;

static HEAP: AtomicPtr<Slot<Heap>> = AtomicPtr::new(ptr::null_mut());
static MAKING: Lock<()> = Lock::new(());
/// Bytes of addresses that live blocks may take.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// The process that had its last look.
static ENDED: AtomicU32 = AtomicU32::new(0);

fn heap() -> Option<&'static Heap> {
    // SAFETY: null, or a heap, which is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
}

/// Reads what the options say. The caller starts the fast heap, and is alone.
#[cold]
pub(crate) fn start(options: &Options) {
    let memory = if options.debug.memory == 0 { MEMORY } else { options.debug.memory };
    MOST.store(memory / 2, Ordering::Relaxed);
}

/// A fork waits until no thread makes the heap: a child would never have one.
pub(super) fn before_fork() {
    MAKING.acquire();
}

/// Gives the lock back.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
    unsafe { MAKING.release() };
}

/// Makes the heap of guarded blocks, at the first of them: it takes some 100 page faults, which a
/// process that has none is spared. `None`: there is no memory for it, or another thread makes it
/// just now.
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
        // (The hardened heap looks at these itself.)
        detect: Detect { mismatch: false, size: false, ..detect },
        // The other half.
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

/// A guarded block for a request. `None`: there can be none just now, or its stack is not new and
/// had to be.
///
/// The caller has interrupted nothing of the heap's, and holds none of its locks.
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

/// Whether an address is in memory of guarded blocks, in use or freed.
pub(crate) fn has(address: usize) -> bool {
    span(address).is_some()
}

#[inline]
fn span(address: usize) -> Option<(&'static Heap, &'static Span)> {
    let span = Span::of(address)?;
    let heap = heap()?;
    (span.heap.load(Ordering::Relaxed) == heap.id()).then_some((heap, span))
}

/// Frees a block. What is wrong with it is reported, and ends the process.
///
/// # Safety
///
/// [`has`]; if the block is in use, nobody uses it afterwards. The caller has interrupted nothing
/// of the heap's.
pub(crate) unsafe fn free(block: *mut u8, what: Return) {
    if let Some((heap, span)) = span(block.addr()) {
        // SAFETY: if the block is in use, nobody uses it afterwards, as the caller promises.
        unsafe { heap.free(span, block.addr(), what) };
    }
}

/// What is known of a live block.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    /// The call that made it, and the alignment that was asked for.
    pub(crate) origin: Origin,
    pub(crate) align: usize,
    /// The bytes asked for.
    pub(crate) size: usize,
}

/// How the live block that begins at an address was made. `None`: none does.
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

/// The bytes that were asked for of a block. What is no block in use is reported, and ends the
/// process.
pub(crate) fn size(block: *const u8, what: Return) -> usize {
    let size = span(block.addr()).and_then(|(heap, span)| heap.size_of(span, block.addr(), what));
    size.unwrap_or(0)
}

/// Calls `visit` with the address and the bytes of each live block of the span that begins at
/// `unit`, which is a debug heap's, while it returns true; and with the heap's number. Returns
/// whether it always did.
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

/// Live blocks and their bytes.
pub(crate) fn live() -> (u64, u64) {
    heap().map_or((0, 0), |heap| (heap.made().wrapping_sub(heap.freed()), heap.live_bytes()))
}

/// Blocks made and freed so far, and the bytes asked for.
pub(crate) fn counts() -> (u64, u64, u64) {
    heap().map_or((0, 0, 0), |heap| (heap.made(), heap.freed(), heap.made_bytes()))
}

/// The last look, once a process: bytes beside blocks that were never freed.
pub(crate) fn at_exit() {
    let Some(heap) = heap() else { return };
    let process = os::process_id();
    if !substrate::is_original_process() || ENDED.swap(process, Ordering::Relaxed) == process {
        return;
    }
    heap.sweep_last();
    heap.reporter.end(0, heap.made(), heap.freed(), heap.peak());
}
