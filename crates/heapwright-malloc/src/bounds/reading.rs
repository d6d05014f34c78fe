//! What is read up to something, compared, or scattered over parts.
//!
//! ```text
//!   memchr(p, c, n)      up to the first c, at most n: less than n bytes may be there
//!   strcmp(a, b)         both up to where they differ, or end
//!   strtol(s)            the digits, and one character more
//!   writev(f, parts, n)  n parts, and what each one says
//! ```
//!
//! As far as a block goes, its bytes are looked at here before the real function does it once more; only `strlen`, which is
//! asked most, is answered at once: where there is no end in the block, by the block's. Nothing beyond a block's end is
//! looked at.

use super::text::Character;
use super::{Access, Check, Glance, bounded, product};
use core::ffi::c_void;
use heapwright::heap;
use libc::{c_char, c_int, iovec, msghdr, wchar_t};

/// As many parts as the kernel takes.
const MOST_PARTS: usize = 1024;

/// `strlen`.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn length_of<const READS: bool>(
    check: Check<READS>,
    real: unsafe extern "C" fn(*const c_char) -> usize,
    text: *const c_char,
) -> usize {
    if !heap::is_outside(text.addr())
        && let Some(room) = bounded(text)
    {
        // SAFETY: so many bytes of the block are left.
        let length = unsafe { libc::strnlen(text, room) };
        if length == room {
            check.refuse(Access::Read, text.addr(), room + 1);
        }
        return length;
    }
    // SAFETY: as the caller promises.
    unsafe { real(text) }
}

/// Characters at `from` that may be looked at, of `most`; `None`: all of them, for all that the heap knows.
fn fewer_than<C>(from: *const C, most: usize) -> Option<usize> {
    bounded(from).map(|room| room / size_of::<C>()).filter(|&room| room < most)
}

/// The first of `room` characters at `from` for which `is` is true.
///
/// # Safety
///
/// So many characters can be read.
unsafe fn find<C: Character>(from: *const C, room: usize, is: impl Fn(C) -> bool) -> Option<usize> {
    // SAFETY: as the caller promises.
    (0..room).find(|&at| is(unsafe { from.wrapping_add(at).read_unaligned() }))
}

/// Whether a character may be a part of a number, or stand before one, in any base.
fn is_numeric(character: c_char) -> bool {
    let byte = character as u8;
    byte.is_ascii_alphanumeric() || b" \t\n\x0b\x0c\r+-.(_".contains(&byte)
}

impl<const READS: bool> Glance<READS> {
    #[inline(always)]
    pub(super) fn reads_until(self, from: *const c_void, _byte: c_int, n: usize) -> bool {
        self.reads(from, n)
    }

    #[inline(always)]
    pub(super) fn finds<C>(self, from: *const C, _what: C, _n: usize) -> bool {
        self.reads_text(from, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn finds_in_text(self, text: *const c_char, _what: c_int) -> bool {
        self.reads_text(text, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn compares<C>(self, one: *const C, other: *const C, limit: usize) -> bool {
        self.reads_text(one, limit) && self.reads_text(other, limit)
    }

    #[inline(always)]
    pub(super) fn goes_on(self, _text: *mut c_char, _rest: *mut *mut c_char) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn reads_number(self, text: *const c_char) -> bool {
        self.reads_text(text, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn reads_parts(self, _parts: *const iovec, _count: c_int) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn writes_parts(self, _parts: *const iovec, _count: c_int) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn reads_message(self, _message: *const msghdr) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn writes_message(self, _message: *const msghdr) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn writes_line(self, _line: *mut *mut c_char, _size: *mut usize) -> bool {
        false
    }
}

impl<const READS: bool> Check<READS> {
    /// Bytes at `from` will be read up to the first that is `byte`, `n` at most.
    pub(super) fn reads_until(self, from: *const c_void, byte: c_int, n: usize) {
        if let Some(room) = fewer_than(from.cast::<c_char>(), n) {
            // SAFETY: so many bytes of the block are left.
            let found = unsafe { libc::memchr(from, byte, room) };
            if found.is_null() {
                self.refuse(Access::Read, from.addr(), if n == usize::MAX { room + 1 } else { n });
            }
        }
    }

    /// Wide characters at `from` will be read up to the first that is `what`, or to the end of a string where that is no
    /// number of characters, `n` at most.
    pub(super) fn finds(self, from: *const wchar_t, what: wchar_t, n: usize) {
        if let Some(room) = fewer_than(from, n) {
            let is = |character| character == what || n == usize::MAX && character == 0;
            // SAFETY: so many characters of the block are left.
            if unsafe { find(from, room, is) }.is_none() {
                let characters = if n == usize::MAX { room + 1 } else { n };
                self.refuse(Access::Read, from.addr(), product(characters, size_of::<wchar_t>()));
            }
        }
    }

    /// The string at `text` will be read up to the first character that is `what`, or to its end.
    pub(super) fn finds_in_text(self, text: *const c_char, what: c_int) {
        if let Some(room) = bounded(text) {
            let is = |character| character == 0 || character == what as c_char;
            // SAFETY: so many bytes of the block are left.
            if unsafe { find(text, room, is) }.is_none() {
                self.refuse(Access::Read, text.addr(), room + 1);
            }
        }
    }

    /// Two strings will be read up to where they differ in more than their letters' case, or end, or `limit` characters.
    pub(super) fn compares<C: Character + Into<i64>>(
        self,
        one: *const C,
        other: *const C,
        limit: usize,
    ) {
        let rooms = [one, other].map(|text| fewer_than(text, limit).unwrap_or(usize::MAX));
        let room = rooms[0].min(rooms[1]);
        if room == usize::MAX {
            return;
        }
        for at in 0..room {
            let [one, other] = [one, other].map(|text| {
                // SAFETY: so many characters of both are left in their blocks, or are a string's that has not ended.
                unsafe { text.wrapping_add(at).read_unaligned() }
            });
            if one == C::default() || lower(one.into()) != lower(other.into()) {
                return;
            }
        }
        for (text, its) in [(one, rooms[0]), (other, rooms[1])] {
            if its == room {
                self.refuse(Access::Read, text.addr(), product(room + 1, size_of::<C>()));
            }
        }
    }

    /// The string at `text`, or where that is null the one that `rest` leads to, will be read.
    pub(super) fn goes_on(self, text: *mut c_char, rest: *mut *mut c_char) {
        if !text.is_null() {
            return self.reads_text(text.cast_const(), usize::MAX);
        }
        self.reads(rest.cast_const(), size_of::<*mut c_char>());
        if !rest.is_null() {
            // SAFETY: the function reads it next.
            let rest = unsafe { rest.read_unaligned() };
            self.reads_text(rest.cast_const(), usize::MAX);
        }
    }

    /// The number at `text` will be read, and what stands behind it.
    pub(super) fn reads_number(self, text: *const c_char) {
        if let Some(room) = bounded(text) {
            // SAFETY: so many bytes of the block are left.
            if unsafe { find(text, room, |character| !is_numeric(character)) }.is_none() {
                self.refuse(Access::Read, text.addr(), room + 1);
            }
        }
    }

    /// Each of the parts.
    fn each_part(self, parts: *const iovec, count: usize, access: Access) {
        let count = count.min(MOST_PARTS);
        let bytes = product(count, size_of::<iovec>());
        if bytes > heap::room(parts.addr()) {
            return self.refuse(Access::Read, parts.addr(), bytes);
        }
        if parts.is_null() {
            return;
        }
        for at in 0..count {
            // SAFETY: the function reads it next.
            let part = unsafe { parts.wrapping_add(at).read_unaligned() };
            if part.iov_len > heap::room(part.iov_base.addr()) {
                self.refuse(access, part.iov_base.addr(), part.iov_len);
            }
        }
    }

    pub(super) fn reads_parts(self, parts: *const iovec, count: c_int) {
        self.each_part(parts, super::counted(count), Access::Read);
    }

    pub(super) fn writes_parts(self, parts: *const iovec, count: c_int) {
        self.each_part(parts, super::counted(count), Access::Write);
    }

    /// The parts of a message.
    fn each_part_of(self, message: *const msghdr, access: Access) {
        self.reads(message, size_of::<msghdr>());
        if !message.is_null() {
            // SAFETY: the function reads it next.
            let message = unsafe { message.read_unaligned() };
            self.each_part(message.msg_iov, message.msg_iovlen, access);
        }
    }

    pub(super) fn reads_message(self, message: *const msghdr) {
        self.each_part_of(message, Access::Read);
    }

    pub(super) fn writes_message(self, message: *const msghdr) {
        self.each_part_of(message, Access::Write);
    }

    /// A line will be written to `*line`, where there is said to be room for `*size` bytes, or to another block.
    pub(super) fn writes_line(self, line: *mut *mut c_char, size: *mut usize) {
        self.reads(line.cast_const(), size_of::<*mut c_char>());
        self.reads(size.cast_const(), size_of::<usize>());
        if line.is_null() || size.is_null() {
            return;
        }
        // SAFETY: the function reads both next.
        let line = unsafe { line.read_unaligned() };
        if !line.is_null() {
            // SAFETY: the function reads it next, with the line that it is the size of.
            let size = unsafe { size.read_unaligned() };
            // (The function asks for more where no byte is said to be there.)
            self.writes(line, size);
        }
    }
}

/// A character without its case, as far as all locales agree.
fn lower(character: i64) -> i64 {
    u8::try_from(character).map_or(character, |byte| i64::from(byte.to_ascii_lowercase()))
}
