//! Images: a module as the loader has mapped it.
//!
//! ```text
//!   start                                                       end
//!     | ELF header | program headers | ... segments ...          |
//!                        |
//!                        +--> LOAD: readable? executable?   from, size
//!                        +--> NOTE: the build id            DYNAMIC: symbols
//! ```
//!
//! The C library (without a lock) or the kernel (`mapped`) finds the module of an address. The
//! module's own headers in memory tell all else. The length of a table is often not stored
//! anywhere, so a slice ends at the end of its readable segment. Apart from the headers, no byte
//! outside the ranges of the program headers is ever read.
//!
//! A remaining risk: another thread unmaps code while its tables are read. A thread that walks a
//! stack has frames of that code below it, so the unmapping would kill the program anyway.

use core::slice;

use super::super::tables::Section;
use super::mapped;
use heapwright_substrate::os;

pub(super) const LOAD: u32 = 1;
pub(super) const DYNAMIC: u32 = 2;
pub(super) const NOTE: u32 = 4;
const HEADERS: u32 = 6;
const EXECUTABLE: u32 = 1;
const READABLE: u32 = 4;

/// The bytes at a module's start that must contain its headers.
const FIRST_PAGE: usize = 4096;

pub(super) type Header = libc::Elf64_Phdr;

#[derive(Clone, Copy)]
pub(super) struct Image {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The difference between addresses in memory and in the file.
    pub(super) bias: usize,
    /// The loader's name of the module: a C string.
    pub(super) name: *const core::ffi::c_char,
    pub(super) unwind_header: usize,
    pub(super) headers: &'static [Header],
}

pub(super) fn image_of(address: usize) -> Option<Image> {
    if os::knows_objects() { by_loader(address) } else { mapped::image_of(address) }
}

fn by_loader(address: usize) -> Option<Image> {
    let found = os::find_object(address)?;
    // SAFETY: the loader's record lives while its module does.
    let link_map = unsafe { found.link_map.as_ref() }?;
    let image = |headers: &'static [Header]| {
        let unwind_header = found.unwind_header.addr();
        Image::new(headers, link_map.bias, link_map.name, unwind_header)
            .filter(|image| image.has(address))
    };
    // If the kernel maps the program with gaps between its segments, the loader reports the
    // segment's start instead of the module's. The auxiliary vector has the headers' address.
    let program = os::program_headers();
    if bias_of(program) == link_map.bias
        && let Some(image) = image(program)
    {
        return Some(image);
    }
    headers_at(found.start.expose_provenance())
        .and_then(image)
        .or_else(|| headers_at(link_map.bias).and_then(image))
}

/// Returns the bias of the file with these headers. One entry tells the headers' own address. A
/// program without this entry is mapped at its file's addresses, with one exception: a static
/// program that may be mapped anywhere. Its headers are in its first page.
pub(super) fn bias_of(headers: &'static [Header]) -> usize {
    let at = headers.as_ptr().addr();
    if let Some(own) = headers.iter().find(|header| header.p_type == HEADERS) {
        return at.wrapping_sub(own.p_vaddr as usize);
    }
    let start = at & !(FIRST_PAGE - 1);
    let first = headers.iter().find(|header| header.p_type == LOAD && header.p_offset == 0);
    match (first, headers_at(start)) {
        (Some(first), Some(found)) if found.as_ptr() == headers.as_ptr() => {
            start.wrapping_sub(first.p_vaddr as usize)
        }
        _ => 0,
    }
}

/// Returns the program headers of a module that is mapped from an address on, if there is one.
pub(super) fn headers_at(start: usize) -> Option<&'static [Header]> {
    if start == 0 || !start.is_multiple_of(FIRST_PAGE) || !os::is_readable(start) {
        return None;
    }
    let at = core::ptr::with_exposed_provenance::<libc::Elf64_Ehdr>(start);
    // SAFETY: the page is readable, and has room for a header.
    let header = unsafe { &*at };
    let size = header.e_phnum as usize * size_of::<Header>();
    let offset = usize::try_from(header.e_phoff).ok()?;
    let fits = offset.is_multiple_of(align_of::<Header>())
        && offset
            .checked_add(size)
            .is_some_and(|end| end <= FIRST_PAGE || are_moved(start, offset, end));
    let plausible = header.e_ident[..5] == [0x7f, b'E', b'L', b'F', 2]
        && header.e_phentsize as usize == size_of::<Header>();
    if !fits || !plausible {
        return None;
    }
    let first = core::ptr::with_exposed_provenance::<Header>(start + offset);
    // SAFETY: in the same page or in readable pages (checked above), aligned, and constant.
    let headers = unsafe { slice::from_raw_parts(first, header.e_phnum as usize) };
    // Headers outside of the first page must name their own place.
    let own = headers.iter().find(|header| header.p_type == HEADERS);
    let agrees =
        offset + size <= FIRST_PAGE || own.is_some_and(|own| own.p_vaddr == header.e_phoff);
    agrees.then_some(headers)
}

/// BOLT and patchelf move headers to the end of a file, which is mapped unchanged.
fn are_moved(start: usize, offset: usize, end: usize) -> bool {
    let first = (start + offset) & !(FIRST_PAGE - 1);
    end - offset <= FIRST_PAGE && (first..start + end).step_by(FIRST_PAGE).all(os::is_readable)
}

impl Image {
    /// Returns the module with these headers, if they describe any memory.
    pub(super) fn new(
        headers: &'static [Header],
        bias: usize,
        name: *const core::ffi::c_char,
        unwind_header: usize,
    ) -> Option<Self> {
        let loads = headers.iter().filter(|header| header.p_type == LOAD);
        let start = loads.clone().map(|load| load.p_vaddr as usize).min()?;
        let end = loads.map(|load| load.p_vaddr.wrapping_add(load.p_memsz) as usize).max()?;
        let (start, end) = (bias.wrapping_add(start), bias.wrapping_add(end));
        Some(Self { start, end, bias, name, unwind_header, headers })
    }

    pub(super) fn has(&self, address: usize) -> bool {
        self.load_of(address).is_some()
    }

    /// Returns whether the module is the program, for which the loader has no name.
    pub(super) fn is_program(&self) -> bool {
        // SAFETY: the loader's names are C strings that live while their module does.
        self.name.is_null() || unsafe { self.name.read() } == 0
    }

    pub(super) fn is_named(&self, name: &[u8]) -> bool {
        if self.name.is_null() {
            return false;
        }
        // SAFETY: the loader's names are C strings that live while their module does.
        let path = unsafe { core::ffi::CStr::from_ptr(self.name) }.to_bytes();
        path.rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(name))
    }

    /// Returns the bytes from an address to the end of the readable segment it lies in.
    pub(super) fn rest(&self, address: usize) -> Option<Section<'static>> {
        let (_, end) = self.segment_of(address)?;
        self.piece(address, end - address)
    }

    pub(super) fn segment_around(&self, address: usize) -> Option<Section<'static>> {
        let (start, end) = self.segment_of(address)?;
        self.piece(start, end - start)
    }

    fn piece(&self, address: usize, size: usize) -> Option<Section<'static>> {
        let (_, end) = self.segment_of(address)?;
        if size > end - address {
            return None;
        }
        let at = core::ptr::with_exposed_provenance(address);
        // SAFETY: in a readable segment of the module, within its mappings. Headers and tables do
        // not change.
        let bytes = unsafe { slice::from_raw_parts(at, size) };
        Some(Section { address, bytes })
    }

    fn segment_of(&self, address: usize) -> Option<(usize, usize)> {
        let header = self.load_of(address)?;
        let start = self.bias.wrapping_add(header.p_vaddr as usize);
        let end = start.checked_add(header.p_memsz as usize)?;
        (header.p_flags & READABLE != 0).then_some((start, end))
    }

    pub(super) fn is_code(&self, address: usize) -> bool {
        self.load_of(address).is_some_and(|header| header.p_flags & EXECUTABLE != 0)
    }

    pub(super) fn unwind_header(&self) -> Option<Section<'static>> {
        self.rest(self.unwind_header)
    }

    /// Returns the pieces of memory that headers of a type describe.
    pub(super) fn parts(&self, kind: u32) -> impl Iterator<Item = Section<'static>> {
        let this = *self;
        self.headers.iter().filter(move |header| header.p_type == kind).filter_map(move |header| {
            this.piece(this.bias.wrapping_add(header.p_vaddr as usize), header.p_memsz as usize)
        })
    }

    fn load_of(&self, address: usize) -> Option<&'static Header> {
        self.headers.iter().find(|header| {
            let start = self.bias.wrapping_add(header.p_vaddr as usize);
            header.p_type == LOAD && address.wrapping_sub(start) < header.p_memsz as usize
        })
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::super::super::quick;
    use super::super::super::rule::Rule;
    use super::super::super::tables::{self, Context};
    use super::super::machine::NUMBERS;
    use super::*;

    /// Returns a module's table entries: the function's first byte, and the entry's place.
    fn entries(header: &Section<'static>) -> impl Iterator<Item = (usize, usize)> {
        let address = header.address;
        let word = |at: usize| *header.bytes[at..].first_chunk().expect("a word");
        assert_eq!(word(0), [1, 0x1b, 0x03, 0x3b]);
        let count = u32::from_ne_bytes(word(8)) as usize;
        let place = move |at| address.wrapping_add_signed(i32::from_ne_bytes(word(at)) as isize);
        (0..count).map(move |index| (place(12 + 8 * index), place(16 + 8 * index)))
    }

    #[test]
    fn of_real_modules_most_is_read_quickly_and_as_gimli_reads_it() {
        let own = image_of as fn(usize) -> Option<Image> as usize;
        for address in [own, libc::qsort as *const () as usize] {
            let image = image_of(address).expect("a module");
            let header = image.unwind_header().expect("tables");
            let (mut asked, mut quickly) = (0, 0);
            for (function, entry) in entries(&header) {
                let section = image.segment_around(entry).expect("a segment");
                // The first bytes, where frames are made, and some of what follows.
                for pc in (0..24).chain((24..1000).step_by(97)).map(|offset| function + offset) {
                    let quick = quick::rule_of(pc, entry, section, &NUMBERS);
                    if let Some(quick) = quick {
                        let mut context = Context::new_in();
                        let slow = tables::rule_of(pc, entry, section, &mut context, &NUMBERS);
                        assert_eq!(quick, slow, "{pc:#x}, of an entry at {entry:#x}");
                    }
                    asked += 1;
                    quickly += usize::from(quick.is_some_and(|rule| rule != Rule::UNKNOWN));
                }
            }
            assert!(asked > 10_000 && quickly * 100 > asked * 95, "{quickly} of {asked}");
        }
    }
}
