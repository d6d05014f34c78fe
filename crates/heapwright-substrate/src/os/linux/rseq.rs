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
//! glibc (since 2.35) registers the area and says where it is: at `__rseq_offset` from the thread
//! pointer, if `__rseq_size` is not 0. There that area is used. Other C libraries (musl, older
//! glibc) know of none: there each thread that needs one registers its own ([`enter`]), in static
//! thread-local memory, and gives it up before that memory goes ([`leave`]): the kernel would end a
//! thread whose area it cannot write. There is only one a thread, so where the program has
//! registered another, the kernel refuses ours.
//!
//! ```text
//!   our area   struct rseq, 32 bytes | state: NEW, ENTERED, OVER
//! ```
//!
//! The state is a word of its own, for signal handlers may come between it and the system call.
//!
//! Called by `registry::per_cpu`, `cache::arrays` and `heap`.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, Ordering};

use super::keeping_errno;
use super::symbols::weak;
use super::threads::{block_signals, restore_signals, thread_pointer};

/// The least of an area that has all we use (`cpu_id` and `rseq_cs`).
const LEAST: u32 = 16;

/// How far the area is from the thread pointer; `None` where there is none: an old kernel, a
/// sandbox, `glibc.pthread.rseq=0`, an emulator.
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

/// The C library's words about its area; `None`: it knows of none.
fn c_librarys() -> Option<(*const u32, *const isize)> {
    let size = weak!("__rseq_size").cast::<u32>().cast_const();
    let offset = weak!("__rseq_offset").cast::<isize>().cast_const();
    (!size.is_null() && !offset.is_null()).then_some((size, offset))
}

/// Whether threads' areas are registered here, and not by the C library.
pub fn is_ours() -> bool {
    c_librarys().is_none()
}

/// Registers the calling thread's area, if that is ours to do and was not tried before. `watched`
/// sees to it that [`leave`] will be called when the thread ends, or says that it cannot. Returns
/// whether the area is registered now.
pub fn enter(watched: impl FnOnce() -> bool) -> bool {
    is_ours() && own::area().enter(watched)
}

/// Gives the calling thread's area up, if it is ours, for good. The thread begins no sequence any
/// more.
pub fn leave() {
    if is_ours() {
        own::area().leave();
    }
}

/// The area that is ours.
mod own {
    use core::cell::UnsafeCell;
    use core::ptr;

    use super::*;

    const NEW: u32 = 0;
    const ENTERED: u32 = 1;
    const OVER: u32 = 2;

    /// What the kernel is told: the size of an area, that it is to be forgotten, and the word
    /// before each abort address.
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
        /// What only the kernel and the sequences use.
        rest: UnsafeCell<[u32; 6]>,
        state: AtomicU32,
    }

    const _: () = assert!(core::mem::offset_of!(Area, state) == SIZE && size_of::<Area>() == 64);

    /// From the thread pointer to the area: the same in each thread.
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

    /// The calling thread's. (It lives as long as the thread, which is longer than any use of it.)
    pub(super) fn area() -> &'static Area {
        let thread = ptr::with_exposed_provenance::<u8>(thread_pointer());
        // SAFETY: the thread's own area, of this layout; others than the thread and the kernel do
        // not touch it.
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
            // First of all: `watched` may allocate, and signal handlers may.
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

    /// Whether the kernel keeps such an area: tried, and undone.
    pub(super) fn is_possible() -> bool {
        let area = area();
        // No signal handler may see an area that is about to go.
        let blocked = block_signals();
        let is_possible = area.is_kept() || (area.call(0) && area.call(UNREGISTER));
        restore_signals(blocked);
        is_possible
    }
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
    if most == 0 || size > size_of_val(&set) || super::is_filtered() {
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
    let register = || unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_RSEQ, 0, 0) } == 0;
    !super::is_filtered() && keeping_errno(register)
}

/// Restarts every sequence of this process that is under way, on one CPU or on all: what
/// was stored before is seen by whatever they do from now on. False: the kernel refused.
pub fn fence(cpu: Option<usize>) -> bool {
    // A single thread is in no sequence while it runs this.
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
        // A kernel has 64 at least, and no more than 8192.
        let possible = possible_cpus();
        assert_eq!(numbers_are_below(1024), possible <= 1024, "of {possible}");
        assert!(!numbers_are_below(0));
        assert!(current_cpu() < possible);
        assert!((1..=possible).contains(&crate::os::cpus()));
    }
}
