//! The interface for runtimes: it takes addresses, and checks none.
//!
//! ```text
//!   Heap::new(Options, Runtime) --> Heap --attach--> Mutator --alloc--> *mut u8
//!                                                       |
//!                       runtime.trace(tracer, object) <-+ collects
//! ```
//!
//! **The runtime's duties**, to which every function here refers:
//!
//! 1. *Roots.* At each point that may collect (an allocation, a safepoint, a step), every object
//!    still in use is reachable. A handle, a report of
//!    [`Runtime::roots`](Runtime#structfield.roots), a scanned C stack or another reachable object
//!    leads to it.
//! 2. *Tracing.* [`Runtime::trace`](Runtime#structfield.trace) reports every reference that an
//!    object holds, by the address that `alloc` gave. It changes and allocates nothing, and calls
//!    the heap only through its tracer. Several threads may call it at once: mutators, and threads
//!    of the heap's own that only mark.
//! 3. *Initialising.* A traced object is zeroed (unless the heap is `uncleared`), and `trace`
//!    accepts zeros.
//! 4. *Barriers.* In a heap that is `incremental` or has `generations`, [`Mutator::write`] stores
//!    each reference, or [`Mutator::shade`] or [`Mutator::touch`] reports the store before the next
//!    safepoint. Objects made since the last safepoint, and unprotected ones, need no report.
//! 5. *Safepoints.* An attached thread allocates, polls, or leaves ([`Mutator::away`]) within
//!    reasonable time, or all others wait for it. One thread at a time uses a mutator. A thread
//!    enters a heap with one mutator at a time.
//! 6. *Freeing.* [`Runtime::free`](Runtime#structfield.free) reads no other object, and allocates
//!    nothing. No callback unwinds.
//! 7. *Moving.* This duty holds for a heap that is [`compact`](Options#structfield.compact), or
//!    whose runtime calls [`Mutator::compact`], [`Mutator::compact_all`] or
//!    [`Mutator::ask_compact`]. There, objects may move at each point that may collect. A runtime
//!    reaches a movable object only through handles, reported slots ([`Tracer::mark_slot`],
//!    [`Tracer::mark_range`], weak ones) and references it updates ([`Tracer::mark_movable`]). It
//!    uses no other copy of the address. An object does not move if it is pinned, reported by
//!    value ([`Tracer::mark`]), or perhaps referenced from a scanned stack.
//!
//! **The heap's duties.** The heap never frees a reachable object, and moves only objects that duty
//! 7 lets it move. The second major collection that begins after an object became unreachable frees
//! it at the latest. (Without generations, all collections are major.) A step ends with its budget,
//! plus the time to report the roots and to trace or free a few objects. No callback runs under a
//! lock that an allocation needs.

mod barriers;
mod collecting;
mod finalizers;
mod guardians;
mod heap;
mod inspection;
mod mutator;
mod roots;
mod safepoints;
pub mod shown;
mod states;

pub use super::options::{Options, STRESS, VERIFY_BARRIERS, VERIFY_HEAP};
pub use super::page::object_kind;
pub use super::runtime::Runtime;
pub use super::tracer::{TraceSlot, Tracer};
pub use heap::Heap;
pub use inspection::object_size;
pub use mutator::Mutator;
pub use safepoints::save_and_leave;
pub use states::ThreadState;
