//! Checks that a live block holds the memory passed to a function of the C library.
//!
//! ```text
//!   memcpy(to, from, n)
//!      to, n --> span --> bucket, slot --> record: live, n bytes left?   [`Span::holds`], fast
//!                                          how many are left?            [`room`]
//!                                          fewer than n: a finding       [`Heap::out_of_bounds`]
//! ```
//!
//! A block ends at its first poisoned byte (see `poison`).
//!
//! Any caller may pass any address at any time: no lock is taken, and the memory is not touched. A
//! finding is usually reported before the function runs, so its stack is the caller's.
//!
//! A write beyond a block leaves damage that a later check also finds. So the heap remembers
//! reported blocks ([`Told`]), and repairs their damage without a second report. Called by
//! `debug`'s entry points; `findings` asks [`Told`].

use heapwright_record::debug::{Access, Call, Finding, FindingKind, Function, Region};

use crate::describe::{self, BlockState, Description};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::super::poisoned;
use super::super::slot::State;
use super::super::span::{Form, Found, Place, Span};
use super::Heap;
use super::findings::of_block;

#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) function: Function,
    pub(crate) access: Access,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    /// Whether `bytes` is only the function's limit. Then the function has already written less.
    pub(crate) is_limit: bool,
}

/// Returns the bytes from an address to the end of its live block or next poisoned byte, or 0.
pub(in crate::debug) fn room(span: &'static Span, address: usize) -> usize {
    let left = left(span, address);
    if span.has_poison() { poisoned::clean_bytes(address, left) } else { left }
}

/// Like [`room`], but ignores poison.
pub(in crate::debug) fn left(span: &'static Span, address: usize) -> usize {
    let Found::Slot(place) = span.locate(address) else { return 0 };
    let word = place.record().word();
    let block = place.block().addr();
    if word.state() != State::Live || address < block {
        return 0;
    }
    (block + place.size(word)).saturating_sub(address)
}

/// The last blocks for which an invalid write by a function was reported.
pub(super) struct Told {
    keys: [AtomicU64; Self::MOST],
    next: AtomicUsize,
}

impl Told {
    const MOST: usize = 64;

    pub(super) const fn new() -> Self {
        Self { keys: [const { AtomicU64::new(0) }; Self::MOST], next: AtomicUsize::new(0) }
    }

    const fn key(block: u64, made: u64) -> u64 {
        block.rotate_left(20) ^ made
    }

    fn note(&self, finding: &Finding) {
        let key = Self::key(finding.block, finding.allocated.sequence);
        if !self.has(finding) {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % Self::MOST;
            self.keys[next].store(key, Ordering::Relaxed);
        }
    }

    pub(super) fn has(&self, finding: &Finding) -> bool {
        let key = Self::key(finding.block, finding.allocated.sequence);
        self.keys.iter().any(|known| known.load(Ordering::Relaxed) == key)
    }
}

impl Heap {
    #[cold]
    pub(in crate::debug) fn out_of_bounds(&'static self, span: &'static Span, asked: Asked) {
        if let Some((place, first)) = poisoned_in(span, asked) {
            let block = of_block(place, place.record().word());
            return self.report_asked(FindingKind::UseAfterPoison, block, asked, first);
        }
        match nearest(span, asked) {
            Some((FindingKind::Overflow, place)) if asked.is_limit => {
                let block = of_block(place, place.record().word());
                self.report_asked(FindingKind::MayOverflow, block, asked, asked.address);
            }
            Some((kind, place)) => {
                let word = place.record().word();
                let block = of_block(place, word);
                if asked.access == Access::Write {
                    self.told.note(&block);
                    if kind == FindingKind::Underflow
                        && span.form() == Form::Small
                        && let Some(slot) = place.slot.checked_sub(1)
                    {
                        // The bytes before the block are its neighbour's slack.
                        let neighbour = Place { slot, ..place };
                        self.told.note(&of_block(neighbour, neighbour.record().word()));
                    }
                }
                self.report_asked(kind, block, asked, asked.address);
            }
            None => {
                let kind = FindingKind::UseAfterFree;
                self.report_asked(kind, Finding::default(), asked, asked.address);
            }
        }
    }

    /// Like [`Heap::out_of_bounds`], for pools, first-class heaps, and memory freed long ago.
    #[cold]
    pub(in crate::debug) fn out_of_others_bounds(&'static self, asked: Asked, region: Region) {
        let found = describe::describe(core::ptr::without_provenance(asked.address));
        let Description { block, size, state, .. } = found;
        let kind = match state {
            BlockState::InUse if block != 0 => FindingKind::Overflow,
            _ => FindingKind::UseAfterFree,
        };
        let block =
            Finding { region, block: block as u64, size: size as u64, ..Finding::default() };
        self.report_asked(kind, block, asked, asked.address);
    }

    /// Reports an argument. `first` is the first invalid byte. (An overflow that begins inside the
    /// block is reported at the block's end.)
    fn report_asked(&'static self, kind: FindingKind, block: Finding, asked: Asked, first: usize) {
        let (address, end) = (asked.address as u64, block.block + block.size);
        let first = match kind {
            FindingKind::Overflow | FindingKind::MayOverflow if address < end => end,
            _ => first as u64,
        };
        let length = (asked.bytes as u64).saturating_sub(first.saturating_sub(address));
        self.report(Finding {
            kind,
            call: Call::Function,
            access: asked.access,
            function: asked.function,
            pointer: first,
            offset: if block.block == 0 { 0 } else { first.wrapping_sub(block.block) as i64 },
            length,
            given_size: asked.bytes as u64,
            here: self.moment().unwrap_or_default(),
            ..block
        });
    }
}

/// Returns the argument's first poisoned byte and its block, if poison is the mistake.
fn poisoned_in(span: &'static Span, asked: Asked) -> Option<(Place, usize)> {
    let (left, room) = (left(span, asked.address), room(span, asked.address));
    match span.locate(asked.address) {
        Found::Slot(place) if room < left.min(asked.bytes) => Some((place, asked.address + room)),
        _ => None,
    }
}

/// Returns the pointer's block, if the heap remembers one, and the mistake.
fn nearest(span: &'static Span, asked: Asked) -> Option<(FindingKind, Place)> {
    let address = asked.address;
    let place = match span.locate(address) {
        Found::Slot(place) => place,
        Found::Gap(bucket) => {
            let middle = bucket.start().addr() + span.bucket_bytes() / 2;
            let slot = if address < middle { 0 } else { span.slots_a_bucket() - 1 };
            Place { bucket, slot }
        }
        Found::Nothing => return None,
    };
    let word = place.record().word();
    let block = place.block().addr();
    let end = block + place.size(word);
    match word.state() {
        State::Unused => None,
        State::Freed | State::Freeing => Some((FindingKind::UseAfterFree, place)),
        State::Live if address < block => Some((FindingKind::Underflow, place)),
        State::Live => {
            let next = Place { slot: place.slot + 1, ..place };
            // An access that reaches the next block, or is nearer to it, is the next block's
            // underflow.
            let reaches_next = span.form() == Form::Small
                && address > end
                && next.slot < span.slots_a_bucket()
                && next.record().word().state() == State::Live
                && (address.saturating_add(asked.bytes) > next.block().addr()
                    || next.block().addr() - address < address - end);
            Some(if reaches_next {
                (FindingKind::Underflow, next)
            } else {
                (FindingKind::Overflow, place)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_map::{Kind, MAP};
    use crate::debug::{Config, DebugHeap, Guard};
    use core::alloc::{GlobalAlloc, Layout};

    #[test]
    fn a_block_has_room_to_its_last_byte_while_it_lives() {
        for guard in [Guard::Never, Guard::All] {
            let heap = DebugHeap::new(Config { quiet: true, guard, ..Config::DEFAULT });
            for size in [1, 24, 64, 100, 5000, 100_000] {
                let layout = Layout::from_size_align(size, 16).unwrap();
                // SAFETY: the size is not zero.
                let block = unsafe { heap.alloc(layout) };
                let span = Span::of(block.addr()).unwrap();
                for at in [0, size / 2, size - 1, size] {
                    let (address, left) = (block.addr() + at, size - at);
                    assert_eq!(room(span, address), left, "{guard:?}, {size}, {at}");
                    let (unit, entry) = MAP.lookup(address);
                    let (head, is_rest) = match entry.kind() {
                        Kind::DebugRest(head) => (head, true),
                        _ => (unit, false),
                    };
                    assert!(Span::holds(head, is_rest, address, left) || left == 0);
                    assert!(!Span::holds(head, is_rest, address, left + 1));
                }
                assert_eq!(room(span, block.addr() - 1), 0);
                // SAFETY: the block is ours.
                unsafe { heap.dealloc(block, layout) };
                let left = Span::of(block.addr()).map_or(0, |span| room(span, block.addr()));
                assert_eq!(left, 0, "{guard:?}, {size}");
            }
            assert_eq!(heap.findings(), 0);
        }
    }

    #[test]
    fn what_is_told_of_is_remembered_for_a_while() {
        let told = Told::new();
        let block = |block| Finding { block, ..Finding::default() };
        assert!(!told.has(&block(64)));
        told.note(&block(64));
        told.note(&block(64));
        assert!(told.has(&block(64)));
        (0..Told::MOST as u64).for_each(|at| told.note(&block(4096 + at)));
        assert!(!told.has(&block(64)) && told.has(&block(4096)));
    }
}
