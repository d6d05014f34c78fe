//! A heap dump, as one JSON object. Addresses are text in hexadecimal, because a JSON number cannot
//! hold every address.
//!
//! ```text
//! format      1
//! whole       bool: read to its end        notes: [string]
//! heap        {pid, time: ns since 1970, layout, page_size, live, in_use, empty, large,
//!              external, goal: bytes, cycles, flags, minor_cycles, old: bytes,
//!              compactions, moved_objects, moved_bytes, evacuated_pages, kept_pages}
//! objects, bytes, references                      of the dump
//! roots       {handle: number, ...}               the number of each kind
//! unreachable {objects, bytes}                    objects that no root reaches
//! types       [{name, objects, bytes, retained, unreachable: {objects, bytes},
//!               old: {objects, bytes}}]           all types, the most bytes first
//! sizes       [{slot: number|null, objects, bytes, pages, page_bytes, slots, taken,
//!               tail: bytes behind the slots of pages,
//!               slack: {objects, bytes}: bytes of slots beyond the requested sizes,
//!               old: objects, pinned: pages, moved_in: objects}]
//!                                                 null: large objects
//! pages       [{number, address, bytes, pool, leaf, freed: bool, state, slot, slots, taken,
//!               old: objects, pins, moved_in: objects,
//!               aside: "candidate"|"evacuated"|null}]         its state in a compaction
//! retainers   [OBJECT and path: PATH | null]      the largest retained size first
//! type        {name, from, to: [{type, references}]} | null     with --type
//! paths       [OBJECT and asked: address, path: PATH | null,
//!               dominators: [OBJECT]: nearest first, dominators_omitted]     with --path
//!
//! OBJECT      {type, address, size, retained: bytes, leaf, old: bool}
//! PATH        {root: {kind, number, mutator}, steps: [OBJECT], omitted}
//!             omitted: the number left out behind the first half of the steps
//! ```

use super::{list, object};
use crate::heap::{Line, Path, Summary};
use heapwright_record::heap::kind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns the object, as text.
pub(crate) fn summary(summary: &Summary) -> String {
    let heap = &summary.heap;
    let roots = summary.roots.iter().map(|(kind, count)| (kind.word(), *count));
    super::formatted(object! {
        whole: summary.whole,
        notes: &summary.notes,
        heap: object! {
            pid: heap.pid,
            time: heap.time,
            layout: &summary.layout,
            page_size: heap.page_size,
            live: heap.live,
            in_use: heap.in_use,
            empty: heap.empty,
            large: heap.large,
            external: heap.external,
            goal: heap.goal,
            cycles: heap.cycles,
            flags: heap.flags,
            minor_cycles: heap.minor_cycles,
            old: heap.old,
            compactions: heap.compactions,
            moved_objects: heap.moved_objects,
            moved_bytes: heap.moved_bytes,
            evacuated_pages: heap.evacuated_pages,
            kept_pages: heap.kept_pages,
        },
        objects: summary.objects,
        bytes: summary.bytes,
        references: summary.references,
        roots: roots.collect::<BTreeMap<_, _>>(),
        unreachable: amount(summary.unreachable.objects, summary.unreachable.bytes),
        types: list(summary.types.iter().map(|row| object! {
            name: &row.name,
            objects: row.objects,
            bytes: row.bytes,
            retained: row.retained,
            unreachable: amount(row.unreachable, row.unreachable_bytes),
            old: amount(row.old, row.old_bytes),
        })),
        sizes: list(summary.sizes.iter().map(|row| object! {
            slot: row.slot,
            objects: row.objects,
            bytes: row.bytes,
            pages: row.pages,
            page_bytes: row.page_bytes,
            slots: row.slots,
            taken: row.taken,
            tail: row.tail,
            slack: amount(row.known, row.slack),
            old: row.old,
            pinned: row.pinned,
            moved_in: row.moved_in,
        })),
        pages: list(summary.pages.iter().map(|row| object! {
            number: row.page.number,
            address: hex(row.page.address),
            bytes: row.page.bytes,
            pool: row.page.pool,
            leaf: row.page.kind & kind::LEAF != 0,
            freed: row.page.kind & kind::FREED != 0,
            state: row.page.state.word(),
            slot: row.page.slot,
            slots: row.page.slots,
            taken: row.taken,
            old: row.page.old,
            pins: row.page.pins,
            moved_in: row.page.moved_in,
            aside: row.page.aside.word(),
        })),
        retainers: list(summary.retainers.iter().map(|one| object! {
            #[serde(flatten)]
            object: thing(&one.object),
            path: one.path.as_ref().map(path),
        })),
        r#type: summary.of_type.as_ref().map(|of_type| object! {
            name: &of_type.row.name,
            from: links(&of_type.from),
            to: links(&of_type.to),
        }),
        paths: list(summary.asked.iter().map(|asked| object! {
            asked: hex(asked.address),
            #[serde(flatten)]
            object: thing(&asked.object),
            path: asked.path.as_ref().map(path),
            dominators: list(asked.dominators.iter().map(thing)),
            dominators_omitted: asked.dominators_left,
        })),
    })
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn amount(objects: u64, bytes: u64) -> impl Serialize {
    object! { objects: objects, bytes: bytes }
}

fn thing(line: &Line) -> impl Serialize {
    object! {
        r#type: &line.type_,
        address: hex(line.address),
        size: line.size,
        retained: line.retained,
        leaf: !line.traced,
        old: line.old,
    }
}

fn path(path: &Path) -> impl Serialize {
    object! {
        root: object! {
            kind: path.root.kind.word(),
            number: path.root.number,
            mutator: path.root.mutator,
        },
        steps: list(path.steps.iter().map(thing)),
        omitted: path.omitted,
    }
}

fn links(some: &[(String, u64)]) -> impl Serialize {
    list(some.iter().map(|(name, references)| object! { r#type: name, references: references }))
}
