//! Bounds in the C library's functions: `libheapwright-hardened.so`, and `libheapwright-check.so`.
//!
//! A program's call of `memcpy`, `strcpy`, `sprintf`, `read`, ... comes here first. The address map
//! gives the room left in the destination's block. The C library's own function does the work.
//!
//! ```text
//!   heapwright-entry   the names, a slot for each { entry, real }; heapwright-entry-reads
//!   table              a line for each function that writes: its arguments, its writes, its reads
//!   readers            functions that read: in libheapwright-check.so alone
//!   calls              calls of the kernel: in libheapwright-check.so alone
//!     lines              the code that a line becomes
//!     text               strings: the number of bytes to be written
//!     reading            bytes that are read up to an end, or compared
//!     kernel             parts, messages, requests; calls in spite of a finding
//!     programs           calls that start a program
//!       unloadable         programs into which the library cannot be loaded
//!     copies             calls that copy the process
//!     print              *printf and gets, whose length is known after they have written
//!     format             the reads of *printf: the strings of its format
//!   own                heapwright's own calls of these functions, without checks
//! ```
//!
//! **One table, two uses.** A line states a function's writes *and* reads, and is compiled twice:
//! with checks of writes, and with checks of both. The hardened library uses the first form,
//! because checks of reads cost as much again. It has only the first table. `mode=debug` uses the
//! second form: its heap knows each block's exact size, and whether the block was freed.
//!
//! **An error** is one line of text, and ends the process. With `on_misuse=report` or `mode=debug`
//! (which reports a finding) the real function then does its work, but printed text is cut.
//!
//! **Invariants.** No check allocates or takes a lock. No function here changes `errno` before
//! the real one runs. A destination outside the heap's window goes to the real function unchecked.

#[macro_use]
mod lines;
#[cfg(heapwright_reads)]
mod calls;
#[cfg(heapwright_reads)]
mod copies;
mod format;
mod kernel;
mod own;
mod print;
#[cfg(heapwright_reads)]
mod programs;
#[cfg(heapwright_reads)]
mod readers;
#[cfg(heapwright_reads)]
mod reading;
mod table;
mod text;
#[cfg(heapwright_reads)]
mod unloadable;

use crate::errno;
use crate::weak::weak;
use core::arch::global_asm;
use core::ffi::CStr;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use heapwright::heap::{self, Access, UNBOUNDED};
use heapwright_entry::{SLOTS, Slot};
use kernel::{Filled, Room, Stage};
#[cfg(heapwright_reads)]
pub(crate) use kernel::{controls_process, exchange};
use libc::{c_char, c_int, c_void};
use table::TABLE;

// Options that precede the environment's (`os::default_options` reads them by a weak symbol).
#[cfg(heapwright_reads)]
macro_rules! default_options {
    () => {
        ".asciz \"mode=debug\""
    };
}
#[cfg(not(heapwright_reads))]
macro_rules! default_options {
    () => {
        ".asciz \"mode=hardened\""
    };
}
global_asm!(
    ".pushsection .rodata.heapwright_default_options, \"a\"",
    ".weak __heapwright_0_1_default_options",
    ".hidden __heapwright_0_1_default_options",
    "__heapwright_0_1_default_options:",
    default_options!(),
    ".popsection",
    // An entry calls this function, within the library.
    ".hidden heapwright_bounds_start",
);

const _: () = assert!(TABLE.len() == heapwright_entry::COUNT, "a name has no line in the table");
#[cfg(heapwright_reads)]
const _: () = assert!(
    readers::READERS.len() + calls::CALLS.len() == heapwright_entry_reads::COUNT,
    "a name has no line"
);

struct Function {
    /// The C library's function that does the work, or `None` if this library does the work.
    real: Option<&'static CStr>,
    slot: &'static Slot,
    /// The form that checks writes. Null if only libheapwright-check.so has the function.
    writes: *const c_void,
    both: *const c_void,
}

// SAFETY: the pointers lead to names and code, which are never written.
unsafe impl Sync for Function {}

#[derive(Clone, Copy)]
enum Checks {
    /// Nothing (`detect=-bounds`).
    None,
    Writes,
    Both,
}

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlerror = unsafe extern "C" fn() -> *mut c_char;

/// The first call of any of the functions fills the slots. The library's constructor, which knows
/// the mode, fills them again and makes their pages read-only. Several threads, or a signal
/// handler, may fill the slots at once. In the end the slots hold the functions for the mode. If
/// another thread may still be writing when the constructor is done, the pages stay writable.
static STAGE: AtomicU8 = AtomicU8::new(UNPREPARED);
/// The constructor has not run.
const UNPREPARED: u8 = 0;
const PREPARING: u8 = 1;
const PREPARED: u8 = 2;

/// Threads that fill the slots outside the constructor.
static EARLY: AtomicUsize = AtomicUsize::new(0);

/// Fills the slots. The first call of an entry leads here, perhaps before the constructor runs.
#[unsafe(no_mangle)]
extern "C" fn heapwright_bounds_start() {
    EARLY.fetch_add(1, Ordering::SeqCst);
    let stage = STAGE.load(Ordering::SeqCst);
    if stage == UNPREPARED {
        fill_slots(Checks::Writes);
        // If the constructor ran meanwhile, this call may have overwritten the constructor's slots.
        if STAGE.load(Ordering::SeqCst) != UNPREPARED {
            fill_slots(asked_for());
        }
    } else if stage == PREPARING {
        fill_slots(asked_for());
    }
    EARLY.fetch_sub(1, Ordering::SeqCst);
}

fn asked_for() -> Checks {
    match (heap::checks_bounds(), heap::debugging()) {
        (false, _) => Checks::None,
        (true, false) => Checks::Writes,
        (true, true) => Checks::Both,
    }
}

/// The constructor's part: fills the slots for the mode and makes them read-only.
pub(crate) fn prepare() {
    STAGE.store(PREPARING, Ordering::SeqCst);
    fill_slots(asked_for());
    STAGE.store(PREPARED, Ordering::SeqCst);
    // An early thread may still write; later threads see `PREPARED` and do not write.
    if EARLY.load(Ordering::SeqCst) == 0 {
        protect(&SLOTS);
        #[cfg(heapwright_reads)]
        protect(&heapwright_entry_reads::SLOTS);
    }
}

fn protect<T>(slots: &'static T) {
    let (start, length) = (ptr::from_ref(slots).cast_mut(), size_of::<T>());
    // SAFETY: the slots fill whole pages, by their alignment, and no later code writes to them.
    unsafe { libc::mprotect(start.cast(), length, libc::PROT_READ) };
}

fn functions() -> impl Iterator<Item = &'static Function> {
    #[cfg(heapwright_reads)]
    return TABLE.iter().chain(readers::READERS).chain(calls::CALLS);
    #[cfg(not(heapwright_reads))]
    TABLE.iter()
}

/// Returns the name to look up: an older C library has only the older form of a new function. (A
/// failed `dlsym` allocates its error message.)
fn known_name(name: &'static CStr) -> &'static CStr {
    const NEW: &[u8] = b"__isoc23_";
    if !name.to_bytes().starts_with(NEW) || glibc().is_some_and(|minor| minor >= 38) {
        return name;
    }
    // SAFETY: the pointer is inside a string that ends with a zero.
    unsafe { CStr::from_ptr(name.as_ptr().wrapping_add(NEW.len())) }
}

/// Whether to look up a name. Until the constructor runs, skips names that the C library lacks.
fn may_have(name: &CStr) -> bool {
    #[cfg(heapwright_reads)]
    if STAGE.load(Ordering::Relaxed) == UNPREPARED
        && let Some(minor) = glibc()
        && let Ok(name) = name.to_str()
    {
        return !calls::SINCE.iter().any(|(since, names)| *since > minor && names.contains(&name));
    }
    let _ = name;
    true
}

/// Returns the `minor` of glibc 2.`minor`, or `None` if the C library is another one.
#[cold]
pub(crate) fn glibc() -> Option<u32> {
    let version = weak!("gnu_get_libc_version");
    if version.is_null() {
        return None;
    }
    // SAFETY: `gnu_get_libc_version` has this type in glibc.
    let version =
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(version) };
    // SAFETY: the function takes nothing and has no preconditions.
    let version = unsafe { version() };
    // SAFETY: glibc returns a string that is never freed.
    let version = unsafe { CStr::from_ptr(version) }.to_bytes();
    let digits = version
        .strip_prefix(b"2.")
        .unwrap_or_default()
        .iter()
        .map_while(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0')));
    Some(digits.fold(0, |number: u32, digit| number.saturating_mul(10).saturating_add(digit)))
}

/// Stands in for functions that the C library lacks, if a program looks one up at run time. (The
/// result is as wide as `ssize_t`, which some of them return.)
unsafe extern "C" fn missing() -> isize {
    errno::set(libc::ENOSYS);
    -1
}

const fn string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(string) => string,
        Err(_) => panic!("a name with a zero"),
    }
}

/// Looks up the real functions, and stores them and the functions to call in the slots.
fn fill_slots(checks: Checks) {
    let (dlsym, dlerror) = (weak!("dlsym"), weak!("dlerror"));
    if dlsym.is_null() || dlerror.is_null() {
        // (This never happens: each process that can load this library has both functions.)
        return;
    }
    // SAFETY: `dlsym` has this type in POSIX.
    let dlsym = unsafe { transmute::<*mut c_void, Dlsym>(dlsym) };
    let next = |name: &CStr| {
        // SAFETY: `dlsym` takes this handle and any string.
        unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) }
    };
    let before = errno::get();
    own::set(next);
    let mut all = true;
    // The real functions come first. A null means that this C library lacks the function.
    for function in functions() {
        let known = |name: &CStr| if may_have(name) { next(name) } else { ptr::null_mut() };
        let real = function.real.map(|name| known(known_name(name)));
        all &= real.is_none_or(|real| !real.is_null());
        function.slot.real.store(real.unwrap_or(ptr::null_mut()), Ordering::Release);
    }
    for function in functions() {
        let real = function.slot.real.load(Ordering::Relaxed);
        let entry = match checks {
            _ if real.is_null() && function.real.is_some() => missing as *const c_void,
            Checks::None if !real.is_null() => real.cast_const(),
            Checks::None | Checks::Writes if function.writes.is_null() => real.cast_const(),
            Checks::None | Checks::Writes => function.writes,
            Checks::Both => function.both,
        };
        function.slot.entry.store(entry.cast_mut(), Ordering::Release);
    }
    if !all {
        // The program's next `dlerror` must not report a lookup that this library made.
        // SAFETY: `dlerror` has this type in POSIX.
        let dlerror = unsafe { transmute::<*mut c_void, Dlerror>(dlerror) };
        // SAFETY: `dlerror` may be called at any time; its message is not kept.
        unsafe { dlerror() };
    }
    errno::set(before);
}

/// The first look at a call. Returns true if the arguments are surely right; otherwise the checks
/// decide. No method calls a function, so the entries need no frames.
#[derive(Clone, Copy)]
struct Glance<const READS: bool>;

impl<const READS: bool> Glance<READS> {
    #[inline(always)]
    fn writes<T>(self, to: *mut T, bytes: usize) -> bool {
        if READS {
            heap::has_debugged_room(to.addr(), bytes)
        } else {
            heap::has_room(to.addr(), bytes)
        }
    }

    #[inline(always)]
    fn reads<T>(self, from: *const T, bytes: usize) -> bool {
        !READS || heap::has_debugged_room(from.addr(), bytes)
    }

    #[inline(always)]
    fn reads_text<C>(self, from: *const C, _limit: usize) -> bool {
        !READS || heap::is_outside(from.addr())
    }

    #[inline(always)]
    fn copies_text<C>(self, to: *mut C, from: *const C) -> bool {
        heap::is_outside(to.addr()) && self.reads_text(from, usize::MAX)
    }

    #[inline(always)]
    fn appends_text<C>(self, to: *mut C, from: *const C, limit: usize) -> bool {
        heap::is_outside(to.addr()) && self.reads_text(from, limit)
    }

    #[inline(always)]
    fn copies_until<T>(self, to: *mut T, from: *const T, _byte: c_int, n: usize) -> bool {
        self.writes(to, n) && self.reads(from, n)
    }
}

/// The checks of one call of a function, by its name: checks of writes, and with `READS` of reads.
#[derive(Clone, Copy)]
struct Check<'a, const READS: bool> {
    function: &'static str,
    stage: Stage<'a>,
}

impl<const READS: bool> Check<'_, READS> {
    #[inline(always)]
    fn writes<T>(self, to: *mut T, bytes: usize) {
        if bytes > heap::room(to.addr()) {
            self.refuse(Access::Write, to.addr(), bytes);
        }
    }

    #[inline(always)]
    fn reads<T>(self, from: *const T, bytes: usize) {
        if READS && bytes > heap::room(from.addr()) {
            self.refuse(Access::Read, from.addr(), bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(self, access: Access, address: usize, bytes: usize) {
        self.stage.refuse(plain_name(self.function), access, address, bytes);
    }
}

/// The function's name in a program's source: `memcpy` for `__memcpy_chk`.
fn plain_name(name: &'static str) -> &'static str {
    let name = name.strip_prefix("__").unwrap_or(name);
    let name = name.strip_prefix("isoc99_").or(name.strip_prefix("isoc23_")).unwrap_or(name);
    let name = name.strip_suffix("_chk").or(name.strip_suffix("_2")).unwrap_or(name);
    match name {
        "pread64" | "pwrite64" | "getdents64" => name,
        "xstat" | "xstat64" => "stat",
        "lxstat" | "lxstat64" => "lstat",
        "fxstat" | "fxstat64" => "fstat",
        "fxstatat" | "fxstatat64" => "fstatat",
        "xmknod" => "mknod",
        "xmknodat" => "mknodat",
        _ => name.strip_suffix("64").or(name.strip_suffix("64v2")).unwrap_or(name),
    }
}

/// The bytes of `count` objects. If the product overflows, `usize::MAX`: more than any block has.
#[inline(always)]
const fn product(count: usize, size: usize) -> usize {
    count.saturating_mul(size)
}

#[inline(always)]
const fn wide(count: usize) -> usize {
    product(count, size_of::<libc::wchar_t>())
}

/// Returns a count as a `usize`. A negative count becomes 0.
#[inline(always)]
fn counted(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Returns the bytes from an address to the end of its block, or `None` if the heap knows no end.
#[inline(always)]
fn bounded<T>(to: *const T) -> Option<usize> {
    let room = heap::room(to.addr());
    (room != UNBOUNDED).then_some(room)
}
