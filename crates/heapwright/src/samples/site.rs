//! The records of a stack and of a thread.
//!
//! Called by the other files of `samples`, under its lock.

use heapwright_record::debug::Memory;

use super::estimate::{Copied, Estimate};
use crate::paged_table::Keyed;
use crate::stacks::Stack;

pub(super) const MEMORY_BIT: u32 = 40;

#[derive(Clone, Copy)]
pub(super) struct Site {
    /// The stack's number plus 1, and from bit [`MEMORY_BIT`] on the kind of memory.
    pub(super) key: u64,
    pub(super) live: Estimate,
    pub(super) allocated: Estimate,
    pub(super) temporary: Estimate,
    /// The live estimates at the peak and at the moments of [`Earlier`](super::ledger::Earlier).
    pub(super) peak: Copied,
    pub(super) earlier: [Copied; 2],
    /// The variance of the live bytes made after the older moment, while a profile is written.
    pub(super) new_variance: f64,
    /// The births of the oldest and the youngest live sample, while a profile is written.
    pub(super) oldest_ns: u64,
    pub(super) youngest_ns: u64,
}

impl Site {
    pub(super) fn key_of(stack: Stack, memory: Memory) -> u64 {
        (u64::from(stack.0) + 1) | (memory as u64) << MEMORY_BIT
    }

    pub(super) fn stack(&self) -> u32 {
        ((self.key & ((1 << MEMORY_BIT) - 1)) - 1) as u32
    }

    pub(super) fn memory(&self) -> Memory {
        Memory::from_u8((self.key >> MEMORY_BIT) as u8)
    }
}

// SAFETY: all fields are numbers; the key of zeros is 0.
unsafe impl Keyed for Site {
    fn key(&self) -> u64 {
        self.key
    }
}

#[derive(Clone, Copy)]
pub(super) struct Thread {
    pub(super) id: u64,
    pub(super) name: [u8; 16],
    pub(super) live: Estimate,
    pub(super) allocated: Estimate,
}

// SAFETY: all fields are numbers; the key of zeros is 0.
unsafe impl Keyed for Thread {
    fn key(&self) -> u64 {
        self.id
    }
}
