//! The depot keeps each distinct stack once, under a number of 32 bits.
//!
//! ```text
//!   heads         numbers of nodes, by the first bits of the hash: tables of 1,024, 8,192, 65,536
//!     |
//!     v
//!   node          hash: u32 | length: u32 | child: [u32; 2] | frames: [usize; length]
//!                                            |
//!                                            by the next bit of the hash: a trie that only grows
//!   link          0 | a node's number | SEALED: look in a larger table
//!
//!   segments      64 KiB, 64 KiB, 128 KiB, ... : words of 8 bytes, numbered from 1
//!   number        the number of the node's first word
//! ```
//!
//! Invariants:
//!
//! - A node's words are written before its number is stored (release) where other threads find it.
//!   Its hash, length and frames never change afterwards.
//! - A link (a child or a head) changes once, from 0 to a number or to `SEALED`. The largest table
//!   has no sealed links.
//! - The cursor hands a word to one node. The maker of a node that no other thread has seen may
//!   give the words back, if they are still the last words.
//!
//! Hence two threads never wait for each other, and a signal handler may interrupt an insertion and
//! insert a stack itself. A fork in the middle of an insertion loses, at worst, the words of a
//! node. Nothing is freed. Without memory, or beyond the limit, a stack has no number:
//! [`Stack::NONE`].

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::{ptr, slice};

use super::region::Region;
use super::{MAX_DEPTH, Stack};

const WORD: usize = 8;
const FIRST_SEGMENT: usize = 8192;
const SEGMENTS: usize = 18;
/// The most words in all segments: 8 GiB.
const WORDS: usize = FIRST_SEGMENT << (SEGMENTS - 1);
/// The number of tables, and the heads of each as a power of two.
const TABLES: usize = 3;
const ORDERS: [u32; TABLES] = if cfg!(test) { [3, 6, 16] } else { [10, 13, 16] };
/// A link that will never lead to a stack. It is no valid number.
const SEALED: u32 = u32::MAX;

const _: () = assert!(WORDS <= SEALED as usize && size_of::<usize>() == WORD);

#[repr(C)]
struct Node {
    hash: u32,
    length: u32,
    children: [AtomicU32; 2],
}

const NODE_WORDS: usize = size_of::<Node>() / WORD;

const _: () = assert!(size_of::<Node>() == 16 && align_of::<Node>() <= WORD);

/// Returns the segment of a word, the word's place in it, and the segment's length.
const fn locate(word: usize) -> (usize, usize, usize) {
    if word < FIRST_SEGMENT {
        return (0, word, FIRST_SEGMENT);
    }
    let segment = (word / FIRST_SEGMENT).ilog2() as usize + 1;
    let length = FIRST_SEGMENT << (segment - 1);
    (segment, word - length, length)
}

/// All stacks of a process.
///
/// Stacks are spread over a table, so a small program would touch all pages of a large table. So a
/// larger table comes into use once there are half as many stacks as the table in use has heads.
///
/// A stack stays in its table. If the table in use lacks a stack, the smaller tables are searched,
/// and each search *seals* the link at which the stack would be. Then the stack goes into the table
/// in use. So two threads that use different tables agree: one thread seals the link that the other
/// needs, or finds the stack there.
pub(super) struct StackDepot {
    heads: [Region; TABLES],
    segments: [Region; SEGMENTS],
    cursor: AtomicUsize,
    limit: AtomicUsize,
    count: AtomicU32,
}

pub(super) static DEPOT: StackDepot = StackDepot::new();

/// A link on the path of a stack, and the bits of its hash that choose the next children.
struct Link<'a> {
    link: &'a AtomicU32,
    path: u64,
}

enum Place<'a> {
    Found(Stack),
    /// A link at which the stack would be.
    Empty(Link<'a>),
    /// A sealed link: the stack will never be in this table.
    Sealed,
}

pub(super) struct Inserted {
    pub(super) stack: Stack,
    pub(super) known: bool,
}

/// Adds a frame to a stack's hash, which begins as [`HASH_START`] and ends by [`hash_end`].
#[inline(always)]
pub(super) fn hash_step(hash: u64, frame: usize) -> u64 {
    (hash.rotate_left(23) ^ frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The hash of zero frames.
pub(super) const HASH_START: u64 = 0x2545_f491_4f6c_dd1d;

/// Ends the hash of a stack: all bits depend on all frames.
#[inline(always)]
pub(super) fn hash_end(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 32
}

impl StackDepot {
    pub(super) const fn new() -> Self {
        Self {
            heads: [const { Region::new() }; TABLES],
            segments: [const { Region::new() }; SEGMENTS],
            // Word 0 is not used, because the number 0 is no stack.
            cursor: AtomicUsize::new(1),
            limit: AtomicUsize::new(WORDS),
            count: AtomicU32::new(0),
        }
    }

    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store((bytes / WORD).min(WORDS), Ordering::Relaxed);
    }

    pub(super) fn used_bytes(&self) -> usize {
        (self.cursor.load(Ordering::Relaxed) - 1) * WORD
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    pub(super) fn frames(&self, stack: Stack) -> &'static [usize] {
        self.node(stack.0).map_or(&[], |(_, frames)| frames)
    }

    /// Returns the node of a number from [`StackDepot::insert`], a head or a child, and its frames.
    #[inline(always)]
    fn node(&self, number: u32) -> Option<(&'static Node, &'static [usize])> {
        if number == 0 || number as usize >= WORDS {
            return None;
        }
        let (segment, at, segment_length) = locate(number as usize);
        let base = self.segments[segment].peek();
        if base.is_null() || at + NODE_WORDS > segment_length {
            return None;
        }
        let at_node: *const Node = base.wrapping_add(at * WORD).cast();
        // SAFETY: only nodes have numbers. A node lies wholly in its segment, is written before
        // other threads know its number, and is never freed.
        let node = unsafe { &*at_node };
        let length = (node.length as usize).min(segment_length - at - NODE_WORDS);
        // SAFETY: a node's frames follow it, in its segment, and do not change.
        let frames = unsafe { slice::from_raw_parts(at_node.wrapping_add(1).cast(), length) };
        Some((node, frames))
    }

    /// Returns the table in use. It only grows, and threads may see the growth at different times.
    #[inline(always)]
    fn table(&self) -> usize {
        let count = self.count();
        ORDERS[..TABLES - 1].iter().filter(|&&order| count > 1 << (order - 1)).count()
    }

    /// Follows a stack in a table from its head to its node, or to the link at which it would be.
    /// Returns `None` if there is no memory for the table.
    #[inline(always)]
    fn find(&self, table: usize, frames: &[usize], hash: u64) -> Option<Place<'_>> {
        let order = ORDERS[table];
        let heads: *const AtomicU32 = self.heads[table].get(size_of::<AtomicU32>() << order).cast();
        if heads.is_null() {
            return None;
        }
        let head = heads.wrapping_add((hash >> (u64::BITS - order)) as usize);
        // SAFETY: the region has a head for each value of `order` bits. Zeroed memory is valid, and
        // all threads use it as atomics.
        let link: &AtomicU32 = unsafe { &*head };
        self.follow(Link { link, path: hash << order }, frames, hash)
    }

    #[inline(always)]
    fn follow<'a>(&'a self, from: Link<'a>, frames: &[usize], hash: u64) -> Option<Place<'a>> {
        let Link { mut link, mut path } = from;
        loop {
            let number = link.load(Ordering::Acquire);
            match number {
                0 => return Some(Place::Empty(Link { link, path })),
                SEALED => return Some(Place::Sealed),
                _ => {}
            }
            let (node, known) = self.node(number)?;
            if node.hash == hash as u32 && known == frames {
                return Some(Place::Found(Stack(number)));
            }
            link = &node.children[(path >> 63) as usize];
            path = path.rotate_left(1);
        }
    }

    pub(super) fn insert(&self, frames: &[usize], hash: u64) -> Inserted {
        let table = self.table();
        match self.find(table, frames, hash) {
            Some(Place::Found(stack)) => Inserted { stack, known: true },
            place => self.insert_slowly(table, place, frames, hash),
        }
    }

    /// Continues [`StackDepot::insert`] if the table in use lacks the stack, whose path ended at
    /// `place`. Without memory for that table, a smaller table stays in use.
    #[inline(never)]
    fn insert_slowly<'a>(
        &'a self,
        mut table: usize,
        mut place: Option<Place<'a>>,
        frames: &[usize],
        hash: u64,
    ) -> Inserted {
        let none = Inserted { stack: Stack::NONE, known: false };
        if frames.is_empty() || frames.len() > MAX_DEPTH {
            return none;
        }
        while place.is_none() {
            if table == 0 {
                return none;
            }
            table -= 1;
            place = self.find(table, frames, hash);
        }
        for smaller in 0..table {
            match self.find_or_seal(smaller, frames, hash) {
                // Without memory here, another thread may get some and put the stack there.
                None => return none,
                Some(Place::Found(stack)) => return Inserted { stack, known: true },
                Some(_) => {}
            }
        }
        let mut mine = 0;
        let give_back = |mine| {
            if mine != 0 {
                self.give_back(mine, frames.len());
            }
        };
        loop {
            let at = match place {
                Some(Place::Found(stack)) => {
                    give_back(mine);
                    return Inserted { stack, known: true };
                }
                None => {
                    give_back(mine);
                    return none;
                }
                Some(Place::Sealed) => {
                    // Another thread uses a larger table.
                    table += 1;
                    place = self.find(table, frames, hash);
                    continue;
                }
                Some(Place::Empty(at)) => at,
            };
            if mine == 0 {
                mine = self.write(frames, hash as u32);
                if mine == 0 {
                    return none;
                }
            }
            if at.link.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.count.fetch_add(1, Ordering::Relaxed);
                return Inserted { stack: Stack(mine), known: false };
            }
            place = self.follow(at, frames, hash);
        }
    }

    /// Returns the stack if `table`, a smaller one, has it. Otherwise seals the stack's link there.
    /// Returns `None` if there is no memory for the table.
    fn find_or_seal(&self, table: usize, frames: &[usize], hash: u64) -> Option<Place<'_>> {
        let mut place = self.find(table, frames, hash)?;
        loop {
            let Place::Empty(at) = place else { return Some(place) };
            if at.link.compare_exchange(0, SEALED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Some(Place::Sealed);
            }
            place = self.follow(at, frames, hash)?;
        }
    }

    /// Writes a node that no other thread knows. Returns its number, or 0 if there is no room.
    fn write(&self, frames: &[usize], hash: u32) -> u32 {
        let words = NODE_WORDS + frames.len();
        let mut cursor = self.cursor.load(Ordering::Acquire);
        let (start, base) = loop {
            let (segment, at, length) = locate(cursor);
            let start = if at + words > length { cursor + (length - at) } else { cursor };
            if start + words > self.limit.load(Ordering::Relaxed) {
                return 0;
            }
            let (segment, length) = if start == cursor {
                (segment, length)
            } else {
                (locate(start).0, locate(start).2)
            };
            let base = self.segments[segment].get(length * WORD);
            if base.is_null() {
                return 0;
            }
            // Acquire: the thread that gave these words back no longer uses them.
            match self.cursor.compare_exchange_weak(
                cursor,
                start + words,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break (start, base),
                Err(now) => cursor = now,
            }
        };
        let node: *mut Node = base.wrapping_add(locate(start).1 * WORD).cast();
        let value =
            Node { hash, length: frames.len() as u32, children: [const { AtomicU32::new(0) }; 2] };
        // SAFETY: the words are in the segment, and only this thread has them.
        unsafe { node.write(value) };
        let to: *mut usize = node.wrapping_add(1).cast();
        // SAFETY: the node has as many words of the segment as `words` counts, and only this thread
        // has them.
        unsafe { ptr::copy_nonoverlapping(frames.as_ptr(), to, frames.len()) };
        start as u32
    }

    /// Gives back a node that no other thread has seen, if its words are the last.
    fn give_back(&self, number: u32, frames: usize) {
        let start = number as usize;
        let end = start + NODE_WORDS + frames;
        // Release: our writes precede the words' next use. After a failure the words stay unused
        // for good.
        let _ = self.cursor.compare_exchange(end, start, Ordering::AcqRel, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::HashMap;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    fn insert(depot: &StackDepot, frames: &[usize]) -> Stack {
        let hash = hash_end(frames.iter().fold(HASH_START, |h, &f| hash_step(h, f)));
        depot.insert(frames, hash).stack
    }

    #[test]
    fn words_fill_segments_without_a_gap() {
        let mut last = (0, 0);
        for word in 1..if cfg!(miri) { 20_000 } else { 1 << 20 } {
            let (segment, at, length) = locate(word);
            assert!(at < length);
            assert!((segment, at) == (last.0, last.1 + 1) || (segment, at) == (last.0 + 1, 0));
            last = (segment, at);
        }
        assert_eq!(locate(WORDS - 1), (SEGMENTS - 1, WORDS / 2 - 1, WORDS / 2));
    }

    #[test]
    fn no_stack_has_no_frames() {
        let depot = StackDepot::new();
        assert_eq!(depot.frames(Stack::NONE), &[]);
        assert_eq!(depot.frames(Stack(1)), &[]);
        assert_eq!(insert(&depot, &[]), Stack::NONE);
        assert_eq!(insert(&depot, &[1; MAX_DEPTH + 1]), Stack::NONE);
        assert_eq!((depot.count(), depot.used_bytes()), (0, 0));
    }

    #[test]
    fn equal_hashes_do_not_make_equal_stacks() {
        let depot = StackDepot::new();
        let stacks: Vec<_> = (0..100).map(|n| depot.insert(&[n, 7], 42).stack).collect();
        for (n, &stack) in stacks.iter().enumerate() {
            assert_eq!(depot.frames(stack), &[n, 7]);
            assert!(depot.insert(&[n, 7], 42).known);
        }
        assert_eq!(depot.count(), 100);
    }

    #[test]
    fn a_full_depot_refuses_and_goes_on() {
        let depot = StackDepot::new();
        depot.set_limit(4096);
        let stacks: Vec<_> = (1..200).map(|n| insert(&depot, &[n, n + 1, n + 2])).collect();
        let full = stacks.iter().position(|&s| s == Stack::NONE).unwrap();
        assert!(full > 90 && stacks[full..].iter().all(|&s| s == Stack::NONE));
        assert!(depot.used_bytes() <= 4096);
        assert_eq!(insert(&depot, &[1, 2, 3]), stacks[0]);
        assert_eq!(depot.count(), full);
    }

    #[test]
    fn without_memory_for_a_larger_table_a_smaller_one_serves() {
        let depot = StackDepot::new();
        depot.heads[1..].iter().for_each(|heads| heads.refuse(true));
        let stacks: Vec<_> = (1..40).map(|n| insert(&depot, &[n, 7])).collect();
        assert!(!stacks.contains(&Stack::NONE) && depot.table() > 0);
        let again =
            |depot: &StackDepot| (1..40).map(|n| insert(depot, &[n, 7])).collect::<Vec<_>>();
        assert_eq!(again(&depot), stacks);
        // A table that other threads may get later cannot be sealed.
        depot.heads[2].refuse(false);
        assert_eq!(again(&depot), stacks);
        assert_eq!(insert(&depot, &[40, 7]), Stack::NONE);
        depot.heads[1].refuse(false);
        assert_eq!(again(&depot), stacks);
        assert_ne!(insert(&depot, &[40, 7]), Stack::NONE);
        assert_eq!(depot.count(), 40);
    }

    #[test]
    fn threads_agree_on_numbers() {
        let depot = StackDepot::new();
        let (threads, stacks) = if cfg!(miri) { (3, 50) } else { (8, 20_000) };
        let frames = |n: usize| {
            let length = 1 + n % 20;
            (0..length).map(|i| n * 31 + i * 7).collect::<Vec<_>>()
        };
        let seen: Vec<Vec<Stack>> = std::thread::scope(|scope| {
            let depot = &depot;
            let all: Vec<_> = (0..threads)
                .map(|t| {
                    scope.spawn(move || {
                        // Each thread inserts common stacks in its own order, and its own stacks.
                        let mut seen = std::vec![Stack::NONE; stacks];
                        for i in 0..stacks {
                            let n = if t % 2 == 0 { i } else { stacks - 1 - i };
                            seen[n] = insert(depot, &frames(n));
                            let own = [t + 1, n];
                            let stack = insert(depot, &own);
                            assert_eq!(depot.frames(stack), own);
                        }
                        seen
                    })
                })
                .collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for numbers in &seen {
            assert_eq!(numbers, &seen[0]);
        }
        for (n, &stack) in seen[0].iter().enumerate() {
            assert_eq!(depot.frames(stack), frames(n));
        }
        assert_eq!(depot.count(), stacks * (threads + 1));
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn it_is_a_map_from_frames_to_numbers(
            stacks in prop::collection::vec(prop::collection::vec(0usize..4, 1..12), 1..200),
        ) {
            let depot = StackDepot::new();
            let mut model = HashMap::new();
            for frames in &stacks {
                let stack = insert(&depot, frames);
                prop_assert_ne!(stack, Stack::NONE);
                prop_assert_eq!(*model.entry(frames.clone()).or_insert(stack), stack);
                prop_assert_eq!(depot.frames(stack), &frames[..]);
            }
            prop_assert_eq!(depot.count(), model.len());
        }
    }
}
