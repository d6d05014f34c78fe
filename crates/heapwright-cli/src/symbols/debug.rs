//! Finds and reads the debug information of a file.
//!
//! ```text
//! in the file itself                      .debug_info, compressed or not
//! by its build-id                         /usr/lib/debug/.build-id/ab/cdef.debug
//! by the name that the file gives         .gnu_debuglink: beside it, in .debug/ beside it,
//!                                         and under /usr/lib/debug; its build-id must match,
//!                                         or without a build-id its checksum
//! shared by several files (dwz)           .gnu_debugaltlink: by its build-id, or by the name
//! in files of the compiler's              .dwp beside the program; .dwo at its stated path
//! ```
//!
//! The first place that has any is used. No network server (debuginfod) is queried.

use super::{Rights, map};
use crate::bounds;
use addr2line::{Context, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, SectionId};
use object::read::{CompressionFormat, Object as _, ObjectSection as _};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const DEBUG_FILES: &str = "/usr/lib/debug";

/// Bytes of debug information, which are never unmapped.
pub(super) type Bytes = EndianSlice<'static, RunTimeEndian>;

pub(super) type Elf = object::File<'static, &'static [u8]>;

pub(super) type ElfSymbol<'f> = object::Symbol<'static, 'f, &'static [u8]>;

/// The debug information of a file, and of files that it leads to.
pub(super) struct Information {
    context: Context<Bytes>,
    package: Option<DwarfPackage<Bytes>>,
    /// The bytes to which the compiler's files may still expand, together.
    left: Cell<u64>,
    rights: Rights,
}

/// The first value of [`Information::left`].
const LEFT: u64 = 256 << 20;
/// The most bytes to compute a checksum of.
const LONGEST_SUMMED: u64 = 4 << 30;

pub(super) fn open(path: &Path, rights: &Rights) -> anyhow::Result<Elf> {
    Ok(Elf::parse(map::whole(&rights.open(path)?)?)?)
}

/// Opens the debug file that a distribution separated from this file.
pub(super) fn separate(object: &Elf, path: &Path, build_id: &[u8], rights: &Rights) -> Option<Elf> {
    let same = |object: &Elf| object.build_id().ok().flatten().unwrap_or_default() == build_id;
    if let Some(found) =
        by_build_id(build_id).and_then(|path| open(&path, rights).ok()).filter(same)
    {
        return Some(found);
    }
    let (name, sum) = object.gnu_debuglink().ok()??;
    let name = Path::new(OsStr::from_bytes(name));
    let folder = path.parent()?;
    let everywhere = Path::new(DEBUG_FILES).join(folder.strip_prefix("/").unwrap_or(folder));
    [folder.join(name), folder.join(".debug").join(name), everywhere.join(name)]
        .into_iter()
        .filter(|candidate| candidate != path)
        .find_map(|candidate| {
            let found = open(&candidate, rights).ok()?;
            // Comparing build-ids is faster than a checksum of the whole file.
            let matches = if build_id.is_empty() {
                bytes(&found).len() as u64 <= LONGEST_SUMMED && crc32(bytes(&found)) == sum
            } else {
                same(&found)
            };
            matches.then_some(found)
        })
}

fn by_build_id(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = PathBuf::from(format!("{DEBUG_FILES}/.build-id/{first:02x}/{rest}.debug"));
    path.is_file().then_some(path)
}

impl Information {
    /// `path` is the program's or library's.
    pub(super) fn of(object: &Elf, path: &Path, rights: &Rights) -> Option<Self> {
        object.section_by_name(".debug_info").or_else(|| object.section_by_name(".zdebug_info"))?;
        let sections = Sections::of(object);
        let mut dwarf = sections.said(path, Dwarf::load(|id| sections.get(id.name())))?;
        if let Some(shared) = shared(object, path, rights) {
            // A damaged shared file does not spoil the file's own information.
            let sections = Sections::of(&shared);
            sections.said(path, dwarf.load_sup(|id: SectionId| sections.get(id.name())));
        }
        let context = Context::from_dwarf(dwarf).ok()?;
        let (package, left) = (package(path, rights), Cell::new(LEFT));
        Some(Self { context, package, left, rights: rights.clone() })
    }

    /// Inlined functions come first.
    pub(super) fn frames(&self, address: u64) -> Option<addr2line::FrameIter<'_, Bytes>> {
        let mut result = self.context.find_frames(address);
        loop {
            match result {
                addr2line::LookupResult::Output(frames) => return frames.ok(),
                addr2line::LookupResult::Load { load, continuation } => {
                    let unit = self.split(&load);
                    result = addr2line::LookupContinuation::resume(continuation, unit);
                }
            }
        }
    }

    /// Loads a unit from one of the compiler's files.
    fn split(&self, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<Dwarf<Bytes>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let part = |bytes: Option<Bytes>| bytes.map(|bytes| OsStr::from_bytes(bytes.slice()));
        let path = PathBuf::from(part(load.comp_dir).unwrap_or_default()).join(part(load.path)?);
        let object = open(&path, &self.rights).ok()?;
        let sections = Sections::of(&object);
        let most = sections.left.get().min(self.left.get());
        sections.left.set(most);
        let part = |id: SectionId| sections.get(id.dwo_name().unwrap_or_default());
        let mut dwarf = sections.said(&path, Dwarf::load(part))?;
        self.left.set(self.left.get() - (most - sections.left.get()));
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        if unit.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }
}

/// Opens the file that several files share (dwz).
fn shared(object: &Elf, path: &Path, rights: &Rights) -> Option<Elf> {
    let (name, build_id) = object.gnu_debugaltlink().ok()??;
    let same = |object: &Elf| object.build_id().ok().flatten() == Some(build_id);
    let named = path.parent()?.join(OsStr::from_bytes(name));
    let inside =
        Path::new(DEBUG_FILES).join(".dwz").join(Path::new(OsStr::from_bytes(name)).file_name()?);
    [by_build_id(build_id), Some(named), Some(inside)]
        .into_iter()
        .flatten()
        .find_map(|path| open(&path, rights).ok().filter(same))
}

/// Opens the `.dwp` file, which has the units of all of a program's `.dwo` files.
fn package(path: &Path, rights: &Rights) -> Option<DwarfPackage<Bytes>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    let object = open(Path::new(&name), rights).ok()?;
    let empty = EndianSlice::new(&[], endian(&object));
    let sections = Sections::of(&object);
    let load = |id: SectionId| sections.get(id.dwo_name().unwrap_or_default());
    sections.said(path, DwarfPackage::load(load, empty))
}

fn endian(object: &Elf) -> RunTimeEndian {
    if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

fn bytes(object: &Elf) -> &'static [u8] {
    match object {
        Elf::Elf32(file) => file.data(),
        Elf::Elf64(file) => file.data(),
        _ => &[],
    }
}

/// The sections of a file. Together they may expand only as far as the file's length allows.
struct Sections<'a> {
    object: &'a Elf,
    most: u64,
    left: Cell<u64>,
}

impl<'a> Sections<'a> {
    fn of(object: &'a Elf) -> Self {
        let most = bounds::most(bytes(object).len() as u64);
        Self { object, most, left: Cell::new(most) }
    }

    /// Returns a section's bytes; empty if there is none.
    fn get(&self, name: &str) -> Result<Bytes, gimli::Error> {
        let part = self.object.section_by_name(name);
        let data = part.and_then(|part| part.compressed_data().ok());
        if let Some(data) = &data
            && data.format != CompressionFormat::None
        {
            // A byte of a line table becomes a row of 24 bytes.
            let is_rows = name.starts_with(".debug_line") && !name.contains("_str");
            let rows = bounds::most(data.data.len() as u64) / 4;
            let is_fine = !is_rows || data.uncompressed_size <= rows;
            let left = self.left.get().checked_sub(data.uncompressed_size).filter(|_| is_fine);
            self.left.set(left.ok_or(gimli::Error::Io)?);
        }
        let bytes: &'static [u8] = match data.and_then(|data| data.decompress().ok()) {
            Some(Cow::Borrowed(bytes)) => bytes,
            Some(Cow::Owned(bytes)) => kept(bytes),
            None => &[],
        };
        Ok(EndianSlice::new(bytes, endian(self.object)))
    }

    /// Prints a line if the sections expand too far.
    fn said<T>(&self, path: &Path, loaded: Result<T, gimli::Error>) -> Option<T> {
        if matches!(loaded, Err(gimli::Error::Io)) {
            let (path, why) = (path.display(), bounds::too_much(self.most));
            eprintln!("heapwright: {path}: its debug information {why}; it is left out");
        }
        loaded.ok()
    }
}

/// Keeps bytes until the command ends, in a list where leak checkers find them.
fn kept(bytes: Vec<u8>) -> &'static [u8] {
    static KEPT: Mutex<Vec<&[u8]>> = Mutex::new(Vec::new());
    let bytes: &'static [u8] = bytes.leak();
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    bytes
}

/// The checksum of `.gnu_debuglink`: the CRC-32 of zip and Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    let step = |sum: u32, byte: &u8| (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an ELF file whose compressed sections claim these sizes.
    fn elf(sections: &[(&str, u64)]) -> Elf {
        let (mut names, mut at) = (b"\0.shstrtab\0".to_vec(), 64);
        let (mut body, mut headers) = (Vec::new(), vec![0_u8; 64]);
        let mut header = |name: usize, kind: u32, flags: u64, at: usize, size: usize| {
            headers.extend((name as u32).to_le_bytes());
            headers.extend(kind.to_le_bytes());
            let words = [flags, 0, at as u64, size as u64, 0, 1, 0];
            headers.extend(words.into_iter().flat_map(u64::to_le_bytes));
        };
        for (name, expanded) in sections {
            // Refused sections are never unpacked.
            let zeros = vec![0; if *expanded < 16 << 20 { *expanded as usize } else { 0 }];
            let mut packed =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, &zeros).expect("packed");
            let packed = packed.finish().expect("packed");
            let start = body.len();
            body.extend(1_u64.to_le_bytes());
            body.extend(expanded.to_le_bytes());
            body.extend(1_u64.to_le_bytes());
            body.extend(packed);
            header(names.len(), 1, 0x800, at + start, body.len() - start);
            names.extend(name.bytes().chain([0]));
        }
        at += body.len();
        header(1, 3, 0, at, names.len());
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        let word = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            file[at..at + bytes.len()].copy_from_slice(bytes);
        };
        word(&mut file, 16, &[3, 0, 62, 0, 1]);
        word(&mut file, 40, &((at + names.len()) as u64).to_le_bytes());
        let count = sections.len() as u8 + 2;
        word(&mut file, 52, &[64, 0, 56, 0, 0, 0, 64, 0, count, 0, count - 1, 0]);
        file.extend(body);
        file.extend(names);
        file.extend(headers);
        Elf::parse(file.leak()).expect("is ELF")
    }

    #[test]
    fn sections_expand_to_what_their_file_accounts_for_and_no_more() {
        let path = Path::new("/bomb");
        for (sections, is_read) in [
            (&[(".debug_info", 1 << 20), (".debug_str", 1 << 20)][..], true),
            (&[(".debug_info", 3 << 30)], false),
            (&[(".debug_info", u64::MAX)], false),
            (&[(".debug_info", 100), (".debug_str", 9 << 20), (".debug_line", 9 << 20)], false),
        ] {
            let elf = elf(sections);
            assert!(elf.section_by_name(".debug_info").is_some());
            let read = Sections::of(&elf);
            let lengths = sections.iter().map(|(name, _)| Ok(read.get(name)?.len() as u64));
            let lengths: Result<Vec<u64>, gimli::Error> = lengths.collect();
            let expected = sections.iter().map(|(_, length)| *length).collect();
            assert_eq!(lengths, if is_read { Ok(expected) } else { Err(gimli::Error::Io) });
            assert!(is_read || Information::of(&elf, path, &Rights::own()).is_none());
        }
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
