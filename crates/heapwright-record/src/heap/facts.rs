//! What a dump contains, as numbers.
//!
//! Both sides share these. A number that is not known is zero.

use crate::leb::number;

/// What an object is, as bits; a page has the same for all of its objects.
pub mod kind {
    /// It holds no references.
    pub const LEAF: u8 = 1;
    /// The runtime is notified when it has died.
    pub const FREED: u8 = 2;
    /// All bits there are.
    pub const ALL: u8 = LEAF | FREED;
}

/// The numbers of a heap at the moment of the dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes of a page of slots.
    pub page_size: u64,
    /// The process.
    pub pid: u32,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// Bytes of live objects, as the collector counts them.
    pub live: u64,
    /// Bytes of pages in use.
    pub in_use: u64,
    /// Bytes of wholly free pages that are kept.
    pub empty: u64,
    /// Bytes of large objects' pages.
    pub large: u64,
    /// The runtime's own memory that it reported.
    pub external: u64,
    /// Bytes at which the next collection begins.
    pub goal: u64,
    /// Collections since the heap was made.
    pub cycles: u64,
    /// Spare bits, for what later writers know.
    pub flags: u64,
    /// Collections that were minor ones, of all.
    pub minor_cycles: u64,
    /// Bytes of old objects, as the collector counts them.
    pub old: u64,
    /// Collections that moved objects.
    pub compactions: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Pages whose objects were moved elsewhere.
    pub evacuated_pages: u64,
    /// Pages that were to be evacuated, and were not.
    pub kept_pages: u64,
}

/// Ties some numbers of a struct to the file, in that order.
macro_rules! in_order {
    ($type:ident, $give:ident, $take:ident: $($field:ident)*) => {
        impl $type {
            /// The numbers, in the order of the file.
            pub(super) fn $give(&self) -> [u64; [$(stringify!($field)),*].len()] {
                [$(self.$field as u64),*]
            }

            /// With the numbers that the file has.
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
// Behind the layout and the pools.
in_order! {
    Heap, ages_and_moves, with_ages_and_moves:
    minor_cycles old compactions moved_objects moved_bytes evacuated_pages kept_pages
}

/// The bytes of a slot of each pool: an iterator over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools<'a> {
    left: u64,
    rest: &'a [u8],
}

impl<'a> Pools<'a> {
    /// The pools at the start of `rest`, all of which are there.
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

/// What a page is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PageState {
    /// Objects lie in it, or may.
    #[default]
    InUse = 0,
    /// It is wholly free, and any pool's.
    Empty = 1,
    /// It holds one large object.
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

    /// A word for it.
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

/// What compaction has to do with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Aside {
    /// Nothing.
    #[default]
    No = 0,
    /// Its objects are to be moved elsewhere.
    Candidate = 1,
    /// They were.
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

    /// A word for it, the same in texts and in JSON; none for nothing.
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

/// A page. Which of its slots are taken is given beside it. Its slots begin at its first
/// byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its number in the heap.
    pub number: u64,
    /// Its first byte.
    pub address: u64,
    /// All its bytes; of a large object, those that may be in memory.
    pub bytes: u64,
    /// The pool that it is of.
    pub pool: u32,
    /// What its objects are: bits of [`kind`].
    pub kind: u8,
    /// What it is there for.
    pub state: PageState,
    /// Bytes of a slot; of a large object, what was asked for. Of an empty page, 0.
    pub slot: u64,
    /// How many slots it has: at most [`Page::MOST_SLOTS`].
    pub slots: u32,
    /// How many times its objects are pinned.
    pub pins: u64,
    /// Objects that were moved into it, since it became what it is.
    pub moved_in: u64,
    /// Of its objects, those that are old.
    pub old: u32,
    /// What compaction has to do with it.
    pub aside: Aside,
}

impl Page {
    /// The most slots that a page may have: of 8 bytes, in 64 KiB.
    pub const MOST_SLOTS: u32 = 8192;
}

/// Which slots of a page are taken, a bit each, the lowest bit of a byte first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy<'a> {
    /// The bits; those behind the last slot are zero.
    pub bytes: &'a [u8],
}

impl Occupancy<'_> {
    /// Whether a slot is taken.
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

    /// How many slots are taken.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.bytes.iter().map(|byte| byte.count_ones()).sum()
    }
}

/// An object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its first byte.
    pub address: u64,
    /// Bytes of its slot.
    pub size: u64,
    /// Bytes of the slot that the runtime asked for; 0 where it is not known.
    pub used: u64,
    /// What it is: bits of [`kind`].
    pub kind: u8,
    /// The number of its type.
    pub type_id: u32,
    /// Whether it is old: minor collections do not look at it.
    pub old: bool,
}

/// How a root holds on to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RootKind {
    /// Not known, to the writer or to this reader.
    #[default]
    Unknown = 0,
    /// A cell that is a root.
    Handle = 1,
    /// The runtime's callback reported it.
    Callback = 2,
    /// A word of a thread's stack.
    Stack = 3,
    /// It waits for its finalizer.
    Finalizer = 4,
}

impl RootKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Handle, Self::Callback, Self::Stack, Self::Finalizer];

    /// The one that has this number.
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

    /// A word for it, the same in texts and in JSON.
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

/// Something outside of the heap that leads to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// How.
    pub kind: RootKind,
    /// The number of the mutator it belongs to; 0: of none.
    pub mutator: u32,
    /// The object's first byte.
    pub address: u64,
}

/// How much a whole dump has of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Types with a name.
    pub types: u64,
    /// Pages.
    pub pages: u64,
    /// Objects.
    pub objects: u64,
    /// References between them.
    pub references: u64,
    /// Roots.
    pub roots: u64,
}

in_order!(Counts, numbers, with_numbers: types pages objects references roots);

impl Counts {
    /// All entries.
    pub(super) fn sum(&self) -> u64 {
        self.numbers().into_iter().fold(0, u64::wrapping_add)
    }
}
