//! Faults in memory, while the heap guards pages: SIGSEGV and SIGBUS.
//!
//! In debug mode, or with `guard=`, a read of freed memory may fault. The heap knows the block. So
//! we install our handler for these two signals (and for SIGTRAP if `stepping` needs it).
//! `signals` interposes the functions that set handlers. We remember the program's handler, and
//! call it for faults that are not ours.
//!
//! ```text
//!   fault -> on_fault -> the debug heap's verdict
//!                          GoOn     return: the instruction is tried again
//!                          Step     the same, once, with the guard lifted (`stepping`)
//!                          NotOurs  the program's handler, or the default
//!                          Stop     the same, but `SIG_IGN` counts as the default
//! ```
//!
//! **As the kernel would.** The program's handler gets the kernel's own `siginfo` and context, and
//! may change the context. Before the call the thread gets the mask that the kernel would have set:
//! the blocked signals, the handler's `sa_mask`, and the signal itself unless `SA_NODEFER`.
//! `SA_RESETHAND` removes the handler first. We jump to the handler, so no frame of ours is on the
//! stack: the handler may `siglongjmp` away, or throw. For the default action we restore this
//! action in the kernel and run the instruction again (or send a *sent* signal again). So a core
//! dump shows the program as it was. A fault cannot be ignored: `SIG_IGN` means the default then.
//!
//! **Raw system calls**, as Go makes them, replace our handler. A read of freed memory then ends
//! the program without a report. Go's runtime calls the handler that it found, ours, for faults in
//! C code, so those are reported. `sigaltstack` is not touched.

use crate::own_stack;
use crate::signals::{self, Action};
#[cfg(target_arch = "x86_64")]
use crate::stepping;
use core::arch::naked_asm;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use heapwright::heap::Verdict;
use libc::{c_int, c_void, siginfo_t, ucontext_t};

pub(crate) type Decide = own_stack::Decide;

/// Null while our handler is not installed.
static DECIDE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

struct Record {
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

/// The program's actions of one signal: a ring of records, each written once and then published by
/// its number. A change is one atomic exchange without a lock. So a fault may interrupt a change,
/// and a forked child never finds it half done. The 64th further change reuses a record.
struct Remembered {
    records: [Record; RECORDS],
    /// The number of records ever written. Record N is at index N modulo [`RECORDS`].
    written: AtomicU32,
    current: AtomicU32,
}

const RECORDS: usize = 64;

impl Remembered {
    const fn new() -> Self {
        Self {
            records: [const {
                Record {
                    handler: AtomicUsize::new(libc::SIG_DFL),
                    flags: AtomicI32::new(0),
                    mask: AtomicU64::new(0),
                }
            }; RECORDS],
            written: AtomicU32::new(0),
            current: AtomicU32::new(0),
        }
    }

    fn record(&self, number: u32) -> &Record {
        &self.records[number as usize % RECORDS]
    }

    /// Writes a record that is not yet published.
    fn write(&self, action: Action) -> u32 {
        // The first record is number 1: number 0 is the default action.
        let number = self.written.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let record = self.record(number);
        record.handler.store(action.handler, Ordering::Relaxed);
        record.flags.store(action.flags, Ordering::Relaxed);
        record.mask.store(action.mask, Ordering::Relaxed);
        number
    }

    fn read(&self, number: u32) -> Action {
        let record = self.record(number);
        Action {
            handler: record.handler.load(Ordering::Relaxed),
            flags: record.flags.load(Ordering::Relaxed),
            mask: record.mask.load(Ordering::Relaxed),
        }
    }

    fn get(&self) -> (u32, Action) {
        let number = self.current.load(Ordering::Acquire);
        (number, self.read(number))
    }

    fn set(&self, action: Action) -> Action {
        let number = self.write(action);
        self.read(self.current.swap(number, Ordering::AcqRel))
    }
}

/// A forked child has our handler and the remembered actions. A child of vfork shares its parent's
/// memory but not its handlers, so `signals` passes its actions to the kernel alone. If the program
/// ignores SIGSEGV, the kernel keeps our handler, and executed programs do not ignore it.
static SEGV: Remembered = Remembered::new();
static BUS: Remembered = Remembered::new();
static TRAP: Remembered = Remembered::new();

/// Whether the program continues after a reported access. Then SIGTRAP is ours, too.
static STEPS: AtomicBool = AtomicBool::new(false);

fn remembered(signal: c_int) -> Option<&'static Remembered> {
    match signal {
        libc::SIGSEGV => Some(&SEGV),
        libc::SIGBUS => Some(&BUS),
        libc::SIGTRAP => Some(&TRAP),
        _ => None,
    }
}

/// Whether our handler serves a signal.
pub(crate) fn has(signal: c_int) -> bool {
    match signal {
        libc::SIGSEGV | libc::SIGBUS => !DECIDE.load(Ordering::Relaxed).is_null(),
        libc::SIGTRAP => STEPS.load(Ordering::Relaxed),
        _ => false,
    }
}

/// The program's action for a signal that our handler serves.
pub(crate) fn programs(signal: c_int) -> Action {
    remembered(signal).map_or(Action::DEFAULT, |of| of.get().1)
}

/// Returns the previous action.
pub(crate) fn remember(signal: c_int, action: Action) -> Action {
    remembered(signal).map_or(Action::DEFAULT, |of| of.set(action))
}

pub(crate) fn is_our_handler(handler: usize) -> bool {
    handler == on_fault as *const () as usize
}

/// Installs our handler for its signals, and remembers the actions of the program (or of its
/// parent). With `steps` the program continues after a reported access, if possible.
#[cold]
pub(crate) fn install(decide: Decide, steps: bool) {
    if !DECIDE.swap(decide as *mut c_void, Ordering::AcqRel).is_null() {
        return;
    }
    own_stack::make();
    let steps = steps && cfg!(target_arch = "x86_64");
    STEPS.store(steps, Ordering::Relaxed);
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGTRAP] {
        if signal == libc::SIGTRAP && !steps {
            continue;
        }
        let ours = Action {
            handler: on_fault as *const () as usize,
            flags: libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART,
            mask: !0,
        };
        // The order matters: a fault between the two steps finds a remembered action.
        if let Some(before) = signals::of_kernel(signal)
            && !is_our_handler(before.handler)
        {
            remember(signal, before);
        }
        signals::set_in_kernel(signal, ours);
    }
}

/// The kernel's handler. Calls [`judge`] and jumps to the function that `judge` returns, with the
/// kernel's arguments and no frame of ours on the stack.
///
/// Our handler runs on the alternative stack, if the thread has one. The program's handler then
/// runs there, even without `SA_ONSTACK`. System calls that a *sent* SIGSEGV interrupts are
/// restarted, even without `SA_RESTART`.
#[unsafe(naked)]
unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "push rsi",
        ".cfi_def_cfa_offset 24",
        "push rdx",
        ".cfi_def_cfa_offset 32",
        "call {judge}",
        "pop rdx",
        ".cfi_def_cfa_offset 24",
        "pop rsi",
        ".cfi_def_cfa_offset 16",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        ".cfi_endproc",
        judge = sym judge,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-48]!",
        ".cfi_def_cfa_offset 48",
        ".cfi_offset w29, -48",
        ".cfi_offset w30, -40",
        "stp x0, x1, [sp, #16]",
        "str x2, [sp, #32]",
        "bl {judge}",
        "mov x16, x0",
        "ldr x2, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #48",
        ".cfi_restore w29",
        ".cfi_restore w30",
        ".cfi_def_cfa_offset 0",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "ret",
        ".cfi_endproc",
        judge = sym judge,
    );
}

/// Decides whether a fault is the debug heap's. Returns the program's handler, if it must run.
///
/// All signals are blocked meanwhile: a handler of the program that jumps away could leave the
/// debug heap half changed. A fault in the debug heap's own decision ends the process where it
/// happens.
///
/// # Safety
///
/// The arguments are the kernel's.
unsafe extern "C" fn judge(signal: c_int, info: *const siginfo_t, context: *mut c_void) -> usize {
    let errno = crate::errno::get();
    // SAFETY: by the contract `info` is the kernel's.
    let code = unsafe { (*info).si_code };
    let decide = DECIDE.load(Ordering::Acquire);
    let mut verdict = Verdict::NotOurs;
    #[cfg(target_arch = "x86_64")]
    if signal == libc::SIGTRAP && code == stepping::TRACE {
        // SAFETY: by the contract `context` is the kernel's.
        if unsafe { stepping::end(context.cast()) } {
            crate::errno::set(errno);
            return 0;
        }
    }
    // Only if no process sent the signal, and the fault has an address.
    if code > 0 && code != SI_KERNEL && signal != libc::SIGTRAP && !decide.is_null() {
        // SAFETY: `DECIDE` holds null or a function of this type.
        let decide = unsafe { core::mem::transmute::<*mut c_void, Decide>(decide) };
        // SAFETY: by the contract `info` is the kernel's.
        let info = unsafe { &*info };
        // SAFETY: the signal is a fault, so the field holds its address.
        let address = unsafe { info.si_addr() }.addr();
        // SAFETY: by the contract `context` is the kernel's.
        let is_write = unsafe { is_write(context.cast()) };
        verdict = own_stack::run(decide, address, is_write, context);
        if verdict == Verdict::Step {
            // SAFETY: the context is the kernel's, of a fault at this address.
            verdict = if unsafe { step(context, address) } { Verdict::GoOn } else { Verdict::Stop };
        }
    }
    #[cfg(target_arch = "x86_64")]
    if verdict != Verdict::GoOn {
        // The stepped instruction had another fault.
        // SAFETY: by the contract `context` is the kernel's.
        unsafe { stepping::end(context.cast()) };
    }
    let mut handler = 0;
    if verdict != Verdict::GoOn {
        // SAFETY: by the contract `context` is the kernel's.
        let mask = unsafe { &raw const (*context.cast::<ucontext_t>()).uc_sigmask };
        // SAFETY: the kernel wrote the first word of the context's mask.
        let mask = unsafe { mask.cast::<u64>().read() };
        // A fault that the kernel itself sends cannot be ignored.
        let verdict = if code > 0 { Verdict::Stop } else { verdict };
        // A trap comes after its instruction, so it does not come again by itself.
        handler = pass_on(signal, mask, code > 0 && signal != libc::SIGTRAP, verdict);
    }
    crate::errno::set(errno);
    handler
}

/// Lets the instruction run once with its guard lifted. If that is impossible, puts the guard back
/// and returns false.
///
/// # Safety
///
/// The context is the kernel's, of a fault at the address.
unsafe fn step(context: *mut c_void, address: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the context is the kernel's, of a fault at the address, as the caller promises.
    if STEPS.load(Ordering::Relaxed) && unsafe { stepping::begin(context.cast(), address) } {
        return true;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = context;
    heapwright::heap::put_guard_back(address);
    false
}

/// `si_code` of a fault without an address.
const SI_KERNEL: c_int = 0x80;

/// Acts as the kernel would without our handler: returns the program's handler, and sets the mask
/// that the handler expects. Returns 0 without a handler. `mask` has the signals blocked before.
fn pass_on(signal: c_int, mask: u64, is_fault: bool, verdict: Verdict) -> usize {
    let Some(of) = remembered(signal) else { return 0 };
    let action = loop {
        let (number, action) = of.get();
        let is_function = !matches!(action.handler, libc::SIG_DFL | libc::SIG_IGN);
        if !is_function || action.flags & libc::SA_RESETHAND == 0 {
            break action;
        }
        let spent = of.write(Action { handler: libc::SIG_DFL, ..action });
        // If the program or another thread's fault has changed the action, the loop looks again.
        if of.current.compare_exchange(number, spent, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            break action;
        }
    };
    match action.handler {
        libc::SIG_IGN if !is_fault && verdict != Verdict::Stop => 0,
        libc::SIG_DFL | libc::SIG_IGN => {
            signals::set_in_kernel(signal, Action::DEFAULT);
            if !is_fault {
                // The signal is blocked until we return, so it arrives at the interrupted place.
                signals::send_to_this_thread(signal);
            }
            0
        }
        handler => {
            let itself =
                if action.flags & libc::SA_NODEFER == 0 { signals::bit(signal) } else { 0 };
            signals::set_mask(mask | action.mask | itself);
            handler
        }
    }
}

/// Whether the fault was a write, or `None` if it was no page fault.
///
/// # Safety
///
/// The context is the kernel's.
#[cfg(target_arch = "x86_64")]
unsafe fn is_write(context: *const ucontext_t) -> Option<bool> {
    const PAGE_FAULT: i64 = 14;
    const WRITE: i64 = 2;
    // SAFETY: by the contract `context` is the kernel's.
    let registers = unsafe { (*context).uc_mcontext.gregs };
    (registers[libc::REG_TRAPNO as usize] == PAGE_FAULT)
        .then(|| registers[libc::REG_ERR as usize] & WRITE != 0)
}

/// Whether the fault was a write, or `None` if the kernel does not say.
///
/// Behind the registers is a list of records, each with a number and its size. One record has the
/// exception syndrome.
///
/// # Safety
///
/// The context is the kernel's.
#[cfg(target_arch = "aarch64")]
unsafe fn is_write(context: *const ucontext_t) -> Option<bool> {
    /// The offset of the records in the machine context: after the fault's address, 31 registers,
    /// sp, pc and pstate, at a multiple of 16.
    const RECORDS: usize = (8 * (1 + 31 + 3) + 15) & !15;
    const SPACE: usize = 4096;
    const SYNDROME: u32 = 0x4553_5201;
    // SAFETY: by the contract `context` is the kernel's.
    let machine = unsafe { &raw const (*context).uc_mcontext }.cast::<u8>();
    let mut at = 0;
    while at + 16 <= SPACE {
        let record = machine.wrapping_add(RECORDS + at);
        // SAFETY: the record's head lies inside the machine context.
        let number = unsafe { record.cast::<u32>().read() };
        // SAFETY: a record's second word is its size, and lies inside the machine context.
        let size = unsafe { record.wrapping_add(4).cast::<u32>().read() } as usize;
        if number == 0 || size < 16 {
            return None;
        }
        if number == SYNDROME {
            // SAFETY: a record of this kind has one word, inside the machine context.
            let syndrome = unsafe { record.wrapping_add(8).cast::<u64>().read() };
            return match syndrome >> 26 & 0x3f {
                // An instruction fetch.
                0x20 | 0x21 => Some(false),
                // Reading or writing data.
                0x24 | 0x25 => Some(syndrome & 1 << 6 != 0),
                _ => None,
            };
        }
        at += size;
    }
    None
}
