//! The hardened heap: `malloc` that production can leave on (`mode=hardened`).
//!
//! ```text
//!   malloc --> the thread's hot stub misses --> its ring of the class            cache
//!                                                 | too few
//!                                                 v
//!                                               slots drawn at random            slabs
//!   free ----> the stub knows no unit, so misses -> word, canary; cleared; ring  cache
//!                                                 | anything else
//!                                                 v
//!                                               which mistake?                   judge
//!   more than a slab's slot                     a run between guards             large
//!   no bytes                                    memory that cannot be touched    slabs
//!
//!   window   | guard | slab | slab | guard | ... | guard | block | guard |  blocks, no metadata
//!   words    16 bits a slot: live, maker, slack; or free                    far, at random places
//!   caches   rings of free slots                                            far, at random places
//! ```
//!
//! **Blocks.** A block is exactly as long as requested. Behind it lies the canary: a zero byte and
//! 7 secret bytes (`word`). Zeros follow. A new block reads as zero, because it is fresh or its
//! free cleared it.
//! docs/hardened.md tells which attacks each property stops. The ideas are those of hardened_malloc
//! (out-of-line metadata, quarantine, canaries, zero on free), scudo and snmalloc (sampled guards,
//! random order).
//!
//! Invariants: no metadata that the heap trusts lies in the window, or at a known distance from it.
//! (An exception: under an address limit, table, records and bitmaps lie below the base.) The
//! settings are read-only. Called by `heap` (tables for hardened stubs in `modes`, start, forks),
//! `drawn`, `extent`, `walk` and statistics.

mod cache;
mod judge;
mod large;
mod random;
mod settings;
mod slabs;
mod slots;
mod warm;
mod word;

pub(crate) use cache::Cache;
pub(crate) use settings::is_on;

use core::iter;
use core::ptr::{self, NonNull};

use crate::address_map::{Entry, HARDENED, HARDENED_EMPTY, HARDENED_GROUPS, Kind, MAP};
use crate::cache::Hot;
use crate::chunk;
use crate::describe::{self, BlockState, Description, Front, Reader};
use crate::options::{Hardening, Options};
use crate::os;
use crate::request::{Origin, Request, Return};
use crate::size_class::{self, LINEAR_MAX, MIN_ALIGN, SLAB_MAX, UNIT};
use crate::slab::Slab;
use crate::sync;
use crate::sync::atomic::Ordering;
use crate::ticks;
use cache::{LONG, Refused};
use heapwright_record::debug::Call;
use judge::Wrong;
use settings::Settings;
use slots::Slot;
use word::{CANARY, IN_RING, MOST_SLACK};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) block: usize,
    /// The bytes requested for a live block, or the bytes of a free slot.
    pub(crate) size: usize,
    pub(crate) is_live: bool,
}

/// Makes a guarded block if the request is chosen, before a refill draws this number of slots.
pub(crate) type Guards = fn(Request, usize) -> Option<NonNull<u8>>;

/// Starts the heap if the options select it. Call this after the window was opened, and before any
/// thread allocates. `guards` makes the blocks between guard pages.
pub(crate) fn start(options: &Options, guards: Guards) {
    if options.hardening == Hardening::Off {
        return;
    }
    let is_limited = chunk::is_limited();
    let words = slots::reserve(is_limited);
    if words.is_null() {
        crate::text::Line::new()
            .text("mode=hardened needs more address space than this process may have; the process uses mode=fast")
            .write();
        return;
    }
    let mut secret = [0; 8];
    os::random(&mut secret);
    random::begin();
    describe::read_with(Front::Hardened, &READER);
    let settings = Settings {
        secret: u64::from_ne_bytes(secret),
        words,
        guards: Some(guards),
        is_limited,
        full: options.hardening == Hardening::Full,
        reports: options.reports_misuse,
        detect: options.detect,
    };
    // SAFETY: the heap starts under its lock, and no block of this heap exists.
    unsafe { settings::set(settings) };
}

/// Serves a request of 1 to `LINEAR_MAX` bytes. `hot` is a hardened stub, `FULL` or light.
#[inline(always)]
pub(crate) fn malloc<const FROM: u8, const FULL: bool>(size: usize, hot: &Hot) -> *mut u8 {
    match Cache::of(hot).malloc::<FROM, FULL>(size) {
        Ok(block) => block,
        Err(Refused::TooFew) => malloc_few::<FROM, FULL>(size, hot),
        Err(Refused::Changed(block)) => malloc_changed::<FROM>(size, hot, block),
    }
}

#[cold]
#[inline(never)]
fn malloc_few<const FROM: u8, const FULL: bool>(size: usize, hot: &Hot) -> *mut u8 {
    let cache = Cache::of(hot);
    if renew(cache, size_class::of(size + CANARY)) {
        match cache.malloc::<FROM, FULL>(size) {
            Ok(block) => return block,
            Err(Refused::Changed(block)) => return malloc_changed::<FROM>(size, hot, block),
            Err(Refused::TooFew) => {}
        }
    }
    malloc_cold::<FROM>(size, hot)
}

/// Serves a request of `LINEAR_MAX + 1` to `SLAB_MAX` bytes. `hot` is a hardened stub.
#[inline(never)]
pub(crate) fn malloc_medium<const FROM: u8>(size: usize, hot: &Hot) -> *mut u8 {
    debug_assert!((LINEAR_MAX + 1..=SLAB_MAX).contains(&size));
    if size <= SLAB_MAX - CANARY {
        let (class, maker) =
            (size_class::of(size + CANARY), word::maker(Origin::of::<FROM>(), false));
        match Cache::of(hot).pop_busily(class, size, maker) {
            Some(Ok(block)) => return block,
            Some(Err(Refused::Changed(block))) => return malloc_changed::<FROM>(size, hot, block),
            Some(Err(Refused::TooFew)) | None => {}
        }
    }
    malloc_cold::<FROM>(size, hot)
}

/// Returns whether [`malloc`] and [`malloc_medium`] serve this alignment. They serve no `new` with
/// an explicit alignment, because its `delete` must name the alignment, too.
#[inline(always)]
pub(crate) fn is_plain(origin: Origin, align: usize) -> bool {
    let most = if matches!(origin, Origin::New | Origin::NewArray) { 1 } else { MIN_ALIGN };
    align <= most
}

#[cold]
#[inline(never)]
fn malloc_cold<const FROM: u8>(size: usize, hot: &Hot) -> *mut u8 {
    let request = Request { size, align: 1, zero: false, origin: Origin::of::<FROM>() };
    let block = allocate(Some(Cache::of(hot)), request);
    if block.is_null() {
        os::set_errno(os::ENOMEM);
    }
    block
}

/// Serves a request after a ring returned a slot that was changed.
#[cold]
#[inline(never)]
fn malloc_changed<const FROM: u8>(size: usize, hot: &Hot, changed: *mut u8) -> *mut u8 {
    let request = Request { size, align: 1, zero: false, origin: Origin::of::<FROM>() };
    match mend(changed, request) {
        Some(block) => block,
        None => malloc_cold::<FROM>(size, hot),
    }
}

/// Frees a block of `unit` if all checks pass. `hot` is a hardened stub, and `told` the size that
/// the call names. Returns false if the slow path must decide.
///
/// # Safety
///
/// As for `free`. `unit` is the window's unit of the address, or beyond the window.
#[inline(always)]
pub(crate) unsafe fn free<const FROM: u8, const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    unit: usize,
    told: Option<usize>,
) -> bool {
    // SAFETY: the caller gives up the block, if the address is that of a block.
    unsafe { Cache::of(hot).free::<FROM, FULL>(block, unit, told) }
}

/// Frees a long block, or a block whose ring is full, like [`free`].
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
pub(crate) unsafe fn free_slowly<const FROM: u8>(
    block: *mut u8,
    hot: &Hot,
    unit: usize,
    told: Option<usize>,
) -> bool {
    // SAFETY: the caller gives up the block, if the address is that of a block.
    unsafe { Cache::of(hot).free_slowly::<FROM>(block, unit, told) }
}

/// Returns the class for `size` bytes and a canary, or `None` if the block must be large.
fn class_of(size: usize, align: usize) -> Option<usize> {
    if align <= MIN_ALIGN {
        return (size <= SLAB_MAX - CANARY).then(|| size_class::of(size + CANARY));
    }
    let class = size_class::of_aligned(size.checked_add(CANARY)?, align)?;
    (size_class::size(class) - CANARY - size <= MOST_SLACK).then_some(class)
}

/// Serves a request, or returns null. `cache` is the calling thread's cache, if it has one.
pub(crate) fn allocate(cache: Option<&'static Cache>, request: Request) -> *mut u8 {
    let block = allocate_once(cache, request);
    let again = block.is_null() && make_room(cache, request);
    if again { allocate_once(cache, request) } else { block }
}

/// Gives back memory of free blocks, because memory ran out: the thread's free slots, waiting
/// large blocks, empty slabs and free runs. Returns whether there was any.
#[cold]
#[inline(never)]
fn make_room(cache: Option<&'static Cache>, Request { size, align, .. }: Request) -> bool {
    // (If the request is larger than the window, no memory would suffice.)
    let units = size.max(align).div_ceil(UNIT);
    if sync::is_interrupted() || units >= chunk::most_units() || os::is_more_than_there_is(size) {
        return false;
    }
    let is_any = cache.is_some_and(Cache::empty);
    // (Records of blocks need writable memory, too, beside the window.)
    is_any | large::trim() | slabs::withdraw() | chunk::retract_free()
}

/// Releases reserved addresses that are not in use, because reserved addresses will be limited.
pub(crate) fn give_up_reserve() {
    if is_on() {
        slots::give_up_reserve();
        cache::give_up_reserve();
    }
}

fn allocate_once(cache: Option<&'static Cache>, request: Request) -> *mut u8 {
    let Request { size, align, .. } = request;
    if size > isize::MAX as usize || align > isize::MAX as usize {
        return ptr::null_mut();
    }
    if size == 0 {
        return allocate_empty(request);
    }
    match class_of(size, align) {
        Some(class) => allocate_slot(cache, class, request),
        None => large::allocate(request),
    }
}

fn maker_of(request: Request) -> u16 {
    word::maker(request.origin, request.align > 1)
}

/// Returns a block of size 0: a unique address that cannot be accessed.
fn allocate_empty(request: Request) -> *mut u8 {
    // Slots for size 0 are 16 bytes apart, so few have a larger alignment.
    let mut drawn = None;
    if request.align > MIN_ALIGN {
        return large::allocate(request);
    }
    slabs::draw(slabs::EMPTY, 1, |slot| drawn = Some(slot));
    let Some(slot) = drawn else { return ptr::null_mut() };
    slot.write(word::live(maker_of(request), 0));
    slot.block
}

#[inline]
pub(crate) fn has_groups() -> bool {
    is_on() && settings::get().full
}

/// Returns whether a block in no group would move into a group, if a call with a token resizes it
/// to `size` bytes.
pub(crate) fn comes_into_a_group(block: *const u8, size: usize) -> bool {
    let (_, entry) = MAP.lookup(block.addr());
    has_groups() && slabs::group_of(entry).is_none() && size != 0 && class_of(size, 1).is_some()
}

/// Serves a request with a token, or returns null. The process must [have groups](has_groups).
pub(crate) fn allocate_grouped(request: Request, token: usize) -> *mut u8 {
    allocate_in(group(token), request)
}

/// Returns a token's group. In a token below 2^32, which `-falloc-token-max=4` makes, the lower two
/// bits are the group. In other tokens the upper two bits are: the top bit tells whether the type
/// has pointers.
fn group(token: usize) -> usize {
    const { assert!(HARDENED_GROUPS == 4) };
    if token >> 32 != 0 { token >> 62 } else { token & 3 }
}

fn allocate_in(group: usize, request: Request) -> *mut u8 {
    let Request { size, align, .. } = request;
    let is_small = size != 0 && size <= isize::MAX as usize && align <= isize::MAX as usize;
    let Some(class) = is_small.then(|| class_of(size, align)).flatten() else {
        return allocate(None, request);
    };
    if let Some(guards) = settings::get().guards
        && let Some(block) = guards(request, 1)
    {
        return block.as_ptr();
    }
    let class = slabs::grouped(class, group);
    let mut tried = false;
    loop {
        let mut drawn = None;
        slabs::draw(class, 1, |slot| drawn = Some(slot));
        let Some(slot) = drawn else {
            if !tried && make_room(None, request) {
                tried = true;
                continue;
            }
            return ptr::null_mut();
        };
        // Runs once in about 32 calls. The slot's place decides, because slots are drawn at random.
        if slot.word.addr().is_multiple_of(32 * size_of::<u16>()) {
            pass();
        }
        // SAFETY: the bytes are those of a free slot, which belongs to this call.
        if unsafe { slots::all_bits(slot.block, slot.size()) } == 0 {
            return make_live(slot, request);
        }
        if let Some(block) = mend(slot.block, request) {
            return block;
        }
    }
}

/// Makes those slots of a class ready that waited long enough. Returns false if too few wait.
fn renew(cache: &Cache, class: usize) -> bool {
    let is_ready = cache.renew(class);
    if is_ready && cache.is_time_to_pass() {
        pass();
    }
    is_ready
}

fn pass() {
    if !sync::is_interrupted() {
        let now = os::coarse_ms();
        slabs::pass(now);
        ticks::pass(now);
    }
}

fn allocate_slot(cache: Option<&'static Cache>, class: usize, request: Request) -> *mut u8 {
    let maker = maker_of(request);
    if let Some(cache) = cache {
        loop {
            let popped = cache.pop_busily(class, request.size, maker);
            let Some(popped) = popped else { break };
            match popped {
                // All bytes of a long slot were verified already.
                Ok(block) if size_class::size(class) >= LONG => return block,
                Ok(block) => return zeroed(block, request),
                Err(Refused::Changed(block)) => {
                    if let Some(block) = mend(block, request) {
                        return block;
                    }
                }
                Err(Refused::TooFew) => {
                    if renew(cache, class) {
                        continue;
                    }
                    if let Some(guards) = settings::get().guards
                        && let Some(block) = guards(request, cache.batch(class))
                    {
                        return block.as_ptr();
                    }
                    if !cache.refill(class) {
                        break;
                    }
                    pass();
                }
            }
        }
    }
    let mut drawn = None;
    slabs::draw(class, 1, |slot| drawn = Some(slot));
    match drawn {
        Some(slot) => make_live(slot, request),
        None => ptr::null_mut(),
    }
}

/// Reports a changed slot from a ring, and makes a block of it if that is safe.
#[cold]
fn mend(block: *mut u8, request: Request) -> Option<*mut u8> {
    let (slot, _) = Slot::of(block.addr())?;
    let known = slot.read();
    if known != IN_RING {
        // Another ring handed the slot out, too: two threads freed the block at once.
        judge::report(Wrong::DoubleFree, "free", block.addr(), slot.asked(known));
        return None;
    }
    let size = size_class::size(slot.class);
    judge::report(Wrong::WriteAfterFree, request_name(request), block.addr(), size);
    // SAFETY: the slot is this thread's; no other owner is known.
    unsafe { slots::clear(block, size) };
    Some(make_live(slot, request))
}

fn request_name(request: Request) -> &'static str {
    match request.origin {
        _ if request.zero => "calloc",
        _ => word::maker_name(maker_of(request)),
    }
}

fn make_live(slot: Slot, request: Request) -> *mut u8 {
    slot.make_live(maker_of(request), request.size);
    zeroed(slot.block, request)
}

/// Makes a block read as zero if the request needs that. The block reads as zero already, unless
/// the program wrote to it after its free.
fn zeroed(block: *mut u8, request: Request) -> *mut u8 {
    // SAFETY: the bytes are those of a new block.
    if request.zero && !unsafe { slots::is_zero(block, request.size) } {
        judge::report(Wrong::WriteAfterFree, "calloc", block.addr(), request.size);
        // SAFETY: the bytes are those of a new block.
        unsafe { block.write_bytes(0, request.size) };
    }
    block
}

/// Compares a call's claims with a live block. Slots do not keep their block's `made_align`.
fn compare(
    made: u16,
    made_align: Option<usize>,
    asked: usize,
    address: usize,
    what: Return,
    is_other_class: impl FnOnce(usize) -> bool,
) {
    let (call, given) =
        (what.call.word(), word::maker(what.origin, what.align.is_some_and(|align| align > 1)));
    if made != given
        && !(made == word::maker(Origin::Malloc, false) && os::some_module_has_its_own_new())
    {
        judge::report(Wrong::Maker { made, given }, call, address, asked);
    }
    if let Some(told) = what.size
        && (if settings::get().full { told != asked } else { is_other_class(told) })
    {
        judge::report(Wrong::Size(told), call, address, asked);
    }
    if let Some(align) = what.align
        && align.is_power_of_two()
        && (!address.is_multiple_of(align) || made_align.is_some_and(|made| made != align))
    {
        judge::report(Wrong::Alignment(align), call, address, asked);
    }
}

/// Like `compare`, for a block of `asked` bytes between guards, made by this origin and alignment.
#[cfg(feature = "debug")]
pub(crate) fn compare_guarded(
    origin: Origin,
    align: usize,
    asked: usize,
    address: usize,
    what: Return,
) {
    let made = word::maker(origin, align > 1);
    compare(made, known_align(made, align), asked, address, what, |told| is_other(told, asked));
}

/// Returns the alignment that a free must name for a block of this maker, if C++'s calls name one.
fn known_align(made: u16, align: usize) -> Option<usize> {
    let is_named = [Origin::New, Origin::NewArray].map(|origin| word::maker(origin, true));
    is_named.contains(&made).then_some(align)
}

fn is_other(told: usize, asked: usize) -> bool {
    class_of(told.max(1), 1) != class_of(asked.max(1), 1)
}

/// Checks a call's claims. Returns the bytes requested if the call names a live block's start.
fn checked(slot: Slot, offset: usize, what: Return) -> Option<usize> {
    let (call, address) = (what.call.word(), slot.block.addr());
    let known = slot.read();
    let found = slot.extent(known);
    if offset != 0 {
        judge::not_a_block(call, address + offset, Some(found));
        return None;
    }
    let asked = found.size;
    if !found.is_live {
        judge::report(Wrong::DoubleFree, call, address, asked);
        return None;
    }
    // (A usable-size call may name any block.)
    if what.call != Call::UsableSize {
        let made = word::maker_of(known);
        compare(made, None, asked, address, what, |told| is_other(told, asked));
    }
    if !slot.is_empty && !slot.is_whole(asked) {
        judge::report(Wrong::Overflow, call, address, asked);
    }
    Some(asked)
}

/// Frees a block, which must not be null. Returns false if the block is not this heap's. Any thread
/// frees blocks of this heap, because they have their own owner in the address map. Blocks made
/// before the options were read, or by first-class heaps, are freed as in fast mode.
///
/// # Safety
///
/// As for `free`.
#[cold]
pub(crate) unsafe fn give_back(
    cache: Option<&'static Cache>,
    block: *mut u8,
    what: Return,
) -> bool {
    let address = block.addr();
    let (unit, entry) = MAP.lookup(address);
    let Some((slot, offset)) = Slot::in_unit(unit, entry, address) else {
        return large::free(block, what) || is_misplaced(address, unit, entry, what);
    };
    if checked(slot, offset, what).is_none() {
        return true;
    }
    slot.write(IN_RING);
    // (A signal handler that interrupted the holder of the class's lock loses the slot.)
    if slot.is_empty {
        slabs::put(slabs::EMPTY, iter::once(slot.as_free()));
        return true;
    }
    // SAFETY: the bytes are the whole slot, which the caller gives up.
    unsafe { slots::clear(block, size_class::size(slot.class)) };
    if let Some(group) = slabs::group_of(entry) {
        slabs::put_to_wait(slabs::grouped(slot.class, group), slot);
        return true;
    }
    let free = slot.as_free();
    if !cache.is_some_and(|cache| cache.keep(slot.class, free)) {
        slabs::put(slot.class, iter::once(free));
    }
    true
}

/// Reports a pointer into this heap that is no live block. Returns false for other pointers.
fn is_misplaced(address: usize, unit: usize, entry: Entry, what: Return) -> bool {
    let call = what.call.word();
    if let Some(found) = large::find(address) {
        if address == found.block && !found.is_live {
            judge::report(Wrong::DoubleFree, call, address, found.size);
        } else {
            judge::not_a_block(call, address, Some(found));
        }
        return true;
    }
    let is_ours = match MAP.kind_of(unit, entry) {
        Kind::Guard => true,
        Kind::Slab(_) => entry.is_hardened(),
        // If misuse ends the process, the caller in `heap` does so, with a better message.
        Kind::Free | Kind::Kept | Kind::Metadata => settings::get().reports,
        _ => false,
    };
    if is_ours {
        judge::not_a_block(call, address, None);
    }
    is_ours
}

/// Changes the size of a block, which must not be null. Returns `None` if the block is not this
/// heap's. Returns null without memory, and the old block is unchanged.
///
/// # Safety
///
/// As for `realloc`.
#[cold]
pub(crate) unsafe fn realloc(
    cache: Option<&'static Cache>,
    block: *mut u8,
    size: usize,
    what: Return,
) -> Option<*mut u8> {
    let address = block.addr();
    let request =
        Request { size, align: what.align.unwrap_or(1), zero: false, origin: what.origin };
    let (unit, entry) = MAP.lookup(address);
    let asked = match Slot::in_unit(unit, entry, address) {
        Some((slot, offset)) => {
            let Some(asked) = checked(slot, offset, what) else {
                return Some(allocate(cache, request));
            };
            if resize_slot(slot, asked, request) {
                return Some(block);
            }
            asked
        }
        None => match large::checked(address, what) {
            Some(asked) => {
                if class_of(size.max(1), request.align).is_none()
                    && size <= isize::MAX as usize
                    && large::resize(block, size)
                {
                    return Some(block);
                }
                asked
            }
            None if is_misplaced(address, unit, entry, what) => {
                return Some(allocate(cache, request));
            }
            None => return None,
        },
    };
    let is_large = size <= isize::MAX as usize && class_of(size, request.align).is_none();
    let make = || {
        if size > asked && is_large && request.align <= MIN_ALIGN {
            large::allocate_to_grow(request)
        } else if let Some(group) = slabs::group_of(entry) {
            allocate_in(group, request)
        } else {
            allocate(cache, request)
        }
    };
    let mut new = make();
    // SAFETY: both blocks have this many bytes, the old one is the caller's, the new one ours.
    let moved =
        |new| unsafe { os::move_bytes(block, new, asked.min(size), large::MOVE_PAGES) }.is_some();
    // If pages could not be moved, the new block may have a hole. The second try copies the bytes.
    if !new.is_null() && !moved(new) {
        new = make();
        if !new.is_null() && !moved(new) {
            return Some(ptr::null_mut());
        }
    }
    if !new.is_null() {
        let what = Return { size: None, align: None, ..what };
        // SAFETY: the caller gives up the old block.
        unsafe { give_back(cache, block, what) };
    }
    Some(new)
}

/// Resizes a block in place. Returns false if the block must move.
fn resize_slot(slot: Slot, asked: usize, request: Request) -> bool {
    let (room, size) = (size_class::size(slot.class) - CANARY, request.size);
    if slot.is_empty || size == 0 || size > room || room - size > MOST_SLACK {
        return false;
    }
    // A block moves to a smaller class if it uses less than half of its slot.
    if class_of(size, request.align) != Some(slot.class) && size < room / 2 {
        return false;
    }
    let from = size.min(asked);
    // SAFETY: the bytes are the canary, and bytes of the block that the program gives up.
    unsafe { slot.block.wrapping_add(from).write_bytes(0, asked + CANARY - from) };
    slot.make_live(maker_of(request), size);
    true
}

/// Returns the bytes requested for a block, or `None` if the block is not this heap's.
#[cold]
pub(crate) fn usable_size(block: *const u8, what: Return) -> Option<usize> {
    let address = block.addr();
    match Slot::of(address) {
        Some((slot, offset)) => Some(checked(slot, offset, what).unwrap_or(0)),
        None => large::asked(address),
    }
}

/// Returns the bytes from an address in a slab of this heap to the end of its block. Returns 0 if
/// the address is behind the block or the block is free.
#[inline(always)]
pub(crate) fn room(unit: usize, entry: Entry, class: usize, address: usize) -> usize {
    let offset = address & (UNIT - 1);
    let index = size_class::slot_of(class, offset);
    // (Words behind the slab's last slot are never written, so they read as free.)
    // SAFETY: a unit's words are committed with it, and only atomics write them.
    let known = unsafe { &*slots::word_of(unit, index) }.load(Ordering::Relaxed);
    if word::maker_of(known) == 0 || entry.owner() == HARDENED_EMPTY {
        return 0;
    }
    let end = (index + 1) * size_class::size(class) - CANARY - word::slack_of(known);
    end.saturating_sub(offset)
}

pub(crate) fn reports_misuse() -> bool {
    is_on() && settings::get().reports
}

/// Returns the block, live or free, that contains an address, in constant time.
pub(crate) fn extent(address: usize) -> Option<Extent> {
    match Slot::of(address) {
        Some((slot, _)) => Some(slot.extent(slot.read())),
        None => large::find(address),
    }
}

static READER: Reader = Reader {
    read: |_, address| {
        let mut found = describe::nothing(describe::Kind::Small);
        found.owner = HARDENED;
        if let Some((slot, offset)) = Slot::of(address.addr()) {
            let Extent { block, size, is_live } = slot.extent(slot.read());
            found = Description {
                state: if is_live { BlockState::InUse } else { BlockState::Free },
                block,
                size,
                offset,
                class: slot.class as u32,
                ..found
            };
        }
        found
    },
};

pub(crate) fn in_slot(unit: usize, entry: Entry, class: usize, index: usize) -> Extent {
    let slot = Slot::at(unit, class, index, entry.owner() == HARDENED_EMPTY);
    slot.extent(slot.read())
}

/// The most slabs that [`at_exit`] checks.
const LOOKED_AT: usize = 256;

/// Checks free slots and the canaries of live blocks before the process ends, within some
/// milliseconds. Does nothing if other threads may run.
pub(crate) fn at_exit() {
    if !is_on() || !os::is_single_threaded() || sync::is_interrupted() {
        return;
    }
    let Some(chunk::Usage { frontier, .. }) = chunk::usage() else { return };
    let slabs = (0..frontier).filter_map(|unit| Some((unit, slabs::class_of(unit)?)));
    for (unit, (class, is_empty)) in slabs.filter(|(_, (_, is_empty))| !is_empty).take(LOOKED_AT) {
        let slab = Slab::at(&MAP, unit, class);
        for index in 0..slab.carved() {
            let slot = Slot::at(unit, class, index, is_empty);
            let (known, address) = (slot.read(), slot.block.addr());
            if word::maker_of(known) == 0 {
                let size = size_class::size(class);
                // SAFETY: the bytes are those of a free slot, and there is no other thread.
                let is_changed = !unsafe { slots::is_zero(slot.block, size) };
                // (Otherwise a signal handler interrupted a call that holds the slot, and ends the
                // process.)
                if is_changed && (slab.is_returned(index) || cache::holds(slot.block)) {
                    judge::report(Wrong::WriteAfterFree, "exit", address, size);
                }
            } else if !slot.is_whole(slot.asked(known)) && slot.has_end(slot.asked(known)) {
                judge::report(Wrong::Overflow, "exit", address, slot.asked(known));
            }
        }
    }
}

pub(crate) fn cached() -> (usize, usize) {
    if is_on() { Cache::held_by_all() } else { (0, 0) }
}

/// Releases free memory of the calling thread's cache, all slabs, and the queue of large blocks.
pub(crate) fn trim(cache: Option<&'static Cache>) -> usize {
    if let Some(cache) = cache {
        cache.trim();
    }
    large::trim();
    slabs::trim()
}

pub(crate) fn before_fork() {
    if is_on() {
        cache::before_fork();
        slabs::before_fork();
        slots::before_fork();
        large::before_fork();
    }
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(crate) unsafe fn after_fork() {
    if is_on() {
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { large::after_fork() };
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { slots::after_fork() };
        // SAFETY: this thread, or the thread that it is a copy of, took the locks before the fork.
        unsafe { slabs::after_fork() };
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { cache::after_fork() };
    }
}

pub(crate) fn choose_anew_after_fork() {
    if is_on() {
        random::choose_anew();
        cache::choose_anew();
    }
}

/// Makes the caches of the parent's other threads available in a forked child. `mine` stays.
pub(crate) fn forget_after_fork(mine: Option<&'static Cache>) {
    if is_on() {
        cache::forget_after_fork(mine);
    }
}
