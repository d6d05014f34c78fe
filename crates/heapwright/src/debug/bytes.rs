//! Bytes that must not change: the canary around a block, and the fill of a freed block.
//!
//! ```text
//!   | lead ..... | block ............. | slack | next block ....
//!     PATTERN      PATTERN once freed    PATTERN
//! ```
//!
//! All bytes have one value, so one pass verifies a bucket whose blocks are all freed. The place of
//! a changed byte tells the mistake: inside the block a write after free, behind it an overflow,
//! and before it an underflow.
//!
//! A word of this value is an address that no processor accepts. The lowest bit is clear, because a
//! bitmap that is one bit too long sets that bit first.

pub(crate) const PATTERN: u8 = 0xda;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Bytes from the start of the checked range to the first changed byte.
    pub(crate) first: usize,
    /// Bytes from the first to the last changed byte, inclusive.
    pub(crate) length: usize,
    /// The present value of the first changed byte.
    pub(crate) value: u8,
}

/// Fills `[at, at + size)` with the pattern.
///
/// # Safety
///
/// The caller may write to the bytes.
#[inline]
pub(crate) unsafe fn fill(at: *mut u8, size: usize) {
    // SAFETY: the caller may write to the bytes.
    unsafe { at.write_bytes(PATTERN, size) };
}

/// Compares `[at, at + size)` with the pattern. Returns `None` if no byte is changed. The program
/// may write meanwhile. So [`damage`] reads the bytes again before this reports a change.
///
/// # Safety
///
/// The bytes can be read.
#[inline]
pub(crate) unsafe fn check(at: *const u8, size: usize) -> Option<Damage> {
    let pattern = u64::from_ne_bytes([PATTERN; 8]);
    let mut done = 0;
    let mut wrong = 0;
    while done + 32 <= size {
        for word in 0..4 {
            // SAFETY: the word is in the range, which can be read.
            wrong |= unsafe { read(at.wrapping_add(done + word * 8)) } ^ pattern;
        }
        done += 32;
    }
    while done + 8 <= size {
        // SAFETY: eight bytes of the range, which can be read.
        wrong |= unsafe { read(at.wrapping_add(done)) } ^ pattern;
        done += 8;
    }
    while done < size {
        // SAFETY: a byte of the range, which can be read.
        wrong |= u64::from(unsafe { at.wrapping_add(done).read_volatile() } ^ PATTERN);
        done += 1;
    }
    // SAFETY: the range can be read, as the caller promises.
    if wrong == 0 { None } else { unsafe { damage(at, size) } }
}

/// Returns whether the last `size` bytes before `end`, 1 to 16, hold the pattern.
///
/// # Safety
///
/// The sixteen bytes before `end` can be read.
#[inline(always)]
pub(crate) unsafe fn ends_well(end: *const u8, size: usize) -> bool {
    let pattern = u64::from_ne_bytes([PATTERN; 8]);
    // SAFETY: the eight bytes before `end` can be read.
    let last = u64::from_le(unsafe { read(end.wrapping_sub(8)) } ^ pattern);
    if size <= 8 {
        return last >> (64 - 8 * size) == 0;
    }
    // SAFETY: the sixteen bytes before `end` can be read.
    let first = u64::from_le(unsafe { read(end.wrapping_sub(16)) } ^ pattern);
    last | first >> (128 - 8 * size) == 0
}

/// Reads plainly, although the program may write meanwhile, because atomic or volatile reads would
/// not be vectorised. Each word is read once, and decides only whether [`damage`] looks.
///
/// # Safety
///
/// Eight bytes can be read.
#[inline(always)]
unsafe fn read(at: *const u8) -> u64 {
    // SAFETY: eight bytes can be read, aligned or not, and any value is valid.
    unsafe { at.cast::<u64>().read_unaligned() }
}

/// # Safety
///
/// As [`check`].
#[cold]
unsafe fn damage(at: *const u8, size: usize) -> Option<Damage> {
    // SAFETY: the byte is in the range, which the caller may read.
    let byte = |i: usize| unsafe { at.wrapping_add(i).read_volatile() };
    // Another thread may have restored the bytes meanwhile.
    let first = (0..size).find(|&i| byte(i) != PATTERN)?;
    let last = (first..size).rev().find(|&i| byte(i) != PATTERN).unwrap_or(first);
    Some(Damage { first, length: last - first + 1, value: byte(first) })
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn a_changed_byte_before_an_end_is_seen() {
        for size in 1..=16 {
            for changed in 0..24 {
                let mut bytes = [PATTERN; 24];
                bytes[changed] ^= 1;
                let end = bytes.as_ptr_range().end;
                // SAFETY: 24 bytes are before the end.
                assert_eq!(unsafe { ends_well(end, size) }, changed < 24 - size);
            }
        }
    }

    #[test]
    fn every_changed_byte_is_found() {
        for size in (0..100).step_by(if cfg!(miri) { 13 } else { 1 }) {
            let mut bytes = [PATTERN; 128];
            let at = bytes.as_mut_ptr().wrapping_add(3);
            // SAFETY: within the array.
            assert_eq!(unsafe { check(at, size) }, None);
            for changed in 0..size {
                // SAFETY: a byte of the array, which only this test uses.
                unsafe { at.wrapping_add(changed).write(7) };
                let expected = Damage { first: changed, length: 1, value: 7 };
                // SAFETY: the array's bytes, from its start.
                assert_eq!(unsafe { check(at, size) }, Some(expected));
                // SAFETY: a byte of the array, which gets its pattern back.
                unsafe { fill(at.wrapping_add(changed), 1) };
            }
        }
    }
}
