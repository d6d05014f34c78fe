//! Ticks: what is done now and then by whichever thread comes by, for there is no background
//! thread.
//!
//! ```text
//!   slow paths   -- pass(now) -->  is it time?  -- one thread -->  a task, which says when it wants to come next
//! ```
//!
//! A slow path passes once in each tick of the coarse clock, with its cache's lock held: a task
//! waits for no lock of a cache, and takes microseconds. Nothing is done where the thread holds any
//! other lock (or is a signal handler's, which may have interrupted one that does), nor where a
//! fork holds the locks.
//!
//! Tasks are set by modules above, which the slow paths do not know.
//!
//! Called by `cache` ([`pass`]) and `debug` ([`come_by`]), by `memory_limit` and `chunk`, and by
//! those whose tasks they are: `status` and `limit`.

use core::cell::UnsafeCell;
use core::mem;
use core::ptr;

use crate::os;
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// Is told the time in milliseconds; returns after how many it wants to be called again.
pub type Task = fn(u32) -> u32;

/// Whose task it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// What the process shows of itself.
    Status,
    /// How near the memory limit is.
    Limit,
}

/// A task, and when it is to be done next, in milliseconds.
struct Place {
    task: AtomicPtr<()>,
    next: AtomicU32,
}

/// No task is done later than after so many milliseconds.
const FAR: u32 = 10_000;
/// No time.
const AT_ONCE: u32 = 0;

static PLACES: [Place; 2] =
    [const { Place { task: AtomicPtr::new(ptr::null_mut()), next: AtomicU32::new(AT_ONCE) } }; 2];

/// Has a task done by whoever passes next, and then as it says.
#[inline]
pub fn begin(whose: Whose, task: Task) {
    let place = &PLACES[whose as usize];
    place.next.store(AT_ONCE, Ordering::Relaxed);
    place.task.store(task as *mut (), Ordering::Release);
}

/// Has another task done in the place of one that calls this, which says when.
pub fn go_on_with(whose: Whose, task: Task) {
    PLACES[whose as usize].task.store(task as *mut (), Ordering::Release);
}

/// Has no task done from now on.
pub fn end(whose: Whose) {
    PLACES[whose as usize].task.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Has a task done by whoever passes next, if there is one.
pub fn hurry(whose: Whose) {
    PLACES[whose as usize].next.store(AT_ONCE, Ordering::Relaxed);
}

/// Whether a task has not been done for the first time, which is to be soon: later the program may
/// be in a sandbox.
#[inline(always)]
pub fn is_first() -> bool {
    let place = &PLACES[Whose::Status as usize];
    place.next.load(Ordering::Relaxed) == AT_ONCE && !place.task.load(Ordering::Relaxed).is_null()
}

/// In a forked child: a task that another thread was at is done anew.
pub fn forget_after_fork() {
    for place in &PLACES {
        place.next.store(AT_ONCE, Ordering::Relaxed);
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// 1, and one more with each fork that this process comes from.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Whether the process shows itself: slow paths see to it then that a quiet program's next
/// operation comes by, too.
#[inline(always)]
pub fn has_status() -> bool {
    !PLACES[Whose::Status as usize].task.load(Ordering::Relaxed).is_null()
}

/// Whether a task has asked for all free memory to go back.
static TRIM: AtomicBool = AtomicBool::new(false);

/// Has the slow path that runs this task give free memory back. (The task does not know which cache
/// that slow path holds.)
pub fn ask_to_trim() {
    TRIM.store(true, Ordering::Relaxed);
}

/// Whether the caller, a slow path after [`pass`], is to give free memory back.
#[inline(always)]
pub fn is_to_trim() -> bool {
    TRIM.load(Ordering::Relaxed) && TRIM.swap(false, Ordering::Relaxed)
}

/// Does the tasks for which it is time, for a caller that does not know the time.
#[inline]
pub fn come_by() {
    if PLACES.iter().any(|place| !place.task.load(Ordering::Relaxed).is_null()) {
        pass(os::coarse_ms());
    }
}

/// Does the tasks for which it is time.
#[inline(always)]
pub fn pass(now: u32) {
    for place in &PLACES {
        let next = place.next.load(Ordering::Relaxed);
        let task = place.task.load(Ordering::Acquire);
        // (Far behind is far ahead, once the clock has gone around.)
        let is_ahead = next != AT_ONCE && (1..=FAR).contains(&next.wrapping_sub(now));
        if !task.is_null() && !is_ahead {
            run(place, task, now);
        }
    }
}

/// Does the task of the memory limit, if it was hurried: the heap has just grown, and may not come
/// by a slow path before the program has filled what it was given.
#[inline]
pub fn catch_up() {
    let place = &PLACES[Whose::Limit as usize];
    let task = place.task.load(Ordering::Acquire);
    if !task.is_null() && place.next.load(Ordering::Relaxed) == AT_ONCE {
        run(place, task, os::coarse_ms());
    }
}

#[cold]
#[inline(never)]
fn run(place: &Place, task: *mut (), now: u32) {
    if sync::is_interrupted() || sync::holds_all() {
        return;
    }
    // One thread at a time: the others find it far ahead.
    let next = place.next.load(Ordering::Relaxed);
    let far = now.wrapping_add(FAR);
    if place.next.compare_exchange(next, far, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: only `begin` and `go_on_with` store there, and they store tasks.
    let task = unsafe { mem::transmute::<*mut (), Task>(task) };
    let after = task(now);
    // One that was hurried meanwhile is done again.
    let again = now.wrapping_add(after.min(FAR)).max(AT_ONCE + 1);
    _ = place.next.compare_exchange(far, again, Ordering::Release, Ordering::Relaxed);
}

/// What a task keeps from one time to the next: for one thread at a time, and no lock, so that a
/// fork need not know of it. In a child that was forked while a thread of the parent's was at it,
/// it begins anew.
pub struct Kept<T> {
    /// The generation of processes whose thread is at it; 0: none is.
    at_it: AtomicU32,
    new: T,
    value: UnsafeCell<T>,
}

// SAFETY: `with` gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Kept<T> {}

impl<T: Copy> Kept<T> {
    /// Begins with `new`.
    pub const fn new(new: T) -> Self {
        Self { at_it: AtomicU32::new(0), new, value: UnsafeCell::new(new) }
    }

    /// Whether a thread is at it.
    pub fn is_in_use(&self) -> bool {
        self.at_it.load(Ordering::SeqCst) == GENERATION.load(Ordering::Relaxed)
    }

    /// Lets `work` change it. `None`: another thread is at it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let me = GENERATION.load(Ordering::Relaxed);
        let at_it = self.at_it.load(Ordering::Relaxed);
        if at_it == me
            || self.at_it.compare_exchange(at_it, me, Ordering::SeqCst, Ordering::Relaxed).is_err()
        {
            return None;
        }
        // SAFETY: no other thread of this process comes here before the word is 0 again, and those
        // of the process that it is a copy of are not here.
        let value = unsafe { &mut *self.value.get() };
        if at_it != 0 {
            *value = self.new;
        }
        let result = work(value);
        self.at_it.store(0, Ordering::Release);
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_done_when_it_is_time() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        pass(1);
        begin(Whose::Limit, |now| {
            DONE.fetch_add(1, Ordering::Relaxed);
            // Not done again inside itself.
            pass(now);
            10
        });
        let at = |now| {
            pass(now);
            DONE.load(Ordering::Relaxed)
        };
        assert_eq!(at(u32::MAX - 5), 1);
        assert_eq!(at(3), 1, "the clock wraps around");
        assert_eq!(at(4), 2);
        assert_eq!(at(5), 2);
        assert_eq!(at(14), 3);
        hurry(Whose::Limit);
        assert_eq!((at(15), at(16)), (4, 4));
        end(Whose::Limit);
        assert_eq!(at(100), 4);
    }

    #[test]
    fn what_is_kept_is_one_threads_at_a_time() {
        let kept = Kept::new(1);
        assert_eq!(
            kept.with(|value| (kept.with(|_| ()), core::mem::replace(value, 2))),
            Some((None, 1))
        );
        assert_eq!(kept.with(|value| *value), Some(2));
        // As in a child of a process in which a thread was at it.
        kept.at_it.store(GENERATION.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        assert_eq!(kept.with(|value| *value), Some(1));
        assert_eq!(kept.at_it.load(Ordering::Relaxed), 0);
    }
}
