//! The lock and the futex under loom.
//!
//! ```text
//!   Lock     loom's mutex                         orders memory, as the real one does
//!   futex    | word, thread | word, thread | ..   sleepers; a wake removes all those of a word
//! ```
//!
//! Only a wake ends a sleep. So if the code forgets a wake, loom reports that all threads sleep.

extern crate std;

use std::sync::PoisonError;
use std::vec::Vec;

use loom::sync::{Condvar, Mutex};
use loom::thread::{self, ThreadId};

use super::atomic::{AtomicU32, Ordering};

/// A mutual-exclusion lock around `T`.
pub struct Lock<T>(Mutex<T>);

/// The right to the value; a drop releases the lock.
pub use loom::sync::MutexGuard as Guard;

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.0.try_lock().ok()
    }
}

struct Sleepers {
    list: Lock<Vec<(usize, ThreadId)>>,
    woken: Condvar,
}

loom::lazy_static! {
    static ref SLEEPERS: Sleepers =
        Sleepers { list: Lock::new(Vec::new()), woken: Condvar::new() };
}

fn place(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

/// Sleeps until the word is woken, if it still has the expected value.
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    let me = (place(word), thread::current().id());
    let mut list = SLEEPERS.list.lock();
    if word.load(Ordering::Relaxed) != expected {
        return;
    }
    list.push(me);
    while list.contains(&me) {
        list = SLEEPERS.woken.wait(list).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Wakes all threads that sleep at a word.
pub fn futex_wake_all(word: &AtomicU32) {
    let mut list = SLEEPERS.list.lock();
    let before = list.len();
    list.retain(|&(at, _)| at != place(word));
    if list.len() != before {
        SLEEPERS.woken.notify_all();
    }
}
