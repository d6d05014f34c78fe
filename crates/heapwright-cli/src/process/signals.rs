//! Passes signals on to the program for which this process stands in.
//!
//! The sender of a signal decides our reaction:
//!
//! | from | reached | what we do |
//! |---|---|---|
//! | the terminal (Ctrl-C, Ctrl-\\, resize, hang-up) | the whole foreground group | survive it |
//! | a process (`kill`, `timeout`, a service manager) | perhaps only us | pass it on |
//!
//! The program is in the foreground group. A signal that the program itself sent is not passed on.
//! A hang-up reaches only the leader of the terminal's session. If that is this process (`ssh host
//! heapwright run --stats -- program`), the program gets the signal from here.
//!
//! `si_code` is positive for the kernel's own signals, which tells the two rows apart. A signal
//! from a process to the whole group (`kill -TERM -PGID`) reaches the program twice: here it looks
//! like a signal to this process alone, and a lost signal is worse.
//!
//! After the program's end, this process may wait for daemons that outlive it ([`follow`]). A
//! terminal's signals do not reach the daemons, and they may ignore SIGINT and SIGHUP. So they get
//! SIGTERM for SIGINT, SIGHUP and SIGTERM, and other signals unchanged. SIGTSTP has no handler: on
//! Ctrl-Z we stop with the program, by the kernel's own rules (which ignore Ctrl-Z if no shell
//! could continue us), and `fg` continues both.
//!
//! A signal that was ignored at our start (`nohup`) is passed on like others; the program ignores
//! it too, unless it changes that. A signal without a handler here (SIGSEGV, SIGXCPU, ...) concerns
//! this process alone.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

static CHILD: AtomicI32 = AtomicI32::new(0);

/// The processes that signals are passed to without a [`CHILD`], before the first 0. More than
/// these get no signals.
static FOLLOWED: [AtomicI32; 4096] = [const { AtomicI32::new(0) }; 4096];

static ASKED_TO_END: AtomicU32 = AtomicU32::new(0);

static WAS_ASKED_TO_END: AtomicBool = AtomicBool::new(false);

static LEADS: AtomicBool = AtomicBool::new(false);

/// The signals that are passed on. The real-time signals are passed on, too.
const FORWARDED: [i32; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGPWR,
];

pub(super) fn forward_to(pid: i32) {
    // SAFETY: no preconditions.
    LEADS.store(unsafe { libc::getsid(0) } == std::process::id().cast_signed(), Ordering::SeqCst);
    CHILD.store(pid, Ordering::SeqCst);
    for signal in FORWARDED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
        install(signal);
    }
}

/// Stops passing signals to the child. They still do not end this process, which will report.
pub(super) fn stop_forwarding() {
    CHILD.store(0, Ordering::SeqCst);
}

pub(super) fn follow(pids: &[u32]) {
    let pids = pids.iter().map(|pid| pid.cast_signed()).chain(std::iter::repeat(0));
    for (place, pid) in FOLLOWED.iter().zip(pids) {
        place.store(pid, Ordering::SeqCst);
    }
}

pub(super) fn asked_to_end() -> u32 {
    ASKED_TO_END.load(Ordering::SeqCst)
}

pub(crate) fn was_asked_to_end() -> bool {
    WAS_ASKED_TO_END.load(Ordering::SeqCst)
}

fn install(signal: i32) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroed is a valid sigaction.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe and the action is whole; the zeroed mask is empty.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
}

/// Handles a signal: only async-signal-safe calls, and errno is preserved.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: errno's location is valid for the life of the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: errno's location is valid for the life of the thread, which this handler runs in.
    let saved = unsafe { errno.read() };
    // SAFETY: the kernel hands an SA_SIGINFO handler a valid siginfo.
    let info = unsafe { &*info };
    let child = CHILD.load(Ordering::SeqCst);
    let from_a_process = info.si_code <= 0;
    let is_ours_alone = from_a_process || signal == libc::SIGHUP && LEADS.load(Ordering::SeqCst);
    // SAFETY: a signal from a process carries the sender's pid. In a signal from the kernel the
    // number is not used.
    let sender = unsafe { info.si_pid() };
    // A program that signals its own group (an editor on Ctrl-Z) and our own abort() need no echo.
    let echo = sender == child || sender == std::process::id().cast_signed();
    if matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGHUP) && !echo {
        WAS_ASKED_TO_END.store(true, Ordering::SeqCst);
    }
    if child > 0 && is_ours_alone && !echo {
        // SAFETY: no pointers are involved. The child is not reaped before CHILD is cleared, so the
        // pid is still the child's.
        unsafe { libc::kill(child, signal) };
    }
    if child == 0 {
        pass_to_followed(signal);
    }
    // SAFETY: errno's location is valid for the life of the thread, which this handler runs in.
    unsafe { errno.write(saved) };
}

fn pass_to_followed(signal: i32) {
    let ends = matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP);
    if ends {
        ASKED_TO_END.fetch_add(1, Ordering::SeqCst);
    }
    for pid in FOLLOWED.iter().map(|place| place.load(Ordering::SeqCst)).take_while(|pid| *pid > 0)
    {
        // SAFETY: no pointers are involved. (`commands::checked` renews the list at least five
        // times a second, so the pid is hardly ever another process's.)
        unsafe { libc::kill(pid, if ends { libc::SIGTERM } else { signal }) };
    }
}

/// The signals that were blocked before [`block_all`].
#[derive(Clone, Copy)]
pub(super) struct Mask(libc::sigset_t);

pub(super) fn block_all() -> Mask {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut old = all;
    // SAFETY: the set is writable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: both sets are live; the old one is writable.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    // SAFETY: zeroed is a valid set, and the call has filled it since.
    Mask(unsafe { old.assume_init() })
}

impl Mask {
    pub(super) fn restore(&self) {
        // SAFETY: the set is live, and the old one may be null.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

pub(super) fn set_default(signal: i32) {
    // SAFETY: SIG_DFL is a valid disposition of every signal.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

pub(super) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition of every signal that we name.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Dies of a signal, if the kernel allows it.
pub(super) fn die_of(signal: i32) {
    set_default(signal);
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is writable.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised; a bad signal number changes nothing.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: the set is live, and the old one may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut()) };
    // SAFETY: no pointers are involved.
    unsafe { libc::raise(signal) };
}

/// Returns the name as in `kill -l`.
pub(crate) fn name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSTKFLT => "SIGSTKFLT",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGPROF => "SIGPROF",
        libc::SIGIO => "SIGIO",
        libc::SIGPWR => "SIGPWR",
        libc::SIGSYS => "SIGSYS",
        other if (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&other) => {
            return format!("SIGRTMIN+{}", other - libc::SIGRTMIN());
        }
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names() {
        assert_eq!(name(9), "SIGKILL");
        assert_eq!(name(libc::SIGTERM), "SIGTERM");
        assert_eq!(name(libc::SIGRTMIN() + 3), "SIGRTMIN+3");
        assert_eq!(name(33), "signal 33");
    }
}
