//! A stack of our own, on which faults are judged.
//!
//! A program's alternative stack may be small: Rust's is 8 KiB, of which the signal's frame takes 3
//! KiB. A report needs more than the rest. So the decision runs on a stack of ours, for one thread
//! at a time.
//!
//! ```text
//!   stack   | guard page | 124 KiB, grows down <--- |
//!   TURN    0, or the process and thread whose decision runs
//! ```
//!
//! **Invariants.** Only the thread that took the turn uses the stack. A thread that already has the
//! turn (a fault in the decision) does not decide again.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use heapwright::heap::Verdict;
use libc::c_void;

/// The function that decides about a fault. Its arguments are the address, whether the access is a
/// write (`None` if the machine does not say), and the context (a `ucontext_t`).
pub(crate) type Decide = fn(address: usize, is_write: Option<bool>, *mut c_void) -> Verdict;

const SIZE: usize = 128 << 10;
const GUARD: usize = 4 << 10;

static TURN: AtomicU64 = AtomicU64::new(0);
/// The stack's highest address, once there is one.
static TOP: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

struct Question {
    decide: Decide,
    address: usize,
    is_write: Option<bool>,
    context: *mut c_void,
    verdict: Verdict,
}

#[cold]
pub(crate) fn make() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping replaces nothing.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), SIZE, access, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return;
    }
    // SAFETY: the call protects the lowest page of the mapping just made.
    unsafe { libc::mprotect(base, GUARD, libc::PROT_NONE) };
    TOP.store(base.cast::<u8>().wrapping_add(SIZE), Ordering::Release);
}

/// Decides about a fault, on our stack if there is one.
pub(crate) fn run(
    decide: Decide,
    address: usize,
    is_write: Option<bool>,
    context: *mut c_void,
) -> Verdict {
    let top = TOP.load(Ordering::Acquire);
    if top.is_null() {
        return decide(address, is_write, context);
    }
    let (process, thread) = (heapwright::process::id(), heapwright::process::thread_id());
    let me = u64::from(process) << 32 | u64::from(thread);
    let mut free = 0;
    while let Err(other) = TURN.compare_exchange(free, me, Ordering::Acquire, Ordering::Relaxed) {
        if other == me {
            return Verdict::NotOurs;
        }
        // A forked child does not have its parent's other threads: their turn is over.
        free = if other >> 32 == u64::from(process) { 0 } else { other };
        // SAFETY: the call has no preconditions.
        unsafe { libc::sched_yield() };
    }
    let mut question = Question { decide, address, is_write, context, verdict: Verdict::NotOurs };
    // SAFETY: the stack is this thread's while it has the turn, and `answer` takes a question.
    unsafe { call_on(top, answer, (&raw mut question).cast()) };
    TURN.store(0, Ordering::Release);
    question.verdict
}

unsafe extern "C" fn answer(question: *mut c_void) {
    // SAFETY: `run` gives a question that lives until this returns.
    let question = unsafe { &mut *question.cast::<Question>() };
    question.verdict = (question.decide)(question.address, question.is_write, question.context);
}

/// Calls `function(argument)` on the stack that ends at `top`.
///
/// # Safety
///
/// The stack is the caller's, `top` is a multiple of 16, and the function returns.
#[unsafe(naked)]
unsafe extern "C" fn call_on(
    top: *mut u8,
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        ".cfi_def_cfa_register rsp",
        "pop rbp",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset w29, -16",
        ".cfi_offset w30, -8",
        "mov x29, sp",
        ".cfi_def_cfa_register w29",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        ".cfi_def_cfa_register sp",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "ret",
        ".cfi_endproc",
    );
}
