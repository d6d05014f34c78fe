//! Ticks: what is done now and then by whichever thread comes by, for there is no background thread.
//!
//! ```text
//!   slow paths   -- pass(now) -->  is it time?  -- one thread -->  the task, which says when it wants to come next
//! ```
//!
//! A slow path passes once in each tick of the coarse clock, with its cache's lock held: a task waits for no lock of a
//! cache, and takes microseconds. One that a signal handler interrupted is not entered again, nor is any
//! where a fork holds the locks.
//!
//! The task is set by a module above, which the slow paths do not know.
//!
//! Called by `cache` and `debug` ([`pass`]), and by `status`.

use core::mem;
use core::ptr;

use crate::sync;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Is told the time in milliseconds; returns after how many it wants to be called again.
pub type Task = fn(u32) -> u32;

static TASK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// When it is to be done next, in milliseconds.
static NEXT: AtomicU32 = AtomicU32::new(AT_ONCE);
/// No time.
const AT_ONCE: u32 = 0;

/// Has a task done by whoever passes next, and then as it says.
#[inline]
pub fn begin(task: Task) {
    NEXT.store(AT_ONCE, Ordering::Relaxed);
    TASK.store(task as *mut (), Ordering::Release);
}

/// Has no task done from now on.
pub fn end() {
    TASK.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Whether there is a task: slow paths see to it then that a quiet program's next operation comes by, too.
#[inline(always)]
pub fn has_task() -> bool {
    !TASK.load(Ordering::Relaxed).is_null()
}

/// Does the task, if there is one and it is time.
#[inline(always)]
pub fn pass(now: u32) {
    let task = TASK.load(Ordering::Acquire);
    let next = NEXT.load(Ordering::Relaxed);
    if !task.is_null() && (next == AT_ONCE || now.wrapping_sub(next) as i32 >= 0) {
        run(task, now);
    }
}

#[cold]
#[inline(never)]
fn run(task: *mut (), now: u32) {
    if sync::is_interrupted() || sync::holds_all() {
        return;
    }
    // One thread at a time: the others find it far ahead.
    const FAR: u32 = 10_000;
    let next = NEXT.load(Ordering::Relaxed);
    let far = now.wrapping_add(FAR);
    if NEXT.compare_exchange(next, far, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: only `begin` stores there, and it stores tasks.
    let task = unsafe { mem::transmute::<*mut (), Task>(task) };
    let after = task(now);
    NEXT.store(now.wrapping_add(after).max(AT_ONCE + 1), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_done_when_it_is_time() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        pass(1);
        begin(|now| {
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
    }
}
