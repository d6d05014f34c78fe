//! The reads of `*printf`: its format, and the strings that the format names.
//!
//! ```text
//!   "%-8s %.*s %Lf"     %[flags][width][.precision][length]conversion
//!     a copy of the list advances by a word (integer, pointer) or a vector register (float)
//! ```
//!
//! A precision bounds a string, which then needs no end. The check stops silently at arguments by
//! position and at conversions that a program registered: they leave the rest of the list unknown.

use super::Check;
use core::ffi::c_void;
use libc::{c_char, c_int, wchar_t};

/// The fields of a `va_list` on x86-64.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    words_used: u32,
    vectors_used: u32,
    stack: *const u8,
    saved: *const u8,
}

#[cfg(target_arch = "x86_64")]
impl Arguments {
    const WORDS: u32 = 48;
    const VECTORS: u32 = 48 + 8 * 16;

    /// The address of the next integer or pointer.
    pub(super) fn word(&mut self) -> *const u8 {
        if self.words_used < Self::WORDS {
            self.words_used += 8;
            return self.saved.wrapping_add(self.words_used as usize - 8);
        }
        self.on_stack(8)
    }

    /// Skips a `double`.
    fn skip_number(&mut self) {
        if self.vectors_used < Self::VECTORS {
            self.vectors_used += 16;
        } else {
            self.on_stack(8);
        }
    }

    /// Skips a `long double`.
    fn skip_long_number(&mut self) {
        self.stack = self.stack.map_addr(|at| at.next_multiple_of(16));
        self.on_stack(16);
    }

    fn on_stack(&mut self, bytes: usize) -> *const u8 {
        let at = self.stack;
        self.stack = at.wrapping_add(bytes);
        at
    }
}

#[cfg(target_arch = "aarch64")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    stack: *const u8,
    words_end: *const u8,
    vectors_end: *const u8,
    words_left: i32,
    vectors_left: i32,
}

#[cfg(target_arch = "aarch64")]
impl Arguments {
    pub(super) fn word(&mut self) -> *const u8 {
        if self.words_left < 0 {
            self.words_left += 8;
            return self.words_end.wrapping_offset(self.words_left as isize - 8);
        }
        self.on_stack(8)
    }

    fn skip_number(&mut self) {
        if self.vectors_left < 0 {
            self.vectors_left += 16;
        } else {
            self.on_stack(8);
        }
    }

    /// Skips a `long double`, which takes a vector register, too.
    fn skip_long_number(&mut self) {
        if self.vectors_left < 0 {
            self.vectors_left += 16;
        } else {
            self.stack = self.stack.map_addr(|at| at.next_multiple_of(16));
            self.on_stack(16);
        }
    }

    fn on_stack(&mut self, bytes: usize) -> *const u8 {
        let at = self.stack;
        self.stack = at.wrapping_add(bytes);
        at
    }
}

/// The part of a format that is not read yet.
struct Format(*const c_char);

impl Format {
    /// The next character; 0 at the end.
    fn peek(&self) -> u8 {
        // SAFETY: the format is a string, and no caller skips past its end.
        unsafe { self.0.read() as u8 }
    }

    fn skip(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }

    fn skip_all(&mut self, of: &[u8]) {
        while self.peek() != 0 && of.contains(&self.peek()) {
            self.skip();
        }
    }

    /// The number at this place of the format, if there is one. A `*` stands for an argument.
    ///
    /// # Safety
    ///
    /// The arguments are for the format.
    unsafe fn number(&mut self, arguments: &mut Arguments) -> Option<i64> {
        if self.peek() == b'*' {
            self.skip();
            // SAFETY: a `*` in the format means that the next argument is an int.
            return Some(i64::from(unsafe { arguments.word().cast::<c_int>().read() }));
        }
        let mut number = None;
        while self.peek().is_ascii_digit() {
            let digit = i64::from(self.peek() - b'0');
            number = Some((number.unwrap_or(0) * 10 + digit).min(i64::from(c_int::MAX)));
            self.skip();
        }
        number
    }
}

#[cfg(heapwright_reads)]
impl<const READS: bool> super::Glance<READS> {
    #[inline(always)]
    pub(super) fn formats(self, _format: *const c_char, _list: *mut c_void) -> bool {
        !READS
    }
}

impl<const READS: bool> Check<'_, READS> {
    /// The function will read the format, and the strings among its arguments. (The list must match
    /// the format for the real function, too.)
    #[inline(always)]
    pub(super) fn formats(self, format: *const c_char, list: *mut c_void) {
        if READS {
            self.reads_text(format, usize::MAX);
            self.reads_strings(format, list);
        }
    }

    #[inline(never)]
    fn reads_strings(self, format: *const c_char, list: *mut c_void) {
        if format.is_null() {
            return;
        }
        // SAFETY: the list is a `va_list`; the real function gets the original, not this copy.
        let mut arguments = unsafe { list.cast::<Arguments>().read() };
        let mut format = Format(format);
        loop {
            while !matches!(format.peek(), 0 | b'%') {
                format.skip();
            }
            if format.peek() == 0 {
                return;
            }
            format.skip();
            format.skip_all(b"-+ #0'I");
            // SAFETY: the list is for the format.
            let _width = unsafe { format.number(&mut arguments) };
            let mut precision = None;
            if format.peek() == b'.' {
                format.skip();
                // SAFETY: the list is for the format.
                precision = Some(unsafe { format.number(&mut arguments) }.unwrap_or(0));
            }
            let (mut is_long, mut is_longer) = (false, false);
            while let length @ (b'h' | b'l' | b'q' | b'L' | b'j' | b'z' | b'Z' | b't') =
                format.peek()
            {
                is_long |= length == b'l';
                is_longer |= length == b'L';
                format.skip();
            }
            match format.peek() {
                b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b'p' | b'n' => {
                    arguments.word();
                }
                b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' if is_longer => {
                    arguments.skip_long_number();
                }
                b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => arguments.skip_number(),
                b'm' | b'%' => {}
                conversion @ (b's' | b'S') => {
                    // SAFETY: a `%s` in the format means that the next argument is a pointer.
                    let text = unsafe { arguments.word().cast::<*const c_char>().read() };
                    // A negative precision counts as none.
                    let most = precision
                        .map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
                    if !is_long && conversion == b's' {
                        self.reads_text(text, most);
                    } else if most == usize::MAX {
                        // (A precision would count bytes of the converted text.)
                        self.reads_text(text.cast::<wchar_t>(), usize::MAX);
                    }
                }
                _ => return,
            }
            format.skip();
        }
    }
}
