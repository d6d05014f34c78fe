//! A heap dump. Bytes are whole numbers, so that they can be added up.
//!
//! ```text
//! heapwright heap: app.heap: 1,204 objects, 77,056 bytes; layout fine, process 4242
//!   heap     77,056 bytes live, next collection at 154,112, after 12 collections
//!   old      64,000 bytes (83.1 %); 9 of the collections were minor
//!   moved    1,100 objects of 70,400 bytes, by 1 compaction; pages: 12 evacuated, 1 kept
//!
//! by type             objects        bytes    share     retained    share          old
//!   Table               1,000       64,000   83.1 %       70,400   91.4 %        1,000
//!
//! by size    objects        bytes    pages  of pages   empty slots  ...
//!   64         1,000       64,000        1    97.7 %            24
//!
//! largest retainers
//!   70,400 bytes (91.4 %)  Table 0x7f0000010000, 64 bytes
//!       root handle #3 -> Table 0x7f0000010000 -> Array ...
//! ```
//!
//! A page also shows the pages of the heap as a picture ([`pages`]).

use super::document::{Cell, Document, Part, Table, Words, cells};
use super::json::{address, list, object};
use super::table::clipped;
use super::{pages, units};
use crate::heap::{Asked, Line, OfType, PageRow, Path, Retainer, RootLine, Summary};
use heapwright_record::heap::{PageState, kind};
use serde::Serialize;
use std::collections::BTreeMap;

const MOST_TYPES: usize = 500;

/// A screen shows at most `most` types.
pub(crate) fn document<'a>(summary: &'a Summary, name: &str, most: usize) -> Document<'a> {
    let objects = units::counted(summary.objects, "object");
    let when = Some(summary.heap.time).filter(|time| *time != 0);
    let when = when.map(|time| units::date_of(time) + " UTC");
    let mut document = Document {
        kind: "heap",
        title: name.to_owned(),
        verdict: format!("{} in {objects}", units::bytes(summary.bytes)).into(),
        facts: when.into_iter().chain(facts(summary)).collect(),
        ..Document::default()
    }
    .with(|| data(summary));
    let first = format!("heapwright heap: {name}: {objects}, {}", bytes(summary.bytes));
    let heading: Vec<String> = std::iter::once(first).chain(facts(summary)).collect();
    let mut head = vec![Part::screen_heading(heading.join("; "))];
    head.extend(Part::notes(&summary.notes));
    head.push(Part::fields("  ", 8, fields(summary)));
    document.add("heap", "The heap", head);
    document.add_to_page("pages", "Pages", pages::picture(summary));
    let (types, sizes) = (by_type(summary, most), by_size(summary));
    // On a screen, a chosen type replaces the tables of all types and sizes.
    let add = match summary.of_type {
        Some(_) => Document::add_to_page,
        None => Document::add,
    };
    add(&mut document, "types", "By type", types);
    add(&mut document, "sizes", "By size", sizes);
    let one = summary.of_type.iter().flat_map(|of| one_type(summary, of));
    document.add("type", "One type", one.collect());
    document.add("retainers", "Largest retainers", retainers(summary));
    let paths = summary.asked.iter().flat_map(|one| path_to(summary, one));
    document.add("paths", "Paths", paths.collect());
    document
}

fn data(summary: &Summary) -> impl Serialize {
    let heap = &summary.heap;
    let roots = summary.roots.iter().map(|(kind, count)| (kind.word(), *count));
    object! { summary =>
        whole, notes,
        heap: object! { heap =>
            pid, time, layout: &summary.layout, page_size, live, in_use, empty, large, external,
            goal, cycles, flags, minor_cycles, old, compactions, moved_objects, moved_bytes,
            evacuated_pages, kept_pages,
        },
        objects, bytes, references,
        roots: roots.collect::<BTreeMap<_, _>>(),
        unreachable: amount(summary.unreachable.objects, summary.unreachable.bytes),
        types: list(summary.types.iter().map(|row| object! { row =>
            name, objects, bytes, retained,
            unreachable: amount(row.unreachable, row.unreachable_bytes),
            old: amount(row.old, row.old_bytes),
        })),
        sizes: list(summary.sizes.iter().map(|row| object! { row =>
            slot, objects, bytes, pages, page_bytes, slots, taken, tail,
            slack: amount(row.known, row.slack),
            old, pinned, moved_in,
        })),
        pages: list(summary.pages.iter().map(|row| page(row, &row.page))),
        retainers: list(summary.retainers.iter().map(|one| object! {
            #[serde(flatten)]
            object: thing(&one.object),
            path: one.path.as_ref().map(steps),
        })),
        r#type: summary.of_type.as_ref().map(|of_type| object! {
            name: &of_type.row.name,
            from: links(&of_type.from),
            to: links(&of_type.to),
        }),
        paths: list(summary.asked.iter().map(|asked| object! {
            asked: address(asked.address),
            #[serde(flatten)]
            object: thing(&asked.object),
            path: asked.path.as_ref().map(steps),
            dominators: list(asked.dominators.iter().map(thing)),
            dominators_omitted: asked.dominators_left,
        })),
    }
}

fn page(row: &PageRow, page: &heapwright_record::heap::Page) -> impl Serialize {
    object! { page =>
        number, address: address(page.address), bytes, pool,
        leaf: page.kind & kind::LEAF != 0,
        freed: page.kind & kind::FREED != 0,
        state: page.state.word(), slot, slots, taken: row.taken, old, pins, moved_in,
        aside: page.aside.word(),
    }
}

fn amount(objects: u64, bytes: u64) -> impl Serialize {
    object! { objects: objects, bytes: bytes }
}

fn thing(line: &Line) -> impl Serialize {
    object! { line =>
        r#type: &line.type_, address: address(line.address), size, retained, leaf: !line.traced, old,
    }
}

fn steps(path: &Path) -> impl Serialize {
    let root = &path.root;
    object! { path =>
        root: object! { root => kind: root.kind.word(), number, mutator },
        steps: list(path.steps.iter().map(thing)),
        omitted,
    }
}

fn links(some: &[(String, u64)]) -> impl Serialize {
    list(some.iter().map(|(name, references)| object! { r#type: name, references: references }))
}

fn facts(summary: &Summary) -> Vec<String> {
    let heap = &summary.heap;
    let mut facts = Vec::new();
    if !summary.layout.is_empty() {
        facts.push(format!("layout {}", summary.layout));
    }
    if heap.pid != 0 {
        facts.push(format!("process {}", heap.pid));
    }
    facts
}

fn fields(summary: &Summary) -> Vec<(&'static str, String)> {
    let (heap, count) = (&summary.heap, units::count);
    let mut fields = Vec::new();
    let mut add = |label, text| fields.push((label, text));
    let cycles = units::counted(heap.cycles, "collection");
    let (live, goal) = (bytes(heap.live), count(heap.goal));
    add("heap", format!("{live} live, next collection at {goal}, after {cycles}"));
    let [in_use, empty, large, external] =
        [heap.in_use, heap.empty, heap.large, heap.external].map(count);
    add(
        "pages",
        format!(
            "in use {in_use}, empty {empty}, large {large}; the runtime's own memory {external}"
        ),
    );
    if heap.old != 0 || heap.minor_cycles != 0 || summary.has_old() {
        let minor = match heap.minor_cycles {
            0 => "no collection was minor".to_owned(),
            1 => "1 of the collections was minor".to_owned(),
            some => format!("{} of the collections were minor", count(some)),
        };
        add(
            "old",
            format!("{} ({}); {minor}", bytes(heap.old), units::percent(heap.old, heap.live)),
        );
    }
    if heap.compactions != 0 || heap.moved_objects != 0 {
        let objects = units::counted(heap.moved_objects, "object");
        let (moved, by) = (bytes(heap.moved_bytes), units::counted(heap.compactions, "compaction"));
        let [evacuated, kept] = [heap.evacuated_pages, heap.kept_pages].map(count);
        add(
            "moved",
            format!("{objects} of {moved}, by {by}; pages: {evacuated} evacuated, {kept} kept"),
        );
    }
    let pinned = summary.pinned().count();
    if pinned != 0 {
        let pins = summary.pinned().map(|row| row.page.pins).fold(0, u64::saturating_add);
        let pages = units::counted(pinned as u64, "page");
        add("pinned", format!("{pages}, by {}", units::counted(pins, "pin")));
    }
    let roots = summary.roots.iter().map(|(kind, all)| format!("{} {}", count(*all), kind.word()));
    let roots = roots.collect::<Vec<_>>().join(", ");
    add("roots", if roots.is_empty() { "none".to_owned() } else { roots });
    add("graph", units::counted(summary.references, "reference"));
    if summary.unreachable.objects != 0 {
        add("no root", unreachable(summary));
    }
    fields
}

fn by_type(summary: &Summary, most: usize) -> Vec<Part> {
    let lead = "Retained bytes would be freed with the objects: their own, and those of all objects that only they lead to. \
                What no root leads to retains nothing.";
    vec![Part::text_of("lead", lead), Part::Table(types(summary, most))]
}

fn by_size(summary: &Summary) -> Vec<Part> {
    let keys = [("asked", "taken slots"), ("empty", "empty slots"), ("rest", "behind the slots")];
    let keys = keys.map(|(class, text)| Words::of(class, text)).into();
    let mut parts = vec![Part::Legend(keys), Part::Table(sizes(summary))];
    let is_empty = |row: &&PageRow| row.page.state == PageState::Empty;
    let empty = summary.pages.iter().filter(is_empty).count();
    if empty != 0 {
        let pages = units::counted(empty as u64, "page");
        parts.push(Part::text_of("left", format!("  and {pages} empty")));
    }
    parts
}

fn unreachable(summary: &Summary) -> String {
    let mut types: Vec<_> = summary.types.iter().filter(|row| row.unreachable != 0).collect();
    types.sort_by_key(|row| std::cmp::Reverse(row.unreachable_bytes));
    let named: Vec<String> = types
        .iter()
        .take(3)
        .map(|row| format!("{} {}", units::count(row.unreachable), clipped(&row.name)))
        .collect();
    let more = if types.len() > named.len() { ", ..." } else { "" };
    format!(
        "leads to {} of {}: {}{more}",
        units::counted(summary.unreachable.objects, "object"),
        bytes(summary.unreachable.bytes),
        named.join(", ")
    )
}

fn bytes(bytes: u64) -> String {
    units::counted(bytes, "byte")
}

/// The bars show the types' bytes, and further retained bytes.
fn types(summary: &Summary, most: usize) -> Table {
    let old = if summary.has_old() { "|>old:12" } else { "" };
    let mut table = Table::new(&format!(
        "by type|%share bytes, and retained|>objects:12|>bytes:15|>share:8\
         |>retained:15|>share:8{old}"
    ))
    .indented()
    .titled("", "classes")
    .limited("type", most, MOST_TYPES);
    let part = |bytes| ("", units::css(bytes, summary.bytes), String::new());
    for row in &summary.types {
        let mut cells = cells![
            Cell::Code(row.name.clone()),
            Cell::Bar(
                "heap-bar",
                vec![part(row.bytes), part(row.retained.saturating_sub(row.bytes))]
            ),
            units::count(row.objects),
            units::count(row.bytes),
            units::percent(row.bytes, summary.bytes),
            units::count(row.retained),
            units::percent(row.retained, summary.bytes),
        ];
        cells.extend(summary.has_old().then(|| units::count(row.old).into()));
        table.row("", cells);
    }
    table
}

/// The bars show the use of the pages.
fn sizes(summary: &Summary) -> Table {
    let are = [summary.has_old(), summary.pinned().next().is_some(), summary.has_moved_in()];
    let titles = are.into_iter().zip(["|>old:12", "|>pinned pages:12", "|>moved in:12"]);
    let more: String = titles.filter(|(is, _)| *is).map(|(_, title)| title).collect();
    let mut table = Table::new(&format!(
        "by size:9|%fill use of its pages|>objects:12|>bytes:15|>pages:8|>occupancy:10\
         |>empty slots:12|>behind slots:13|>slack:13{more}"
    ))
    .indented()
    .titled("", "classes");
    for row in &summary.sizes {
        let slots_bytes = row.page_bytes.saturating_sub(row.tail);
        let taken = match row.slot {
            Some(slot) => row.taken.saturating_mul(slot).min(slots_bytes),
            None => slots_bytes,
        };
        let parts = [
            ("asked", taken, "taken slots"),
            ("empty", slots_bytes - taken, "empty slots"),
            ("rest", row.tail, "behind the slots"),
        ];
        let parts = parts.map(|(class, bytes, what)| (class, bytes, what.to_owned()));
        let known = |is: bool, text: String| if is { text } else { "-".to_owned() };
        let paged = |text: String| known(row.pages != 0, text);
        let mut cells = cells![
            row.slot.map_or_else(|| "large".to_owned(), units::count),
            Cell::shares("use", row.page_bytes, parts),
            units::count(row.objects),
            units::count(row.bytes),
            units::count(row.pages),
            paged(units::percent(row.bytes, row.page_bytes)),
            paged(units::count(row.slots.saturating_sub(row.taken))),
            paged(units::count(row.tail)),
            known(row.known != 0, units::count(row.slack)),
        ];
        let more = are.into_iter().zip([row.old, row.pinned, row.moved_in]);
        cells.extend(more.filter(|(is, _)| *is).map(|(_, count)| units::count(count).into()));
        table.row("", cells);
    }
    table
}

fn one_type(summary: &Summary, of_type: &OfType) -> Vec<Part> {
    let row = &of_type.row;
    let share = |bytes| units::percent(bytes, summary.bytes);
    let heading = format!(
        "{}: {}, {} ({}), retained {} ({})",
        row.name,
        units::counted(row.objects, "object"),
        bytes(row.bytes),
        share(row.bytes),
        units::count(row.retained),
        share(row.retained),
    );
    let mut lines = Vec::new();
    if row.unreachable != 0 {
        let (objects, bytes) = (units::count(row.unreachable), bytes(row.unreachable_bytes));
        lines.push(format!("no root leads to {objects} of them, {bytes}"));
    }
    if summary.has_old() {
        let (objects, bytes) = (units::count(row.old), bytes(row.old_bytes));
        lines.push(format!("{objects} of them are old, {bytes}"));
    }
    for (what, some) in [("referred to by", &of_type.from), ("refer to", &of_type.to)] {
        let shown: Vec<String> = some
            .iter()
            .take(10)
            .map(|(name, count)| format!("{} ({})", clipped(name), units::count(*count)))
            .collect();
        let more = if some.len() > shown.len() { ", ..." } else { "" };
        let shown = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
        lines.push(format!("{what} {shown}{more}"));
    }
    listed(heading, lines)
}

fn listed(heading: impl Into<String>, lines: Vec<String>) -> Vec<Part> {
    vec![Part::heading(heading), Part::listed(lines)]
}

fn retainers(summary: &Summary) -> Vec<Part> {
    if summary.retainers.is_empty() {
        return Vec::new();
    }
    let line = |one: &Retainer| {
        let way = one.path.as_ref().map(|path| format!("\n      {}", way(summary, path)));
        format!(
            "{} ({})  {}, {}{}{}",
            bytes(one.object.retained),
            units::percent(one.object.retained, summary.bytes),
            name_of(&one.object),
            bytes(one.object.size),
            age(&one.object),
            way.unwrap_or_default()
        )
    };
    let lines = summary.retainers.iter().map(line);
    vec![Part::screen_heading("largest retainers"), Part::listed(lines)]
}

/// Names an object: `Table 0x7f0000010000`.
fn name_of(line: &Line) -> String {
    format!("{} {:#x}", clipped(&line.type_), line.address)
}

fn age(line: &Line) -> &'static str {
    if line.old { ", old" } else { "" }
}

/// Names a root: `handle #3`.
fn root(summary: &Summary, root: &RootLine) -> String {
    let mutator = if summary.mutators && root.mutator != 0 {
        format!(" of mutator {}", root.mutator)
    } else {
        String::new()
    };
    format!("{} #{}{mutator}", root.kind.word(), units::count(u64::from(root.number)))
}

/// Describes a path: `root handle #3 -> Table 0x... -> Array 0x...`.
fn way(summary: &Summary, path: &Path) -> String {
    let mut parts = vec![format!("root {}", root(summary, &path.root))];
    for (at, step) in path.steps.iter().enumerate() {
        if path.omitted != 0 && at == path.steps.len() / 2 {
            parts.push(format!("({} more)", units::count(path.omitted as u64)));
        }
        parts.push(name_of(step));
    }
    parts.join(" -> ")
}

fn path_to(summary: &Summary, asked: &Asked) -> Vec<Part> {
    let object = &asked.object;
    let said = |line: &Line| {
        let (size, retained) = (bytes(line.size), units::count(line.retained));
        format!("{}, {size}{}, retains {retained}", name_of(line), age(line))
    };
    let heading = match asked.address - object.address {
        0 => said(object),
        offset => format!("{:#x} is at {offset} in {}", asked.address, said(object)),
    };
    let Some(path) = &asked.path else {
        return listed(heading, vec!["no root leads to it".to_owned()]);
    };
    let mut lines = vec![format!("root {}", root(summary, &path.root))];
    for (at, step) in path.steps.iter().enumerate() {
        if path.omitted != 0 && at == path.steps.len() / 2 {
            lines.push(format!("-> ({} more)", units::count(path.omitted as u64)));
        }
        lines.push(format!("-> {}", said(step)));
    }
    lines.push(if asked.dominators.is_empty() {
        "no other object is on every path to it".to_owned()
    } else {
        let names: Vec<String> = asked.dominators.iter().map(name_of).collect();
        let more = match asked.dominators_left {
            0 => String::new(),
            left => format!(", and {} more", units::count(left as u64)),
        };
        format!("each of these is on every path to it: {}{more}", names.join(", "))
    });
    listed(heading, lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{TypeRow, Unreachable};
    use crate::output::Look;
    use askama::Template;
    use heapwright_record::heap::RootKind;

    fn object(type_: &str, address: u64, retained: u64) -> Line {
        let (type_, old) = (type_.to_owned(), false);
        Line { type_, address, size: 32, traced: true, old, retained }
    }

    fn path(steps: usize, omitted: usize) -> Path {
        let root = RootLine { kind: RootKind::Stack, number: 1234, mutator: 2 };
        let steps = (1..=steps as u64).map(|step| object("Node", step << 8, 32)).collect();
        Path { root, steps, omitted }
    }

    #[test]
    fn a_path_is_shown_with_what_is_left_out() {
        let printed =
            |mutators, path: &Path| way(&Summary { mutators, ..Summary::default() }, path);
        assert_eq!(printed(false, &path(1, 0)), "root stack #1,234 -> Node 0x100");
        assert_eq!(
            printed(true, &path(4, 99_999)),
            "root stack #1,234 of mutator 2 -> Node 0x100 -> Node 0x200 -> (99,999 more) -> Node \
             0x300 -> Node 0x400"
        );
    }

    #[test]
    fn nothing_is_shown_of_what_is_not_there() {
        let printed = document(&Summary::default(), "x", 20).text(Look::PLAIN);
        assert!(printed.starts_with("heapwright heap: x: 0 objects, 0 bytes\n"), "{printed}");
        assert!(!printed.contains("retainers") && !printed.contains("no root"), "{printed}");
    }

    #[test]
    fn long_names_are_clipped_and_what_is_kept_by_nothing_is_said() {
        let long = "N".repeat(100);
        let all = Summary {
            bytes: 100,
            unreachable: Unreachable { objects: 1, bytes: 32 },
            retainers: vec![Retainer { object: object(&long, 256, 50), path: None }],
            asked: vec![
                Asked {
                    address: 260,
                    object: object("A", 256, 50),
                    path: None,
                    dominators: Vec::new(),
                    dominators_left: 0,
                },
                Asked {
                    address: 256,
                    object: object("A", 256, 50),
                    path: Some(path(2, 0)),
                    dominators: vec![object("B", 512, 60)],
                    dominators_left: 3,
                },
            ],
            ..Summary::default()
        };
        let printed = document(&all, "x", 20).text(Look::PLAIN);
        let expected = format!(
            "\nlargest retainers\n  50 bytes (50.0 %)  {}... 0x100, 32 bytes\n\
             \n0x104 is at 4 in A 0x100, 32 bytes, retains 50\n  no root leads to it\n\
             \nA 0x100, 32 bytes, retains 50\n  root stack #1,234\n  -> Node 0x100, 32 bytes, \
             retains 32\n  -> Node 0x200, 32 bytes, retains 32\n  each of these is on every path to it: \
             B 0x200, and 3 more\n",
            "N".repeat(37)
        );
        assert!(printed.ends_with(&expected), "{printed}");
    }

    #[test]
    fn nothing_breaks_out_of_the_page() {
        let summary = Summary {
            types: vec![TypeRow { name: "<script>alert(1)</script>".into(), ..TypeRow::default() }],
            notes: vec!["<b>hi".to_owned()],
            ..Summary::default()
        };
        let page = document(&summary, "a\"><i>", 20).render().expect("is made");
        assert!(!page.contains("<script") && !page.contains("<b>hi") && !page.contains("<i>\""));
        assert!(!page.contains("://"));
    }
}
