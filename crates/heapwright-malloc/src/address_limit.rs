//! `setrlimit`, `prlimit` and `mlockall`, under a limit of address space.
//!
//! heapwright reserves far more address space than it uses, and the kernel counts reserved
//! addresses against `RLIMIT_AS`. The reservation fits the limit at the start, but a program (a
//! shell with `ulimit -v`) may lower the limit later. The kernel would then refuse every stack and
//! every library. So the heap gives up its reserve first. `mlockall` compares the same count with
//! `RLIMIT_MEMLOCK`, unless the process may lock without limit. If the kernel refuses the call, we
//! give up the reserve and try again.
//!
//! Each function makes its system call itself. glibc's 32-bit and 64-bit forms are the same on our
//! machines.

use crate::errno;
use crate::mirror::mirror;
use core::ptr;
use libc::{c_int, c_uint, pid_t, rlimit, rlimit64};

/// `RLIMIT_AS`. (C libraries differ about its type.)
const ADDRESSES: c_uint = libc::RLIMIT_AS as _;

mirror!(rlimit, rlimit64; rlim_cur rlim_max);

/// # Safety
///
/// `new` can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn setrlimit(resource: c_uint, new: *const rlimit) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { limit(0, resource, new, ptr::null_mut()) }
}

/// # Safety
///
/// `new` can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn setrlimit64(resource: c_uint, new: *const rlimit) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { limit(0, resource, new, ptr::null_mut()) }
}

/// # Safety
///
/// `new` is null or can be read, `old` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn prlimit(
    process: pid_t,
    resource: c_uint,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { limit(process, resource, new, old) }
}

/// # Safety
///
/// `new` is null or can be read, `old` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn prlimit64(
    process: pid_t,
    resource: c_uint,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { limit(process, resource, new, old) }
}

/// The body of the four functions above.
///
/// # Safety
///
/// `new` is null or can be read, `old` is null or can be written.
unsafe fn limit(process: pid_t, resource: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int {
    let set = |new, old| {
        // SAFETY: as the caller promises.
        unsafe { set_limit(process, resource, new, old) }
    };
    #[cfg(heapwright_reads)]
    return crate::bounds::exchange("prlimit", new, old, set);
    #[cfg(not(heapwright_reads))]
    set(new, old)
}

/// [`limit`] without the checks of its memory.
///
/// # Safety
///
/// As [`limit`].
unsafe fn set_limit(
    process: pid_t,
    resource: c_uint,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: as the caller promises.
    let new_limit = unsafe { new.as_ref() };
    let ours = new_limit.filter(|_| resource == ADDRESSES && is_this(process));
    // The reserve goes before the kernel's limit falls. (`RLIM_INFINITY` is `usize::MAX`.)
    if let Some(ours) = ours {
        heapwright::heap::limit_address_space(ours.rlim_cur as usize);
    }
    // SAFETY: the kernel checks the addresses. Failure sets errno.
    let set = unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, new, old) as c_int };
    if set != 0 && ours.is_some() {
        // The kernel refused, so the heap must know the old limit again.
        let errno = errno::get();
        let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `getrlimit` writes `limit` alone.
        if unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0 {
            heapwright::heap::limit_address_space(limit.rlim_cur as usize);
        }
        errno::set(errno);
    }
    set
}

#[unsafe(no_mangle)]
extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: the call changes no memory's contents. Failure sets errno.
    let lock = || unsafe { libc::syscall(libc::SYS_mlockall, flags) as c_int };
    let locked = lock();
    if locked == 0 || errno::get() != libc::ENOMEM {
        return locked;
    }
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `getrlimit` writes `limit` alone.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY {
        heapwright::heap::give_up_reserve(limit.rlim_cur as usize);
    }
    lock()
}

fn is_this(process: pid_t) -> bool {
    // SAFETY: `getpid` has no preconditions.
    process == 0 || process == unsafe { libc::getpid() }
}
