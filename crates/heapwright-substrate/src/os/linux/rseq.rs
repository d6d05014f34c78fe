//! Restartable sequences: they tell a thread its CPU, and whether it is still on this CPU.
//!
//! The kernel keeps a small area up to date for each thread (`struct rseq`):
//!
//! ```text
//!   0  cpu_id_start   4  cpu_id   8  rseq_cs: the sequence that the thread is in   16 ...
//! ```
//!
//! A thread stores the address of a descriptor in `rseq_cs`. After a preemption, a move to another
//! CPU or a signal inside the descriptor's range of code, the thread continues at the descriptor's
//! abort address. So a sequence that ends with its only store runs undisturbed on one CPU, or has
//! no effect.
//!
//! glibc (since 2.35) registers the area at `__rseq_offset` from the thread pointer, if
//! `__rseq_size` is not 0. With other C libraries, each thread that needs an area registers a
//! thread-local area ([`enter`]). It gives the area up at its end ([`leave`]), because the kernel
//! ends a thread whose area cannot be written. The kernel refuses a second area for a thread.
//!
//! ```text
//!   our area   struct rseq, 32 bytes | state: NEW, ENTERED, OVER
//! ```
//!
//! Called by `registry`, `cache::arrays` and `heap`.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, Ordering};

use super::keeping_errno;
use super::symbols::weak;
use super::threads::{block_signals, restore_signals, thread_pointer};

const LEAST: u32 = 16;

/// The area's distance from the thread pointer. `None`: there is no area (an old kernel, a sandbox,
/// `glibc.pthread.rseq=0`, an emulator).
pub fn offset() -> Option<isize> {
    let Some((size, offset)) = c_librarys() else {
        return own::is_possible().then(own::offset);
    };
    // SAFETY: the C library's constant, an `unsigned int`.
    let size = unsafe { size.read() };
    // SAFETY: the C library's constant, a `ptrdiff_t`.
    let offset = unsafe { offset.read() };
    (size >= LEAST).then_some(offset)
}

fn c_librarys() -> Option<(*const u32, *const isize)> {
    let size = weak!("__rseq_size").cast::<u32>().cast_const();
    let offset = weak!("__rseq_offset").cast::<isize>().cast_const();
    (!size.is_null() && !offset.is_null()).then_some((size, offset))
}

/// Whether this module, not the C library, registers threads' areas.
pub fn is_ours() -> bool {
    c_librarys().is_none()
}

/// Registers the calling thread's own area, unless the thread has tried before. `watched` must make
/// sure that [`leave`] runs at the thread's end; false: it cannot. Returns whether the area is
/// registered now.
pub fn enter(watched: impl FnOnce() -> bool) -> bool {
    is_ours() && own::area().enter(watched)
}

/// Gives up the calling thread's own area for good. The thread begins no more sequences.
pub fn leave() {
    if is_ours() {
        own::area().leave();
    }
}

mod own {
    use core::cell::UnsafeCell;
    use core::ptr;

    use super::*;

    const NEW: u32 = 0;
    const ENTERED: u32 = 1;
    const OVER: u32 = 2;

    const SIZE: usize = 32;
    const UNREGISTER: libc::c_int = 1;
    #[cfg(target_arch = "x86_64")]
    const SIGNATURE: u32 = 0x5305_3053;
    #[cfg(target_arch = "aarch64")]
    const SIGNATURE: u32 = 0xd428_bc00;

    global_asm!(
        ".pushsection .tdata.heapwright_rseq,\"awT\",@progbits",
        ".balign 32",
        ".globl __heapwright_0_1_rseq",
        ".hidden __heapwright_0_1_rseq",
        ".type __heapwright_0_1_rseq, @object",
        ".size __heapwright_0_1_rseq, 64",
        "__heapwright_0_1_rseq:",
        // cpu_id_start, cpu_id: not registered.
        ".long 0, -1",
        ".zero 24",
        // The state: NEW; and up to the next multiple of 32.
        ".zero 32",
        ".popsection",
    );

    #[repr(C, align(32))]
    pub(super) struct Area {
        cpu_id_start: AtomicU32,
        cpu_id: AtomicU32,
        rest: UnsafeCell<[u32; 6]>,
        state: AtomicU32,
    }

    const _: () = assert!(core::mem::offset_of!(Area, state) == SIZE && size_of::<Area>() == 64);

    pub(super) fn offset() -> isize {
        let offset;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads a word of the table of offsets.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + __heapwright_0_1_rseq@GOTTPOFF]",
                out(reg) offset,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads a word of the table of offsets.
        unsafe {
            asm!(
                "adrp {0}, :gottprel:__heapwright_0_1_rseq",
                "ldr {0}, [{0}, :gottprel_lo12:__heapwright_0_1_rseq]",
                out(reg) offset,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        offset
    }

    /// The area lives as long as the thread.
    pub(super) fn area() -> &'static Area {
        let thread = ptr::with_exposed_provenance::<u8>(thread_pointer());
        // SAFETY: the thread's own area, of this layout; only the thread and the kernel access it.
        unsafe { &*thread.wrapping_offset(offset()).cast::<Area>() }
    }

    impl Area {
        fn becomes(&self, from: u32, to: u32) -> bool {
            let order = Ordering::Relaxed;
            self.state.compare_exchange(from, to, order, order).is_ok()
        }

        fn is_kept(&self) -> bool {
            self.cpu_id.load(Ordering::Relaxed).cast_signed() >= 0
        }

        fn call(&self, flags: libc::c_int) -> bool {
            // SAFETY: an area that stays until it is given up, with 32 bytes for the kernel.
            keeping_errno(|| unsafe {
                libc::syscall(libc::SYS_rseq, core::ptr::from_ref(self), SIZE, flags, SIGNATURE)
            }) == 0
        }

        pub(super) fn enter(&self, watched: impl FnOnce() -> bool) -> bool {
            // The state changes first, because `watched` and signal handlers may allocate.
            if !self.becomes(NEW, ENTERED) {
                return self.is_kept();
            }
            if !watched() {
                self.state.store(NEW, Ordering::Relaxed);
                return false;
            }
            if !self.call(0) {
                self.state.store(OVER, Ordering::Relaxed);
            }
            self.is_kept()
        }

        pub(super) fn leave(&self) {
            if self.state.swap(OVER, Ordering::Relaxed) == ENTERED {
                self.call(UNREGISTER);
            }
        }
    }

    /// Whether the kernel registers the thread's area. This removes it again.
    pub(super) fn is_possible() -> bool {
        let area = area();
        // No signal handler may see an area that is removed at once.
        let blocked = block_signals();
        let is_possible = area.is_kept() || (area.call(0) && area.call(UNREGISTER));
        restore_signals(blocked);
        is_possible
    }
}

/// The CPU of the calling thread by its area at `offset`.
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

/// The CPU of the calling thread, from the system.
pub fn current_cpu() -> usize {
    // SAFETY: no preconditions. No system call on the usual kernels.
    let cpu = keeping_errno(|| unsafe { libc::sched_getcpu() });
    usize::try_from(cpu).unwrap_or(0)
}

/// The kernel's number of possible CPUs.
pub fn possible_cpus() -> usize {
    let mut buffer = [0; 256];
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

/// Whether all possible CPUs have numbers below `most`. The kernel refuses a set without a bit for
/// a possible CPU.
pub fn numbers_are_below(most: usize) -> bool {
    let mut set = [0usize; 16];
    let size = most.div_ceil(usize::BITS as usize) * size_of::<usize>();
    if most == 0 || size > size_of_val(&set) || super::is_filtered() {
        return false;
    }
    // SAFETY: `set` has room for so many bytes. The C library's function would fill the rest of the
    // set, and hide its size.
    let got = keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size, set.as_mut_ptr())
    });
    got > 0
}

const REGISTER_RSEQ: libc::c_int = 1 << 8;
const RSEQ: libc::c_int = 1 << 7;
const FLAG_CPU: libc::c_uint = 1;

/// Registers this process for [`fence`]. False: the kernel does not know the call.
pub fn register_fence() -> bool {
    // SAFETY: no preconditions.
    let register = || unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_RSEQ, 0, 0) } == 0;
    !super::is_filtered() && keeping_errno(register)
}

/// Restarts every running sequence of this process, on one CPU or on all CPUs. Later sequences see
/// all stores before the call. False: the kernel or a sandbox refuses the call.
pub fn fence(cpu: Option<usize>) -> bool {
    // The only thread runs this function, so no thread is in a sequence.
    if super::is_single_threaded() || super::is_filtered() {
        return super::is_single_threaded();
    }
    let (flags, cpu) = cpu.map_or((0, 0), |cpu| (FLAG_CPU, cpu));
    // SAFETY: no preconditions.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_membarrier, RSEQ, flags, cpu) }) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_possible_cpus_has_room_for_all() {
        // A kernel has at least 64 bits for CPUs, and at most 8192.
        let possible = possible_cpus();
        assert_eq!(numbers_are_below(1024), possible <= 1024, "of {possible}");
        assert!(!numbers_are_below(0));
        assert!(current_cpu() < possible);
        assert!((1..=possible).contains(&crate::os::cpus()));
    }
}
