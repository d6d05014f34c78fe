//! Heap dumps: the whole content of a heap, in a stream, for `heapwright heap`.
//!
//! ```text
//!   start | type, page, page, ... | object, reference, reference, object, ... | root, ... | end
//! ```
//!
//! The world is stopped during a dump. The format and its writer are in `heapwright-record`. This
//! file numbers the runtime's type names by the addresses of the strings, in a table with room for
//! a few thousand types. A dump changes nothing of the heap, except that remembered objects have
//! their marks meanwhile ([`Heap::with_marks_of_remembered`]).
//!
//! An object is **old** if the next minor collection takes it for live. On an unswept page, the
//! coming sweep decides that. While a minor collection marks, the old objects are those marked
//! objects that had survived before. Before a major collection, no object is old.

use core::ffi::{CStr, c_char};
use core::slice;

use heapwright_record::heap as record;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::os;
use heapwright_substrate::size_class::UNIT;

use super::bits::WORDS;
use super::heap::Heap;
use super::held::State;
use super::kept::AllKept;
use super::layout::{self, LARGE, Layout};
use super::mutator::Mutator;
use super::page::{Evacuation, Page};
use super::tracer::Tracer;

/// Places of the table of type names. At most about three quarters are used.
const TYPES: usize = UNIT / size_of::<usize>();

/// The names written so far: an open hash table of their addresses.
struct Names<'a> {
    table: &'a mut [usize],
    count: usize,
}

impl Names<'_> {
    /// Returns the number of a name, or 0 without a name or room. Also returns whether it is new.
    fn number(&mut self, name: *const c_char) -> (u32, bool) {
        if name.is_null() {
            return (0, false);
        }
        let mut at = (name.addr() >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) % TYPES;
        while self.table[at] != 0 && self.table[at] != name.addr() {
            at = (at + 1) % TYPES;
        }
        let new = self.table[at] == 0;
        if new {
            if self.count * 4 > self.table.len() * 3 {
                return (0, false);
            }
            self.table[at] = name.addr();
            self.count += 1;
        }
        (at as u32 + 1, new)
    }
}

const fn word(layout: Layout) -> &'static str {
    match layout {
        Layout::Fine => "fine",
        Layout::Ruby => "ruby",
        Layout::Powers => "powers",
        Layout::Single => "single",
    }
}

impl Heap {
    /// Writes a dump to `sink`, in pieces. `sink` returns whether it took a piece. Returns whether
    /// the dump is whole.
    pub(super) fn dump(&self, me: &Mutator, sink: impl FnMut(&[u8]) -> bool) -> bool {
        /// A unit of side memory. It goes back even if the sink panics.
        struct Room(Side);
        impl Drop for Room {
            fn drop(&mut self) {
                self.0.give();
            }
        }
        let (Some(buffer), Some(names)) = (Side::take(UNIT), Side::take(UNIT)) else {
            return false;
        };
        let (buffer, names) = (Room(buffer), Room(names));
        // SAFETY: the buffer is a unit of side memory of our own, zeroed.
        let bytes = unsafe { slice::from_raw_parts_mut(buffer.0.at(), UNIT) };
        // SAFETY: the names are a unit of side memory of our own, zeroed, aligned, `TYPES` long.
        let table = unsafe { slice::from_raw_parts_mut(names.0.at().cast::<usize>(), TYPES) };
        let mut writer = record::Writer::new(bytes, sink);
        self.stopped(me, || {
            me.tracer.publish();
            self.with_marks_of_remembered(|| {
                self.write_start(&mut writer);
                for page in self.space.pages.all().filter(|page| page.state() != State::None) {
                    self.write_page(&mut writer, page);
                }
                let mut names = Names { table, count: 0 };
                let Some(kept) = self.all_kept() else { return false };
                self.space.each_page(|page| {
                    self.write_objects(&mut writer, &me.tracer, &mut names, &kept, page);
                    writer.is_good()
                });
                self.write_roots(&mut writer, &me.tracer);
                writer.end()
            })
        })
    }

    fn write_start(&self, writer: &mut record::Writer<'_, impl FnMut(&[u8]) -> bool>) {
        let statistics = self.statistics();
        let mut pools = [0; LARGE];
        let count = self.space.sizes().pools();
        for (pool, to) in pools.iter_mut().enumerate().take(count) {
            *to = self.space.sizes().slot(pool) as u64;
        }
        let heap = record::Heap {
            page_size: UNIT as u64,
            pid: os::process_id(),
            time: os::unix_ns(),
            live: statistics.live_bytes,
            in_use: statistics.in_use_bytes,
            empty: statistics.empty_bytes,
            large: statistics.large_bytes,
            external: statistics.external_bytes,
            goal: statistics.goal_bytes,
            cycles: statistics.cycles,
            flags: 0,
            minor_cycles: statistics.minor_cycles,
            old: statistics.old_bytes,
            compactions: statistics.compactions,
            moved_objects: statistics.moved_objects,
            moved_bytes: statistics.moved_bytes,
            evacuated_pages: statistics.evacuated_pages,
            kept_pages: statistics.kept_pages,
        };
        writer.start(&heap, word(self.space.options().layout), &pools[..count]);
    }

    fn write_page(&self, writer: &mut record::Writer<'_, impl FnMut(&[u8]) -> bool>, page: &Page) {
        let empty = page.state() == State::Empty;
        let mut occupancy = [0u64; WORDS];
        let mut old = 0;
        let slot = page.slot.get();
        if !empty {
            for offset in page.objects().filter(|&offset| self.space.holds(page, offset)) {
                let number = offset / slot.max(1);
                occupancy[number / 64] |= 1 << (number % 64);
                old += u32::from(self.is_seen_old(page, offset));
            }
        }
        let of_page = |number: usize| if empty { 0 } else { number as u64 };
        let reported = record::Page {
            number: page.number.get() as u64,
            address: page.base().addr() as u64,
            bytes: (if page.is_large() { page.footprint() } else { UNIT }) as u64,
            pool: page.pool() as u32,
            kind: page.kind() as u8,
            state: match (empty, page.is_large()) {
                (true, _) => record::PageState::Empty,
                (_, true) => record::PageState::Large,
                _ => record::PageState::InUse,
            },
            slot: of_page(slot),
            slots: of_page(page.slots()) as u32,
            pins: of_page(page.pins.get()),
            moved_in: of_page(page.moved_in.get()),
            old,
            aside: match page.evacuation() {
                Evacuation::Candidate if !empty => record::Aside::Candidate,
                Evacuation::Evacuated if !empty => record::Aside::Evacuated,
                _ => record::Aside::No,
            },
        };
        writer.page(&reported, &occupancy);
    }

    fn write_objects(
        &self,
        writer: &mut record::Writer<'_, impl FnMut(&[u8]) -> bool>,
        tracer: &Tracer,
        names: &mut Names<'_>,
        kept: &AllKept,
        page: &Page,
    ) {
        let kind = page.kind() as u8;
        for offset in page.objects().filter(|&offset| self.space.holds(page, offset)) {
            let object = page.base().wrapping_add(offset);
            let name = self.runtime().type_name(object);
            let (type_id, new) = names.number(name);
            if new {
                // SAFETY: the runtime returns a string, by its duties.
                let name = unsafe { CStr::from_ptr(name) };
                writer.type_name(type_id, name.to_str().unwrap_or("(a name that is no text)"));
            }
            writer.object(&record::Object {
                address: object.addr() as u64,
                size: page.slot.get() as u64,
                used: if page.is_large() { page.slot.get() as u64 } else { 0 },
                kind,
                type_id,
                old: self.is_seen_old(page, offset),
            });
            let mut leads_to = |reference: *mut u8| {
                if self.space.object_at(reference).is_some() {
                    writer.reference(reference.addr() as u64);
                }
            };
            if layout::is_traced(kind.into()) {
                tracer.looking(|tracer| tracer.trace_all(object), &mut leads_to);
            }
            kept.by(object).iter().for_each(|kept| leads_to(kept.object));
        }
    }

    fn write_roots(
        &self,
        writer: &mut record::Writer<'_, impl FnMut(&[u8]) -> bool>,
        tracer: &Tracer,
    ) {
        let mut report = |kind, mutator: u32, source: &dyn Fn(&Tracer)| {
            tracer.looking(|tracer| source(tracer), &mut |object| {
                if self.space.object_at(object).is_some() {
                    let address = object.addr() as u64;
                    writer.root(&record::Root { kind, mutator, address });
                }
            });
        };
        report(record::RootKind::Handle, 0, &|tracer| {
            self.trace.handles.each(|object| tracer.mark(object));
        });
        report(record::RootKind::Finalizer, 0, &|tracer| {
            self.trace.finalizers.lock().each_due(|object| tracer.mark(object));
        });
        report(record::RootKind::Callback, 0, &|tracer| self.runtime().roots(tracer));
        self.each_mutator(|mutator| {
            let number = mutator.number.get() as u32;
            report(record::RootKind::Stack, number, &|tracer| mutator.stack.scan(tracer));
        });
    }
}
