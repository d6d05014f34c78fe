//! Shared parts of the formats' tests: print a file byte by byte, and cut or change a file. A test
//! passes its frames, and a function that reads a file and returns how many of the frames it found.

extern crate std;

use crate::frame::HEADER_BYTES;
use core::fmt::Debug;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

/// Every byte; fewer under Miri, which is slow.
const STEP: usize = if cfg!(miri) { 31 } else { 1 };

pub(crate) struct Seen<P> {
    /// The number of frames that were read. They equal the written ones, from the first on.
    pub(crate) frames: usize,
    pub(crate) problem: Option<P>,
    pub(crate) position: u64,
}

/// Returns a header and frames, each as lines of 32 bytes.
pub(crate) fn hex<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hex = String::new();
    for part in parts {
        for line in part.chunks(32) {
            line.iter().for_each(|byte| hex += &format!("{byte:02x}"));
            hex += "\n";
        }
        hex += "\n";
    }
    hex
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Returns a frame with this payload, valid or not.
pub(crate) fn frame_of(tag: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [tag.to_le_bytes(), (payload.len() as u32).to_le_bytes()].concat();
    bytes.extend_from_slice(payload);
    let sum = crate::checksum::checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Headers of later versions: binding flags and another version are refused, other flags are
/// ignored.
pub(crate) fn newer<P: Debug + PartialEq>(
    mut header: [u8; HEADER_BYTES],
    refused: impl Fn(&[u8]) -> Option<P>,
    flags: impl Fn(u32) -> P,
    version: impl Fn(u32) -> P,
) {
    header[12] = 1;
    assert_eq!(refused(&header), None);
    header[12] = 0;
    header[15] = 1;
    assert_eq!(refused(&header), Some(flags(1 << 24)));
    header[8] += 1;
    assert_eq!(refused(&header), Some(version(header[8].into())));
}

/// Cuts a file at any byte: the reader reads the whole frames before the cut.
pub(crate) fn cut<P: Debug + PartialEq>(
    header: &[u8],
    frames: &[Vec<u8>],
    read: impl Fn(&[u8]) -> Result<Seen<P>, P>,
    short: &P,
    ends_within: impl Fn(u64) -> P,
) {
    let bytes = [header, &frames.concat()].concat();
    let mut ends = vec![HEADER_BYTES];
    for frame in frames {
        ends.push(ends.last().unwrap() + frame.len());
    }
    for cut in (0..bytes.len()).step_by(STEP) {
        let seen = match read(&bytes[..cut]) {
            Ok(seen) => seen,
            Err(problem) => {
                assert_eq!(&problem, short, "{cut}");
                assert!(cut < HEADER_BYTES);
                continue;
            }
        };
        let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
        assert_eq!(seen.frames, whole, "{cut}");
        let problem = (cut != ends[whole]).then(|| ends_within(ends[whole] as u64));
        assert_eq!(seen.problem, problem, "{cut}");
        assert_eq!(seen.position, ends[whole] as u64);
    }
}

/// Changes any byte of a file: the reader notices the change, or the change is harmless.
pub(crate) fn change<P>(
    header: &[u8],
    frames: &[Vec<u8>],
    read: impl Fn(&[u8]) -> Result<Seen<P>, P>,
) {
    let original = [header, &frames.concat()].concat();
    let changes: &[u8] = if cfg!(miri) { &[0x81] } else { &[1, 2, 4, 8, 16, 32, 64, 128, 255] };
    for at in (0..original.len()).step_by(STEP) {
        for change in changes {
            let mut bytes = original.clone();
            bytes[at] ^= change;
            let Ok(seen) = read(&bytes) else {
                assert!(at < HEADER_BYTES);
                continue;
            };
            let unharmed = seen.frames == frames.len();
            assert!(seen.problem.is_some() || unharmed, "byte {at} ^ {change:#x}");
            // Only the flags that a reader may ignore are harmless.
            assert!(!unharmed || (12..14).contains(&at), "byte {at} ^ {change:#x}");
        }
    }
}
