//! The time line: a heap's events in a file, for `heapwright run --timeline`.
//!
//! ```text
//!   events --note--> | event | event | up to 32 | --flush--> PREFIX.<pid>  option timeline=PREFIX
//! ```
//!
//! Events are kept while the world is stopped and written when it resumes. The file is opened for
//! each piece. Each process has its own file, also a forked child. The format is
//! `heapwright-record`'s. Filled by `spans`.

use heapwright_record::timeline as record;
use heapwright_substrate::files::Prefix;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicBool, Ordering};
use heapwright_substrate::text::Line;
use heapwright_substrate::{options, os};

use super::cell::Num;
use super::event::{self, Event};
use super::forks;
use super::locks::With;

/// Whether a line has reported that the time line cannot be written.
static HAS_SAID: AtomicBool = AtomicBool::new(false);

/// The most events that are kept: a step has a few.
const KEPT: usize = 32;

pub(super) struct Timeline {
    wanted: Num,
    kept: Lock<Kept>,
}

struct Kept {
    bytes: [u8; KEPT * record::EVENT_BYTES],
    length: usize,
    /// The process of the events, as a number of forks. `prefix`: the beginning of the file's name.
    process: usize,
    prefix: Prefix,
}

impl Timeline {
    pub(super) fn begin(&self) -> bool {
        let Some(prefix) = options::timeline_file() else { return false };
        self.kept.lock().prefix.set(prefix);
        self.wanted.set(1);
        true
    }

    pub(super) fn end(&self) {
        self.flush();
        self.kept.lock().prefix = Prefix::none();
        self.wanted.set(0);
    }

    pub(super) fn note(&self, heap: u32, event: &Event) {
        if self.wanted.get() == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        let process = forks::forks();
        if kept.process != process {
            // In a forked child, the kept events were its parent's.
            (kept.process, kept.length) = (process, 0);
        }
        if kept.length == kept.bytes.len() {
            kept.write();
        }
        let encoded = record::Event {
            span: event.span as u16,
            ends: event.edge == event::ENDS,
            flags: event.flags,
            thread: event.thread,
            heap,
            time: event.time_ns,
            collection: event.collection,
            bytes: event.bytes,
            ns: event.ns,
            object: event.object.addr() as u64,
        }
        .encode();
        let from = kept.length;
        kept.length += encoded.len();
        kept.bytes[from..from + encoded.len()].copy_from_slice(&encoded);
    }

    /// Writes the kept events. Called while the world runs. (`note` writes a full buffer itself.)
    pub(super) fn flush(&self) {
        if self.wanted.get() != 0 {
            self.kept.lock().write();
        }
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.kept);
    }
}

impl Kept {
    /// Appends the events to the process's file. Events that cannot be written are lost. One line
    /// of text reports that.
    fn write(&mut self) {
        let length = core::mem::take(&mut self.length);
        if length == 0 || self.process != forks::forks() {
            return;
        }
        let path = self.prefix.of(os::process_id());
        let is_written = os::append_file(&path, &record::HEADER, true)
            && os::append_file(&path, &self.bytes[..length], false);
        if !is_written && !HAS_SAID.swap(true, Ordering::Relaxed) {
            Line::new()
                .text("cannot write the time line: look at the folder of option timeline")
                .write();
        }
    }
}
