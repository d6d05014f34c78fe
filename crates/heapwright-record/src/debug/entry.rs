//! What a debug record is made of. The fields' order here is their order in
//! the file; new ones go to the end.

use super::finding::Finding;
use super::numbers::{Ending, FindingKind};
use super::text::{Frames, Text};
use super::wire::{Cursor, Field, Sink, record};

record! {
    /// Who writes. The first entry; another one begins a forked child's.
    Process<'a> {
        /// Its number.
        pid: u32,
        /// Its parent's number.
        parent: u32,
        /// When it began, in nanoseconds since 1970.
        time: u64,
        /// Bytes in a page.
        page_size: u32,
        /// The version of heapwright that writes.
        version: Text<'a>,
        /// The program's file.
        exe: Text<'a>,
        /// The options of heapwright.
        options: Text<'a>,
        /// The command line, each word with a NUL behind it.
        command: Text<'a>,
    }

    /// A file of code that was loaded. Addresses of its code minus `bias` are
    /// addresses as the file has them.
    Module<'a> {
        /// Its number; one that comes again replaces the earlier.
        id: u32,
        /// The first byte.
        start: u64,
        /// The byte behind the last.
        end: u64,
        /// What the loader added to the file's addresses.
        bias: u64,
        /// The build-id, up to 32 bytes; empty where the file has none.
        build_id: Text<'a>,
        /// The file.
        path: Text<'a>,
    }

    /// A piece of the text of `/proc/self/maps`; one that fits no entry comes
    /// in several.
    Map<'a> {
        /// The piece.
        bytes: Text<'a>,
    }

    /// A thread.
    Thread<'a> {
        /// Its number in this record, from 1.
        number: u32,
        /// The kernel's number.
        tid: u32,
        /// Its name.
        name: Text<'a>,
    }

    /// A stack.
    Stack<'a> {
        /// Its number, from 1.
        id: u32,
        /// Return addresses, innermost first.
        frames: Frames<'a>,
    }

    /// A place that deserves guarding in the next run, too.
    Site {
        /// A hash of the stack, made of addresses within modules: the same
        /// from run to run.
        key: u64,
        /// One block in this many is to be guarded.
        odds: u32,
        /// What was found last.
        last: FindingKind,
        /// How often something was found.
        hits: u32,
    }

    /// A line of text for people.
    Note<'a> {
        /// The line, without its end.
        bytes: Text<'a>,
    }

    /// How it ended. A record without one is of a process that runs, or was
    /// killed.
    End {
        /// How many findings there were, those not written included.
        findings: u32,
        /// Blocks allocated.
        allocations: u64,
        /// Blocks freed.
        frees: u64,
        /// The most bytes in use at once, as they were asked for, looked at when the
        /// heap opens a bucket: what was left in current buckets more may have been.
        peak_live_bytes: u64,
        /// How.
        ending: Ending,
    }
}

macro_rules! entries {
    ($( $(#[$doc:meta])* $tag:literal $name:ident($type:ty), )*) => {
        /// An entry of a debug record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Entry<'a> {
            $( $(#[$doc])* $name($type), )*
        }

        impl<'a> Entry<'a> {
            /// The number that says in the file what it is.
            #[must_use]
            pub const fn tag(&self) -> u32 {
                match self {
                    $( Self::$name(_) => $tag, )*
                }
            }

            pub(super) fn put(&self, sink: &mut Sink<'_>) {
                match self {
                    $( Self::$name(entry) => entry.put(sink), )*
                }
            }

            /// None of a tag that is not known.
            pub(super) fn take(tag: u32, cursor: &mut Cursor<'a>) -> Option<Self> {
                Some(match tag {
                    $( $tag => Self::$name(Field::take(cursor)), )*
                    _ => return None,
                })
            }
        }

        $(
            impl<'a> From<$type> for Entry<'a> {
                fn from(entry: $type) -> Self {
                    Self::$name(entry)
                }
            }
        )*
    };
}

entries! {
    /// Who writes.
    1 Process(Process<'a>),
    /// A file of code.
    2 Module(Module<'a>),
    /// A piece of the map of memory.
    3 Map(Map<'a>),
    /// A thread.
    4 Thread(Thread<'a>),
    /// A stack.
    5 Stack(Stack<'a>),
    /// A mistake.
    6 Finding(Finding),
    /// A place to guard next time.
    7 Site(Site),
    /// A line of text.
    8 Note(Note<'a>),
    /// How it ended.
    9 End(End),
}
