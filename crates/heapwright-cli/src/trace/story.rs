//! The memory operations of one process, in order.
//!
//! ```text
//! event   | thread 4 | what, block 4, size 8 |      24 bytes
//! ```
//!
//! **Invariants** (kept by `names`, which makes stories): a block is made once, and freed or
//! resized only while it is live. Threads are numbered in the order of their first event.

use crate::output::printable;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    /// The process's id; 0: unknown.
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The start in nanoseconds since 1970; 0: unknown.
    pub(crate) began: u64,
    /// Whether the process began as a copy of its parent.
    pub(crate) forked: bool,
    pub(crate) exe: Vec<u8>,
    /// The words of the command line, each with a zero at its end.
    pub(crate) command: Vec<u8>,
    pub(crate) events: Vec<Event>,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    /// Whether the trace has its end; that of a killed process has none.
    pub(crate) whole: bool,
    /// Frees left out because the trace lacks the block's allocation.
    pub(crate) unknown: u64,
    /// Blocks made under the name of a live block, because the trace lacks its free.
    pub(crate) doubled: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) thread: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Malloc {
        block: u32,
        size: u64,
    },
    Calloc {
        block: u32,
        size: u64,
    },
    Aligned {
        block: u32,
        size: u64,
        log2: u8,
        zero: bool,
    },
    Realloc {
        block: u32,
        size: u64,
    },
    Free {
        block: u32,
    },
    ThreadEnd,
    Fork,
    /// This many milliseconds passed.
    Time(u32),
}

impl What {
    pub(crate) fn block(self) -> Option<u32> {
        match self {
            Self::Malloc { block, .. }
            | Self::Calloc { block, .. }
            | Self::Aligned { block, .. }
            | Self::Realloc { block, .. }
            | Self::Free { block } => Some(block),
            Self::ThreadEnd | Self::Fork | Self::Time(_) => None,
        }
    }

    pub(crate) fn size(self) -> Option<u64> {
        match self {
            Self::Malloc { size, .. }
            | Self::Calloc { size, .. }
            | Self::Aligned { size, .. }
            | Self::Realloc { size, .. } => Some(size),
            _ => None,
        }
    }
}

/// Sums over a story.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Facts {
    pub(crate) threads: u64,
    /// The number of allocations, resizes and frees.
    pub(crate) operations: u64,
    pub(crate) allocations: u64,
    pub(crate) reallocs: u64,
    pub(crate) frees: u64,
    /// Frees by a thread other than the one that made or last resized the block.
    pub(crate) cross_thread_frees: u64,
    pub(crate) peak_live_bytes: u64,
    pub(crate) peak_live_blocks: u64,
    /// The blocks that were never freed.
    pub(crate) left_blocks: u64,
    pub(crate) left_bytes: u64,
    pub(crate) milliseconds: u64,
}

impl Story {
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = Facts { threads: u64::from(self.threads), ..Facts::default() };
        // The size of each block, and the thread that made or resized it last.
        let mut blocks = vec![(0_u64, 0_u32); self.blocks as usize];
        let (mut bytes, mut count) = (0_u64, 0_u64);
        for event in &self.events {
            match event.what {
                What::Malloc { block, size }
                | What::Calloc { block, size }
                | What::Aligned { block, size, .. } => {
                    facts.allocations += 1;
                    count += 1;
                    bytes = bytes.saturating_add(size);
                    blocks[block as usize] = (size, event.thread);
                }
                What::Realloc { block, size } => {
                    facts.reallocs += 1;
                    let place = &mut blocks[block as usize];
                    bytes = bytes.saturating_sub(place.0).saturating_add(size);
                    *place = (size, event.thread);
                }
                What::Free { block } => {
                    facts.frees += 1;
                    let (size, owner) = blocks[block as usize];
                    count -= 1;
                    bytes = bytes.saturating_sub(size);
                    facts.cross_thread_frees += u64::from(owner != event.thread);
                }
                What::Time(ms) => facts.milliseconds += u64::from(ms),
                What::ThreadEnd | What::Fork => {}
            }
            facts.peak_live_bytes = facts.peak_live_bytes.max(bytes);
            facts.peak_live_blocks = facts.peak_live_blocks.max(count);
        }
        facts.operations = facts.allocations + facts.reallocs + facts.frees;
        (facts.left_blocks, facts.left_bytes) = (count, bytes);
        facts
    }

    pub(crate) fn operations(&self) -> usize {
        self.events.iter().filter(|event| event.what.block().is_some()).count()
    }

    /// Returns a name in one line.
    pub(crate) fn name(&self) -> String {
        let first = self.command.split(|&byte| byte == 0).next().unwrap_or_default();
        let path = if self.exe.is_empty() { first } else { &self.exe };
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        printable(name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_events() {
        let of = |thread, what| Event { thread, what };
        let story = Story {
            exe: b"/usr/bin/prog".to_vec(),
            threads: 2,
            blocks: 3,
            events: vec![
                of(0, What::Malloc { block: 0, size: 100 }),
                of(0, What::Calloc { block: 1, size: 50 }),
                of(1, What::Realloc { block: 1, size: 500 }),
                of(1, What::Free { block: 0 }),
                of(1, What::Free { block: 1 }),
                of(0, What::Aligned { block: 2, size: 7, log2: 6, zero: false }),
                of(0, What::Time(40)),
                of(1, What::ThreadEnd),
            ],
            ..Story::default()
        };
        let facts = story.facts();
        assert_eq!(
            (facts.operations, facts.allocations, facts.reallocs, facts.frees),
            (6, 3, 1, 2)
        );
        assert_eq!((facts.peak_live_bytes, facts.peak_live_blocks), (600, 2));
        assert_eq!((facts.left_bytes, facts.left_blocks), (7, 1));
        // The second block belongs to the second thread, which resized it.
        assert_eq!((facts.cross_thread_frees, facts.milliseconds), (1, 40));
        assert_eq!((story.operations(), story.name()), (6, "prog".to_owned()));
    }
}
