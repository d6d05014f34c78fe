//! The structs of `include/heapwright.h`.
//!
//! They are written out here because programs compiled long ago rely on them. The library may
//! reorder its structs; a struct of the header may only grow at its end. `const` assertions tie
//! [`Statistics`] to the library's own struct; a conversion ties [`Description`].

use core::ffi::{c_char, c_void};

use crate::mirror::{field, mirror};
use heapwright::BlockState as LibraryState;
use heapwright::Kind as LibraryKind;
use heapwright_record::Stats;

/// A first-class heap: its blocks can be freed all at once. Make one with hw_heap_new.
pub struct Heap {
    _opaque: [u8; 0],
}

/// Blocks and their requested bytes.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Amount {
    /// Blocks.
    pub blocks: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The result of a leak check.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct LeakCheck {
    /// Definitely lost: nothing leads to these blocks.
    pub definite: Amount,
    /// Only definitely lost blocks lead to these blocks.
    pub indirect: Amount,
    /// Possibly lost: only words that are perhaps no pointers lead to these blocks.
    pub possible: Amount,
    /// The program still has a way to these blocks.
    pub reachable: Amount,
}

/// The kind of memory at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Kind {
    /// Memory that heapwright does not manage: a stack, a library's data,
    /// another allocator's block, nothing at all.
    Foreign = 0,
    /// heapwright's memory, and in no block now.
    Free = 1,
    /// A slot of a slab: a small or medium block, in use or free.
    Small = 2,
    /// A large block.
    Large = 3,
    /// heapwright's own tables and records.
    Metadata = 4,
    /// An object of a pool, in use or free; owner is the pool's number.
    Pool = 5,
    /// Memory of an arena.
    Arena = 6,
    /// A block of a debug heap; freed ones are known, too.
    Debug = 7,
    /// A page of a collected heap; owner is the heap's number.
    Collected = 8,
}

/// Whether a block is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum State {
    /// Not known without a search, or there is no block.
    Unknown = 0,
    /// The program holds the block.
    InUse = 1,
    /// The block is free.
    Free = 2,
}

/// The answer of hw_describe.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Description {
    /// The kind of memory.
    pub kind: Kind,
    /// Whether the memory is in use.
    pub state: State,
    /// The block's address; NULL if the address is in no block.
    pub block: *const c_void,
    /// The block's usable bytes, at least the requested size. 0 if the address is in no block.
    pub size: usize,
    /// The address's offset in its block, in bytes.
    pub offset: usize,
    /// The number of the cache, heap or pool that owns the block; 0 if none does.
    pub owner: u32,
    /// The number of the block's size class, for small blocks.
    pub size_class: u32,
    /// The kind in words, for messages. A constant: neither change nor free it.
    pub words: *const c_char,
}

/// One block, as hw_heap_walk visits it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Block {
    /// The block's address.
    pub address: *const c_void,
    /// The block's size in bytes.
    pub size: usize,
    /// The number of the cache or heap that owns the block.
    pub owner: u32,
    /// Whether the program holds the block. Approximate for blocks of other threads: a free block
    /// that waits in a thread's cache may be shown as in use.
    pub in_use: bool,
}

/// The function that hw_heap_walk calls for each block. Return false to stop the walk.
pub type Visitor = Option<unsafe extern "C" fn(block: *const Block, context: *mut c_void) -> bool>;

/// The kinds in words, in the order of their numbers.
const WORDS: [&core::ffi::CStr; 9] = [
    c"not heapwright's memory",
    c"free memory of heapwright",
    c"a small block",
    c"a large block",
    c"heapwright's own metadata",
    c"memory of a pool",
    c"memory of an arena",
    c"a block of the debug heap",
    c"a page of a collected heap",
];

const POISONED: &core::ffi::CStr = c"a poisoned byte in a block of the debug heap";

impl From<heapwright::Description> for Description {
    fn from(library: heapwright::Description) -> Self {
        let (kind, words) = match library.kind {
            LibraryKind::Foreign => (Kind::Foreign, WORDS[0]),
            LibraryKind::Free => (Kind::Free, WORDS[1]),
            LibraryKind::Small => (Kind::Small, WORDS[2]),
            LibraryKind::Large => (Kind::Large, WORDS[3]),
            LibraryKind::Metadata => (Kind::Metadata, WORDS[4]),
            LibraryKind::Pool => (Kind::Pool, WORDS[5]),
            LibraryKind::Arena => (Kind::Arena, WORDS[6]),
            LibraryKind::Debug => (Kind::Debug, WORDS[7]),
            LibraryKind::Collected => (Kind::Collected, WORDS[8]),
        };
        let state = match library.state {
            LibraryState::Unknown => State::Unknown,
            LibraryState::InUse => State::InUse,
            LibraryState::Free => State::Free,
        };
        Self {
            kind,
            state,
            block: core::ptr::without_provenance(library.block),
            size: library.size,
            offset: library.offset,
            owner: library.owner,
            size_class: library.class,
            words: if library.is_poisoned { POISONED } else { words }.as_ptr(),
        }
    }
}

/// The number of buckets in the histogram of sizes.
pub const SIZE_BUCKETS: usize = 48;

/// A process's memory at one moment. All sizes are in bytes. The nine parts
/// rss_live to rss_not_ours add up to rss.
///
/// Later versions add fields at the end: give hw_get_stats the size of the
/// struct you were compiled with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Statistics {
    /// The process that was measured.
    pub pid: u64,
    /// Nanoseconds from the heap's first allocation to the snapshot.
    pub elapsed_ns: u64,
    /// 1 if every allocation was counted (option stats=exit). Sizes, rounding and totals are known
    /// only then. 0 if only the heap's own records were read.
    pub detailed: u64,
    /// Resident bytes of the whole process now.
    pub rss: u64,
    /// The highest rss the kernel saw in this process image.
    pub peak_rss: u64,
    /// Part of rss: bytes that the program requested and holds.
    pub rss_live: u64,
    /// Part of rss: slot sizes less requested sizes.
    pub rss_rounding: u64,
    /// Part of rss: free or never used slots in slabs that hold live blocks.
    pub rss_partial: u64,
    /// Part of rss: free blocks waiting in thread caches.
    pub rss_caches: u64,
    /// Part of rss: blocks freed by another thread, not yet taken back.
    pub rss_remote: u64,
    /// Part of rss: free pages that will be given back after the purge delay.
    pub rss_lazy: u64,
    /// Part of rss: the heap's tables, records and caches.
    pub rss_metadata: u64,
    /// Part of rss: pools and arenas, with the free memory in them.
    pub rss_pools: u64,
    /// Part of rss: code, stacks, files, other allocators.
    pub rss_not_ours: u64,
    /// Bytes in blocks the program holds, counted as the slots that carry them.
    pub live_bytes: u64,
    /// Blocks the program holds.
    pub live_blocks: u64,
    /// Part of live_bytes: blocks of more than 32 KiB.
    pub large_bytes: u64,
    /// Part of live_blocks: blocks of more than 32 KiB.
    pub large_blocks: u64,
    /// Highest live_bytes, if detailed.
    pub peak_live_bytes: u64,
    /// Blocks allocated since the start, if detailed.
    pub allocations: u64,
    /// Blocks freed since the start, if detailed.
    pub frees: u64,
    /// Bytes requested since the start, if detailed.
    pub requested_bytes: u64,
    /// Frees of blocks that belong to another allocator, passed on to it.
    pub foreign_frees: u64,
    /// Address space the heap may use.
    pub window_bytes: u64,
    /// Part of window_bytes made writable so far.
    pub committed_bytes: u64,
    /// Bytes given back to the kernel since the start.
    pub purged_bytes: u64,
    /// Thread caches in use.
    pub caches_live: u64,
    /// Thread caches whose thread has ended, with blocks that are still held.
    pub caches_orphaned: u64,
    /// Thread caches ever made.
    pub caches_made: u64,
    /// First-class heaps in use.
    pub heaps_live: u64,
    /// Pages that back memory, in bytes (4096, 16384 or 65536).
    pub page_size: u64,
    /// Caches shared by threads, or per-CPU caches; 0 if each thread has its own.
    pub caches_shared: u64,
    /// Part of caches_shared: those used so far.
    pub caches_touched: u64,
    /// Free bytes in shared caches, in CPUs' arrays and in central lists.
    pub caches_bytes: u64,
    /// Free bytes in the largest shared cache.
    pub caches_largest: u64,
    /// Tries of a shared cache that failed, because another thread held it.
    pub cache_failed_tries: u64,
    /// Times a thread had to wait for a shared cache.
    pub cache_waits: u64,
    /// Completed restartable sequences, if detailed.
    pub rseq_commits: u64,
    /// Restartable sequences that were interrupted, and had no effect.
    pub rseq_aborts: u64,
    /// Operations that a CPU's lock served because a sequence was interrupted.
    pub rseq_fallbacks: u64,
    /// The process's name as the kernel knows it, a string of at most 15 bytes.
    pub name: [c_char; 16],
    /// Allocations by requested size: bucket 0 counts sizes 0 and 1, bucket i sizes above 2^(i-1)
    /// and up to 2^i; the last bucket takes all sizes above. Zero unless detailed.
    pub sizes: [u64; SIZE_BUCKETS],
}

// The library keeps the name in two words, whose bytes have the order of the field `name`.
const _: () = assert!(cfg!(target_endian = "little"));
const _: () = assert!(field!(Statistics, name).0 == field!(Stats, name_low).0);
const _: () = assert!(field!(Statistics, name).0 + 8 == field!(Stats, name_high).0);
const _: () = assert!(field!(Statistics, name).1 == 16);

mirror! {
    Statistics, Stats;
    pid elapsed_ns detailed rss peak_rss rss_live rss_rounding rss_partial rss_caches rss_remote
    rss_lazy rss_metadata rss_pools rss_not_ours live_bytes live_blocks large_bytes large_blocks
    peak_live_bytes allocations frees requested_bytes foreign_frees window_bytes committed_bytes
    purged_bytes caches_live caches_orphaned caches_made heaps_live page_size
    caches_shared caches_touched caches_bytes caches_largest cache_failed_tries cache_waits
    rseq_commits rseq_aborts rseq_fallbacks
    sizes; name; name_low name_high
}
