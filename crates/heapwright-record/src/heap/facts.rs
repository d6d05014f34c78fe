//! The contents of a dump, as numbers. An unknown number is zero.

use crate::leb::number;

/// The kind of an object, as bits. All objects of a page have the same kind.
pub mod kind {
    /// The object holds no references.
    pub const LEAF: u8 = 1;
    /// The runtime is notified of the object's death.
    pub const FREED: u8 = 2;
    /// All defined bits.
    pub const ALL: u8 = LEAF | FREED;
}

/// The figures of a heap at the moment of the dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes of a page of slots.
    pub page_size: u64,
    /// The number of the process.
    pub pid: u32,
    /// The time of the dump, in nanoseconds since 1970.
    pub time: u64,
    /// Bytes of live objects, as the collector counts them.
    pub live: u64,
    /// Bytes of pages in use.
    pub in_use: u64,
    /// Bytes of wholly free pages that the heap keeps.
    pub empty: u64,
    /// Bytes of large objects' pages.
    pub large: u64,
    /// Bytes of the runtime's own memory, as the runtime reported.
    pub external: u64,
    /// Bytes at which the next collection begins.
    pub goal: u64,
    /// Collections since the heap was made.
    pub cycles: u64,
    /// Bits that later writers may define.
    pub flags: u64,
    /// The minor collections among `cycles`.
    pub minor_cycles: u64,
    /// Bytes of old objects, as the collector counts them.
    pub old: u64,
    /// Collections that moved objects.
    pub compactions: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Bytes of moved objects.
    pub moved_bytes: u64,
    /// Pages whose objects were moved elsewhere.
    pub evacuated_pages: u64,
    /// Evacuation candidates that were not evacuated.
    pub kept_pages: u64,
}

/// Maps some fields of a struct to the file, in that order.
macro_rules! in_order {
    ($type:ident, $give:ident, $take:ident: $($field:ident)*) => {
        impl $type {
            pub(super) fn $give(&self) -> [u64; [$(stringify!($field)),*].len()] {
                [$(self.$field as u64),*]
            }

            pub(super) fn $take(mut self, rest: &mut &[u8]) -> Option<Self> {
                $(self.$field = number(rest)?.try_into().ok()?;)*
                Some(self)
            }
        }
    };
}

in_order! {
    Heap, numbers, with_numbers:
    page_size pid time live in_use empty large external goal cycles flags
}
// These fields follow the layout and the pools.
in_order! {
    Heap, ages_and_moves, with_ages_and_moves:
    minor_cycles old compactions moved_objects moved_bytes evacuated_pages kept_pages
}

/// An iterator over the slot sizes of the pools, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools<'a> {
    left: u64,
    rest: &'a [u8],
}

impl<'a> Pools<'a> {
    /// Returns the pools at the start of `rest`. `None` if they are not complete.
    pub(super) fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let left = number(rest)?;
        let pools = Self { left, rest };
        for _ in 0..left {
            number(rest)?;
        }
        Some(pools)
    }
}

impl Iterator for Pools<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        number(&mut self.rest)
    }
}

/// The use of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PageState {
    /// Holds objects, or may hold some.
    #[default]
    InUse = 0,
    /// Wholly free, and available to any pool.
    Empty = 1,
    /// Holds one large object.
    Large = 2,
}

impl PageState {
    pub(super) const fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::InUse),
            1 => Some(Self::Empty),
            2 => Some(Self::Large),
            _ => None,
        }
    }

    /// Returns the word for the state.
    ///
    /// ```
    /// assert_eq!(heapwright_record::heap::PageState::Empty.word(), "empty");
    /// ```
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::InUse => "in_use",
            Self::Empty => "empty",
            Self::Large => "large",
        }
    }
}

/// The part of a page in compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Aside {
    /// No part.
    #[default]
    No = 0,
    /// An evacuation candidate: its objects are to be moved.
    Candidate = 1,
    /// Evacuated: its objects were moved.
    Evacuated = 2,
}

impl Aside {
    pub(super) const fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::No),
            1 => Some(Self::Candidate),
            2 => Some(Self::Evacuated),
            _ => None,
        }
    }

    /// Returns the word for the part in texts and in JSON; `None` for a page without a part.
    ///
    /// ```
    /// use heapwright_record::heap::Aside;
    /// assert_eq!((Aside::No.word(), Aside::Candidate.word()), (None, Some("candidate")));
    /// ```
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Candidate => Some("candidate"),
            Self::Evacuated => Some("evacuated"),
        }
    }
}

/// A page. Its slots begin at its first byte. An [`Occupancy`] beside it says which slots are
/// taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The page's number in the heap.
    pub number: u64,
    /// The page's first address.
    pub address: u64,
    /// The size in bytes; of a large object, the bytes that may be in memory.
    pub bytes: u64,
    /// The page's pool.
    pub pool: u32,
    /// The kind of the page's objects: bits of [`kind`].
    pub kind: u8,
    /// The use of the page.
    pub state: PageState,
    /// Bytes of a slot; of a large object, the requested bytes; of an empty page, 0.
    pub slot: u64,
    /// The number of slots, at most [`Page::MOST_SLOTS`].
    pub slots: u32,
    /// The number of pins on the page's objects.
    pub pins: u64,
    /// Objects that were moved into the page in its present use.
    pub moved_in: u64,
    /// Old objects in the page.
    pub old: u32,
    /// The page's part in compaction.
    pub aside: Aside,
}

impl Page {
    /// The most slots of a page: 8 bytes each, in 64 KiB.
    pub const MOST_SLOTS: u32 = 8192;
}

/// The taken slots of a page, a bit each, the lowest bit of a byte first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy<'a> {
    /// The bits; bits behind the last slot are zero.
    pub bytes: &'a [u8],
}

impl Occupancy<'_> {
    /// Returns whether a slot is taken.
    ///
    /// ```
    /// use heapwright_record::heap::Occupancy;
    /// let occupancy = Occupancy { bytes: &[0b0000_0100] };
    /// assert!(occupancy.is_taken(2) && !occupancy.is_taken(3) && !occupancy.is_taken(99));
    /// assert_eq!(occupancy.taken(), 1);
    /// ```
    #[must_use]
    pub fn is_taken(&self, slot: u32) -> bool {
        let byte = self.bytes.get((slot / 8) as usize).copied().unwrap_or_default();
        byte >> (slot % 8) & 1 != 0
    }

    /// Returns the number of taken slots.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.bytes.iter().map(|byte| byte.count_ones()).sum()
    }
}

/// An object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The object's first address.
    pub address: u64,
    /// Bytes of the object's slot.
    pub size: u64,
    /// Bytes of the slot that the runtime requested; 0 if they are not known.
    pub used: u64,
    /// The object's kind: bits of [`kind`].
    pub kind: u8,
    /// The number of the object's type.
    pub type_id: u32,
    /// Whether the object is old, so that minor collections skip it.
    pub old: bool,
}

/// The kind of a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RootKind {
    /// Not known to the writer or to this reader.
    #[default]
    Unknown = 0,
    /// A handle.
    Handle = 1,
    /// The runtime's callback reported the root.
    Callback = 2,
    /// A word of a thread's stack.
    Stack = 3,
    /// The object waits for its finalizer.
    Finalizer = 4,
}

impl RootKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Handle, Self::Callback, Self::Stack, Self::Finalizer];

    /// Returns the kind with this number.
    #[must_use]
    pub const fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Handle,
            2 => Self::Callback,
            3 => Self::Stack,
            4 => Self::Finalizer,
            _ => Self::Unknown,
        }
    }

    /// Returns the word for the kind, the same in texts and in JSON.
    ///
    /// ```
    /// assert_eq!(heapwright_record::heap::RootKind::Handle.word(), "handle");
    /// ```
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Handle => "handle",
            Self::Callback => "callback",
            Self::Stack => "stack",
            Self::Finalizer => "finalizer",
        }
    }
}

/// A root: a reference from outside the heap to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// The kind of root.
    pub kind: RootKind,
    /// The number of the root's mutator, or 0.
    pub mutator: u32,
    /// The object's first address.
    pub address: u64,
}

/// The number of items of each sort in a whole dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Types with a name.
    pub types: u64,
    /// Pages.
    pub pages: u64,
    /// Objects.
    pub objects: u64,
    /// References between objects.
    pub references: u64,
    /// Roots.
    pub roots: u64,
}

in_order!(Counts, numbers, with_numbers: types pages objects references roots);

impl Counts {
    pub(super) fn sum(&self) -> u64 {
        self.numbers().into_iter().fold(0, u64::wrapping_add)
    }
}
