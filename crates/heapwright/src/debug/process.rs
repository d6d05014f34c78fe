//! The process's debug heap: what `malloc` means where `mode=debug`.
//!
//! The table of the debug heap (`heap::modes`) asks here first. Requests are served; blocks are
//! taken back if they are in a span, or if they are nobody's, which is a finding; other blocks (the
//! C library's, first-class heaps', those from before) are left to `heap`.

use core::ffi::c_void;
use core::ptr;

use heapwright_record::debug::{Occasion, Region};

use crate::address_map::{Entry, Kind, MAP};
use crate::chunk;
use crate::describe::{self, BlockState, Description};
use crate::files::Prefix;
use crate::ids::Slot;
use crate::libc_block;
use crate::options;
use crate::os::{self, Contents};
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
use super::span::{Found, Span};
use super::{HEAPS, join_forks, take_heap};
use crate::request::{Request, Return};

static HEAP: AtomicPtr<Slot<Heap>> = AtomicPtr::new(ptr::null_mut());
/// The process that had its last look.
static ENDED: AtomicU32 = AtomicU32::new(0);

fn heap() -> Option<&'static Heap> {
    // SAFETY: null, or a heap, which is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
}

/// Looks for leaks in the blocks that `malloc` has handed out, now. What is found is in
/// the record as well (option `record`), with stacks, and printed where findings are.
///
/// The program stands still while its threads say what is in their registers and the
/// kernel copies its page tables; the rest is done in a copy of the process, for which
/// this waits. Time in proportion to what is live.
///
/// `None`: `malloc` is not the debug heap's (`mode=debug`), another check is under way,
/// there is no `/proc`, or there is no memory.
///
/// ```
/// // Not in mode=debug:
/// assert!(heapwright::debug::check_leaks().is_none());
/// ```
#[must_use]
pub fn check_leaks() -> Option<LeakCheck> {
    leaks::check(heap()?, Occasion::Call)
}

/// What a process that debugs needs before `main`: see `leaks`.
pub(crate) fn prepare() {
    begin_record();
    leaks::prepare();
}

/// Begins the record, where one is wanted: a process that is killed later has been here.
fn begin_record() {
    if let Some(heap) = heap() {
        heap.reporter.begun_recorder();
    }
}

/// Looks for leaks, because a signal came. False: not now, but soon.
#[cfg_attr(miri, allow(dead_code, reason = "there are no leak checks"))]
pub(super) fn check_at_signal() -> bool {
    heap().is_none_or(|heap| leaks::begin(heap, Occasion::Signal))
}

/// Makes the process's debug heap, where the options want one. The substrate is
/// open; the caller starts the heap, and is alone.
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

/// What must wait until the caller holds no lock.
pub(crate) fn begun() {
    join_forks();
}

/// The heap that an address in a span belongs to.
#[inline]
fn of(span: &Span) -> Option<&'static Heap> {
    let id = span.heap.load(Ordering::Relaxed);
    // The process's own, nearly always.
    heap().filter(|heap| heap.id() == id).or_else(|| HEAPS.get(id))
}

/// Serves a request. `None`: there is no debug heap.
#[inline(never)]
pub(crate) fn allocate(request: Request) -> Option<*mut u8> {
    let heap = heap()?;
    ticks::come_by();
    if ticks::is_to_trim() {
        chunk::purge_all(0);
    }
    Some(heap.allocate(request))
}

/// Takes a block back. False: it is somebody else's.
///
/// # Safety
///
/// If the block is in use, nobody uses it afterwards.
#[inline(never)]
pub(crate) unsafe fn free(block: *mut u8, what: Return) -> bool {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        // SAFETY: if the block is in use, nobody uses it afterwards, as the caller promises.
        unsafe { heap.free(span, address, what) };
        return true;
    }
    report_if_foreign(address, what)
}

/// Moves a block. `None`: it is somebody else's.
///
/// # Safety
///
/// As `realloc`.
#[inline(never)]
pub(crate) unsafe fn realloc(block: *mut u8, what: Return, request: Request) -> Option<*mut u8> {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        // SAFETY: if the block is in use, only the returned one is used afterwards, as the caller
        // promises.
        return Some(unsafe { heap.realloc(span, address, what, request) });
    }
    // As if it had given none: the program goes on with a new block.
    if !report_if_foreign(address, what) {
        return None;
    }
    Some(heap()?.allocate_for(what.call, request))
}

/// The bytes of a block. 0: the pointer was reported. `None`: another allocator made the block.
pub(crate) fn usable_size(block: *const u8, what: Return) -> Option<usize> {
    let address = block.addr();
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        return Some(heap.size_of(span, address, what).unwrap_or(0));
    }
    report_if_foreign(address, what).then_some(0)
}

/// Reports a pointer that is in no span and is no block of another heap or allocator. Returns
/// whether it did.
#[cold]
fn report_if_foreign(address: usize, what: Return) -> bool {
    let Some(heap) = heap() else { return false };
    let region = match MAP.lookup(address).1.kind() {
        // What was a span and is none now.
        Kind::Debug | Kind::DebugRest(_) => Some(Region::Nothing),
        _ => region_unless_block(address),
    };
    let Some(region) = region else { return false };
    heap.foreign(address, what, region);
    true
}

/// What is at an address that is no block of the heap that was asked.
pub(super) fn region(address: usize) -> Region {
    region_unless_block(address).unwrap_or(Region::OtherHeap)
}

/// What is at an address; `None`: it may be a block, of another heap or allocator.
fn region_unless_block(address: usize) -> Option<Region> {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Foreign if libc_block::has(address) => None,
        Kind::Foreign => Some(region_of(address)),
        Kind::PoolHead | Kind::PoolRest(_) => Some(Region::Pool),
        Kind::Arena => Some(Region::Arena),
        Kind::Collected(_) | Kind::CollectedRest(_) => Some(Region::Pool),
        Kind::Metadata => Some(Region::Metadata),
        Kind::Free | Kind::Kept | Kind::Guard => Some(Region::Nothing),
        Kind::Slab(_) | Kind::LargeHead | Kind::LargeRest(_) => None,
        Kind::Debug | Kind::DebugRest(_) => None,
    }
}

/// The kind of foreign memory that an address is in.
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
        // A library's zeroed data has no name of its own.
        Contents::Anonymous if mapping.name().is_empty() && module_of(address).is_some() => {
            Region::Globals
        }
        Contents::Anonymous | Contents::Special | Contents::Other => Region::Mapping,
    }
}

/// Whether `bytes` bytes at `address`, in a span that begins at unit `head`, are a live block's,
/// and none is poisoned: at a glance. False says nothing.
#[inline(always)]
pub(crate) fn holds(head: usize, is_rest: bool, address: usize, bytes: usize) -> bool {
    Span::holds(head, is_rest, address, bytes)
}

/// Bytes from an address in a span's unit to the end of the live block that it lies in; 0 where it
/// lies in none.
pub(crate) fn room(unit: usize, entry: Entry, address: usize) -> usize {
    Span::of_entry(unit, entry).map_or(0, |span| bounds::room(span, address))
}

/// Reports that a function of the C library was asked to access what no live block holds.
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

/// Poisons bytes of the live block that an address lies in, or no longer.
pub(crate) fn poison(address: usize, bytes: usize, poisons: bool) {
    if let Some(span) = Span::of(address)
        && let Some(heap) = of(span)
    {
        heap.poison(span, address, bytes, poisons);
    }
}

/// How many bytes from an address on are poisoned without a gap, at most so many. `None`: it is in
/// no debug heap's unit.
pub(crate) fn poisoned_bytes(address: usize, most: usize) -> Option<usize> {
    let span = Span::of(address)?;
    let left = bounds::left(span, address).min(most);
    Some(if span.has_poison() { poisoned::poisoned_bytes(address, left) } else { 0 })
}

/// Where the block that an address lies in was made, or freed: the number of the thread, and the
/// stack. `None`: there is no such block, or it was not freed.
pub(crate) fn block_history(address: usize, was_freed: bool) -> Option<(u32, &'static [usize])> {
    let Found::Slot(place) = Span::of(address)?.locate(address) else { return None };
    let word = place.record().word();
    let block = of_block(place, word);
    let moment = if was_freed { block.freed } else { block.allocated };
    let is_known = word.state() != State::Unused && !moment.is_unknown();
    is_known.then(|| (moment.thread, stacks::frames(Stack(moment.stack))))
}

/// Keeps the block that an address lies in: it is no leak. Or does not keep it any more.
pub(crate) fn keep(address: usize, kept: bool) {
    keep::keep(address, kept);
}

/// Keeps what the calling thread allocates from now on, or does not any more.
pub(crate) fn keep_new(kept: bool) {
    if let Some(heap) = heap() {
        heap.keep_new(kept);
    }
}

/// Live blocks and their bytes.
pub(crate) fn live() -> (u64, u64) {
    heap().map_or((0, 0), |heap| (heap.made().wrapping_sub(heap.freed()), heap.live_bytes()))
}

/// Blocks handed out and taken back so far, and the bytes asked for.
pub(crate) fn counts() -> (u64, u64, u64) {
    heap().map_or((0, 0, 0), |heap| (heap.made(), heap.freed(), heap.made_bytes()))
}

/// The block of a span that an address lies in. `None`: in none, or between blocks.
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
        class: span.class() as u32,
        is_poisoned: span.has_poison() && poisoned::poisoned_bytes(address, 1) == 1,
    })
}

/// A fault: see `fault`.
#[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
pub(crate) fn fault(address: usize, is_write: Option<bool>, context: *mut c_void) -> Verdict {
    let Some(span) = Span::of(address) else { return Verdict::NotOurs };
    match of(span) {
        Some(heap) => super::fault::judge(heap, span, address, is_write, context),
        None => Verdict::NotOurs,
    }
}

/// Puts the guard of an address's page back, after the one access that it was lifted for.
pub(crate) fn put_guard_back(address: usize) {
    if let Some(heap) = heap() {
        super::lift::put_back(heap, address);
    }
}

/// Removes the guards in a range for one call of the kernel. False: there are none, or they stay.
pub(crate) fn lift_guards(address: usize, bytes: usize) -> bool {
    heap().is_some_and(|heap| super::lift::lift_range(heap, address, bytes))
}

/// Puts the guards in a range back after the call for which they were removed.
pub(crate) fn put_guards_back(address: usize, bytes: usize) {
    if let Some(heap) = heap() {
        super::lift::put_range_back(heap, address, bytes);
    }
}

/// Whether the page of an address is a guard.
pub(crate) fn is_guarded(address: usize) -> bool {
    heap().is_some_and(|heap| super::lift::is_guarded(heap, address))
}

/// Code may be unmapped: the record, if one is wanted, learns of all modules.
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

/// Code was unmapped.
pub(crate) fn forget_code() {
    crate::stacks::forget_code();
    if let Some(heap) = heap() {
        heap.forget_modules();
    }
}

/// Gives the record to another user, so that the process goes on in it. For a process of root's
/// that is about to become a user's, or is root's again. (Takes no lock: a child of `vfork` may
/// call this.)
pub(crate) fn give_record(from: u32, to: u32) {
    let Some(prefix) = options::record_file().filter(|prefix| prefix.starts_with(b"/")) else {
        return;
    };
    let mut path = Prefix::none();
    path.set(prefix);
    path.give(os::process_id(), from, to);
}

/// Whether the process is looked at for the last time: what was found, or what is lost, is wanted
/// at its end.
pub(crate) fn looks_at_end() -> bool {
    options::get().debugs && (options::leaks().at_exit || options::record_file().is_some())
}

/// Whether the caller, a signal handler, has interrupted the heap in its own thread, and must not
/// look at it.
pub(crate) fn is_interrupted() -> bool {
    sync::is_interrupted() || heap().is_some_and(Heap::is_entered_here)
}

/// The last look, once a process, which ends by its own will (0) or by a signal.
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
