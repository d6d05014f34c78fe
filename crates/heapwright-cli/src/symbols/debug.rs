//! Where the debug information of a file is, and how it is read.
//!
//! ```text
//! in the file itself                      .debug_info, compressed or not
//! by its build-id                         /usr/lib/debug/.build-id/ab/cdef.debug
//! by the name that the file gives         .gnu_debuglink: beside it, in .debug/ beside it,
//!                                         and under /usr/lib/debug; its checksum must match
//! what several files share (dwz)          .gnu_debugaltlink of whichever of them has it,
//!                                         by its build-id, or by the name it gives
//! what the compiler left in its own files .dwp beside the program; .dwo where it says
//! ```
//!
//! The first that has any is taken. Files over the network (debuginfod) are not asked:
//! a report does not go out of the house.

use super::{Rights, map};
use addr2line::{Context, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, SectionId};
use object::read::{Object as _, ObjectSection as _};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where distributions put what they take out of files.
const DEBUG_FILES: &str = "/usr/lib/debug";

/// Bytes of debug information; they are never unmapped.
pub(super) type Bytes = EndianSlice<'static, RunTimeEndian>;

/// An ELF file, mapped.
pub(super) type Elf = object::File<'static, &'static [u8]>;

/// The debug information of a file, with what else it leads to.
pub(super) struct Information {
    context: Context<Bytes>,
    package: Option<DwarfPackage<Bytes>>,
    rights: Rights,
}

/// A file, mapped and parsed.
pub(super) fn open(path: &Path, rights: &Rights) -> anyhow::Result<Elf> {
    Ok(Elf::parse(map::whole(&rights.open(path)?, rights)?)?)
}

/// The file that a distribution took out of this one.
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
            // A build-id says it in less time than a checksum of the whole.
            let matches = if build_id.is_empty() {
                crc32(map::whole(&rights.open(&candidate).ok()?, rights).ok()?) == sum
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
    /// That of an ELF file, if it has some; `path` is the program's or library's.
    pub(super) fn of(object: &Elf, path: &Path, rights: &Rights) -> Option<Self> {
        object.section_by_name(".debug_info").or_else(|| object.section_by_name(".zdebug_info"))?;
        let mut dwarf = Dwarf::load(|id| section(object, id.name())).ok()?;
        if let Some(shared) = shared(object, path, rights) {
            // If it is damaged, the rest is still good.
            let _ = dwarf.load_sup(|id: SectionId| section(&shared, id.name()));
        }
        let context = Context::from_dwarf(dwarf).ok()?;
        Some(Self { context, package: package(path, rights), rights: rights.clone() })
    }

    /// The functions at an address, inlined ones first.
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

    /// A unit that the compiler left elsewhere.
    fn split(&self, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<Dwarf<Bytes>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let part = |bytes: Option<Bytes>| bytes.map(|bytes| OsStr::from_bytes(bytes.slice()));
        let path = PathBuf::from(part(load.comp_dir).unwrap_or_default()).join(part(load.path)?);
        let object = open(&path, &self.rights).ok()?;
        let mut dwarf =
            Dwarf::load(|id| section(&object, id.dwo_name().unwrap_or_default())).ok()?;
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        if unit.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }
}

/// What several files share.
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

/// The units of all of a program's `.dwo` files in one.
fn package(path: &Path, rights: &Rights) -> Option<DwarfPackage<Bytes>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    let object = open(Path::new(&name), rights).ok()?;
    let empty = EndianSlice::new(&[], endian(&object));
    DwarfPackage::load(|id| section(&object, id.dwo_name().unwrap_or_default()), empty).ok()
}

fn endian(object: &Elf) -> RunTimeEndian {
    if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// A section; nothing where there is none.
fn section(object: &Elf, name: &str) -> Result<Bytes, gimli::Error> {
    let data = object.section_by_name(name).and_then(|part| part.uncompressed_data().ok());
    let bytes: &'static [u8] = match data {
        Some(Cow::Borrowed(bytes)) => bytes,
        Some(Cow::Owned(bytes)) => kept(bytes),
        None => &[],
    };
    Ok(EndianSlice::new(bytes, endian(object)))
}

/// Bytes that stay to the end, as those of mapped files do; in a list, so that whoever looks for leaks sees that they do.
pub(super) fn kept(bytes: Vec<u8>) -> &'static [u8] {
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

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
