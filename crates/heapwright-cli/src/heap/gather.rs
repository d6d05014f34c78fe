//! Gathers a dump's entries into the data for a summary.

use super::graph::{Graph, Lookup, NONE, Root, Shape};
use super::input::{self, Reading};
use super::pages::PageRow;
use crate::output::printable;
use anyhow::ensure;
use heapwright_record::heap::{Entry, Heap, Object, Page, Root as RecordedRoot, RootKind};
use std::collections::HashMap;
use std::path::Path;

#[derive(Default)]
pub(super) struct Gathered {
    pub(super) heap: Option<Heap>,
    pub(super) layout: String,
    /// The slot size of each pool, in bytes.
    pub(super) pools: Vec<u64>,
    pub(super) types: Vec<String>,
    pub(super) pages: Vec<PageRow>,
    pub(super) graph: Graph,
    pub(super) shapes: Vec<Held>,
    /// The number of references, and of references that lead to no object.
    pub(super) references: u64,
    pub(super) dangling: u64,
    /// The number of roots that lead to no object.
    pub(super) dangling_roots: u64,
    pub(super) reading: Reading,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) objects: u64,
    /// The objects with a known requested size, and the bytes that their slots have beyond it.
    pub(super) known: u64,
    pub(super) slack: u64,
}

pub(super) fn gather(path: &Path) -> anyhow::Result<(Gathered, Lookup)> {
    let mut first = First::default();
    let reading = input::read(path, |entry| first.entry(entry))?;
    let First { mut all, roots, .. } = first;
    all.reading = reading;
    let most = all.graph.len() as u64 + roots.len() as u64;
    ensure!(
        most.max(all.references + roots.len() as u64) < u64::from(NONE),
        "it has more objects or references than can be distinguished here (4 billion)"
    );
    let lookup = Lookup::new(&all.graph.addresses);
    refer(path, &mut all, &lookup)?;
    let mut numbers = [0_u32; RootKind::ALL.len()];
    for root in roots {
        let number = &mut numbers[root.kind as usize];
        *number += 1;
        match lookup.exactly(&all.graph.addresses, root.address) {
            Some(object) => all.graph.roots.push(Root {
                kind: root.kind,
                number: *number,
                mutator: root.mutator,
                object,
            }),
            None => all.dangling_roots += 1,
        }
    }
    Ok((all, lookup))
}

#[derive(Default)]
struct First {
    all: Gathered,
    roots: Vec<RecordedRoot>,
    /// Indices of types by their numbers, and by their names.
    ids: HashMap<u32, u32>,
    names: HashMap<Vec<u8>, u32>,
    shapes: HashMap<Shape, u32>,
    /// The last object's shape, its type's number, and the shape's index: the next may be alike.
    last: Option<(Shape, u32, u32)>,
}

impl First {
    fn entry(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Start(heap, layout, pools) => {
                self.all.heap = Some(heap);
                self.all.layout = printable(layout.into());
                self.all.pools = pools.collect();
            }
            Entry::Type { id, name } => self.name(id, name),
            Entry::Page(page, occupancy) => {
                // Impossibly large pages are cut, so that they can be drawn.
                let page = Page { bytes: page.bytes.min(1 << 47), ..page };
                self.all.pages.push(PageRow::new(page, occupancy));
            }
            Entry::Object(object) => self.object(&object),
            Entry::Reference(_) => self.all.references += 1,
            Entry::Root(root) => self.roots.push(root),
            _ => {}
        }
    }

    /// Enters a type. Types with the same name become one.
    fn name(&mut self, id: u32, name: &[u8]) {
        let types = &mut self.all.types;
        let fresh = types.len() as u32;
        let type_ = *self.names.entry(name.to_vec()).or_insert(fresh);
        if type_ == fresh {
            let text = printable(name.into());
            types.push(if text.is_empty() { format!("type {id}") } else { text });
        }
        self.ids.insert(id, type_);
        self.last = None;
    }

    fn object(&mut self, object: &Object) {
        let shape = match self.last {
            Some((shape, id, at))
                if id == object.type_id
                    && shape.size == object.size
                    && (shape.kind, shape.old) == (object.kind, object.old) =>
            {
                at
            }
            _ => self.shape(object),
        };
        self.all.graph.addresses.push(object.address);
        self.all.graph.shape.push(shape);
        let held = &mut self.all.shapes[shape as usize];
        held.objects += 1;
        if object.used != 0 {
            held.known += 1;
            held.slack = held.slack.saturating_add(object.size.saturating_sub(object.used));
        }
    }

    fn shape(&mut self, object: &Object) -> u32 {
        let types = &mut self.all.types;
        let type_ = *self.ids.entry(object.type_id).or_insert_with(|| {
            types.push(format!("type {}", object.type_id));
            types.len() as u32 - 1
        });
        let shape = Shape { size: object.size, type_, kind: object.kind, old: object.old };
        let all = &mut self.all;
        let fresh = all.graph.shapes.len() as u32;
        let at = *self.shapes.entry(shape).or_insert_with(|| {
            all.graph.shapes.push(shape);
            all.shapes.push(Held::default());
            fresh
        });
        self.last = Some((shape, object.type_id, at));
        at
    }
}

fn refer(path: &Path, all: &mut Gathered, lookup: &Lookup) -> anyhow::Result<()> {
    let graph = &mut all.graph;
    let objects = graph.addresses.len();
    graph.first.reserve_exact(objects + 1);
    graph.targets.reserve_exact(all.references as usize);
    input::read(path, |entry| match entry {
        // The file may have been replaced: objects beyond the first reading's count are left out.
        Entry::Object(_) if graph.first.len() < objects => {
            graph.first.push(graph.targets.len() as u32);
        }
        Entry::Reference(to) if (graph.targets.len() as u64) < all.references => {
            match lookup.exactly(&graph.addresses, to) {
                Some(object) => graph.targets.push(object),
                None => all.dangling += 1,
            }
        }
        _ => {}
    })?;
    graph.first.resize(objects + 1, graph.targets.len() as u32);
    Ok(())
}
