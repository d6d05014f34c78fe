//! The two functions of a C library that the compiler itself calls, byte by byte. The accesses are
//! volatile: otherwise the compiler would replace the loops by calls of these functions.

/// # Safety
///
/// As for C's `memcpy`: both ranges are valid and do not overlap.
// SAFETY: no other function of this program has the name, and this function has the effect of C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    for at in 0..length {
        // SAFETY: below the length, so inside the range.
        let source = unsafe { from.add(at) };
        // SAFETY: below the length, so inside the range.
        let place = unsafe { to.add(at) };
        // SAFETY: inside the range, which the caller may read.
        let byte = unsafe { source.read_volatile() };
        // SAFETY: inside the range, which the caller may write.
        unsafe { place.write_volatile(byte) };
    }
    to
}

/// # Safety
///
/// As for C's `memset`: the range is valid.
// SAFETY: no other function of this program has the name, and this function has the effect of C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    for at in 0..length {
        // SAFETY: below the length, so inside the range.
        let place = unsafe { to.add(at) };
        // SAFETY: inside the range, which the caller may write.
        unsafe { place.write_volatile(value as u8) };
    }
    to
}
