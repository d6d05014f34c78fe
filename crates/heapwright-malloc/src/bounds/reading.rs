//! Functions that read up to an end, or compare.
//!
//! ```text
//!   memchr(p, c, n)      up to the first c, at most n: fewer than n bytes may be there
//!   strcmp(a, b)         both up to where they differ, or end
//!   strcspn(s, set)      up to the first character of the set, or the end
//!   strtol(s)            the digits, and one character more
//! ```
//!
//! The checks read a block's bytes, and the real function reads them again. Only `strlen`, the most
//! frequent function, returns the check's own count, which ends with the block. A check never reads
//! beyond the block. Most checks stop where the function stops. So a program that splits a long
//! text into words takes linear time. Some checks read further. `strstr` without a match reads to
//! the block's end, `strcasestr` and `strtok` to the string's end.

use super::text::{Character, length};
use super::{Access, Check, Glance, bounded, product};
use core::ffi::c_void;
use heapwright::heap;
use libc::{c_char, c_int, wchar_t};

/// `strlen`.
///
/// # Safety
///
/// As the C library's.
pub(super) unsafe fn length_of<const READS: bool>(
    check: Check<'_, READS>,
    real: unsafe extern "C" fn(*const c_char) -> usize,
    text: *const c_char,
) -> usize {
    if !heap::is_outside(text.addr())
        && let Some(room) = bounded(text)
    {
        // SAFETY: the block has `room` bytes from here on.
        let length = unsafe { libc::strnlen(text, room) };
        if length == room {
            check.refuse(Access::Read, text.addr(), room + 1);
        }
        return length;
    }
    // SAFETY: as the caller promises.
    unsafe { real(text) }
}

/// Returns the number of whole characters from `from` to its block's end, if it is below `most`.
/// Otherwise, or if the heap knows no end, returns `None`.
fn fewer_than<C>(from: *const C, most: usize) -> Option<usize> {
    bounded(from).map(|room| room / size_of::<C>()).filter(|&room| room < most)
}

/// The first of `room` characters at `from` for which `is` is true.
///
/// # Safety
///
/// `room` characters can be read.
unsafe fn find<C: Character>(from: *const C, room: usize, is: impl Fn(C) -> bool) -> Option<usize> {
    // SAFETY: as the caller promises.
    (0..room).find(|&at| is(unsafe { from.wrapping_add(at).read_unaligned() }))
}

/// Returns a function that reads one of the `room` bytes that a block has from `text` on.
fn bytes_of(text: *const c_char, room: usize) -> impl Fn(usize) -> Option<u8> {
    move |at| {
        // SAFETY: `at` is inside the block.
        (at < room).then(|| unsafe { text.wrapping_add(at).read() } as u8)
    }
}

/// Returns the place behind the floating-point number with which a text begins, as `strtod` reads
/// it. `byte` gives the text's bytes. Returns `None` if a byte that `strtod` reads is missing.
fn end_of_float(byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let letter = |at| byte(at).map(|byte| byte.to_ascii_lowercase());
    let mut at = 0;
    while is_space(byte(at)?) {
        at += 1;
    }
    at += usize::from(b"+-".contains(&byte(at)?));
    for word in [&b"infinity"[..], b"nan"] {
        let mut same = 0;
        while same < word.len() && letter(at + same)? == word[same] {
            same += 1;
        }
        if same > 0 {
            at += same;
            if word == b"nan" && same == word.len() && byte(at)? == b'(' {
                at += 1;
                while byte(at)?.is_ascii_alphanumeric() || byte(at)? == b'_' {
                    at += 1;
                }
            }
            return Some(at);
        }
    }
    let is_hexadecimal = byte(at)? == b'0' && letter(at + 1)? == b'x';
    at += if is_hexadecimal { 2 } else { 0 };
    let is_digit = |byte: u8| (byte as char).is_digit(if is_hexadecimal { 16 } else { 10 });
    let (mut has_digits, mut has_point) = (false, false);
    while is_digit(byte(at)?) || byte(at)? == b'.' && !has_point {
        has_point |= byte(at)? == b'.';
        has_digits |= is_digit(byte(at)?);
        at += 1;
    }
    if has_digits && letter(at)? == if is_hexadecimal { b'p' } else { b'e' } {
        at += 1;
        at += usize::from(b"+-".contains(&byte(at)?));
        while byte(at)?.is_ascii_digit() {
            at += 1;
        }
    }
    Some(at)
}

fn is_space(byte: u8) -> bool {
    b" \t\n\x0b\x0c\r".contains(&byte)
}

fn characters(set: *const c_char) -> [bool; 256] {
    let mut has = [false; 256];
    for at in 0..length(set, bounded(set).unwrap_or(usize::MAX)) {
        // SAFETY: `at` is before the string's end and its block's, and the function reads there.
        has[unsafe { set.wrapping_add(at).read() } as u8 as usize] = true;
    }
    has
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
    pub(super) fn compares_letters<C>(self, one: *const C, other: *const C, limit: usize) -> bool {
        self.compares(one, other, limit)
    }

    #[inline(always)]
    pub(super) fn finds_text(self, text: *const c_char, what: *const c_char) -> bool {
        self.compares(text, what, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn finds_letters(self, text: *const c_char, what: *const c_char) -> bool {
        self.compares(text, what, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn stops(self, text: *const c_char, set: *const c_char, _at_set: bool) -> bool {
        self.compares(text, set, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn splits(
        self,
        _text: *mut c_char,
        _rest: *mut *mut c_char,
        _set: *const c_char,
        _skips: bool,
    ) -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn reads_integer(self, text: *const c_char, _base: c_int) -> bool {
        self.reads_text(text, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn reads_float(self, text: *const c_char) -> bool {
        self.reads_text(text, usize::MAX)
    }

    #[inline(always)]
    pub(super) fn writes_line(self, _line: *mut *mut c_char, _size: *mut usize) -> bool {
        false
    }
}

impl<const READS: bool> Check<'_, READS> {
    /// The function will read the bytes at `from` up to the first `byte`, or `n` of them.
    pub(super) fn reads_until(self, from: *const c_void, byte: c_int, n: usize) {
        if let Some(room) = fewer_than(from.cast::<c_char>(), n) {
            // SAFETY: the block has `room` bytes from here on.
            let found = unsafe { libc::memchr(from, byte, room) };
            if found.is_null() {
                self.refuse(Access::Read, from.addr(), if n == usize::MAX { room + 1 } else { n });
            }
        }
    }

    /// The function will read the wide characters at `from` up to the first `what`, or `n` of them.
    /// An `n` of `usize::MAX` means a string, which also ends at a zero.
    pub(super) fn finds(self, from: *const wchar_t, what: wchar_t, n: usize) {
        if let Some(room) = fewer_than(from, n) {
            let is = |character| character == what || n == usize::MAX && character == 0;
            // SAFETY: the block has `room` characters from here on.
            if unsafe { find(from, room, is) }.is_none() {
                let characters = if n == usize::MAX { room + 1 } else { n };
                self.refuse(Access::Read, from.addr(), product(characters, size_of::<wchar_t>()));
            }
        }
    }

    /// The function will read the string at `text` up to the first `what`, or to its end.
    pub(super) fn finds_in_text(self, text: *const c_char, what: c_int) {
        if let Some(room) = bounded(text) {
            let is = |character| character == 0 || character == what as c_char;
            // SAFETY: the block has `room` bytes from here on.
            if unsafe { find(text, room, is) }.is_none() {
                self.refuse(Access::Read, text.addr(), room + 1);
            }
        }
    }

    /// The function will read two strings up to their difference, their end, or `limit` characters.
    pub(super) fn compares<C: Character + Into<i64>>(
        self,
        one: *const C,
        other: *const C,
        limit: usize,
    ) {
        self.compares_as(one, other, limit, |character| character);
    }

    /// As [`compares`](Self::compares), without regard to case.
    pub(super) fn compares_letters<C: Character + Into<i64>>(
        self,
        one: *const C,
        other: *const C,
        limit: usize,
    ) {
        self.compares_as(one, other, limit, lower);
    }

    fn compares_as<C: Character + Into<i64>>(
        self,
        one: *const C,
        other: *const C,
        limit: usize,
        as_: impl Fn(i64) -> i64,
    ) {
        let rooms = [one, other].map(|text| fewer_than(text, limit).unwrap_or(usize::MAX));
        let room = rooms[0].min(rooms[1]);
        if room == usize::MAX {
            return;
        }
        for at in 0..room {
            let [one, other] = [one, other].map(|text| {
                // SAFETY: both blocks have `room` characters; a string without a known block has
                // not ended before this character.
                unsafe { text.wrapping_add(at).read_unaligned() }
            });
            if one == C::default() || as_(one.into()) != as_(other.into()) {
                return;
            }
        }
        for (text, its) in [(one, rooms[0]), (other, rooms[1])] {
            if its == room {
                self.refuse(Access::Read, text.addr(), product(room + 1, size_of::<C>()));
            }
        }
    }

    /// The function will read the string at `text` up to the first `what` in it, or to its end.
    pub(super) fn finds_text(self, text: *const c_char, what: *const c_char) {
        self.reads_text(what, usize::MAX);
        if let Some(room) = bounded(text) {
            let bytes = length(what, bounded(what).unwrap_or(usize::MAX));
            // SAFETY: the block has `room` bytes from here on, and the other string has `bytes`.
            let found = unsafe { libc::memmem(text.cast(), room, what.cast(), bytes) };
            if found.is_null() {
                self.ends_within(text, room);
            }
        }
    }

    /// As [`finds_text`](Self::finds_text), without regard to case. (If the text ends in the last
    /// bytes of its block, nothing else is checked.)
    pub(super) fn finds_letters(self, text: *const c_char, what: *const c_char) {
        const NEAR: usize = 64;
        self.reads_text(what, usize::MAX);
        if let Some(room) = bounded(text) {
            let far = room.saturating_sub(NEAR);
            if length(text.wrapping_add(far), room - far) == room - far {
                self.ends_within(text, room);
            }
        }
    }

    /// The function will read the string at `text` to its end. The block has `room` bytes of it.
    fn ends_within(self, text: *const c_char, room: usize) {
        if length(text, room) == room {
            self.refuse(Access::Read, text.addr(), room + 1);
        }
    }

    /// The function will read the string at `text` to its end, or up to a first character. With
    /// `at_set` this character is the first in the set, otherwise the first that is not in the set.
    pub(super) fn stops(self, text: *const c_char, set: *const c_char, at_set: bool) {
        self.reads_text(set, usize::MAX);
        if let Some(room) = bounded(text) {
            let has = characters(set);
            self.reads_while(text, room, |byte| byte != 0 && has[byte as usize] != at_set);
        }
    }

    /// The function will read `text` up to the first character for which `goes_on` is false. The
    /// block has `room` characters. Returns the number of characters before this character.
    fn reads_while(self, text: *const c_char, room: usize, goes_on: impl Fn(u8) -> bool) -> usize {
        // SAFETY: the block has `room` bytes from here on.
        let stop = unsafe { find(text, room, |character: c_char| !goes_on(character as u8)) };
        if stop.is_none() {
            self.refuse(Access::Read, text.addr(), room + 1);
        }
        stop.unwrap_or(room)
    }

    /// The function will read the first part of the string at `text`, or at `*rest` if `text` is
    /// null. A character of the set ends the part. If the function `skips`, it first passes the
    /// characters of the set with which the string begins.
    pub(super) fn splits(
        self,
        text: *mut c_char,
        rest: *mut *mut c_char,
        set: *const c_char,
        skips: bool,
    ) {
        self.reads_text(set, usize::MAX);
        let mut from = text.cast_const();
        if from.is_null() {
            self.reads(rest.cast_const(), size_of::<*mut c_char>());
            if rest.is_null() {
                return;
            }
            // SAFETY: the function reads the pointer next.
            from = unsafe { rest.read_unaligned() }.cast_const();
        }
        if let Some(room) = bounded(from) {
            let has = characters(set);
            let is_in = |byte: u8| byte != 0 && has[byte as usize];
            let skipped = if skips { self.reads_while(from, room, is_in) } else { 0 };
            if skips && skipped == room {
                return;
            }
            let is_part = |byte: u8| byte != 0 && !has[byte as usize];
            self.reads_while(from.wrapping_add(skipped), room - skipped, is_part);
        }
    }

    /// The function will read the number at `text`, and the character behind it. A base of 0 means
    /// that a prefix of the number decides.
    pub(super) fn reads_integer(self, text: *const c_char, base: c_int) {
        let Some(room) = bounded(text) else { return };
        let byte = bytes_of(text, room);
        let mut at = 0;
        while byte(at).is_some_and(is_space) {
            at += 1;
        }
        at += usize::from(byte(at).is_some_and(|sign| b"+-".contains(&sign)));
        let prefix = |letter: u8| {
            byte(at) == Some(b'0')
                && byte(at + 1).is_some_and(|byte| byte.eq_ignore_ascii_case(&letter))
        };
        let (digits, skipped) = match base {
            0 | 16 if prefix(b'x') => (16, 2),
            0 | 2 if prefix(b'b') => (2, 2),
            0 => (10, 0),
            base => (base.unsigned_abs().min(36), 0),
        };
        at += skipped;
        while byte(at).is_some_and(|byte| (byte as char).is_digit(digits.max(2))) {
            at += 1;
        }
        if at >= room {
            self.refuse(Access::Read, text.addr(), room + 1);
        }
    }

    /// The function will read the floating-point number at `text`, and the character behind it.
    pub(super) fn reads_float(self, text: *const c_char) {
        if let Some(room) = bounded(text)
            && end_of_float(bytes_of(text, room)).is_none()
        {
            self.refuse(Access::Read, text.addr(), room + 1);
        }
    }

    /// The function will write a line to `*line`, or to another block. The program states that
    /// `*line` has room for `*size` bytes.
    pub(super) fn writes_line(self, line: *mut *mut c_char, size: *mut usize) {
        self.reads(line.cast_const(), size_of::<*mut c_char>());
        self.reads(size.cast_const(), size_of::<usize>());
        if line.is_null() || size.is_null() {
            return;
        }
        // SAFETY: the function reads both words next.
        let line = unsafe { line.read_unaligned() };
        if !line.is_null() {
            // SAFETY: the function reads the line's size next.
            let size = unsafe { size.read_unaligned() };
            // (With a size of 0 the function makes a larger block.)
            self.writes(line, size);
        }
    }
}

/// A letter of ASCII in lower case. Other characters stay unchanged, because locales differ there.
fn lower(character: i64) -> i64 {
    u8::try_from(character).map_or(character, |byte| i64::from(byte.to_ascii_lowercase()))
}
