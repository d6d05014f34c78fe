//! The fast heap: what `malloc` means when nothing else was asked for, and how other modes take its
//! calls.
//!
//! ```text
//!   start, fork, control                beginnings, ends, tables; what a program says of the whole heap
//!        |
//!   observed                            around another way: drawn blocks, counts, trace, tallies
//!        |
//!   modes                               hardened, debugged, passed on, late
//!        |
//!   resize ----> fast                   another size; malloc and free -> lists; else one call by a table
//!        |        |
//!        +------> own                   a thread's own cache
//!                  |
//!        shared, cpu, foreign           caches that threads share; a block by its entry   (these name each other)
//!                  |
//!        drawn --> large --> words      samples, guarded blocks; sources, large blocks; a thread's words
//! ```
//!
//! A thread's fast word leads to a hot part, and that to a table of functions for all that its
//! lists do not serve (`Serve`). At first it leads to the *sentinel*, whose table decides once what
//! the thread is to have. So no function asks which mode the process is in. Which call it was
//! (malloc, new, a sized delete) is told by each call itself: see `request`. Arrows point down, but
//! for those of three files that name each other, and of `start`, `fork` and `control`.
//!
//! What `free` does is decided by the *block's* record, never by the process's
//! mode: blocks that were born before the options were read, or in another
//! heap, come back through the same `free`.
//!
//! The functions here are raw: they take and return addresses, never panic,
//! and end the process with one line where a pointer is misused. The C layer
//! and the adapters are thin coats over them.
//!
//! ```
//! use heapwright::heap;
//!
//! let block = heap::malloc(100);
//! assert!(!block.is_null());
//! // SAFETY: the block is ours, and has room for 100 bytes.
//! unsafe { block.write_bytes(7, 100) };
//! // SAFETY: the block is ours.
//! let block = unsafe { heap::realloc(block, 1000) };
//! // SAFETY: the block is ours, and freed once.
//! unsafe { heap::free(block) };
//! ```

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
#[doc(hidden)]
pub mod assembly;
mod control;
mod cpu;
mod drawn;
mod fast;
mod foreign;
mod fork;
mod large;
mod modes;
mod observed;
mod own;
mod resize;
mod shared;
mod start;
mod words;

pub use crate::extent::{
    Access, UNBOUNDED, checks_bounds, has_debugged_room, has_room, is_outside, out_of_bounds, room,
};
#[cfg(any(test, feature = "observe"))]
#[doc(hidden)]
pub use crate::hooks::observe;
pub use crate::hooks::{
    block_history, debug_at_exit, debug_has_stack, debug_is_interrupted, debug_looks_at_end,
    debug_prepare, debugging, fault, forget_code, guarding, is_guarded, keep, keep_new,
    lift_guards, poison, poisoned_bytes, put_guard_back, put_guards_back, remember_code,
};
pub use crate::request::{ALIGNED, MALLOC, NEW, NEW_ARRAY, Origin, RUST};
#[cfg(feature = "debug")]
pub use crate::tallies::{Allocations, CannotCount, count_sites};
pub use crate::trace::{trace_at_exit, traces};
pub use crate::verdict::Verdict;
pub use crate::walk::{Block, walk};
pub use control::{Heap, free_uncached, malloc_uncached, realloc_to_nothing, should_move};
pub use control::{comes_into_a_group, hardened_at_exit, hardens, keeps_tokens_apart};
pub use control::{give_up_reserve, good_size, limit_address_space, owns, take_over, trim};
pub use fast::{
    calloc, calloc_aligned, calloc_aligned_for, free, free_aligned_from, free_from, free_sized,
    free_sized_aligned_from, free_sized_fast, free_sized_from, malloc, malloc_aligned,
    malloc_aligned_fast, malloc_aligned_for, malloc_fast, malloc_medium_fast,
};
pub use foreign::usable_size;
pub use observed::allocate_of_token;
pub use resize::{realloc, realloc_sized_from};
pub use shared::raise_shared_caches;
pub use start::forward_sized_frees;
#[cfg(feature = "debug")]
pub use start::{count_begin, count_end};

pub(crate) use crate::cache::counters::totals;
pub(crate) use control::live as heaps_live;
#[cfg(feature = "debug")]
pub(crate) use drawn::{By, end_sampling, end_sampling_by, samples_by};
pub(crate) use foreign::passed_on;
#[cfg(all(test, not(miri)))]
pub(crate) use start::SHARING;
#[cfg(feature = "debug")]
pub(crate) use start::begin_sampling;
pub(crate) use start::{has_started, publish, publish_own};

use crate::os;
use modes::Front;

// `used`: linkers that read each library once must take this file along, for it defines
// the words that locks ask for, and those are in the library behind this one.
#[used]
static SENTINEL: Front = Front::new(&start::FIRST);

// Every thread's fast word leads there until the thread has made its first call.
os::tls::define_words!(SENTINEL);

#[cfg(test)]
mod tests;
