//! Standstill: stops all other threads for a moment, reads their registers, and copies the process.
//!
//! ```text
//!   hold()      each thread of /proc/self/task --signal 33--> its handler writes the registers
//!               to its answer, and waits in a futex
//!   copy()      clone that shares nothing and sends no signal: the copy has all memory as
//!               it is now, and no other thread runs in it
//!   release()   the futex: all threads continue
//! ```
//!
//! This needs no ptrace: a process may always signal itself, in any container. The C library uses
//! signal 33 to change user ids. So no program waits for this signal, or can block it through the C
//! library. A signal 33 of another sender goes to the previous handler. Our handler stays
//! installed, because the signal must not kill a thread that answers too late.
//!
//! A thread that blocks the signal by a raw system call, or is stuck in the kernel, does not answer
//! in time. It continues to run. A system call that the signal ends is made again (`interrupted`).
//! `debug::leaks` calls this module. It holds the heap's locks, so no stopped thread is inside the
//! heap.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::digits;

use super::interrupted::Call;
use super::process::is_over;
use super::{
    calls, errno, futex_wake_all, keeping_errno, now_ns, process_id, thread_id, thread_pointer,
};

/// Words of registers that are kept for each thread.
pub const REGISTERS: usize = 34;

const SIGNAL: c_int = 33;
const MARK: usize = 0x6877_0000;
/// The longest waits for the next answer and for all answers, if there were `POLLS` polls.
const PATIENCE_NS: u64 = 40_000_000;
const LONGEST_NS: u64 = 400_000_000;

/// The answer of a thread.
#[repr(C)]
pub struct Answer {
    /// The thread's number; 0: the place is free.
    thread: AtomicU32,
    state: AtomicU32,
    call: Call,
    words: UnsafeCell<Words>,
}

/// The known state of a thread.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Words {
    /// The lowest used address of its stack.
    pub stack: usize,
    /// Its thread pointer.
    pub pointer: usize,
    /// Its registers, padded with zeroes.
    pub registers: [usize; REGISTERS],
}

const ANSWERED: u32 = 1;

// SAFETY: one thread writes the words, before it sets the state.
unsafe impl Sync for Answer {}

impl Answer {
    /// The thread's number.
    pub fn thread(&self) -> u32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Whether the place belongs to a thread that has not answered.
    pub fn is_silent(&self) -> bool {
        self.thread() != 0 && self.words().is_none()
    }

    /// The words of the answer, if there is one.
    pub fn words(&self) -> Option<&Words> {
        let said = self.state.load(Ordering::Acquire) == ANSWERED;
        // SAFETY: the words were written before the state, and are not written again.
        said.then(|| unsafe { &*self.words.get() })
    }
}

static ANSWERS: AtomicPtr<Answer> = AtomicPtr::new(ptr::null_mut());
static ROOM: AtomicUsize = AtomicUsize::new(0);
/// Odd while threads are held. Each signal's value contains this number.
static ROUND: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicU32 = AtomicU32::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// The registers that a function preserves.
#[inline(always)]
pub fn saved_registers() -> [usize; 12] {
    let mut saved = [0usize; 12];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: writes six words to the array.
    unsafe {
        core::arch::asm!(
            "mov [{0}], rbx", "mov [{0} + 8], rbp", "mov [{0} + 16], r12",
            "mov [{0} + 24], r13", "mov [{0} + 32], r14", "mov [{0} + 40], r15",
            in(reg) saved.as_mut_ptr(), options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: writes eleven words to the array.
    unsafe {
        core::arch::asm!(
            "stp x19, x20, [{0}]", "stp x21, x22, [{0}, 16]", "stp x23, x24, [{0}, 32]",
            "stp x25, x26, [{0}, 48]", "stp x27, x28, [{0}, 64]", "str x29, [{0}, 80]",
            in(reg) saved.as_mut_ptr(), options(nostack, preserves_flags)
        );
    }
    saved
}

/// Zeroed memory for a `T`, which a copy of the process shares. `None`: there is no memory.
pub fn shared<T: Copy>() -> Option<*mut T> {
    let (how, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping replaces nothing.
    let at =
        keeping_errno(|| unsafe { libc::mmap(ptr::null_mut(), size_of::<T>(), how, flags, -1, 0) });
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// Gives the memory of [`shared`] back.
///
/// # Safety
///
/// `at` is from [`shared`], and the caller does not use it any more.
pub unsafe fn give_shared<T: Copy>(at: *mut T) {
    // SAFETY: by the contract the memory is from `shared`, of this size, and not used any more.
    keeping_errno(|| unsafe { libc::munmap(at.cast(), size_of::<T>()) });
}

#[cfg(target_arch = "x86_64")]
fn words_of(context: &libc::ucontext_t) -> Words {
    let mut words = Words { stack: 0, pointer: thread_pointer(), registers: [0; REGISTERS] };
    for (place, &value) in words.registers.iter_mut().zip(&context.uc_mcontext.gregs) {
        *place = value as usize;
    }
    words.stack = above(context, context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize);
    words
}

#[cfg(target_arch = "aarch64")]
fn words_of(context: &libc::ucontext_t) -> Words {
    let mut words = Words { stack: 0, pointer: thread_pointer(), registers: [0; REGISTERS] };
    for (place, &value) in words.registers.iter_mut().zip(&context.uc_mcontext.regs) {
        *place = value as usize;
    }
    words.stack = above(context, context.uc_mcontext.sp as usize);
    words
}

/// The lowest used address of a thread's stack. That is the handler's frame, if the handler runs on
/// this stack. Otherwise a function may have written into the red zone below `stack`.
fn above(context: &libc::ucontext_t, stack: usize) -> usize {
    const FRAME: usize = 64 << 10;
    const RED_ZONE: usize = 128;
    let frame = ptr::from_ref(context).addr();
    if frame < stack && stack - frame < FRAME { frame } else { stack.saturating_sub(RED_ZONE) }
}

#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's struct, valid during the call.
    let info_of = unsafe { &*info };
    // SAFETY: a queued signal has a value.
    let value = unsafe { info_of.si_value() }.sival_ptr.addr();
    if info_of.si_code != libc::SI_QUEUE || value & 0xffff_0000 != MARK {
        let before = BEFORE.load(Ordering::Acquire);
        if before > 1 {
            // SAFETY: the handler that was installed for this signal, with its arguments.
            let before: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(before) };
            before(signal, info, context);
        }
        return;
    }
    keeping_errno(|| {
        // Either `release` sees that this thread is inside, or this thread sees the new round, and
        // does not answer.
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let round = ROUND.load(Ordering::SeqCst);
        if round & 1 == 1 && round as usize & 0xffff == value & 0xffff {
            // SAFETY: the third argument of a handler with SA_SIGINFO.
            let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
            let answer = answer(&words_of(context));
            while ROUND.load(Ordering::Acquire) == round {
                super::futex_wait(&ROUND, round);
            }
            if let Some(answer) = answer {
                answer.call.repeat(context);
            }
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    });
}

fn answer(words: &Words) -> Option<&'static Answer> {
    let me = thread_id();
    let answer = asked().iter().find(|answer| answer.thread() == me)?;
    // SAFETY: this thread owns the place, and no thread reads it before the state is set.
    unsafe { answer.words.get().write(*words) };
    answer.state.store(ANSWERED, Ordering::Release);
    COUNT.fetch_add(1, Ordering::AcqRel);
    Some(answer)
}

fn asked() -> &'static [Answer] {
    let at = ANSWERS.load(Ordering::Acquire);
    if at.is_null() {
        return &[];
    }
    // SAFETY: `ROOM` answers lie at `at` while threads answer.
    unsafe { core::slice::from_raw_parts(at, ROOM.load(Ordering::Relaxed)) }
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden heapwright_sigreturn",
    ".type heapwright_sigreturn, @function",
    ".globl heapwright_sigreturn",
    "heapwright_sigreturn:",
    // Unwinders and debuggers recognise a return from a signal by exactly these bytes.
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05",
    options(att_syntax)
);

fn install() -> bool {
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    if INSTALLED.load(Ordering::Acquire) != 0 {
        return true;
    }
    const SA_RESTORER: u64 = 0x0400_0000;
    #[cfg(target_arch = "x86_64")]
    let (restorer, extra) = {
        unsafe extern "C" {
            fn heapwright_sigreturn();
        }
        (heapwright_sigreturn as *const () as usize, SA_RESTORER)
    };
    #[cfg(target_arch = "aarch64")]
    let (restorer, extra) = (0, 0 & SA_RESTORER);
    // SA_ONSTACK: a thread with an alternate stack for signals (such as Go's threads, whose stacks
    // are small) runs the handler there. The copy of the process has all stacks.
    let flags = (libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK) as u64 | extra;
    let all = !0;
    let new = KernelAction { handler: handle as *const () as usize, flags, restorer, mask: all };
    let mut old = MaybeUninit::<KernelAction>::zeroed();
    let place = old.as_mut_ptr();
    // This only reads the previous handler, because a signal of another sender may arrive as soon
    // as the new handler is installed. SAFETY: `old` has the kernel's layout and is writable.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, SIGNAL, ptr::null::<KernelAction>(), place, 8) };
    // SAFETY: the kernel wrote it, or it is zeroed, which is valid.
    let old = unsafe { old.assume_init() };
    if old.handler != new.handler {
        BEFORE.store(old.handler, Ordering::Release);
    }
    let none = ptr::null_mut::<KernelAction>();
    // SAFETY: `new` has the kernel's layout, and `handle` is a handler with SA_SIGINFO. (This is a
    // system call because the C library's `sigaction` refuses signal 33.)
    let failed = unsafe { libc::syscall(libc::SYS_rt_sigaction, SIGNAL, &raw const new, none, 8) };
    if failed != 0 {
        return false;
    }
    INSTALLED.store(1, Ordering::Release);
    true
}

/// Calls `visit` with the number of each thread of the process. False: the list cannot be read, or
/// /proc shows other processes.
pub fn each_thread(visit: &mut dyn FnMut(u32)) -> bool {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let me = thread_id();
    let mut seen = false;
    keeping_errno(|| {
        let folder = calls::open(c"/proc/self/task", flags, 0);
        if folder < 0 {
            return false;
        }
        let mut buffer = Aligned([0; 4096]);
        loop {
            let room = buffer.0.len();
            let place = buffer.0.as_mut_ptr();
            // SAFETY: the pointer and the length are the buffer's.
            let got = unsafe { libc::syscall(libc::SYS_getdents64, folder, place, room) };
            let Ok(got) = usize::try_from(got) else {
                seen = false;
                break;
            };
            if got == 0 {
                break;
            }
            let mut entries = &buffer.0[..got];
            // inode 8 | offset 8 | length 2 | type 1 | name, ended by a zero
            while let Some(length) = entries.get(16..18) {
                let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
                let Some(name) = entries.get(19..length) else { break };
                // All names but `.` and `..` are numbers.
                if let Some(thread) = digits::number(name) {
                    let thread = thread as u32;
                    seen |= thread == me;
                    visit(thread);
                }
                entries = &entries[length..];
            }
        }
        calls::close(folder);
        seen
    })
}

#[repr(align(8))]
struct Aligned([u8; 4096]);

/// Holds every other thread. `room`, zeroed memory for answers, must stay until [`release`] or
/// [`is_unused`] returns true. Only one thread at a time may call this. False: no thread is held
/// (earlier answers are still read, or threads cannot be signalled or listed, or are too many).
pub fn hold(room: &'static [Answer]) -> bool {
    // A thread that did not continue in time may still read the previous answers.
    if !install() || !is_unused() {
        return false;
    }
    COUNT.store(0, Ordering::Relaxed);
    ROOM.store(room.len(), Ordering::Relaxed);
    ANSWERS.store(room.as_ptr().cast_mut(), Ordering::Release);
    let round = ROUND.fetch_add(1, Ordering::SeqCst) + 1;
    let me = thread_id();
    let began = now_ns();
    let mut known = 0;
    // A thread that is not held yet may start others.
    loop {
        let before = known;
        let mut fits = true;
        let listed = each_thread(&mut |thread| {
            let seen = room[..known].iter().any(|answer| answer.thread() == thread);
            // The first thread stays in the list after its end.
            if thread == me || seen || thread == process_id() && is_over(thread) {
                return;
            }
            let Some(answer) = room.get(known) else {
                fits = false;
                return;
            };
            answer.call.note(thread);
            answer.thread.store(thread, Ordering::Release);
            if ask(thread, round) {
                known += 1;
            } else {
                answer.thread.store(0, Ordering::Release);
            }
        });
        if !listed || !fits {
            release();
            return false;
        }
        wait_for(&room[..known], began);
        if known == before {
            return true;
        }
    }
}

/// A `siginfo_t` of a queued signal, in the kernel's layout on 64-bit machines.
#[repr(C)]
struct Queued {
    signal: c_int,
    error: c_int,
    code: c_int,
    between: c_int,
    process: c_int,
    user: u32,
    value: usize,
    rest: [usize; 12],
}

const _: () = assert!(offset_of!(Queued, code) == 8);
const _: () = assert!(offset_of!(Queued, process) == 16);
const _: () = assert!(offset_of!(Queued, value) == 24);
const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// Signals a thread. False: the thread has ended.
fn ask(thread: u32, round: u32) -> bool {
    let value = MARK | round as usize & 0xffff;
    let process = process_id() as c_int;
    let info = Queued {
        signal: SIGNAL,
        error: 0,
        code: libc::SI_QUEUE,
        between: 0,
        process,
        user: 0,
        value,
        rest: [0; 12],
    };
    let pointer = &raw const info;
    keeping_errno(|| {
        // SAFETY: reads the struct, for a thread of this process.
        let sent = unsafe {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread as c_int, SIGNAL, pointer)
        };
        sent == 0 || errno() != libc::ESRCH
    })
}

fn wait_for(asked: &[Answer], began: u64) {
    /// No answer is late before this many polls: the clock may advance while no thread can run.
    const POLLS: u32 = 200;
    let (mut answered, mut last, mut polls) = (0, now_ns(), 0);
    let waits = || {
        let unanswered = asked.iter().filter(|answer| answer.is_silent());
        for answer in unanswered.clone().filter(|answer| is_over(answer.thread())) {
            answer.thread.store(0, Ordering::Release);
        }
        unanswered.count() > 0
    };
    loop {
        polls += 1;
        let count = COUNT.load(Ordering::Acquire);
        let now = now_ns();
        if count != answered {
            (answered, last) = (count, now);
        }
        let is_late = polls > POLLS && (now - last > PATIENCE_NS || now - began > LONGEST_NS);
        if count as usize >= asked.len() || is_late || polls % POLLS == 50 && !waits() {
            if is_late {
                waits();
            }
            return;
        }
        if now - last > 50_000 {
            keeping_errno(|| calls::sleep_ns(20_000));
        } else {
            super::yield_now();
        }
    }
}

/// Lets all threads continue, and waits until none of them reads the answers. False: a thread may
/// still read the answers, so their memory must stay.
pub fn release() -> bool {
    ROUND.fetch_add(1, Ordering::SeqCst);
    futex_wake_all(&ROUND);
    let until = now_ns() + PATIENCE_NS;
    while !is_unused() {
        if now_ns() > until {
            return false;
        }
        super::yield_now();
    }
    ANSWERS.store(ptr::null_mut(), Ordering::Release);
    true
}

/// Whether no thread reads the answers.
pub fn is_unused() -> bool {
    INSIDE.load(Ordering::SeqCst) == 0
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Runs `call` without cancellation of the calling thread, which holds locks.
pub fn without_cancellation<T>(call: impl FnOnce() -> T) -> T {
    const DISABLE: c_int = 1;
    let mut before = 0;
    // SAFETY: writes the previous state to `before`.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let result = call();
    // SAFETY: restores the previous state, and reads no other.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
    result
}

/// In a copy or a forked child: forgets the held threads, which do not exist there.
pub fn forget_held() {
    INSIDE.store(0, Ordering::Relaxed);
    ANSWERS.store(ptr::null_mut(), Ordering::Relaxed);
    if ROUND.load(Ordering::Relaxed) & 1 == 1 {
        ROUND.fetch_add(1, Ordering::Relaxed);
    }
}

/// Copies the process without its other threads. Returns `Some(0)` in the copy, and the copy's
/// number in the original. `None`: the system refused. All signals are blocked in the copy, and its
/// end sends no signal.
///
/// # Safety
///
/// The copy only reads, writes memory that the original does not read, makes system calls, and ends
/// by [`end_copy`].
pub unsafe fn copy() -> Option<u32> {
    let before = set_mask(!0);
    // SAFETY: by the contract. The copy shares nothing, and sends no signal at its end.
    let got = keeping_errno(|| unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) });
    if got == 0 {
        return Some(0);
    }
    set_mask(before);
    u32::try_from(got).ok()
}

fn set_mask(new: u64) -> u64 {
    keeping_errno(|| calls::change_mask(libc::SIG_SETMASK, new))
}

/// Ends a copy.
pub fn end_copy(status: i32) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// In a copy: prevents a core dump.
pub fn leave_no_dump() {
    let none = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let old = ptr::null_mut::<libc::rlimit64>();
    // SAFETY: reads the limits.
    unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_CORE, &raw const none, old) };
}

/// In a copy: closes all descriptors. Otherwise a process could wait for the end of a pipe that
/// only the copy has open.
pub fn close_all() {
    const CLOSE_RANGE: libc::c_long = 436;
    // SAFETY: the copy's own descriptors.
    let failed = unsafe { libc::syscall(CLOSE_RANGE, 0, !0u32, 0) };
    if failed != 0 {
        // Before Linux 5.9.
        for descriptor in 0..4096 {
            calls::close(descriptor);
        }
    }
}

/// Waits for a copy, at most this long. `None`: it has not ended. True: it ended with success.
pub fn wait_for_copy(copy: u32, milliseconds: u64) -> Option<bool> {
    let until = now_ns() + milliseconds * 1_000_000;
    loop {
        let mut status = 0;
        let got = keeping_errno(|| calls::wait_now(copy as i32, &mut status));
        match got {
            0 if now_ns() > until => return None,
            0 => super::nap(),
            // The copy has ended. Below 0: another waiter has taken the status.
            _ => return Some(got > 0 && status == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::sync::atomic::AtomicBool;
    use std::vec::Vec;

    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn room(count: usize) -> &'static [Answer] {
        let answer = || Answer {
            thread: AtomicU32::new(0),
            state: AtomicU32::new(0),
            call: Call::none(),
            words: UnsafeCell::new(Words { stack: 0, pointer: 0, registers: [0; REGISTERS] }),
        };
        std::boxed::Box::leak((0..count).map(|_| answer()).collect::<Vec<_>>().into_boxed_slice())
    }

    #[test]
    fn threads_say_what_they_hold_and_go_on() {
        let _one = ONE.lock().unwrap();
        static STOP: AtomicBool = AtomicBool::new(false);
        let turns: &'static AtomicUsize = std::boxed::Box::leak(std::boxed::Box::default());
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            send.send((thread_id(), thread_pointer())).unwrap();
            while !STOP.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (number, pointer) = receive.recv().unwrap();
        let room = room(256);
        let mut answered = 0;
        for _ in 0..20 {
            room.iter().for_each(|answer| {
                answer.thread.store(0, Ordering::Relaxed);
                answer.state.store(0, Ordering::Relaxed);
            });
            assert!(hold(room));
            // No assertion may fail before the threads are released.
            let before = turns.load(Ordering::Relaxed);
            let answer = room.iter().find(|answer| answer.thread() == number);
            let words = answer.and_then(Answer::words).copied();
            let after = turns.load(Ordering::Relaxed);
            let released = release();
            assert!(released);
            let Some(words) = words else { continue };
            assert_eq!(before, after, "it was not held");
            assert_eq!(words.pointer, pointer);
            assert!(words.stack != 0 && words.stack < words.pointer);
            assert!(words.registers.iter().any(|&word| word.wrapping_sub(words.stack) < 1 << 16));
            answered += 1;
        }
        let before = turns.load(Ordering::Relaxed);
        while turns.load(Ordering::Relaxed) == before {
            std::thread::yield_now();
        }
        STOP.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert!(answered > 0, "it never said what it holds");
    }

    extern "C" fn nothing(_: c_int) {}

    /// Holds a thread that waits in `poll`. Meanwhile sends it a signal of the program, or none.
    /// Then makes the descriptor readable. Returns the results of `poll`.
    fn poll_while_held(signal: bool) -> Vec<i32> {
        let (reader, writer) = std::io::pipe().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            use std::os::fd::AsRawFd;
            send.send(thread_id()).unwrap();
            let mut poll =
                libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let mut results = Vec::new();
            while results.last() != Some(&1) {
                // SAFETY: one struct, which lives during the call.
                results.push(unsafe { libc::poll(&raw mut poll, 1, -1) });
            }
            results
        });
        let number = receive.recv().unwrap();
        while call_of(number) != libc::SYS_poll {
            std::thread::yield_now();
        }
        for _ in 0..10 {
            let room = room(256);
            assert!(hold(room));
            if signal {
                let process = process_id() as c_int;
                // SAFETY: the signal has a handler.
                unsafe { libc::syscall(libc::SYS_tgkill, process, number, libc::SIGUSR2) };
            }
            assert!(release());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        drop(writer);
        thread.join().unwrap()
    }

    /// The call in which a thread waits, or -1.
    fn call_of(thread: u32) -> libc::c_long {
        let path = std::format!("/proc/self/task/{thread}/syscall");
        let text = std::fs::read_to_string(path).unwrap();
        text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(-1)
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_that_was_interrupted_is_made_again_unless_another_signal_waits() {
        let _one = ONE.lock().unwrap();
        // SAFETY: installs a handler that does nothing.
        unsafe { libc::signal(libc::SIGUSR2, nothing as extern "C" fn(c_int) as usize) };
        assert_eq!(poll_while_held(false), [1]);
        let results = poll_while_held(true);
        assert!(results.iter().filter(|&&result| result == -1).count() > 1, "{results:?}");
    }

    #[test]
    fn a_copy_is_a_copy() {
        let _one = ONE.lock().unwrap();
        let mut value = 1;
        let place = &raw mut value;
        // SAFETY: the copy writes its own memory and ends.
        let copy = unsafe { copy() }.unwrap();
        if copy == 0 {
            // SAFETY: the copy's own.
            unsafe { place.write_volatile(2) };
            // SAFETY: the copy's own variable, which is live.
            end_copy(unsafe { place.read_volatile() } - 2);
        }
        assert_eq!(wait_for_copy(copy, 5000), Some(true));
        // SAFETY: a live variable.
        assert_eq!(unsafe { place.read_volatile() }, 1);
    }
}
