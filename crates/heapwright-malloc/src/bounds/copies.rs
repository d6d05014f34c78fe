//! `fork`, `_Fork`, `clone` and their kin by `syscall`: the parent's record gets a note of the child.
//!
//! A child that a signal kills at once leaves no record of its own. The note tells the report that
//! there was a child. A child with its parent's memory (`CLONE_VM`) has no note: it is a thread, or
//! executes a program (`programs`).

use crate::errno;
use crate::weak::next;
use core::ffi::CStr;
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::AtomicPtr;
use heapwright::limit::is_in_sandbox;
use heapwright::process::{is_original_process, note_process};
use heapwright_record::debug::CHILD;
use libc::{c_int, c_long, c_void};

/// Notes the child of a call that returned its number (0 in the child, or an error).
fn note(child: c_long) {
    if let Ok(child @ 1..) = u32::try_from(child)
        && is_original_process()
        && shares_numbers()
    {
        note_process(CHILD, child, &[]);
    }
}

/// Whether new children see their own numbers as this process does: not after `unshare` of pids.
pub(super) fn shares_numbers() -> bool {
    let namespace = |path: &CStr| {
        let mut about = MaybeUninit::<libc::stat>::zeroed();
        let (folder, to) = (libc::AT_FDCWD, about.as_mut_ptr());
        // SAFETY: the path is a string, and the kernel has room for the result.
        unsafe { libc::syscall(libc::SYS_newfstatat, folder, path.as_ptr(), to, 0) };
        // SAFETY: all zeros is a valid struct, and so is the call's result.
        unsafe { about.assume_init() }.st_ino
    };
    let kept = errno::get();
    let shares = is_in_sandbox()
        || namespace(c"/proc/self/ns/pid") == namespace(c"/proc/self/ns/pid_for_children");
    errno::set(kept);
    shares
}

/// Whether a child has memory of its own, and the number that its parent sees.
fn is_copy(flags: u64) -> bool {
    flags & (libc::CLONE_VM | libc::CLONE_NEWPID) as u64 == 0
}

/// Notes the child of a system call by number. `first` is the call's first argument.
pub(super) fn by_number(number: c_long, first: usize, result: c_long) {
    let is_noted = match number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => true,
        libc::SYS_clone => is_copy(first as u64),
        libc::SYS_clone3 if result > 0 => {
            let flags = core::ptr::with_exposed_provenance::<u64>(first);
            // SAFETY: the call succeeded, so the kernel has read the arguments, which begin there.
            is_copy(unsafe { flags.read_unaligned() })
        }
        _ => false,
    };
    if is_noted {
        note(result);
    }
}

type Fork = extern "C" fn() -> c_int;

macro_rules! forking {
    ($($name:ident, $text:literal;)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let next = next(&FOUND, $text);
            if next.is_null() {
                return errno::set_and_fail(libc::ENOSYS);
            }
            // SAFETY: the function has this type.
            let child = unsafe { transmute::<*mut c_void, Fork>(next) }();
            note(child.into());
            child
        }
    )* };
}

forking! {
    fork, c"fork";
    _Fork, c"_Fork";
}

type Clone = unsafe extern "C" fn(usize, usize, c_int, usize, usize, usize, usize) -> c_int;

/// (The C library's `clone` is variadic. The last arguments may be missing, and are passed on.)
///
/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn clone(
    function: usize,
    stack: usize,
    flags: c_int,
    argument: usize,
    parents: usize,
    local: usize,
    childs: usize,
) -> c_int {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let next = next(&FOUND, c"clone");
    if next.is_null() {
        return errno::set_and_fail(libc::ENOSYS);
    }
    // SAFETY: `clone` takes these arguments.
    let next = unsafe { transmute::<*mut c_void, Clone>(next) };
    // SAFETY: as the caller promises.
    let child = unsafe { next(function, stack, flags, argument, parents, local, childs) };
    if is_copy(flags as u64) {
        note(child.into());
    }
    child
}
