//! Finds modules by the kernel's list of mappings if the C library has no lock-free function for
//! this: musl, and glibc before 2.35. A static program is one module, with headers from the kernel.
//!
//! ```text
//!   address --> the program?   a place that is known?   /proc/self/maps, into a place
//!
//!   place (72 bytes)   generation, version | looks left | start | end | bias, name, unwind header,
//!                                          headers (0: the gap between two modules), their count
//! ```
//!
//! Reading the list takes long, so the result is kept. A module stays until code is forgotten
//! (`cache`). An address in no module stays for [`LOOKS`] looks, because later a library may be
//! mapped there. (musl never unloads a library.) Code is unmapped before it is forgotten, so each
//! look tests whether the headers are readable, and checks them.
//!
//! A file that is mapped only to be read looks like a module, but its bytes are not where its
//! headers say. So a module must have executable code.
//!
//! A thread takes a place when it changes the generation to [`TAKEN`], and the version with it. A
//! reader accepts a place if its generation was current before the read, and generation and version
//! are the same after the read. A thread that ends in between leaves a place unused.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::ptr;

use super::cache::generation;
use super::image::{Header, Image, LOAD, bias_of, headers_at};
use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

const UNWIND: u32 = 0x6474_e550;

/// The looks at an address in no module before the list is read again.
const LOOKS: usize = 1024;

/// The generation of a place that is being written. Code is not unloaded four billion times.
const TAKEN: u32 = u32::MAX;

const fn state(generation: u32, version: u32) -> u64 {
    (generation as u64) << 32 | version as u64
}

const fn generation_of(state: u64) -> u32 {
    (state >> 32) as u32
}

const PLACES: usize = 256;
const START: usize = 0;
const END: usize = 1;
const BIAS: usize = 2;
const NAME: usize = 3;
const UNWIND_HEADER: usize = 4;
const HEADERS: usize = 5;
const COUNT: usize = 6;

struct Place {
    state: AtomicU64,
    /// The looks left for an address in no module. (This count is not among the words, because the
    /// place may have another owner when a thread subtracts a look.)
    looks: AtomicUsize,
    words: [AtomicUsize; 7],
}

static KNOWN: [Place; PLACES] = [const {
    Place {
        state: AtomicU64::new(0),
        looks: AtomicUsize::new(0),
        words: [const { AtomicUsize::new(0) }; 7],
    }
}; PLACES];

const _: () = assert!(size_of::<Place>() == 72);

pub(super) fn image_of(address: usize) -> Option<Image> {
    let program = os::program_headers();
    let image = image(program, bias_of(program), c"".as_ptr());
    if let Some(image) = image.filter(|image| image.has(address)) {
        return Some(image);
    }
    let now = generation();
    known(address, now).unwrap_or_else(|| look(address, now))
}

fn image(headers: &'static [Header], bias: usize, name: *const c_char) -> Option<Image> {
    let unwind = headers.iter().find(|header| header.p_type == UNWIND);
    let unwind = unwind.map_or(0, |header| bias.wrapping_add(header.p_vaddr as usize));
    Image::new(headers, bias, name, unwind)
}

/// Returns the kept result for an address (`Some(None)` for no module), or `None` without a result.
fn known(address: usize, now: u32) -> Option<Option<Image>> {
    KNOWN.iter().find_map(|place| {
        let seen = place.state.load(Ordering::Acquire);
        if generation_of(seen) != now {
            return None;
        }
        let words = place.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        // Pairs with the fence of `keep`.
        fence(Ordering::Acquire);
        let is_whole = place.state.load(Ordering::Relaxed) == seen;
        if !is_whole || !(words[START]..words[END]).contains(&address) {
            return None;
        }
        if words[HEADERS] != 0 {
            // The headers may be unmapped, and not forgotten yet.
            let headers = headers_at(words[START])?;
            if headers.as_ptr().addr() != words[HEADERS] || headers.len() != words[COUNT] {
                return None;
            }
            let name = ptr::with_exposed_provenance(words[NAME]);
            return Some(Image::new(headers, words[BIAS], name, words[UNWIND_HEADER]));
        }
        if place.looks.fetch_sub(1, Ordering::Relaxed) > 1 {
            return Some(None);
        }
        // The looks are used up. (In a race, a thread may take a look from the place's new owner.)
        let free = state(0, seen as u32);
        let _ = place.state.compare_exchange(seen, free, Ordering::Relaxed, Ordering::Relaxed);
        None
    })
}

#[cold]
#[inline(never)]
fn look(address: usize, now: u32) -> Option<Image> {
    // `file` is the last file that is mapped from its start, and `start` is the address of that
    // mapping. `before` is the end of the mapping before `address`.
    let (mut file, mut start, mut before) = (None, 0, 0);
    let mut around = None;
    let is_read = os::each_mapping(&mut |mapping| {
        if mapping.start > address {
            around = Some((before, mapping.start));
            return false;
        }
        let is_module = mapping.name().first() == Some(&b'/');
        if is_module && mapping.offset == 0 {
            (file, start) = (Some(*mapping), mapping.start);
        }
        if address < mapping.end {
            around = Some((mapping.start, mapping.end));
            return false;
        }
        before = mapping.end;
        true
    });
    if !is_read && around.is_none() {
        return None;
    }
    let found = headers_at(start).and_then(|headers| {
        let first = headers.iter().find(|header| header.p_type == LOAD && header.p_offset == 0)?;
        let bias = start.wrapping_sub(first.p_vaddr as usize);
        let found = image(headers, bias, c"".as_ptr()).filter(|image| image.has(address))?;
        let name = file.as_ref()?.name();
        has_code(&found, name).then(|| Image { name: lasting(name), ..found })
    });
    match found {
        Some(image) => keep(
            now,
            &[
                start,
                image.end,
                image.bias,
                image.name.expose_provenance(),
                image.unwind_header,
                image.headers.as_ptr().expose_provenance(),
                image.headers.len(),
            ],
        ),
        None => {
            let (from, to) = around.unwrap_or((before, usize::MAX));
            keep(now, &[from, to, 0, 0, 0, 0, 0]);
        }
    }
    found
}

/// Returns false if the file is only mapped to be read.
fn has_code(image: &Image, name: &[u8]) -> bool {
    let mut has_code = false;
    os::each_mapping(&mut |mapping| {
        let is_in = (image.start..image.end).contains(&mapping.start);
        has_code |= is_in && mapping.executable && mapping.name() == name;
        !has_code && mapping.start < image.end
    });
    has_code
}

/// Keeps a result of a generation, if there is a place for it.
fn keep(now: u32, words: &[usize; 7]) {
    for place in &KNOWN {
        let was = place.state.load(Ordering::Relaxed);
        let taken = state(TAKEN, (was as u32).wrapping_add(1));
        if [TAKEN, now].contains(&generation_of(was))
            || place
                .state
                .compare_exchange(was, taken, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            continue;
        }
        // Precedes the words: a reader of one of them sees that the place was taken.
        fence(Ordering::Release);
        for (place, &word) in place.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        place.looks.store(LOOKS, Ordering::Relaxed);
        place.state.store(state(now, taken as u32), Ordering::Release);
        return;
    }
}

/// A permanent name, for modules that come and go. Each path has one name, or a few after a race.
struct Name {
    /// [`WRITING`], [`WRITTEN`], or 0 if the place is free.
    state: AtomicU32,
    bytes: UnsafeCell<[u8; NAME_SIZE]>,
}

// SAFETY: the thread that has changed the state to WRITING writes the bytes. No other thread reads
// them until the state is WRITTEN, and then they do not change.
unsafe impl Sync for Name {}

const WRITING: u32 = 1;
const WRITTEN: u32 = 2;
/// The longest uncut name, and a zero.
const NAME_SIZE: usize = os::Mapping::NAME;

static NAMES: [Name; PLACES] =
    [const { Name { state: AtomicU32::new(0), bytes: UnsafeCell::new([0; NAME_SIZE]) } }; PLACES];

/// Returns a name as a permanent C string. Returns "?" if no place is left. Returns "?" also for a
/// name that was cut, because part of a path may be another file's path.
fn lasting(name: &[u8]) -> *const c_char {
    if name.len() >= NAME_SIZE {
        return c"?".as_ptr();
    }
    for place in &NAMES {
        let at: *mut u8 = place.bytes.get().cast();
        let taken = place.state.compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Acquire);
        match taken {
            Ok(_) => {
                // SAFETY: only this thread has the place; a zero stays behind the name.
                unsafe { ptr::copy_nonoverlapping(name.as_ptr(), at, name.len()) };
                place.state.store(WRITTEN, Ordering::Release);
                return at.cast();
            }
            // SAFETY: the name is written and ends with a zero.
            Err(WRITTEN) if unsafe { CStr::from_ptr(at.cast()) }.to_bytes() == name => {
                return at.cast();
            }
            Err(_) => {}
        }
    }
    c"?".as_ptr()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn the_kernel_and_the_loader_say_the_same() {
        let own = image_of as fn(usize) -> Option<Image> as usize;
        for address in [own, libc::qsort as *const () as usize, libc::dlopen as *const () as usize]
        {
            let mapped = image_of(address).unwrap();
            assert!(mapped.is_code(address));
            // The second time the result comes from its place.
            let again = image_of(address).unwrap();
            for image in [mapped, again] {
                if let Some(found) = super::super::image::image_of(address) {
                    let parts =
                        |image: &Image| (image.start, image.end, image.bias, image.unwind_header);
                    assert_eq!(parts(&image), parts(&found));
                    assert_eq!(image.is_program(), found.is_program());
                }
            }
        }
    }

    #[test]
    fn what_is_no_module_is_asked_again_after_a_while() {
        // Threads take places that others have used up.
        let code = libc::qsort as *const () as usize;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let here = 0u8;
                    let address = ptr::from_ref(&here).addr();
                    for _ in 0..3 * LOOKS {
                        assert!(image_of(address).is_none());
                        assert!(image_of(8).is_none());
                        assert!(image_of(code).is_some_and(|image| image.is_code(code)));
                    }
                });
            }
        });
    }

    /// This program's file, mapped once more: `pages` of it.
    fn mapped_again(pages: usize, protection: i32) -> usize {
        use std::os::fd::AsRawFd;
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let (at, length) = (ptr::null_mut(), pages * 4096);
        // SAFETY: a new mapping, which is never written.
        let at =
            unsafe { libc::mmap(at, length, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at.expose_provenance()
    }

    #[test]
    fn a_file_that_is_only_read_is_no_module() {
        let at = mapped_again(16, libc::PROT_READ);
        for address in [at, at + 64, at + 5000, at + 15 * 4096] {
            assert!(image_of(address).is_none());
        }
    }

    #[test]
    fn a_module_that_was_unmapped_is_none_before_it_is_forgotten() {
        let at = mapped_again(16, libc::PROT_READ | libc::PROT_EXEC);
        let address = at + 64;
        assert!(image_of(address).is_some_and(|image| image.start == at));
        assert!(image_of(address).is_some_and(|image| image.start == at));
        // SAFETY: the mapping is not used.
        assert_eq!(unsafe { libc::munmap(ptr::with_exposed_provenance_mut(at), 16 * 4096) }, 0);
        // (Unless another test has mapped something there.)
        assert!(image_of(address).is_none_or(|image| image.start != at));
    }

    #[test]
    fn names_stay_and_are_kept_once() {
        let (one, other) = (lasting(b"/lib/one"), lasting(b"/lib/other"));
        assert_eq!(one, lasting(b"/lib/one"));
        // SAFETY: a C string that stays.
        assert_eq!(unsafe { CStr::from_ptr(other) }, c"/lib/other");
        // SAFETY: a C string that stays.
        assert_eq!(unsafe { CStr::from_ptr(lasting(&[b'/'; NAME_SIZE])) }, c"?");
    }
}
