//! The system calls, each behind one safe function. `arch` has the instruction and the numbers.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

use crate::arguments::Strings;
use arch::{call, number};
use core::ffi::c_char;
use core::mem::MaybeUninit;

pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGKILL: i32 = 9;
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGCHLD: i32 = 17;

/// Nanoseconds in a second: the length of each sleep in a wait without a limit.
pub(crate) const CLOCK_NS: u64 = 1_000_000_000;

const EINTR: isize = -4;

pub(crate) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: no pointers are involved.
        unsafe { call(number::EXIT_GROUP, [code as usize, 0, 0, 0, 0]) };
    }
}

pub(crate) fn now() -> u64 {
    const MONOTONIC: usize = 1;
    let mut time = MaybeUninit::<[u64; 2]>::uninit();
    let place = time.as_mut_ptr() as usize;
    // SAFETY: the pointer is writable and as large as a timespec.
    unsafe { call(number::CLOCK_GETTIME, [MONOTONIC, place, 0, 0, 0]) };
    // SAFETY: the call has filled the value; the call cannot fail for this clock.
    let [seconds, nanoseconds] = unsafe { time.assume_init() };
    seconds.wrapping_mul(CLOCK_NS).wrapping_add(nanoseconds)
}

/// Forks: returns 0 in the child, the child's number in the parent, a negative number on failure.
///
/// A copy, not a vfork: Rust does not allow a child on the parent's stack.
pub(crate) fn fork() -> i32 {
    // SAFETY: the processes share no memory, and the call sets no stack: the child continues on
    // its copy of ours. There is one thread, so the copy is complete.
    let result = unsafe { call(number::CLONE, [SIGCHLD as usize, 0, 0, 0, 0]) };
    result as i32
}

pub(crate) fn own_pid() -> i32 {
    // SAFETY: no pointers are involved.
    unsafe { call(number::GETPID, [0; 5]) as i32 }
}

pub(crate) fn parent() -> i32 {
    // SAFETY: no pointers are involved.
    unsafe { call(number::GETPPID, [0; 5]) as i32 }
}

/// Makes a process (0: this one) the leader of a new group.
pub(crate) fn lead_group(process: i32) {
    // SAFETY: no pointers are involved. The call may fail if the other process made the group first
    // and called exec. The group then exists.
    unsafe { call(number::SETPGID, [process as usize, process as usize, 0, 0, 0]) };
}

pub(crate) fn die_with_parent(signal: i32) {
    const SET_PDEATHSIG: usize = 1;
    // SAFETY: no pointers are involved.
    unsafe { call(number::PRCTL, [SET_PDEATHSIG, signal as usize, 0, 0, 0]) };
}

pub(crate) fn kill_group(leader: i32) {
    // SAFETY: no pointers are involved.
    unsafe { call(number::KILL, [-(leader as isize) as usize, SIGKILL as usize, 0, 0, 0]) };
}

pub(crate) fn close_on_exec(descriptor: i32) {
    const SET_FLAGS: usize = 2;
    const CLOSE_ON_EXEC: usize = 1;
    // SAFETY: no pointers are involved.
    unsafe { call(number::FCNTL, [descriptor as usize, SET_FLAGS, CLOSE_ON_EXEC, 0, 0]) };
}

/// Becomes a program. Returns the error's number on failure.
pub(crate) fn exec(program: Strings, environment: Strings) -> i32 {
    // SAFETY: `Arguments` contains at least the program's path.
    let path: *const c_char = unsafe { program.read() };
    let arguments = [path as usize, program as usize, environment as usize, 0, 0];
    // SAFETY: the strings and arrays are the kernel's own, each with its terminator.
    let result = unsafe { call(number::EXECVE, arguments) };
    -(result as i32)
}

/// Writes bytes. If the reader has gone, they are lost.
pub(crate) fn write(descriptor: i32, bytes: *const u8, length: usize) {
    // SAFETY: the bytes are read only, and the kernel checks the range itself.
    unsafe { call(number::WRITE, [descriptor as usize, bytes as usize, length, 0, 0]) };
}

pub(crate) fn default_child_signal() {
    // Zeros mean the default on both architectures, in the longest form of the structure.
    let action: [usize; 4] = [0; 4];
    let place = (&raw const action) as usize;
    // SAFETY: the structure is readable. With null the call does not write the old one.
    unsafe { call(number::RT_SIGACTION, [SIGCHLD as usize, place, 0, SET_BYTES, 0]) };
}

const SET_BYTES: usize = size_of::<u64>();

/// A set of signals: bit n-1 stands for signal n.
#[derive(Clone, Copy)]
pub(crate) struct Signals(u64);

impl Signals {
    pub(crate) fn watched() -> Self {
        let bit = |signal: i32| 1 << (signal - 1);
        Self(bit(SIGCHLD) | bit(SIGTERM) | bit(SIGINT) | bit(SIGHUP) | bit(SIGQUIT))
    }

    /// Blocks these signals. Returns the signals that were blocked before.
    pub(crate) fn block(self) -> Self {
        const BLOCK: usize = 0;
        self.change_mask(BLOCK)
    }

    pub(crate) fn restore(self) {
        const SET: usize = 2;
        self.change_mask(SET);
    }

    fn change_mask(self, how: usize) -> Self {
        let mut before = 0_u64;
        let (new, old) = ((&raw const self.0) as usize, (&raw mut before) as usize);
        // SAFETY: both sets are live and have the stated size; the old one is writable.
        unsafe { call(number::RT_SIGPROCMASK, [how, new, old, SET_BYTES, 0]) };
        Self(before)
    }

    /// Waits at most `limit` nanoseconds for a signal. Returns its number, or a negative number.
    pub(crate) fn take(self, limit: u64) -> i32 {
        let time = [limit / CLOCK_NS, limit % CLOCK_NS];
        let (set, time) = ((&raw const self.0) as usize, (&raw const time) as usize);
        // SAFETY: the set and the time are live and have the expected sizes. With null the call
        // does not write the signal's details.
        let result = unsafe { call(number::RT_SIGTIMEDWAIT, [set, 0, time, SET_BYTES, 0]) };
        result as i32
    }
}

pub(crate) fn is_stop(signal: i32) -> bool {
    matches!(signal, SIGTERM | SIGINT | SIGHUP | SIGQUIT)
}

/// Returns whether the child is dead. The child is not reaped, so its number stays taken.
pub(crate) fn has_ended(child: i32) -> bool {
    const BY_PID: usize = 1;
    const NO_HANG: usize = 1;
    const EXITED: usize = 4;
    const NO_WAIT: usize = 0x0100_0000;
    // A siginfo has 128 bytes; the first word stays zero while the child runs.
    let mut info: [u64; 16] = [0; 16];
    let place = (&raw mut info) as usize;
    let options = NO_HANG | EXITED | NO_WAIT;
    // SAFETY: the pointer is writable and as large as a siginfo.
    let result = unsafe { call(number::WAITID, [BY_PID, child as usize, place, options, 0]) };
    // An error means that there is no such child.
    (result < 0 && result != EINTR) || info[0] as u32 == SIGCHLD as u32
}

/// The kernel's counts: a `struct rusage`, eighteen numbers.
pub(crate) struct Usage([i64; 18]);

impl Usage {
    pub(crate) const ZERO: Self = Self([0; 18]);

    pub(crate) fn user_us(&self) -> u64 {
        Self::microseconds(self.0[0], self.0[1])
    }

    pub(crate) fn system_us(&self) -> u64 {
        Self::microseconds(self.0[2], self.0[3])
    }

    pub(crate) fn peak_rss_kib(&self) -> u64 {
        self.0[4].unsigned_abs()
    }

    pub(crate) fn minor_faults(&self) -> u64 {
        self.0[8].unsigned_abs()
    }

    pub(crate) fn major_faults(&self) -> u64 {
        self.0[9].unsigned_abs()
    }

    fn microseconds(seconds: i64, microseconds: i64) -> u64 {
        const PER_SECOND: u64 = 1_000_000;
        seconds.unsigned_abs().wrapping_mul(PER_SECOND).wrapping_add(microseconds.unsigned_abs())
    }
}

pub(crate) fn reap(child: i32, usage: &mut Usage) -> u32 {
    let mut status = 0_u32;
    let places = ((&raw mut status) as usize, (&raw mut usage.0) as usize);
    loop {
        let arguments = [child as usize, places.0, 0, places.1, 0];
        // SAFETY: both pointers are writable and as large as the kernel expects.
        let result = unsafe { call(number::WAIT4, arguments) };
        if result != EINTR {
            return status;
        }
    }
}
