//! Finds the state of the calling thread, or the common state.
//!
//! ```text
//!   thread index --> its state is free: enter it              two loads and a store
//!                    there is none yet: make it
//!                    it is busy, or there is no index: the common state, under its lock
//! ```
//!
//! Called by the rest of the heap, and by `scope`, `process` and `unprotect`.

use core::mem;

use crate::chunk::metadata;
use crate::registry::thread_index::{self, MOST_THREADS};
use crate::sync;
use crate::sync::atomic::Ordering;

use super::super::scope;
use super::super::thread_state::{Mine, ThreadState, system_thread};
use super::Heap;

/// Exclusive access to a state. The value is one word, because every call makes one.
pub(crate) struct EnteredState {
    state: &'static ThreadState,
}

impl Drop for EnteredState {
    #[inline]
    fn drop(&mut self) {
        self.state.leave();
    }
}

impl EnteredState {
    #[inline]
    fn enter(state: &'static ThreadState) -> Option<Self> {
        // `then_some` would drop an unused value, and so leave the state.
        if state.enter() { Some(Self { state }) } else { None }
    }

    #[inline]
    pub(super) fn state(&self) -> &'static ThreadState {
        self.state
    }

    #[inline]
    pub(crate) fn mine(&mut self) -> &mut Mine {
        // SAFETY: the state is entered, so this is its only `EnteredState`, which stays borrowed
        // for the lifetime of the reference.
        unsafe { self.state.mine() }
    }
}

impl Heap {
    #[inline]
    pub(super) fn state_of(&self, index: usize) -> Option<&'static ThreadState> {
        // SAFETY: the pointer is null or a state, which is never freed.
        unsafe { self.states.get(index)?.load(Ordering::Relaxed).as_ref() }
    }

    /// Returns all states, the common one last.
    pub(super) fn all_states(&self) -> impl Iterator<Item = &'static ThreadState> {
        let used = self.indices_used.load(Ordering::Acquire);
        let states = self.states[..used].iter().map(|state| state.load(Ordering::Acquire));
        let states = states.chain([self.common.load(Ordering::Acquire)]);
        // SAFETY: the pointer is null or a state, which is never freed.
        states.filter_map(|state| unsafe { state.as_ref() })
    }

    /// Returns whether the caller is a signal handler that interrupted a call in its own thread.
    pub(in crate::debug) fn is_entered_here(&self) -> bool {
        self.state_of(thread_index::mine()).is_some_and(ThreadState::is_entered)
    }

    /// Returns whether `mine` belongs to the common state, whose caller may be a signal handler.
    pub(super) fn is_common(&self, mine: &Mine) -> bool {
        // SAFETY: the pointer is null or a state, which is never freed.
        let common = unsafe { self.common.load(Ordering::Relaxed).as_ref() };
        common.is_some_and(|state| state.is_of(mine))
    }

    /// Enters the calling thread's state or the common one. `None` without memory, or if a signal
    /// handler does not get the common state's lock within 200 ms.
    #[inline]
    pub(crate) fn enter(&'static self) -> Option<EnteredState> {
        let index = thread_index::mine();
        if let Some(state) = self.state_of(index)
            && let Some(mut entered) = EnteredState::enter(state)
        {
            let holder = thread_index::holder(index);
            if entered.mine().is_new(holder) {
                self.assign_new(&mut entered, holder);
            }
            return Some(entered);
        }
        self.enter_slow(index)
    }

    #[cold]
    fn enter_slow(&'static self, index: usize) -> Option<EnteredState> {
        let index = if index < MOST_THREADS { Some(index) } else { thread_index::take() };
        if let Some(index) = index {
            let Some(state) = self.state_of(index) else {
                let state = Self::make_state()?;
                // The count comes first, so that a child forked now has no uncounted state.
                self.indices_used.fetch_max(index + 1, Ordering::Release);
                self.states[index].store(state, Ordering::Release);
                return self.enter();
            };
            if let Some(mut entered) = EnteredState::enter(state) {
                self.assign_new(&mut entered, thread_index::holder(index));
                return Some(entered);
            }
        }
        // The thread has no index, or this is a signal handler that interrupted its call.
        let owes = if sync::is_interrupted() {
            // The interrupted thread may hold the common state.
            mem::forget(self.common_order.lock_soon()?);
            true
        } else {
            self.common_order.acquire()
        };
        if self.common.load(Ordering::Relaxed).is_null()
            && let Some(state) = Self::make_state()
        {
            self.common.store(state, Ordering::Release);
        }
        // SAFETY: the pointer is null or a state, which is never freed.
        let Some(state) = (unsafe { self.common.load(Ordering::Relaxed).as_ref() }) else {
            if owes {
                // SAFETY: this call took the lock.
                unsafe { self.common_order.release() };
            }
            return None;
        };
        // The result does not matter: the lock makes this thread the only one here.
        state.enter();
        if owes {
            state.owe(&self.common_order);
        }
        let mut entered = EnteredState { state };
        // The last user may have been another thread.
        let thread = system_thread();
        if entered.mine().is_new(thread) {
            self.assign_known(&mut entered, thread);
        }
        Some(entered)
    }

    fn make_state() -> Option<*mut ThreadState> {
        let state = metadata::alloc(size_of::<ThreadState>(), align_of::<ThreadState>());
        // Zeroed memory is an unused state.
        (!state.is_null()).then_some(state.cast())
    }

    #[cold]
    fn assign_known(&self, entered: &mut EnteredState, thread: u32) {
        match self.threads.known(thread) {
            Some(number) => entered.mine().assign(thread, number),
            None => self.assign_new(entered, thread),
        }
    }

    #[cold]
    fn assign_new(&self, entered: &mut EnteredState, holder: u32) {
        let number = self.threads.number_of(system_thread(), scope::of_this_thread());
        entered.mine().assign(holder, number);
    }

    /// Gives the calling thread a new number, which belongs to the check `scope`.
    pub(in crate::debug) fn enter_scope(&'static self, scope: u32) {
        let index = thread_index::mine();
        let Some(state) = self.state_of(index) else { return };
        if let Some(mut entered) = EnteredState::enter(state) {
            // A new holder gets its number at its first call.
            if !entered.mine().is_new(thread_index::holder(index)) {
                entered.mine().thread = self.threads.number_of(system_thread(), scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::alloc::{GlobalAlloc, Layout};

    use crate::debug::{Config, DebugHeap, Guard};

    #[test]
    fn handlers_leave_the_states_that_they_interrupt_entered() {
        let owner = DebugHeap::new(Config { quiet: true, guard: Guard::Never, ..Config::DEFAULT });
        // SAFETY: the size is not 0.
        let block = unsafe { owner.alloc(Layout::new::<u64>()) };
        let heap = owner.made().unwrap();
        let own = heap.enter().unwrap();
        for _ in 0..2 {
            let mut common = heap.enter().unwrap();
            assert!(heap.is_common(common.mine()));
            assert!(heap.enter().is_none(), "it does not wait for its own thread");
            drop(common);
            assert!(heap.is_entered_here());
        }
        drop(own);
        assert!(!heap.is_entered_here());
        // SAFETY: the block is ours.
        unsafe { owner.dealloc(block, Layout::new::<u64>()) };
    }
}
