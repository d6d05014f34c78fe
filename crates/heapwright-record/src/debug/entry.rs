//! The entries of a debug record. The order of the fields is their order in the file; new fields go
//! to the end.

use super::finding::Finding;
use super::numbers::{Ending, FindingKind, Memory, Occasion, Origin, Reach, Root};
use super::text::{Frames, Text};
use super::wire::{Cursor, Field, Sink, record};

record! {
    /// The writing process: the first entry. A later entry of this kind begins the record of
    /// another program in the same process, or of a later process with the same number. Modules,
    /// threads, stacks and checks before it are not valid after it.
    Process<'a> {
        /// The process's number.
        pid: u32,
        /// The parent's number.
        parent: u32,
        /// When the process (in a heap profile: the sampling) began, in nanoseconds since 1970. All
        /// times in the record count from this one.
        time: u64,
        /// Bytes in a page.
        page_size: u32,
        /// The version of heapwright in the process.
        version: Text<'a>,
        /// The program's file.
        exe: Text<'a>,
        /// The options of heapwright.
        options: Text<'a>,
        /// The command line, each word with a NUL behind it.
        command: Text<'a>,
    }

    /// A file of loaded code. An address of its code minus `bias` is the address in the file.
    Module<'a> {
        /// The module's number; a module with the same number replaces the earlier one.
        id: u32,
        /// The first address.
        start: u64,
        /// One past the last address.
        end: u64,
        /// The number that the loader added to the file's addresses.
        bias: u64,
        /// The build-id, up to 32 bytes; empty if the file has none.
        build_id: Text<'a>,
        /// The path of the file.
        path: Text<'a>,
    }

    /// A piece of the text of `/proc/self/maps`, which is split if it does not fit into one entry.
    Map<'a> {
        /// The piece.
        bytes: Text<'a>,
    }

    /// A thread.
    Thread<'a> {
        /// The thread's number in this record, from 1.
        number: u32,
        /// The kernel's number.
        tid: u32,
        /// The thread's name.
        name: Text<'a>,
    }

    /// A stack.
    Stack<'a> {
        /// The stack's number, from 1.
        id: u32,
        /// Return addresses, innermost first.
        frames: Frames<'a>,
    }

    /// A call site whose blocks should be guarded in the next run, too.
    Site {
        /// A hash of the stack, from addresses within modules. It is the same in every run.
        key: u64,
        /// One in this many blocks should be guarded.
        odds: u32,
        /// The kind of the last finding.
        last: FindingKind,
        /// The number of findings.
        hits: u32,
    }

    /// A line of text for people.
    Note<'a> {
        /// The line, without its end.
        bytes: Text<'a>,
    }

    /// The end of the process. A record without this entry is of a process that runs, was killed,
    /// or became another program.
    End {
        /// Findings, including those that were not written.
        findings: u32,
        /// Blocks allocated.
        allocations: u64,
        /// Blocks freed.
        frees: u64,
        /// The most bytes in use at once, as requested. The heap takes this figure when it opens a
        /// bucket or makes a large block. So the true peak may be higher, by blocks in current
        /// buckets.
        peak_live_bytes: u64,
        /// The kind of end.
        ending: Ending,
        /// The signal that ended the process, or 0.
        signal: u32,
    }

    /// A repeated finding: the same kind, at the same place, of a block from the same place. If a
    /// finding has several such entries, the last one holds.
    Times {
        /// The number of the finding in the process, from 0.
        finding: u32,
        /// The number of times in all.
        times: u64,
    }

    /// A leak check began. Its results follow, up to its [`Checked`]; entries of other kinds may
    /// come in between.
    Check {
        /// The check's number in this process, from 1.
        number: u32,
        /// The reason for the check.
        occasion: Occasion,
        /// Nanoseconds since the process began.
        ns: u64,
        /// Operations on the heap so far.
        sequence: u64,
        /// Nanoseconds for which the program stood still.
        stopped_ns: u64,
        /// Threads of the process.
        threads: u32,
        /// Threads that did not report their registers.
        silent: u32,
        /// The thread that began the check, by its number in this record; 0 if it is not known.
        thread: u32,
    }

    /// The blocks of one stack with one reach, in one check.
    Leak {
        /// The number of the check.
        check: u32,
        /// The way in which pointers lead to the blocks.
        reach: Reach,
        /// The kind of call that allocated the blocks.
        origin: Origin,
        /// The number of the stack that allocated the blocks; 0 if none was kept.
        stack: u32,
        /// The thread that allocated the example.
        thread: u32,
        /// The number of blocks.
        blocks: u64,
        /// Their bytes, as requested.
        bytes: u64,
        /// If definitely lost: the number of blocks that were lost with these blocks.
        indirect_blocks: u64,
        /// The bytes of the blocks that were lost with them.
        indirect_bytes: u64,
        /// The address of the largest block: the example in the next fields and entries.
        block: u64,
        /// The size of the example.
        size: u64,
        /// When the oldest block was allocated, in nanoseconds since the process began; not exact.
        oldest_ns: u64,
        /// When the youngest block was allocated.
        youngest_ns: u64,
        /// The kind of root that leads to the example; unknown if none does. [`Step`]s follow.
        root: Root,
        /// The address of the root.
        root_address: u64,
        /// The thread that has the root in its stack, registers or variables, or 0.
        root_thread: u32,
    }

    /// A block on the path from a root to the example of the preceding [`Leak`]. Steps come in
    /// order, without the example itself.
    Step {
        /// The block.
        block: u64,
        /// The size of the block.
        size: u64,
        /// The offset of the pointer to the next block.
        offset: u64,
        /// The number of the stack that allocated the block.
        stack: u32,
    }

    /// The live blocks of one stack at a check. Small groups may be left out.
    Usage {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// Live blocks.
        blocks: u64,
        /// Their bytes, as requested.
        bytes: u64,
    }

    /// The occupancy of the buckets of one size at a check.
    Class {
        /// The number of the check.
        check: u32,
        /// Bytes in a slot; 0 for sampled and large blocks.
        slot: u64,
        /// Buckets.
        buckets: u64,
        /// Bytes of their memory.
        memory: u64,
        /// Live slots.
        live: u64,
        /// Requested bytes in live slots.
        bytes: u64,
        /// Freed slots that wait for their bucket.
        freed: u64,
        /// Slots that were never handed out.
        unused: u64,
    }

    /// A leak check is complete.
    Checked {
        /// The check's number.
        check: u32,
        /// Nanoseconds that the check took.
        took_ns: u64,
        /// Live blocks.
        blocks: u64,
        /// Their bytes, as requested.
        bytes: u64,
        /// Groups that were left out because they are small.
        omitted_groups: u64,
        /// Blocks in those groups.
        omitted_blocks: u64,
        /// Bytes in those groups.
        omitted_bytes: u64,
        /// Bytes that were searched for pointers.
        read_bytes: u64,
    }

    /// The live blocks at one moment.
    Sample {
        /// Nanoseconds since the process began.
        ns: u64,
        /// Operations on the heap so far.
        sequence: u64,
        /// Live blocks.
        blocks: u64,
        /// Their bytes, as requested.
        bytes: u64,
    }

    /// Marks the preceding check as a heap profile: its figures are estimates from samples.
    Profile {
        /// The number of the check.
        check: u32,
        /// The current sampling distance in bytes, on average.
        period: u64,
        /// When sampling began: 0, because times count from then (see [`Process::time`]).
        since_ns: u64,
        /// The peak of live bytes.
        peak_bytes: u64,
        /// When the peak was, in nanoseconds since the process began.
        peak_ns: u64,
        /// Samples that were lost for lack of memory.
        lost: u64,
    }

    /// Estimates for one stack's blocks in a [`Profile`]. Bytes are requested bytes. An error is
    /// one standard deviation of the preceding estimate.
    Sampled {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// Live samples.
        live_samples: u64,
        /// Live blocks.
        live_blocks: u64,
        /// Their bytes.
        live_bytes: u64,
        /// The error of `live_bytes`.
        live_error: u64,
        /// Samples since sampling began.
        allocated_samples: u64,
        /// Blocks allocated since sampling began.
        allocated_blocks: u64,
        /// Their bytes.
        allocated_bytes: u64,
        /// The error of `allocated_bytes`.
        allocated_error: u64,
        /// Blocks that were freed within a millisecond.
        temporary_blocks: u64,
        /// Their bytes.
        temporary_bytes: u64,
        /// Blocks that were live at the peak of live bytes.
        peak_blocks: u64,
        /// Their bytes.
        peak_bytes: u64,
        /// When the oldest live sample was allocated, in nanoseconds since the process began.
        oldest_ns: u64,
        /// When the youngest live sample was allocated.
        youngest_ns: u64,
        /// The kind of memory.
        memory: Memory,
    }

    /// Estimates for one thread's blocks in a [`Profile`].
    SampledThread {
        /// The number of the check.
        check: u32,
        /// The thread, by its number in this record.
        thread: u32,
        /// Live blocks of the thread.
        live_blocks: u64,
        /// Their bytes.
        live_bytes: u64,
        /// Blocks that the thread allocated since sampling began.
        allocated_blocks: u64,
        /// Their bytes.
        allocated_bytes: u64,
    }

    /// Live bytes of a [`Profile`] at one moment. These entries are ordered by time; the last one
    /// shows the moment when the profile was written.
    SampledPoint {
        /// The number of the check.
        check: u32,
        /// Nanoseconds since sampling began.
        ns: u64,
        /// Live bytes, estimated.
        live_bytes: u64,
        /// Resident bytes of the process, as the kernel says; 0 if they are not known.
        resident_bytes: u64,
    }

    /// More estimates for a stack's blocks. They belong to the [`Sampled`] of this stack.
    SampledMore {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// The error of `temporary_bytes`.
        temporary_error: u64,
        /// The error of `peak_bytes`.
        peak_error: u64,
        /// The earlier moment from which growth is counted, in nanoseconds since sampling began.
        earlier_ns: u64,
        /// Blocks that were live at that moment.
        earlier_blocks: u64,
        /// Their bytes.
        earlier_bytes: u64,
        /// The error of the difference between live bytes and `earlier_bytes`.
        growth_error: u64,
    }
}

macro_rules! entries {
    ($( $(#[$doc:meta])* $tag:literal $name:ident($type:ty), )*) => {
        /// An entry of a debug record. [`Entry::tag`] is its number in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Entry<'a> {
            $( $(#[$doc])* $name($type), )*
        }

        impl<'a> Entry<'a> {
            /// Returns the number of this kind of entry in the file.
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

            /// Reads an entry's fields. `None` if the tag is not known.
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
    /// The writing process.
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
    /// A site to guard next time.
    7 Site(Site),
    /// A line of text.
    8 Note(Note<'a>),
    /// The end of the process.
    9 End(End),
    /// The number of times of a finding.
    10 Times(Times),
    /// A leak check began.
    11 Check(Check),
    /// The blocks of one stack and reach.
    12 Leak(Leak),
    /// A block on the path to a reachable block.
    13 Step(Step),
    /// The live blocks of a stack.
    14 Usage(Usage),
    /// The occupancy of the buckets of one size.
    15 Class(Class),
    /// A leak check is complete.
    16 Checked(Checked),
    /// The live blocks at one moment.
    17 Sample(Sample),
    /// Marks a check as a heap profile.
    18 Profile(Profile),
    /// Estimates for a stack's blocks.
    19 Sampled(Sampled),
    /// Estimates for a thread's blocks.
    20 SampledThread(SampledThread),
    /// Live bytes of a profile at one moment.
    21 SampledPoint(SampledPoint),
    /// More estimates for a stack's blocks.
    22 SampledMore(SampledMore),
}
