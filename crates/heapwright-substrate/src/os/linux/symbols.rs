//! Optional symbols of other libraries. The linker binds them *weakly*: a search by name would take
//! the loader's lock inside `free`. A strong reference would bring the C library's `malloc` into
//! static programs that have ours.

use crate::os::LibcHeap;
#[cfg(feature = "debug")]
use core::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(feature = "interpose"))]
use core::{ffi::CStr, ptr};

/// The address of a symbol. Null: the process has no symbol of that name.
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut u8;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads one entry of the global offset table, which the linker has filled.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads one entry of the global offset table.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}
pub(super) use weak;

/// Whether the C library says that the process has one thread.
pub fn is_single_threaded() -> bool {
    let flag = weak!("__libc_single_threaded");
    // SAFETY: null, or a byte of the C library, which lives as long as the library.
    !flag.is_null() && unsafe { flag.read_volatile() } != 0
}

/// Whether this code knows the headers of the C library's own blocks. musl never gives such a block
/// to a program that has its own `malloc`.
const KNOWS_BLOCKS: bool = cfg!(target_env = "gnu");

/// The C library's own `free`, if there is one.
pub fn libc_free() -> Option<unsafe extern "C" fn(*mut u8)> {
    if !KNOWS_BLOCKS {
        return None;
    }
    let found = weak!("__libc_free");
    // SAFETY: glibc's function of this name has this type; null is `None`.
    unsafe { core::mem::transmute(found) }
}

#[repr(C)]
struct Mallinfo {
    arena: i32,
    ordblks: i32,
    smblks: i32,
    hblks: i32,
    rest: [i32; 6],
}

/// The C library's own heap. `None`: the library has no heap yet, or its blocks cannot be found.
/// This takes glibc's locks, so only a constructor may call it.
pub fn libc_heap() -> Option<LibcHeap> {
    // As a rule, only the C library moves the program break before `main`.
    let known_break: *mut usize = weak!("__curbrk").cast();
    if !KNOWS_BLOCKS || known_break.is_null() {
        return None;
    }
    // SAFETY: a word of the C library, which lives as long as the library.
    let end = unsafe { known_break.read() };
    if end == 0 {
        return None;
    }
    let found = weak!("__libc_mallinfo");
    // SAFETY: glibc's function of this name has this type; null is `None`.
    let mallinfo: Option<unsafe extern "C" fn() -> Mallinfo> =
        unsafe { core::mem::transmute(found) };
    // SAFETY: no preconditions.
    let now = unsafe { mallinfo?() };
    let arena = usize::try_from(now.arena).ok()?;
    let mapped = usize::try_from(now.hblks).ok()?;
    Some(LibcHeap { start: end.checked_sub(arena)?, end, mapped })
}

/// The loader's description of the module that contains an address.
#[cfg(feature = "debug")]
#[repr(C)]
pub struct Found {
    flags: u64,
    /// First byte of the module's mappings.
    pub start: *const u8,
    /// One past the last byte.
    pub end: *const u8,
    /// The loader's own record.
    pub link_map: *const LinkMap,
    /// The module's `.eh_frame_hdr`, or null.
    pub unwind_header: *const u8,
    reserved: [u64; 7],
}

/// The public part of the loader's record.
#[cfg(feature = "debug")]
#[repr(C)]
pub struct LinkMap {
    /// The difference between addresses in memory and in the file.
    pub bias: usize,
    /// A C string: the path; empty for the program.
    pub name: *const core::ffi::c_char,
}

/// The address of the C library's `exit`.
#[cfg(feature = "debug")]
pub fn exit_function() -> Option<usize> {
    let at = weak!("exit");
    (!at.is_null()).then(|| at.addr())
}

#[cfg(feature = "debug")]
static LOADER: AtomicU8 = AtomicU8::new(0);
#[cfg(feature = "debug")]
const READY: u8 = 1;
#[cfg(feature = "debug")]
const NOT_YET: u8 = 2;

/// False: this is a static program before its constructors. Its loader allocates before it knows
/// the program's modules.
#[cfg(feature = "debug")]
fn is_loader_ready() -> bool {
    let mut known = LOADER.load(Ordering::Relaxed);
    if known == 0 {
        // Only a library that defines malloc can be called before the loader is ready.
        let loaded = !cfg!(feature = "interpose");
        let loaded = loaded || super::program_headers().iter().any(|h| h.p_type == libc::PT_INTERP);
        known = if loaded { READY } else { NOT_YET };
        LOADER.store(known, Ordering::Relaxed);
    }
    known == READY
}

/// Notes that a constructor runs, so the loader is ready.
#[cfg(feature = "debug")]
pub fn constructors_run() {
    LOADER.store(READY, Ordering::Relaxed);
}

/// `None`: the C library has no such function, or it is too early to call it.
#[cfg(feature = "debug")]
fn finder() -> Option<unsafe extern "C" fn(usize, *mut Found) -> i32> {
    let found = weak!("_dl_find_object");
    // SAFETY: glibc's function of this name has this type; null is `None`.
    let find: Option<unsafe extern "C" fn(usize, *mut Found) -> i32> =
        unsafe { core::mem::transmute(found) };
    find.filter(|_| is_loader_ready())
}

/// Whether [`find_object`] knows the process's modules: glibc from 2.35 on.
#[cfg(feature = "debug")]
pub fn knows_objects() -> bool {
    finder().is_some()
}

/// The module that contains an address, if it is known. Takes no lock and allocates nothing.
#[cfg(feature = "debug")]
pub fn find_object(address: usize) -> Option<Found> {
    let find = finder()?;
    let mut answer = core::mem::MaybeUninit::<Found>::zeroed();
    // SAFETY: the place is as large as the C structure.
    if unsafe { find(address, answer.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: zeros are a valid value, and the call has written another value.
    Some(unsafe { answer.assume_init() })
}

/// The start of the first thread's stack, above its outermost frame. 0: not known.
#[cfg(feature = "debug")]
pub fn first_stack_end() -> usize {
    let place: *mut usize = weak!("__libc_stack_end").cast();
    if place.is_null() {
        // The kernel puts these random bytes above the first frame.
        // SAFETY: reads the auxiliary vector; no preconditions.
        return unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    }
    // SAFETY: a word of the loader that is set before any code of ours runs.
    unsafe { place.read() }
}

/// A symbol of the process, by the loader's search. Null: there is none. Takes the loader's lock.
#[cfg(not(feature = "interpose"))]
pub fn symbol(name: &CStr) -> *mut u8 {
    let found = weak!("dlsym");
    // SAFETY: the C library's function of this name has this type; null is `None`.
    let dlsym: Option<unsafe extern "C" fn(*mut u8, *const core::ffi::c_char) -> *mut u8> =
        unsafe { core::mem::transmute(found) };
    let Some(dlsym) = dlsym else { return ptr::null_mut() };
    // SAFETY: the name is a C string; null is the default scope.
    super::keeping_errno(|| unsafe { dlsym(ptr::null_mut(), name.as_ptr()) })
}
