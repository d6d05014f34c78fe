//! One access with a guard lifted: the program's next step after a report of the debug heap.
//!
//! ```text
//!   fault -> report -> the guard's page lifted -> TF set, all other signals blocked -> return
//!     the instruction, once
//!   SIGTRAP -> the guard put back, the thread's mask as it was
//! ```
//!
//! Each thread that steps has a [`Step`] of its own. An instruction may touch several guarded
//! pages: each faults in turn, and is added to the step. A repeating instruction (`rep movs`) traps
//! after each repetition and faults again. Other threads may access a lifted page unseen. If two
//! threads step over one page, one of them may fault again.
//!
//! **Signals.** Only signals of faults are delivered during the step: a handler that jumps away
//! would leave the guard lifted. A fault of the same instruction at other memory ends the step
//! first, so the program's handler finds the usual state.
//!
//! Only x86-64 can trap after one instruction. On other processors, and when no step is possible,
//! the access ends the program.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use heapwright::heap;
use libc::{c_int, ucontext_t};

/// The most threads that step at the same time.
const STEPS: usize = 64;
/// Pages that one instruction may touch: two operands, each across two pages.
const PAGES: usize = 4;
/// The flag that traps after an instruction.
const TRAP: i64 = 1 << 8;

struct Step {
    /// The process and the thread, or 0 if the step is free.
    owner: AtomicU64,
    mask: AtomicU64,
    /// Addresses in the lifted pages. 0 means none.
    pages: [AtomicUsize; PAGES],
}

impl Step {
    fn put_guards_back(&self) {
        for page in &self.pages {
            let address = page.swap(0, Ordering::Relaxed);
            if address != 0 {
                heap::put_guard_back(address);
            }
        }
    }
}

static ALL: [Step; STEPS] = [const {
    Step {
        owner: AtomicU64::new(0),
        mask: AtomicU64::new(0),
        pages: [const { AtomicUsize::new(0) }; PAGES],
    }
}; STEPS];

fn this_thread() -> u64 {
    let (process, thread) = (heapwright::process::id(), heapwright::process::thread_id());
    u64::from(process) << 32 | u64::from(thread)
}

fn mine() -> Option<&'static Step> {
    let me = this_thread();
    ALL.iter().find(|step| step.owner.load(Ordering::Relaxed) == me)
}

/// A step for the calling thread. After a fork, the parent's steps count as free.
fn claim() -> Option<&'static Step> {
    let me = this_thread();
    ALL.iter().find(|step| {
        let owner = step.owner.load(Ordering::Relaxed);
        (owner == 0 || owner >> 32 != me >> 32)
            && step.owner.compare_exchange(owner, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

fn mask_of(context: *mut ucontext_t) -> *mut u64 {
    // SAFETY: the context is the kernel's; this takes a field's address and reads nothing.
    unsafe { &raw mut (*context).uc_sigmask }.cast()
}

/// Makes the instruction run once, after its guard was lifted. Returns whether that is possible.
///
/// # Safety
///
/// The context is the kernel's, of a fault of the calling thread at that address.
pub(crate) unsafe fn begin(context: *mut ucontext_t, address: usize) -> bool {
    // SAFETY: by the contract the context is the kernel's.
    let flags = unsafe { (*context).uc_mcontext.gregs[libc::REG_EFL as usize] };
    let known = mine().filter(|step| {
        let goes_on = flags & TRAP != 0;
        if !goes_on {
            // A handler has jumped out of the last step, and this is another instruction.
            step.put_guards_back();
            step.owner.store(0, Ordering::Release);
        }
        goes_on
    });
    let Some(step) = known.or_else(claim) else { return false };
    if known.is_none() {
        step.pages.iter().for_each(|page| page.store(0, Ordering::Relaxed));
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGTRAP, libc::SIGILL, libc::SIGFPE];
        let faults = faults.iter().fold(0, |mask, &signal| mask | crate::signals::bit(signal));
        // SAFETY: `mask_of` leads to the first word of the context's mask.
        step.mask.store(unsafe { mask_of(context).read() }, Ordering::Relaxed);
        // SAFETY: `mask_of` leads to the context's first mask word, which takes effect on return.
        unsafe { mask_of(context).write(!faults) };
    }
    let Some(page) = step.pages.iter().find(|page| page.load(Ordering::Relaxed) == 0) else {
        return false;
    };
    page.store(address, Ordering::Relaxed);
    // SAFETY: by the contract the context is the kernel's.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_EFL as usize] |= TRAP };
    true
}

/// Ends the calling thread's step, if it has one: restores guards and mask. Returns whether it had.
///
/// # Safety
///
/// The context is the kernel's, of a signal of the calling thread.
pub(crate) unsafe fn end(context: *mut ucontext_t) -> bool {
    let Some(step) = mine() else { return false };
    step.put_guards_back();
    // SAFETY: `mask_of` leads to the first word of the context's mask.
    unsafe { mask_of(context).write(step.mask.load(Ordering::Relaxed)) };
    // SAFETY: by the contract the context is the kernel's.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP };
    step.owner.store(0, Ordering::Release);
    true
}

/// `si_code` of a trap after one instruction.
pub(crate) const TRACE: c_int = 2;
