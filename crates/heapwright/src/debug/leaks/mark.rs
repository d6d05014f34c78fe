//! Marking: follows pointers from the roots through blocks.
//!
//! ```text
//!   roots --word--> block: its start, up to 64 bytes into it, or
//!                          where a heuristic holds                  reachable
//!                          deeper in the middle                     perhaps
//!   1  kept blocks, and blocks that sure roots or reachable blocks lead to    reachable
//!   2  other blocks that pointers to a middle or doubtful roots lead to       possibly lost
//!   3  other blocks: those that no other lost block leads to                  definitely lost
//!                    the blocks that those lead to                            indirectly lost
//! ```
//!
//! Any aligned word that is an address in a live block counts as a pointer to it.
//!
//! The 64 bytes are for programs that keep pointers behind headers: lengths before strings, cookies
//! of `new[]`, the loader's vectors, first bases of C++ objects. From a deeper pointer the program
//! may or may not find the start. So such a block is possibly lost, as in valgrind.
//!
//! In a lost cycle, as in valgrind, the first block counts as definitely lost, and the others as
//! lost with it. A definitely lost block that another lost block leads to becomes indirectly lost.
//!
//! The search is breadth first, so `via` follows a shortest path from the first kind of root with a
//! path. Marking stops when every live block is reachable. Called by `leaks`, usually in a copy of
//! the process.

use core::slice;

use heapwright_record::debug::{Reach, Root};

use crate::options::{self, leaks::Heuristics};
use crate::os::ProcMem;

use super::heuristics;
use super::index::{Block, Index, Live};
use super::roots::{Region, Roots};
use super::zeroed::ZeroedArray;

/// Pointers up to this far into a block surely lead to it, unless the user has chosen heuristics.
const NEAR: usize = 64;
/// The kernel reads blocks from this size on, because the program may have protected their pages.
pub(super) const BY_KERNEL: usize = 4096;
/// Bytes read at a time: they fit in the processor's cache.
const PIECE: usize = 32 << 10;

const UNREACHED: u8 = Reach::Unknown as u8;
const DEFINITE: u8 = Reach::Definite as u8;
const INDIRECT: u8 = Reach::Indirect as u8;
const POSSIBLE: u8 = Reach::Possible as u8;
const REACHABLE: u8 = Reach::Reachable as u8;

#[derive(Clone, Copy)]
enum Proof {
    Sure,
    Doubtful,
    /// The block is lost with the block of this number.
    LostWith(usize),
}

pub(super) struct Marks<'a> {
    index: &'a Index,
    proc_mem: &'a ProcMem,
    roots: &'a Roots,
    heuristics: Heuristics,
    reach: ZeroedArray<u8>,
    /// The address of the first word that led to the block. If the block is lost with another
    /// block: that block's number plus 1.
    via: ZeroedArray<usize>,
    queue: ZeroedArray<usize>,
    next: usize,
    end: usize,
    piece: Option<ZeroedArray<usize>>,
    /// Live blocks not yet known as reachable.
    left: u64,
    has_kept: bool,
    has_possible: bool,
    pub(super) read: u64,
}

impl<'a> Marks<'a> {
    pub(super) fn new(
        index: &'a Index,
        live: Live,
        proc_mem: &'a ProcMem,
        roots: &'a Roots,
    ) -> Option<Self> {
        Some(Self {
            index,
            proc_mem,
            roots,
            heuristics: options::leaks().heuristics,
            reach: ZeroedArray::new(index.slots)?,
            via: ZeroedArray::new(index.slots)?,
            queue: ZeroedArray::new(index.slots)?,
            next: 0,
            end: 0,
            piece: Some(ZeroedArray::new(PIECE / size_of::<usize>())?),
            left: live.amount.blocks,
            has_kept: live.has_kept,
            has_possible: false,
            read: 0,
        })
    }

    pub(super) fn mark(&mut self) {
        let roots = self.roots;
        const ORDER: [Root; 4] = [Root::Globals, Root::Stack, Root::Mapping, Root::OtherHeap];
        if self.has_kept {
            for block in self.index.each().filter(|block| block.word.is_kept()) {
                self.reach[block.number] = REACHABLE;
                self.left = self.left.saturating_sub(1);
                self.push(block.start);
            }
            self.drain(Proof::Sure);
        }
        for kind in ORDER {
            for region in roots.regions(kind).filter(|region| region.sure) {
                self.read_region(&region, Proof::Sure);
            }
            if kind == Root::Stack {
                roots.each_register(&mut |word, at| self.found(word, at, Proof::Sure));
            }
            self.drain(Proof::Sure);
        }
        if self.left == 0 {
            return;
        }
        if self.has_possible {
            for block in self.index.each() {
                if self.reach[block.number] == POSSIBLE {
                    self.push(block.start);
                }
            }
        }
        for kind in ORDER {
            for region in roots.regions(kind).filter(|region| !region.sure) {
                self.read_region(&region, Proof::Doubtful);
            }
        }
        self.drain(Proof::Doubtful);
        for block in self.index.each() {
            if self.reach[block.number] == UNREACHED {
                self.reach[block.number] = DEFINITE;
                self.push(block.start);
                self.drain(Proof::LostWith(block.number));
            }
        }
    }

    pub(super) fn has_all(&self) -> bool {
        self.left == 0
    }

    pub(super) fn reach(&self, block: &Block) -> Reach {
        Reach::from_u8(self.reach[block.number])
    }

    pub(super) fn doubt(&mut self, block: &Block) {
        self.reach[block.number] = POSSIBLE;
        self.via[block.number] = 0;
    }

    /// Returns the address of the word that led to a reachable or possibly lost block, or 0.
    pub(super) fn via(&self, block: &Block) -> usize {
        self.via[block.number]
    }

    pub(super) fn lost_with(&mut self, number: usize) -> usize {
        let mut at = number;
        while self.reach[at] == INDIRECT {
            let next = self.via[at] - 1;
            if self.reach[next] == INDIRECT {
                // Halves the path for the next search.
                self.via[at] = self.via[next];
            }
            at = next;
        }
        at
    }

    fn push(&mut self, start: usize) {
        self.queue[self.end] = start;
        self.end += 1;
    }

    fn drain(&mut self, proof: Proof) {
        while self.next < self.end && self.left > 0 {
            let start = self.queue[self.next];
            self.next += 1;
            if let Some(block) = self.index.find(start) {
                self.read_block(&block, proof);
            }
        }
        (self.next, self.end) = (0, 0);
    }

    fn found(&mut self, word: usize, at: usize, proof: Proof) {
        let Some(block) = self.index.find(word) else { return };
        let number = block.number;
        let reach = self.reach[number];
        match proof {
            Proof::Sure if reach != REACHABLE && self.leads_to(&block, word) => {
                self.reach[number] = REACHABLE;
                self.via[number] = at;
                self.left = self.left.saturating_sub(1);
                self.push(block.start);
            }
            Proof::Sure if reach == UNREACHED => {
                self.has_possible = true;
                self.reach[number] = POSSIBLE;
                self.via[number] = at;
            }
            Proof::Doubtful if reach == UNREACHED => {
                self.reach[number] = POSSIBLE;
                self.via[number] = at;
                self.push(block.start);
            }
            Proof::LostWith(first) if reach == UNREACHED => {
                self.reach[number] = INDIRECT;
                self.via[number] = first + 1;
                self.push(block.start);
            }
            // A block that counted as the first of its group is lost with another one.
            Proof::LostWith(first) if reach == DEFINITE && number != first => {
                self.reach[number] = INDIRECT;
                self.via[number] = first + 1;
            }
            _ => {}
        }
    }

    fn leads_to(&self, block: &Block, word: usize) -> bool {
        let near = if self.heuristics.near { NEAR } else { 0 };
        word - block.start <= near
            || heuristics::holds(self.heuristics, block, word, self.proc_mem, self.roots)
    }

    fn read_region(&mut self, region: &Region, proof: Proof) {
        if self.left == 0 {
            return;
        }
        let proc_mem = self.proc_mem;
        let page = crate::os::kernel_page_size();
        let (from, to) = (region.start & !(page - 1), region.end);
        proc_mem.each_page_run(from, to.next_multiple_of(page), region.private, &mut |a, b| {
            self.read_by_kernel(a.max(region.start), b.min(region.end), proof);
        });
    }

    fn read_block(&mut self, block: &Block, proof: Proof) {
        let (start, end) = (block.start, block.start + block.size);
        if block.size < BY_KERNEL {
            let from = start.next_multiple_of(size_of::<usize>());
            let count = end.saturating_sub(from) / size_of::<usize>();
            let words = block.place.block().wrapping_add(from - start).cast::<usize>();
            for index in 0..count {
                // SAFETY: an aligned word of a live block, which stays live; a concurrent write
                // yields some word.
                let word = unsafe { words.wrapping_add(index).read_volatile() };
                if self.index.may_hold(word) {
                    self.found(word, from + index * size_of::<usize>(), proof);
                }
            }
            self.read += block.size as u64;
            return;
        }
        let page = crate::os::kernel_page_size();
        let proc_mem = self.proc_mem;
        let (from, to) = (start & !(page - 1), end.next_multiple_of(page));
        proc_mem.each_page_run(from, to, true, &mut |a, b| {
            self.read_by_kernel(a.max(start), b.min(end), proof);
        });
    }

    fn read_by_kernel(&mut self, from: usize, to: usize, proof: Proof) {
        const WORD: usize = size_of::<usize>();
        let Some(mut piece) = self.piece.take() else { return };
        let mut at = from.next_multiple_of(WORD);
        while at + WORD <= to && self.left > 0 {
            let room = (to - at).min(PIECE) & !(WORD - 1);
            let words = piece.as_mut_ptr().cast::<u8>();
            // SAFETY: the piece has this many bytes, all numbers.
            let bytes = unsafe { slice::from_raw_parts_mut(words, room) };
            let got = self.proc_mem.read(at, bytes) & !(WORD - 1);
            for (index, &word) in piece[..got / WORD].iter().enumerate() {
                if self.index.may_hold(word) {
                    self.found(word, at + index * WORD, proof);
                }
            }
            self.read += got as u64;
            at += got;
            if got < room {
                at = (at + 1).next_multiple_of(crate::os::kernel_page_size());
            }
        }
        self.piece = Some(piece);
    }
}
