//! Ticks: small tasks that threads on slow paths run, because there is no background thread.
//!
//! ```text
//!   slow paths  -- pass(now) -->  is it time?  -- one thread -->  a task; it returns its next time
//! ```
//!
//! A slow path calls [`pass`] in each tick of the coarse clock, while it holds its cache's lock. So
//! a task must not wait for a cache's lock, and must end within microseconds. No task runs while
//! the thread holds any other lock, during a fork, or in a signal handler.
//!
//! Called by the slow paths of malloc's heaps, by `memory_limit` and `chunk`, and by the modules
//! with tasks: `status`, `limit` and `gc`.

use core::cell::UnsafeCell;
use core::mem;
use core::ptr;

use crate::os;
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// A task. Its argument is the time, and its result the time until its next call, in milliseconds.
pub type Task = fn(u32) -> u32;

/// The module that owns a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// `status`, which shows the process's figures.
    Status,
    /// `limit`, which looks at the memory limit.
    Limit,
    /// `gc`, which gives back empty pages of collected heaps.
    Collected,
}

struct Place {
    task: AtomicPtr<()>,
    next: AtomicU32,
}

/// The longest time until a task's next call, in milliseconds.
const FAR: u32 = 10_000;
const AT_ONCE: u32 = 0;

static PLACES: [Place; 3] =
    [const { Place { task: AtomicPtr::new(ptr::null_mut()), next: AtomicU32::new(AT_ONCE) } }; 3];

/// Sets a task. The next thread that passes runs it.
#[inline]
pub fn begin(whose: Whose, task: Task) {
    let place = &PLACES[whose as usize];
    place.next.store(AT_ONCE, Ordering::Relaxed);
    place.task.store(task as *mut (), Ordering::Release);
}

/// Replaces a task. The running task calls this, and returns the time until the new one's call.
pub fn go_on_with(whose: Whose, task: Task) {
    PLACES[whose as usize].task.store(task as *mut (), Ordering::Release);
}

/// Removes a task.
pub fn end(whose: Whose) {
    PLACES[whose as usize].task.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Makes a task due, if there is one: the next thread that passes runs it.
pub fn hurry(whose: Whose) {
    PLACES[whose as usize].next.store(AT_ONCE, Ordering::Relaxed);
}

/// Whether the task of `status` is due at once: its first run should precede a sandbox.
#[inline(always)]
pub fn is_first() -> bool {
    let place = &PLACES[Whose::Status as usize];
    place.next.load(Ordering::Relaxed) == AT_ONCE && !place.task.load(Ordering::Relaxed).is_null()
}

/// In a forked child: makes all tasks due again.
pub fn forget_after_fork() {
    for place in &PLACES {
        place.next.store(AT_ONCE, Ordering::Relaxed);
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// 1, plus the number of forks that led to this process.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Whether the process shows its figures. If so, a slow path of a quiet program also forces the
/// next operation onto a slow path.
#[inline(always)]
pub fn has_status() -> bool {
    !PLACES[Whose::Status as usize].task.load(Ordering::Relaxed).is_null()
}

static TRIM: AtomicBool = AtomicBool::new(false);

/// Called by a task: makes the slow path that runs the task give free memory back.
pub fn ask_to_trim() {
    TRIM.store(true, Ordering::Relaxed);
}

/// Whether the caller, a slow path after [`pass`], must give free memory back. This waits for
/// locks, so a signal handler leaves it to a later slow path.
#[inline(always)]
pub fn is_to_trim() -> bool {
    TRIM.load(Ordering::Relaxed)
        && !sync::is_interrupted()
        && !sync::holds_all()
        && TRIM.swap(false, Ordering::Relaxed)
}

/// Runs the tasks that are due, for a caller that does not know the time.
#[inline]
pub fn come_by() {
    if PLACES.iter().any(|place| !place.task.load(Ordering::Relaxed).is_null()) {
        pass(os::coarse_ms());
    }
}

/// Runs the tasks that are due.
#[inline(always)]
pub fn pass(now: u32) {
    for place in &PLACES {
        let next = place.next.load(Ordering::Relaxed);
        let task = place.task.load(Ordering::Acquire);
        // The clock wraps around, so a time far behind looks like a time far ahead.
        let is_ahead = next != AT_ONCE && (1..=FAR).contains(&next.wrapping_sub(now));
        if !task.is_null() && !is_ahead {
            run(place, task, now);
        }
    }
}

/// Runs the task of `limit` if it is due: the program may fill memory before its next slow path.
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
    let next = place.next.load(Ordering::Relaxed);
    let far = now.wrapping_add(FAR);
    if place.next.compare_exchange(next, far, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: only `begin` and `go_on_with` store there, and they store tasks.
    let task = unsafe { mem::transmute::<*mut (), Task>(task) };
    let after = task(now);
    let again = now.wrapping_add(after.min(FAR)).max(AT_ONCE + 1);
    _ = place.next.compare_exchange(far, again, Ordering::Release, Ordering::Relaxed);
}

/// A task's state, which one thread at a time uses, without a lock. If another thread used the
/// state during a fork, the child begins with a new state.
pub struct Kept<T> {
    /// The generation of the process whose thread uses the state; 0: no thread does.
    at_it: AtomicU32,
    new: T,
    value: UnsafeCell<T>,
}

// SAFETY: `with` gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Kept<T> {}

impl<T: Copy> Kept<T> {
    /// A state with the value `new`.
    pub const fn new(new: T) -> Self {
        Self { at_it: AtomicU32::new(0), new, value: UnsafeCell::new(new) }
    }

    /// Whether a thread uses the state.
    pub fn is_in_use(&self) -> bool {
        self.at_it.load(Ordering::SeqCst) == GENERATION.load(Ordering::Relaxed)
    }

    /// Lets `work` change the value. `None`: the value is in use.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let me = GENERATION.load(Ordering::Relaxed);
        let at_it = self.at_it.load(Ordering::Relaxed);
        if at_it == me
            || self.at_it.compare_exchange(at_it, me, Ordering::SeqCst, Ordering::Relaxed).is_err()
        {
            return None;
        }
        // SAFETY: no other thread of this process enters before the word is 0 again.
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
        kept.at_it.store(GENERATION.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        assert_eq!(kept.with(|value| *value), Some(1));
        assert_eq!(kept.at_it.load(Ordering::Relaxed), 0);
    }
}
