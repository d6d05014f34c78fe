//! The collected heaps' part in a fork: every world is stopped during the fork.
//!
//! ```text
//!   before   worlds stop -> lock of all heaps -> lock of all mutators -> locks, heap by heap
//! ```
//!
//! A fork in the midst of a sweep would copy a half swept page. So the forking thread first makes
//! all other mutators stop at their safepoints, as a collector does. It holds no lock until they
//! have stopped, because a mutator may wait for any lock before its next safepoint. If a collector
//! or another fork was first, the forking thread stops no heap, and waits (`world::stop_all`).
//!
//! If a mutator blocks without leaving the heap, it may not stop within a second. Then the heap is
//! *poisoned* in the child: it never collects again, and allocates from fresh pages only. A heap
//! that was made during the fork is poisoned, too.
//!
//! The child has the mutators of its thread, and those that were away and belong to no thread. The
//! next sweep finds the free slots of the others' pages.

use heapwright_substrate::describe::{self, Front};
use heapwright_substrate::fork::{self, Handlers, Part};
use heapwright_substrate::os::{self, Exit};
use heapwright_substrate::sync::atomic::{AtomicBool, Ordering};

use super::attach;
use super::forks;
use super::heap;
use super::mutator::{self, Mutator};
use super::world::{self, Handshake, WithWorld};

static HANDLERS: Handlers = Handlers { before, unlock, in_child };

const WAIT_LIMIT: u64 = 1_000_000_000;

/// The heap takes no part in the fork under way: it was not open when the fork began.
const NO_PART: usize = 0;
/// The heap takes part, and its world is stopped.
const STOPPED: usize = 1;
/// The heap takes part, but a mutator did not stop.
const MOVES: usize = 2;

/// From now on, collected heaps take part in forks, and their addresses have descriptions.
pub(super) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if !JOINED.load(Ordering::Acquire) {
        os::on_thread_exit(Exit::Mutators, attach::thread_ends);
        fork::join(Part::Collected, &HANDLERS);
        describe::read_with(Front::Collected, &super::READER);
        JOINED.store(true, Ordering::Release);
    }
}

/// Calls `with` for each heap's world, and for the calling thread's handshake in it, until `with`
/// returns false.
fn each_world(with: WithWorld<'_, 'static>) {
    for heap in heap::all().filter(|heap| heap.is_open()) {
        let own = Mutator::of_this_thread(heap);
        if let Some(own) = own.filter(|own| own.handshake.is_in()) {
            own.stack.note();
        }
        if !with(&heap.world, own.map(|own| &own.handshake)) {
            return;
        }
    }
}

/// Returns a function that returns true for [`WAIT_LIMIT`] from now on.
pub(super) fn wait_limit() -> impl FnMut() -> bool {
    let until = os::now_ns() + WAIT_LIMIT;
    move || os::now_ns() < until
}

fn before() {
    let forker = os::thread_token();
    world::stop_all(forker, &each_world, wait_limit);
    heap::before_fork();
    mutator::before_fork();
    for heap in heap::all() {
        let stopped = heap.world.is_stopped_by(forker);
        heap.fork.part.set(match heap.is_open() {
            false => NO_PART,
            true if stopped => STOPPED,
            true => MOVES,
        });
        if heap.is_open() {
            heap.world.before_fork();
            heap.each_lock(&mut |lock| lock.acquire());
        }
    }
}

/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    for heap in heap::all().filter(|heap| heap.fork.part.get() != NO_PART) {
        // SAFETY: this thread, or its original, took the heap's locks before the fork.
        heap.each_lock(&mut |lock| unsafe { lock.release() });
        // SAFETY: this thread, or its original, took the lock of the members before the fork.
        unsafe { heap.world.after_fork() };
    }
    // (If a heap has ended since its world was stopped, its world must go on, too.)
    heap::all().for_each(|heap| heap.world.let_go(os::thread_token()));
    // SAFETY: this thread, or its original, took the lock of all mutators before the fork.
    unsafe { mutator::after_fork() };
    // SAFETY: this thread, or its original, took the lock of all heaps before the fork.
    unsafe { heap::after_fork() };
}

fn in_child(alone: bool) {
    forks::note();
    if alone {
        return;
    }
    for heap in heap::all().filter(|heap| heap.fork.part.get() != NO_PART) {
        // A poisoned heap stays poisoned, also in children of this child.
        if heap.fork.part.get() == MOVES {
            heap.fork.poisoned.set(1);
        }
        heap.trace.marking.forget_others();
        let stays = |handshake: &Handshake| {
            // SAFETY: a handshake of a heap's world is a mutator's.
            let mutator = unsafe { Mutator::of(handshake) };
            let is_mine = mutator.thread.get() == os::thread_token();
            let is_free = handshake.is_out() && mutator.may_move.get() != 0;
            if is_free && !is_mine {
                mutator.thread.set(0);
                mutator.how.set(0);
                mutator.stack.clear();
            }
            is_mine || is_free
        };
        heap.world.forget_others(stays, |handshake| {
            // SAFETY: a handshake of a heap's world is a mutator's.
            let other = unsafe { Mutator::of(handshake) };
            heap.trace.generations.end_scopes(other.scopes.get());
            // Settles the mutator, so that its objects are found by address.
            other.settle();
            other.each_page_in_use(|page| heap.moving.note_used(&heap.space, page));
            heap.forget_mutator(other);
        });
        // (A thread that the child lacks may have counted a mutator without adding it.)
        let mut mutators = 0;
        heap.each_mutator(|_| mutators += 1);
        heap.space.sizing.mutators.set(mutators);
    }
}

#[cfg(test)]
mod tests {
    use super::super::LEAF;
    use super::super::heap::Heap;
    use super::super::phase::Phase;
    use super::super::raw::{Options, Runtime};
    use super::*;

    #[test]
    fn nothing_moves_in_a_heap_that_was_copied_while_a_mutator_was_at_work() {
        let slot = Heap::make(Options::new(), Runtime::new()).unwrap();
        let heap = &slot.value;
        let mutator = Mutator::attach(heap).unwrap();
        heap.space.cycle.enter(Phase::Moving);
        heap.fork.poisoned.set(1);
        for _ in 0..8 {
            assert!(!mutator.value.alloc(200_000, LEAF as usize).is_null());
            mutator.value.owe(1 << 20);
            assert!(!mutator.value.alloc(100, LEAF as usize).is_null());
        }
        assert_eq!(heap.space.cycle.phase(), Phase::Moving);
        assert!(!heap.is_owed() && heap.step(&mutator.value, 1000), "an idle loop must end");
        heap.space.cycle.enter(Phase::Idle);
        Mutator::detach(mutator);
        Heap::end(slot);
    }
}
