//! The use of the buckets of each size, as bars.
//!
//! ```text
//! 64 B   [bytes asked for | slack |  freed, waiting  | unused |   rest  ]   128 KiB
//!         `------- live slots ---'                               `- guards and records
//! ```
//!
//! A bar is the whole memory of a class. The thin bar beside it compares this with the largest.

use super::document::{Cell, Part, Table, Words, cells};
use super::stack::clipped;
use super::{sentences, units};
use crate::report::model::Process;
use heapwright_record::debug::Class;

pub(super) fn legend() -> Part {
    let keys = [
        ("asked", "asked for"),
        ("slack", "slack in slots"),
        ("freed", "freed, waiting"),
        ("unused", "not handed out"),
        ("rest", "guards and records"),
    ];
    Part::Legend(keys.map(|(class, text)| Words::of(class, text)).into())
}

/// Makes the table of a process's size classes; `None` if the record lacks them.
pub(super) fn table(process: &Process) -> Option<Table> {
    let largest = process.classes.iter().map(|class| class.memory).max()?;
    let sum =
        |part: fn(&Class) -> u64| process.classes.iter().map(part).fold(0, u64::saturating_add);
    let (total, asked) = (sum(|class| class.memory), sum(|class| class.bytes));
    let mut classes: Vec<&Class> = process.classes.iter().collect();
    // Spans of a single large block have slot size 0, and come last.
    classes.sort_by_key(|class| class.slot.wrapping_sub(1));
    let caption = format!(
        "{}: process {}, {}, {} of it asked for by the program",
        clipped(sentences::command(process)),
        process.pid,
        units::bytes(total),
        units::percent(asked, total)
    );
    let columns =
        "slot|%fill use of its memory|>asked for|>live|>buckets|>memory|%of to the largest";
    let mut table = Table::new(columns).titled(&caption, "classes");
    for class in classes {
        let slot = Some(class.slot).filter(|slot| *slot != 0).map(units::round_bytes);
        let cells = cells![
            slot.unwrap_or_else(|| "alone".to_owned()),
            bar(class),
            units::percent(class.bytes, class.memory),
            units::count(class.live),
            units::count(class.buckets),
            units::bytes(class.memory),
            Cell::share("thin", class.memory, largest),
        ];
        table.row("", cells);
    }
    Some(table)
}

fn bar(class: &Class) -> Cell {
    let slots = |count: u64| count.saturating_mul(class.slot);
    let live = if class.slot == 0 { class.bytes } else { slots(class.live).max(class.bytes) };
    let slack = live - class.bytes;
    let (freed, unused) = (slots(class.freed), slots(class.unused));
    let rest = class.memory.saturating_sub(live.saturating_add(freed).saturating_add(unused));
    // Inconsistent figures are drawn in their own proportions.
    let whole = [freed, unused, rest].into_iter().fold(live, u64::saturating_add).max(1);
    let freed_slots = units::counted(class.freed, "slot");
    let unused_slots = units::counted(class.unused, "slot");
    let parts = [
        ("asked", class.bytes, "asked for by the program".to_owned()),
        ("slack", slack, "more than was asked for".to_owned()),
        ("freed", freed, format!("{freed_slots} that were freed and wait")),
        ("unused", unused, format!("{unused_slots} not handed out yet")),
        ("rest", rest, "guards, records and edges".to_owned()),
    ];
    Cell::shares("use", whole, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use askama::Template;

    #[test]
    fn the_parts_of_a_bar_are_its_whole() {
        let processes = sample::report().processes;
        let page = table(&processes[0]).expect("has some").render().expect("is rendered");
        for slot in ["32 B", "64 B", "256 B", "4 KiB", "alone"] {
            assert!(page.contains(&format!("<tr><td>{slot}</td>")), "{slot}: {page}");
        }
        for class in &processes[0].classes {
            let Cell::Bar(_, parts) = bar(class) else { panic!("is a bar") };
            let width =
                |(_, width, _): &(_, String, _)| width.strip_suffix('%')?.parse::<f64>().ok();
            let sum: f64 = parts.iter().filter_map(width).sum();
            assert!((sum - 100.0).abs() < 0.1, "{}: {sum}", class.slot);
        }
        assert!(table(&processes[1]).is_none());
    }
}
