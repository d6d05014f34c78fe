//! Restartable sequences: which CPU is this, and is it still?
//!
//! The kernel keeps a small area up to date for each thread (`struct rseq`):
//!
//! ```text
//!   0  cpu_id_start   4  cpu_id   8  rseq_cs: the sequence that the thread is in   16 ...
//! ```
//!
//! A thread that stores the address of a descriptor in `rseq_cs` and is then preempted,
//! moved to another CPU or interrupted by a signal inside the range that the descriptor
//! names, goes on at the descriptor's abort address. So a sequence that ends with one
//! store either runs undisturbed on one CPU or has done nothing.
//!
//! glibc (since 2.35) registers the area and says where it is: at `__rseq_offset` from
//! the thread pointer, if `__rseq_size` is not 0. We use that area and never register
//! one: there is only one a thread.
//!
//! Called by `registry::per_cpu` and `cache::arrays`.

use core::arch::asm;

use super::keeping_errno;
use super::symbols::weak;

/// The least of an area that has all we use (`cpu_id` and `rseq_cs`).
const LEAST: u32 = 16;

/// How far the area is from the thread pointer; `None` where there is none: another C
/// library, an old kernel, `glibc.pthread.rseq=0`, an emulator.
pub fn offset() -> Option<isize> {
    let size = weak!("__rseq_size").cast::<u32>();
    let offset = weak!("__rseq_offset").cast::<isize>();
    if size.is_null() || offset.is_null() {
        return None;
    }
    // SAFETY: not null: the C library's constant, an `unsigned int`.
    let size = unsafe { size.read() };
    // SAFETY: not null: the C library's constant, a `ptrdiff_t`.
    let offset = unsafe { offset.read() };
    (size >= LEAST).then_some(offset)
}

/// The CPU of the calling thread by its area at `offset`, if the kernel keeps that.
#[inline]
pub fn cpu(offset: isize) -> Option<usize> {
    let cpu: u32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a field of the thread's own area.
    unsafe {
        asm!(
            "mov {0:e}, dword ptr fs:[{1} + 4]",
            out(reg) cpu,
            in(reg) offset,
            options(readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a field of the thread's own area.
    unsafe {
        asm!(
            "mrs {1}, tpidr_el0",
            "add {1}, {1}, {2}",
            "ldr {0:w}, [{1}, #4]",
            out(reg) cpu,
            out(reg) _,
            in(reg) offset,
            options(readonly, nostack, preserves_flags),
        );
    }
    // Not registered, or refused: -1 or -2.
    (cpu.cast_signed() >= 0).then_some(cpu as usize)
}

/// The CPU of the calling thread, by the system's word.
pub fn current_cpu() -> usize {
    // SAFETY: no preconditions. No system call on the usual kernels.
    let cpu = keeping_errno(|| unsafe { libc::sched_getcpu() });
    usize::try_from(cpu).unwrap_or(0)
}

/// How many CPUs there may ever be: what the kernel says is possible.
pub fn possible_cpus() -> usize {
    let mut buffer = [0; 256];
    // A list of numbers and ranges, in order: the last number is the highest.
    let (mut highest, mut number) = (None, None);
    super::read_file(c"/sys/devices/system/cpu/possible", &mut buffer, |text| {
        for &byte in text {
            if byte.is_ascii_digit() {
                let more = usize::from(byte - b'0');
                number = Some(number.unwrap_or(0usize).saturating_mul(10).saturating_add(more));
            } else {
                highest = number.take().or(highest);
            }
        }
        true
    });
    number.or(highest).map_or_else(super::cpus, |highest| highest.saturating_add(1))
}

/// Whether no CPU of this machine can ever have the number `most` or one above it: the
/// kernel refuses a set that has no bit for a CPU that it may have.
pub fn numbers_are_below(most: usize) -> bool {
    let mut set = [0usize; 16];
    let size = most.div_ceil(usize::BITS as usize) * size_of::<usize>();
    if most == 0 || size > size_of_val(&set) {
        return false;
    }
    // SAFETY: `set` has room for so many bytes. By the system's number, for the C library
    // would fill the rest of the set, and hide how much there is.
    let got = keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size, set.as_mut_ptr())
    });
    got > 0
}

const REGISTER_RSEQ: libc::c_int = 1 << 8;
const RSEQ: libc::c_int = 1 << 7;
const FLAG_CPU: libc::c_uint = 1;

/// Says that this process will call [`fence`]. False where the kernel does not know it.
pub fn register_fence() -> bool {
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_RSEQ, 0, 0) }) == 0
}

/// Restarts every sequence of this process that is under way, on one CPU or on all: what
/// was stored before is seen by whatever they do from now on. False: the kernel refused.
pub fn fence(cpu: Option<usize>) -> bool {
    let (flags, cpu) = cpu.map_or((0, 0), |cpu| (FLAG_CPU, cpu));
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_membarrier, RSEQ, flags, cpu) }) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_possible_cpus_has_room_for_all() {
        // A kernel has 64 at least, and no more than 8192.
        let possible = possible_cpus();
        assert_eq!(numbers_are_below(1024), possible <= 1024, "of {possible}");
        assert!(!numbers_are_below(0));
        assert!(current_cpu() < possible);
    }
}
