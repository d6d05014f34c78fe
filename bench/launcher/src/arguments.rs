//! Reads the arguments where the kernel put them, without a copy.

use core::ffi::{c_char, c_int};

/// A null-terminated array of strings, as `exec` expects it.
pub(crate) type Strings = *const *const c_char;

pub(crate) struct Arguments {
    pub(crate) report: c_int,
    /// The program's time in milliseconds; 0 for no limit.
    pub(crate) limit_ms: u64,
    pub(crate) parent: c_int,
    pub(crate) program: Strings,
    pub(crate) environment: Strings,
}

impl Arguments {
    /// # Safety
    ///
    /// `stack` is the initial stack of a process: a count, as many pointers to strings, a null,
    /// more pointers, a null.
    pub(crate) unsafe fn new(stack: *const usize) -> Option<Self> {
        const BEFORE_PROGRAM: usize = 4;
        // SAFETY: the initial stack begins with the count.
        let count = unsafe { stack.read() };
        if count <= BEFORE_PROGRAM {
            return None;
        }
        // SAFETY: the pointers begin behind the count.
        let strings: Strings = unsafe { stack.add(1) }.cast();
        let number = |at: usize| {
            // SAFETY: callers pass only numbers below the count.
            let place = unsafe { strings.add(at) };
            // SAFETY: the place is in the array.
            let text = unsafe { place.read() };
            // SAFETY: the kernel's strings end in NUL.
            unsafe { decimal(text) }
        };
        Some(Self {
            report: c_int::try_from(number(1)?).ok()?,
            limit_ms: number(2)?,
            parent: c_int::try_from(number(3)?).ok()?,
            // SAFETY: the count is larger than this.
            program: unsafe { strings.add(BEFORE_PROGRAM) },
            // SAFETY: the environment begins behind the null that ends the
            // arguments.
            environment: unsafe { strings.add(count + 1) },
        })
    }
}

/// # Safety
///
/// `text` points to a string that ends in NUL.
unsafe fn decimal(mut text: *const c_char) -> Option<u64> {
    let mut value: u64 = 0;
    let mut digits = 0;
    loop {
        // SAFETY: the pointer has not passed the string's end.
        let byte = unsafe { text.cast::<u8>().read() };
        match byte {
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                digits += 1;
            }
            0 if digits > 0 => return Some(value),
            _ => return None,
        }
        // SAFETY: the byte was not the NUL at the end.
        text = unsafe { text.add(1) };
    }
}
