//! The ways to serve that are whole modes: the hardened heap, the debug heap, another copy of the
//! library; and the way of threads whose cache is gone.
//!
//! ```text
//!   hardened   the thread's hot part is a stub of its cache, which knows no unit: rings, else the cold way
//!   debug      each call to the debug heap; "not mine" goes on to what the thread has
//!   passed on  each call to the copy of heapwright that is preloaded
//!   late       one locked heap for all threads whose cache is gone, or the hardened heap without a cache
//! ```
//!
//! All but the first are *fronts*: hot parts that are never written to, without lists, of nobody.
//!
//! Called by `start`, which installs them, and by `observed`.

use super::words;
use super::{drawn, foreign, large, resize};
use crate::address_map::MAP;
use crate::cache::{Hot, Residue, Serve};
use crate::hardened;
use crate::hooks;
use crate::os;
use crate::request::{MALLOC, NEW, NEW_ARRAY, Origin, RUST, Request, Return, Said};
use crate::size_class::{self, LINEAR_MAX, SLAB_MAX};

/// A hot part that leads every call to a table. Never written to.
#[repr(transparent)]
pub(crate) struct Front(Hot);

// SAFETY: its lists are empty and its tag is nobody's, so no path writes to it.
unsafe impl Sync for Front {}

impl Front {
    pub(super) const fn new(serve: &'static Serve) -> Self {
        Self(Hot::sentinel(serve))
    }

    /// What a thread's fast word is set to.
    pub(super) const fn get(&'static self) -> &'static Hot {
        &self.0
    }
}

type Allocate = fn(size: usize, align: usize, zero: bool, origin: Origin, hot: &Hot) -> *mut u8;
type GiveBack =
    unsafe fn(block: *mut u8, hot: &Hot, residue: Residue, said: Said, size: usize, align: usize);
type Resize = unsafe fn(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8;

/// The table of a front: all calls come to three functions.
pub(super) const fn front(
    allocate: Allocate,
    give_back: GiveBack,
    resize: Resize,
    this: &'static Serve,
) -> Serve {
    extern "C" fn malloc(size: usize, hot: &Hot, _offset: usize) -> *mut u8 {
        large(size, hot, Origin::Malloc)
    }
    fn large(size: usize, hot: &Hot, origin: Origin) -> *mut u8 {
        (hot.serve().allocate)(size, 1, false, origin, hot)
    }
    unsafe extern "C" fn free(block: *mut u8, hot: &Hot, _residue: Residue) {
        // SAFETY: as the caller promises.
        unsafe { hot.serve().take_back(block, hot, Return::PLAIN) }
    }
    unsafe extern "C" fn unknown(block: *mut u8, hot: &Hot, _any: usize, _unit: usize) {
        // SAFETY: as the caller promises.
        unsafe { hot.serve().take_back(block, hot, Return::PLAIN) }
    }
    Serve { malloc, free, unknown, large, allocate, give_back, resize, drawn: this, plain: this }
}

/// A block that a call is answered with: null is no memory, as `errno` says.
#[inline(always)]
pub(super) fn answer(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        os::set_errno(os::ENOMEM);
    }
    block
}

// The hardened heap. ------------------------------------------------------------------------------

/// The table of threads with a cache of the hardened heap.
pub(super) static HARDENED: Serve = hardened_table::<false>(&HARDENED);
/// The same with all that the heap can do.
pub(super) static HARDENED_FULL: Serve = hardened_table::<true>(&HARDENED_FULL);

const fn hardened_table<const FULL: bool>(this: &'static Serve) -> Serve {
    Serve {
        malloc: malloc_hardened::<FULL>,
        free: free_hardened::<FULL>,
        unknown: free_hardened_in::<FULL>,
        large: |size, _, origin| allocate_hardened(size, 1, false, origin),
        allocate: allocate_hardened_by::<FULL>,
        give_back: give_back_hardened_by::<FULL>,
        resize: resize_hardened,
        drawn: this,
        plain: this,
    }
}

extern "C" fn malloc_hardened<const FULL: bool>(size: usize, hot: &Hot, _offset: usize) -> *mut u8 {
    // The hardened heap's own fast path is for sizes that lead to their class without a table.
    if size > LINEAR_MAX {
        return hardened::malloc_medium::<MALLOC>(size, hot);
    }
    hardened::malloc::<MALLOC, FULL>(size, hot)
}

fn allocate_hardened_by<const FULL: bool>(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    hot: &Hot,
) -> *mut u8 {
    if size.wrapping_sub(1) < SLAB_MAX && !zero && hardened::is_plain(origin, align) {
        return match origin {
            Origin::Malloc | Origin::Aligned => small_hardened::<MALLOC, FULL>(size, hot),
            Origin::New => small_hardened::<NEW, FULL>(size, hot),
            Origin::NewArray => small_hardened::<NEW_ARRAY, FULL>(size, hot),
            Origin::Rust => small_hardened::<RUST, FULL>(size, hot),
        };
    }
    allocate_hardened(size, align, zero, origin)
}

/// A block of a slot's size, whose maker gives no alignment.
#[inline(always)]
fn small_hardened<const FROM: u8, const FULL: bool>(size: usize, hot: &Hot) -> *mut u8 {
    if size > LINEAR_MAX {
        return hardened::malloc_medium::<FROM>(size, hot);
    }
    hardened::malloc::<FROM, FULL>(size, hot)
}

/// Any other block.
fn allocate_hardened(size: usize, align: usize, zero: bool, origin: Origin) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    answer(hardened::allocate(words::hardened(), request))
}

unsafe extern "C" fn free_hardened<const FULL: bool>(block: *mut u8, hot: &Hot, _residue: Residue) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_hardened_in::<FULL>(block, hot, 0, MAP.unit_of(block.addr())) }
}

unsafe extern "C" fn free_hardened_in<const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    _any: usize,
    unit: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    if unsafe { !hardened::free::<MALLOC, FULL>(block, hot, unit, None) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_hardened_slowly::<MALLOC>(block, hot, Said::PLAIN, 0, 0) }
    }
}

unsafe fn give_back_hardened_by<const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    _residue: Residue,
    said: Said,
    size: usize,
    align: usize,
) {
    if said.origin == Origin::New {
        // SAFETY: the caller gives the block away, if it is one.
        return unsafe { told_hardened::<NEW, FULL>(block, hot, said, size, align) };
    }
    let told = match said.origin {
        Origin::Rust => told_hardened_apart::<RUST, FULL>,
        Origin::NewArray => told_hardened_apart::<NEW_ARRAY, FULL>,
        _ => told_hardened_apart::<MALLOC, FULL>,
    };
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { told(block, hot, said, size, align) }
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn told_hardened_apart<const FROM: u8, const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { told_hardened::<FROM, FULL>(block, hot, said, size, align) }
}

/// # Safety
///
/// As `free`.
#[inline(always)]
unsafe fn told_hardened<const FROM: u8, const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    let (unit, told) = (MAP.unit_of(block.addr()), said.size.then_some(size));
    // What a call says of the alignment is compared the slow way.
    // SAFETY: the caller gives the block away, if it is one.
    if said.align || unsafe { !hardened::free::<FROM, FULL>(block, hot, unit, told) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_hardened_slowly::<FROM>(block, hot, said, size, align) }
    }
}

/// Frees a block that is not as the short way wants it; null does nothing.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
unsafe fn free_hardened_slowly<const FROM: u8>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    let (unit, what) = (MAP.unit_of(block.addr()), Return::of(said, size, align));
    // SAFETY: the caller gives the block away, if it is one.
    if said.align || unsafe { !hardened::free_slowly::<FROM>(block, hot, unit, what.size) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { take_back_hardened(block, what) }
    }
}

/// Frees any block in a hardened process, whatever the call says; null does nothing.
///
/// # Safety
///
/// As `free`.
unsafe fn give_back_hardened(
    block: *mut u8,
    _hot: &Hot,
    _residue: Residue,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { take_back_hardened(block, Return::of(said, size, align)) }
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn take_back_hardened(block: *mut u8, what: Return) {
    // SAFETY: the caller gives the block away, if it is one.
    if block.is_null() || unsafe { hardened::give_back(words::hardened(), block, what) } {
        return;
    }
    drawn::compare(block.addr(), what);
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

unsafe fn resize_hardened(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8 {
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller promises.
    if let Some(new) = unsafe { hardened::realloc(words::hardened(), block, size, what) } {
        return answer(new);
    }
    drawn::compare(block.addr(), what);
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller promises.
    unsafe { resize::resize(block, size, hot, what) }
}

// The debug heap. ---------------------------------------------------------------------------------

static DEBUG: Serve = front(allocate_debug, give_back_debug, resize_debug, &DEBUG);
/// Where the threads of a process that debugs come to.
pub(super) static DEBUG_FRONT: Front = Front::new(&DEBUG);

fn allocate_debug(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    if !request.is_possible() {
        return answer(core::ptr::null_mut());
    }
    match hooks::allocate(request) {
        Some(block) => answer(block),
        None => {
            let has = words::has();
            (has.serve().allocate)(size, align, zero, origin, has)
        }
    }
}

unsafe fn give_back_debug(
    block: *mut u8,
    _hot: &Hot,
    _residue: Residue,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away, if it is one of the debug heap's.
    if block.is_null() || unsafe { hooks::free(block, what) } {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

unsafe fn resize_debug(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8 {
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller promises.
    match unsafe { hooks::realloc(block, size, what) } {
        Some(new) => answer(new),
        // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
        // promises.
        None => unsafe { resize::resize(block, size, hot, what) },
    }
}

// Another copy. -----------------------------------------------------------------------------------

static PASSED_ON: Serve = front(allocate_elsewhere, give_back_anything, resize::resize, &PASSED_ON);
/// Where the threads of a process come to that another copy of the library serves.
pub(super) static PASSED_ON_FRONT: Front = Front::new(&PASSED_ON);

fn allocate_elsewhere(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    _hot: &Hot,
) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    let Some(peer) = foreign::peer().filter(|_| request.is_possible()) else {
        return answer(core::ptr::null_mut());
    };
    if request.align > size_class::MIN_ALIGN {
        // SAFETY: the peer's functions are those of a C library's allocator.
        let block = unsafe { (peer.memalign)(request.align, size) };
        if zero && !block.is_null() {
            // SAFETY: the block has room for `size` bytes.
            unsafe { block.write_bytes(0, size) };
        }
        block
    } else if zero {
        // SAFETY: the peer's own function, for any size.
        unsafe { (peer.calloc)(1, size) }
    } else {
        // SAFETY: the peer's own function, for any size.
        unsafe { (peer.malloc)(size) }
    }
}

/// Frees any block, by its entry.
///
/// # Safety
///
/// As `free`.
unsafe fn give_back_anything(
    block: *mut u8,
    _hot: &Hot,
    _residue: Residue,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

// Late comers. ------------------------------------------------------------------------------------

static LATE: Serve = front(allocate_late, give_back_anything, resize::resize, &LATE);
/// What threads have whose cache is gone, or for which there is no memory for one.
pub(super) static LATE_FRONT: Front = Front::new(&LATE);

fn allocate_late(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    if !request.is_possible() {
        return answer(core::ptr::null_mut());
    }
    answer(large::allocate_late(request))
}

static LATE_HARDENED: Serve =
    front(allocate_late_hardened, give_back_hardened, resize_hardened, &LATE_HARDENED);
/// The same in a hardened process.
pub(super) static LATE_HARDENED_FRONT: Front = Front::new(&LATE_HARDENED);

fn allocate_late_hardened(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    _hot: &Hot,
) -> *mut u8 {
    allocate_hardened(size, align, zero, origin)
}
