//! heapwright's collected heap: it finds unreachable objects, and frees them.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright),
//! which re-exports all its public names as `heapwright::gc`. Use that.**
//!
//! ```text
//!   mutator  a region to bump through, for each pool and kind   allocation: no lock, no list
//!      |
//!   page     pages by pool and kind: those in use, and the      lazy sweeping, growth by pool
//!   lists    empty ones
//!      |
//!   pages    64 KiB of equal slots, bitmaps outside             no header in an object
//!      |
//!   chunk, address map                                          which heap has this address?
//! ```
//!
//! Pages and pools follow Ruby's Variable Width Allocation (Feature #18045, Peter Zhu, Matt
//! Valentine-House, Aaron Patterson). Empty pages, growth by pool and stable heaps follow later
//! versions of Ruby.
//!
//! The parts, each of which knows only the parts before it (`heap` has the picture):
//!
//! - arithmetic and common types: `layout`, `growth`, `plan`, `bits`; `cell`, `array`, `table`,
//!   `waiting`, `locks`, `around`; `abi`, `options`
//! - **space**: `space`, `pages`, `page_lists`, `large`, `free_large`: pages and their lists;
//!   `page`, `held`: the objects of a page, for any thread; `find`, `marks`, `placement`: the
//!   object at an address; `pacing`, `sizing`, `overhead`: how much may be allocated; `phase`: the
//!   phase of a collection
//! - **trace**: `trace`, `runtime`, `tracer`: the tracer and the runtime's callbacks; `marking`,
//!   `gang`, `helpers`, `local_marks`, `mark_chunks`, `bag`: work that marking threads share;
//!   `generations`, `minors`, `remembered`, `stores`, `dirty_slots`: objects that are traced again;
//!   `weak`, `ephemerons`, `weak_cells`, `weak_passes`, `handles`, `by_object`, `finalizers`,
//!   `guardians`, `due`, `unprotected`, `kept`: references that keep objects, and references that
//!   do not; `mark`, `settling`, `stages`, `help`: the loops
//! - **moving**: `moving`, `references`: evacuation of sparse pages
//! - **world**: `world`: how threads stop
//! - `heap` joins these; `mutator`, `region`, `regions`, `native_stack`: a thread's access;
//!   `mutators`, `safepoints`, `attach`, `lifecycle`, `fork`, `forks`: how threads and heaps begin,
//!   stop and end
//! - `cycle`, `sweep`: a collection's steps, and its end; `page_search`, `payment`, `allocation`:
//!   how a thread allocates
//! - `walk`, `ages`, `dump`, `verify`, `statistics`, `pauses`, `event`, `events`, `spans`,
//!   `timeline`: inspection
//! - [`raw`]: the interface for runtimes; the C interface is built on it

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    loom,
    allow(dead_code, unreachable_pub, reason = "loom builds the lock-free parts alone")
)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

#[cfg(not(loom))]
mod abi;
#[cfg(not(loom))]
mod ages;
#[cfg(not(loom))]
mod allocation;
#[cfg(not(loom))]
mod around;
#[cfg(not(loom))]
mod array;
#[cfg(not(loom))]
mod attach;
#[cfg(not(loom))]
mod bag;
mod bits;
#[cfg(not(loom))]
mod by_object;
mod cell;
#[cfg(not(loom))]
mod cycle;
#[cfg(not(loom))]
mod dirty_slots;
#[cfg(not(loom))]
mod due;
#[cfg(not(loom))]
mod dump;
#[cfg(not(loom))]
mod ephemerons;
#[cfg(not(loom))]
mod event;
#[cfg(not(loom))]
mod events;
#[cfg(not(loom))]
mod finalizers;
#[cfg(not(loom))]
mod find;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod forks;
#[cfg(not(loom))]
mod free_large;
mod gang;
#[cfg(not(loom))]
mod generations;
#[cfg(not(loom))]
mod growth;
#[cfg(not(loom))]
mod guardians;
#[cfg(not(loom))]
mod handles;
#[cfg(not(loom))]
mod heap;
mod held;
#[cfg(not(loom))]
mod help;
#[cfg(not(loom))]
mod helpers;
#[cfg(not(loom))]
mod kept;
#[cfg(not(loom))]
mod large;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod lifecycle;
#[cfg(not(loom))]
mod local_marks;
#[cfg(not(loom))]
mod locks;
#[cfg(not(loom))]
mod mark;
#[cfg(not(loom))]
mod mark_chunks;
#[cfg(not(loom))]
mod marking;
#[cfg(not(loom))]
mod marks;
#[cfg(not(loom))]
mod minors;
#[cfg(not(loom))]
mod moving;
#[cfg(not(loom))]
mod mutator;
#[cfg(not(loom))]
mod mutators;
#[cfg(not(loom))]
mod native_stack;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod overhead;
#[cfg(not(loom))]
mod pacing;
#[cfg(not(loom))]
mod page;
#[cfg(not(loom))]
mod page_lists;
#[cfg(not(loom))]
mod page_search;
#[cfg(not(loom))]
mod pages;
#[cfg(not(loom))]
mod pauses;
#[cfg(not(loom))]
mod payment;
#[cfg(not(loom))]
mod phase;
#[cfg(not(loom))]
mod placement;
#[cfg(not(loom))]
mod plan;
#[cfg(not(loom))]
pub mod raw;
#[cfg(not(loom))]
mod references;
mod region;
#[cfg(not(loom))]
mod regions;
#[cfg(not(loom))]
mod remembered;
#[cfg(not(loom))]
mod runtime;
#[cfg(not(loom))]
mod safepoints;
#[cfg(not(loom))]
mod settling;
#[cfg(not(loom))]
mod sizing;
#[cfg(not(loom))]
mod space;
#[cfg(not(loom))]
mod spans;
#[cfg(not(loom))]
mod stages;
#[cfg(not(loom))]
mod statistics;
#[cfg(not(loom))]
mod stores;
#[cfg(not(loom))]
mod sweep;
#[cfg(not(loom))]
mod table;
#[cfg(all(test, not(loom)))]
#[path = "../../heapwright-substrate/src/testing/cases.rs"]
mod testing;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod timeline;
#[cfg(not(loom))]
mod trace;
#[cfg(not(loom))]
mod tracer;
#[cfg(not(loom))]
mod unprotected;
#[cfg(not(loom))]
mod verify;
mod waiting;
#[cfg(not(loom))]
mod walk;
#[cfg(not(loom))]
mod weak;
#[cfg(not(loom))]
mod weak_cells;
#[cfg(not(loom))]
mod weak_passes;
mod world;

#[cfg(not(loom))]
use heapwright_substrate::address_map::{Kind, MAP};
#[cfg(not(loom))]
use heapwright_substrate::describe::{self, BlockState, Description};

#[cfg(not(loom))]
pub use abi::{GC_FREED as FREED, GC_LEAF as LEAF, GC_TRACED as TRACED, GC_USER as USER};
#[cfg(not(loom))]
pub use due::SomeAreDue;
#[cfg(not(loom))]
pub use event::{BEGINS, COMPACTS, ENDS, EVENT_SIZE, Event, MINOR, STOPPED, Span};
#[cfg(not(loom))]
pub use finalizers::{Finalizer, PRIORITIES};
#[cfg(not(loom))]
pub use growth::Decision;
#[cfg(not(loom))]
pub use layout::Layout;
#[cfg(not(loom))]
pub use raw::Tracer;
#[cfg(not(loom))]
pub use runtime::WeakPass;
#[cfg(not(loom))]
pub use sizing::{Outcome, Policy};
#[cfg(not(loom))]
pub use statistics::{PAUSE_BUCKETS, PoolStatistics, Statistics};

#[cfg(not(loom))]
const KIND_MASK: u32 = 7;

/// Describes an address in a page, for a finding or a report.
#[cfg(not(loom))]
static READER: describe::Reader = describe::Reader { read: describe_slot };

#[cfg(not(loom))]
fn describe_slot(head: usize, address: *const u8) -> Description {
    let base = MAP.address_of(head).addr();
    let (_, entry) = MAP.lookup(base);
    let owner = if matches!(entry.kind(), Kind::Collected(_)) { entry.owner() } else { 0 };
    let mut found = Description { owner, ..describe::nothing(describe::Kind::Collected) };
    if let Some(heap) = heap::of(owner)
        && let Some(slot) =
            heap.space.slot_at(head, address.addr(), |page, start| heap.space.holds(page, start))
    {
        found.state = if slot.holds { BlockState::InUse } else { BlockState::Free };
        found.block = base + slot.start;
        found.size = slot.size;
        found.offset = address.addr() - found.block;
    }
    found
}

/// A thread's words, for the unit tests. In other builds, the crate above defines them.
#[cfg(all(test, not(loom)))]
mod words {
    /// The target of a thread's fast word. The tests never read the target.
    #[allow(dead_code, reason = "the words of `os::portable` begin without it")]
    static NOWHERE: usize = 0;

    heapwright_substrate::os::tls::define_words!(NOWHERE);
}
