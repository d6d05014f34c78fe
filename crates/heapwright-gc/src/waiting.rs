//! Waiting for a word to change: a little by looking, then asleep.
//!
//! ```text
//!   look, look, look ...            asleep at the word, until it is woken, or for a while
//!   <-- WaitLimit.looks -->          <------------ WaitLimit.then ------------->
//! ```
//!
//! What a mutator waits for mostly comes within microseconds, which is less than going to sleep
//! and being woken takes. Sleeps that end by themselves are no part of the protocols: under loom
//! a sleep ends when it is woken and no sooner.
//!
//! Used by `world` and `gang`.

use heapwright_substrate::sync::atomic::AtomicU32;

/// How long to look before going to sleep, and how long to sleep.
#[derive(Clone, Copy)]
pub(super) struct WaitLimit {
    /// Looks at the word.
    pub(super) looks: u32,
    /// What follows if it has not changed.
    pub(super) then: Then,
}

/// What follows the looks.
#[derive(Clone, Copy)]
pub(super) enum Then {
    /// Nothing: the caller will be back.
    Return,
    /// Sleep, until woken.
    Sleep,
    /// Sleep, for so many nanoseconds at most.
    SleepFor(u64),
}

/// Waits while `word` is what is `expected`, at most as long as wait_limit lasts. What another
/// thread did before it changed the word is done.
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

/// As the other, to loom's mind: it knows no time.
#[cfg(loom)]
pub(super) fn wait(word: &AtomicU32, expected: u32, _limit: WaitLimit) {
    heapwright_substrate::sync::futex_wait(word, expected);
}

/// Wakes all threads that sleep at `word`.
pub(super) fn wake(word: &AtomicU32) {
    #[cfg(not(loom))]
    heapwright_substrate::os::futex_wake_all(word);
    #[cfg(loom)]
    heapwright_substrate::sync::futex_wake_all(word);
}
