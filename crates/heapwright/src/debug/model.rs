//! A model of a debug heap's findings, for a property test and for the fuzzer
//! (`fuzz/fuzz_targets/debug_heap.rs` includes this file).
//!
//! Bytes encode valid and invalid operations on a [`DebugHeap`] or a [`Checked`]. After each
//! operation the number of findings must match, and the last finding must have the right kind and
//! byte. An invalid write happens only if it cannot fault. A free or a sweep follows at once, so
//! the time of the finding is known.

extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use std::alloc::System;
use std::vec::Vec;

use super::{Checked, Config, DebugHeap, Finding, FindingKind, Guard, Leaks};

/// Bytes of one operation: its kind, a block, a number, a small number, another small number.
pub(crate) const STEP: usize = 6;

trait Subject: GlobalAlloc {
    fn findings(&self) -> u32;
    fn last(&self) -> Option<Finding>;
    fn sweep(&self);
    fn live(&self) -> Leaks;
    fn end(self) -> Leaks;
    /// The unused bytes behind and before a block of `size` bytes.
    fn room(&self, size: usize) -> (usize, usize);
}

macro_rules! subject {
    ($type:ty, $room:expr) => {
        impl Subject for $type {
            fn findings(&self) -> u32 {
                self.findings()
            }
            fn last(&self) -> Option<Finding> {
                self.last_finding()
            }
            fn sweep(&self) {
                self.sweep();
            }
            fn live(&self) -> Leaks {
                self.live()
            }
            fn end(self) -> Leaks {
                self.deinit()
            }
            fn room(&self, size: usize) -> (usize, usize) {
                $room(size)
            }
        }
    };
}
// A debug heap's block has at least one unused byte behind it, up to the next possible slot.
subject!(DebugHeap, |size: usize| ((size + 1).next_multiple_of(16) - size, 1));
subject!(Checked<System>, |_| (32, 32));

#[derive(Clone, Copy)]
struct Block {
    at: *mut u8,
    layout: Layout,
    fill: u8,
}

impl Block {
    fn check(&self) {
        for at in 0..self.layout.size() {
            // SAFETY: the block is live, and all of its bytes were written.
            let byte = unsafe { self.at.wrapping_add(at).read() };
            assert_eq!(byte, self.fill, "byte {at} of {:?} at {:p}", self.layout, self.at);
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn is_readable(at: *const u8, count: usize) -> bool {
    use std::os::unix::fs::FileExt;
    static MEMORY: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();
    let memory = MEMORY.get_or_init(|| std::fs::File::open("/proc/self/mem").unwrap());
    let mut bytes = [0; 64];
    let count = count.min(64);
    memory.read_at(&mut bytes[..count], at.addr() as u64).is_ok_and(|read| read == count)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn is_readable(_at: *const u8, _count: usize) -> bool {
    true
}

struct World<S> {
    heap: S,
    live: Vec<Block>,
    /// Freed blocks that the heap remembers for ever. Empty without the option `retain`.
    freed: Vec<Block>,
    remembers: bool,
    findings: u32,
    next: u8,
}

impl<S: Subject> World<S> {
    #[track_caller]
    fn expect_nothing(&mut self) {
        assert_eq!(self.heap.findings(), self.findings, "{:?}", self.heap.last());
    }

    #[track_caller]
    fn expect(&mut self, kinds: &[FindingKind]) -> Finding {
        self.findings += 1;
        assert_eq!(self.heap.findings(), self.findings, "{kinds:?}, {:?}", self.heap.last());
        let finding = self.heap.last().unwrap();
        assert!(kinds.contains(&finding.kind), "{kinds:?}, {finding:?}");
        finding
    }

    fn keep(&mut self, at: *mut u8, layout: Layout, fill_it: bool) {
        if at.is_null() {
            return;
        }
        assert!(at.addr().is_multiple_of(layout.align()));
        let end = at.addr() + layout.size();
        for other in &self.live {
            let other_end = other.at.addr() + other.layout.size();
            assert!(end <= other.at.addr() || other_end <= at.addr(), "blocks overlap");
        }
        if fill_it {
            self.next = self.next.wrapping_add(1);
            // SAFETY: the block is ours.
            unsafe { at.write_bytes(self.next, layout.size()) };
        }
        self.live.push(Block { at, layout, fill: self.next });
    }

    fn take(&mut self, which: usize) -> Option<Block> {
        let block =
            (!self.live.is_empty()).then(|| self.live.swap_remove(which % self.live.len()))?;
        block.check();
        Some(block)
    }

    fn forget(&mut self, block: Block) {
        if self.remembers {
            self.freed.push(block);
        }
    }

    fn free(&self, at: *mut u8, layout: Layout) {
        // SAFETY: an invalid free becomes a finding, and frees nothing.
        unsafe { self.heap.dealloc(at, layout) };
    }

    fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: an invalid call becomes a finding, and moves nothing.
        unsafe { self.heap.realloc(at, layout, size) }
    }

    /// Damages bytes, or returns false if the write would fault.
    fn damage(at: *mut u8, length: usize) -> bool {
        let possible = is_readable(at, length);
        if possible {
            // SAFETY: the bytes are readable, so not guarded, and belong to the heap.
            unsafe { at.write_bytes(0x41, length) };
        }
        possible
    }

    fn step(&mut self, bytes: [u8; STEP]) {
        let [what, which, low, high, small, other] = bytes;
        let which = usize::from(which);
        let most = if cfg!(miri) { 700 } else { usize::MAX };
        let number = usize::from(u16::from_le_bytes([low, high]));
        let size = ((number % 3000) << if small < 200 { 0 } else { small % 7 }).min(most);
        let align = 1 << (small % if cfg!(miri) { 8 } else { 14 });
        let layout = Layout::from_size_align(size, align).unwrap();
        match what % 20 {
            0..4 => {
                // SAFETY: debug heaps take sizes of 0, too.
                let at = unsafe { self.heap.alloc(layout) };
                self.keep(at, layout, true);
                self.expect_nothing();
            }
            4 => {
                // SAFETY: debug heaps take sizes of 0, too.
                let at = unsafe { self.heap.alloc_zeroed(layout) };
                // SAFETY: the block is ours.
                let byte = |i| unsafe { at.wrapping_add(i).read() };
                assert!(at.is_null() || (0..size).all(|i| byte(i) == 0));
                self.keep(at, layout, true);
                self.expect_nothing();
            }
            5 | 6 => {
                let Some(block) = self.take(which) else { return };
                let wanted = Layout::from_size_align(size, block.layout.align()).unwrap();
                let at = self.realloc(block.at, block.layout, size);
                // A block that was resized here before may stay in its slot.
                assert!(!at.is_null());
                let moved = at != block.at;
                assert!(moved || size.min(block.layout.size()) > size.max(block.layout.size()) / 2);
                let kept = Layout::from_size_align(size.min(block.layout.size()), 1).unwrap();
                Block { at, layout: kept, ..block }.check();
                self.keep(at, wanted, true);
                if moved {
                    self.forget(block);
                }
                self.expect_nothing();
            }
            7 | 8 => {
                let Some(block) = self.take(which) else { return };
                self.free(block.at, block.layout);
                self.forget(block);
                self.expect_nothing();
            }
            9 => {
                if self.freed.is_empty() {
                    return;
                }
                let block = self.freed[which % self.freed.len()];
                self.free(block.at, block.layout);
                let finding = self.expect(&[FindingKind::DoubleFree]);
                assert_eq!(
                    (finding.block, finding.size),
                    (block.at.addr() as u64, block.layout.size() as u64)
                );
            }
            10 => {
                if self.freed.is_empty() {
                    return;
                }
                let block = self.freed[which % self.freed.len()];
                let at = self.realloc(block.at, block.layout, size);
                self.expect(&[FindingKind::ReallocAfterFree]);
                let wanted = Layout::from_size_align(size, block.layout.align()).unwrap();
                self.keep(at, wanted, true);
            }
            11 => {
                let inside = self.live.iter().filter(|block| block.layout.size() > 1);
                let Some(block) = inside.cycle().nth(which % self.live.len().max(1)).copied()
                else {
                    return;
                };
                let offset = 1 + number % (block.layout.size() - 1);
                self.free(block.at.wrapping_add(offset), block.layout);
                let finding = self.expect(&[FindingKind::InteriorFree]);
                assert_eq!(
                    (finding.block, finding.offset),
                    (block.at.addr() as u64, offset as i64)
                );
            }
            12 => {
                let here = 0u64;
                let wild =
                    [ptr::from_ref(&here).addr(), 16, usize::MAX & !15, number << 12, 1 << 46];
                let wild = ptr::without_provenance_mut(wild[which % wild.len()]);
                if small % 2 == 0 {
                    self.free(wild, layout);
                    self.expect(&[FindingKind::InvalidFree]);
                } else {
                    let at = self.realloc(wild, layout, size);
                    self.expect(&[FindingKind::InvalidRealloc]);
                    self.keep(at, layout, true);
                }
            }
            13 => {
                let Some(block) = self.take(which) else { return };
                let wrong =
                    Layout::from_size_align(block.layout.size() + 1 + number % 50, align).unwrap();
                self.free(block.at, wrong);
                let finding = self.expect(&[FindingKind::SizeMismatch]);
                assert_eq!(finding.given_size, wrong.size() as u64);
                self.forget(block);
            }
            14 => {
                let Some(block) = self.take(which) else { return };
                let wrong =
                    Layout::from_size_align(block.layout.size(), block.layout.align() * 2).unwrap();
                self.free(block.at, wrong);
                self.expect(&[FindingKind::AlignmentMismatch]);
                self.forget(block);
            }
            15 | 16 => {
                let Some(block) = self.take(which) else { return };
                let size = block.layout.size();
                let (room, _) = self.heap.room(size);
                let distance = usize::from(other) % room;
                let length = 1 + number % (room - distance);
                let at = block.at.wrapping_add(size + distance);
                if !Self::damage(at, length) {
                    self.live.push(block);
                    return;
                }
                if what % 20 == 15 {
                    self.free(block.at, block.layout);
                    self.forget(block);
                } else {
                    self.heap.sweep();
                    self.live.push(block);
                }
                // Damage at the next block's start, but not at this block's end, may be either's.
                let either = [FindingKind::Overflow, FindingKind::Underflow];
                let kinds = if distance == 0 { &either[..1] } else { &either };
                let finding = self.expect(kinds);
                assert_eq!((finding.pointer, finding.length), (at.addr() as u64, length as u64));
            }
            17 => {
                let Some(block) = self.take(which) else { return };
                let (_, room) = self.heap.room(0);
                let before = 1 + number % room;
                let at = block.at.wrapping_sub(before);
                if !Self::damage(at, 1) {
                    self.live.push(block);
                    return;
                }
                self.free(block.at, block.layout);
                self.forget(block);
                // The preceding block may have one spare byte.
                let finding = self.expect(&[FindingKind::Underflow, FindingKind::Overflow]);
                assert_eq!((finding.pointer, finding.length), (at.addr() as u64, 1));
            }
            18 => {
                let written = self.freed.iter().filter(|block| block.layout.size() > 0);
                let Some(block) = written.cycle().nth(which % self.freed.len().max(1)).copied()
                else {
                    return;
                };
                let offset = number % block.layout.size();
                let at = block.at.wrapping_add(offset);
                let length = 1 + usize::from(other) % (block.layout.size() - offset).min(60);
                if !Self::damage(at, length) {
                    return;
                }
                self.heap.sweep();
                let finding = self.expect(&[FindingKind::WriteAfterFree]);
                assert_eq!((finding.pointer, finding.length), (at.addr() as u64, length as u64));
                assert_eq!(
                    (finding.block, finding.offset),
                    (block.at.addr() as u64, offset as i64)
                );
            }
            _ => {
                self.heap.sweep();
                self.expect_nothing();
            }
        }
    }

    fn run(heap: S, remembers: bool, bytes: &[u8]) {
        let mut world =
            Self { heap, live: Vec::new(), freed: Vec::new(), remembers, findings: 0, next: 0 };
        for step in bytes.chunks_exact(STEP) {
            world.step(step.try_into().unwrap());
        }
        world.live.iter().for_each(Block::check);
        world.heap.sweep();
        world.expect_nothing();
        let bytes = world.live.iter().map(|block| block.layout.size()).sum();
        let live = Leaks { blocks: world.live.len(), bytes };
        assert_eq!((world.heap.live(), world.heap.end()), (live, live));
    }
}

/// Runs the operations in `bytes`. The first byte selects the heap.
pub(crate) fn run(bytes: &[u8]) {
    run_with(bytes, Config::DEFAULT);
}

pub(crate) fn run_with(bytes: &[u8], config: Config) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let guard = [Guard::Never, Guard::Sample, Guard::All][usize::from(first % 3)];
    let retain = first / 3 % 4 != 0;
    let traces = if first / 12 % 2 == 0 { 0 } else { 4 };
    let slots = if first / 24 % 2 == 0 { 4096 } else { 3 };
    let config = Config { guard, retain, traces, slots, quiet: true, ..config };
    // Without guards the heap misses writes to the page before a span's first block or behind its
    // last. (The fuzzer includes this file without the crate's constant.)
    let has_guards =
        cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
    if first >= 192 || !(has_guards || cfg!(miri)) {
        World::run(Checked::with(System, config), retain, bytes);
    } else {
        World::run(DebugHeap::new(config), retain, bytes);
    }
}
