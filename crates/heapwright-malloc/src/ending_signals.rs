//! Signals that end a process: the debug heap's last check before the end.
//!
//! SIGTERM or Ctrl-C stops most servers, and most have no handler for these signals. The kernel
//! then ends the process before the debug heap's checks. So with the options `leaks` or `record` of
//! mode=debug, our handler replaces each default action:
//!
//! ```text
//!   TERM --> on_signal --> the heap interrupted? -- yes --> again in a millisecond
//!                              | no
//!                              v
//!                          the last check (`at_exit`) --> default action --> the same signal
//! ```
//!
//! **The program's handlers** replace ours, and `SIG_IGN` stays. A call that reads the action gets
//! `SIG_DFL` in place of our handler, and a call that sets `SIG_DFL` installs our handler again
//! (`signals`). So programs that clean up in their handler, restore the default and raise the
//! signal again get the last check, too. An exec restores the default.
//!
//! [`on_signal_once`] replaces one-shot handlers (`SA_RESETHAND`).
//!
//! **A second signal** during the check is dropped in every thread: `kill -TERM -GROUP`, and a
//! command that passes signals on, send two. SIGKILL still works.
//!
//! **Other threads** run on during the check. A thread that calls `exit` meanwhile waits, because
//! the signal ends the process.
//!
//! **Interrupted.** The thread may be inside `malloc`. Then it continues, and a timer sends the
//! signal again. After [`TRIES`] attempts the process ends without the check, and its record has no
//! end. An exec deletes the timers, so the check library waits for the signal: `before_exec`.

use crate::at_exit::{self, Look};
use crate::signals::{self, Action};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use heapwright::{heap, process};
use libc::c_int;

/// Signals whose default action ends a process without a core file, a bit each. We do not catch
/// signals that dump core: the core file must show the program as it was. In process 1 of a
/// container we catch no signal: the kernel delivers none without a handler.
const ENDING: u64 = {
    const NAMED: [c_int; 12] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGSTKFLT,
    ];
    // Real-time signals. The C library keeps the numbers below for itself.
    let first = if cfg!(target_env = "musl") { 35 } else { 34 };
    let (mut bits, mut at) = (!0 << (first - 1), 0);
    while at < NAMED.len() {
        bits |= signals::bit(NAMED[at]);
        at += 1;
    }
    bits
};

const SIGNALS: c_int = 64;

/// Attempts, one a millisecond. Then the process ends although the heap is interrupted.
const TRIES: u32 = 2000;

static WATCHES: AtomicBool = AtomicBool::new(false);
static TRIED: AtomicU32 = AtomicU32::new(0);
/// Whether the timer will send a signal again.
static COMES: AtomicBool = AtomicBool::new(false);

fn is_ending(signal: c_int) -> bool {
    (1..=SIGNALS).contains(&signal) && ENDING & signals::bit(signal) != 0
}

/// Whether our handler replaces the default action of a signal.
pub(crate) fn has(signal: c_int) -> bool {
    WATCHES.load(Ordering::Relaxed) && is_ending(signal)
}

pub(crate) fn ours() -> Action {
    Action { handler: on_signal as *const () as usize, flags: 0, mask: !0 }
}

pub(crate) fn is_our_handler(handler: usize) -> bool {
    handler == on_signal as *const () as usize
}

/// The program's one-shot handlers, one per signal. 0 means none, or one that was called.
static ONCE: [AtomicUsize; SIGNALS as usize] = [const { AtomicUsize::new(0) }; SIGNALS as usize];

fn once(signal: c_int) -> Option<&'static AtomicUsize> {
    is_ending(signal).then(|| &ONCE[signal as usize - 1])
}

/// Whether the program sets a one-shot handler for a signal that we catch.
pub(crate) fn is_for_once(signal: c_int, action: Action) -> bool {
    action.flags & libc::SA_RESETHAND != 0
        && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.handler)
        && has(signal)
}

/// Returns the action for the kernel.
pub(crate) fn remember_once(signal: c_int, action: Action) -> Action {
    if let Some(once) = once(signal) {
        once.store(action.handler, Ordering::Relaxed);
    }
    Action {
        handler: on_signal_once as *const () as usize,
        flags: action.flags & !libc::SA_RESETHAND,
        ..action
    }
}

/// The program's one-shot handler of a signal, until it is called; otherwise `SIG_DFL`.
pub(crate) fn handler_for_once(signal: c_int) -> usize {
    once(signal).map_or(libc::SIG_DFL, |once| once.load(Ordering::Relaxed))
}

pub(crate) fn stands_for_once(handler: usize) -> bool {
    handler == on_signal_once as *const () as usize
}

/// The kernel's handler in place of a one-shot handler, with the program's signal mask.
///
/// The kernel would restore the default action before the program's handler raises the signal
/// again. So this function installs [`on_signal`] and calls the program's handler. Of two signals
/// at once, the second finds no handler and gets the default action.
extern "C" fn on_signal_once(signal: c_int, info: usize, context: usize) {
    let errno = crate::errno::get();
    let Some(once) = once(signal) else { return };
    // A child of vfork has handlers of its own, and its parent's memory.
    let is_original = process::is_original_process();
    let handler =
        if is_original { once.swap(0, Ordering::Relaxed) } else { once.load(Ordering::Relaxed) };
    signals::set_in_kernel(signal, if is_original { ours() } else { Action::DEFAULT });
    crate::errno::set(errno);
    if handler == 0 {
        return signals::send_to_this_thread(signal);
    }
    // SAFETY: `handler` is not 0. It is the program's for this signal, and takes these arguments or
    // fewer.
    let handler =
        unsafe { core::mem::transmute::<usize, extern "C" fn(c_int, usize, usize)>(handler) };
    handler(signal, info, context);
}

/// Installs our handler for each signal with the default action. The constructor calls this.
#[cold]
pub(crate) fn watch() {
    // SAFETY: the call has no preconditions.
    if unsafe { libc::getpid() } == 1 || !heap::debug_looks_at_end() {
        return;
    }
    WATCHES.store(true, Ordering::Relaxed);
    for signal in (1..=SIGNALS).filter(|&signal| is_ending(signal)) {
        if signals::of_kernel(signal).is_some_and(|action| action.handler == libc::SIG_DFL) {
            signals::set_in_kernel(signal, ours());
        }
    }
}

/// The kernel's handler. All signals are blocked.
extern "C" fn on_signal(signal: c_int) {
    let errno = crate::errno::get();
    // SAFETY: the call has no preconditions.
    if unsafe { libc::getpid() } == 1 {
        // The process became the first of a namespace: without a handler it would get no signal.
        return;
    }
    COMES.store(false, Ordering::Relaxed);
    // A child of vfork has nothing to check, and a short stack has no room for the check.
    if process::is_original_process() && heap::debug_has_stack((&raw const errno).addr()) {
        if heap::debug_is_interrupted() && at_exit::look() != Look::Done {
            if at_exit::look() == Look::UnderWay || send_later(signal) {
                return crate::errno::set(errno);
            }
        } else if at_exit::report_at_signal(signal) == Look::UnderWay {
            return crate::errno::set(errno);
        }
    }
    signals::set_in_kernel(signal, Action::DEFAULT);
    // The signal is blocked until we return, so the kernel delivers it at the interrupted place.
    signals::send_to_this_thread(signal);
    crate::errno::set(errno);
}

/// Makes a timer send the signal again in a millisecond. Returns whether it will.
fn send_later(signal: c_int) -> bool {
    /// The kernel's number of the timer plus 1, or 0 if there is no timer.
    static TIMER: AtomicI32 = AtomicI32::new(0);
    /// `struct sigevent` as the kernel has it: 64 bytes.
    #[repr(C)]
    struct Event {
        value: usize,
        signal: c_int,
        notify: c_int,
        rest: [u8; 48],
    }
    const { assert!(size_of::<Event>() == 64) };
    if TRIED.fetch_add(1, Ordering::Relaxed) >= TRIES {
        return false;
    }
    // The C library's functions would allocate.
    if TIMER.load(Ordering::Relaxed) == 0 {
        let event = Event { value: 0, signal, notify: libc::SIGEV_SIGNAL, rest: [0; 48] };
        let mut number: c_int = 0;
        let clock = libc::CLOCK_MONOTONIC;
        // SAFETY: the kernel reads `event` and writes `number`, which have the kernel's types.
        let made = unsafe {
            libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut number)
        };
        if made != 0 {
            return false;
        }
        TIMER.store(number + 1, Ordering::Relaxed);
    }
    let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::itimerspec {
        it_interval: nothing,
        it_value: libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 },
    };
    let number = TIMER.load(Ordering::Relaxed) - 1;
    let old = core::ptr::null_mut::<libc::itimerspec>();
    // SAFETY: this function made the timer; the kernel reads `once`, and `old` is null.
    let is_set =
        unsafe { libc::syscall(libc::SYS_timer_settime, number, 0, &raw const once, old) == 0 };
    COMES.store(is_set, Ordering::Relaxed);
    is_set
}

/// Waits some milliseconds at most for a signal of the timer. The process is about to execute
/// another program, which has no timers.
#[cfg(heapwright_reads)]
pub(crate) fn before_exec() {
    const NAPS: u32 = 20;
    for _ in 0..NAPS {
        if !COMES.load(Ordering::Relaxed) || !process::is_original_process() {
            return;
        }
        process::nap();
    }
}
