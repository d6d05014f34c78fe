//! `*printf` to memory, and `gets`: the length of a text is known only after it was written.
//!
//! So the real function with a limit gets the block's room as its limit. It writes as much as fits,
//! and returns the full length. Nothing is written out of bounds. A program may state more room than
//! the block has, if the text fits. (The C library does not return the full length of wide
//! characters. So for these the stated room is checked.)

use super::format::Arguments;
use super::{Access, Check, SLOTS, bounded};
use crate::errno;
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::Ordering;
use libc::{FILE, c_char, c_int, c_void, size_t};

/// Bytes of a text that is formatted aside.
const ASIDE: usize = 1024;
/// The longest text that `*printf` makes.
const MOST: usize = c_int::MAX as usize;

type Sprintf = unsafe extern "C" fn(*mut c_char, *const c_char, *mut c_void) -> c_int;
type Snprintf = unsafe extern "C" fn(*mut c_char, size_t, *const c_char, *mut c_void) -> c_int;
type SprintfChk =
    unsafe extern "C" fn(*mut c_char, c_int, size_t, *const c_char, *mut c_void) -> c_int;
type SnprintfChk =
    unsafe extern "C" fn(*mut c_char, size_t, c_int, size_t, *const c_char, *mut c_void) -> c_int;
type Gets = unsafe extern "C" fn(*mut c_char) -> *mut c_char;
type GetsChk = unsafe extern "C" fn(*mut c_char, size_t) -> *mut c_char;
type Fgets = unsafe extern "C" fn(*mut c_char, c_int, *mut FILE) -> *mut c_char;

unsafe extern "C" {
    static stdin: *mut FILE;
}

fn real_vsnprintf() -> Snprintf {
    let real = SLOTS.vsnprintf.real.load(Ordering::Relaxed);
    // SAFETY: the slot holds the C library's function of that name, which has this type.
    unsafe { transmute::<*mut c_void, Snprintf>(real) }
}

fn real_vsnprintf_chk() -> SnprintfChk {
    let real = SLOTS.__vsnprintf_chk.real.load(Ordering::Relaxed);
    // SAFETY: the slot holds the C library's function of that name, which has this type.
    unsafe { transmute::<*mut c_void, SnprintfChk>(real) }
}

impl<const READS: bool> Check<'_, READS> {
    /// Reports a text of `length` characters and an end, cut to `n`, that exceeds the `room`.
    fn printed(self, to: *mut c_char, room: usize, length: c_int, n: usize) {
        if let Ok(length) = usize::try_from(length)
            && (length + 1).min(n) > room
        {
            self.refuse(Access::Write, to.addr(), (length + 1).min(n));
        }
    }
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn sprintf<const READS: bool>(
    check: Check<'_, READS>,
    real: Sprintf,
    to: *mut c_char,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    check.formats(format, list);
    let Some(room) = bounded(to) else {
        // SAFETY: as the caller promises.
        return unsafe { real(to, format, list) };
    };
    // SAFETY: the block has `room` bytes.
    if room > 0 && unsafe { to.read() } != 0 {
        // SAFETY: the block has `room` bytes; the rest is as the caller promises.
        if let Some(length) = unsafe { print_aside(to, room, format, list) } {
            return length;
        }
    }
    // SAFETY: the block has `room` bytes; the rest is as the caller promises.
    let length = unsafe { real_vsnprintf()(to, room.min(MOST), format, list) };
    check.printed(to, room, length, usize::MAX);
    length
}

/// Formats a short text aside, and then copies it. Programs print a text into itself, and glibc's
/// `vsprintf` does not clear the first byte before it formats. (`vsnprintf` does.) `None`: the text
/// is too long for that.
///
/// # Safety
///
/// As `vsprintf`'s; `to` has `room` bytes.
#[inline(never)]
unsafe fn print_aside(
    to: *mut c_char,
    room: usize,
    format: *const c_char,
    list: *mut c_void,
) -> Option<c_int> {
    let errno = errno::get();
    let mut text = [MaybeUninit::<c_char>::uninit(); ASIDE];
    let most = room.min(ASIDE);
    // SAFETY: the list is a `va_list`. The copy is read instead of the list.
    let mut copy = unsafe { list.cast::<Arguments>().read() };
    let copy = (&raw mut copy).cast();
    // SAFETY: the text has `most` bytes; the rest is as the caller promises.
    let length = unsafe { real_vsnprintf()(text.as_mut_ptr().cast(), most, format, copy) };
    let bytes = usize::try_from(length).ok().filter(|&bytes| bytes < most);
    let Some(bytes) = bytes else {
        // The text is formatted again, and may name errno.
        errno::set(errno);
        return None;
    };
    // SAFETY: the text has so many bytes and an end, and `to` has room for them.
    unsafe { to.copy_from_nonoverlapping(text.as_ptr().cast(), bytes + 1) };
    Some(length)
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn snprintf<const READS: bool>(
    check: Check<'_, READS>,
    real: Snprintf,
    to: *mut c_char,
    n: size_t,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    check.formats(format, list);
    let Some(room) = bounded(to).filter(|&room| room < n) else {
        // SAFETY: as the caller promises.
        return unsafe { real(to, n, format, list) };
    };
    // SAFETY: the block has `room` bytes; the rest is as the caller promises.
    let length = unsafe { real(to, room.min(MOST), format, list) };
    check.printed(to, room, length, n);
    length
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn sprintf_chk<const READS: bool>(
    check: Check<'_, READS>,
    real: SprintfChk,
    to: *mut c_char,
    flag: c_int,
    limit: size_t,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    check.formats(format, list);
    let Some(room) = bounded(to).filter(|&room| room < limit) else {
        // SAFETY: as the caller promises.
        return unsafe { real(to, flag, limit, format, list) };
    };
    // SAFETY: the block has `room` bytes; the rest is as the caller promises.
    let length = unsafe { real_vsnprintf_chk()(to, room.min(MOST), flag, limit, format, list) };
    check.printed(to, room, length, usize::MAX);
    length
}

/// # Safety
///
/// As the C library's.
#[allow(clippy::too_many_arguments, reason = "the C library's, and what is done with them")]
pub(super) unsafe fn snprintf_chk<const READS: bool>(
    check: Check<'_, READS>,
    real: SnprintfChk,
    to: *mut c_char,
    n: size_t,
    flag: c_int,
    limit: size_t,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    check.formats(format, list);
    // (The C library refuses an `n` above the compiler's limit.)
    let Some(room) = bounded(to).filter(|&room| room < n && n <= limit) else {
        // SAFETY: as the caller promises.
        return unsafe { real(to, n, flag, limit, format, list) };
    };
    // SAFETY: the block has `room` bytes; the rest is as the caller promises.
    let length = unsafe { real(to, room.min(MOST), flag, limit, format, list) };
    check.printed(to, room, length, n);
    length
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn gets<const READS: bool>(
    check: Check<'_, READS>,
    real: Gets,
    to: *mut c_char,
) -> *mut c_char {
    match bounded(to) {
        // SAFETY: the block has `room` bytes from here on.
        Some(room) => unsafe { gets_within(check, to, room) },
        // SAFETY: as the caller promises.
        None => unsafe { real(to) },
    }
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn gets_chk<const READS: bool>(
    check: Check<'_, READS>,
    real: GetsChk,
    to: *mut c_char,
    limit: size_t,
) -> *mut c_char {
    match bounded(to).filter(|&room| room < limit) {
        // SAFETY: the block has `room` bytes from here on.
        Some(room) => unsafe { gets_within(check, to, room) },
        // SAFETY: as the caller promises.
        None => unsafe { real(to, limit) },
    }
}

/// Reads a line of standard input, without its end of line, into at most `room` bytes.
///
/// # Safety
///
/// `room` bytes at `to` can be written.
unsafe fn gets_within<const READS: bool>(
    check: Check<'_, READS>,
    to: *mut c_char,
    room: usize,
) -> *mut c_char {
    if room == 0 {
        check.refuse(Access::Write, to.addr(), 1);
        return core::ptr::null_mut();
    }
    let fgets = SLOTS.fgets.real.load(Ordering::Relaxed);
    // SAFETY: the slot holds the C library's function of that name, which has this type.
    let fgets = unsafe { transmute::<*mut c_void, Fgets>(fgets) };
    // SAFETY: the C library sets `stdin` before any program runs.
    let file = unsafe { stdin };
    // SAFETY: `to` has `room` bytes, as the caller promises.
    if unsafe { fgets(to, room.min(MOST) as c_int, file) }.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: `fgets` wrote a string.
    let length = unsafe { libc::strlen(to) };
    let last = to.wrapping_add(length.wrapping_sub(1));
    // SAFETY: the string has a character, so `last` is its last one.
    if length > 0 && unsafe { last.read() } == b'\n' as c_char {
        // SAFETY: `last` is inside the string that `fgets` wrote.
        unsafe { last.write(0) };
    } else if length + 1 == room {
        // The memory is full, so the line must end here.
        // SAFETY: `file` is the C library's open stream.
        let next = unsafe { libc::fgetc(file) };
        if next != libc::EOF && next != c_int::from(b'\n') {
            check.refuse(Access::Write, to.addr(), room + 1);
        }
    }
    to
}
