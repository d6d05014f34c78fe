//! Findings, filled in with the record of their block.
//!
//! Called by the rest of the heap, and by `debug`'s entry points for foreign pointers.

use heapwright_record::debug::{Call, Finding, FindingKind, Moment, Origin, Region};

use crate::sync::atomic::Ordering;

use super::super::flagged;
use super::super::slot::{State, Word};
use super::super::span::Place;
use super::Heap;
use super::enter::EnteredState;
use crate::request::Return;

#[derive(Clone, Copy)]
pub(super) struct Here {
    pub(super) address: usize,
    pub(super) what: Return,
    pub(super) stack: u32,
}

impl Heap {
    #[inline(always)]
    pub(super) fn here(
        &'static self,
        entered: &mut EnteredState,
        address: usize,
        what: Return,
    ) -> Here {
        let stack = entered.mine().stack(self.depth.load(Ordering::Relaxed));
        Here { address, what, stack }
    }

    /// Reports an address in a slot where no live block begins.
    #[cold]
    pub(super) fn not_live(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
    ) {
        let block = place.block().addr();
        let is_start = block == here.address;
        let is_realloc = matches!(here.what.call, Call::Realloc | Call::RustRealloc);
        let kind = match (word.state(), is_start) {
            (State::Unused, _) => {
                let region = Region::Nothing;
                let kind = invalid(is_realloc);
                let found = Finding { kind, region, ..self.nowhere(entered, here) };
                return self.report(found);
            }
            (State::Freed | State::Freeing, true) if here.what.call == Call::UsableSize => {
                FindingKind::UseAfterFree
            }
            (State::Freed | State::Freeing, true) if is_realloc => FindingKind::ReallocAfterFree,
            (State::Freed | State::Freeing, true) => FindingKind::DoubleFree,
            _ if is_realloc => FindingKind::InvalidRealloc,
            _ => FindingKind::InteriorFree,
        };
        if matches!(kind, FindingKind::DoubleFree | FindingKind::ReallocAfterFree)
            && !self.rules.double_free.load(Ordering::Relaxed)
        {
            return;
        }
        self.report(Finding { kind, ..self.about(entered, place, word, here) });
    }

    /// Reports an address in a lead, a tail or a guard.
    #[cold]
    pub(super) fn not_a_block(&'static self, entered: &mut EnteredState, here: Here) {
        let is_realloc = matches!(here.what.call, Call::Realloc | Call::RustRealloc);
        let kind = invalid(is_realloc);
        let region = Region::Nothing;
        self.report(Finding { kind, region, ..self.nowhere(entered, here) });
    }

    #[cold]
    pub(crate) fn foreign(&'static self, address: usize, what: Return, region: Region) {
        let Some(mut entered) = self.enter() else { return };
        let is_realloc = matches!(what.call, Call::Realloc | Call::RustRealloc);
        let here = self.here(&mut entered, address, what);
        self.report(Finding {
            kind: invalid(is_realloc),
            region,
            ..self.nowhere(&mut entered, here)
        });
    }

    fn nowhere(&'static self, entered: &mut EnteredState, here: Here) -> Finding {
        Finding {
            call: here.what.call,
            pointer: here.address as u64,
            here: self.moment_of(entered, here.stack),
            ..Finding::default()
        }
    }

    pub(super) fn about(
        &'static self,
        entered: &mut EnteredState,
        place: Place,
        word: Word,
        here: Here,
    ) -> Finding {
        let whence = self.nowhere(entered, here);
        let block = of_block(place, word);
        Finding {
            call: whence.call,
            pointer: whence.pointer,
            here: whence.here,
            offset: here.address as i64 - block.block as i64,
            given_size: here.what.size.unwrap_or(0) as u64,
            given_align: here.what.align.unwrap_or(0) as u64,
            ..block
        }
    }

    /// Flags the site of a block with a finding. The site's blocks are guarded from now on, in this
    /// run and, through the record, in the next. Call this before the report, which may end the
    /// process.
    #[cold]
    pub(in crate::debug) fn flag(&self, stack: u32, kind: FindingKind) {
        if stack != 0 && self.sites.flag_anew(stack, flagged::end_for(kind)) {
            self.reporter.record_site(flagged::key(stack), kind);
        }
    }

    /// Reports damage and flags the block's site, unless the responsible function of the C library
    /// was reported. The caller must not hold the store's lock.
    #[cold]
    pub(super) fn report_damage(&'static self, finding: Finding) {
        if !self.told.has(&finding) {
            self.flag(finding.allocated.stack, finding.kind);
            self.report(finding);
        }
    }

    pub(in crate::debug) fn report(&self, finding: Finding) {
        self.reporter.report(&finding, &self.threads);
    }

    #[cold]
    pub(in crate::debug) fn report_leak(&'static self, place: Place, word: Word) {
        let block = of_block(place, word);
        let pointer = block.block;
        self.report(Finding { kind: FindingKind::Leak, call: Call::Exit, pointer, ..block });
    }
}

const fn invalid(is_realloc: bool) -> FindingKind {
    if is_realloc { FindingKind::InvalidRealloc } else { FindingKind::InvalidFree }
}

pub(in crate::debug) fn of_block(place: Place, word: Word) -> Finding {
    let record = place.record();
    let moment = |stack: u32, thread: u16, sequence: u32| Moment {
        stack,
        thread: u32::from(thread),
        sequence: u64::from(sequence),
        ns: 0,
    };
    let mut finding = Finding {
        origin: Origin::from_u8(word.origin()),
        region: Region::Block,
        block: place.block().addr() as u64,
        size: place.size(word) as u64,
        align: word.align() as u64,
        allocated: moment(
            record.made_at.load(Ordering::Relaxed),
            word.made_by(),
            record.made.load(Ordering::Relaxed),
        ),
        ..Finding::default()
    };
    if word.state() != State::Live {
        finding.freed = moment(
            record.freed_at.load(Ordering::Relaxed),
            word.freed_by(),
            record.freed.load(Ordering::Relaxed),
        );
    }
    finding
}
