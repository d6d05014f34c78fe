//! The common parts of debug records, traces and heap dumps: a header, and frames behind it.
//!
//! ```text
//! +---------+-----------+---------+-------+-------+- - -
//! | magic 8 | version 4 | flags 4 | frame | frame |          (little endian)
//! +---------+-----------+---------+-------+-------+- - -
//!
//! a frame (not padded: it may begin at any byte)
//! +-------+----------+----------------+------------+
//! | tag 4 | length 4 | length bytes   | checksum 4 |   CRC-32C of all before it
//! +-------+----------+----------------+------------+
//!   BEFORE             payload          BEHIND
//! ```
//!
//! Each format defines its tags and payloads. Nothing here panics or indexes: programs that are in
//! trouble write, and the reader may get any bytes.

use crate::checksum::checksum;
use crate::problem::{Fault, Format, Problem};

pub(crate) const HEADER_BYTES: usize = 16;

/// Bytes before the payload of a frame. A frame is a chunk of a trace, an entry of a debug record,
/// or many entries of a heap dump.
pub const BEFORE: usize = 8;
/// Bytes behind the payload.
pub const BEHIND: usize = 4;

/// The flags that a reader must know to understand the file.
const BINDING_FLAGS: u32 = 0xffff_0000;

pub(crate) const fn header(magic: [u8; 8], version: u32) -> [u8; HEADER_BYTES] {
    let [a, b, c, d, e, f, g, h] = magic;
    let [i, j, k, l] = version.to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0]
}

/// Returns the version of a readable file, and the bytes behind its header.
pub(crate) fn behind_header<'a>(
    bytes: &'a [u8],
    format: &'static Format,
) -> Result<(u32, &'a [u8]), Problem> {
    let refused = |fault| format.problem(fault);
    let (magic, (oldest, newest)) = (&format.magic, format.versions);
    let known = bytes.len().min(magic.len());
    if bytes.get(..known) != magic.get(..known) {
        return Err(refused(Fault::Other));
    }
    let header = bytes.split_first_chunk::<HEADER_BYTES>();
    let (header, rest) = header.ok_or_else(|| refused(Fault::Short))?;
    let [.., a, b, c, d, e, f, g, h] = *header;
    let version = u32::from_le_bytes([a, b, c, d]);
    if !(oldest..=newest).contains(&version) {
        return Err(refused(Fault::Version(version)));
    }
    let flags = u32::from_le_bytes([e, f, g, h]);
    if flags & BINDING_FLAGS != 0 {
        return Err(refused(Fault::Flags(flags)));
    }
    Ok((version, rest))
}

/// Makes a frame of the `payload` bytes behind the first [`BEFORE`]. Returns `None` without room.
pub(crate) fn seal(buffer: &mut [u8], tag: u32, payload: usize) -> Option<&[u8]> {
    fn put(buffer: &mut [u8], at: usize, word: u32) -> Option<()> {
        buffer.get_mut(at..)?.first_chunk_mut().map(|place| *place = word.to_le_bytes())
    }
    let end = BEFORE.checked_add(payload)?;
    put(buffer, 0, tag)?;
    put(buffer, 4, u32::try_from(payload).ok()?)?;
    let sum = checksum(buffer.get(..end)?);
    put(buffer, end, sum)?;
    buffer.get(..end + BEHIND)
}

pub(crate) struct Frame<'a> {
    pub(crate) tag: u32,
    pub(crate) payload: &'a [u8],
    pub(crate) rest: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Takes a frame with a right checksum, at byte `at` of the file.
    pub(crate) fn take(
        bytes: &'a [u8],
        at: u64,
        checksum: fn(&[u8]) -> u32,
    ) -> Result<Self, Fault> {
        let cut = Fault::EndsWithin(at);
        let (tag, behind) = bytes.split_first_chunk().ok_or(cut)?;
        let (length, _) = behind.split_first_chunk().ok_or(cut)?;
        let whole = BEFORE.checked_add(u32::from_le_bytes(*length) as usize).ok_or(cut)?;
        let (summed, rest) = bytes.split_at_checked(whole).ok_or(cut)?;
        let (sum, rest) = rest.split_first_chunk::<BEHIND>().ok_or(cut)?;
        if u32::from_le_bytes(*sum) != checksum(summed) {
            return Err(Fault::Checksum(at));
        }
        let payload = summed.get(BEFORE..).unwrap_or_default();
        Ok(Self { tag: u32::from_le_bytes(*tag), payload, rest })
    }
}
