//! Reads a dump's file from beginning to end, in pieces.
//!
//! The file may be compressed (gzip). Reading ends at the first bytes that cannot be unpacked.

use crate::bounds::{self, Bounded};
use anyhow::ensure;
use flate2::read::MultiGzDecoder;
use heapwright_record::Problem;
use heapwright_record::heap::{Entry, HEADER_BYTES, Reader};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::path::Path;

const PIECE: usize = 1 << 20;

/// The limit of a frame's bytes; writers of this format stay far below.
const LONGEST_FRAME: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) problem: Option<Problem>,
    /// Whether the dump's end was read.
    pub(super) whole: bool,
    /// The number of frames that only a newer version knows.
    pub(super) skipped: u64,
}

/// Reads a dump and passes every entry to `each`.
pub(super) fn read(path: &Path, mut each: impl FnMut(Entry<'_>)) -> anyhow::Result<Reading> {
    let metadata = fs::metadata(path)?;
    ensure!(!metadata.is_dir(), "it is a folder");
    ensure!(metadata.is_file(), "it is not a file");
    let mut source = Source::open(path)?;
    let mut buffer = Vec::new();
    let mut ended = source.fill(&mut buffer, PIECE)?;
    let mut reader = Reader::new(buffer.get(..HEADER_BYTES).unwrap_or(&buffer))?.go_on(&[]);
    buffer.drain(..HEADER_BYTES);
    loop {
        let before = reader.position();
        let mut piece = reader.go_on(&buffer);
        piece.by_ref().for_each(&mut each);
        reader = piece.go_on(&[]);
        let problem = piece.problem();
        let is_cut = problem.is_some_and(|problem| problem.is_cut());
        let goes_on = !ended && buffer.len() < LONGEST_FRAME && (is_cut || problem.is_none());
        let used = (reader.position() - before) as usize;
        if !goes_on {
            let whole = piece.is_whole();
            return Ok(Reading { problem, whole, skipped: piece.skipped() });
        }
        buffer.drain(..used);
        let room = if used == 0 { buffer.len() * 2 } else { PIECE };
        ended = source.fill(&mut buffer, room.max(PIECE))?;
    }
}

enum Source {
    Plain(File),
    Packed(Box<Bounded<MultiGzDecoder<BufReader<File>>>>),
}

impl Source {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut magic = Vec::new();
        file.by_ref().take(2).read_to_end(&mut magic)?;
        file.rewind()?;
        Ok(if magic == b"\x1f\x8b" {
            let most = bounds::most(file.metadata()?.len());
            Self::Packed(Box::new(Bounded::new(MultiGzDecoder::new(BufReader::new(file)), most)))
        } else {
            Self::Plain(file)
        })
    }

    /// Fills the buffer up to a length. Returns whether the file ended.
    fn fill(&mut self, buffer: &mut Vec<u8>, length: usize) -> io::Result<bool> {
        let wanted = length.saturating_sub(buffer.len());
        let before = buffer.len();
        let result = match self {
            Self::Plain(file) => file.take(wanted as u64).read_to_end(buffer),
            // The bytes before the damage are kept.
            Self::Packed(packed) => match packed.take(wanted as u64).read_to_end(buffer) {
                Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(error),
                result => result.or(Ok(buffer.len() - before)),
            },
        };
        Ok(result? < wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use heapwright_record::heap::{Heap, Object, Writer};
    use std::io::Write;

    fn long() -> Vec<u8> {
        let (mut buffer, mut bytes) = (vec![0; 5000], Vec::new());
        let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        });
        writer.start(&Heap::default(), "fine", &[]);
        for number in 1..300_000_u64 {
            // Addresses far apart, so that each entry takes many bytes.
            let address = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            writer.object(&Object { address, ..Object::default() });
        }
        assert!(writer.end());
        assert!(bytes.len() > 2 * PIECE);
        bytes
    }

    #[test]
    fn a_dump_that_expands_beyond_measure_is_refused() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let path = scratch.path().join("bomb");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&vec![0; 17 << 20]).expect("packed");
        fs::write(&path, packed.finish().expect("packed")).expect("written");
        let mut source = Source::open(&path).expect("there");
        let mut buffer = Vec::new();
        assert_eq!(source.fill(&mut buffer, PIECE).ok(), Some(false));
        let error = source.fill(&mut buffer, 18 << 20).expect_err("is refused");
        assert_eq!((error.kind(), buffer.len()), (ErrorKind::FileTooLarge, 16 << 20));
    }

    #[test]
    fn a_file_of_many_pieces_is_read_to_its_end() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let path = scratch.path().join("dump");
        let bytes = long();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&bytes).expect("packed");
        let packed = packed.finish().expect("packed");
        let cut = bytes.len() - 1;
        let frames = |read: &Reading| (read.problem.is_some(), read.whole);
        for (content, expected) in [
            (&bytes[..], (false, true)),
            (&bytes[..cut], (true, false)),
            (&packed, (false, true)),
            (&packed[..packed.len() / 2], (true, false)),
        ] {
            fs::write(&path, content).expect("written");
            let mut objects = 0;
            let read = read(&path, |entry| objects += u32::from(matches!(entry, Entry::Object(_))))
                .expect("is a dump");
            assert_eq!(frames(&read), expected, "{}", content.len());
            assert!(
                objects > 100_000 && (objects == 299_999) == (content.len() != packed.len() / 2)
            );
        }
    }
}
