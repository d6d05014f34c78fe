//! Probes: places at which a tracer of the whole machine, such as OpenTelemetry's eBPF profiler,
//! follows samples.
//!
//! ```text
//!   otel_memory:alloc(block, size, weight)     a sample was made; it stands for `weight` bytes
//!   otel_memory:free(block)                    a sample was freed
//!
//!   each probe   one instruction that does nothing, and a note about it in the ELF section
//!                .note.stapsdt, which is not loaded
//!   SEMAPHORE    a tracer adds 1 in the process's memory, and takes 1 away when it leaves
//! ```
//!
//! These are USDT probes in the form of SystemTap's `sys/sdt.h` (version 3 of the note), by the
//! contract that OpenTelemetry's eBPF profiler documents as `otel_memory`. Without a tracer the
//! probes cost one instruction for each sample. A `realloc` that moves is a free and an allocation.
//!
//! While a tracer is attached, `status` starts samples, if the process is published and is in no
//! sandbox of its own. Called by `samples`, and by `status`.

use crate::sync::atomic::{AtomicU16, Ordering};

/// The number of attached tracers. They find the number in the section `.probes`, and change it
/// from outside.
#[unsafe(link_section = ".probes")]
#[used]
static SEMAPHORE: AtomicU16 = AtomicU16::new(0);

pub(crate) fn is_traced() -> bool {
    SEMAPHORE.load(Ordering::Relaxed) != 0
}

#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! probe {
    ($name:literal, $places:literal, $($register:tt = $value:expr),+) => {
        // SAFETY: the instruction has no effect. The note's section is not loaded. The other
        // section is one byte that no code uses.
        unsafe {
            core::arch::asm!(
                "990: nop",
                ".pushsection .note.stapsdt, \"\", \"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b",
                ".8byte _.stapsdt.base",
                ".8byte {semaphore}",
                ".asciz \"otel_memory\"",
                concat!(".asciz \"", $name, "\""),
                concat!(".asciz \"", $places, "\""),
                "994: .balign 4",
                ".popsection",
                // The address of this section tells tracers how far the addresses were moved. R:
                // the linker keeps the section.
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .space 1",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                semaphore = sym SEMAPHORE,
                $(in($register) $value,)+
                options(nomem, nostack, preserves_flags),
            );
        }
    };
}

/// Notes a block that became a sample, which stands for `weight` bytes.
#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
pub(super) fn alloc(block: usize, size: u64, weight: u64) {
    probe!("alloc", "8@%rdi 8@%rsi 8@%rdx", "rdi" = block, "rsi" = size, "rdx" = weight);
}

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
pub(super) fn free(block: usize) {
    probe!("free", "8@%rdi", "rdi" = block);
}

#[cfg(all(target_os = "linux", not(miri), target_arch = "aarch64"))]
pub(super) fn alloc(block: usize, size: u64, weight: u64) {
    probe!("alloc", "8@x0 8@x1 8@x2", "x0" = block, "x1" = size, "x2" = weight);
}

#[cfg(all(target_os = "linux", not(miri), target_arch = "aarch64"))]
pub(super) fn free(block: usize) {
    probe!("free", "8@x0", "x0" = block);
}

/// No tracer can attach here.
#[cfg(not(all(
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn alloc(_block: usize, _size: u64, _weight: u64) {}

#[cfg(not(all(
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn free(_block: usize) {}
