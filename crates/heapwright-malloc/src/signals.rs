//! `sigaction`, `signal` and their kin, for the signals that we need.
//!
//! While the heap guards pages, `fault_handler` keeps its handler for SIGSEGV and SIGBUS in the
//! kernel. It remembers the program's actions, and a query returns these. While `ending_signals`
//! watches, its handler replaces the default action of SIGTERM and its kin. A query then returns
//! the default. That handler also calls the program's one-shot handlers of these signals, because
//! the kernel would restore the default. For every other signal each function except `sigignore`
//! calls the next function of its name, usually the C library's. `sigignore` calls `sigaction`.
//!
//! | function | the action it sets |
//! |---|---|
//! | `sigaction` | the one given |
//! | `signal`, `bsd_signal`, `ssignal` | stays; blocks itself; restarts system calls |
//! | `sysv_signal`, `__sysv_signal` | once; does not block itself |
//! | `sigset` | stays; blocks itself; `SIG_HOLD` blocks the signal instead |
//! | `sigignore` | ignores |
//!
//! A static program has no next `signal`: each function then calls `sigaction` as in the table, and
//! ignores changes by `siginterrupt`.
//!
//! All of them may be called in signal handlers, and between fork and exec. The first call of each
//! takes the dynamic linker's lock, which is recursive and free in a forked child.
//!
//! A child of vfork shares its parent's memory, but has its own handlers. Its actions go to the
//! kernel alone and are not remembered.

use crate::weak::next;
use crate::{ending_signals, errno, fault_handler};
use core::ffi::CStr;
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::AtomicPtr;
use heapwright::process;
use libc::{c_int, c_void, sighandler_t, sigset_t};

/// The fields of an action that the kernel reads.
#[derive(Clone, Copy)]
pub(crate) struct Action {
    /// A function, or `SIG_DFL` or `SIG_IGN`.
    pub(crate) handler: usize,
    pub(crate) flags: c_int,
    /// The signals that are blocked while the handler runs, a bit each.
    pub(crate) mask: u64,
}

/// The handler that asks `sigset` to block the signal.
const SIG_HOLD: usize = 2;

pub(crate) const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The kernel has 64 signals, the C library room for more.
fn word(set: &sigset_t) -> u64 {
    // SAFETY: a signal set consists of words, at least one.
    unsafe { (&raw const *set).cast::<u64>().read() }
}

fn set_of(word: u64) -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: a signal set consists of words, at least one.
    unsafe { set.as_mut_ptr().cast::<u64>().write(word) };
    // SAFETY: all words of the set are initialised.
    unsafe { set.assume_init() }
}

impl Action {
    pub(crate) const DEFAULT: Self = Self { handler: libc::SIG_DFL, flags: 0, mask: 0 };

    fn from_c(action: &libc::sigaction) -> Self {
        let libc::sigaction { sa_sigaction, sa_mask, sa_flags, .. } = action;
        Self { handler: *sa_sigaction, flags: *sa_flags, mask: word(sa_mask) }
    }

    fn to_c(self) -> libc::sigaction {
        libc::sigaction {
            sa_sigaction: self.handler,
            sa_mask: set_of(self.mask),
            sa_flags: self.flags,
            sa_restorer: None,
        }
    }
}

type SigactionFn =
    unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type SignalFn = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;

#[cfg(target_env = "musl")]
use crate::musl_sigaction::sigaction as __sigaction;

#[cfg(not(target_env = "musl"))]
unsafe extern "C" {
    /// `sigaction` under another name, for static programs, in which `next` finds none.
    fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

fn next_sigaction() -> SigactionFn {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let found = next(&FOUND, c"sigaction");
    if found.is_null() {
        return __sigaction;
    }
    // SAFETY: `sigaction` has this type in POSIX.
    unsafe { transmute::<*mut c_void, SigactionFn>(found) }
}

/// Sets the kernel's action for a signal. Returns the previous action, or `None` if that failed.
pub(crate) fn set_in_kernel(signal: c_int, action: Action) -> Option<Action> {
    let new = action.to_c();
    exchange(signal, &raw const new)
}

pub(crate) fn of_kernel(signal: c_int) -> Option<Action> {
    exchange(signal, core::ptr::null())
}

fn exchange(signal: c_int, new: *const libc::sigaction) -> Option<Action> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `sigaction` reads `new`, if there is one, and writes `old`.
    let failed = unsafe { next_sigaction()(signal, new, old.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and so is the call's result.
    let old = unsafe { old.assume_init() };
    (failed == 0).then(|| Action::from_c(&old))
}

pub(crate) fn set_mask(mask: u64) {
    change_mask(libc::SIG_SETMASK, mask);
}

/// Changes the calling thread's mask. Returns the previous mask.
fn change_mask(how: c_int, mask: u64) -> u64 {
    let new = set_of(mask);
    let mut old = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the call reads the set `new` and writes the set `old`.
    unsafe { libc::sigprocmask(how, &raw const new, old.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and so is the call's result.
    word(&unsafe { old.assume_init() })
}

pub(crate) fn send_to_this_thread(signal: c_int) {
    // SAFETY: `getpid` has no preconditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: `gettid` has no preconditions.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: the call sends a signal to this thread alone.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
}

/// Whether we remember this signal's actions; never in a child of vfork.
fn is_remembered(signal: c_int) -> bool {
    fault_handler::has(signal) && process::is_original_process()
}

/// Returns the previous action, or `None` if the kernel refused (errno says why).
fn set(signal: c_int, action: Action) -> Option<Action> {
    if is_remembered(signal) {
        return Some(fault_handler::remember(signal, action));
    }
    let once = ending_signals::handler_for_once(signal);
    let action = if !process::is_original_process() {
        action
    } else if action.handler == libc::SIG_DFL && ending_signals::has(signal) {
        ending_signals::ours()
    } else if ending_signals::is_for_once(signal, action) {
        ending_signals::remember_once(signal, action)
    } else {
        action
    };
    set_in_kernel(signal, action).map(|old| as_the_program_sees(signal, old, once))
}

fn examine(signal: c_int) -> Option<Action> {
    let once = ending_signals::handler_for_once(signal);
    of_kernel(signal).map(|now| as_the_program_sees(signal, now, once))
}

/// If the kernel's handler is ours, returns the action that the program set instead (its own
/// handler or the default). `once` is the program's one-shot handler.
fn as_the_program_sees(signal: c_int, action: Action, once: usize) -> Action {
    if fault_handler::is_our_handler(action.handler) {
        fault_handler::programs(signal)
    } else if ending_signals::is_our_handler(action.handler) {
        Action::DEFAULT
    } else if ending_signals::stands_for_once(action.handler) {
        Action { handler: once, flags: action.flags | libc::SA_RESETHAND, ..action }
    } else {
        action
    }
}

/// # Safety
///
/// `new` is null or can be read, `old` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    if is_ours(signal) {
        // SAFETY: as the caller promises.
        return unsafe { sigaction_of_ours(signal, new, old) };
    }
    let next = next_sigaction();
    // SAFETY: as the caller promises.
    unsafe { next(signal, new, old) }
}

/// Whether one of our handlers may be the kernel's for a signal.
fn is_ours(signal: c_int) -> bool {
    fault_handler::has(signal) || ending_signals::has(signal)
}

/// # Safety
///
/// As [`sigaction`].
#[cold]
#[inline(never)]
unsafe fn sigaction_of_ours(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: null, or a struct that can be read, as the caller promises.
    let new = unsafe { new.as_ref() }.map(Action::from_c);
    let before = match new {
        Some(new) => set(signal, new),
        None => examine(signal),
    };
    let Some(before) = before else { return -1 };
    // SAFETY: null, or a struct that can be written, as the caller promises.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before.to_c();
    }
    0
}

/// Calls the next function of this name. If there is none, or if [`is_ours_to_set`], calls [`set`]
/// with the equivalent action.
#[inline(always)]
unsafe fn old_style(
    found: &AtomicPtr<c_void>,
    name: &CStr,
    signal: c_int,
    handler: sighandler_t,
    itself: bool,
    flags: c_int,
) -> sighandler_t {
    if !is_ours_to_set(signal, handler, flags) {
        let next = next(found, name);
        if !next.is_null() {
            // SAFETY: all of these functions have this type.
            let next = unsafe { transmute::<*mut c_void, SignalFn>(next) };
            // SAFETY: the C library's function, and the handler may run, as the caller promises.
            return without_ours(signal, unsafe { next(signal, handler) });
        }
    }
    set_old_style(signal, handler, itself, flags)
}

/// Whether `set` must set this handler, and not the next function of the name.
fn is_ours_to_set(signal: c_int, handler: sighandler_t, flags: c_int) -> bool {
    fault_handler::has(signal)
        || ending_signals::has(signal)
            && (handler == libc::SIG_DFL || flags & libc::SA_RESETHAND != 0)
}

fn without_ours(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if ending_signals::is_our_handler(handler) {
        libc::SIG_DFL
    } else if ending_signals::stands_for_once(handler) {
        ending_signals::handler_for_once(signal)
    } else {
        handler
    }
}

#[cold]
#[inline(never)]
fn set_old_style(signal: c_int, handler: sighandler_t, itself: bool, flags: c_int) -> sighandler_t {
    if handler == libc::SIG_ERR || !(1..=64).contains(&signal) {
        errno::set(libc::EINVAL);
        return libc::SIG_ERR;
    }
    let mask = if itself { bit(signal) } else { 0 };
    set(signal, Action { handler, flags, mask }).map_or(libc::SIG_ERR, |old| old.handler)
}

macro_rules! old_style {
    ($( $(#[$doc:meta])* $name:ident, $text:literal => $itself:literal, $flags:expr; )*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// The handler may run at any time from now on.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
                static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                // SAFETY: the handler may run at any time from now on, as the caller promises.
                unsafe { old_style(&FOUND, $text, signal, handler, $itself, $flags) }
            }
        )*
    };
}

old_style! {
    /// Sets a handler that stays, as BSD did and glibc does.
    signal, c"signal" => true, libc::SA_RESTART;
    bsd_signal, c"bsd_signal" => true, libc::SA_RESTART;
    ssignal, c"ssignal" => true, libc::SA_RESTART;
    /// Sets a one-shot handler, as System V did.
    sysv_signal, c"sysv_signal" => false, libc::SA_RESETHAND | libc::SA_NODEFER;
    /// As `sysv_signal`. Some programs are compiled to call `signal` by this name.
    __sysv_signal, c"__sysv_signal" => false, libc::SA_RESETHAND | libc::SA_NODEFER;
}

/// Sets a handler and unblocks the signal, or blocks it (`SIG_HOLD`). Returns the previous handler,
/// or `SIG_HOLD` if the signal was blocked.
///
/// # Safety
///
/// The handler may run at any time from now on.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    if !is_ours_to_set(signal, handler, 0) {
        let next = next(&FOUND, c"sigset");
        if !next.is_null() {
            // SAFETY: `sigset` has this type.
            let next = unsafe { transmute::<*mut c_void, SignalFn>(next) };
            // SAFETY: the handler may run at any time from now on, as the caller promises.
            return without_ours(signal, unsafe { next(signal, handler) });
        }
    }
    set_or_hold(signal, handler)
}

#[cold]
#[inline(never)]
fn set_or_hold(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if handler == libc::SIG_ERR || !(1..=64).contains(&signal) {
        errno::set(libc::EINVAL);
        return libc::SIG_ERR;
    }
    let holds = handler == SIG_HOLD;
    let before =
        if holds { examine(signal) } else { set(signal, Action { handler, flags: 0, mask: 0 }) };
    let Some(before) = before else { return libc::SIG_ERR };
    let how = if holds { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    let blocked = change_mask(how, bit(signal)) & bit(signal) != 0;
    if blocked { SIG_HOLD } else { before.handler }
}

#[unsafe(no_mangle)]
extern "C" fn sigignore(signal: c_int) -> c_int {
    let ignored = Action { handler: libc::SIG_IGN, flags: 0, mask: 0 };
    if set(signal, ignored).is_some() { 0 } else { -1 }
}
