//! The summary of a heap dump, as data for every output format.

use super::dominators::Dominators;
use super::gather::{Gathered, gather};
use super::graph::{Graph, Lookup, NONE};
use super::pages::PageRow;
use super::paths::Paths;
use anyhow::{Context, anyhow};
use heapwright_record::heap::{Heap, PageState, RootKind};
use heapwright_record::{Fault, Problem};
use std::cmp::Reverse;

/// The most objects reported of a path: one half from its start, the other from its end.
const STEPS: usize = 16;
/// The same limit for a path that the user asked for.
const STEPS_ASKED: usize = 1000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) top: usize,
    pub(crate) type_: Option<String>,
    /// Objects whose paths and dominators to report.
    pub(crate) paths: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) heap: Heap,
    pub(crate) layout: String,
    pub(crate) notes: Vec<String>,
    pub(crate) whole: bool,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) references: u64,
    /// The number of roots of each kind; kinds without roots are left out.
    pub(crate) roots: Vec<(RootKind, u64)>,
    /// Whether roots differ in their mutators' numbers (0: no mutator).
    pub(crate) mutators: bool,
    pub(crate) types: Vec<TypeRow>,
    pub(crate) sizes: Vec<SizeRow>,
    pub(crate) pages: Vec<PageRow>,
    /// The objects that retain the most, of one type if the user asked for one.
    pub(crate) retainers: Vec<Retainer>,
    pub(crate) unreachable: Unreachable,
    pub(crate) of_type: Option<OfType>,
    pub(crate) asked: Vec<Asked>,
}

impl Summary {
    pub(crate) fn has_old(&self) -> bool {
        self.types.iter().any(|row| row.old != 0)
    }

    pub(crate) fn pinned(&self) -> impl Iterator<Item = &PageRow> {
        self.pages.iter().filter(|row| row.page.pins != 0)
    }

    pub(crate) fn has_moved_in(&self) -> bool {
        self.pages.iter().any(|row| row.page.moved_in != 0)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TypeRow {
    pub(crate) name: String,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// The bytes that the objects retain together, their own included.
    pub(crate) retained: u64,
    pub(crate) unreachable: u64,
    pub(crate) unreachable_bytes: u64,
    pub(crate) old: u64,
    pub(crate) old_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SizeRow {
    /// The bytes of a slot; `None` for large objects.
    pub(crate) slot: Option<u64>,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) pages: u64,
    pub(crate) page_bytes: u64,
    pub(crate) slots: u64,
    pub(crate) taken: u64,
    /// The bytes of pages behind their last slots.
    pub(crate) tail: u64,
    /// The objects with a known requested size, and the bytes that their slots have beyond it.
    pub(crate) known: u64,
    pub(crate) slack: u64,
    pub(crate) old: u64,
    pub(crate) pinned: u64,
    pub(crate) moved_in: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) type_: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) traced: bool,
    pub(crate) old: bool,
    pub(crate) retained: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RootLine {
    pub(crate) kind: RootKind,
    /// The root's number among the roots of its kind, from 1.
    pub(crate) number: u32,
    pub(crate) mutator: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) root: RootLine,
    /// The objects of the path; the last is its target.
    pub(crate) steps: Vec<Line>,
    /// The number of objects left out behind the first half of the steps.
    pub(crate) omitted: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Retainer {
    pub(crate) object: Line,
    pub(crate) path: Option<Path>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unreachable {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct OfType {
    pub(crate) row: TypeRow,
    /// References to the type's objects, by the referring type, the most frequent first.
    pub(crate) from: Vec<(String, u64)>,
    /// References from the type's objects, by the type they lead to.
    pub(crate) to: Vec<(String, u64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) address: u64,
    pub(crate) object: Line,
    pub(crate) path: Option<Path>,
    /// The first of the object's dominators, from the nearest on.
    pub(crate) dominators: Vec<Line>,
    pub(crate) dominators_left: usize,
}

pub(crate) fn make(path: &std::path::Path, wanted: &Wanted) -> anyhow::Result<Summary> {
    let reading = || format!("cannot read {}", path.display());
    let (all, lookup) = gather(path).map_err(hinted).with_context(reading)?;
    if all.heap.is_none() {
        let why = all.reading.problem.map(anyhow::Error::from);
        let why = why.unwrap_or_else(|| anyhow!("the heap dump ends behind its header"));
        return Err(why.context(reading()));
    }
    of(all, &lookup, wanted).with_context(|| path.display().to_string())
}

/// Adds advice to the error for a file that is no dump.
fn hinted(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Problem>().map(Problem::fault) {
        Some(Fault::Other) => anyhow!("{error}; heap dumps are what hw_gc_dump writes"),
        _ => error,
    }
}

fn of(mut all: Gathered, lookup: &Lookup, wanted: &Wanted) -> anyhow::Result<Summary> {
    let asked = wanted
        .paths
        .iter()
        .map(|&address| {
            let object =
                lookup.within(&all.graph.addresses, address, |object| all.graph.size(object));
            let object = object.ok_or_else(|| anyhow!("there is no object at {address:#x}"))?;
            Ok((address, object))
        })
        .collect::<anyhow::Result<Vec<(u64, u32)>>>()?;
    let type_ = wanted.type_.as_deref().map(|name| find(&all.types, name)).transpose()?;
    let notes = notes(&all);
    let pages = std::mem::take(&mut all.pages);
    let describer = Describer {
        dominators: Dominators::new(&all.graph),
        paths: Paths::new(&all.graph),
        graph: &all.graph,
        types: &all.types,
    };
    let types = describer.types(&all);
    let mut summary = Summary {
        heap: all.heap.unwrap_or_default(),
        layout: all.layout.clone(),
        notes,
        whole: all.reading.whole,
        objects: all.graph.len() as u64,
        bytes: sum(types.iter().map(|row| row.bytes)),
        references: all.references,
        roots: roots(&all.graph),
        mutators: all.graph.roots.windows(2).any(|two| two[0].mutator != two[1].mutator),
        sizes: sizes(&all, &pages),
        retainers: describer.retainers(wanted.top, type_),
        unreachable: Unreachable {
            objects: types.iter().map(|row| row.unreachable).sum(),
            bytes: sum(types.iter().map(|row| row.unreachable_bytes)),
        },
        of_type: type_.map(|type_| describer.of_type(type_, &types)),
        asked: asked
            .into_iter()
            .map(|(address, object)| describer.asked(address, object))
            .collect(),
        types,
        pages,
    };
    summary.types.retain(|row| row.objects != 0);
    summary.types.sort_by(|one, other| {
        (Reverse(one.bytes), &one.name).cmp(&(Reverse(other.bytes), &other.name))
    });
    Ok(summary)
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn find(types: &[String], name: &str) -> anyhow::Result<u32> {
    if let Some(at) = types.iter().position(|type_| type_ == name) {
        return Ok(at as u32);
    }
    let mut like: Vec<&str> = types
        .iter()
        .filter(|type_| type_.to_lowercase().contains(&name.to_lowercase()))
        .map(String::as_str)
        .take(5)
        .collect();
    like.sort_unstable();
    let hint = if like.is_empty() {
        "without --type, all are listed".to_owned()
    } else {
        format!("there is {}", like.join(", "))
    };
    Err(anyhow!("there is no type '{name}'; {hint}"))
}

fn notes(all: &Gathered) -> Vec<String> {
    let mut notes = Vec::new();
    let read = format!("the {} objects before that are summarised", all.graph.len());
    match all.reading.problem {
        Some(problem) => notes.push(format!("the dump is damaged: {problem}; {read}")),
        None if !all.reading.whole => notes.push(format!(
            "the dump has no end: the process died while writing, or the copy is incomplete; {read}"
        )),
        None => {}
    }
    if !all.reading.whole {
        notes.push("what is missing may hold objects that look unreachable".to_owned());
    }
    if all.reading.skipped != 0 {
        notes.push(format!(
            "{} parts of the dump are of a newer version, and left out",
            all.reading.skipped
        ));
    }
    if all.dangling != 0 && all.reading.whole {
        notes.push(format!("{} references lead to no object of the dump", all.dangling));
    }
    if all.dangling_roots != 0 && all.reading.whole {
        notes.push(format!("{} roots lead to no object of the dump", all.dangling_roots));
    }
    notes
}

fn roots(graph: &Graph) -> Vec<(RootKind, u64)> {
    let count = |kind| graph.roots.iter().filter(|root| root.kind == kind).count() as u64;
    let all = RootKind::ALL.into_iter().map(|kind| (kind, count(kind)));
    all.filter(|(_, count)| *count != 0).collect()
}

/// Makes a row for each pool with pages or objects, and one for large objects.
fn sizes(all: &Gathered, pages: &[PageRow]) -> Vec<SizeRow> {
    let mut rows: Vec<SizeRow> =
        all.pools.iter().map(|&slot| SizeRow { slot: Some(slot), ..SizeRow::default() }).collect();
    // If a dump lists no pools, the rows come from its pages.
    for row in pages.iter().filter(|row| row.page.state == PageState::InUse) {
        if !rows.iter().any(|other| other.slot == Some(row.page.slot)) {
            rows.push(SizeRow { slot: Some(row.page.slot), ..SizeRow::default() });
        }
    }
    rows.sort_unstable_by_key(|row| row.slot);
    rows.dedup_by_key(|row| row.slot);
    rows.push(SizeRow::default());
    let large = rows.len() - 1;
    let mut starts: Vec<(u64, usize)> =
        (0..large).filter_map(|at| Some((rows[at].slot?, at))).collect();
    starts.sort_unstable();
    let place = |size: u64| match starts.binary_search_by_key(&size, |(slot, _)| *slot) {
        Ok(found) => starts[found].1,
        Err(_) => large,
    };
    for row in pages {
        let at = match row.page.state {
            PageState::InUse => place(row.page.slot),
            PageState::Large => large,
            PageState::Empty => continue,
        };
        let sums = &mut rows[at];
        sums.pages += 1;
        sums.page_bytes = sums.page_bytes.saturating_add(row.page.bytes);
        sums.slots += u64::from(row.page.slots);
        sums.taken += u64::from(row.taken);
        sums.tail = sums.tail.saturating_add(row.tail());
        sums.pinned += u64::from(row.page.pins != 0);
        sums.moved_in = sums.moved_in.saturating_add(row.page.moved_in);
    }
    for (shape, held) in all.graph.shapes.iter().zip(&all.shapes) {
        let sums = &mut rows[place(shape.size)];
        sums.objects += held.objects;
        sums.bytes = sums.bytes.saturating_add(held.objects.saturating_mul(shape.size));
        sums.old += if shape.old { held.objects } else { 0 };
        sums.known += held.known;
        sums.slack = sums.slack.saturating_add(held.slack);
    }
    rows.retain(|row| row.objects != 0 || row.pages != 0);
    rows
}

struct Describer<'a> {
    graph: &'a Graph,
    types: &'a [String],
    dominators: Dominators,
    paths: Paths,
}

impl Describer<'_> {
    fn type_of(&self, object: u32) -> u32 {
        self.graph.shape(object).type_
    }

    fn line(&self, object: u32) -> Line {
        let shape = self.graph.shape(object);
        Line {
            type_: self.types[shape.type_ as usize].clone(),
            address: self.graph.addresses[object as usize],
            size: shape.size,
            traced: shape.is_traced(),
            old: shape.old,
            retained: self.dominators.of(object),
        }
    }

    fn path(&self, object: u32, most: usize) -> Option<Path> {
        let (root, way) = self.paths.to(object)?;
        let root = &self.graph.roots[root];
        let (head, tail) = if way.len() > most {
            (&way[..most / 2], &way[way.len() - most / 2..])
        } else {
            (&way[..], &[][..])
        };
        Some(Path {
            root: RootLine { kind: root.kind, number: root.number, mutator: root.mutator },
            steps: head.iter().chain(tail).map(|&object| self.line(object)).collect(),
            omitted: way.len() - head.len() - tail.len(),
        })
    }

    /// Returns rows in the order of the table of types.
    fn types(&self, all: &Gathered) -> Vec<TypeRow> {
        let retained = self.dominators.by_group(self.types.len(), |object| self.type_of(object));
        let mut rows: Vec<TypeRow> = self
            .types
            .iter()
            .zip(retained)
            .map(|(name, retained)| TypeRow { name: name.clone(), retained, ..TypeRow::default() })
            .collect();
        for (shape, held) in self.graph.shapes.iter().zip(&all.shapes) {
            let row = &mut rows[shape.type_ as usize];
            let bytes = held.objects.saturating_mul(shape.size);
            row.objects += held.objects;
            row.bytes = row.bytes.saturating_add(bytes);
            if shape.old {
                row.old += held.objects;
                row.old_bytes = row.old_bytes.saturating_add(bytes);
            }
        }
        for object in 0..self.graph.len() as u32 {
            if self.dominators.number[object as usize] == NONE {
                let row = &mut rows[self.type_of(object) as usize];
                row.unreachable += 1;
                row.unreachable_bytes =
                    row.unreachable_bytes.saturating_add(self.graph.size(object));
            }
        }
        rows
    }

    /// Returns the `top` largest retainers. Equal ones are in the order of the depth-first walk.
    fn retainers(&self, top: usize, type_: Option<u32>) -> Vec<Retainer> {
        let numbers = 1..self.dominators.object.len() as u32;
        let mut numbers: Vec<u32> = numbers
            .filter(|&number| {
                let object = self.dominators.object[number as usize];
                type_.is_none_or(|type_| self.type_of(object) == type_)
            })
            .collect();
        let key = |number: &u32| (Reverse(self.dominators.retained[*number as usize]), *number);
        if numbers.len() > top {
            if top != 0 {
                numbers.select_nth_unstable_by_key(top, key);
            }
            numbers.truncate(top);
        }
        numbers.sort_unstable_by_key(key);
        let objects = numbers.into_iter().map(|number| self.dominators.object[number as usize]);
        objects
            .map(|object| Retainer { object: self.line(object), path: self.path(object, STEPS) })
            .collect()
    }

    fn of_type(&self, type_: u32, rows: &[TypeRow]) -> OfType {
        let mut from = vec![0_u64; self.types.len()];
        let mut to = from.clone();
        for object in 0..self.graph.len() as u32 {
            let own = self.type_of(object);
            for &target in self.graph.targets(object) {
                let other = self.type_of(target);
                from[own as usize] += u64::from(other == type_);
                to[other as usize] += u64::from(own == type_);
            }
        }
        let many_first = |counts: Vec<u64>| {
            let named = self.types.iter().cloned().zip(counts);
            let mut some: Vec<(String, u64)> = named.filter(|(_, count)| *count != 0).collect();
            some.sort_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
            some
        };
        OfType { row: rows[type_ as usize].clone(), from: many_first(from), to: many_first(to) }
    }

    fn asked(&self, address: u64, object: u32) -> Asked {
        let mut above = self.dominators.above(object);
        let dominators = above.by_ref().take(STEPS).map(|object| self.line(object)).collect();
        Asked {
            address,
            object: self.line(object),
            path: self.path(object, STEPS_ASKED),
            dominators,
            dominators_left: above.count(),
        }
    }
}
