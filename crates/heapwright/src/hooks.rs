//! What the debug heap is asked: the hooks in `heap` and in the C layer.
//!
//! ```text
//!   heap       allocate(Request)                 -> a block, or "not mine"
//!              free(block, Return)               -> done, or "not mine"
//!              realloc(block, size, Return)      -> a block, or "not mine"
//!              usable_size(block)                -> bytes, or "not mine"
//!   C layer    fault(address, is_write, context) -> whose fault is it?
//!              forget_code()                     a library was unloaded
//!              debug_at_exit(signal)             the last look at everything
//! ```
//!
//! While the process debugs, threads' fast words lead to a front (`heap::modes`), so every call
//! comes to its table, and that asks here first. "Not mine" goes on as in the fast mode: blocks
//! that were born before the options were read, blocks of other allocators. While it does not
//! debug, nothing is asked.
//!
//! In a build without the feature `debug` nobody sets the flag, and every answer is
//! "not mine". The tests look on through `observe`, which is compiled for them alone.

use core::ffi::c_void;

use crate::address_map::Entry;
use crate::misuse::Access;
#[cfg(feature = "debug")]
use crate::misuse::Call;
use crate::os::{self, Contents};
#[cfg(feature = "debug")]
use crate::request::Origin;
use crate::request::{Request, Return};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::verdict::Verdict;

static DEBUGGING: AtomicBool = AtomicBool::new(false);

/// Whether the debug heap is asked about every call.
#[inline(always)]
pub(crate) fn is_debugging() -> bool {
    DEBUGGING.load(Ordering::Relaxed)
}

/// Whether the process runs with the debug heap. Reads the options, if nobody
/// has before: the C layer asks when it is loaded, to know calls apart.
///
/// ```
/// assert!(!heapwright::heap::debugging());
/// ```
#[must_use]
pub fn debugging() -> bool {
    let _options = crate::options::get();
    #[cfg(feature = "debug")]
    if _options.debugs {
        return true;
    }
    is_debugging()
}

/// Whether some blocks of fast mode stand between guards, as the options say. Reads them, if nobody
/// has before: the C layer asks when it is loaded, for then faults are to be caught.
///
/// ```
/// assert!(!heapwright::heap::guarding());
/// ```
#[must_use]
pub fn guarding() -> bool {
    let _options = crate::options::get();
    #[cfg(feature = "debug")]
    return _options.guards != 0;
    #[cfg(not(feature = "debug"))]
    false
}

/// Begins to debug, where the options say so. Called once, while the heap starts.
#[cfg(feature = "debug")]
pub(crate) fn start() {
    if crate::debug::start() {
        DEBUGGING.store(true, Ordering::Relaxed);
    }
}

/// Serves a request. `None`: this is not the debug heap's to serve. A null block:
/// there is no memory.
#[inline(always)]
pub(crate) fn allocate(request: Request) -> Option<*mut u8> {
    #[cfg(any(test, feature = "observe"))]
    observe::request(request);
    #[cfg(feature = "debug")]
    return crate::debug::allocate(request);
    #[cfg(not(feature = "debug"))]
    {
        let _ = request;
        None
    }
}

/// Frees a block, which is not null. False: it is not the debug heap's.
///
/// # Safety
///
/// As `heap::free`.
#[inline(always)]
pub(crate) unsafe fn free(block: *mut u8, what: Return) -> bool {
    #[cfg(any(test, feature = "observe"))]
    observe::given(what);
    #[cfg(feature = "debug")]
    // SAFETY: the caller gives the block away, if it is one of the debug heap's.
    return unsafe { crate::debug::free(block, what) };
    #[cfg(not(feature = "debug"))]
    {
        let _ = (block, what);
        false
    }
}

/// Changes the size of a block, which is not null. `None`: it is not the debug
/// heap's. A null block: there is no memory, and the old one is as it was.
///
/// # Safety
///
/// As `heap::realloc`.
#[inline(always)]
pub(crate) unsafe fn realloc(block: *mut u8, size: usize, what: Return) -> Option<*mut u8> {
    #[cfg(any(test, feature = "observe"))]
    observe::resize(size, what);
    #[cfg(feature = "debug")]
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller
    // promises.
    return unsafe { crate::debug::realloc(block, what, resized(what, size)) };
    #[cfg(not(feature = "debug"))]
    {
        let _ = (block, size, what);
        None
    }
}

/// The new block that `realloc` is to make.
#[cfg(feature = "debug")]
#[inline(always)]
fn resized(what: Return, size: usize) -> Request {
    Request { size, align: what.align.unwrap_or(1), zero: false, origin: what.origin }
}

/// The bytes that may be used of a block. `None`: it is not the debug heap's.
#[cold]
pub(crate) fn usable_size(block: *const u8) -> Option<usize> {
    #[cfg(feature = "debug")]
    return crate::debug::usable_size(
        block,
        Return::new(Call::UsableSize, Origin::Malloc, None, None),
    );
    #[cfg(not(feature = "debug"))]
    {
        let _ = block;
        None
    }
}

/// Whether `bytes` bytes at `address`, in this unit, certainly are a live block's of a debug heap,
/// and none is poisoned.
#[inline(always)]
pub(crate) fn holds(unit: usize, entry: Entry, address: usize, bytes: usize) -> bool {
    #[cfg(feature = "debug")]
    if let Some((head, is_rest)) = entry.debug_head(unit) {
        return crate::debug::holds(head, is_rest, address, bytes);
    }
    let _ = (unit, entry, address, bytes);
    false
}

/// Bytes from an address in a debug heap's unit to its block's end; 0 where it is in no live block.
pub(crate) fn room(unit: usize, entry: Entry, address: usize) -> usize {
    #[cfg(feature = "debug")]
    return crate::debug::room(unit, entry, address);
    #[cfg(not(feature = "debug"))]
    {
        let _ = (unit, entry, address);
        0
    }
}

/// Poisons bytes of the live block that `address` lies in, as far as it goes, or no longer:
/// functions of the C library that access them are findings ([`room`](crate::heap::room)). Nothing
/// where the process does not debug.
///
/// ```
/// heapwright::heap::poison(0, 16, true);
/// assert_eq!(heapwright::heap::poisoned_bytes(0, 16), None);
/// ```
pub fn poison(address: usize, bytes: usize, poisons: bool) {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::poison(address, bytes, poisons);
    }
    let _ = (address, bytes, poisons);
}

/// How many bytes from `address` on are [poisoned](poison) without a gap, at most `most`. `None`
/// where nothing can be: in memory that is not the debug heap's.
#[must_use]
pub fn poisoned_bytes(address: usize, most: usize) -> Option<usize> {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::poisoned_bytes(address, most);
    }
    let _ = (address, most);
    None
}

/// Where the block that `address` lies in was made, or freed: the thread's number, from 1, and the
/// return addresses of the stack, innermost first. `None` where that is not known: the process does
/// not debug, or there is no such block.
#[must_use]
pub fn block_history(address: usize, was_freed: bool) -> Option<(u32, &'static [usize])> {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::block_history(address, was_freed);
    }
    let _ = (address, was_freed);
    None
}

/// A function of the C library was asked to access what no live block holds. False: the debug heap
/// does not serve this process.
#[cold]
pub(crate) fn out_of_bounds(function: &str, access: Access, address: usize, bytes: usize) -> bool {
    #[cfg(feature = "debug")]
    if is_debugging() {
        use heapwright_record::debug::{Access as Done, Function};
        let access = match access {
            Access::Read => Done::Read,
            Access::Write => Done::Write,
            Access::Unknown => Done::Unknown,
        };
        let function = Function::named(function);
        crate::debug::out_of_bounds(crate::debug::Asked { function, access, address, bytes });
        return true;
    }
    let _ = (function, access, address, bytes);
    false
}

/// A fault at an address: whose is it? Called in a signal handler, with all
/// signals blocked. `is_write` is `None` where the machine does not say;
/// `context` is the `ucontext_t` of the instruction.
///
/// Only a C layer that caught the signal calls this.
#[doc(hidden)]
#[must_use]
pub fn fault(address: usize, is_write: Option<bool>, context: *mut c_void) -> Verdict {
    #[cfg(any(test, feature = "observe"))]
    return observe::fault(address, is_write, context);
    #[cfg(all(feature = "debug", not(any(test, feature = "observe"))))]
    return crate::debug::fault(address, is_write, context);
    #[cfg(not(any(feature = "debug", test, feature = "observe")))]
    {
        let _ = (address, is_write, context);
        Verdict::NotOurs
    }
}

/// Puts back the guard of an address's page, which [`fault`] lifted ([`Verdict::Step`]). In a
/// signal handler, too.
pub fn put_guard_back(address: usize) {
    #[cfg(feature = "debug")]
    crate::debug::put_guard_back(address);
    #[cfg(not(feature = "debug"))]
    let _ = address;
}

/// Removes the debug heap's guards in a range, so that the kernel can access the range in one call.
/// False: there are none, or they stay.
#[must_use]
pub fn lift_guards(address: usize, bytes: usize) -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::lift_guards(address, bytes);
    #[cfg(not(feature = "debug"))]
    {
        let _ = (address, bytes);
        false
    }
}

/// Puts the guards of a range back that [`lift_guards`] removed.
pub fn put_guards_back(address: usize, bytes: usize) {
    #[cfg(feature = "debug")]
    crate::debug::put_guards_back(address, bytes);
    #[cfg(not(feature = "debug"))]
    let _ = (address, bytes);
}

/// Whether the page of an address is a guard of the debug heap's.
#[must_use]
pub fn is_guarded(address: usize) -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::is_guarded(address);
    #[cfg(not(feature = "debug"))]
    {
        let _ = address;
        false
    }
}

/// The block that an address lies in is no leak, as the program says, or may be one again. Nothing
/// where the process does not debug.
pub fn keep(address: usize, kept: bool) {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::keep(address, kept);
    }
    let _ = (address, kept);
}

/// What the calling thread allocates from now on is no leak, as the program says, or may be one
/// again. Nothing where the process does not debug.
pub fn keep_new(kept: bool) {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::keep_new(kept);
    }
    let _ = kept;
}

/// A library may be unloaded next: the record learns what it is, because stacks lead
/// through it. The caller holds no lock.
///
/// Only a C layer that interposes `dlclose` calls this, and only while
/// [`debugging`].
pub fn remember_code() {
    #[cfg(feature = "debug")]
    crate::debug::remember_code();
}

/// A library was unloaded: addresses of code mean something else from now on. The
/// caller is the thread that unloaded it, and holds no lock.
///
/// Only a C layer that interposes `dlclose` calls this, and only while
/// [`debugging`].
pub fn forget_code() {
    #[cfg(any(test, feature = "observe"))]
    observe::forget();
    #[cfg(feature = "debug")]
    crate::debug::forget_code();
}

/// What the debug heap needs that can be had before `main` only: signals that the
/// options name, and what a leak check must know of threads. Called once, by the C
/// layer's constructor, while [`debugging`].
pub fn debug_prepare() {
    #[cfg(feature = "debug")]
    crate::debug::prepare();
}

/// The process is about to end: the debug heap looks at everything for the last
/// time. Called once a process, by the thread that ends it, after the program's
/// own handlers and destructors as far as a library can know; other threads may
/// still run, and may still allocate. `signal`: the one that ends it, 0 if none does.
///
/// Only a C layer that sees the end calls this, and only while [`debugging`] or [`guarding`].
#[cfg_attr(not(feature = "debug"), allow(unused_variables, reason = "there is no debug heap"))]
pub fn debug_at_exit(signal: u32) {
    #[cfg(any(test, feature = "observe"))]
    observe::at_exit();
    #[cfg(feature = "debug")]
    {
        crate::debug::at_exit(signal);
        crate::debug::guards::at_exit();
    }
}

/// Whether somebody waits for what [`debug_at_exit`] finds, so that a process that a signal ends is
/// to be looked at, too (options `leaks`, `record`).
#[must_use]
pub fn debug_looks_at_end() -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::looks_at_end();
    #[cfg(not(feature = "debug"))]
    false
}

/// Whether the stack at an address, which the caller runs on, has room for a last look, as far as
/// mappings tell.
#[must_use]
pub fn debug_has_stack(at: usize) -> bool {
    const LEAST: usize = 64 << 10;
    match os::mapping_of(at) {
        // The main thread's grows.
        Ok(Some(stack)) if stack.contents() != Contents::MainStack => at - stack.start >= LEAST,
        _ => true,
    }
}

/// Whether the caller, a signal handler, has interrupted the debug heap in its own thread: it
/// cannot look at it now.
#[must_use]
pub fn debug_is_interrupted() -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::is_interrupted();
    #[cfg(not(feature = "debug"))]
    false
}

#[cfg(any(test, feature = "observe"))]
pub mod observe {
    //! For tests: a function that hears what the hooks are asked. Not part of
    //! the interface; the feature `observe` is in no shipped library.

    use core::ffi::c_void;
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::{DEBUGGING, Verdict};
    use crate::request::{Origin, Request, Return};

    /// What a hook was asked.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Event {
        /// A block of a size and alignment, to be zeroed or not.
        Request(Origin, usize, usize, bool),
        /// A block back, with the size and alignment that the caller knows.
        Return(Origin, Option<usize>, Option<usize>),
        /// Another size for a block, and what the caller knows of the block.
        Resize(Origin, usize, Option<usize>, Option<usize>),
        /// A fault at an address, and whether it was a write.
        Fault(usize, Option<bool>, *mut c_void),
        /// [`super::forget_code`].
        Forget,
        /// [`super::debug_at_exit`].
        AtExit,
    }

    /// The function that hears. The answer matters for faults alone.
    pub type Watcher = fn(Event) -> Verdict;

    static WATCHER: AtomicPtr<Watcher> = AtomicPtr::new(core::ptr::null_mut());

    /// Begins to debug, in threads that start to allocate from now on.
    pub fn begin(watcher: &'static Watcher) {
        WATCHER.store(core::ptr::from_ref(watcher).cast_mut(), Ordering::Release);
        DEBUGGING.store(true, Ordering::Relaxed);
    }

    /// Ends it, for threads that start to allocate from now on.
    pub fn end() {
        DEBUGGING.store(false, Ordering::Relaxed);
        WATCHER.store(core::ptr::null_mut(), Ordering::Release);
    }

    fn notify(event: Event) -> Verdict {
        // SAFETY: null, or a reference that lives for ever.
        match unsafe { WATCHER.load(Ordering::Acquire).as_ref() } {
            Some(watcher) => watcher(event),
            None => Verdict::NotOurs,
        }
    }

    pub(super) fn request(Request { size, align, zero, origin }: Request) {
        notify(Event::Request(origin, size, align, zero));
    }

    pub(super) fn given(Return { origin, size, align, .. }: Return) {
        notify(Event::Return(origin, size, align));
    }

    pub(super) fn resize(new: usize, Return { origin, size, align, .. }: Return) {
        notify(Event::Resize(origin, new, size, align));
    }

    pub(super) fn fault(address: usize, is_write: Option<bool>, context: *mut c_void) -> Verdict {
        notify(Event::Fault(address, is_write, context))
    }

    pub(super) fn forget() {
        notify(Event::Forget);
    }

    pub(super) fn at_exit() {
        notify(Event::AtExit);
    }
}
