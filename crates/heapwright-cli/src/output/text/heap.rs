//! A heap dump, on a screen. Bytes are whole numbers, so that they can be added up.
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

use crate::heap::{Asked, Line, OfType, PageRow, Path, RootLine, Summary};
use crate::output::document::{Cell, Table, cells, clipped};
use crate::output::{Look, units};
use heapwright_record::heap::PageState;
use std::fmt::Write;

/// The summary; of types at most so many.
pub(crate) fn summary(summary: &Summary, name: &str, most: usize, look: Look) -> String {
    let mut out = String::new();
    head(&mut out, summary, name, look);
    match &summary.of_type {
        Some(of_type) => one_type(&mut out, summary, of_type, look),
        None => {
            let _ = write!(out, "\n{}", types(summary, most).text(look));
            if summary.types.len() > most {
                let more = units::counted((summary.types.len() - most) as u64, "more type");
                let _ = writeln!(out, "  and {more} (--top 0 shows all)");
            }
            let _ = write!(out, "\n{}", sizes(summary).text(look));
            let is_empty = |row: &&PageRow| row.page.state == PageState::Empty;
            let tombs = summary.pages.iter().filter(is_empty).count();
            if tombs != 0 {
                let pages = units::counted(tombs as u64, "page");
                let _ = writeln!(out, "  and {pages} empty");
            }
        }
    }
    retainers(&mut out, summary, look);
    for asked in &summary.asked {
        path_to(&mut out, summary, asked, look);
    }
    out
}

fn head(out: &mut String, summary: &Summary, name: &str, look: Look) {
    let heap = &summary.heap;
    let mut facts = vec![format!(
        "heapwright heap: {name}: {}, {}",
        units::counted(summary.objects, "object"),
        bytes(summary.bytes)
    )];
    if !summary.layout.is_empty() {
        facts.push(format!("layout {}", summary.layout));
    }
    if heap.pid != 0 {
        facts.push(format!("process {}", heap.pid));
    }
    let _ = writeln!(out, "{}", look.strong(&facts.join("; ")));
    let cycles = units::counted(heap.cycles, "collection");
    line(
        out,
        "heap",
        &format!(
            "{} live, next collection at {}, after {cycles}",
            bytes(heap.live),
            units::count(heap.goal)
        ),
    );
    line(
        out,
        "pages",
        &format!(
            "in use {}, empty {}, large {}; the runtime's own memory {}",
            units::count(heap.in_use),
            units::count(heap.empty),
            units::count(heap.large),
            units::count(heap.external)
        ),
    );
    ages_and_moves(out, summary);
    let kinds: Vec<String> = summary
        .roots
        .iter()
        .map(|(kind, count)| format!("{} {}", units::count(*count), kind.word()))
        .collect();
    let roots = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    line(out, "roots", &roots);
    line(out, "graph", &units::counted(summary.references, "reference"));
    if summary.unreachable.objects != 0 {
        line(out, "no root", &unreachable(summary));
    }
}

/// Of a heap that has generations, and of one whose objects move.
fn ages_and_moves(out: &mut String, summary: &Summary) {
    let heap = &summary.heap;
    if heap.old != 0 || heap.minor_cycles != 0 || summary.has_old() {
        let minor = match heap.minor_cycles {
            0 => "no collection was minor".to_owned(),
            1 => "1 of the collections was minor".to_owned(),
            some => format!("{} of the collections were minor", units::count(some)),
        };
        let share = units::percent(heap.old, heap.live);
        line(out, "old", &format!("{} ({share}); {minor}", bytes(heap.old)));
    }
    if heap.compactions != 0 || heap.moved_objects != 0 {
        line(
            out,
            "moved",
            &format!(
                "{} of {}, by {}; pages: {} evacuated, {} kept",
                units::counted(heap.moved_objects, "object"),
                bytes(heap.moved_bytes),
                units::counted(heap.compactions, "compaction"),
                units::count(heap.evacuated_pages),
                units::count(heap.kept_pages)
            ),
        );
    }
    let pinned = summary.pinned().count();
    if pinned != 0 {
        let pins = summary.pinned().map(|row| row.page.pins).fold(0, u64::saturating_add);
        let pages = units::counted(pinned as u64, "page");
        line(out, "pinned", &format!("{pages}, by {}", units::counted(pins, "pin")));
    }
}

fn line(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<8} {text}");
}

/// What no root leads to, and of which types most of it is.
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

/// The types with most bytes. Bars show these bytes, and those that the types retain besides.
pub(crate) fn types(summary: &Summary, most: usize) -> Table {
    let old = if summary.has_old() { "|>old:12" } else { "" };
    let mut table = Table::new(&format!(
        "by type|%share bytes, and retained|>objects:12|>bytes:15|>share:8\
         |>retained:15|>share:8{old}"
    ))
    .indented();
    let part = |bytes| ("", units::css(bytes, summary.bytes), String::new());
    for row in summary.types.iter().take(most) {
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

/// The sizes of slots. Bars show how their pages are used.
pub(crate) fn sizes(summary: &Summary) -> Table {
    let are = [summary.has_old(), summary.pinned().next().is_some(), summary.has_moved_in()];
    let titles = are.into_iter().zip(["|>old:12", "|>pinned pages:12", "|>moved in:12"]);
    let more: String = titles.filter(|(is, _)| *is).map(|(_, title)| title).collect();
    let mut table = Table::new(&format!(
        "by size:9|%fill use of its pages|>objects:12|>bytes:15|>pages:8|>occupancy:10\
         |>empty slots:12|>behind slots:13|>slack:13{more}"
    ))
    .indented();
    for row in &summary.sizes {
        let slots_bytes = row.page_bytes.saturating_sub(row.tail);
        let taken = match row.slot {
            Some(slot) => row.taken.saturating_mul(slot).min(slots_bytes),
            None => slots_bytes,
        };
        let part = |class, bytes: u64, what: &str| {
            let share = units::percent(bytes, row.page_bytes);
            (
                class,
                units::css(bytes, row.page_bytes),
                format!("{what}: {} ({share})", units::bytes(bytes)),
            )
        };
        let mut parts = vec![
            part("asked", taken, "taken slots"),
            part("empty", slots_bytes - taken, "empty slots"),
            part("rest", row.tail, "behind the slots"),
        ];
        parts.retain(|(_, width, _)| width != "0.000%");
        let known = |is: bool, text: String| if is { text } else { "-".to_owned() };
        let paged = |text: String| known(row.pages != 0, text);
        let mut cells = cells![
            row.slot.map_or_else(|| "large".to_owned(), units::count),
            Cell::Bar("use", parts),
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

fn one_type(out: &mut String, summary: &Summary, of_type: &OfType, look: Look) {
    let row = &of_type.row;
    let heading = format!(
        "{}: {}, {} ({}), retained {} ({})",
        row.name,
        units::counted(row.objects, "object"),
        bytes(row.bytes),
        units::percent(row.bytes, summary.bytes),
        units::count(row.retained),
        units::percent(row.retained, summary.bytes),
    );
    let _ = writeln!(out, "\n{}", look.strong(&heading));
    if row.unreachable != 0 {
        let _ = writeln!(
            out,
            "  no root leads to {} of them, {}",
            units::count(row.unreachable),
            bytes(row.unreachable_bytes)
        );
    }
    if summary.has_old() {
        let (objects, bytes) = (units::count(row.old), bytes(row.old_bytes));
        let _ = writeln!(out, "  {objects} of them are old, {bytes}");
    }
    for (what, some) in [("referred to by", &of_type.from), ("refer to", &of_type.to)] {
        let shown: Vec<String> = some
            .iter()
            .take(10)
            .map(|(name, count)| format!("{} ({})", clipped(name), units::count(*count)))
            .collect();
        let more = if some.len() > shown.len() { ", ..." } else { "" };
        let shown = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
        let _ = writeln!(out, "  {what} {shown}{more}");
    }
}

fn retainers(out: &mut String, summary: &Summary, look: Look) {
    if summary.retainers.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", look.strong("largest retainers"));
    for one in &summary.retainers {
        let _ = writeln!(
            out,
            "  {} ({})  {}, {}",
            bytes(one.object.retained),
            units::percent(one.object.retained, summary.bytes),
            name_of(&one.object),
            bytes(one.object.size)
        );
        if let Some(path) = &one.path {
            let _ = writeln!(out, "      {}", way(summary, path));
        }
    }
}

/// `Table 0x7f0000010000`.
fn name_of(line: &Line) -> String {
    format!("{} {:#x}", clipped(&line.type_), line.address)
}

/// What is said of an object that is old.
pub(crate) fn age(line: &Line) -> &'static str {
    if line.old { ", old" } else { "" }
}

/// `handle #3`.
pub(crate) fn root(summary: &Summary, root: &RootLine) -> String {
    let mutator = if summary.mutators && root.mutator != 0 {
        format!(" of mutator {}", root.mutator)
    } else {
        String::new()
    };
    format!("{} #{}{mutator}", root.kind.word(), units::count(u64::from(root.number)))
}

/// `root handle #3 -> Table 0x... -> Array 0x...`.
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

fn path_to(out: &mut String, summary: &Summary, asked: &Asked, look: Look) {
    let object = &asked.object;
    let inside = match asked.address - object.address {
        0 => String::new(),
        offset => format!("{:#x} is at {offset} in ", asked.address),
    };
    let heading = format!(
        "{inside}{}, {}{}, retains {}",
        name_of(object),
        bytes(object.size),
        age(object),
        units::count(object.retained)
    );
    let _ = writeln!(out, "\n{}", look.strong(&heading));
    let Some(path) = &asked.path else {
        let _ = writeln!(out, "  no root leads to it");
        return;
    };
    let _ = writeln!(out, "  root {}", root(summary, &path.root));
    for (at, step) in path.steps.iter().enumerate() {
        if path.omitted != 0 && at == path.steps.len() / 2 {
            let _ = writeln!(out, "  -> ({} more)", units::count(path.omitted as u64));
        }
        let _ = writeln!(
            out,
            "  -> {}, {}{}, retains {}",
            name_of(step),
            bytes(step.size),
            age(step),
            units::count(step.retained)
        );
    }
    if asked.dominators.is_empty() {
        let _ = writeln!(out, "  no other object alone keeps it");
    } else {
        let names: Vec<String> = asked.dominators.iter().map(name_of).collect();
        let more = match asked.dominators_left {
            0 => String::new(),
            left => format!(", and {} more", units::count(left as u64)),
        };
        let _ = writeln!(out, "  each of these alone keeps it: {}{more}", names.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Retainer, Unreachable};
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
        let printed = summary(&Summary::default(), "x", 20, Look::PLAIN);
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
        let printed = summary(&all, "x", 20, Look::PLAIN);
        let expected = format!(
            "\nlargest retainers\n  50 bytes (50.0 %)  {}... 0x100, 32 bytes\n\
             \n0x104 is at 4 in A 0x100, 32 bytes, retains 50\n  no root leads to it\n\
             \nA 0x100, 32 bytes, retains 50\n  root stack #1,234\n  -> Node 0x100, 32 bytes, \
             retains 32\n  -> Node 0x200, 32 bytes, retains 32\n  each of these alone keeps it: B \
             0x200, and 3 more\n",
            "N".repeat(37)
        );
        assert!(printed.ends_with(&expected), "{printed}");
    }
}
