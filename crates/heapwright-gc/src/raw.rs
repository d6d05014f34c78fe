//! The interface for runtimes: everything by address, nothing checked.
//!
//! ```text
//!   Heap::new(Options, Runtime) --> Heap --attach--> Mutator --alloc--> *mut u8
//!                                                       |
//!                       runtime.trace(tracer, object) <-+ collects
//! ```
//!
//! **The runtime's duties**, to which every function here refers:
//!
//! 1. *Roots.* Where anything may be collected (an allocation, a safepoint, a step), every object
//!    that is still wanted is led to by a handle, by what
//!    [`Runtime::roots`](Runtime#structfield.roots) reports, by a C stack that is scanned, or by
//!    such an object.
//! 2. *Tracing.* [`Runtime::trace`](Runtime#structfield.trace) reports every reference that an
//!    object holds, by the address that `alloc` gave. It changes nothing, allocates nothing, and
//!    does not call the heap but through its tracer. It is called from any thread, by several at a
//!    time: mutators, and threads of the heap's own that only mark.
//! 3. *Initialising.* What is traced arrives zeroed (unless the heap is `uncleared`), and zero is
//!    something that `trace` understands.
//! 4. *Barriers.* On a heap that is `incremental` or has `generations`, every store of a reference
//!    into an object that may have been seen by a safepoint goes through [`Mutator::write`], or is
//!    followed by [`Mutator::shade`] before the next safepoint.
//! 5. *Safepoints.* A thread that is attached allocates, polls, or is away ([`Mutator::away`])
//!    within reasonable time, or all others wait for it. A mutator is used by one thread at a
//!    time, and a thread has one mutator a heap.
//! 6. *Freeing.* [`Runtime::free`](Runtime#structfield.free) looks at no other object, allocates
//!    nothing, and does not unwind; nor does any other callback.
//!
//! **Moving.** On a heap that is [`compact`](Options#structfield.compact), or directed to
//! ([`Mutator::compact`]), objects move, where anything may be collected. Then also:
//!
//! 7. *Slots.* An object that may move is led to by handles and by slots that are reported as such
//!    ([`Tracer::mark_slot`], [`Tracer::mark_range`], weak ones), and by nothing else that is used
//!    afterwards. What is reported by value ([`Tracer::mark`]), may be led to by a stack that is
//!    scanned, or is pinned, stays.
//!
//! The heap's duties: what roots lead to is never freed, and moved only as above; what they do not
//! lead to is freed, at the latest in the second collection that begins afterwards; a step ends
//! when its budget does, within what one object takes to be traced or freed; no callback is called
//! under a lock that an allocation would need.
//!
//! - `heap`, `mutator`: the two objects; the mutator's methods stand by concept in `barriers`,
//!   `roots`, `finalizers`, `guardians`, `safepoints`, `collecting` and `inspection`
//! - `states`: what threads are at; what a heap is made with stands in `options` and `runtime`
//! - [`shown`]: the offsets that the C header relies on

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
