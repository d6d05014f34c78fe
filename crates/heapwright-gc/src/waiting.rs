//! Waiting for a word to change: first by spinning, then asleep.
//!
//! ```text
//!   look, look, look ...            asleep at the word, until it is woken, or for a while
//!   <-- WaitLimit.looks -->          <------------ WaitLimit.then ------------->
//! ```
//!
//! Most waits of a mutator are shorter than a sleep and a wake-up. No protocol relies on a sleep's
//! timeout: under loom only a wake-up ends it. Used by `world`, `gang`, `help` and `helpers`.

use heapwright_substrate::sync::atomic::AtomicU32;

#[derive(Clone, Copy)]
pub(super) struct WaitLimit {
    pub(super) looks: u32,
    /// The action if the word has not changed.
    pub(super) then: Then,
}

#[derive(Clone, Copy)]
pub(super) enum Then {
    Return,
    Sleep,
    /// Sleep, for so many nanoseconds at most.
    SleepFor(u64),
}

/// Waits while `word` is `expected`, at most as long as `limit` says. A change that is seen
/// while spinning is acquired. After a sleep the caller must load the word again, with Acquire if it
/// relies on what the other thread did.
#[cfg(not(loom))]
pub(super) fn wait(word: &AtomicU32, expected: u32, limit: WaitLimit) {
    use heapwright_substrate::sync::atomic::Ordering;
    for _ in 0..limit.looks {
        if word.load(Ordering::Acquire) != expected {
            return;
        }
        core::hint::spin_loop();
    }
    match limit.then {
        Then::Return => {}
        Then::Sleep => heapwright_substrate::os::futex_wait(word, expected),
        Then::SleepFor(ns) => heapwright_substrate::os::futex_wait_for(word, expected, ns),
    }
}

/// Waits until it is woken: loom knows no time.
#[cfg(loom)]
pub(super) fn wait(word: &AtomicU32, expected: u32, _limit: WaitLimit) {
    heapwright_substrate::sync::futex_wait(word, expected);
}

pub(super) fn wake(word: &AtomicU32) {
    #[cfg(not(loom))]
    heapwright_substrate::os::futex_wake_all(word);
    #[cfg(loom)]
    heapwright_substrate::sync::futex_wake_all(word);
}
