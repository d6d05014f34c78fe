//! Identifies modules: the file of an address in code, its build and its place, so that a command
//! can find names and lines later. Also finds exported names in a module's dynamic symbols.
//!
//! ```text
//!   DYNAMIC --> SYMTAB (24 bytes each) --> offset into STRTAB
//!          \--> GNU_HASH: the number of symbols (HASH has it, too, but linkers leave HASH out)
//! ```
//!
//! Nothing here takes a lock or allocates, and every table is read in bounds: a signal handler may
//! call these functions.

use core::ffi::CStr;
use core::ops::Range;

use super::super::Module;
use super::image::{DYNAMIC, Image, NOTE, image_of};
use heapwright_substrate::os;

pub(in super::super) fn module_range(pc: usize) -> Option<Range<usize>> {
    image_of(pc).map(|image| image.start..image.end)
}

pub(in super::super) fn module_of(pc: usize) -> Option<Module> {
    let image = image_of(pc)?;
    let mut module = Module {
        start: image.start,
        end: image.end,
        bias: image.bias,
        build_id: [0; 20],
        build_id_length: 0,
        path: [0; 512],
        path_length: 0,
        is_program: image.is_program(),
    };
    if let Some(id) = build_id_of(&image) {
        module.build_id_length = id.len().min(module.build_id.len());
        let length = module.build_id_length;
        module.build_id[..length].copy_from_slice(&id[..length]);
    }
    let name = match image.name.is_null() {
        true => &[],
        // SAFETY: the loader's names are C strings that live while their module does.
        false => unsafe { CStr::from_ptr(image.name) }.to_bytes(),
    };
    if name.is_empty() {
        module.path_length = os::program_path(&mut module.path);
    } else {
        module.path_length = name.len().min(module.path.len());
        let length = module.path_length;
        module.path[..length].copy_from_slice(&name[..length]);
    }
    Some(module)
}

/// Returns the four bytes at a place, in the machine's order.
fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes) as usize)
}

/// Returns the eight bytes at a place.
fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes) as usize)
}

pub(super) fn build_id_of(image: &Image) -> Option<&'static [u8]> {
    image.parts(NOTE).find_map(|notes| build_id(notes.bytes))
}

/// Finds the build id among notes: name size, content size, type, name, content.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: usize = 3;
    loop {
        let (name_size, size, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let content = name_size.checked_next_multiple_of(4)?.checked_add(12)?;
        let end = content.checked_add(size)?;
        if kind == BUILD_ID && notes.get(12..16)? == b"GNU\0" {
            return notes.get(content..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

const SYMBOL_SIZE: usize = 24;

#[derive(Default)]
struct Tables {
    symbols: usize,
    strings: usize,
    hash: usize,
}

fn tables(image: &Image) -> Option<Tables> {
    const STRTAB: usize = 5;
    const SYMTAB: usize = 6;
    const GNU_HASH: usize = 0x6fff_fef5;
    let dynamic = image.parts(DYNAMIC).next()?;
    let mut tables = Tables::default();
    let (entries, _) = dynamic.bytes.as_chunks::<16>();
    for entry in entries {
        let (tag, value) = (long(entry, 0)?, long(entry, 8)?);
        // The loader has replaced offsets by addresses where it could write.
        let value = if value < image.start { value.wrapping_add(image.bias) } else { value };
        match tag {
            0 => break,
            STRTAB => tables.strings = value,
            SYMTAB => tables.symbols = value,
            GNU_HASH => tables.hash = value,
            _ => {}
        }
    }
    Some(tables)
}

/// Returns the number of symbols: one more than the last symbol of the chain that begins last.
fn symbol_count(hash: &[u8]) -> Option<usize> {
    let (buckets, first, bloom) = (word(hash, 0)?, word(hash, 4)?, word(hash, 8)?);
    let at = bloom.checked_mul(8)?.checked_add(16)?;
    let chains = at.checked_add(buckets.checked_mul(4)?)?;
    let (starts, _) = hash.get(at..chains)?.as_chunks::<4>();
    let mut last = starts.iter().map(|start| u32::from_ne_bytes(*start) as usize).max()?;
    if last < first {
        return Some(first);
    }
    while word(hash, chains.checked_add((last - first).checked_mul(4)?)?)? & 1 == 0 {
        last += 1;
    }
    Some(last + 1)
}

/// Returns false if no exported function contains the address.
pub(in super::super) fn symbol_of(pc: usize, found: impl FnOnce(&[u8], usize)) -> bool {
    let Some((name, offset)) = find(pc) else { return false };
    found(name, offset);
    true
}

fn find(pc: usize) -> Option<(&'static [u8], usize)> {
    const FUNCTION: u8 = 2;
    const INDIRECT_FUNCTION: u8 = 10;
    let image = image_of(pc)?;
    let tables = tables(&image)?;
    let strings = image.rest(tables.strings)?.bytes;
    let count = symbol_count(image.rest(tables.hash)?.bytes)?;
    let symbols = image.rest(tables.symbols)?.bytes;
    let symbols = symbols.get(..count.checked_mul(SYMBOL_SIZE)?)?;
    let (symbols, _) = symbols.as_chunks::<SYMBOL_SIZE>();
    let at = pc.wrapping_sub(image.bias);
    symbols.iter().find_map(|symbol| {
        // name: u32, info: u8, other: u8, section: u16, value: u64, size: u64
        let (name, value, size) = (word(symbol, 0)?, long(symbol, 8)?, long(symbol, 16)?);
        let is_function = matches!(symbol[4] & 15, FUNCTION | INDIRECT_FUNCTION);
        let offset = at.wrapping_sub(value);
        if !is_function || symbol[6..8] == [0, 0] || offset >= size.max(1) {
            return None;
        }
        let name = CStr::from_bytes_until_nul(strings.get(name..)?).ok()?;
        Some((name.to_bytes(), offset))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    // A static program is one module, without exported names.
    #[cfg(not(target_feature = "crt-static"))]
    #[test]
    fn the_program_and_the_c_library_are_modules() {
        let own = module_of(module_of as fn(usize) -> Option<Module> as usize).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(own.path(), program.as_os_str().as_encoded_bytes());
        let libc = module_of(libc::qsort as *const () as usize).unwrap();
        assert!(libc.path().windows(4).any(|w| w == b"libc"), "{:?}", libc.path());
        assert_eq!(libc.build_id().len(), 20);
        assert!(libc.start < libc.end && libc.start != own.start);
        assert_eq!(module_range(libc::qsort as *const () as usize), Some(libc.start..libc.end));
        assert!(module_of(8).is_none() && module_range(8).is_none());
        let here = 0u8;
        assert!(module_of(core::ptr::from_ref(&here).addr()).is_none());
    }

    #[cfg(not(target_feature = "crt-static"))]
    #[test]
    fn exported_functions_have_names() {
        let qsort = libc::qsort as *const () as usize;
        let mut found = false;
        assert!(symbol_of(qsort + 5, |name, offset| {
            found = true;
            assert_eq!((name, offset), (&b"qsort"[..], 5));
        }));
        assert!(found);
        assert!(!symbol_of(8, |_, _| unreachable!()));
    }

    extern crate std;

    proptest! {
        #![proptest_config(cases(500))]

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), small in any::<bool>()) {
            let mut bytes = bytes;
            if small {
                // Tries sizes that may fit.
                for word in bytes.chunks_mut(4).take(4) {
                    word[1..].fill(0);
                    word[0] %= 16;
                }
            }
            build_id(&bytes);
            symbol_count(&bytes);
        }
    }
}
