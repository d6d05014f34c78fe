//! How full the buckets of each size were, as bars.
//!
//! ```text
//! 64 B   [bytes asked for | slack |  freed, waiting  | unused |   rest  ]   128 KiB
//!         `------- live slots ---'                               `- guards and records
//! ```
//!
//! A bar is the whole memory of a class; how much that is, compared with the largest
//! class, is the thin bar beside its figure.

use super::stack::clipped;
use crate::output::{sentences, units};
use crate::report::model::Process;
use askama::Template;
use askama::filters::HtmlSafe;
use heapwright_record::debug::Class;

/// The classes of a process.
#[derive(Template)]
#[template(path = "report/classes.html")]
pub(super) struct Classes {
    name: String,
    pid: u32,
    rows: Vec<Row>,
    total: String,
    share: String,
}

impl HtmlSafe for Classes {}

struct Row {
    slot: String,
    buckets: String,
    memory: String,
    /// Of the largest class.
    of_largest: String,
    live: String,
    full: String,
    parts: Vec<Part>,
}

struct Part {
    class: &'static str,
    width: String,
    title: String,
}

impl Classes {
    /// None of a process that said nothing of them.
    pub(super) fn of(process: &Process) -> Option<Self> {
        let largest = process.classes.iter().map(|class| class.memory).max()?;
        let sum =
            |part: fn(&Class) -> u64| process.classes.iter().map(part).fold(0, u64::saturating_add);
        let total = sum(|class| class.memory);
        let asked = sum(|class| class.bytes);
        let mut classes: Vec<&Class> = process.classes.iter().collect();
        // Blocks that stand alone are the large ones.
        classes.sort_by_key(|class| class.slot.wrapping_sub(1));
        Some(Self {
            name: clipped(sentences::command(process)),
            pid: process.pid,
            rows: classes.into_iter().map(|class| row(class, largest)).collect(),
            total: units::bytes(total),
            share: units::percent(asked, total),
        })
    }
}

fn row(class: &Class, largest: u64) -> Row {
    let slots = |count: u64| count.saturating_mul(class.slot);
    let alone = class.slot == 0;
    let live = if alone { class.bytes } else { slots(class.live).max(class.bytes) };
    let slack = live - class.bytes;
    let (freed, unused) = (slots(class.freed), slots(class.unused));
    let rest = class.memory.saturating_sub(live.saturating_add(freed).saturating_add(unused));
    // What does not add up is drawn in the proportions that it has.
    let parts = [freed, unused, rest];
    let whole = parts.into_iter().fold(live, u64::saturating_add).max(1);
    let part = |kind, bytes: u64, what: String| Part {
        class: kind,
        width: units::css(bytes, whole),
        title: format!("{what}: {} ({})", units::bytes(bytes), units::percent(bytes, whole)),
    };
    let parts = [
        part("asked", class.bytes, "asked for by the program".to_owned()),
        part("slack", slack, "more than was asked for".to_owned()),
        part(
            "freed",
            freed,
            format!("{} that were freed and wait", units::counted(class.freed, "slot")),
        ),
        part(
            "unused",
            unused,
            format!("{} not handed out yet", units::counted(class.unused, "slot")),
        ),
        part("rest", rest, "guards, records and edges".to_owned()),
    ];
    Row {
        slot: if alone { "alone".to_owned() } else { units::round_bytes(class.slot) },
        buckets: units::count(class.buckets),
        memory: units::bytes(class.memory),
        of_largest: units::css(class.memory, largest),
        live: units::count(class.live),
        full: units::percent(class.bytes, class.memory),
        parts: parts.into_iter().filter(|part| part.width != "0.000%").collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn the_parts_of_a_bar_are_its_whole() {
        let report = sample::report();
        let classes = Classes::of(&report.processes[0]).expect("has some");
        let slots: Vec<&str> = classes.rows.iter().map(|row| &*row.slot).collect();
        assert_eq!(slots, ["32 B", "64 B", "256 B", "4 KiB", "alone"]);
        for row in &classes.rows {
            let number = |part: &Part| part.width.trim_end_matches('%').parse::<f64>();
            let sum: f64 = row.parts.iter().filter_map(|part| number(part).ok()).sum();
            assert!((sum - 100.0).abs() < 0.1, "{}: {sum}", row.slot);
        }
        assert!(Classes::of(&report.processes[1]).is_none());
    }
}
