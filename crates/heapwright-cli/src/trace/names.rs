//! Translates a trace's names into numbers.
//!
//! A trace names a block by a name that no other *live* block has, usually its address. Threads
//! are named in the same way. This module numbers blocks and threads in the order of their first
//! events:
//!
//! ```text
//! live blocks   name -> number            malloc puts, free takes
//! live threads  name -> number            the first event puts, ThreadEnd takes
//! ```
//!
//! A realloc may come in two halves. In between, the block's old name may already be another
//! block's. The thread of the realloc holds the block meanwhile.
//!
//! Impossible events are counted and corrected, so that every story can be replayed: a free of an
//! unknown name is left out, and a new block under a live block's name frees the live block first.

use super::story::{Event, Story, What};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The error for more blocks or threads than 32-bit numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

#[derive(Default)]
pub(super) struct Builder {
    pub(super) story: Story,
    blocks: HashMap<u64, u32>,
    threads: HashMap<u64, u32>,
    /// The block, and its name, of each thread whose realloc has begun and not ended.
    resizing: HashMap<u64, (u32, u64)>,
}

#[derive(Clone, Copy)]
pub(super) enum Ask {
    Malloc,
    Calloc,
    Aligned { log2: u8, zero: bool },
}

impl Builder {
    pub(super) fn new(story: Story) -> Self {
        Self { story, ..Self::default() }
    }

    pub(super) fn story(self) -> Story {
        self.story
    }

    fn event(&mut self, thread: u64, what: What) -> Result<(), TooMany> {
        let thread = match self.threads.entry(thread) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(place) => {
                let number = self.story.threads;
                self.story.threads = number.checked_add(1).ok_or(TooMany)?;
                *place.insert(number)
            }
        };
        self.story.events.push(Event { thread, what });
        Ok(())
    }

    /// Ends the live block under a name that a new block gets.
    fn end_double(&mut self, thread: u64, name: u64) -> Result<(), TooMany> {
        if let Some(block) = self.blocks.remove(&name) {
            self.story.doubled += 1;
            self.event(thread, What::Free { block })?;
        }
        Ok(())
    }

    pub(super) fn made(
        &mut self,
        thread: u64,
        name: u64,
        size: u64,
        ask: Ask,
    ) -> Result<(), TooMany> {
        self.end_double(thread, name)?;
        let block = self.story.blocks;
        self.story.blocks = block.checked_add(1).ok_or(TooMany)?;
        self.blocks.insert(name, block);
        let what = match ask {
            Ask::Malloc => What::Malloc { block, size },
            Ask::Calloc => What::Calloc { block, size },
            Ask::Aligned { log2, zero } => What::Aligned { block, size, log2, zero },
        };
        self.event(thread, what)
    }

    pub(super) fn freed(&mut self, thread: u64, name: u64) -> Result<(), TooMany> {
        match self.blocks.remove(&name) {
            Some(block) => self.event(thread, What::Free { block }),
            None => {
                self.story.unknown += 1;
                Ok(())
            }
        }
    }

    /// Adds the first half of a realloc.
    pub(super) fn realloc_begins(&mut self, thread: u64, name: u64) {
        match self.blocks.remove(&name) {
            Some(block) => {
                self.resizing.insert(thread, (block, name));
            }
            None => self.story.unknown += 1,
        }
    }

    /// Adds the second half of a realloc. Without a first half it is an allocation.
    pub(super) fn realloc_ends(
        &mut self,
        thread: u64,
        name: u64,
        size: u64,
    ) -> Result<(), TooMany> {
        let Some((block, _)) = self.resizing.remove(&thread) else {
            return self.made(thread, name, size, Ask::Malloc);
        };
        self.end_double(thread, name)?;
        self.blocks.insert(name, block);
        self.event(thread, What::Realloc { block, size })
    }

    /// Keeps the old block.
    pub(super) fn realloc_failed(&mut self, thread: u64) {
        if let Some((block, name)) = self.resizing.remove(&thread) {
            self.blocks.insert(name, block);
        }
    }

    /// Ends a thread, whose name another thread may then have.
    pub(super) fn thread_ends(&mut self, name: u64) -> Result<(), TooMany> {
        if self.threads.contains_key(&name) {
            self.event(name, What::ThreadEnd)?;
            self.threads.remove(&name);
            self.resizing.remove(&name);
        }
        Ok(())
    }

    /// Adds an event that concerns no block.
    pub(super) fn other(&mut self, thread: u64, what: What) -> Result<(), TooMany> {
        self.event(thread, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(builder: Builder) -> Vec<(u32, What)> {
        builder.story().events.into_iter().map(|event| (event.thread, event.what)).collect()
    }

    #[test]
    fn a_name_that_is_used_again_is_another_block() {
        let mut builder = Builder::default();
        for _ in 0..2 {
            builder.made(9, 0x10, 8, Ask::Malloc).expect("few");
            builder.freed(9, 0x10).expect("few");
            builder.thread_ends(9).expect("few");
        }
        assert_eq!(
            events(builder),
            [
                (0, What::Malloc { block: 0, size: 8 }),
                (0, What::Free { block: 0 }),
                (0, What::ThreadEnd),
                (1, What::Malloc { block: 1, size: 8 }),
                (1, What::Free { block: 1 }),
                (1, What::ThreadEnd),
            ]
        );
    }

    #[test]
    fn between_the_halves_of_a_realloc_the_name_is_free() {
        let mut builder = Builder::default();
        builder.made(1, 0x10, 8, Ask::Malloc).expect("few");
        builder.realloc_begins(1, 0x10);
        builder.made(2, 0x10, 9, Ask::Calloc).expect("few");
        builder.realloc_ends(1, 0x20, 100).expect("few");
        builder.freed(2, 0x20).expect("few");
        builder.freed(2, 0x10).expect("few");
        assert_eq!(builder.story.unknown + builder.story.doubled, 0);
        assert_eq!(
            events(builder),
            [
                (0, What::Malloc { block: 0, size: 8 }),
                (1, What::Calloc { block: 1, size: 9 }),
                (0, What::Realloc { block: 0, size: 100 }),
                (1, What::Free { block: 0 }),
                (1, What::Free { block: 1 }),
            ]
        );
    }

    #[test]
    fn what_cannot_be_is_mended_and_counted() {
        let mut builder = Builder::default();
        builder.freed(1, 5).expect("few");
        builder.made(1, 5, 1, Ask::Malloc).expect("few");
        builder.made(1, 5, 2, Ask::Malloc).expect("few");
        builder.realloc_begins(1, 5);
        builder.realloc_failed(1);
        builder.realloc_begins(1, 77);
        builder.realloc_ends(1, 78, 3).expect("few");
        builder.freed(1, 5).expect("few");
        assert_eq!((builder.story.unknown, builder.story.doubled), (2, 1));
        assert_eq!(
            events(builder),
            [
                (0, What::Malloc { block: 0, size: 1 }),
                (0, What::Free { block: 0 }),
                (0, What::Malloc { block: 1, size: 2 }),
                (0, What::Malloc { block: 2, size: 3 }),
                (0, What::Free { block: 1 }),
            ]
        );
    }
}
