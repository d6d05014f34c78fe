//! Roots: the program's own pointers outside of its blocks.
//!
//! ```text
//!   /proc/self/maps
//!     a module's data                    globals
//!     [stack], a thread's stack          from its stack pointer up
//!     an ended thread's stack            one word: the C library keeps it for the next thread
//!     other memory, of files or none     all of it
//!     heapwright's own                   nothing
//!   registers                            as each thread has reported them
//!   the window                           units that are not the debug heap's
//! ```
//!
//! Below the stack pointer lie stale pointers of finished calls, which do not count. If a thread
//! did not publish its stack pointer, the whole stack counts, as doubtful. A mapping behind a guard
//! is a thread's stack if it contains the thread's pointer and stack pointer, and no other
//! thread's. Stacks elsewhere (fibers) are read whole.
//!
//! An ended thread's stack is recognised by the C library's struct at its end, behind a guard page.
//! The struct contains its own address twice and belongs to no running thread. (This works only on
//! x86-64, by its ABI.) Only the address of the loader's table of variables is read there. Called
//! by `leaks`, usually in a copy of the process.

use heapwright_record::debug::Root;

use crate::address_map::{Kind, MAP};
use crate::os::{self, Answer, Contents, Mapping, ProcMem};
use crate::size_class::UNIT;
use crate::sync::atomic::Ordering;

use super::super::span::Span;
use super::zeroed::{Plain, ZeroedArray};

/// The largest inaccessible mapping, and the largest shared mapping of a file, that is read.
const HIDDEN_MOST: usize = 1 << 30;
const SHARED_FILE_MOST: usize = 64 << 20;
/// The distance of the C library's thread struct from the end of its stack.
#[cfg(target_arch = "x86_64")]
const THREAD_STRUCT: usize = 16 << 10;
/// The least room for regions. Most processes have fewer. Untouched room costs nothing.
const ROOM: usize = 8192;
const STRUCT: usize = 4096;
/// The offset in the struct where the address of the loader's table of variables lies.
const TABLE: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) start: usize,
    pub(super) end: usize,
    kind: u8,
    /// Whether pointers in the range are surely the program's.
    pub(super) sure: bool,
    /// Whether no other process sees the range.
    pub(super) private: bool,
    /// The thread of a stack, by the system's number.
    thread: u32,
}

// SAFETY: numbers, and booleans that are false as zero.
unsafe impl Plain for Region {}

impl Region {
    pub(super) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(super) fn kind(&self) -> Root {
        Root::from_u8(self.kind)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) thread: u32,
    /// The address from which the thread's stack counts.
    pub(super) stack: usize,
    pub(super) pointer: usize,
}

pub(super) struct Roots {
    regions: ZeroedArray<Region>,
    count: usize,
    is_full: bool,
    caller: Caller,
    answers: &'static [Answer],
    /// Bytes of thread-local variables below and above a thread's pointer.
    thread_local: (usize, usize),
}

struct Running {
    thread: u32,
    stack: usize,
    pointer: usize,
}

impl Roots {
    /// Collects the roots. Returns `None` without readable mappings, or without memory.
    pub(super) fn new(
        heap: u32,
        proc_mem: &ProcMem,
        caller: Caller,
        answers: &'static [Answer],
        thread_local: (usize, usize),
    ) -> Option<Self> {
        let mut room = ROOM + MAP.limit();
        loop {
            let regions = ZeroedArray::new(room)?;
            let mut roots =
                Self { regions, count: 0, is_full: false, caller, answers, thread_local };
            let mut before: Option<(usize, bool)> = None;
            os::each_mapping(&mut |mapping| {
                let guarded = before == Some((mapping.start, false));
                roots.add_mapping(proc_mem, mapping, guarded);
                before = Some((mapping.end, mapping.readable));
                true
            })
            .then_some(())?;
            roots.add_window(heap);
            if !roots.is_full {
                return Some(roots);
            }
            room = room.checked_mul(4)?;
        }
    }

    pub(super) fn none(caller: Caller, answers: &'static [Answer]) -> Option<Self> {
        let regions = ZeroedArray::new(1)?;
        Some(Self { regions, count: 0, is_full: false, caller, answers, thread_local: (0, 0) })
    }

    pub(super) fn regions(&self, kind: Root) -> impl Iterator<Item = Region> {
        let all = self.regions[..self.count].iter().copied();
        all.filter(move |region| region.kind() == kind)
    }

    pub(super) fn each_register(&self, visit: &mut dyn FnMut(usize, usize)) {
        for words in self.answers.iter().filter_map(Answer::words) {
            for register in &words.registers {
                visit(*register, core::ptr::from_ref(register).addr());
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = Running> {
        let Caller { thread, stack, pointer } = self.caller;
        let others = self.answers.iter().filter_map(|answer| {
            let words = answer.words()?;
            let (stack, pointer) = (words.stack, words.pointer);
            Some(Running { thread: answer.thread(), stack, pointer })
        });
        core::iter::once(Running { thread, stack, pointer }).chain(others)
    }

    fn has_silent(&self) -> bool {
        self.answers.iter().any(Answer::is_silent)
    }

    fn add_mapping(&mut self, proc_mem: &ProcMem, mapping: &Mapping, guarded: bool) {
        // Most mappings of a small process are heapwright's, each behind a guard page.
        if ours(mapping.start).is_some_and(|end| end >= mapping.end) {
            return;
        }
        let contents = mapping.contents();
        let is_file = mapping.name().starts_with(b"/");
        // The program may make a protected mapping accessible again.
        let is_hidden = !mapping.readable;
        let hides_much = mapping.shared || mapping.end - mapping.start > HIDDEN_MOST;
        if is_hidden && (hides_much || !proc_mem.knows_pages())
            || matches!(contents, Contents::Special)
            // A file's code holds instructions, and a search for written pages would take long.
            || is_file && mapping.executable && !mapping.writable
            // The loader writes this mapping before it protects it. Only written pages are read.
            || is_file && !mapping.writable && !proc_mem.knows_pages()
        {
            return;
        }
        let is_shared_file = mapping.shared && !is_memory(mapping.name());
        if is_shared_file && mapping.end - mapping.start > SHARED_FILE_MOST {
            return;
        }
        let mut region = Region {
            start: mapping.start,
            end: mapping.end,
            kind: Root::Mapping as u8,
            sure: !is_shared_file,
            private: !mapping.shared,
            thread: 0,
        };
        // The look-up of a module may read all mappings, so it is left out for heapwright's own.
        if is_file
            || ours(mapping.start).is_none() && crate::stacks::module_range(mapping.start).is_some()
        {
            region.kind = Root::Globals as u8;
        } else {
            self.look_for_stack(proc_mem, mapping, guarded, &mut region);
        }
        self.add_between_ours(region);
    }

    fn look_for_stack(
        &self,
        proc_mem: &ProcMem,
        mapping: &Mapping,
        guarded: bool,
        region: &mut Region,
    ) {
        let inside = |address: usize| (mapping.start..mapping.end).contains(&address);
        let is_first = mapping.contents() == Contents::MainStack;
        let mut on_it = self.running().filter(|running| inside(running.stack));
        if let (Some(running), None) = (on_it.next(), on_it.next()) {
            region.kind = Root::Stack as u8;
            region.thread = running.thread;
            let alone = self.running().filter(|running| inside(running.pointer)).count() <= 1;
            // Without a guard, the memory below may be something else.
            if is_first || guarded && inside(running.pointer) && alone {
                region.start = running.stack.max(mapping.start) & !7;
            }
            return;
        }
        if is_first {
            region.kind = Root::Stack as u8;
            region.sure = !self.has_silent();
            return;
        }
        if guarded && let Some(at) = self.ended_thread(proc_mem, mapping) {
            if self.has_silent() {
                region.sure = false;
            } else {
                (region.start, region.end) = (at + TABLE, at + TABLE + size_of::<usize>());
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn ended_thread(&self, proc_mem: &ProcMem, mapping: &Mapping) -> Option<usize> {
        const GRAIN: usize = 64;
        let mut bytes = [0; 4096];
        let from = mapping.end.saturating_sub(THREAD_STRUCT).max(mapping.start);
        let mut at = from.next_multiple_of(GRAIN);
        while at < mapping.end {
            let room = (mapping.end - at).min(bytes.len());
            let got = proc_mem.read(at, &mut bytes[..room]);
            let word = |offset: usize| {
                let bytes = bytes.get(offset..offset + 8)?.first_chunk()?;
                Some(usize::from_ne_bytes(*bytes))
            };
            for offset in (0..got).step_by(GRAIN) {
                let place = at + offset;
                if word(offset) == Some(place) && word(offset + 16) == Some(place) {
                    let runs = self.running().any(|running| running.pointer == place);
                    return (!runs).then_some(place);
                }
            }
            // The end of a piece never cuts the struct's first words.
            at += room;
        }
        None
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ended_thread(&self, _sight: &ProcMem, _mapping: &Mapping) -> Option<usize> {
        None
    }

    fn add_between_ours(&mut self, region: Region) {
        let mut at = region.start;
        while at < region.end {
            if let Some(end) = ours(at) {
                at = end;
                continue;
            }
            let end = next_of_ours(at).min(region.end);
            self.add(Region { start: at, end, ..region });
            at = end;
        }
    }

    fn add(&mut self, region: Region) {
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.regions.get_mut(last))
            && last.end == region.start
            && last.kind() == Root::Globals
            && (last.kind, last.sure, last.private) == (region.kind, region.sure, region.private)
        {
            last.end = region.end;
            return;
        }
        if let Some(place) = self.regions.get_mut(self.count) {
            *place = region;
            self.count += 1;
        } else {
            self.is_full = true;
        }
    }

    /// Adds the units of other heaps (also debug and collected heaps), pools and arenas.
    fn add_window(&mut self, heap: u32) {
        for unit in 0..MAP.limit() {
            let holds = matches!(
                MAP.kind(unit),
                Kind::Slab(_)
                    | Kind::LargeHead
                    | Kind::LargeRest(_)
                    | Kind::PoolHead
                    | Kind::PoolRest(_)
                    | Kind::Arena
                    | Kind::Collected(_)
                    | Kind::CollectedRest(_)
            );
            let address = MAP.address_of(unit).addr();
            let is_others =
                || Span::of(address).is_some_and(|span| span.heap.load(Ordering::Relaxed) != heap);
            if !holds && !is_others() {
                continue;
            }
            let start = address;
            let last = self.count.checked_sub(1).and_then(|last| self.regions.get_mut(last));
            match last {
                Some(last) if last.end == start && last.kind() == Root::OtherHeap => {
                    last.end += UNIT;
                }
                _ => self.add(Region {
                    start,
                    end: start + UNIT,
                    kind: Root::OtherHeap as u8,
                    sure: true,
                    private: true,
                    thread: 0,
                }),
            }
        }
    }

    pub(super) fn describe(&self, address: usize) -> (Root, u32) {
        for answer in self.answers {
            if let Some(words) = answer.words()
                && core::ptr::from_ref(words).addr() <= address
                && address < core::ptr::from_ref(words).addr() + size_of_val(words)
            {
                return (Root::Registers, answer.thread());
            }
        }
        let (below, above) = self.thread_local;
        for running in self.running() {
            let from = running.pointer.saturating_sub(below);
            if running.pointer != 0 && (from..running.pointer + above + STRUCT).contains(&address) {
                return (Root::ThreadLocal, running.thread);
            }
        }
        let mut all = self.regions[..self.count].iter();
        let region = all.find(|region| (region.start..region.end).contains(&address));
        region.map_or((Root::Unknown, 0), |region| (region.kind(), region.thread))
    }
}

fn is_memory(name: &[u8]) -> bool {
    const MEMORY: [&[u8]; 7] = [
        b"/dev/zero",
        b"/dev/shm/",
        b"/dev/hugepages/",
        b"/anon_hugepage",
        b"/memfd:",
        b"/SYSV",
        b"[anon",
    ];
    name.is_empty() || MEMORY.iter().any(|memory| name.starts_with(memory))
}

/// Returns the end of heapwright's own memory at an address, if it is there.
fn ours(address: usize) -> Option<usize> {
    if let Some(end) = os::is_own(address) {
        return Some(end);
    }
    // Foreign units, between the parts of a growing window, are not heapwright's.
    let (unit, entry) = MAP.lookup(address);
    if entry.kind() != Kind::Foreign {
        return Some(MAP.address_of(unit).addr() + UNIT);
    }
    super::own_module().filter(|own| own.contains(&address)).map(|own| own.end)
}

fn next_of_ours(address: usize) -> usize {
    let own = super::own_module().map_or(0, |own| own.start);
    let window = MAP.base().addr();
    let in_window = (window..window + MAP.limit() * UNIT).contains(&address);
    let unit = if in_window { address - address % UNIT + UNIT } else { window };
    let starts = [os::next_own(address), unit, own];
    starts.into_iter().filter(|&start| start > address).min().unwrap_or(usize::MAX)
}
