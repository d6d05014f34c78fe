//! The queue of future events in the order of their times, and the clock.
//!
//! **Invariant.** Time never goes back: a push into the past is a bug of the simulation and ends
//! it. Events of one time keep the order of their pushes, so every run is the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events by time.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<(u64, u64, E)>>,
    now: u64,
    pushed: u64,
}

impl<E: Ord> Queue<E> {
    /// Returns the time of the last popped event.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Adds an event, now or later.
    pub fn push(&mut self, at: u64, event: E) {
        assert!(at >= self.now, "an event for {at}, and it is {}", self.now);
        self.heap.push(Reverse((at, self.pushed, event)));
        self.pushed += 1;
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next event; its time becomes the current one.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.now = at;
        Some(event)
    }
}

impl<E: Ord> Default for Queue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), now: 0, pushed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_as_they_were_pushed() {
        let mut queue = Queue::default();
        for (at, event) in [(5, 'a'), (3, 'z'), (5, 'A'), (3, 'b')] {
            queue.push(at, event);
        }
        let all: String = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((all.as_str(), queue.now(), queue.next_at()), ("zbaA", 5, None));
    }

    #[test]
    #[should_panic(expected = "an event for 4, and it is 5")]
    fn the_past_is_refused() {
        let mut queue = Queue::default();
        queue.push(5, ());
        queue.pop();
        queue.push(4, ());
    }
}
