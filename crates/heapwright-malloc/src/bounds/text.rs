//! Strings: the checks read the source, up to the destination's room, to learn how much will be
//! written. If a string does not fit, the checks read it to its end, to report its length.
//!
//! Plain and wide strings share the checks.
//!
//! `strlcpy` and `strlcat` are implemented here, because older C libraries lack them.

use super::{Access, Check, SLOTS, bounded};
use crate::weak::weak;
use core::mem::transmute;
use core::sync::atomic::Ordering;
use libc::{c_char, c_int, c_void, size_t, wchar_t};

unsafe extern "C" {
    fn wcsnlen(text: *const wchar_t, most: size_t) -> size_t;
}

pub(super) trait Character: Copy + PartialEq + Default {
    /// Characters before the string's end, at most `most`.
    ///
    /// # Safety
    ///
    /// `text` is a string, or `most` characters can be read.
    unsafe fn length(text: *const Self, most: usize) -> usize;
}

impl Character for c_char {
    unsafe fn length(text: *const Self, most: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe { libc::strnlen(text, most) }
    }
}

impl Character for wchar_t {
    unsafe fn length(text: *const Self, most: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe { wcsnlen(text, most) }
    }
}

fn most<C>(from: *const C) -> usize {
    (usize::MAX - from.addr()) / size_of::<C>()
}

/// Characters of a string, `limit` at most.
#[inline(always)]
pub(super) fn length<C: Character>(from: *const C, limit: usize) -> usize {
    // SAFETY: the program passes the string to a function that reads its end or `limit` characters.
    unsafe { C::length(from, limit.min(most(from))) }
}

impl<const READS: bool> Check<'_, READS> {
    /// The function will read the string at `from` to its end, or `limit` characters.
    #[inline(always)]
    pub(super) fn reads_text<C: Character>(self, from: *const C, limit: usize) {
        if READS && let Some(room) = bounded(from) {
            let room = room / size_of::<C>();
            if room < limit && length(from, room) == room {
                self.refuse(Access::Read, from.addr(), (room + 1) * size_of::<C>());
            }
        }
    }

    /// The function will write the string at `from`, with its end, to `to`.
    #[inline(always)]
    pub(super) fn copies_text<C: Character>(self, to: *mut C, from: *const C) {
        self.reads_text(from, usize::MAX);
        if let Some(room) = bounded(to) {
            self.fits(to, room / size_of::<C>(), from, usize::MAX);
        }
    }

    /// The function will write at most `limit` characters of the string at `from`, and an end,
    /// behind the string at `to`.
    #[inline(always)]
    pub(super) fn appends_text<C: Character>(self, to: *mut C, from: *const C, limit: usize) {
        self.reads_text(from, limit);
        if let Some(room) = bounded(to) {
            let room = room / size_of::<C>();
            let before = length(to, room);
            if before == room {
                // The string has no end in its block. The function would append behind the block.
                let more = length(from, limit) + 1;
                self.refuse(Access::Write, to.addr(), (room + more) * size_of::<C>());
            } else {
                self.fits(to.wrapping_add(before), room - before, from, limit);
            }
        }
    }

    /// Reports a string that does not fit in `room` characters with its end.
    #[inline(never)]
    fn fits<C: Character>(self, to: *mut C, room: usize, from: *const C, limit: usize) {
        if length(from, limit.min(room)) == room {
            let whole = length(from, limit) + 1;
            self.refuse(Access::Write, to.addr(), whole * size_of::<C>());
        }
    }

    /// The function will write bytes from `from` to `to`, up to the first `byte`, or `n` of them.
    #[inline(always)]
    pub(super) fn copies_until(self, to: *mut c_void, from: *const c_void, byte: c_int, n: usize) {
        let until = |most: usize| {
            // SAFETY: the function reads the bytes up to `byte` or `n`, and `memchr` no further.
            let found = unsafe { libc::memchr(from, byte, most) };
            if found.is_null() { None } else { Some(found.addr() - from.addr() + 1) }
        };
        if READS
            && let Some(room) = bounded(from)
            && room < n
            && until(room).is_none()
        {
            self.refuse(Access::Read, from.addr(), room + 1);
        }
        if let Some(room) = bounded(to)
            && room < n
            && until(room).is_none()
        {
            self.refuse(Access::Write, to.addr(), until(n).unwrap_or(n));
        }
    }
}

/// # Safety
///
/// As `memcpy`.
unsafe fn copy(to: *mut c_char, from: *const c_char, bytes: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let real = SLOTS.own.memmove.load(Ordering::Relaxed);
    // SAFETY: the slot holds a `memmove`, the C library's or heapwright-entry's.
    let real = unsafe { transmute::<*mut c_void, Copy>(real) };
    // SAFETY: as the caller promises.
    unsafe { real(to.cast(), from.cast(), bytes) };
}

/// Writes as much of `from` to `to` as fits in `n` characters with an end.
///
/// # Safety
///
/// As `strlcpy`.
unsafe fn write_within<const READS: bool>(
    check: Check<'_, READS>,
    to: *mut c_char,
    from: *const c_char,
    length: usize,
    n: usize,
) {
    if n > 0 {
        let bytes = length.min(n - 1);
        check.writes(to, bytes + 1);
        // SAFETY: the source has `length` characters, the destination room for `n`.
        unsafe { copy(to, from, bytes) };
        // SAFETY: `bytes` is below `n`, so the destination has room for the end.
        unsafe { to.wrapping_add(bytes).write(0) };
    }
}

/// `strlcpy`.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn copy_within<const READS: bool, R>(
    check: Check<'_, READS>,
    _: R,
    to: *mut c_char,
    from: *const c_char,
    n: usize,
) -> usize {
    check.reads_text(from, usize::MAX);
    let whole = length(from, usize::MAX);
    // SAFETY: as the caller promises.
    unsafe { write_within(check, to, from, whole, n) };
    whole
}

/// `strlcat`.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn append_within<const READS: bool, R>(
    check: Check<'_, READS>,
    _: R,
    to: *mut c_char,
    from: *const c_char,
    n: usize,
) -> usize {
    check.reads_text(from, usize::MAX);
    let whole = length(from, usize::MAX);
    let room = bounded(to).unwrap_or(usize::MAX);
    let before = length(to, n.min(room));
    if before == room && room < n {
        // The string has no end in its block. The function would append behind the block.
        check.refuse(Access::Write, to.addr(), room.saturating_add(whole + 1).min(n));
    }
    // SAFETY: the destination has room for `n` characters, of which `before` stay.
    unsafe { write_within(check, to.wrapping_add(before), from, whole, n - before) };
    before + whole
}

/// `__strlcpy_chk`, of glibc 2.38 and later.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn copy_within_chk<const READS: bool, R>(
    check: Check<'_, READS>,
    real: R,
    to: *mut c_char,
    from: *const c_char,
    n: usize,
    limit: usize,
) -> usize {
    keep_within(n, limit);
    // SAFETY: as the caller promises.
    unsafe { copy_within(check, real, to, from, n) }
}

/// `__strlcat_chk`, of glibc 2.38 and later.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn append_within_chk<const READS: bool, R>(
    check: Check<'_, READS>,
    real: R,
    to: *mut c_char,
    from: *const c_char,
    n: usize,
    limit: usize,
) -> usize {
    keep_within(n, limit);
    // SAFETY: as the caller promises.
    unsafe { append_within(check, real, to, from, n) }
}

/// Ends the process, as the C library does, if `n` is more than the compiler's limit.
fn keep_within(n: usize, limit: usize) {
    if n <= limit {
        return;
    }
    let fail = weak!("__chk_fail");
    if !fail.is_null() {
        // SAFETY: `__chk_fail` has this type in glibc.
        let fail = unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> !>(fail) };
        // SAFETY: no preconditions.
        unsafe { fail() }
    }
    // SAFETY: no preconditions.
    unsafe { libc::abort() }
}
