//! Call stacks of `malloc`'s callers, each as a number of 32 bits.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright),
//! for its debug heap and heap profile, and promises nothing to others.**
//!
//! ```text
//!   here(scratch, 16)
//!     |  memo: did this place, at this depth of the stack, find these words before?
//!     v
//!   walk: rule cache <-- tables (.eh_frame; odd entries by gimli) at the first sight of an address
//!     |
//!     v
//!   depot: frames --> Stack(u32), each distinct stack once
//! ```
//!
//! # What it may not do
//!
//! It runs inside `malloc`, in any thread, in signal handlers, and in the child of
//! a fork. So it takes no lock that the program may hold (no `dl_iterate_phdr`, no
//! `dladdr`, no `_Unwind_Backtrace`: their locks have deadlocked every allocator
//! that called them), allocates nothing from the program's heap, and never faults:
//! what it believes of a stack it has tried (`native::bounds`). All that threads
//! share is lock-free.
//!
//! Frames are found by unwind tables, because most code has no frame pointers. The tables are found
//! by glibc's `_dl_find_object` (2.35 and later), which was made for this: it waits for nothing.
//! With another C library (musl), or an older one, or none (static programs), they are found by the
//! program's own headers and the kernel's list of mappings, once a module (`native::mapped`). musl
//! itself has no tables: a frame of its own is passed by its frame pointer, or ends the stack.
//!
//! # What it costs
//!
//! On a shared machine, x86-64, at its best moments: 16 frames 16 ns by the memo and
//! 146 ns by a walk of known code, the depot's look-up included; 4 frames 9 and
//! 45 ns, 32 frames 22 and 285 ns; forgetting code 17 us. (`cargo test -p
//! heapwright-stacks --release --lib -- --ignored --nocapture stacks_figures`)
//!
//! # The floors
//!
//! ```text
//!   native (Linux) or portable (nothing)     walks, memo, bounds, modules
//!   depot                                    stacks by number
//!   tables       quick                       bytes to rules: all, and what is common
//!   rule         region                      rules as words, memory
//! ```
//!
//! # Its caller's duties
//!
//! - A [`Scratch`] is used by one thread at a time, and not by a signal handler
//!   while the code it interrupts uses it.
//! - [`forget_code`] is called after code was unmapped (`dlclose`).
//! - Addresses in stacks are return addresses: the call is at the address before.

#![cfg(not(loom))]
#![no_std]
#![allow(
    clippy::new_without_default,
    reason = "what `new` makes is for statics, or has its one way"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    allow(dead_code, reason = "where no stack is walked, none is kept")
)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

use core::ffi::c_void;

mod depot;
mod quick;
mod region;
mod rule;
mod tables;
#[cfg(test)]
#[path = "../../heapwright-substrate/src/testing/cases.rs"]
mod testing;

#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "native/mod.rs"]
mod imp;
#[cfg(not(all(
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "portable.rs"]
mod imp;

#[cfg(all(
    test,
    target_os = "linux",
    target_env = "gnu",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests;

pub use imp::Scratch;

/// Frames that a stack has at most.
pub const MAX_DEPTH: usize = 64;

/// The number of a stack: equal for equal stacks, for the life of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Stack(pub u32);

impl Stack {
    /// No stack: nothing could be captured, or there was no room for it.
    pub const NONE: Self = Self(0);
}

/// What captures cost.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Captures, of one scratch.
    pub captures: u64,
    /// Of those, answered by the memo.
    pub memo_hits: u64,
    /// Walked, and the stack was known.
    pub depot_hits: u64,
    /// Rules that had to be read from tables, or of other processes' file.
    pub rule_misses: u64,
    /// Distinct stacks, of the process.
    pub stacks: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl Counts {
    const ZERO: Self =
        Self { captures: 0, memo_hits: 0, depot_hits: 0, rule_misses: 0, stacks: 0, bytes: 0 };
}

/// Captures the stack of the calling function, `depth` frames of it at most (64 are
/// the most). Where heapwright is a module of its own, its frames at the top are
/// left out.
#[inline(always)]
pub fn here(scratch: &mut Scratch, depth: usize) -> Stack {
    // Behind a reference, so that the call cannot become a jump that pops the frame.
    let start = imp::registers();
    imp::capture(scratch, depth, &start)
}

/// The stack of what a signal has interrupted: the first frame is the address of the
/// interrupted instruction itself.
///
/// # Safety
///
/// `context` is the third argument of a signal handler.
pub unsafe fn of_context(scratch: &mut Scratch, depth: usize, context: *const c_void) -> Stack {
    // SAFETY: `context` is the third argument of a signal handler, as the caller promises.
    unsafe { imp::of_context(scratch, depth, context) }
}

/// The frames of a stack, innermost first.
pub fn frames(stack: Stack) -> &'static [usize] {
    depot::DEPOT.frames(stack)
}

/// Where heapwright is, code and data, if it is a module of its own and not part of the
/// program.
pub fn own_module() -> Option<core::ops::Range<usize>> {
    imp::own_module()
}

/// Makes an unwind context, which takes 5 KiB of the stack, before a small stack needs one.
pub fn prepare() {
    imp::prepare();
}

/// From now on no unwind rule is learnt on a stack that is not the thread's own (a coroutine's),
/// because learning takes some 4 KiB of it. Traces of such a stack end at the first unknown place.
pub fn spare_foreign_stacks() {
    imp::spare_foreign_stacks();
}

/// Forgets what is known of code: some of it was unmapped.
pub fn forget_code() {
    imp::forget_code();
}

/// Bytes of the file that [`share`] takes.
pub const SHARED_BYTES: usize = imp::SHARED_BYTES;

/// Uses a file of [`SHARED_BYTES`] from now on, sealed so that it does not shrink, in which
/// processes leave what they have read from unwind tables for one another. Nothing where it is no
/// such file. What is in it is not believed.
pub fn share(path: &core::ffi::CStr) {
    imp::share(path);
}

/// Lets stacks take no more than `bytes`. Captures go on without: a stack that is
/// new then has no number.
pub fn limit(bytes: usize) {
    depot::DEPOT.set_limit(bytes);
}

/// A file that is mapped as code.
pub struct Module {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What to subtract from an address to have the file's own.
    pub bias: usize,
    build_id: [u8; 20],
    build_id_length: usize,
    path: [u8; 512],
    path_length: usize,
}

impl Module {
    /// The id that the linker gave this build of it; nothing if it gave none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id[..self.build_id_length]
    }

    /// Where the file is, cut to fit.
    pub fn path(&self) -> &[u8] {
        &self.path[..self.path_length]
    }
}

/// From where to where the module is mapped that an address lies in: what [`module_of`] says of it,
/// without the file's name, which may take a system call.
pub fn module_range(pc: usize) -> Option<core::ops::Range<usize>> {
    imp::module_range(pc)
}

/// The module that an address lies in.
pub fn module_of(pc: usize) -> Option<Module> {
    imp::module_of(pc)
}

/// Calls `found` with the name of the exported function that an address lies in and
/// how far into it, if there is one. Functions that are not exported have no names
/// here.
pub fn symbol_of(pc: usize, found: impl FnOnce(&[u8], usize)) -> bool {
    imp::symbol_of(pc, found)
}

/// The words of a thread, which the crate above defines, for the unit tests, above which there is
/// none.
#[cfg(test)]
mod words {
    /// What a thread's fast word leads to: nothing here asks.
    #[allow(dead_code, reason = "the words of `os::portable` begin without it")]
    static NOWHERE: usize = 0;

    heapwright_substrate::os::tls::define_words!(NOWHERE);
}
