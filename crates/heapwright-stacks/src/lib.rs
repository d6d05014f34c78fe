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
//! A capture runs inside `malloc`, in any thread, in signal handlers, and in the child of a fork.
//! So it takes no lock that the program may hold (no `dl_iterate_phdr`, no `dladdr`, no
//! `_Unwind_Backtrace`). It allocates nothing from the program's heap. It reads a word of a stack
//! only if the word is readable (`native::bounds`). All shared state is lock-free.
//!
//! The floors:
//!
//! ```text
//!   native (Linux) or portable (nothing)     walks, memo, bounds, modules
//!   depot                                    stacks by number
//!   tables       quick                       bytes to rules: all, and the common case
//!   rule         region                      rules as words, memory
//! ```

#![cfg(not(loom))]
#![no_std]
#![allow(
    clippy::new_without_default,
    reason = "statics use `new`, or a type has a single constructor"
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

/// The most frames of a stack.
pub const MAX_DEPTH: usize = 64;

/// The number of a stack: equal for equal stacks, for the life of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Stack(pub u32);

impl Stack {
    /// No stack: the capture failed, or there was no room for it.
    pub const NONE: Self = Self(0);
}

/// Counts of captures.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Captures with one scratch.
    pub captures: u64,
    /// Captures that the memo answered.
    pub memo_hits: u64,
    /// Walks whose stack was known.
    pub depot_hits: u64,
    /// Rules that were read from tables, or from the file that processes share.
    pub rule_misses: u64,
    /// Distinct stacks of the process.
    pub stacks: u64,
    /// Bytes of those stacks.
    pub bytes: u64,
}

impl Counts {
    const ZERO: Self =
        Self { captures: 0, memo_hits: 0, depot_hits: 0, rule_misses: 0, stacks: 0, bytes: 0 };
}

/// Captures the stack of the calling function, at most `depth` frames (at most 64). If heapwright
/// is a module of its own, its frames at the top are left out.
///
/// One thread at a time uses a scratch. A signal handler must not use the scratch of the code that
/// it interrupts.
///
/// Costs: `cargo test -p heapwright-stacks --release --lib -- --ignored --nocapture stacks_figures`
#[inline(always)]
pub fn here(scratch: &mut Scratch, depth: usize) -> Stack {
    // The argument is a reference to a local, so the call cannot become a jump that pops the frame.
    let start = imp::registers();
    imp::capture(scratch, depth, &start)
}

/// Passes return addresses to `is`, innermost first, until it accepts one. Returns the stack
/// pointer of the accepted function's caller. Returns `None` if `is` accepts no address.
#[inline(always)]
pub fn above(scratch: &mut Scratch, is: impl FnMut(usize) -> bool) -> Option<usize> {
    let start = imp::registers();
    imp::above(scratch, &start, is)
}

/// Returns the stack at a signal's interruption. The first frame is the interrupted instruction.
///
/// # Safety
///
/// `context` is the third argument of a signal handler.
pub unsafe fn of_context(scratch: &mut Scratch, depth: usize, context: *const c_void) -> Stack {
    // SAFETY: by the contract `context` is the third argument of a signal handler.
    unsafe { imp::of_context(scratch, depth, context) }
}

/// Returns the frames of a stack: return addresses, innermost first.
pub fn frames(stack: Stack) -> &'static [usize] {
    depot::DEPOT.frames(stack)
}

/// Returns the addresses of heapwright, if it is a module of its own.
pub fn own_module() -> Option<core::ops::Range<usize>> {
    imp::own_module()
}

/// Makes an unwind context in advance. This takes 5 KiB of stack, which a small stack may not have.
pub fn prepare() {
    imp::prepare();
}

/// Learns no more unwind rules on foreign stacks (a coroutine's), because learning takes some 4 KiB
/// of stack. Traces of such a stack end at the first unknown place.
pub fn spare_foreign_stacks() {
    imp::spare_foreign_stacks();
}

/// Forgets all known rules, in 17 us. Call this after code was unmapped (`dlclose`).
pub fn forget_code() {
    imp::forget_code();
}

/// Bytes of the file for [`share`].
pub const SHARED_BYTES: usize = imp::SHARED_BYTES;

/// Uses a file of [`SHARED_BYTES`] from now on, in which processes share the rules that they have
/// read from unwind tables. Does nothing if the file is too short, or is not sealed against
/// shrinking. The content is not trusted.
pub fn share(path: &core::ffi::CStr) {
    imp::share(path);
}

/// Limits the memory of stacks to `bytes`. At the limit, new stacks have no number.
pub fn limit(bytes: usize) {
    depot::DEPOT.set_limit(bytes);
}

/// A file that is mapped as code.
pub struct Module {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The difference between an address in memory and in the file.
    pub bias: usize,
    build_id: [u8; 20],
    build_id_length: usize,
    path: [u8; 512],
    path_length: usize,
    is_program: bool,
}

impl Module {
    /// Returns the build id from the linker; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id[..self.build_id_length]
    }

    /// Returns the path of the file, cut to fit.
    pub fn path(&self) -> &[u8] {
        &self.path[..self.path_length]
    }

    /// Replaces the path by the kernel's, if the loader's may lead elsewhere: it does not begin at
    /// the root, or the user gave the program to the loader (`ld.so ./program`).
    pub fn located(mut self) -> Self {
        use heapwright_substrate::os;
        let is_path = self.path().starts_with(b"/") && (!self.is_program || os::has_interpreter());
        if !is_path
            && let Ok(Some(mapping)) = os::mapping_of(self.start)
            && let name = mapping.name()
            && name.starts_with(b"/")
            && name.len() < os::Mapping::NAME
        {
            self.path[..name.len()].copy_from_slice(name);
            self.path_length = name.len();
        }
        self
    }
}

/// Returns the addresses of the module that contains an address. Unlike [`module_of`] it does not
/// look up the file's name, which may take a system call.
pub fn module_range(pc: usize) -> Option<core::ops::Range<usize>> {
    imp::module_range(pc)
}

/// Returns the module that contains an address.
pub fn module_of(pc: usize) -> Option<Module> {
    imp::module_of(pc)
}

/// Calls `found` with the name of the exported function that contains an address, and the offset in
/// it, if there is one. Functions that are not exported have no names here.
pub fn symbol_of(pc: usize, found: impl FnOnce(&[u8], usize)) -> bool {
    imp::symbol_of(pc, found)
}

/// The words of a thread for the unit tests, where no crate above defines them.
#[cfg(test)]
mod words {
    #[allow(dead_code, reason = "the words of `os::portable` begin without it")]
    static NOWHERE: usize = 0;

    heapwright_substrate::os::tls::define_words!(NOWHERE);
}
