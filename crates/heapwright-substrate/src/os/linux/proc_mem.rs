//! Reading the process's own memory, whatever it is, without a fault.
//!
//! ```text
//!   each_page_run   which pages of a range hold something of the program's: /proc/self/pagemap
//!   read            the bytes of any mapping: /proc/self/mem
//! ```
//!
//! The kernel copies, so a page that cannot be touched, or whose file was cut, is an
//! answer and no signal. Pages that were never touched are not read: reading would give
//! them memory. A private page of a file that was not changed holds no pointer that the
//! program made, and is not read either.
//!
//! Called by `debug::leaks`.

use core::ffi::CStr;

use super::{calls, keeping_errno, kernel_page_size};

/// Two files of the kernel's.
pub struct ProcMem {
    memory: i32,
    pages: i32,
}

/// Entries of the page map that are read at a time.
const ENTRIES: usize = 512;

fn open(path: &CStr) -> i32 {
    keeping_errno(|| calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0))
}

impl ProcMem {
    /// Of the calling process. `None`: there is no /proc.
    pub fn open() -> Option<Self> {
        let memory = open(c"/proc/self/mem");
        if memory < 0 {
            return None;
        }
        Some(Self { memory, pages: open(c"/proc/self/pagemap") })
    }

    /// Whether it is known which pages hold something.
    pub fn knows_pages(&self) -> bool {
        self.pages >= 0
    }

    /// Copies what is at an address, as far as it can be read. Returns how many bytes
    /// that are.
    pub fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let (place, room) = (into.as_mut_ptr(), into.len());
        // SAFETY: writes no more than the slice has.
        let got =
            keeping_errno(|| unsafe { libc::pread64(self.memory, place.cast(), room, at as i64) });
        usize::try_from(got).unwrap_or(0)
    }

    /// Copies the words at an address, a multiple of 8, as far as they can be read. Returns
    /// how many those are.
    pub fn read_words(&self, at: usize, into: &mut [usize]) -> usize {
        let bytes = size_of_val(into);
        // SAFETY: the words' bytes, which may be any.
        let into = unsafe { core::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), bytes) };
        self.read(at, into) / size_of::<usize>()
    }

    /// Calls `visit` with the runs of pages in a range, from page to page, that hold
    /// something; all of it where that is not known. What is shared is in no table of a
    /// process that was just copied: of it, what is in memory.
    pub fn each_page_run(
        &self,
        start: usize,
        end: usize,
        private: bool,
        visit: &mut dyn FnMut(usize, usize),
    ) {
        if private {
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
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const OF_FILE: u64 = 1 << 61;
        let page = kernel_page_size();
        let mut entries = [0u64; ENTRIES];
        let mut run: Option<(usize, usize)> = None;
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
                match &mut run {
                    Some((_, to)) if holds && *to == here => *to += page,
                    _ if holds => {
                        if let Some((from, to)) = run.replace((here, here + page)) {
                            visit(from, to);
                        }
                    }
                    _ => {}
                }
            }
            at += got * page;
        }
        if let Some((from, to)) = run {
            visit(from, to);
        }
        if at < end {
            visit(at, end);
        }
    }
}

impl Drop for ProcMem {
    fn drop(&mut self) {
        for file in [self.memory, self.pages] {
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
        let mut bytes = [0; 2];
        assert_eq!(proc_mem.read(at.addr() + 4 * page, &mut bytes), 2);
        assert_eq!(bytes, [7, 0]);
        assert_eq!(proc_mem.read(8, &mut bytes), 0);
        // SAFETY: reserved above; nobody uses it.
        unsafe { System.release(at, 64 * page) };
    }

    /// What is not mapped is an answer, and so are pages that are.
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
        // The first page of all is nobody's.
        assert!(!super::super::resident_pages(0, page, &mut resident));
        let mut runs = std::vec::Vec::new();
        let proc_mem = ProcMem::open().unwrap();
        proc_mem.each_page_run(0, page, false, &mut |from, to| runs.push((from, to)));
        assert_eq!(runs, [(0, page)]);
        // SAFETY: reserved above; nobody uses it.
        unsafe { System.release(at, 4 * page) };
    }
    extern crate std;
}
