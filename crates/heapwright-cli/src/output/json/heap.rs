//! A heap dump, as one JSON object. Addresses are text in hexadecimal, because a JSON
//! number does not hold every address.
//!
//! ```text
//! format      1
//! whole       bool: it was read to its end        notes: [string]
//! heap        {pid, time: ns since 1970, layout, page_size, live, in_use, empty, large,
//!              external, goal: bytes, cycles, flags, minor_cycles, old: bytes,
//!              compactions, moved_objects, moved_bytes, evacuated_pages, kept_pages}
//! objects, bytes, references                      of the dump
//! roots       {handle: number, ...}               how many of each kind there are
//! unreachable {objects, bytes}                    what no root leads to
//! types       [{name, objects, bytes, retained, unreachable: {objects, bytes},
//!               old: {objects, bytes}}]           many bytes first; all of them
//! sizes       [{slot: number|null, objects, bytes, pages, page_bytes, slots, taken,
//!               tail: bytes behind the slots of pages,
//!               slack: {objects, bytes}: what slots have more than was asked for,
//!               old: objects, pinned: pages, moved_in: objects}]
//!                                                 null: large objects
//! pages       [{number, address, bytes, pool, leaf, freed: bool, state, slot, slots, taken,
//!               old: objects, pins, moved_in: objects,
//!               aside: "candidate"|"evacuated"|null}]         what compaction makes of it
//! retainers   [OBJECT and path: PATH | null]      those that retain the most first
//! type        {name, from, to: [{type, references}]} | null     with --type
//! paths       [OBJECT and asked: address, path: PATH | null,
//!               dominators: [OBJECT]: nearest first, dominators_omitted]     with --path
//!
//! OBJECT      {type, address, size, retained: bytes, leaf, old: bool}
//! PATH        {root: {kind, number, mutator}, steps: [OBJECT], omitted}
//!             omitted: so many behind the first half of the steps
//! ```

use super::FORMAT;
use crate::heap::{Line, Path, Summary};
use heapwright_record::heap::kind;
use serde::Serialize;
use std::collections::BTreeMap;

/// The object, as text.
pub(crate) fn summary(summary: &Summary) -> String {
    super::text(&object(summary))
}

fn object(summary: &Summary) -> Object<'_> {
    let heap = &summary.heap;
    Object {
        format: FORMAT,
        whole: summary.whole,
        notes: &summary.notes,
        heap: Heap {
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
        roots: summary.roots.iter().map(|(kind, count)| (kind.word(), *count)).collect(),
        unreachable: Amount {
            objects: summary.unreachable.objects,
            bytes: summary.unreachable.bytes,
        },
        types: summary
            .types
            .iter()
            .map(|row| Type {
                name: &row.name,
                objects: row.objects,
                bytes: row.bytes,
                retained: row.retained,
                unreachable: Amount { objects: row.unreachable, bytes: row.unreachable_bytes },
                old: Amount { objects: row.old, bytes: row.old_bytes },
            })
            .collect(),
        sizes: summary
            .sizes
            .iter()
            .map(|row| Size {
                slot: row.slot,
                objects: row.objects,
                bytes: row.bytes,
                pages: row.pages,
                page_bytes: row.page_bytes,
                slots: row.slots,
                taken: row.taken,
                tail: row.tail,
                slack: Amount { objects: row.known, bytes: row.slack },
                old: row.old,
                pinned: row.pinned,
                moved_in: row.moved_in,
            })
            .collect(),
        pages: summary
            .pages
            .iter()
            .map(|row| Page {
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
            })
            .collect(),
        retainers: summary
            .retainers
            .iter()
            .map(|one| Retainer { object: thing(&one.object), path: path_json(one.path.as_ref()) })
            .collect(),
        type_: summary.of_type.as_ref().map(|of_type| OfType {
            name: &of_type.row.name,
            from: links(&of_type.from),
            to: links(&of_type.to),
        }),
        paths: summary
            .asked
            .iter()
            .map(|asked| Asked {
                asked: hex(asked.address),
                object: thing(&asked.object),
                path: path_json(asked.path.as_ref()),
                dominators: asked.dominators.iter().map(thing).collect(),
                dominators_omitted: asked.dominators_left,
            })
            .collect(),
    }
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn thing(line: &Line) -> Thing<'_> {
    Thing {
        type_: &line.type_,
        address: hex(line.address),
        size: line.size,
        retained: line.retained,
        leaf: !line.traced,
        old: line.old,
    }
}

fn path_json(path: Option<&Path>) -> Option<PathJson<'_>> {
    path.map(|path| PathJson {
        root: Root {
            kind: path.root.kind.word(),
            number: path.root.number,
            mutator: path.root.mutator,
        },
        steps: path.steps.iter().map(thing).collect(),
        omitted: path.omitted,
    })
}

fn links(some: &[(String, u64)]) -> Vec<Link<'_>> {
    some.iter().map(|(name, references)| Link { type_: name, references: *references }).collect()
}

#[derive(Serialize)]
struct Object<'a> {
    format: u32,
    whole: bool,
    notes: &'a [String],
    heap: Heap<'a>,
    objects: u64,
    bytes: u64,
    references: u64,
    roots: BTreeMap<&'static str, u64>,
    unreachable: Amount,
    types: Vec<Type<'a>>,
    sizes: Vec<Size>,
    pages: Vec<Page>,
    retainers: Vec<Retainer<'a>>,
    #[serde(rename = "type")]
    type_: Option<OfType<'a>>,
    paths: Vec<Asked<'a>>,
}

#[derive(Serialize)]
struct Heap<'a> {
    pid: u32,
    time: u64,
    layout: &'a str,
    page_size: u64,
    live: u64,
    in_use: u64,
    empty: u64,
    large: u64,
    external: u64,
    goal: u64,
    cycles: u64,
    flags: u64,
    minor_cycles: u64,
    old: u64,
    compactions: u64,
    moved_objects: u64,
    moved_bytes: u64,
    evacuated_pages: u64,
    kept_pages: u64,
}

#[derive(Serialize)]
struct Amount {
    objects: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Type<'a> {
    name: &'a str,
    objects: u64,
    bytes: u64,
    retained: u64,
    unreachable: Amount,
    old: Amount,
}

#[derive(Serialize)]
struct Size {
    slot: Option<u64>,
    objects: u64,
    bytes: u64,
    pages: u64,
    page_bytes: u64,
    slots: u64,
    taken: u64,
    tail: u64,
    slack: Amount,
    old: u64,
    pinned: u64,
    moved_in: u64,
}

#[derive(Serialize)]
struct Page {
    number: u64,
    address: String,
    bytes: u64,
    pool: u32,
    leaf: bool,
    freed: bool,
    state: &'static str,
    slot: u64,
    slots: u32,
    taken: u32,
    old: u32,
    pins: u64,
    moved_in: u64,
    aside: Option<&'static str>,
}

#[derive(Serialize)]
struct Thing<'a> {
    #[serde(rename = "type")]
    type_: &'a str,
    address: String,
    size: u64,
    retained: u64,
    leaf: bool,
    old: bool,
}

#[derive(Serialize)]
struct PathJson<'a> {
    root: Root,
    steps: Vec<Thing<'a>>,
    omitted: usize,
}

#[derive(Serialize)]
struct Root {
    kind: &'static str,
    number: u32,
    mutator: u32,
}

#[derive(Serialize)]
struct Retainer<'a> {
    #[serde(flatten)]
    object: Thing<'a>,
    path: Option<PathJson<'a>>,
}

#[derive(Serialize)]
struct OfType<'a> {
    name: &'a str,
    from: Vec<Link<'a>>,
    to: Vec<Link<'a>>,
}

#[derive(Serialize)]
struct Link<'a> {
    #[serde(rename = "type")]
    type_: &'a str,
    references: u64,
}

#[derive(Serialize)]
struct Asked<'a> {
    asked: String,
    #[serde(flatten)]
    object: Thing<'a>,
    path: Option<PathJson<'a>>,
    dominators: Vec<Thing<'a>>,
    dominators_omitted: usize,
}
