//! Translates a story into the operations of each thread.
//!
//! ```text
//! plan (words of 64 bits, of this machine's order)
//! | head 8 | threads: first, count | windows: how many threads | operations ...... |
//!
//! operation   | size 48 | log2 6 | to mail 1 | from mail 1 | kind 8 |    high bits first
//!             | to 32                    | from 32                  |
//! ```
//!
//! **Places.** Between two operations, a block lies in
//!
//! - a *slot* if one thread does both operations: memory of that thread, used again;
//! - a *mail* if another thread does the second, and waits for it. Each is used once: a block that
//!   moves to and fro has a mail for each move.
//!
//! **Order.** A thread's own operations are in order; a mail orders two threads. *Windows*, each a
//! fixed number of operations of the story, order the rest. No thread enters a window before all
//! threads have left the window two before it. A waiting thread waits only for earlier operations
//! of the story, so no thread waits for ever.
//!
//! **Threads.** The operation before a thread's first one in the story belongs to another thread.
//! That other thread starts the new thread, after this operation.

use crate::trace::{Event, Story, What};

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"HWPLAN\x01\0");
/// The words of a plan's head: magic, threads, windows, operations, slots, mails, touch, all words.
pub(super) const HEAD: usize = 8;
/// The bits of a size; no recorded size needs more.
pub(super) const SIZE_BITS: u32 = 48;
/// The fewest operations of a window, and the most windows of a story.
const WINDOW: usize = 4096;
const MOST_WINDOWS: usize = 1 << 16;

/// The bytes of blocks that the player writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Touch {
    /// Nothing: the allocator alone
    None,
    /// The first and last bytes of blocks, and one byte of each page
    Pages,
    /// Every byte
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Malloc = 1,
    Calloc,
    Aligned,
    AlignedZero,
    Realloc,
    Free,
    /// Begins the thread that `size` names.
    Spawn,
    /// Enters the window that `size` names.
    Window,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) number: u32,
    pub(super) is_mail: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) kind: u8,
    pub(super) size: u64,
    pub(super) log2: u8,
    pub(super) from: Place,
    pub(super) to: Place,
}

impl Op {
    fn bare(kind: Kind, size: u64) -> Self {
        Self { kind: kind as u8, size, log2: 0, from: Place::default(), to: Place::default() }
    }

    pub(super) fn pack(self) -> [u64; 2] {
        let size = self.size.min((1 << SIZE_BITS) - 1);
        let flags = u64::from(self.from.is_mail) << 8 | u64::from(self.to.is_mail) << 9;
        let first = size << 16 | u64::from(self.log2) << 10 | flags | u64::from(self.kind);
        [first, u64::from(self.to.number) << 32 | u64::from(self.from.number)]
    }

    #[inline]
    pub(super) fn unpack([first, second]: [u64; 2]) -> Self {
        Self {
            kind: first as u8,
            size: first >> 16,
            log2: (first >> 10 & 0x3f) as u8,
            from: Place { number: second as u32, is_mail: first >> 8 & 1 != 0 },
            to: Place { number: (second >> 32) as u32, is_mail: first >> 9 & 1 != 0 },
        }
    }
}

/// Compiles the plan of a story. With `in_sequence`, one thread does all, in the story's order.
pub(crate) fn compile(story: &Story, touch: Touch, in_sequence: bool) -> Vec<u64> {
    let window = WINDOW.max(story.events.len().div_ceil(MOST_WINDOWS));
    compile_with(story, touch, in_sequence, window)
}

/// Like [`compile`], with windows of `window` operations.
fn compile_with(story: &Story, touch: Touch, in_sequence: bool, window: usize) -> Vec<u64> {
    let thread_of = |event: &Event| if in_sequence { 0 } else { event.thread };
    let events: Vec<(u32, What)> = story
        .events
        .iter()
        .filter(|event| event.what.block().is_some())
        .map(|event| (thread_of(event), event.what))
        .collect();
    let threads = if in_sequence { 1 } else { story.threads.max(1) } as usize;
    // The thread that uses each operation's block next, or the same thread if none does.
    let mut next: Vec<u32> = events.iter().map(|(thread, _)| *thread).collect();
    let mut later = vec![u32::MAX; story.blocks as usize];
    for (at, (thread, what)) in events.iter().enumerate().rev() {
        let later = &mut later[what.block().unwrap_or_default() as usize];
        if *later != u32::MAX {
            next[at] = *later;
        }
        *later = *thread;
    }
    let mut planner = Planner {
        lanes: vec![Lane::default(); threads],
        places: vec![Place::default(); story.blocks as usize],
        slots: 0,
        mails: 0,
        window,
        windows: Vec::new(),
    };
    let mut before = None;
    for (at, &(thread, what)) in events.iter().enumerate() {
        planner.enter(thread, at, before);
        planner.add(thread, what, next[at]);
        before = Some(thread);
    }
    planner.finish(events.len() as u64, touch)
}

#[derive(Clone, Default)]
struct Lane {
    operations: Vec<Op>,
    free: Vec<u32>,
    has_begun: bool,
    window: Option<usize>,
}

struct Planner {
    lanes: Vec<Lane>,
    places: Vec<Place>,
    slots: u32,
    mails: u32,
    window: usize,
    windows: Vec<u64>,
}

impl Planner {
    /// Prepares a thread for the story's operation of this number.
    fn enter(&mut self, thread: u32, at: usize, before: Option<u32>) {
        let several = self.lanes.len() > 1;
        if !std::mem::replace(&mut self.lanes[thread as usize].has_begun, true)
            && let Some(before) = before
        {
            // The thread `before` starts the new one, in its own window.
            let spawn = Op::bare(Kind::Spawn, u64::from(thread));
            self.lanes[before as usize].operations.push(spawn);
        }
        let window = at / self.window;
        if several && self.lanes[thread as usize].window != Some(window) {
            self.windows.resize(window + 1, 0);
            self.windows[window] += 1;
            let lane = &mut self.lanes[thread as usize];
            lane.window = Some(window);
            lane.operations.push(Op::bare(Kind::Window, window as u64));
        }
    }

    fn add(&mut self, thread: u32, what: What, next: u32) {
        let Some(block) = what.block() else { return };
        let from = self.places[block as usize];
        let made = matches!(what, What::Malloc { .. } | What::Calloc { .. } | What::Aligned { .. });
        let freed = matches!(what, What::Free { .. });
        if !made && !from.is_mail {
            self.lanes[thread as usize].free.push(from.number);
        }
        let to = if freed { Place::default() } else { self.place(thread, next) };
        self.places[block as usize] = to;
        let (kind, log2) = match what {
            What::Malloc { .. } => (Kind::Malloc, 0),
            What::Calloc { .. } => (Kind::Calloc, 0),
            What::Aligned { log2, zero: false, .. } => (Kind::Aligned, log2),
            What::Aligned { log2, .. } => (Kind::AlignedZero, log2),
            What::Realloc { .. } => (Kind::Realloc, 0),
            _ => (Kind::Free, 0),
        };
        let from = if made { Place::default() } else { from };
        let size = what.size().unwrap_or_default();
        let lane = &mut self.lanes[thread as usize];
        lane.operations.push(Op { kind: kind as u8, size, log2, from, to });
    }

    /// Returns a place for a block that `thread` passes to `next`.
    fn place(&mut self, thread: u32, next: u32) -> Place {
        if thread != next {
            self.mails += 1;
            return Place { number: self.mails - 1, is_mail: true };
        }
        let number = self.lanes[thread as usize].free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        Place { number, is_mail: false }
    }

    fn finish(self, operations: u64, touch: Touch) -> Vec<u64> {
        let first = HEAD + 2 * self.lanes.len() + self.windows.len();
        let all: usize = self.lanes.iter().map(|lane| lane.operations.len()).sum();
        let mut words = Vec::with_capacity(first + 2 * all);
        words.extend([
            MAGIC,
            self.lanes.len() as u64,
            self.windows.len() as u64,
            operations,
            u64::from(self.slots),
            u64::from(self.mails),
            touch as u64,
            (first + 2 * all) as u64,
        ]);
        let mut at = first;
        for lane in &self.lanes {
            words.extend([at as u64, lane.operations.len() as u64]);
            at += 2 * lane.operations.len();
        }
        words.extend(&self.windows);
        for lane in &self.lanes {
            words.extend(lane.operations.iter().flat_map(|op| op.pack()));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(thread: u32, what: What) -> Event {
        Event { thread, what }
    }

    fn lanes(plan: &[u64]) -> Vec<Vec<Op>> {
        let lane = |at: usize| {
            let (first, count) = (plan[HEAD + 2 * at] as usize, plan[HEAD + 2 * at + 1] as usize);
            let words = plan[first..first + 2 * count].chunks_exact(2);
            words.map(|pair| Op::unpack([pair[0], pair[1]])).collect()
        };
        (0..plan[1] as usize).map(lane).collect()
    }

    #[test]
    fn blocks_that_change_hands_are_mailed() {
        let story = Story {
            threads: 2,
            blocks: 2,
            events: vec![
                of(0, What::Malloc { block: 0, size: 5 }),
                of(0, What::Malloc { block: 1, size: 6 }),
                of(1, What::Realloc { block: 0, size: 7 }),
                of(0, What::Free { block: 1 }),
                of(0, What::Free { block: 0 }),
            ],
            ..Story::default()
        };
        let plan = compile(&story, Touch::Pages, false);
        let [one, two] = &lanes(&plan)[..] else { panic!("not two") };
        let kinds = |lane: &[Op]| lane.iter().map(|op| op.kind).collect::<Vec<_>>();
        assert_eq!(kinds(one), [8, 1, 1, 7, 6, 6]);
        assert_eq!(kinds(two), [8, 5]);
        let mail = |number| Place { number, is_mail: true };
        let slot = |number| Place { number, is_mail: false };
        assert_eq!((one[1].to, two[1].from, two[1].to), (mail(0), mail(0), mail(1)));
        assert_eq!((one[5].from, one[2].to, one[4].from), (mail(1), slot(0), slot(0)));
        assert_eq!(plan[..HEAD], [MAGIC, 2, 1, 5, 1, 2, 1, plan.len() as u64]);
        assert_eq!(plan[HEAD + 4], 2, "both threads are in the only window");

        // With one thread there are no mails and no waits.
        let plan = compile(&story, Touch::None, true);
        assert_eq!(kinds(&lanes(&plan)[0]), [1, 1, 5, 6, 6]);
        assert_eq!((plan[2], plan[5], plan[6]), (0, 0, 0));
    }

    /// Plays a plan with threads that take turns by chance. Checks that all end, and that each
    /// block is in its place.
    fn simulate(plan: &[u64], mut chance: u64) {
        let lanes = lanes(plan);
        let windows = plan[2] as usize;
        let first = HEAD + 2 * lanes.len();
        let mut left = plan[first..first + windows].to_vec();
        let mut mails = vec![false; plan[5] as usize];
        let mut slots = vec![false; plan[4] as usize];
        let mut at = vec![0; lanes.len()];
        let mut inside = vec![None; lanes.len()];
        let mut begun = vec![false; lanes.len()];
        begun[0] = true;
        let mut live = 0_i64;
        loop {
            let over = (0..lanes.len()).all(|lane| at[lane] == lanes[lane].len());
            if over {
                break;
            }
            // A thread that waits for a window has left its previous one.
            for lane in 0..lanes.len() {
                let next = lanes[lane].get(at[lane]);
                if next.is_some_and(|op| op.kind == Kind::Window as u8)
                    && let Some(before) = inside[lane].take()
                {
                    left[before] -= 1;
                }
            }
            let complete = left.iter().take_while(|left| **left == 0).count();
            let can = |lane: &usize| {
                let Some(op) = lanes[*lane].get(at[*lane]) else { return false };
                let waits = op.from.is_mail && !mails[op.from.number as usize];
                let far = op.kind == Kind::Window as u8 && op.size as usize > complete + 1;
                begun[*lane] && !waits && !far
            };
            let able: Vec<usize> = (0..lanes.len()).filter(can).collect();
            assert!(!able.is_empty(), "everybody waits");
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let lane = able[(chance >> 33) as usize % able.len()];
            let op = lanes[lane][at[lane]];
            at[lane] += 1;
            if op.kind == Kind::Spawn as u8 {
                assert!(!std::mem::replace(&mut begun[op.size as usize], true));
            } else if op.kind == Kind::Window as u8 {
                inside[lane] = Some(op.size as usize);
            } else {
                let has_from = op.kind >= Kind::Realloc as u8;
                let has_to = op.kind <= Kind::Realloc as u8;
                live += i64::from(has_to) - i64::from(has_from);
                for (place, is, there) in [(op.from, has_from, true), (op.to, has_to, false)] {
                    if is {
                        let all = if place.is_mail { &mut mails } else { &mut slots };
                        assert_eq!(
                            std::mem::replace(&mut all[place.number as usize], !there),
                            there
                        );
                    }
                }
            }
            if at[lane] == lanes[lane].len()
                && let Some(before) = inside[lane].take()
            {
                left[before] -= 1;
            }
        }
        assert!(left.iter().all(|left| *left == 0));
        let places = mails.into_iter().chain(slots).filter(|full| *full).count();
        assert_eq!(places as i64, live);
    }

    proptest! {
        #[test]
        fn plans_come_to_their_end(
            calls in prop::collection::vec((0..4_u32, 0..20_u32, any::<bool>()), 1..300),
            chance: u64, size in 1..20_usize,
        ) {
            let mut live = std::collections::HashMap::new();
            let mut blocks = 0;
            let mut names = Vec::new();
            let events: Vec<Event> = calls.iter().map(|&(thread, name, frees)| {
                let number = names.iter().position(|other| *other == thread).unwrap_or_else(|| {
                    names.push(thread);
                    names.len() - 1
                });
                let what = match live.get(&name).copied() {
                    Some(block) if frees => {
                        live.remove(&name);
                        What::Free { block }
                    }
                    Some(block) => What::Realloc { block, size: 1 },
                    None => {
                        live.insert(name, blocks);
                        blocks += 1;
                        What::Malloc { block: blocks - 1, size: 9 }
                    }
                };
                of(number as u32, what)
            }).collect();
            let story = Story { threads: names.len() as u32, blocks, events, ..Story::default() };
            simulate(&compile(&story, Touch::Pages, false), chance);
            simulate(&compile(&story, Touch::Pages, true), chance);
            simulate(&compile_with(&story, Touch::Pages, false, size), chance);
        }

        #[test]
        fn operations_come_back(
            size in 0..1_u64 << SIZE_BITS, log2 in 0..64_u8, kind in 1..9_u8,
            from: u32, to: u32, mails: (bool, bool),
        ) {
            let from = Place { number: from, is_mail: mails.0 };
            let to = Place { number: to, is_mail: mails.1 };
            let op = Op { kind, size, log2, from, to };
            prop_assert_eq!(Op::unpack(op.pack()), op);
        }
    }
}
