//! Faults: accesses that hit a guard page.
//!
//! ```text
//!   SIGSEGV at an address --> span? --> bucket guarded or block freed: use after free
//!                                  \--> beside a live block: overflow or underflow
//!                                   \-> anything else is not ours
//! ```
//!
//! The C layer's signal handler calls [`judge`] in the thread that made the access. If the heap
//! itself made the access, the thread's state is busy. Then [`judge`] uses the common state, and
//! the process ends (see `unprotect`).

use core::ffi::c_void;

use heapwright_record::debug::{Access, Call, Finding, FindingKind, Moment};

use crate::verdict::Verdict;

use super::heap::{Heap, of_block};
use super::slot::State;
use super::span::{BucketRef, Form, Found, Place, Span, Stage};
use super::unprotect;

pub(crate) fn judge(
    heap: &'static Heap,
    span: &'static Span,
    address: usize,
    is_write: Option<bool>,
    context: *mut c_void,
) -> Verdict {
    let Some(place) = nearest(span, address) else { return Verdict::NotOurs };
    let word = place.record().word();
    let block = place.block().addr();
    let size = place.size(word);
    let kind = match (place.bucket.record().stage(), word.state()) {
        (Stage::Guarded, _) | (_, State::Freed | State::Freeing) => FindingKind::UseAfterFree,
        (_, State::Live) if address < block => FindingKind::Underflow,
        (_, State::Live) if address >= block + size => FindingKind::Overflow,
        _ => return Verdict::NotOurs,
    };
    let (stack, thread, sequence) = heap.moment_of_context(context);
    // A checked function of the C library may have reported this access before.
    if !heap.reporter.has_told(block as u64, thread) {
        let finding = Finding {
            kind,
            call: Call::Access,
            access: match is_write {
                Some(true) => Access::Write,
                Some(false) => Access::Read,
                None => Access::Unknown,
            },
            pointer: address as u64,
            offset: address as i64 - block as i64,
            here: Moment { stack, thread, sequence, ns: heap.reporter.now() },
            ..of_block(place, word)
        };
        // The next run may have no guard there, so the site is flagged.
        heap.flag(finding.allocated.stack, kind);
        heap.reporter.report(&finding, &heap.threads);
    }
    // A fault in another heap (`guards`, a `DebugHeap`) always ends the process.
    if heap.is_process_heap() && unprotect::unprotect(heap, span, address) {
        Verdict::Step
    } else {
        Verdict::Stop
    }
}

fn nearest(span: &'static Span, address: usize) -> Option<Place> {
    match span.locate(address) {
        Found::Slot(place) => Some(place),
        Found::Gap(bucket) => match span.form() {
            Form::Sampled => beside(bucket, address),
            Form::Large => Some(Place { bucket, slot: 0 }),
            _ => {
                let middle = bucket.start().addr() + span.bucket_bytes() / 2;
                let slot = if address < middle { 0 } else { span.slots_a_bucket() - 1 };
                Some(Place { bucket, slot })
            }
        },
        Found::Nothing => None,
    }
}

/// Finds the block on either side of a guard: the live one, or the nearer one if both are alike.
fn beside(bucket: BucketRef, address: usize) -> Option<Place> {
    let used = |place: &Place| place.record().word().state() != State::Unused;
    let live = |place: &Place| place.record().word().state() == State::Live;
    let behind = (bucket.index < bucket.span.bucket_count())
        .then_some(Place { bucket, slot: 0 })
        .filter(used);
    let before = bucket.index.checked_sub(1).map(|index| BucketRef { index, ..bucket });
    let before = before.map(|bucket| Place { bucket, slot: 0 }).filter(used);
    match (before, behind) {
        (Some(before), Some(behind)) => {
            let word = before.record().word();
            let beyond = address.abs_diff(before.block().addr() + before.size(word));
            let ahead = address.abs_diff(behind.block().addr());
            let before_is_nearer = match (live(&before), live(&behind)) {
                (true, false) => true,
                (false, true) => false,
                _ => beyond <= ahead,
            };
            Some(if before_is_nearer { before } else { behind })
        }
        (before, behind) => before.or(behind),
    }
}
