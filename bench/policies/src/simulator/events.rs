//! What happens next: a queue of events in the order of their times, and the clock.
//!
//! ```text
//!   push(at, event)    at is now or later
//!   pop                the earliest; of equal times the one that was pushed first
//!   now                the time of the last that was popped
//! ```
//!
//! **Invariant.** Time never goes back: what is pushed for the past is a bug of the
//! simulation and ends it. Of equal times the order is that of pushing, so a run is the
//! same every time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events by time.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    now: u64,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Queue<E> {
    /// Nothing, at time 0.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), now: 0, pushed: 0 }
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Something that will happen.
    pub fn push(&mut self, at: u64, event: E) {
        assert!(at >= self.now, "an event for {at}, and it is {}", self.now);
        self.heap.push(Reverse(Entry { at, number: self.pushed, event }));
        self.pushed += 1;
    }

    /// When the next event is.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next event; its time is now.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn time_never_goes_back_and_nothing_is_lost(steps in prop::collection::vec((0..50u64, 0..4u8), 1..300)) {
            let mut queue = Queue::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, &(later, kind)) in steps.iter().enumerate() {
                if kind > 0 {
                    let at = queue.now() + later;
                    queue.push(at, number);
                    model.push((at, number));
                } else {
                    model.sort_unstable();
                    let before = queue.now();
                    let popped = queue.pop();
                    prop_assert!(queue.now() >= before);
                    if model.is_empty() {
                        prop_assert_eq!(popped, None);
                    } else {
                        let expected = model.remove(0);
                        prop_assert_eq!(popped, Some(expected.1));
                        prop_assert_eq!(queue.now(), expected.0);
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "an event for 4, and it is 5")]
    fn the_past_is_refused() {
        let mut queue = Queue::new();
        queue.push(5, ());
        queue.pop();
        queue.push(4, ());
    }
}
