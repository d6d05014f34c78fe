//! The two functions of a C library that the compiler itself calls, to copy and
//! to fill structures. A byte at a time: the structures are small.
//!
//! The accesses are volatile, or the compiler would recognise the loops and
//! turn them into calls of these very functions.

/// Copies `length` bytes.
///
/// # Safety
///
/// As C's: both ranges are valid and do not overlap.
// SAFETY: nothing else in this program has the name, and it does what C's does.
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

/// Fills `length` bytes.
///
/// # Safety
///
/// As C's: the range is valid.
// SAFETY: nothing else in this program has the name, and it does what C's does.
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
