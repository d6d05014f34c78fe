//! The first table: one line for each function of the C library that writes.
//!
//! ```text
//!   memcpy(to: To, from: From, n: usize) -> To { writes(to, n), reads(from, n) }
//!     |      |                             |       |
//!     |      the C library's arguments     |       checks, in order; then the real function
//!     the C library's name                 its result
//!
//!   sprintf as vsprintf(...) -> ... { instead print::sprintf }
//!              |                              |
//!              the real function's name       called instead, with the real function to use
//! ```
//!
//! `as nothing` means that no real function is needed. A function that some C libraries lack must
//! not be looked up, because a failed `dlsym` allocates its error message. The lookup can happen
//! in a program's own `malloc`, which calls `read` or `readlink` with its lock held.
//!
//! A check is a method of [`Check`]: `writes` and `reads` for ranges of known length, others (as in
//! `text`) for strings. A function may write less than its limit (`read`, `fgets`, `getcwd`). Then
//! the limit is checked, as in the C library's own `__*_chk` forms; in `mode=debug` the result is
//! checked (`kernel`).
//!
//! A new function is a line here, a name in heapwright-entry, and a number in heapwright-record.

use super::{Check, Filled, Function, Glance, Room, Stage, counted, print, product, text, wide};
use core::cell::Cell;
use core::mem::transmute;
use core::sync::atomic::Ordering;
use heapwright_entry::SLOTS;
use libc::{FILE, c_char, c_int, c_void, off_t, off64_t, sockaddr, socklen_t, ssize_t, wchar_t};

pub(super) type To = *mut c_void;
pub(super) type From = *const c_void;
pub(super) type Text = *mut c_char;
pub(super) type ConstText = *const c_char;
pub(super) type Wide = *mut wchar_t;
pub(super) type ConstWide = *const wchar_t;
/// A `va_list` as an argument: on both processors a pointer to its contents.
pub(super) type List = *mut c_void;

functions! { TABLE:
    // Bytes.
    memcpy(to: To, from: From, n: usize) -> To { writes(to, n), reads(from, n) }
    memmove(to: To, from: From, n: usize) -> To { writes(to, n), reads(from, n) }
    mempcpy(to: To, from: From, n: usize) -> To { writes(to, n), reads(from, n) }
    __mempcpy(to: To, from: From, n: usize) -> To { writes(to, n), reads(from, n) }
    memset(to: To, byte: c_int, n: usize) -> To { writes(to, n) }
    memccpy(to: To, from: From, byte: c_int, n: usize) -> To { copies_until(to, from, byte, n) }
    bcopy(from: From, to: To, n: usize) -> () { writes(to, n), reads(from, n) }
    bzero(to: To, n: usize) -> () { writes(to, n) }
    __bzero(to: To, n: usize) -> () { writes(to, n) }
    explicit_bzero(to: To, n: usize) -> () { writes(to, n) }

    // Strings.
    strcpy(to: Text, from: ConstText) -> Text { copies_text(to, from) }
    stpcpy(to: Text, from: ConstText) -> Text { copies_text(to, from) }
    __stpcpy(to: Text, from: ConstText) -> Text { copies_text(to, from) }
    strcat(to: Text, from: ConstText) -> Text { appends_text(to, from, usize::MAX) }
    strncat(to: Text, from: ConstText, n: usize) -> Text { appends_text(to, from, n) }
    strncpy(to: Text, from: ConstText, n: usize) -> Text { writes(to, n), reads_text(from, n) }
    stpncpy(to: Text, from: ConstText, n: usize) -> Text { writes(to, n), reads_text(from, n) }
    __stpncpy(to: Text, from: ConstText, n: usize) -> Text { writes(to, n), reads_text(from, n) }
    strlcpy as nothing(to: Text, from: ConstText, n: usize) -> usize { instead text::copy_within }
    strlcat as nothing(to: Text, from: ConstText, n: usize) -> usize { instead text::append_within }

    // Wide characters.
    wmemcpy(to: Wide, from: ConstWide, n: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    wmemmove(to: Wide, from: ConstWide, n: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    wmempcpy(to: Wide, from: ConstWide, n: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    wmemset(to: Wide, character: wchar_t, n: usize) -> Wide { writes(to, wide(n)) }
    wcscpy(to: Wide, from: ConstWide) -> Wide { copies_text(to, from) }
    wcpcpy(to: Wide, from: ConstWide) -> Wide { copies_text(to, from) }
    wcscat(to: Wide, from: ConstWide) -> Wide { appends_text(to, from, usize::MAX) }
    wcsncat(to: Wide, from: ConstWide, n: usize) -> Wide { appends_text(to, from, n) }
    wcsncpy(to: Wide, from: ConstWide, n: usize) -> Wide { writes(to, wide(n)), reads_text(from, n) }
    wcpncpy(to: Wide, from: ConstWide, n: usize) -> Wide { writes(to, wide(n)), reads_text(from, n) }

    // Text that is made.
    vsprintf(to: Text, format: ConstText, list: List) -> c_int { instead print::sprintf }
    sprintf as vsprintf(to: Text, format: ConstText, list: List) -> c_int { instead print::sprintf }
    vsnprintf(to: Text, n: usize, format: ConstText, list: List) -> c_int { instead print::snprintf }
    snprintf as vsnprintf(to: Text, n: usize, format: ConstText, list: List) -> c_int { instead print::snprintf }
    vswprintf(to: Wide, n: usize, format: ConstWide, list: List) -> c_int { writes(to, wide(n)) }
    swprintf as vswprintf(to: Wide, n: usize, format: ConstWide, list: List) -> c_int { writes(to, wide(n)) }

    // Files and sockets.
    read(file: c_int, to: To, n: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    pread(file: c_int, to: To, n: usize, at: off_t) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    pread64(file: c_int, to: To, n: usize, at: off64_t) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    recv(file: c_int, to: To, n: usize, flags: c_int) -> ssize_t { receives(to, n, file, flags) }
    recvfrom(file: c_int, to: To, n: usize, flags: c_int, who: *mut sockaddr, length: *mut socklen_t) -> ssize_t { receives(to, n, file, flags), fills_peer(who, length) }
    fread(to: To, size: usize, count: usize, file: *mut FILE) -> usize { fills_up_to(to, product(size, count), Filled::Items(size)) }
    fread_unlocked(to: To, size: usize, count: usize, file: *mut FILE) -> usize { fills_up_to(to, product(size, count), Filled::Items(size)) }
    fgets(to: Text, n: c_int, file: *mut FILE) -> Text { fills_up_to(to, counted(n), Filled::Text) }
    fgets_unlocked(to: Text, n: c_int, file: *mut FILE) -> Text { fills_up_to(to, counted(n), Filled::Text) }
    fgetws(to: Wide, n: c_int, file: *mut FILE) -> Wide { fills_up_to(to, wide(counted(n)), Filled::Wide) }
    gets(to: Text) -> Text { instead print::gets }
    readlink(path: ConstText, to: Text, n: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes), names(path) }
    readlinkat(folder: c_int, path: ConstText, to: Text, n: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes), names(path) }
    getcwd(to: Text, n: usize) -> Text { fills_up_to(to, n, Filled::Text) }

    // The same, for objects whose size the compiler knew (`_FORTIFY_SOURCE`).
    __memcpy_chk(to: To, from: From, n: usize, limit: usize) -> To { writes(to, n), reads(from, n) }
    __memmove_chk(to: To, from: From, n: usize, limit: usize) -> To { writes(to, n), reads(from, n) }
    __mempcpy_chk(to: To, from: From, n: usize, limit: usize) -> To { writes(to, n), reads(from, n) }
    __memset_chk(to: To, byte: c_int, n: usize, limit: usize) -> To { writes(to, n) }
    __explicit_bzero_chk(to: To, n: usize, limit: usize) -> () { writes(to, n) }
    __strcpy_chk(to: Text, from: ConstText, limit: usize) -> Text { copies_text(to, from) }
    __stpcpy_chk(to: Text, from: ConstText, limit: usize) -> Text { copies_text(to, from) }
    __strcat_chk(to: Text, from: ConstText, limit: usize) -> Text { appends_text(to, from, usize::MAX) }
    __strncat_chk(to: Text, from: ConstText, n: usize, limit: usize) -> Text { appends_text(to, from, n) }
    __strncpy_chk(to: Text, from: ConstText, n: usize, limit: usize) -> Text { writes(to, n), reads_text(from, n) }
    __stpncpy_chk(to: Text, from: ConstText, n: usize, limit: usize) -> Text { writes(to, n), reads_text(from, n) }
    __strlcpy_chk as nothing(to: Text, from: ConstText, n: usize, limit: usize) -> usize { instead text::copy_within_chk }
    __strlcat_chk as nothing(to: Text, from: ConstText, n: usize, limit: usize) -> usize { instead text::append_within_chk }
    __wmemcpy_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    __wmemmove_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    __wmempcpy_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { writes(to, wide(n)), reads(from, wide(n)) }
    __wmemset_chk(to: Wide, character: wchar_t, n: usize, limit: usize) -> Wide { writes(to, wide(n)) }
    __wcscpy_chk(to: Wide, from: ConstWide, limit: usize) -> Wide { copies_text(to, from) }
    __wcpcpy_chk(to: Wide, from: ConstWide, limit: usize) -> Wide { copies_text(to, from) }
    __wcscat_chk(to: Wide, from: ConstWide, limit: usize) -> Wide { appends_text(to, from, usize::MAX) }
    __wcsncat_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { appends_text(to, from, n) }
    __wcsncpy_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { writes(to, wide(n)), reads_text(from, n) }
    __wcpncpy_chk(to: Wide, from: ConstWide, n: usize, limit: usize) -> Wide { writes(to, wide(n)), reads_text(from, n) }
    __vsprintf_chk(to: Text, flag: c_int, limit: usize, format: ConstText, list: List) -> c_int { instead print::sprintf_chk }
    __sprintf_chk as __vsprintf_chk(to: Text, flag: c_int, limit: usize, format: ConstText, list: List) -> c_int { instead print::sprintf_chk }
    __vsnprintf_chk(to: Text, n: usize, flag: c_int, limit: usize, format: ConstText, list: List) -> c_int { instead print::snprintf_chk }
    __snprintf_chk as __vsnprintf_chk(to: Text, n: usize, flag: c_int, limit: usize, format: ConstText, list: List) -> c_int { instead print::snprintf_chk }
    __vswprintf_chk(to: Wide, n: usize, flag: c_int, limit: usize, format: ConstWide, list: List) -> c_int { writes(to, wide(n)) }
    __swprintf_chk as __vswprintf_chk(to: Wide, n: usize, flag: c_int, limit: usize, format: ConstWide, list: List) -> c_int { writes(to, wide(n)) }
    __read_chk(file: c_int, to: To, n: usize, limit: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    __pread_chk(file: c_int, to: To, n: usize, at: off_t, limit: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    __pread64_chk(file: c_int, to: To, n: usize, at: off64_t, limit: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    __recv_chk(file: c_int, to: To, n: usize, limit: usize, flags: c_int) -> ssize_t { receives(to, n, file, flags) }
    __recvfrom_chk(file: c_int, to: To, n: usize, limit: usize, flags: c_int, who: *mut sockaddr, length: *mut socklen_t) -> ssize_t { receives(to, n, file, flags), fills_peer(who, length) }
    __fread_chk(to: To, limit: usize, size: usize, count: usize, file: *mut FILE) -> usize { fills_up_to(to, product(size, count), Filled::Items(size)) }
    __fread_unlocked_chk(to: To, limit: usize, size: usize, count: usize, file: *mut FILE) -> usize { fills_up_to(to, product(size, count), Filled::Items(size)) }
    __fgets_chk(to: Text, limit: usize, n: c_int, file: *mut FILE) -> Text { fills_up_to(to, counted(n), Filled::Text) }
    __fgets_unlocked_chk(to: Text, limit: usize, n: c_int, file: *mut FILE) -> Text { fills_up_to(to, counted(n), Filled::Text) }
    __fgetws_chk(to: Wide, limit: usize, n: c_int, file: *mut FILE) -> Wide { fills_up_to(to, wide(counted(n)), Filled::Wide) }
    __gets_chk(to: Text, limit: usize) -> Text { instead print::gets_chk }
    __readlink_chk(path: ConstText, to: Text, n: usize, limit: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes), names(path) }
    __readlinkat_chk(folder: c_int, path: ConstText, to: Text, n: usize, limit: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes), names(path) }
    __getcwd_chk(to: Text, n: usize, limit: usize) -> Text { fills_up_to(to, n, Filled::Text) }
}
