//! What a debug record is made of. The fields' order here is their order in
//! the file; new ones go to the end.

use super::finding::Finding;
use super::numbers::{Ending, FindingKind, Memory, Occasion, Origin, Reach, Root};
use super::text::{Frames, Text};
use super::wire::{Cursor, Field, Sink, record};

record! {
    /// The process that writes. The first entry. Another one begins the record of another program
    /// in the same process, or of a later process with the same number: what is said
    /// of modules, threads, stacks and checks before it does not hold behind it.
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
        /// The signal that ended it; 0: none did, or an older version wrote.
        signal: u32,
    }

    /// A finding was made again: the same kind, at the same place, of a block of the
    /// same place. The last one of a finding holds.
    Times {
        /// Which finding of the process, from 0.
        finding: u32,
        /// How often it was made in all.
        times: u64,
    }

    /// A leak check began. What it found follows, up to its [`Checked`]; entries of
    /// other kinds may come in between.
    Check {
        /// Its number in this process, from 1.
        number: u32,
        /// Why it was made.
        occasion: Occasion,
        /// Nanoseconds since the process began.
        ns: u64,
        /// Operations on the heap so far.
        sequence: u64,
        /// For how many nanoseconds the program stood still.
        stopped_ns: u64,
        /// Threads there were.
        threads: u32,
        /// How many of them did not say what is in their registers.
        silent: u32,
        /// The thread that began it, by its number in this record; 0: not known.
        thread: u32,
    }

    /// What became of the blocks of one stack: those of one reach, in one check.
    Leak {
        /// The number of the check.
        check: u32,
        /// Whether something still leads to them.
        reach: Reach,
        /// How they were made.
        origin: Origin,
        /// The number of the stack that allocated them; 0 where none was kept.
        stack: u32,
        /// The thread that allocated the first of them.
        thread: u32,
        /// How many there are.
        blocks: u64,
        /// Their bytes, as they were asked for.
        bytes: u64,
        /// Definitely lost: how many blocks were lost with them.
        indirect_blocks: u64,
        /// And their bytes.
        indirect_bytes: u64,
        /// The address of one of them, the example of all that follows.
        block: u64,
        /// Its size.
        size: u64,
        /// When the oldest of them was made, in nanoseconds since the process began,
        /// give or take what the timeline does not say.
        oldest_ns: u64,
        /// And the youngest.
        youngest_ns: u64,
        /// What leads to the example; unknown where nothing does. [`Step`]s follow.
        root: Root,
        /// Where in memory that is.
        root_address: u64,
        /// The thread whose stack, registers or variables it is; 0: none.
        root_thread: u32,
    }

    /// One block on the way from a root to the example of the [`Leak`] before it. They
    /// come in order; the example itself is none.
    Step {
        /// The block.
        block: u64,
        /// Its size.
        size: u64,
        /// Where in it the pointer to the next is.
        offset: u64,
        /// The number of the stack that allocated it.
        stack: u32,
    }

    /// What a stack's blocks came to when a check was made. Small ones may be left
    /// out.
    Usage {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// Live blocks.
        blocks: u64,
        /// Their bytes, as they were asked for.
        bytes: u64,
    }

    /// How full the buckets of one size were when a check was made.
    Class {
        /// The number of the check.
        check: u32,
        /// Bytes in a slot; of blocks that stand alone 0.
        slot: u64,
        /// Buckets.
        buckets: u64,
        /// Their memory.
        memory: u64,
        /// Slots that are live.
        live: u64,
        /// The bytes asked for in them.
        bytes: u64,
        /// Slots that were freed and wait for their bucket.
        freed: u64,
        /// Slots that were not handed out yet.
        unused: u64,
    }

    /// A leak check is complete.
    Checked {
        /// Its number.
        check: u32,
        /// For how many nanoseconds it worked.
        took_ns: u64,
        /// Blocks that were live.
        blocks: u64,
        /// Their bytes, as they were asked for.
        bytes: u64,
        /// Groups of blocks that were left out, being small, and their blocks.
        omitted_groups: u64,
        /// Blocks in them.
        omitted_blocks: u64,
        /// Bytes in them.
        omitted_bytes: u64,
        /// Bytes that were looked through for pointers.
        read_bytes: u64,
    }

    /// What was live at a moment.
    Sample {
        /// Nanoseconds since the process began.
        ns: u64,
        /// Operations on the heap so far.
        sequence: u64,
        /// Live blocks.
        blocks: u64,
        /// Their bytes, as they were asked for.
        bytes: u64,
    }

    /// The check before it is a heap profile: its figures are estimates from samples.
    Profile {
        /// The number of the check.
        check: u32,
        /// Bytes from one sample to the next, on average, for blocks that are allocated now.
        period: u64,
        /// Nanoseconds since the process began when sampling did.
        since_ns: u64,
        /// Live bytes at the highest, and nanoseconds since the process began when that was.
        peak_bytes: u64,
        /// When that was.
        peak_ns: u64,
        /// Samples for which there was no memory.
        lost: u64,
    }

    /// What is estimated of a stack's blocks in a [`Profile`]. Bytes are as they were asked for; an
    /// error is one standard deviation of the estimate before it.
    Sampled {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// Samples that are live.
        live_samples: u64,
        /// Live blocks.
        live_blocks: u64,
        /// Their bytes.
        live_bytes: u64,
        /// The error of that.
        live_error: u64,
        /// Samples since sampling began.
        allocated_samples: u64,
        /// Blocks allocated since.
        allocated_blocks: u64,
        /// Their bytes.
        allocated_bytes: u64,
        /// The error of that.
        allocated_error: u64,
        /// Blocks that were freed within a millisecond.
        temporary_blocks: u64,
        /// Their bytes.
        temporary_bytes: u64,
        /// Blocks that were live when most bytes were.
        peak_blocks: u64,
        /// Their bytes.
        peak_bytes: u64,
        /// When the oldest live sample was made, in nanoseconds since the process began.
        oldest_ns: u64,
        /// When the youngest was.
        youngest_ns: u64,
        /// What the blocks are.
        memory: Memory,
    }

    /// What is estimated of a thread's blocks in a [`Profile`].
    SampledThread {
        /// The number of the check.
        check: u32,
        /// The thread, by its number in this record.
        thread: u32,
        /// Blocks of the thread that are live.
        live_blocks: u64,
        /// Their bytes.
        live_bytes: u64,
        /// Blocks that it allocated since sampling began.
        allocated_blocks: u64,
        /// Their bytes.
        allocated_bytes: u64,
    }

    /// Live bytes in a [`Profile`], at a moment. They come by time; the last one is of the moment
    /// when the profile was written.
    SampledPoint {
        /// The number of the check.
        check: u32,
        /// Nanoseconds since sampling began.
        ns: u64,
        /// Live bytes, estimated.
        live_bytes: u64,
        /// Bytes of the process that are in memory, as the kernel says; 0: it was not asked.
        resident_bytes: u64,
    }

    /// More of what is estimated of a stack's blocks: of the [`Sampled`] of this stack.
    SampledMore {
        /// The number of the check.
        check: u32,
        /// The number of the stack.
        stack: u32,
        /// The error of the bytes that were freed within a millisecond.
        temporary_error: u64,
        /// The error of the bytes that were live when most were.
        peak_error: u64,
        /// The earlier moment that growth is counted from, in nanoseconds since sampling began.
        earlier_ns: u64,
        /// Blocks that were live then.
        earlier_blocks: u64,
        /// Their bytes.
        earlier_bytes: u64,
        /// The error of the difference between live bytes and those.
        growth_error: u64,
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
    /// The process that writes.
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
    /// How often a finding was made.
    10 Times(Times),
    /// A leak check began.
    11 Check(Check),
    /// What became of some blocks.
    12 Leak(Leak),
    /// One block on the way to one that is reachable.
    13 Step(Step),
    /// What a stack's blocks came to.
    14 Usage(Usage),
    /// How full the buckets of one size were.
    15 Class(Class),
    /// A leak check is complete.
    16 Checked(Checked),
    /// What was live at a moment.
    17 Sample(Sample),
    /// A check is a heap profile.
    18 Profile(Profile),
    /// What is estimated of a stack's blocks.
    19 Sampled(Sampled),
    /// What is estimated of a thread's blocks.
    20 SampledThread(SampledThread),
    /// Live bytes of a profile at a moment.
    21 SampledPoint(SampledPoint),
    /// More of what is estimated of a stack's blocks.
    22 SampledMore(SampledMore),
}
