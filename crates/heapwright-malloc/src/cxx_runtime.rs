//! The functions of the C++ runtime that the operators need, if the process has a runtime.
//!
//! heapwright is not linked with a C++ runtime: preloading must not bring a runtime into a C
//! program. So each function is looked up when memory has run out, in two places:
//!
//! 1. as a weak symbol, which the dynamic linker bound when it loaded us. Every program that is
//!    linked with a C++ runtime has it, statically or not.
//! 2. in a runtime that was loaded later and privately, with a plug-in (an extension of Python, for
//!    example). The runtime is found by the name of its file, and nothing is loaded. The handle is
//!    kept, so that the functions cannot be unloaded.
//!
//! `dlsym` is weak too, for the linkers of static programs.
//!
//! **Invariant.** No code here calls a function that may throw. The assembly of `cxx` gets the
//! address of such a function, and calls the function.

use crate::deepbind::real_dlopen;
use crate::fatal;
use crate::weak::weak;
use core::ffi::CStr;
use core::mem::transmute;
use libc::{c_char, c_int, c_void};

/// The functions of an unwinder that a personality routine needs.
pub(crate) struct Unwinder {
    /// `_Unwind_GetIP`: the return address of the frame's call.
    pub(crate) ip: unsafe extern "C" fn(*mut c_void) -> usize,
    /// `_Unwind_SetGR`: sets a register for the place where the program continues.
    pub(crate) set_register: unsafe extern "C" fn(*mut c_void, c_int, usize),
    /// `_Unwind_SetIP`: sets this place.
    pub(crate) set_ip: unsafe extern "C" fn(*mut c_void, usize),
}

#[cold]
pub(crate) fn unwinder() -> Option<Unwinder> {
    let ip = find(weak!("_Unwind_GetIP"), c"_Unwind_GetIP");
    let set_register = find(weak!("_Unwind_SetGR"), c"_Unwind_SetGR");
    let set_ip = find(weak!("_Unwind_SetIP"), c"_Unwind_SetIP");
    if ip.is_null() || set_register.is_null() || set_ip.is_null() {
        return None;
    }
    Some(Unwinder {
        // SAFETY: `_Unwind_GetIP` of every unwinder's ABI has this type.
        ip: unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(ip) },
        // SAFETY: `_Unwind_SetGR` of every unwinder's ABI has this type.
        set_register: unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, c_int, usize)>(set_register)
        },
        // SAFETY: `_Unwind_SetIP` of every unwinder's ABI has this type.
        set_ip: unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize)>(set_ip)
        },
    })
}

/// Returns the new-handler that the program has set, or null. Without a C++ runtime there is none.
#[cold]
pub(crate) extern "C" fn new_handler() -> *mut c_void {
    // std::get_new_handler()
    let get = find(weak!("_ZSt15get_new_handlerv"), c"_ZSt15get_new_handlerv");
    if get.is_null() {
        return get;
    }
    // SAFETY: `new_handler get_new_handler() noexcept`.
    let get = unsafe { transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(get) };
    get()
}

#[repr(C)]
pub(crate) struct Jump {
    to: *mut c_void,
    arguments: [*mut c_void; 3],
}

/// Prepares the jump that throws `std::bad_alloc`. The jump leads to the function of libstdc++ and
/// libc++. A static program may be linked without this function; then the jump leads to
/// `__cxa_throw`. A program that has neither ends, because it has no such type to throw.
///
/// # Safety
///
/// `jump` can be written.
#[cold]
pub(crate) unsafe extern "C" fn prepare_bad_alloc(jump: *mut Jump) {
    // std::__throw_bad_alloc()
    let throw = find(weak!("_ZSt17__throw_bad_allocv"), c"_ZSt17__throw_bad_allocv");
    let answer = if throw.is_null() {
        by_hand()
    } else {
        Some(Jump { to: throw, arguments: [core::ptr::null_mut(); 3] })
    };
    let Some(answer) = answer else {
        fatal(
            b"heapwright: operator new: out of memory, and the program has no C++ runtime to throw std::bad_alloc\n",
        );
    };
    // SAFETY: `jump` can be written, as the caller promises.
    unsafe { jump.write(answer) };
}

/// `throw std::bad_alloc()` as a compiler writes it.
fn by_hand() -> Option<Jump> {
    let allocate = weak!("__cxa_allocate_exception");
    let throw = weak!("__cxa_throw");
    // The virtual table, type and destructor of std::bad_alloc.
    let table = weak!("_ZTVSt9bad_alloc");
    let type_of = weak!("_ZTISt9bad_alloc");
    let destructor = weak!("_ZNSt9bad_allocD1Ev");
    if [allocate, throw, table, type_of, destructor].iter().any(|p| p.is_null()) {
        return None;
    }
    // SAFETY: `void* __cxa_allocate_exception(size_t)`, by the C++ ABI.
    let allocate =
        unsafe { transmute::<*mut c_void, extern "C" fn(usize) -> *mut c_void>(allocate) };
    // The object is a pointer into the table, behind its two leading words. The runtime has a
    // reserve for exceptions: it returns memory or ends the program.
    let exception = allocate(size_of::<*mut c_void>());
    // SAFETY: the object was just made, with room for a pointer.
    unsafe { exception.cast::<*mut c_void>().write(table.wrapping_byte_add(16)) };
    Some(Jump { to: throw, arguments: [exception, type_of, destructor] })
}

/// Ends the life of an exception that a nothrow form caught.
///
/// # Safety
///
/// A landing pad has just caught `exception`, and no other code uses it.
#[cold]
pub(crate) unsafe extern "C" fn swallow_exception(exception: *mut c_void) {
    let begin = find(weak!("__cxa_begin_catch"), c"__cxa_begin_catch");
    let end = find(weak!("__cxa_end_catch"), c"__cxa_end_catch");
    if begin.is_null() || end.is_null() {
        // Nothing can free the exception: it stays allocated.
        return;
    }
    // SAFETY: `void* __cxa_begin_catch(void*)`, by the C++ ABI.
    let begin = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(begin)
    };
    // SAFETY: `void __cxa_end_catch()`, by the C++ ABI.
    let end = unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(end) };
    // SAFETY: the caller caught this exception.
    unsafe { begin(exception) };
    // SAFETY: this ends the catch that the call above began.
    unsafe { end() };
}

/// Returns a function of the C++ runtime: the weak symbol, otherwise the function of a runtime that
/// was loaded privately. Returns null if there is none.
#[cold]
fn find(bound: *mut c_void, name: &CStr) -> *mut c_void {
    /// The runtimes. A search in one includes the unwinder that it is linked with.
    const RUNTIMES: [&CStr; 3] = [c"libstdc++.so.6", c"libc++abi.so.1", c"libc++.so.1"];

    if !bound.is_null() {
        return bound;
    }
    let (dlopen, dlsym) = (real_dlopen(), weak!("dlsym"));
    if dlopen.is_null() || dlsym.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: `dlopen` has this type in POSIX.
    let dlopen = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>(dlopen)
    };
    // SAFETY: `dlsym` has this type in POSIX.
    let dlsym = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>(
            dlsym,
        )
    };
    for runtime in RUNTIMES {
        // SAFETY: the name is a string; RTLD_NOLOAD loads nothing and runs no code.
        let handle = unsafe { dlopen(runtime.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: the handle is live, and the name is a string.
        let found = unsafe { dlsym(handle, name.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    core::ptr::null_mut()
}
