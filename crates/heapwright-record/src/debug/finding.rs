//! A mistake of the program, as integers: all that the library knows when it finds one.
//!
//! ```text
//! Finding, 145 bytes
//!  0 kind 2 | call 1 | origin 1 | region 1 | access 1 | value 1 | function 2
//!  9 pointer 8 | block 8 | size 8 | align 8 | offset 8 | length 8
//! 57 given_size 8 | given_align 8
//! 73 here 24 | freed 24 | allocated 24
//!
//! Moment, 24 bytes
//!  0 stack 4 | thread 4 | sequence 8 | ns 8
//! ```

use super::numbers::{Access, Call, FindingKind, Function, Origin, Region};
use super::wire::record;

record! {
    /// The place and time of an event. All fields are zero if they are not known.
    Moment {
        /// The number of the stack; 0 if none was kept.
        stack: u32,
        /// The number of the thread, from 1.
        thread: u32,
        /// Operations on the heap so far, including this one.
        sequence: u64,
        /// Nanoseconds since the process began.
        ns: u64,
    }

    /// A mistake of the program.
    Finding {
        /// The kind of mistake.
        kind: FindingKind,
        /// The call that found the mistake.
        call: Call,
        /// The kind of call that allocated the block.
        origin: Origin,
        /// The memory that the pointer leads to.
        region: Region,
        /// The kind of access.
        access: Access,
        /// The first changed byte; for an uninitialised value, the index of its `:at-` point in the
        /// option `fill`.
        value: u8,
        /// The function of the C library that would have made the access.
        function: Function,
        /// The given pointer, or the accessed address.
        pointer: u64,
        /// The start of the block; 0 if there is none.
        block: u64,
        /// The requested size of the block.
        size: u64,
        /// The requested alignment of the block.
        align: u64,
        /// The offset of the pointer, or of the first changed or uninitialised byte, in the block.
        offset: i64,
        /// Bytes from the first changed or invalid byte to the last one.
        length: u64,
        /// The size given with the pointer, or the number of bytes that the function would access.
        given_size: u64,
        /// The alignment given with the pointer.
        given_align: u64,
        /// When and where the mistake was found.
        here: Moment,
        /// When and where the block was freed.
        freed: Moment,
        /// When and where the block was allocated.
        allocated: Moment,
    }
}

/// The role of a moment in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The mistake was found.
    Here,
    /// The block was freed.
    Freed,
    /// The block was allocated.
    Allocated,
}

impl Moment {
    /// An unknown moment, equal to zeroed memory.
    pub const UNKNOWN: Self = Self { stack: 0, thread: 0, sequence: 0, ns: 0 };

    /// Returns whether nothing is known of the moment.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.stack == 0 && self.thread == 0 && self.sequence == 0 && self.ns == 0
    }
}

impl Finding {
    /// A finding of which nothing is known, equal to zeroed memory.
    pub const UNKNOWN: Self = Self {
        kind: FindingKind::Unknown,
        call: Call::Unknown,
        origin: Origin::Unknown,
        region: Region::Unknown,
        access: Access::Unknown,
        value: 0,
        function: Function::Unknown,
        pointer: 0,
        block: 0,
        size: 0,
        align: 0,
        offset: 0,
        length: 0,
        given_size: 0,
        given_align: 0,
        here: Moment::UNKNOWN,
        freed: Moment::UNKNOWN,
        allocated: Moment::UNKNOWN,
    };

    /// Returns whether the access itself was seen, and not only its traces.
    #[must_use]
    pub const fn is_access(&self) -> bool {
        matches!(self.call, Call::Access | Call::Function)
    }

    /// Returns the known moments, in the order in which they are reported.
    ///
    /// ```
    /// use heapwright_record::debug::{Finding, Moment, Role};
    /// let moment = Moment { thread: 1, sequence: 17, ..Moment::default() };
    /// let leak = Finding { allocated: moment, ..Finding::default() };
    /// assert!(leak.moments().eq([(Role::Allocated, moment)]));
    /// ```
    pub fn moments(&self) -> impl Iterator<Item = (Role, Moment)> {
        let all =
            [(Role::Here, self.here), (Role::Freed, self.freed), (Role::Allocated, self.allocated)];
        all.into_iter().filter(|(_, moment)| !moment.is_unknown())
    }
}
