//! The status memory: the figures that processes on heapwright show while they run.
//!
//! Each started program has one status memory, in System V shared memory, which its forked children
//! share. The command attaches it by its number. The kernel frees it with the last process. Its
//! size is fixed, so no process can take pages away from another.
//!
//! ```text
//!   memory   | magic | owners: process and its namespace, a word a slot |         2 KiB
//!            | slot 0 | slot 1 | ....                                             2 KiB a slot
//!
//!   slot     | sequence | facts | statistics | classes |              written by the process
//!            | watched until | what | argument | until | asked |      an order, by the command
//!            | answer | answered |                                    by the process
//! ```
//!
//! One exchange in a slot's owner word takes the slot, or gives it back: a sandboxed process needs
//! no system call. If all slots are taken, a child takes the slot of the process that has been
//! silent for longest. If that process lives, it takes another slot at its next report.
//!
//! A sequence guards each report (a seqlock): it is odd while the process writes. The command gives
//! an order by writing its number to `asked` last. The process writes the answer, and then that
//! number to `answered`. An order expires. No order names a file, because a child that has given up
//! its parent's rights can still write to the parent's slot. A hardened process follows no order,
//! and shows no address.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::Stats;

/// The first word of the memory: a name, and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HWLIVE\0\x02");
/// The most processes of one program, forked children included, that can be shown at a time.
pub const SLOTS: usize = 255;
/// Bytes of the memory.
pub const BYTES: usize = size_of::<Status>();
/// The number of size classes in a report.
pub const CLASSES: usize = 80;

/// The largest valid number. Larger numbers are read as this one, so that sums do not overflow.
pub const MOST: u64 = 1 << 56;

const SLOT_WORDS: usize = 256;
const STATS_WORDS: usize = 112;
const _: () = assert!(Stats::WORDS <= STATS_WORDS);
const _: () = assert!(size_of::<Slot>() == 8 * SLOT_WORDS && size_of::<Status>() == 512 << 10);

macro_rules! facts {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// The facts of a process, beside its statistics.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Facts {
            $( $(#[$doc])* pub $name: u64, )*
        }

        impl Facts {
            const ZERO: Self = Self { $( $name: 0, )* };
        }

        const FACTS: usize = [$(stringify!($name)),*].len();

        impl Facts {
            const fn words(&self) -> [u64; FACTS] {
                [ $( self.$name, )* ]
            }

            const fn of_words(words: [u64; FACTS]) -> Self {
                let [ $( $name, )* ] = words;
                Self { $( $name, )* }
            }
        }
    };
}

facts! {
    /// The time of the report in nanoseconds of the monotonic clock, which all processes share.
    written_ns,
    /// The nanoseconds that the collection of the report took.
    took_ns,
    /// The address of the window. Like every address here, 0 in a hardened process.
    window_at,
    /// Bytes of addresses that are reserved for the window.
    window_bytes,
    /// Bytes of the window that may be in memory.
    window_used,
    /// The address of the address map's table.
    table_at,
    /// Bytes of the table.
    table_bytes,
    /// The address of the units' records.
    records_at,
    /// Bytes of the records.
    records_bytes,
    /// The address of the units' bitmaps.
    bitmaps_at,
    /// Bytes of the bitmaps.
    bitmaps_bytes,
    /// The sampling distance of the heap profile in bytes; 0 if sampling is off.
    sampling,
    /// The purge delay in force, in milliseconds; [`MOST`] means for ever.
    purge_delay_ms,
    /// The version of the library: major, minor and patch level, 16 bits each.
    version,
}

/// The report of a process.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The facts.
    pub facts: Facts,
    /// The statistics. Residency is an estimate; the reader can ask the kernel.
    pub stats: Stats,
    /// The contents of the slabs, by size class.
    pub classes: [Class; CLASSES],
}

impl Report {
    /// All zeros.
    pub const ZERO: Self = Self {
        facts: Facts::ZERO,
        stats: Stats::zero(),
        classes: [Class { size: 0, used: 0, free: 0 }; CLASSES],
    };
}

/// The slabs of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Bytes in a slot.
    pub size: u64,
    /// Resident bytes of slots that are in use or in caches.
    pub used: u64,
    /// Resident bytes of the other slots.
    pub free: u64,
}

impl Class {
    /// Returns the class in one word: 12 bits for the size in units of 16 bytes, and 26 bits for
    /// each other value in KiB. Larger values are cut to fit.
    const fn word(&self) -> u64 {
        const fn kib(bytes: u64) -> u64 {
            let kib = bytes.div_ceil(1024);
            if kib >> 26 == 0 { kib } else { (1 << 26) - 1 }
        }
        (self.size / 16) << 52 | kib(self.used) << 26 | kib(self.free)
    }

    fn of_word(word: u64) -> Self {
        let kib = |shift: u32| (word >> shift & ((1 << 26) - 1)) * 1024;
        Self { size: (word >> 52) * 16, used: kib(26), free: kib(0) }
    }
}

/// An order to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sample a block every so many bytes, on average, until the order expires.
    Sample(u64),
    /// Stop sampling.
    Stop,
    /// Write the heap profile to a file with a known name: see [`PROFILE_NAME`].
    Write,
    /// Give free memory back to the kernel.
    Trim,
}

/// The answer to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The order was carried out.
    Done,
    /// The order failed or had expired, or `malloc` is not this heap's.
    Failed,
    /// The order failed: sampling is on already, with another distance.
    Busy,
    /// This library does not know the order.
    Unknown,
    /// The process refused: a hardened process follows no order.
    Refused,
}

impl Answer {
    const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Busy, Self::Unknown, Self::Refused];
}

/// One process's part of the memory. See the module's documentation.
#[repr(C)]
pub struct Slot {
    sequence: AtomicU64,
    facts: [AtomicU64; 24],
    stats: [AtomicU64; STATS_WORDS],
    classes: [AtomicU64; CLASSES],
    /// The time until which a command watches this process, in nanoseconds of the monotonic clock.
    watched_until: AtomicU64,
    what: AtomicU64,
    argument: AtomicU64,
    until: AtomicU64,
    asked: AtomicU64,
    answer: AtomicU64,
    answered: AtomicU64,
    rest: [AtomicU64; SLOT_WORDS - 1 - 24 - STATS_WORDS - CLASSES - 7],
}

const _: () = assert!(FACTS <= 24);

impl Slot {
    /// Clears the report of the previous owner. The caller has just taken the slot.
    pub fn clear(&self) {
        // A static, because a report on the stack would take almost 3 KiB.
        self.write(const { &Report::ZERO });
        self.watched_until.store(0, Ordering::Relaxed);
        self.answered.store(self.asked.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Writes a report. Only the slot's owner calls this, one thread at a time.
    pub fn write(&self, report: &Report) {
        let sequence = self.sequence.load(Ordering::Relaxed) | 1;
        self.sequence.store(sequence, Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.facts.iter().zip(report.facts.words()) {
            word.store(value, Ordering::Relaxed);
        }
        for (index, word) in self.stats.iter().take(Stats::WORDS).enumerate() {
            word.store(report.stats.word(index), Ordering::Relaxed);
        }
        for (word, class) in self.classes.iter().zip(&report.classes) {
            word.store(class.word(), Ordering::Relaxed);
        }
        self.sequence.store(sequence.wrapping_add(1), Ordering::Release);
    }

    /// Returns the report of the process, with no number larger than [`MOST`]. Returns `None` if
    /// there is no report yet, or if the process is writing it.
    #[must_use]
    pub fn read(&self) -> Option<Report> {
        let sequence = self.sequence.load(Ordering::Acquire);
        if sequence == 0 || sequence % 2 == 1 {
            return None;
        }
        let mut facts = [0; FACTS];
        for (value, word) in facts.iter_mut().zip(&self.facts) {
            *value = word.load(Ordering::Relaxed).min(MOST);
        }
        let mut stats = Stats::zero();
        for (index, word) in self.stats.iter().take(Stats::WORDS).enumerate() {
            stats.set_word(index, word.load(Ordering::Relaxed).min(MOST));
        }
        let mut classes = [Class::default(); CLASSES];
        for (class, word) in classes.iter_mut().zip(&self.classes) {
            *class = Class::of_word(word.load(Ordering::Relaxed));
        }
        fence(Ordering::Acquire);
        // A slot that was just taken has no report yet.
        let is_whole = self.sequence.load(Ordering::Relaxed) == sequence && facts[0] != 0;
        is_whole.then_some(Report { facts: Facts::of_words(facts), stats, classes })
    }

    /// Notes that a command watches this process until a time of the monotonic clock.
    pub fn watch(&self, until_ns: u64) {
        self.watched_until.fetch_max(until_ns, Ordering::Relaxed);
    }

    /// Returns whether a command watches this process.
    #[must_use]
    pub fn is_watched(&self, now_ns: u64) -> bool {
        self.watched_until.load(Ordering::Relaxed) > now_ns
    }

    /// Gives an order, which expires at a time of the monotonic clock. Returns the order's number.
    /// The commands' locks let one command at a time do this.
    pub fn ask(&self, order: Order, until_ns: u64) -> u64 {
        let (what, argument) = match order {
            Order::Sample(period) => (1, period),
            Order::Stop => (2, 0),
            Order::Write => (3, 0),
            Order::Trim => (4, 0),
        };
        self.what.store(what, Ordering::Relaxed);
        self.argument.store(argument, Ordering::Relaxed);
        self.until.store(until_ns, Ordering::Relaxed);
        let number = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(number, Ordering::Release);
        number
    }

    /// Returns the order that has no answer yet: its number, the order (`None` if this version does
    /// not know it), and its end.
    #[must_use]
    pub fn order(&self) -> Option<(u64, Option<Order>, u64)> {
        let number = self.asked.load(Ordering::Acquire);
        if number == self.answered.load(Ordering::Relaxed) {
            return None;
        }
        let order = match self.what.load(Ordering::Relaxed) {
            1 => Some(Order::Sample(self.argument.load(Ordering::Relaxed))),
            2 => Some(Order::Stop),
            3 => Some(Order::Write),
            4 => Some(Order::Trim),
            _ => None,
        };
        let until = self.until.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        // A command may be writing another order.
        (self.asked.load(Ordering::Relaxed) == number).then_some((number, order, until))
    }

    /// Answers an order.
    pub fn answer(&self, number: u64, answer: Answer) {
        self.answer.store(answer as u64, Ordering::Relaxed);
        self.answered.store(number, Ordering::Release);
    }

    /// Returns the answer to an order, or `None` if there is none yet.
    #[must_use]
    pub fn answer_to(&self, number: u64) -> Option<Answer> {
        if self.answered.load(Ordering::Acquire) != number {
            return None;
        }
        let answer = usize::try_from(self.answer.load(Ordering::Relaxed)).ok();
        Some(answer.and_then(|at| Answer::ALL.get(at).copied()).unwrap_or(Answer::Unknown))
    }
}

/// The folder for the profile if the process cannot write to `$XDG_RUNTIME_DIR`.
pub const PROFILE_FOLDER: &str = "/dev/shm";
/// The parts of the profile's file name, around the numbers of the user and of the process.
pub const PROFILE_NAME: [&str; 3] = ["heapwright-", "-", ".profile"];

/// A process, and the namespace of its number (the lower half of its inode; 0 if it is not known).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process's number in the namespace.
    pub process: u32,
    /// The namespace.
    pub namespace: u32,
}

impl Owner {
    const fn word(self) -> u64 {
        self.process as u64 | (self.namespace as u64) << 32
    }

    const fn of_word(word: u64) -> Option<Self> {
        let owner = Self { process: word as u32, namespace: (word >> 32) as u32 };
        if owner.process == 0 { None } else { Some(owner) }
    }
}

/// The status memory. See the module's documentation. New memory is all zeros.
#[repr(C, align(2048))]
pub struct Status {
    magic: AtomicU64,
    owners: [AtomicU64; SLOTS],
    slots: [Slot; SLOTS],
}

impl Status {
    /// Initialises new memory.
    pub fn begin(&self) {
        self.magic.store(MAGIC, Ordering::Relaxed);
    }

    /// Returns whether the memory has this layout, for a command that only reads.
    #[must_use]
    pub fn is_of_this_version(&self) -> bool {
        self.magic.load(Ordering::Relaxed) == MAGIC
    }

    /// Takes a slot: the caller's own, else a free one, else the slot that has been silent for
    /// longest. Returns `None` if another process was faster.
    #[must_use]
    pub fn take(&self, owner: Owner) -> Option<usize> {
        let find =
            |wanted| self.owners.iter().position(|word| word.load(Ordering::Relaxed) == wanted);
        // A slot without a report was taken just now, so it does not count as silent.
        let written =
            |&index: &usize| self.slots[index].facts[0].load(Ordering::Relaxed).wrapping_sub(1);
        let index =
            find(owner.word()).or_else(|| find(0)).or_else(|| (0..SLOTS).min_by_key(written))?;
        let word = &self.owners[index];
        let before = word.load(Ordering::Relaxed);
        word.compare_exchange(before, owner.word(), Ordering::Acquire, Ordering::Relaxed).ok()?;
        self.slots[index].clear();
        Some(index)
    }

    /// Gives a slot back if `owner` still owns it.
    pub fn give_back(&self, index: usize, owner: Owner) {
        if let Some(word) = self.owners.get(index) {
            _ = word.compare_exchange(owner.word(), 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Returns the owner of a slot, if it has one.
    #[must_use]
    pub fn owner(&self, index: usize) -> Option<Owner> {
        Owner::of_word(self.owners.get(index)?.load(Ordering::Acquire))
    }

    /// Returns the slot of an index.
    #[must_use]
    pub fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::boxed::Box;
    use std::vec::Vec;

    /// Runs a test with new memory on a large stack, where the memory is made.
    fn with_status(test: fn(&Status)) {
        let run = move || test(&new_status());
        std::thread::Builder::new().stack_size(16 << 20).spawn(run).unwrap().join().unwrap();
    }

    fn new_status() -> Box<Status> {
        let slots: Vec<Slot> = (0..SLOTS)
            .map(|_| Slot {
                sequence: AtomicU64::new(0),
                facts: [const { AtomicU64::new(0) }; 24],
                stats: [const { AtomicU64::new(0) }; STATS_WORDS],
                classes: [const { AtomicU64::new(0) }; CLASSES],
                watched_until: AtomicU64::new(0),
                what: AtomicU64::new(0),
                argument: AtomicU64::new(0),
                until: AtomicU64::new(0),
                asked: AtomicU64::new(0),
                answer: AtomicU64::new(0),
                answered: AtomicU64::new(0),
                rest: [const { AtomicU64::new(0) }; _],
            })
            .collect();
        let slots = slots.try_into().unwrap_or_else(|_| unreachable!());
        Box::new(Status {
            magic: AtomicU64::new(0),
            owners: [const { AtomicU64::new(0) }; SLOTS],
            slots,
        })
    }

    fn owner(process: u32) -> Owner {
        Owner { process, namespace: 7 }
    }

    fn report(n: u64) -> Report {
        Report {
            facts: Facts { written_ns: n, window_at: n, version: n, ..Facts::default() },
            stats: Stats { rss: n, name_high: n, ..Stats::zero() },
            classes: [Class { size: n % 4096 * 16, used: n * 1024, free: 7 << 40 }; CLASSES],
        }
    }

    #[test]
    fn slots_are_taken_and_given_back() {
        with_status(|status| {
            assert!(!status.is_of_this_version());
            status.begin();
            assert!(status.is_of_this_version());
            assert_eq!((status.take(owner(1)), status.take(owner(2))), (Some(0), Some(1)));
            assert_eq!(status.take(owner(1)), Some(0), "its own");
            status.give_back(0, owner(2));
            assert_eq!(status.owner(0), Some(owner(1)), "only the owner gives it back");
            status.give_back(0, owner(1));
            assert_eq!(status.owner(0), None);
            assert_eq!(status.take(owner(3)), Some(0));
            assert!(status.slot(SLOTS - 1).is_some() && status.slot(SLOTS).is_none());
        });
    }

    #[test]
    fn the_longest_silence_makes_room() {
        with_status(|status| {
            for index in 0..SLOTS {
                assert_eq!(status.take(owner(index as u32 + 1)), Some(index));
                if index != 3 {
                    status.slots[index].write(&report(if index == 7 { 1 } else { 2 }));
                }
            }
            assert_eq!(status.take(owner(1000)), Some(7), "3 has only just come");
            assert_eq!(status.owner(7), Some(owner(1000)));
            assert!(status.slots[7].read().is_none(), "shown by the process before");
        });
    }

    #[test]
    fn orders_are_answered_once() {
        with_status(|status| {
            let slot = &status.slots[3];
            assert!(slot.order().is_none());
            for order in [Order::Sample(512), Order::Stop, Order::Write, Order::Trim] {
                let number = slot.ask(order, 9);
                assert!(slot.order().is_some());
                assert_eq!(slot.order(), Some((number, Some(order), 9)));
                assert_eq!(slot.answer_to(number), None);
                for answer in Answer::ALL {
                    slot.answer(number, answer);
                    assert_eq!(slot.answer_to(number), Some(answer));
                }
                assert!(slot.order().is_none());
            }
            slot.what.store(99, Ordering::Relaxed);
            slot.asked.fetch_add(1, Ordering::Relaxed);
            assert_eq!(slot.order().map(|(_, order, _)| order), Some(None));
            slot.clear();
            assert!(slot.order().is_none(), "what was asked of another process");
            assert!(slot.read().is_none(), "what another process has shown");
            slot.write(&Report {
                facts: Facts { written_ns: u64::MAX, ..Facts::default() },
                stats: Stats::zero(),
                classes: [Class::default(); CLASSES],
            });
            assert_eq!(slot.read().map(|report| report.facts.written_ns), Some(MOST));
        });
    }

    #[test]
    fn a_report_is_read_whole() {
        const LAST: u64 = if cfg!(miri) { 20 } else { 2000 };
        with_status(|status| {
            let slot = &status.slots[0];
            assert!(slot.read().is_none(), "nothing was written");
            std::thread::scope(|scope| {
                scope.spawn(|| (1..=LAST).for_each(|n| slot.write(&report(n))));
                let mut seen = 0;
                while seen < LAST {
                    let Some(read) = slot.read() else { continue };
                    let n = read.facts.written_ns;
                    assert!(n >= seen);
                    seen = n;
                    let expected = report(n);
                    assert_eq!((read.facts, read.stats), (expected.facts, expected.stats));
                    let most = ((1 << 26) - 1) * 1024;
                    let class = Class { free: most, ..expected.classes[0] };
                    assert_eq!(read.classes, [class; CLASSES], "larger numbers are cut");
                }
            });
            slot.watch(5);
            slot.watch(3);
            assert!(slot.is_watched(4) && !slot.is_watched(5));
        });
    }
}
