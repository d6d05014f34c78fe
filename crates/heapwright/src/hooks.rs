//! The hooks of the debug heap, for `heap` and the C layer.
//!
//! ```text
//!   heap       allocate(Request)                 -> a block, or "not mine"
//!              free(block, Return)               -> done, or "not mine"
//!              realloc(block, size, Return)      -> a block, or "not mine"
//!              usable_size(block)                -> bytes, or "not mine"
//!   C layer    fault(address, is_write, context) -> whose fault is it?
//!              forget_code()                     a library was unloaded
//!              debug_at_exit(signal)             the checks at the process's end
//! ```
//!
//! While the process debugs, threads' fast words lead to a front (`heap::modes`), so every call
//! reaches the front's table, which calls these hooks first. After "not mine" the call continues as
//! in fast mode: the block was made before the options were read, or by another allocator. While
//! the process does not debug, `heap` calls none of them. Without the feature `debug`, every answer
//! is "not mine". Tests observe the calls through `observe`, which is compiled only for tests.

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

/// Returns whether every call goes to the debug heap first.
#[inline(always)]
pub(crate) fn is_debugging() -> bool {
    DEBUGGING.load(Ordering::Relaxed)
}

/// Returns whether the process runs with the debug heap. Reads the options if necessary, because
/// the C layer calls this when it is loaded.
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

/// Returns whether some blocks get guard pages without the debug heap. Reads the options if
/// necessary, because the C layer calls this when it is loaded.
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

#[cfg(feature = "debug")]
pub(crate) fn start() {
    if crate::debug::start() {
        DEBUGGING.store(true, Ordering::Relaxed);
    }
}

/// Serves a request. Returns null without memory, and `None` if this process does not debug.
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

/// Frees a block, which must not be null. Returns false if the block is not the debug heap's.
///
/// # Safety
///
/// As for `heap::free`.
#[inline(always)]
pub(crate) unsafe fn free(block: *mut u8, what: Return) -> bool {
    #[cfg(any(test, feature = "observe"))]
    observe::given(what);
    #[cfg(feature = "debug")]
    // SAFETY: the caller gives up the block, if it is the debug heap's.
    return unsafe { crate::debug::free(block, what) };
    #[cfg(not(feature = "debug"))]
    {
        let _ = (block, what);
        false
    }
}

/// Resizes a block, which must not be null. Returns `None` if the block is not the debug heap's.
/// Returns null without memory, and the old block is unchanged.
///
/// # Safety
///
/// As for `heap::realloc`.
#[inline(always)]
pub(crate) unsafe fn realloc(block: *mut u8, size: usize, what: Return) -> Option<*mut u8> {
    #[cfg(any(test, feature = "observe"))]
    observe::resize(size, what);
    #[cfg(feature = "debug")]
    // SAFETY: the caller promises that afterwards only the returned block is used.
    return unsafe { crate::debug::realloc(block, what, resized(what, size)) };
    #[cfg(not(feature = "debug"))]
    {
        let _ = (block, size, what);
        None
    }
}

#[cfg(feature = "debug")]
#[inline(always)]
fn resized(what: Return, size: usize) -> Request {
    let origin =
        if what.origin.is_freed_by(Origin::Malloc) { Origin::Realloc } else { what.origin };
    Request { size, align: what.align.unwrap_or(1), zero: false, origin }
}

/// Returns the usable bytes of a block, or `None` if the block is not the debug heap's.
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

/// Returns whether the block at an address belongs to a pool, an arena or a heap of C.
#[cfg(feature = "debug")]
pub(crate) fn is_owned(address: usize) -> bool {
    crate::debug::is_owned(address)
}

/// Returns whether `bytes` bytes at `address`, in this unit, are certainly in a live block of a
/// debug heap, without poison.
#[inline(always)]
pub(crate) fn holds(unit: usize, entry: Entry, address: usize, bytes: usize) -> bool {
    #[cfg(feature = "debug")]
    if let Some((head, is_rest)) = entry.debug_head(unit) {
        return crate::debug::holds(head, is_rest, address, bytes);
    }
    let _ = (unit, entry, address, bytes);
    false
}

/// Returns the bytes from an address in a debug heap's unit to its live block's end, or 0.
pub(crate) fn room(unit: usize, entry: Entry, address: usize) -> usize {
    #[cfg(feature = "debug")]
    return crate::debug::room(unit, entry, address);
    #[cfg(not(feature = "debug"))]
    {
        let _ = (unit, entry, address);
        0
    }
}

/// Poisons `bytes` bytes from `address` on, up to the end of their live block, or unpoisons them.
/// If a function of the C library accesses poisoned bytes, that is a finding
/// ([`room`](crate::heap::room)). Does nothing outside of `mode=debug`.
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

/// Returns the number of successive [poisoned](poison) bytes from `address` on, at most `most`, or
/// `None` if the memory is not the debug heap's.
#[must_use]
pub fn poisoned_bytes(address: usize, most: usize) -> Option<usize> {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::poisoned_bytes(address, most);
    }
    let _ = (address, most);
    None
}

/// Returns the call that made, or freed, the block at `address`: the thread's number, from 1, and
/// the stack's return addresses, innermost first. Returns `None` if the process does not debug, or
/// if there is no such block.
#[must_use]
pub fn block_history(address: usize, was_freed: bool) -> Option<(u32, &'static [usize])> {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::block_history(address, was_freed);
    }
    let _ = (address, was_freed);
    None
}

/// Reports that a function of the C library got memory that no live block holds. Returns false if
/// this process does not debug.
#[cold]
pub(crate) fn out_of_bounds(function: &str, access: Access, address: usize, bytes: usize) -> bool {
    #[cfg(feature = "debug")]
    if is_debugging() {
        use heapwright_record::debug::{Access as Done, Function};
        let is_limit = matches!(access, Access::Limit);
        let access = match access {
            Access::Read => Done::Read,
            Access::Write | Access::Limit => Done::Write,
            Access::Unknown => Done::Unknown,
        };
        let function = Function::named(function);
        let asked = crate::debug::Asked { function, access, address, bytes, is_limit };
        crate::debug::out_of_bounds(asked);
        return true;
    }
    let _ = (function, access, address, bytes);
    false
}

/// Judges a fault at an address, for a C layer that catches the signal. The caller must be a signal
/// handler with all signals blocked. `is_write` is `None` if the machine does not tell. `context`
/// is the `ucontext_t` of the instruction.
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

/// Restores the guard of an address's page, which [`fault`] removed ([`Verdict::Step`]). Allowed in
/// a signal handler.
pub fn put_guard_back(address: usize) {
    #[cfg(feature = "debug")]
    crate::debug::put_guard_back(address);
    #[cfg(not(feature = "debug"))]
    let _ = address;
}

/// Removes the debug heap's guards in a range for one call of the kernel. Returns false if the
/// range has no guards, or if they stay.
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

/// Restores the guards in a range that [`lift_guards`] removed.
pub fn put_guards_back(address: usize, bytes: usize) {
    #[cfg(feature = "debug")]
    crate::debug::put_guards_back(address, bytes);
    #[cfg(not(feature = "debug"))]
    let _ = (address, bytes);
}

/// Returns whether the page of an address is a guard of the debug heap.
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

/// Declares the block at an address as no leak, or withdraws that. Does nothing outside of
/// `mode=debug`.
pub fn keep(address: usize, kept: bool) {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::keep(address, kept);
    }
    let _ = (address, kept);
}

/// Declares the calling thread's further blocks as no leaks, or stops that. Does nothing outside of
/// `mode=debug`.
pub fn keep_new(kept: bool) {
    #[cfg(feature = "debug")]
    if is_debugging() {
        return crate::debug::keep_new(kept);
    }
    let _ = kept;
}

/// Records the loaded libraries before one may be unloaded, because stacks refer to them. The
/// caller must hold no lock. A C layer that interposes `dlclose` calls this, while [`debugging`].
pub fn remember_code() {
    #[cfg(feature = "debug")]
    crate::debug::remember_code();
}

/// Forgets the code of a library that the calling thread has unloaded. The caller must hold no
/// lock. A C layer that interposes `dlclose` calls this, while [`debugging`].
pub fn forget_code() {
    #[cfg(any(test, feature = "observe"))]
    observe::forget();
    #[cfg(feature = "debug")]
    crate::debug::forget_code();
}

/// Releases reserved addresses of the debug heap, because such addresses will be limited.
pub(crate) fn debug_gives_up_reserve() {
    #[cfg(feature = "debug")]
    crate::debug::give_up_reserve();
}

/// Prepares the debug heap before `main`: begins the record, installs the leak check's signal
/// handler, and notes the place of thread-local variables. The C layer's constructor calls this
/// once, while [`debugging`].
pub fn debug_prepare() {
    #[cfg(feature = "debug")]
    crate::debug::prepare();
}

/// Runs the debug heap's checks at the end of the process. A C layer that sees the end calls this
/// while [`debugging`] or [`guarding`]: once, in the thread that ends the process, and if possible
/// after the program's own handlers and destructors. Other threads may still run and allocate.
/// `signal` is the signal that ends the process, or 0.
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

/// Returns whether [`debug_at_exit`] must also run when a signal ends the process (options `leaks`,
/// `record`).
#[must_use]
pub fn debug_looks_at_end() -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::looks_at_end();
    #[cfg(not(feature = "debug"))]
    false
}

/// Returns whether the caller's stack has room for the checks at exit below the address `at`.
/// Returns true if the mappings do not tell.
#[must_use]
pub fn debug_has_stack(at: usize) -> bool {
    const LEAST: usize = 64 << 10;
    match os::mapping_of(at) {
        // The main thread's stack grows.
        Ok(Some(stack)) if stack.contents() != Contents::MainStack => at - stack.start >= LEAST,
        _ => true,
    }
}

/// Returns whether the caller is a signal handler that interrupted the debug heap in its own
/// thread. Then no check is possible.
#[must_use]
pub fn debug_is_interrupted() -> bool {
    #[cfg(feature = "debug")]
    return crate::debug::is_interrupted();
    #[cfg(not(feature = "debug"))]
    false
}

#[cfg(any(test, feature = "observe"))]
pub mod observe {
    //! For tests: observes the hooks. No shipped library has the feature `observe`.

    use core::ffi::c_void;
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::{DEBUGGING, Verdict};
    use crate::request::{Origin, Request, Return};

    /// A call of a hook.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Event {
        /// A request: origin, size, alignment, and whether it is zeroed.
        Request(Origin, usize, usize, bool),
        /// A free, with the size and alignment that the caller knows.
        Return(Origin, Option<usize>, Option<usize>),
        /// A resize: the new size, and the size and alignment that the caller knows.
        Resize(Origin, usize, Option<usize>, Option<usize>),
        /// A fault at an address, and whether it was a write.
        Fault(usize, Option<bool>, *mut c_void),
        /// [`super::forget_code`].
        Forget,
        /// [`super::debug_at_exit`].
        AtExit,
    }

    /// The observer. Its result is used only for faults.
    pub type Watcher = fn(Event) -> Verdict;

    static WATCHER: AtomicPtr<Watcher> = AtomicPtr::new(core::ptr::null_mut());

    /// Starts debugging in threads that start to allocate from now on.
    pub fn begin(watcher: &'static Watcher) {
        WATCHER.store(core::ptr::from_ref(watcher).cast_mut(), Ordering::Release);
        DEBUGGING.store(true, Ordering::Relaxed);
    }

    /// Ends debugging for threads that start to allocate from now on.
    pub fn end() {
        DEBUGGING.store(false, Ordering::Relaxed);
        WATCHER.store(core::ptr::null_mut(), Ordering::Release);
    }

    fn notify(event: Event) -> Verdict {
        // SAFETY: the pointer is null or a reference that lives for ever.
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
