//! Reads the process's own memory, of any kind, without a fault.
//!
//! ```text
//!   each_page_run   pages of a range with data of the program: /proc/self/pagemap (scan or read)
//!   read            the bytes of any mapping: /proc/self/mem, or process_vm_readv
//! ```
//!
//! The kernel copies: an inaccessible page, or a page whose file was cut, causes an error instead
//! of a signal. `each_page_run` leaves out pages that were never touched: a read would give them
//! memory. It also leaves out unchanged private pages of files, which have no pointers to blocks.
//! A process that has changed its user cannot open `/proc/self/mem`. Called by `debug::leaks`.

use core::ffi::CStr;
use core::ptr;

use super::process::{of_memory, process_id};
use super::{calls, keeping_errno, kernel_page_size};
use crate::os::is_filtered;

/// The two open files of the kernel.
pub struct ProcMem {
    /// -1: `read` uses `process_vm_readv`, which needs no file.
    memory: i32,
    pages: i32,
}

const ENTRIES: usize = 512;
const RANGES: usize = 128;

/// The kernel's `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    /// The end of the scanned part.
    walk_end: u64,
    ranges: u64,
    count: u64,
    /// The most pages to find; 0: any number.
    most: u64,
    /// The bits whose meaning is inverted in the request.
    inverted: u64,
    all_of: u64,
    any_of: u64,
    /// The bits to return for each range.
    said: u64,
}

/// The kernel's `struct page_region`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Range {
    start: u64,
    end: u64,
    categories: u64,
}

const _: () = assert!(size_of::<Scan>() == 96 && size_of::<Range>() == 24);

/// Joins adjacent ranges, and then calls `visit`.
struct Joined<'a> {
    run: Option<(usize, usize)>,
    visit: &'a mut dyn FnMut(usize, usize),
}

impl Joined<'_> {
    fn add(&mut self, from: usize, to: usize) {
        match &mut self.run {
            Some((_, end)) if *end == from => *end = to,
            run => {
                if let Some((from, to)) = run.replace((from, to)) {
                    (self.visit)(from, to);
                }
            }
        }
    }

    fn end(self) {
        if let Some((from, to)) = self.run {
            (self.visit)(from, to);
        }
    }
}

fn copy(at: usize, into: &mut [u8]) -> usize {
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let from = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(at), iov_len: into.len() };
    let (process, to, from) = (process_id(), &raw const to, &raw const from);
    // SAFETY: the kernel writes no more than the slice has, and reads only readable memory.
    let got = keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_process_vm_readv, process, to, 1usize, from, 1usize, 0usize)
    });
    usize::try_from(got).unwrap_or(0)
}

fn open(path: &CStr) -> i32 {
    keeping_errno(|| calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0))
}

impl ProcMem {
    /// No files. [`Self::read`] uses `process_vm_readv`, and no page map is available.
    pub const NONE: Self = Self { memory: -1, pages: -1 };

    /// Opens the files of the calling process. `None`: the process cannot read its memory.
    pub fn open() -> Option<Self> {
        if is_filtered() {
            return None;
        }
        let memory = open(of_memory(c"/proc/self/mem", c"/proc/thread-self/mem"));
        let pages = open(of_memory(c"/proc/self/pagemap", c"/proc/thread-self/pagemap"));
        let memory = Self { memory, pages };
        let (here, mut copy) = ([1; 8], [0; 8]);
        (memory.read(here.as_ptr().addr(), &mut copy) == here.len()).then_some(memory)
    }

    /// Whether the page map is available.
    pub fn knows_pages(&self) -> bool {
        self.pages >= 0
    }

    /// Copies the bytes at an address, as far as they can be read. Returns their number.
    pub fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let (place, room) = (into.as_mut_ptr(), into.len());
        if self.memory < 0 {
            return copy(at, into);
        }
        // SAFETY: writes no more than the slice has.
        let got =
            keeping_errno(|| unsafe { libc::pread64(self.memory, place.cast(), room, at as i64) });
        usize::try_from(got).unwrap_or(0)
    }

    /// Copies the words at an address, a multiple of 8, as far as they can be read. Returns their
    /// number.
    pub fn read_words(&self, at: usize, into: &mut [usize]) -> usize {
        let bytes = size_of_val(into);
        // SAFETY: the bytes of the words, for which any value is valid.
        let into = unsafe { core::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), bytes) };
        self.read(at, into) / size_of::<usize>()
    }

    /// Calls `visit` with each run of pages in a range that have data. For private memory, the page
    /// map lists these pages. For shared memory, or without a page map, `visit` gets the pages that
    /// are in memory; if the kernel does not tell, all remaining pages. (The page map of a process
    /// that was just copied has no shared memory.)
    pub fn each_page_run(
        &self,
        start: usize,
        end: usize,
        private: bool,
        visit: &mut dyn FnMut(usize, usize),
    ) {
        if private && self.knows_pages() {
            return self.each_private_run(start, end, visit);
        }
        let page = kernel_page_size();
        let mut resident = [0u8; ENTRIES];
        let mut at = start;
        while at < end {
            let pages = ((end - at) / page).min(ENTRIES);
            let known = pages > 0 && super::resident_pages(at, pages * page, &mut resident);
            if !known {
                return visit(at, end);
            }
            for (index, &byte) in resident[..pages].iter().enumerate() {
                if byte & 1 == 1 {
                    visit(at + index * page, at + (index + 1) * page);
                }
            }
            at += pages * page;
        }
    }

    fn each_private_run(&self, start: usize, end: usize, visit: &mut dyn FnMut(usize, usize)) {
        let start = self.scan(start, end, visit);
        if start < end {
            self.each_run_by_entries(start, end, visit);
        }
    }

    /// Lets the kernel scan (`PAGEMAP_SCAN`, Linux 6.7). Returns the end of the scanned part.
    fn scan(&self, start: usize, end: usize, visit: &mut dyn FnMut(usize, usize)) -> usize {
        const SCAN: u64 = 0xc060_6610;
        const OF_FILE: u64 = 1 << 2;
        const PRESENT: u64 = 1 << 3;
        const SWAPPED: u64 = 1 << 4;
        const OF_ZEROS: u64 = 1 << 5;
        let mut at = start;
        let mut runs = Joined { run: None, visit };
        while at < end {
            let mut found = [Range { start: 0, end: 0, categories: 0 }; RANGES];
            let mut asked = Scan {
                size: size_of::<Scan>() as u64,
                flags: 0,
                start: at as u64,
                end: end as u64,
                walk_end: 0,
                ranges: found.as_mut_ptr().addr() as u64,
                count: RANGES as u64,
                most: 0,
                inverted: OF_FILE | OF_ZEROS,
                all_of: OF_FILE | OF_ZEROS,
                any_of: PRESENT | SWAPPED,
                said: PRESENT | SWAPPED,
            };
            let _exposed = found.as_mut_ptr().expose_provenance();
            // (This is a system call, because a program may have an `ioctl` of its own, and the
            // type of the request differs.) SAFETY: the kernel reads and writes the struct, and
            // writes at most as many ranges as the struct announces room for.
            let got = keeping_errno(|| unsafe {
                libc::syscall(libc::SYS_ioctl, self.pages, SCAN, &raw mut asked)
            });
            let Some(found) = usize::try_from(got).ok().and_then(|got| found.get(..got)) else {
                break;
            };
            found.iter().for_each(|range| runs.add(range.start as usize, range.end as usize));
            let walked = asked.walk_end as usize;
            if walked <= at {
                break;
            }
            at = walked.min(end);
        }
        runs.end();
        at
    }

    fn each_run_by_entries(&self, start: usize, end: usize, visit: &mut dyn FnMut(usize, usize)) {
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const OF_FILE: u64 = 1 << 61;
        let page = kernel_page_size();
        let mut entries = [0u64; ENTRIES];
        let mut runs = Joined { run: None, visit: &mut *visit };
        let mut at = start;
        while at < end {
            let wanted = ((end - at) / page).min(ENTRIES);
            let offset = (at / page * 8) as i64;
            let place = entries.as_mut_ptr().cast();
            // SAFETY: writes no more than the array has.
            let got =
                keeping_errno(|| unsafe { libc::pread64(self.pages, place, wanted * 8, offset) });
            let got = usize::try_from(got).unwrap_or(0) / 8;
            if wanted == 0 || got == 0 {
                break;
            }
            for (index, &entry) in entries[..got].iter().enumerate() {
                let holds = entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0;
                let here = at + index * page;
                if holds {
                    runs.add(here, here + page);
                }
            }
            at += got * page;
        }
        runs.end();
        if at < end {
            visit(at, end);
        }
    }
}

impl Drop for ProcMem {
    fn drop(&mut self) {
        for file in [self.memory, self.pages].into_iter().filter(|&file| file >= 0) {
            keeping_errno(|| calls::close(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Memory, System};
    use super::*;

    #[test]
    fn only_pages_that_hold_something_are_seen() {
        let page = kernel_page_size();
        let at = System.reserve(64 * page, page);
        // SAFETY: reserved above.
        assert!(unsafe { System.commit(at, 64 * page) });
        for touched in [3, 4, 60] {
            // SAFETY: committed above.
            unsafe { at.wrapping_add(touched * page).write(7) };
        }
        let proc_mem = ProcMem::open().unwrap();
        let mut runs = std::vec::Vec::new();
        proc_mem.each_page_run(at.addr(), at.addr() + 64 * page, true, &mut |from, to| {
            runs.push(((from - at.addr()) / page, (to - at.addr()) / page));
        });
        assert_eq!(runs, [(3, 5), (60, 61)]);
        let mut by_entries = std::vec::Vec::new();
        proc_mem.each_run_by_entries(at.addr(), at.addr() + 64 * page, &mut |from, to| {
            by_entries.push(((from - at.addr()) / page, (to - at.addr()) / page));
        });
        assert_eq!(by_entries, runs);
        let mut bytes = [0; 2];
        assert_eq!(proc_mem.read(at.addr() + 4 * page, &mut bytes), 2);
        assert_eq!(bytes, [7, 0]);
        assert_eq!(proc_mem.read(8, &mut bytes), 0);
        // SAFETY: reserved above; no thread uses it.
        unsafe { System.release(at, 64 * page) };
    }

    #[test]
    fn many_runs_are_asked_for_more_than_once() {
        let (page, pages) = (kernel_page_size(), 4 * RANGES);
        let at = System.reserve(pages * page, page);
        // SAFETY: reserved above.
        assert!(unsafe { System.commit(at, pages * page) });
        for touched in (1..pages).step_by(2) {
            // SAFETY: committed above.
            unsafe { at.wrapping_add(touched * page).write(7) };
        }
        // A page that was only read is the kernel's page of zeros.
        // SAFETY: committed above.
        assert_eq!(unsafe { at.wrapping_add(8 * page).read_volatile() }, 0);
        let proc_mem = ProcMem::open().unwrap();
        let mut runs = 0;
        proc_mem.each_page_run(at.addr(), at.addr() + pages * page, true, &mut |from, to| {
            // An old kernel counts the page of zeros.
            assert!((from - at.addr()) / page % 2 == 1 && (to - from == page || runs == 3));
            runs += 1;
        });
        assert!([pages / 2, pages / 2 - 1].contains(&runs));
        // SAFETY: reserved above; no thread uses it.
        unsafe { System.release(at, pages * page) };
    }

    #[test]
    fn a_hole_is_no_fault() {
        let page = kernel_page_size();
        let at = System.reserve(4 * page, page);
        // SAFETY: reserved above.
        assert!(unsafe { System.commit(at, 4 * page) });
        // SAFETY: committed above.
        unsafe { at.write(7) };
        let mut resident = [0; 4];
        assert!(super::super::resident_pages(at.addr(), 4 * page, &mut resident));
        assert_eq!(resident[0] & 1, 1);
        assert!(!super::super::resident_pages(at.addr() + 1, page, &mut resident));
        // The first page of the address space is never mapped.
        assert!(!super::super::resident_pages(0, page, &mut resident));
        let mut runs = std::vec::Vec::new();
        let proc_mem = ProcMem::open().unwrap();
        proc_mem.each_page_run(0, page, false, &mut |from, to| runs.push((from, to)));
        assert_eq!(runs, [(0, page)]);
        // SAFETY: reserved above; no thread uses it.
        unsafe { System.release(at, 4 * page) };
    }
    extern crate std;
}
