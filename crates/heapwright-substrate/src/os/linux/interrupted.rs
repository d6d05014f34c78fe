//! Interrupted calls: a system call that our signal ended is made again.
//!
//! ```text
//!   before the signal   /proc/self/task/N/syscall: number, arguments, stack, address behind it
//!   in the handler      the call has returned EINTR --> the thread goes back to the instruction
//! ```
//!
//! The kernel itself restarts most calls (SA_RESTART), but not `poll`, `pause`, `epoll_wait` and
//! their like. Without this, the program would see a signal that it never got. A relative timeout
//! begins again.
//!
//! Used by `standstill`. A call is made again only if no other signal waits: that signal may be the
//! reason for EINTR, or is to end the call.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::process::{hexadecimal, read_of_thread};
use crate::digits;

/// The system call in which a thread waits. All-zero bytes: none.
pub(super) struct Call {
    /// The number of the call, plus 1. 0: none.
    number: AtomicUsize,
    /// The six arguments, and the stack pointer.
    with: [AtomicUsize; 7],
    /// The address behind the instruction.
    behind: AtomicUsize,
}

/// The calls that return EINTR although a handler has SA_RESTART, and have done nothing then.
/// (`connect` and `close` are missing: they must not be made twice.)
const REPEATABLE: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_futex,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    // With a timeout of the socket:
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

#[cfg(target_arch = "x86_64")]
const INSTRUCTION: [u8; 2] = [0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
const INSTRUCTION: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

impl Call {
    #[cfg(test)]
    pub(super) fn none() -> Self {
        let [number, behind] = [const { AtomicUsize::new(0) }; 2];
        Self { number, with: [const { AtomicUsize::new(0) }; 7], behind }
    }

    /// Notes the call in which a thread waits now, if it waits.
    pub(super) fn note(&self, thread: u32) {
        self.number.store(0, Ordering::Relaxed);
        let mut buffer = [0; 256];
        read_of_thread(thread, b"/syscall\0", &mut buffer, |line| {
            if let Some((number, with, behind)) = parse(line) {
                self.with.iter().zip(with).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
                self.behind.store(behind, Ordering::Relaxed);
                self.number.store(number + 1, Ordering::Relaxed);
            }
            false
        });
    }

    /// Makes the interrupted thread repeat its call, if our signal ended it.
    pub(super) fn repeat(&self, context: &mut libc::ucontext_t) {
        let [behind, result] = place_and_result(context);
        if self.behind.load(Ordering::Relaxed) != behind
            || result as isize != -(libc::EINTR as isize)
            || !is_with(context, &self.with)
        {
            return;
        }
        let Some(number) = self.number.load(Ordering::Relaxed).checked_sub(1) else { return };
        let at = behind.wrapping_sub(INSTRUCTION.len());
        // SAFETY: the thread has executed the instruction that ends at `behind`.
        let before = unsafe { ptr::with_exposed_provenance::<[u8; INSTRUCTION.len()]>(at).read() };
        if before != INSTRUCTION
            || !REPEATABLE.contains(&(number as libc::c_long))
            || is_signal_waiting(context)
        {
            return;
        }
        go_back(context, at, number, self.with[0].load(Ordering::Relaxed));
    }
}

/// Reads a line of `/proc/N/syscall`. Returns the call's number, its arguments with the stack
/// pointer, and the address behind the call.
fn parse(line: &[u8]) -> Option<(usize, [usize; 7], usize)> {
    let mut fields = line.trim_ascii_end().split(|&byte| byte == b' ');
    let number = digits::number(fields.next()?)?;
    let mut word = || hexadecimal(fields.next()?.strip_prefix(b"0x")?);
    let mut with = [0; 7];
    for place in &mut with {
        *place = word()?;
    }
    Some((number, with, word()?))
}

/// Whether a signal waits that the thread receives as soon as our handler returns.
fn is_signal_waiting(context: &libc::ucontext_t) -> bool {
    let mut waiting = 0u64;
    // SAFETY: the kernel writes a mask of 8 bytes.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut waiting, size_of::<u64>()) };
    // SAFETY: the kernel's mask is the first word.
    let blocked = unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() };
    waiting & !blocked != 0
}

#[cfg(target_arch = "x86_64")]
fn place_and_result(context: &libc::ucontext_t) -> [usize; 2] {
    let registers = &context.uc_mcontext.gregs;
    [libc::REG_RIP, libc::REG_RAX].map(|register| registers[register as usize] as usize)
}

/// Whether the thread made the noted call, and not another one at the same place meanwhile.
#[cfg(target_arch = "x86_64")]
fn is_with(context: &libc::ucontext_t, with: &[AtomicUsize; 7]) -> bool {
    use libc::{REG_R8, REG_R9, REG_R10, REG_RDI, REG_RDX, REG_RSI, REG_RSP};
    let places = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9, REG_RSP];
    places.into_iter().zip(with).all(|(at, word)| {
        context.uc_mcontext.gregs[at as usize] as usize == word.load(Ordering::Relaxed)
    })
}

/// Whether the thread made the noted call. (The result has replaced the first argument.)
#[cfg(target_arch = "aarch64")]
fn is_with(context: &libc::ucontext_t, with: &[AtomicUsize; 7]) -> bool {
    let now = &context.uc_mcontext;
    let words = now.regs[1..6].iter().chain([&now.sp]);
    words.zip(&with[1..]).all(|(now, word)| *now as usize == word.load(Ordering::Relaxed))
}

#[cfg(target_arch = "x86_64")]
fn go_back(context: &mut libc::ucontext_t, at: usize, number: usize, _first: usize) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = at as i64;
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = number as i64;
}

#[cfg(target_arch = "aarch64")]
fn place_and_result(context: &libc::ucontext_t) -> [usize; 2] {
    [context.uc_mcontext.pc as usize, context.uc_mcontext.regs[0] as usize]
}

#[cfg(target_arch = "aarch64")]
fn go_back(context: &mut libc::ucontext_t, at: usize, number: usize, first: usize) {
    context.uc_mcontext.pc = at as u64;
    context.uc_mcontext.regs[0] = first as u64;
    context.uc_mcontext.regs[8] = number as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_a_waiting_thread_is_read_and_no_other() {
        let line = b"7 0x7ffc0 0x1 0xffffffff 0x0 0x8 0x22 0x7ffd8 0x7f12a\n";
        let with = [0x7ffc0, 1, 0xffff_ffff, 0, 8, 0x22, 0x7ffd8];
        assert_eq!(parse(line), Some((7, with, 0x7f12a)));
        for line in [&b"running\n"[..], b"-1 0x7ffd8 0x7f12a\n", b"7 0x7ffc0 0x1\n", b"", b"7 9"] {
            assert_eq!(parse(line), None);
        }
    }
}
