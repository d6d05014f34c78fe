//! The picture of a heap dump's pages.
//!
//! ```text
//! a page    4 x 4 parts of 3 points, and a gap of 2       64 KiB: a part is 4 KiB
//! group     the pages of a pool, 80 in a row; empty and large ones apart
//! colour    its darkness: how full a part is; its hue: how many of the page's objects are old
//! marks     an outline: an object is pinned; a corner: objects were moved into the page
//! ```
//!
//! Equally full parts of equally old pages form one SVG path: the picture of a gigabyte takes a
//! megabyte. There are no scripts. If a heap has at most a few thousand pages, each has a tip.

use super::document::Part;
use super::units;
use crate::heap::{PageRow, SEGMENTS, Summary};
use askama::Template;
use heapwright_record::heap::{PageState, kind};
use std::fmt::Write;

/// The number of pages in a row, the points of a page with its gap, and the points of a part.
const COLUMNS: usize = 80;
const STEP: usize = 14;
const PART: usize = 3;
const SIDE: usize = 4;
/// The number of levels of fullness: empty, seven steps, full.
const LEVELS: usize = 9;
/// The number of levels of age: nothing old, less than half, half or more, all.
const AGES: usize = 4;
/// The most pages of a group that are drawn. No page has a tip if there are more than `MOST_TIPS`.
const MOST_DRAWN: usize = 20_000;
const MOST_TIPS: usize = 3000;

const _: () = assert!(SIDE * SIDE == SEGMENTS);

#[derive(Template)]
#[template(path = "pages.html")]
struct Picture {
    groups: Vec<Group>,
    ages: bool,
    pins: bool,
    moves: bool,
}

/// Pages that are drawn together.
struct Group {
    title: String,
    about: String,
    width: usize,
    height: usize,
    layers: Vec<Layer>,
    pinned: String,
    moved_in: String,
    tips: Vec<Tip>,
    left: Option<String>,
}

/// All parts that are equally full, and equally old.
struct Layer {
    class: String,
    path: String,
}

struct Tip {
    x: usize,
    y: usize,
    text: String,
}

/// Returns the picture; empty without pages.
pub(crate) fn picture(summary: &Summary) -> Vec<Part> {
    let picture = Picture {
        groups: groups(&summary.pages),
        ages: summary.has_old(),
        pins: summary.pinned().next().is_some(),
        moves: summary.has_moved_in(),
    };
    if picture.groups.is_empty() { Vec::new() } else { vec![Part::Drawing(picture.to_string())] }
}

/// Returns the groups: one for each pool, small slots first, then empty and large pages.
fn groups(pages: &[PageRow]) -> Vec<Group> {
    let key = |row: &PageRow| (row.page.state, row.page.slot, row.page.address);
    let mut sorted: Vec<&PageRow> = pages.iter().collect();
    sorted.sort_by_key(|row| match row.page.state {
        PageState::InUse => (0, row.page.slot, row.page.address),
        PageState::Empty => (1, 0, row.page.address),
        PageState::Large => (2, 0, row.page.address),
    });
    let same = |one: &&PageRow, other: &&PageRow| {
        key(one).0 == key(other).0
            && (one.page.state != PageState::InUse || one.page.slot == other.page.slot)
    };
    let with_tips = pages.len() <= MOST_TIPS;
    sorted.chunk_by(same).map(|rows| group(rows, with_tips)).collect()
}

fn group(rows: &[&PageRow], with_tips: bool) -> Group {
    let state = rows[0].page.state;
    let bytes = rows.iter().map(|row| row.page.bytes).fold(0, u64::saturating_add);
    let taken = rows.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let count = units::counted(rows.len() as u64, "page");
    let (title, about) = match state {
        PageState::InUse => (
            format!("{} a slot", units::round_bytes(rows[0].page.slot)),
            format!("{count}, {} taken", units::percent(taken, bytes)),
        ),
        PageState::Empty => ("Empty".to_owned(), format!("{count}, usable by any pool")),
        PageState::Large => (
            "Large objects".to_owned(),
            format!("{}, {}", units::counted(rows.len() as u64, "object"), units::bytes(bytes)),
        ),
    };
    let drawn = &rows[..rows.len().min(MOST_DRAWN)];
    let mut paths = vec![String::new(); LEVELS * AGES];
    let (mut pinned, mut moved_in) = (String::new(), String::new());
    let mut tips = Vec::new();
    for (at, row) in drawn.iter().enumerate() {
        let (x, y) = (at % COLUMNS * STEP, at / COLUMNS * STEP);
        draw(row, x, y, &mut paths[old(row) * LEVELS..][..LEVELS]);
        if row.page.pins != 0 {
            let _ = write!(pinned, "M{x} {y}h12v12h-12z");
        }
        if row.page.moved_in != 0 {
            let _ = write!(moved_in, "M{} {y}h5v5z", x + 7);
        }
        if with_tips {
            tips.push(Tip { x, y, text: tip_text(row) });
        }
    }
    let layers = paths.into_iter().enumerate().filter(|(_, path)| !path.is_empty());
    let class = |layer: usize| match (layer / LEVELS, layer % LEVELS) {
        (0, level) => format!("f{level}"),
        (age, level) => format!("f{level} a{age}"),
    };
    let left = (rows.len() - drawn.len()) as u64;
    Group {
        title,
        about: about + &ages_and_pins(rows),
        width: drawn.len().min(COLUMNS) * STEP,
        height: drawn.len().div_ceil(COLUMNS) * STEP,
        layers: layers.map(|(layer, path)| Layer { class: class(layer), path }).collect(),
        pinned,
        moved_in,
        tips,
        left: (left != 0).then(|| format!("{} are not drawn.", units::counted(left, "more page"))),
    }
}

fn ages_and_pins(rows: &[&PageRow]) -> String {
    let mut text = String::new();
    let taken: u64 = rows.iter().map(|row| u64::from(row.taken)).sum();
    let old: u64 = rows.iter().map(|row| u64::from(row.page.old)).sum();
    if old != 0 {
        let _ = write!(text, ", {} old", units::percent(old, taken));
    }
    let pinned = rows.iter().filter(|row| row.page.pins != 0).count();
    if pinned != 0 {
        let _ = write!(text, ", {} pinned", units::count(pinned as u64));
    }
    text
}

fn old(row: &PageRow) -> usize {
    match row.page.old {
        0 => 0,
        old if old >= row.taken => AGES - 1,
        old => 1 + usize::from(u64::from(old) * 2 >= u64::from(row.taken)),
    }
}

fn level(part: u8) -> usize {
    match part {
        0 => 0,
        u8::MAX => LEVELS - 1,
        some => 1 + usize::from(some) * (LEVELS - 2) / usize::from(u8::MAX),
    }
}

/// Draws a page's parts; equally full neighbours form one rectangle.
fn draw(row: &PageRow, x: usize, y: usize, paths: &mut [String]) {
    let mut rectangle = |level: usize, x: usize, y: usize, width: usize, height: usize| {
        let _ = write!(paths[level], "M{x} {y}h{width}v{height}h-{width}z");
    };
    let first = level(row.parts[0]);
    if row.parts.iter().all(|part| level(*part) == first) {
        rectangle(first, x, y, SIDE * PART, SIDE * PART);
        return;
    }
    for (line, parts) in row.parts.chunks_exact(SIDE).enumerate() {
        let mut from = 0;
        for run in parts.chunk_by(|one, other| level(*one) == level(*other)) {
            let (width, y) = (run.len() * PART, y + line * PART);
            rectangle(level(run[0]), x + from * PART, y, width, PART);
            from += run.len();
        }
    }
}

/// Returns `page 3 at 0x7f0000010000, traced: 64 of 70 slots (91.4 %), 60 old, 1 pin, 34 moved in`.
fn tip_text(row: &PageRow) -> String {
    let page = &row.page;
    let mut text = format!("page {} at {:#x}", page.number, page.address);
    let kinds = [(kind::LEAF, "leaf"), (kind::FREED, "freed")];
    let kinds = kinds.iter().filter(|(bit, _)| page.kind & bit != 0).map(|(_, word)| *word);
    let kinds: Vec<&str> = kinds.collect();
    let share = format!("{:.1} %", row.share() * 100.0);
    let _ = match page.state {
        PageState::Empty => write!(text, ", free"),
        PageState::Large => {
            write!(text, ": {} of {}", units::bytes(page.slot), units::bytes(page.bytes))
        }
        PageState::InUse => write!(
            text,
            ", {}: {} of {} slots ({share})",
            if kinds.is_empty() { "traced".to_owned() } else { kinds.join(", ") },
            units::count(u64::from(row.taken)),
            units::count(u64::from(page.slots)),
        ),
    };
    if page.old != 0 {
        let _ = write!(text, ", {} old", units::count(page.old.into()));
    }
    if page.pins != 0 {
        let _ = write!(text, ", {}", units::counted(page.pins, "pin"));
    }
    if page.moved_in != 0 {
        let _ = write!(text, ", {} moved in", units::count(page.moved_in));
    }
    if let Some(word) = page.aside.word() {
        let _ = write!(text, ", {word}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::heap::Page as Recorded;

    fn row(state: PageState, slot: u64, address: u64, parts: [u8; SEGMENTS]) -> PageRow {
        let page = Recorded {
            number: 1,
            address,
            bytes: 64 << 10,
            state,
            slot,
            slots: 10,
            ..Recorded::default()
        };
        PageRow { page, taken: 5, parts }
    }

    #[test]
    fn a_full_page_is_one_square_and_others_as_few_as_may_be() {
        let drawn = |parts| {
            let mut paths = vec![String::new(); LEVELS];
            draw(&row(PageState::InUse, 32, 0, parts), 14, 28, &mut paths);
            paths
        };
        let full = drawn([255; SEGMENTS]);
        assert_eq!(full[8], "M14 28h12v12h-12z");
        assert_eq!(full.concat().len(), full[8].len());
        let mut parts = [0; SEGMENTS];
        parts[1] = 1;
        parts[2] = 254;
        let some = drawn(parts);
        assert_eq!(some[1], "M17 28h3v3h-3z");
        assert_eq!(some[7], "M20 28h3v3h-3z");
        assert_eq!(some[0].matches('M').count(), 2 + 3);
    }

    #[test]
    fn pools_empty_and_large_pages_are_apart() {
        let rows = [
            row(PageState::Large, 300, 5, [255; SEGMENTS]),
            row(PageState::InUse, 64, 4, [0; SEGMENTS]),
            row(PageState::Empty, 0, 3, [0; SEGMENTS]),
            row(PageState::InUse, 32, 2, [0; SEGMENTS]),
            row(PageState::Large, 200, 6, [255; SEGMENTS]),
            row(PageState::InUse, 64, 1, [0; SEGMENTS]),
        ];
        let groups = groups(&rows);
        let titles: Vec<&str> = groups.iter().map(|group| &*group.title).collect();
        assert_eq!(titles, ["32 B a slot", "64 B a slot", "Empty", "Large objects"]);
        assert_eq!(groups[1].tips[0].text, "page 1 at 0x1, traced: 5 of 10 slots (0.5 %)");
        assert_eq!((groups[3].width, groups[3].height), (28, 14));
    }

    #[test]
    fn a_page_is_as_old_as_its_objects() {
        let mut page = row(PageState::InUse, 64, 1, [255; SEGMENTS]);
        let ages = [0, 1, 2, 3, 4, 5, 9].map(|objects| {
            page.page.old = objects;
            old(&page)
        });
        assert_eq!(ages, [0, 1, 1, 2, 2, 3, 3]);
        page.page.old = 2;
        let group = group(&[&page], false);
        assert_eq!(group.about, "1 page, 0.5 % taken, 40.0 % old");
        assert_eq!(group.layers[0].class, "f8 a1");
        assert!(group.pinned.is_empty() && group.moved_in.is_empty());
    }

    #[test]
    fn very_many_pages_are_a_page_that_opens() {
        let mut parts = [0; SEGMENTS];
        parts[3] = 100;
        let rows = vec![row(PageState::InUse, 32, 1, parts); MOST_DRAWN + 7];
        let summary = Summary { pages: rows, ..Summary::default() };
        let page = picture(&summary)[0].to_string();
        assert!(
            page.contains("7 more pages are not drawn.") && !page.contains("<rect class=\"tip")
        );
        assert!(page.len() < 4 << 20, "{}", page.len());
    }
}
