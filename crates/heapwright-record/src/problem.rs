//! A fault of a file: one type for debug records, traces, heap dumps and time lines.
//!
//! ```text
//!   Problem = Format (the expected kind of file, in words) + Fault (the error and its place)
//! ```
//!
//! A fault names the byte at which the damaged frame begins.

use core::fmt;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) magic: [u8; 8],
    /// The oldest and the newest readable version.
    pub(crate) versions: (u32, u32),
    pub(crate) name: &'static str,
    /// The name of a frame, with its article.
    pub(crate) a_frame: &'static str,
    /// The name of a frame, without an article.
    pub(crate) frame: &'static str,
    /// The name of the parts of a frame.
    pub(crate) parts: &'static str,
}

impl Format {
    pub(crate) const fn problem(&'static self, fault: Fault) -> Problem {
        Problem { format: self, fault }
    }
}

/// A fault of a debug record, a trace, a heap dump or a time line.
///
/// Its text is one line that names the kind of file.
///
/// ```
/// use heapwright_record::{Fault, trace};
///
/// let problem = trace::Reader::new(b"1: malloc 0x10 3").err().unwrap();
/// assert_eq!(problem.fault(), Fault::Other);
/// assert_eq!(problem.to_string(), "not a trace of heapwright");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    format: &'static Format,
    fault: Fault,
}

impl Problem {
    /// Returns the fault, for any kind of file.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }

    /// Returns whether the file's only fault is that it ends within a frame.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self.fault, Fault::EndsWithin(_))
    }
}

/// The faults of a file. The byte that a fault names is the start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The file is shorter than the header.
    Short,
    /// The file does not begin like a file of this kind.
    Other,
    /// The file is of a version that cannot be read.
    Version(u32),
    /// The file has binding flags that this reader does not know.
    Flags(u32),
    /// The file ends within the frame that begins at this byte.
    EndsWithin(u64),
    /// The frame that begins at this byte has a wrong checksum.
    Checksum(u64),
    /// The frame that begins at this byte has the right checksum, but a wrong content.
    Malformed(u64),
    /// Before the frame that begins at this byte, a frame is missing or double.
    Gap(u64),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Format { versions: (oldest, newest), name, a_frame, frame, parts, .. } = *self.format;
        match self.fault {
            Fault::Short => write!(f, "the {name} ends within its header"),
            Fault::Other => write!(f, "not a {name} of heapwright"),
            Fault::Version(version) => {
                write!(f, "{name} of version {version}; this command reads {oldest}")?;
                if newest == oldest { Ok(()) } else { write!(f, " to {newest}") }
            }
            Fault::Flags(flags) => {
                write!(f, "{name} with flags {flags:#x}, which this command does not know")
            }
            Fault::EndsWithin(at) => write!(
                f,
                "the file ends in the middle of {a_frame} at byte {at}: the process died while \
                 writing, or the copy is incomplete"
            ),
            Fault::Checksum(at) => write!(f, "checksum at byte {at} does not match"),
            Fault::Malformed(at) => write!(f, "the {frame} at byte {at} is not what it says"),
            Fault::Gap(at) => {
                write!(f, "{parts} are missing, or there twice, before the {frame} at byte {at}")
            }
        }
    }
}

impl core::error::Error for Problem {}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::format;

    #[test]
    fn problems_are_one_line_that_names_the_file() {
        let formats = [
            &crate::debug::FORMAT,
            &crate::trace::FORMAT,
            &crate::heap::FORMAT,
            &crate::timeline::FORMAT,
        ];
        for format in formats {
            for fault in [
                Fault::Short,
                Fault::Other,
                Fault::Version(9),
                Fault::Flags(1 << 16),
                Fault::EndsWithin(16),
                Fault::Checksum(16),
                Fault::Malformed(16),
                Fault::Gap(16),
            ] {
                let line = format!("{}", format.problem(fault));
                assert!(!line.is_empty() && !line.contains('\n'), "{line}");
            }
        }
        assert_eq!(
            format!("{}", crate::debug::FORMAT.problem(Fault::EndsWithin(7))),
            "the file ends in the middle of an entry at byte 7: the process died while writing, \
             or the copy is incomplete"
        );
        let of = |version| format!("{}", crate::heap::FORMAT.problem(Fault::Version(version)));
        assert_eq!(of(9), "heap dump of version 9; this command reads 1 to 2");
    }
}
