//! A mutator: a thread's access to one heap.
//!
//! ```text
//!   public   poll | barrier | heap | regions: 512 x { next, end, hole, slot, page } | table | ...
//!   private  handshake | tracer | which regions are in use | handles | stack | ...
//! ```
//!
//! A mutator has a region for every page list (see `region`): stretches of free slots, zeroed if
//! their objects are to arrive zeroed. A region has at most 8 KiB, so that it stays in the nearest
//! cache, or one larger slot.
//!
//! The C interface uses the first line of the picture: see `heapwright_gc.h`.

use core::ptr;

use heapwright_substrate::ids::Recycled;
use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::cell::{Num, Ptr};
use super::forks;
use super::handles;
use super::heap::Heap;
use super::layout::{PAGE_LISTS, REGION_BYTES, STEPS};
use super::native_stack::NativeStack;
use super::region::Region;
use super::tracer::Tracer;
use super::weak_cells;
use super::world::Handshake;

const _: () = assert!(size_of::<Region>() == REGION_BYTES);

/// A thread's access to a heap. All-zero bytes: a mutator without a thread.
#[repr(C)]
pub(super) struct Mutator {
    pub(super) poll: AtomicU32,
    pub(super) barrier: AtomicU32,
    pub(super) heap: Ptr<Heap>,
    pub(super) regions: [Region; PAGE_LISTS],
    pub(super) places: [AtomicU16; STEPS],
    /// The address at which the marks of address 0 would be: a bit for 16 bytes.
    pub(super) marks: Ptr<u8>,
    /// The runtime's word.
    pub(super) data: Ptr<core::ffi::c_void>,
    /// The address at which the entry of the unit at address 0 would be. `first_list`: the entry of
    /// a page of the heap's first page list. The C header finds an object's page list by these two.
    pub(super) units: Ptr<u32>,
    pub(super) first_list: AtomicU32,

    pub(super) handshake: Handshake,
    pub(super) tracer: Tracer,
    /// Page lists whose region is in use, as bits.
    pub(super) used: [Num; PAGE_LISTS / 64],
    pub(super) handles: handles::Own,
    pub(super) weak: weak_cells::Own,
    /// The depth of `defer` calls. Within these, no allocation collects.
    pub(super) deferred: Num,
    /// The `defer_majors` calls by this mutator, less the `resume_majors` calls. May wrap below 0.
    pub(super) scopes: Num,
    /// Bytes allocated while collections were held.
    pub(super) unpaid: Num,
    /// External bytes that the runtime has added, and that are not paid for yet.
    pub(super) owed: Num,
    pub(super) stack: NativeStack,
    /// The mutator's thread. `how`: how the thread got the mutator (`CAME`, `ATTACHED`, `ENDED`).
    pub(super) thread: Num,
    pub(super) how: Num,
    /// Whether any thread may enter with the mutator while it is away (see `attach_away`).
    pub(super) may_move: Num,
    /// Whether the thread has left its other mutators because it waits for this mutator's heap.
    pub(super) left_others: Num,
    /// The thread's number in the system, and above it the number of forks when it was read, plus 1
    /// (see `forks`). 0: unknown.
    system_thread: Num,
    /// The mutator's number among all mutators.
    pub(super) number: Num,
}

pub(super) static MUTATORS: Recycled<Mutator> = Recycled::new();

/// Takes the lock of all mutators, which this thread holds across a fork.
pub(super) fn before_fork() {
    MUTATORS.before_fork();
}

/// Releases the lock of all mutators, in the parent and in the child of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: this thread, or its original in the parent, took the locks before the fork.
    unsafe { MUTATORS.after_fork() };
}

impl Mutator {
    pub(super) fn clear(&self) {
        self.poll.store(0, Ordering::Relaxed);
        self.barrier.store(0, Ordering::Relaxed);
        self.regions.iter().for_each(Region::close);
        self.used.iter().for_each(|word| word.set(0));
        self.deferred.set(0);
        self.scopes.set(0);
        self.owed.set(0);
        self.unpaid.set(0);
        self.data.set(ptr::null_mut());
        self.system_thread.set(0);
        self.how.set(0);
        self.may_move.set(0);
        self.left_others.set(0);
        self.stack.clear();
        self.handles.balance.set(0);
        self.tracer.room.forget();
    }

    /// Keeps `objects` alive in this collection, because they are being registered. If the
    /// collection has begun to settle, its visits would miss the new registration.
    pub(super) fn keep_this_time<const N: usize>(&self, objects: [*mut u8; N]) {
        let heap = self.heap();
        if heap.trace.settling.is_begun() {
            for object in objects.into_iter().filter(|&object| heap.space.is_unmarked(object)) {
                self.tracer.shade(object);
            }
        }
    }

    pub(super) fn note_thread(&self) {
        let thread = os::thread_token();
        if self.thread.replace(thread) != thread {
            self.how.set(0);
            self.system_thread.set(0);
            // Another thread's frames do not belong to this thread.
            self.stack.clear();
        }
    }

    pub(super) fn system_thread(&self) -> u32 {
        let (known, process) = (self.system_thread.get(), forks::forks() + 1);
        if known >> 32 == process {
            return known as u32;
        }
        let thread = os::thread_id();
        self.system_thread.set(process << 32 | thread as usize);
        thread
    }

    /// The mutator of a handshake.
    ///
    /// # Safety
    ///
    /// The handshake is a mutator's.
    pub(super) unsafe fn of(handshake: &Handshake) -> &'static Self {
        // SAFETY: by the contract, `join` set the owner; mutators are never freed.
        unsafe { &*handshake.owner().cast() }
    }

    #[inline]
    pub(super) fn heap(&self) -> &'static Heap {
        // SAFETY: `join` set the pointer, and heaps are never freed.
        unsafe { &*self.heap.get() }
    }
}
