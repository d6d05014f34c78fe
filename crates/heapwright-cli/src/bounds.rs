//! Bounds of input files: how far a file may expand, and how much of an endless file is read.
//!
//! ```text
//! compressed files       most(bytes of the file); beyond that an error, with the reason
//! texts of a person      LONGEST_TEXT
//! files without length   LONGEST_STREAM    pipes, devices
//! ```
//!
//! A few kilobytes of gzip or zstd can stand for gigabytes. Traces, dumps and debug information
//! shrink to a twentieth at best. A file that expands further is refused; its owner can unpack it.
//!
//! Called by `trace`, `heap`, `symbols`, `report` and `bench`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

const FREE: u64 = 16 << 20;
/// A file may expand to this multiple of its length.
const RATIO: u64 = 32;
const LONGEST_TEXT: u64 = 16 << 20;
/// The most bytes that are read from a pipe or a device. These bytes are kept in memory.
pub(crate) const LONGEST_STREAM: u64 = 256 << 20;

/// Returns the bytes to which a file of `length` bytes may expand.
pub(crate) const fn most(length: u64) -> u64 {
    let times = length.saturating_mul(RATIO);
    if times > FREE { times } else { FREE }
}

pub(crate) fn too_much(most: u64) -> String {
    format!("gives more than {} MiB", most >> 20)
}

/// A reader of at most `most` bytes. More bytes are an error of the kind `FileTooLarge`.
pub(crate) struct Bounded<R> {
    of: R,
    most: u64,
    left: u64,
}

impl<R> Bounded<R> {
    pub(crate) fn new(of: R, most: u64) -> Self {
        Self { of, most, left: most }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            let ends = self.of.read(&mut [0])? == 0;
            let why = || too_much(self.most) + "; only a plain file may be longer";
            let more = || io::Error::new(ErrorKind::FileTooLarge, why());
            return if ends { Ok(0) } else { Err(more()) };
        }
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.of.read(&mut buffer[..room])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Reads a file that a person has written, or a pipe with such a text.
pub(crate) fn text(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let why = format!("it is longer than {} MiB", LONGEST_TEXT >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_as_long_as_it_may_be_and_no_longer() {
        for (length, most) in [(0, 0), (10, 10), (10, 11), (1 << 20, 1 << 21)] {
            let mut all = Vec::new();
            let read = Bounded::new(io::repeat(7).take(length), most).read_to_end(&mut all);
            assert_eq!((read.ok(), all.len() as u64), (Some(length as usize), length));
        }
        let mut all = Vec::new();
        let error = Bounded::new(io::repeat(7), 1000).read_to_end(&mut all).expect_err("endless");
        assert_eq!((error.kind(), all.len()), (ErrorKind::FileTooLarge, 1000));
        assert_eq!((most(0), most(1 << 20), most(u64::MAX)), (FREE, 32 << 20, u64::MAX));
        assert!(
            text(Path::new("/dev/zero"))
                .is_err_and(|error| error.kind() == ErrorKind::FileTooLarge)
        );
    }
}
