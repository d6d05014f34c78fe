//! The process's debug heap, which serves `malloc` with `mode=debug`.
//!
//! `hooks` calls these functions for every call of `malloc` and `free`. They serve requests, free
//! blocks in spans, and report pointers that lead to no block. The fast heap handles all other
//! blocks: of the C library, of first-class heaps in Rust, and those made before this heap.

use core::ffi::c_void;
use core::ptr;

use heapwright_record::debug::{self as record, NOT_CHECKED, NOT_STARTED, Occasion, Region};

use crate::address_map::{Entry, Kind, MAP};
use crate::chunk;
use crate::describe::{self, BlockState, Description};
use crate::files::{Path, Prefix};
use crate::ids::Slot;
use crate::libc_block;
use crate::options;
use crate::os::{self, Contents};
use crate::recorder;
use crate::stacks::{self, Stack, module_of};
use crate::substrate;
use crate::sync;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::text::Line;
use crate::ticks;
use crate::verdict::Verdict;

use super::heap::Heap;
use super::heap::bounds::{self, Asked};
use super::heap::keep;
use super::heap::of_block;
use super::leak_check::LeakCheck;
use super::leaks;
use super::poisoned;
use super::slot::State;
use super::span::{Form, Found, Span};
use super::{HEAPS, join_forks, take_heap};
use crate::request::{Origin, Request, Return};

static HEAP: AtomicPtr<Slot<Heap>> = AtomicPtr::new(ptr::null_mut());
static ENDED: AtomicU32 = AtomicU32::new(0);

fn heap() -> Option<&'static Heap> {
    // SAFETY: the pointer is null or a heap, which is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
}

/// Runs a leak check now over all blocks of `malloc`. Returns the sums. The leaks are also written
/// to the record (option `record`), and printed like findings.
///
/// The program stops while its threads publish their registers and the kernel copies its page
/// tables. Then a copy of the process works, and this call waits. Takes time in proportion to the
/// live bytes.
///
/// Returns `None` if the mode is not `debug`, if another check runs, in a sandbox, or without
/// `/proc` or memory.
///
/// ```
/// // Not in mode=debug:
/// assert!(heapwright::debug::check_leaks().is_none());
/// ```
#[must_use]
pub fn check_leaks() -> Option<LeakCheck> {
    leaks::check(heap()?, Occasion::Call)
}

pub(crate) fn prepare() {
    if let Some(heap) = heap() {
        heap.leave_out_own_block();
    }
    begin_record();
    leaks::prepare();
}

/// Begins the record now, so that a process that is killed later has a record, too.
fn begin_record() {
    if let Some(heap) = heap() {
        heap.reporter.begun_recorder();
    }
}

/// Returns false if the check must wait.
#[cfg_attr(miri, allow(dead_code, reason = "there are no leak checks"))]
pub(super) fn check_at_signal() -> bool {
    heap().is_none_or(|heap| leaks::begin(heap, Occasion::Signal))
}

/// Makes the process's debug heap if the options want one. Call this before other threads run.
#[cold]
#[inline(never)]
pub(crate) fn start() -> bool {
    let options = options::get();
    if !options.debugs {
        return false;
    }
    let Some(slot) = take_heap() else { return false };
    slot.value.begin(slot.id(), &options.debug);
    slot.value.fill_fresh_blocks();
    if let Some(prefix) = options::record_file() {
        slot.value.reporter.record_to(prefix);
    }
    if let Some(path) = options::rules_file() {
        crate::stacks::share(path);
        crate::spill::share(path);
    }
    if let Some(path) = options::sites_file()
        && !slot.value.flagged.read(path)
    {
        let line = Line::new().text("option \"sites\": \"").bytes(path.to_bytes());
        line.text("\" is no record of an earlier run (ignored)").write();
    }
    slot.value.become_process_heap();
    HEAP.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
    true
}

/// The caller must hold no lock.
pub(crate) fn begun() {
    join_forks();
}

#[inline]
fn of(span: &Span) -> Option<&'static Heap> {
    let id = span.heap.load(Ordering::Relaxed);
    heap().filter(|heap| heap.id() == id).or_else(|| HEAPS.get(id))
}

/// `None`: the fast heap serves the request. In a signal handler that interrupted a holder of the
/// heap's locks, the debug heap would wait for itself, but the fast heap does not.
#[inline(never)]
pub(crate) fn allocate(request: Request) -> Option<*mut u8> {
    let heap = heap().filter(|_| !sync::is_interrupted())?;
    ticks::come_by();
    if ticks::is_to_trim() {
        chunk::purge_all(0);
    }
    Some(heap.allocate(request))
}

/// # Safety
///
/// If the block is in use, no code uses it afterwards.
#[inline(never)]
pub(crate) unsafe fn free(block: *mut u8, what: Return) -> bool {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        // SAFETY: the caller promises that no code uses the block afterwards.
        unsafe { heap.free(span, address, what) };
        return true;
    }
    report_if_foreign(address, what)
}

#[cold]
pub(crate) fn refuse(address: usize, what: Return) {
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        return heap.of_another(span, address, what);
    }
    if let Some(heap) = heap() {
        heap.foreign(address, what, region(address));
    }
}

/// # Safety
///
/// As for `realloc`.
#[inline(never)]
pub(crate) unsafe fn realloc(block: *mut u8, what: Return, request: Request) -> Option<*mut u8> {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        // SAFETY: the caller promises that only the returned block is used afterwards.
        return Some(unsafe { heap.realloc(span, address, what, request) });
    }
    // As for a null pointer, the program continues with a new block.
    if !report_if_foreign(address, what) {
        return None;
    }
    Some(heap()?.allocate_for(what.call, request))
}

/// Returns a block's size, 0 if the pointer was reported, or `None` for another allocator's block.
pub(crate) fn usable_size(block: *const u8, what: Return) -> Option<usize> {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        return Some(heap.size_of(span, address, what).unwrap_or(0));
    }
    report_if_foreign(address, what).then_some(0)
}

/// Reports a pointer that is in no live span, or returns false for another allocator's block.
#[cold]
fn report_if_foreign(address: usize, what: Return) -> bool {
    let Some(heap) = heap() else { return false };
    let region = match MAP.lookup(address).1.kind() {
        // The unit belonged to a span that ended.
        Kind::Debug | Kind::DebugRest(_) => Some(Region::Nothing),
        _ => region_unless_block(address),
    };
    let Some(region) = region else { return false };
    heap.foreign(address, what, region);
    true
}

pub(super) fn region(address: usize) -> Region {
    region_unless_block(address).unwrap_or(Region::OtherHeap)
}

fn region_unless_block(address: usize) -> Option<Region> {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Foreign if libc_block::has(address) => None,
        Kind::Foreign => Some(region_of(address)),
        Kind::PoolHead | Kind::PoolRest(_) => Some(Region::Pool),
        Kind::Arena => Some(Region::Arena),
        Kind::Collected(_) | Kind::CollectedRest(_) => Some(Region::Collected),
        Kind::Metadata => Some(Region::Metadata),
        Kind::Free | Kind::Kept | Kind::Guard => Some(Region::Nothing),
        Kind::Slab(_) | Kind::LargeHead | Kind::LargeRest(_) => None,
        Kind::Debug | Kind::DebugRest(_) => None,
    }
}

fn region_of(address: usize) -> Region {
    let (contents, mapping) = match os::what_is_at(address) {
        Ok(Some(found)) => found,
        Ok(None) => return Region::Nothing,
        Err(_) => return Region::Unknown,
    };
    match contents {
        Contents::Stack | Contents::MainStack => Region::Stack,
        Contents::Data => Region::Globals,
        Contents::Code => Region::Code,
        Contents::Break => Region::OtherHeap,
        // A library's zeroed data has no name.
        Contents::Anonymous if mapping.name().is_empty() && module_of(address).is_some() => {
            Region::Globals
        }
        Contents::Anonymous | Contents::Special | Contents::Other => Region::Mapping,
    }
}

#[inline(always)]
pub(crate) fn holds(head: usize, is_rest: bool, address: usize, bytes: usize) -> bool {
    Span::holds(head, is_rest, address, bytes)
}

pub(crate) fn room(unit: usize, entry: Entry, address: usize) -> usize {
    Span::of_entry(unit, entry).map_or(0, |span| bounds::room(span, address))
}

#[cold]
pub(crate) fn out_of_bounds(asked: Asked) {
    if let Some(span) = Span::of(asked.address)
        && let Some(heap) = of(span)
    {
        return heap.out_of_bounds(span, asked);
    }
    if let Some(heap) = heap() {
        heap.out_of_others_bounds(asked, region(asked.address));
    }
}

pub(crate) fn poison(address: usize, bytes: usize, poisons: bool) {
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        heap.poison(span, address, bytes, poisons);
    }
}

pub(crate) fn poisoned_bytes(address: usize, most: usize) -> Option<usize> {
    let span = Span::of(address)?;
    let left = bounds::left(span, address).min(most);
    Some(if span.has_poison() { poisoned::poisoned_bytes(address, left) } else { 0 })
}

pub(crate) fn block_history(address: usize, was_freed: bool) -> Option<(u32, &'static [usize])> {
    let Found::Slot(place) = Span::of(address)?.locate(address) else { return None };
    let word = place.record().word();
    let block = of_block(place, word);
    let moment = if was_freed { block.freed } else { block.allocated };
    let is_known = word.state() != State::Unused && !moment.is_unknown();
    is_known.then(|| (moment.thread, stacks::frames(Stack(moment.stack))))
}

pub(crate) fn is_owned(address: usize) -> bool {
    let Some(Found::Slot(place)) = Span::of(address).map(|span| span.locate(address)) else {
        return false;
    };
    let word = place.record().word();
    let origin = Origin::of_record(record::Origin::from_u8(word.origin()));
    word.state() == State::Live && matches!(origin, Origin::Pool | Origin::Arena | Origin::Heap)
}

pub(crate) fn keep(address: usize, kept: bool) {
    keep::keep(address, kept);
}

pub(crate) fn keep_new(kept: bool) {
    if let Some(heap) = heap() {
        heap.keep_new(kept);
    }
}

pub(crate) fn live() -> (u64, u64) {
    heap().map_or((0, 0), |heap| (heap.made().wrapping_sub(heap.freed()), heap.live_bytes()))
}

pub(crate) fn counts() -> (u64, u64, u64) {
    heap().map_or((0, 0, 0), |heap| (heap.made(), heap.freed(), heap.made_bytes()))
}

pub(crate) fn find_block(address: usize) -> Option<Description> {
    let span = Span::of(address)?;
    let Found::Slot(place) = span.locate(address) else { return None };
    let word = place.record().word();
    if word.state() == State::Unused {
        return None;
    }
    let block = place.block().addr();
    Some(Description {
        kind: describe::Kind::Debug,
        state: if word.state() == State::Live { BlockState::InUse } else { BlockState::Free },
        block,
        size: place.size(word),
        offset: address.wrapping_sub(block),
        owner: span.heap.load(Ordering::Relaxed),
        class: if span.form() == Form::Small { span.class() as u32 } else { 0 },
        is_poisoned: span.has_poison() && poisoned::poisoned_bytes(address, 1) == 1,
    })
}

#[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
pub(crate) fn fault(address: usize, is_write: Option<bool>, context: *mut c_void) -> Verdict {
    let Some(span) = Span::of(address) else { return Verdict::NotOurs };
    match of(span) {
        Some(heap) => super::fault::judge(heap, span, address, is_write, context),
        None => Verdict::NotOurs,
    }
}

pub(crate) fn put_guard_back(address: usize) {
    if let Some(heap) = heap() {
        super::unprotect::put_back(heap, address);
    }
}

pub(crate) fn lift_guards(address: usize, bytes: usize) -> bool {
    heap().is_some_and(|heap| super::unprotect::unprotect_range(heap, address, bytes))
}

pub(crate) fn put_guards_back(address: usize, bytes: usize) {
    if let Some(heap) = heap() {
        super::unprotect::put_range_back(heap, address, bytes);
    }
}

pub(crate) fn give_up_reserve() {
    if let Some(heap) = heap()
        && !is_interrupted()
    {
        heap.lock_store().side.give_up_reserve();
    }
}

pub(crate) fn is_guarded(address: usize) -> bool {
    heap().is_some_and(|heap| super::unprotect::is_guarded(heap, address))
}

pub(crate) fn remember_code() {
    let Some(heap) = heap() else { return };
    if !substrate::is_original_process() {
        return;
    }
    if let Some(mut recorder) = heap.reporter.begun_recorder() {
        os::each_data_segment(&mut |from, _| recorder.put_module(from));
        recorder.flush();
    }
}

pub(crate) fn forget_code() {
    crate::stacks::forget_code();
    if let Some(heap) = heap() {
        heap.forget_modules();
    }
}

/// Takes no lock, because a child of `vfork` may call this.
pub(crate) fn give_record(from: u32, to: u32) {
    let Some(prefix) = options::record_file().filter(|prefix| prefix.starts_with(b"/")) else {
        return;
    };
    let mut path = Prefix::none();
    path.set(prefix);
    path.give(os::process_id(), from, to);
}

/// Takes no lock, like [`give_record`].
pub(crate) fn note_process(what: &str, process: u32, words: &[&[u8]]) {
    const MOST: usize = 256;
    let text = Path::none().with(what.as_bytes()).with_number(process);
    note(
        &words.iter().fold(text, |text, word| text.with(b" ").with(&word[..word.len().min(MOST)])),
    );
}

pub(crate) fn note_unchecked(process: u32, program: &[u8]) {
    note_process(NOT_CHECKED, process, &[program]);
}

pub(crate) fn note_not_started(process: u32) {
    note_process(NOT_STARTED, process, &[]);
}

fn note(text: &Path) {
    if let Some(prefix) = options::record_file().filter(|prefix| prefix.starts_with(b"/")) {
        let mut path = Prefix::none();
        path.set(prefix);
        recorder::note(&path, &text.as_bytes()[..text.length()]);
    }
}

pub(crate) fn looks_at_end() -> bool {
    options::get().debugs && (options::leaks().at_exit || options::record_file().is_some())
}

pub(crate) fn is_interrupted() -> bool {
    sync::is_interrupted() || heap().is_some_and(Heap::is_entered_here)
}

/// Runs the checks at the process's end, once. `signal` is 0 at a normal exit.
pub(crate) fn at_exit(signal: u32) {
    let Some(heap) = heap() else { return };
    let process = os::process_id();
    if !substrate::is_original_process() || ENDED.swap(process, Ordering::Relaxed) == process {
        return;
    }
    begin_record();
    heap.sweep_last();
    if options::leaks().at_exit {
        leaks::check_at_exit(heap);
    }
    if options::stats_at_exit() {
        heap.print_figures();
    }
    heap.reporter.end(signal, heap.made(), heap.freed(), heap.peak());
}
