//! Sequences of operations on the heap, checked against a model. Every block keeps its contents,
//! and overlaps no other block. `describe` finds every block. Blocks are handed to a second thread,
//! which frees them, or come from threads that have ended. In the end no block may be left.
#![no_main]

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

use arbitrary::Arbitrary;
use heapwright::heap::{self, Heap};
use heapwright::{Kind, Stats, describe, options, stats};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Op {
    Malloc {
        size: u16,
        scale: u8,
    },
    Calloc {
        size: u16,
        scale: u8,
    },
    Aligned {
        size: u16,
        shift: u8,
    },
    Realloc {
        which: u8,
        size: u16,
        scale: u8,
    },
    Free {
        which: u8,
    },
    FreeSized {
        which: u8,
    },
    /// Allocates in a thread that ends. The next thread takes over its cache.
    MallocElsewhere {
        sizes: [u16; 3],
        scale: u8,
    },
    FreeElsewhere {
        which: u8,
    },
    MallocUncached {
        size: u16,
        scale: u8,
    },
    FreeUncached {
        which: u8,
    },
    /// Moves all blocks for which `should_move` is true.
    Move,
    HeapCreate,
    HeapAlloc {
        which: u8,
        size: u16,
        scale: u8,
    },
    HeapFree {
        which: u8,
    },
    HeapDestroy {
        which: u8,
    },
    Trim {
        keep: u16,
    },
    PurgeDelay {
        ms: i8,
    },
    Describe {
        address: u64,
    },
}

/// Blocks that are kept for signal handlers (`cache::deferred`).
const RESERVED: u64 = 4 * 16 + 2 * 2;

struct Block {
    at: *mut u8,
    size: usize,
    /// The requested alignment; 0 if it is no longer known.
    align: usize,
    fill: u8,
    heap: *mut Heap,
}

struct Sent(Block);

// SAFETY: the receiver is the only one who uses the block from then on.
unsafe impl Send for Sent {}

fn scaled(size: u16, scale: u8) -> usize {
    (size as usize) << (scale % 6)
}

impl Block {
    fn fill(&self) {
        // SAFETY: the block is ours and has `size` bytes.
        unsafe { self.at.write_bytes(self.fill, self.size) };
    }

    fn check(&self, upto: usize) {
        // SAFETY: the block is ours, and its bytes are written.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, upto) };
        assert!(bytes.iter().all(|&b| b == self.fill), "contents changed at {:p}", self.at);
        if self.size > 0 {
            let inside = self.at.wrapping_add(self.size - 1);
            let found = describe(inside);
            assert_eq!(found.block, self.at as usize);
            assert!(found.size >= self.size && matches!(found.kind, Kind::Small | Kind::Large));
        }
    }
}

fn release(block: Block) {
    block.check(block.size);
    // SAFETY: the block is in use, and freed once.
    unsafe { heap::free(block.at) };
}

#[derive(Default)]
struct World {
    blocks: Vec<Block>,
    ranges: BTreeMap<usize, usize>,
    heaps: Vec<*mut Heap>,
    next: u8,
}

impl World {
    fn add(&mut self, at: *mut u8, size: usize, align: usize, heap: *mut Heap) {
        if at.is_null() {
            return;
        }
        let start = at as usize;
        let end = start + size.max(1);
        let before = self.ranges.range(..end).next_back();
        assert!(before.is_none_or(|(_, &other)| other <= start), "blocks overlap");
        self.ranges.insert(start, end);
        self.next = self.next.wrapping_add(1);
        let block = Block { at, size, align, fill: self.next, heap };
        block.fill();
        self.blocks.push(block);
    }

    fn take(&mut self, which: u8) -> Option<Block> {
        self.take_at(which as usize)
    }

    fn take_at(&mut self, at: usize) -> Option<Block> {
        if self.blocks.is_empty() {
            return None;
        }
        let block = self.blocks.swap_remove(at % self.blocks.len());
        self.ranges.remove(&(block.at as usize));
        Some(block)
    }
}

fuzz_target!(|ops: Vec<Op>| {
    let (send, receive) = mpsc::channel::<Sent>();
    let other = thread::spawn(move || {
        for Sent(block) in receive {
            release(block);
        }
    });
    let mut world = World::default();
    for op in ops {
        match op {
            Op::Malloc { size, scale } => {
                let size = scaled(size, scale);
                world.add(heap::malloc(size), size, 16, std::ptr::null_mut());
            }
            Op::Calloc { size, scale } => {
                let size = scaled(size, scale);
                let at = heap::calloc(size);
                if !at.is_null() {
                    // SAFETY: a block of `size` initialised bytes.
                    let bytes = unsafe { std::slice::from_raw_parts(at, size) };
                    assert!(bytes.iter().all(|&b| b == 0), "calloc is not zero");
                }
                world.add(at, size, 16, std::ptr::null_mut());
            }
            Op::Aligned { size, shift } => {
                let align = 1usize << (shift % 20);
                let at = heap::malloc_aligned(size as usize, align);
                assert_eq!(at as usize % align, 0);
                world.add(at, size as usize, align, std::ptr::null_mut());
            }
            Op::Realloc { which, size, scale } => {
                // If a heap's block moves, it leaves its heap. If it stays, the heap still owns it.
                if let Some(block) = world.take(which) {
                    let size = scaled(size, scale);
                    // SAFETY: the block is in use; the result replaces it.
                    let at = unsafe { heap::realloc(block.at, size) };
                    assert!(!at.is_null());
                    let kept = block.size.min(size);
                    // SAFETY: the block is ours, and so many bytes are written.
                    let bytes = unsafe { std::slice::from_raw_parts(at, kept) };
                    assert!(bytes.iter().all(|&b| b == block.fill), "realloc lost contents");
                    let stayed = at == block.at;
                    let heap = if stayed { block.heap } else { std::ptr::null_mut() };
                    world.add(at, size, 0, heap);
                }
            }
            Op::Free { which } => {
                if let Some(block) = world.take(which) {
                    release(block);
                }
            }
            Op::FreeSized { which } => {
                // The alignment of a resized block is no longer known.
                match world.take(which) {
                    Some(block) if block.align > 0 => {
                        block.check(block.size);
                        // SAFETY: the block is in use, of this size and alignment,
                        // and freed once.
                        unsafe { heap::free_sized(block.at, block.size, block.align) };
                    }
                    Some(block) => release(block),
                    None => {}
                }
            }
            Op::MallocElsewhere { sizes, scale } => {
                let made = thread::spawn(move || {
                    sizes.map(|size| (heap::malloc(scaled(size, scale)).expose_provenance(), size))
                });
                for (at, size) in made.join().unwrap() {
                    let at = std::ptr::with_exposed_provenance_mut(at);
                    world.add(at, scaled(size, scale), 16, std::ptr::null_mut());
                }
            }
            Op::FreeElsewhere { which } => {
                // A heap may be destroyed before the other thread frees the block.
                match world.take(which) {
                    Some(block) if block.heap.is_null() => send.send(Sent(block)).unwrap(),
                    Some(block) => release(block),
                    None => {}
                }
            }
            Op::MallocUncached { size, scale } => {
                let size = scaled(size, scale);
                world.add(heap::malloc_uncached(size), size, 16, std::ptr::null_mut());
            }
            Op::FreeUncached { which } => match world.take(which) {
                Some(block) if block.heap.is_null() => {
                    block.check(block.size);
                    // SAFETY: the block is in use, and freed once.
                    unsafe { heap::free_uncached(block.at) };
                }
                Some(block) => release(block),
                None => {}
            },
            Op::Move => {
                for which in (0..world.blocks.len()).rev() {
                    if !heap::should_move(world.blocks[which].at) {
                        continue;
                    }
                    let block = world.take_at(which).unwrap();
                    assert!(block.heap.is_null(), "a block of a heap is to leave it");
                    let new = heap::malloc_uncached(block.size);
                    block.check(block.size);
                    // SAFETY: the block is in use, and freed once.
                    unsafe { heap::free_uncached(block.at) };
                    world.add(new, block.size, 16, std::ptr::null_mut());
                }
            }
            Op::HeapCreate if world.heaps.len() < 4 => {
                let heap = Heap::create();
                if !heap.is_null() {
                    world.heaps.push(heap);
                }
            }
            Op::HeapAlloc { which, size, scale } if !world.heaps.is_empty() => {
                let heap = world.heaps[which as usize % world.heaps.len()];
                let size = scaled(size, scale);
                // SAFETY: the heap exists.
                let at = unsafe { Heap::alloc(heap, size, 16, false) };
                world.add(at, size, 16, heap);
            }
            Op::HeapDestroy { which } if !world.heaps.is_empty() => {
                let heap = world.heaps.swap_remove(which as usize % world.heaps.len());
                let (gone, kept): (Vec<_>, Vec<_>) =
                    world.blocks.drain(..).partition(|block| block.heap == heap);
                world.blocks = kept;
                for block in &gone {
                    block.check(block.size);
                    world.ranges.remove(&(block.at as usize));
                }
                // SAFETY: the heap exists; none of its blocks is used any more,
                // and none was given to the other thread.
                unsafe { Heap::destroy(heap) };
            }
            Op::HeapFree { which } => match world.take(which) {
                Some(block) if !block.heap.is_null() => {
                    block.check(block.size);
                    // SAFETY: the heap exists, and the block is its own, in use,
                    // and freed once.
                    unsafe { Heap::free(block.heap, block.at) };
                }
                Some(block) => release(block),
                None => {}
            },
            Op::Trim { keep } => {
                heap::trim(usize::from(keep) << 8);
            }
            Op::PurgeDelay { ms } => options::set_purge_delay_ms(ms.into()),
            Op::Describe { address } => {
                let _ = describe(std::ptr::without_provenance(address as usize));
            }
            _ => {}
        }
    }
    for block in std::mem::take(&mut world.blocks) {
        release(block);
    }
    drop(send);
    other.join().unwrap();
    let mut now = Stats::zero();
    assert!(stats::snapshot(&mut now));
    assert_eq!((now.live_blocks, now.live_bytes, now.large_blocks), (0, 0, 0));
    assert_eq!(now.rss_parts(), now.rss);
    for heap in world.heaps {
        // SAFETY: the heap exists, and none of its blocks is in use.
        unsafe { Heap::destroy(heap) };
    }
    heap::trim(0);
    // A walk counts free blocks in caches as in use; the statistics count them as cached.
    let (mut blocks, mut bytes) = (0, 0);
    heap::walk(&mut |block| {
        blocks += u64::from(block.in_use);
        bytes += if block.in_use { block.size as u64 } else { 0 };
        true
    });
    assert!(stats::snapshot(&mut now));
    assert_eq!(bytes, now.caches_bytes, "the walk found a block in use");
    assert!(blocks <= RESERVED, "{blocks} blocks in caches after a trim");
});
