//! The flame graph of a page: held memory, from the outermost call inwards, roots at the top.
//!
//! ```text
//! all 7.4 MiB                                 depth 0
//! still reachable 5.4 MiB  | definitely ...   1: the fate, which gives the colour
//! main                     | main             2: the outermost function
//! ```
//!
//! A heap profile has no fates: its depth 1 is the process, if there are several. Every box is an
//! SVG of its own, placed in percent. So a box follows the page's width and cuts off its name, and
//! a zoom changes two attributes. Boxes too narrow to be seen are left out. A large graph leaves
//! out wider boxes, too.

use super::document::Part;
use super::page::fate_class;
use super::stack::clipped;
use super::{sentences, units};
use crate::report::calls::calls;
use crate::report::held::{Fate, held};
use crate::report::model::{Amount, Report, StackId};
use askama::Template;
use heapwright_record::debug::Reach;
use std::collections::BTreeMap;

pub(super) const MOST: usize = 2500;
const DEPTH: usize = 100;
/// The height of one box and the gap below it, in pixels.
const HEIGHT: usize = 19;

#[derive(Template)]
#[template(path = "flame.html")]
struct Flame {
    label: String,
    height: usize,
    boxes: Vec<Box>,
    left: bool,
}

struct Box {
    class: &'static str,
    /// The shade, one of four, so that neighbours differ.
    shade: u32,
    name: String,
    title: String,
    depth: usize,
    x: String,
    y: usize,
    width: String,
}

#[derive(Default)]
struct Node {
    amount: Amount,
    inner: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, report: &Report, stack: StackId, amount: Amount) {
        let mut node = self;
        node.amount += amount;
        for call in calls(&report.stacks, stack).rev().take(DEPTH) {
            node = node.inner.entry(clipped(call.name())).or_default();
            node.amount += amount;
        }
    }

    /// Returns the inner nodes, the largest first.
    fn by_size(&self) -> Vec<(&str, &Self)> {
        let mut inner: Vec<_> =
            self.inner.iter().map(|(name, node)| (name.as_str(), node)).collect();
        inner.sort_by_key(|(_, node)| std::cmp::Reverse(node.amount.bytes));
        inner
    }
}

/// The sum of heap profiles, stack by stack, for a graph of one of their figures.
#[derive(Default)]
pub(super) struct Tree(Node);

impl Tree {
    /// With several processes, `process` is the process's name.
    pub(super) fn add(
        &mut self,
        report: &Report,
        process: Option<&str>,
        stack: StackId,
        amount: Amount,
    ) {
        let Some(name) = process else { return self.0.add(report, stack, amount) };
        self.0.amount += amount;
        self.0.inner.entry(name.to_owned()).or_default().add(report, stack, amount);
    }

    /// Draws the graph with at most `most` boxes; `None` if it would be empty.
    pub(super) fn flame(&self, label: String, most: usize) -> Option<Part> {
        let group = |(name, node): (&str, _)| ("", name.to_owned(), node);
        let groups: Vec<_> = self.0.by_size().into_iter().map(group).collect();
        Some(Part::Drawing(Flame::drawn(label, self.0.amount, &groups, most)?.to_string()))
    }
}

/// Draws the graph of held memory; `None` if it would be empty.
pub(super) fn of(report: &Report) -> Option<Part> {
    Some(Part::Drawing(Flame::of(report)?.to_string()))
}

impl Flame {
    fn of(report: &Report) -> Option<Self> {
        let mut all = Node::default();
        let mut fates: BTreeMap<Fate, Node> = BTreeMap::new();
        for held in held(report) {
            all.amount += held.amount;
            fates.entry(held.fate).or_default().add(report, held.stack, held.amount);
        }
        let mut order: Vec<_> = fates.iter().collect();
        order.sort_by_key(|(fate, node)| (*fate, u64::MAX - node.amount.bytes));
        let group = |(fate, node): (&Fate, _)| {
            let (class, name) = words(*fate);
            (class, name, node)
        };
        let groups: Vec<_> = order.into_iter().map(group).collect();
        Self::drawn("flame graph of the memory held".to_owned(), all.amount, &groups, MOST)
    }

    /// Groups lie side by side, under one box for all; `None` if they are empty.
    fn drawn(
        label: String,
        all: Amount,
        groups: &[(&'static str, String, &Node)],
        most: usize,
    ) -> Option<Self> {
        let whole = all.bytes;
        if whole == 0 {
            return None;
        }
        let (mut least, mut left) = (0.0004, false);
        let boxes = loop {
            let mut boxes = Boxes { whole, least, boxes: Vec::new(), left: false };
            boxes.lay("all", "all", all, 0, 0);
            let mut start = 0;
            for (class, name, node) in groups {
                boxes.tree(class, name, node, start, 1);
                start += node.amount.bytes;
            }
            left |= boxes.left;
            if boxes.boxes.len() <= most {
                break boxes.boxes;
            }
            least *= 2.0;
        };
        let depth = boxes.iter().map(|one| one.depth).max().unwrap_or(0);
        Some(Self { label, height: (depth + 1) * HEIGHT, boxes, left })
    }
}

fn words(fate: Fate) -> (&'static str, String) {
    match fate {
        Fate::Live | Fate::Profiled(_) => ("live", "live".to_owned()),
        Fate::Checked(Reach::Unknown) => ("live", "unknown".to_owned()),
        Fate::Checked(reach) => (fate_class(reach), sentences::fate(reach)),
    }
}

struct Boxes {
    whole: u64,
    least: f64,
    boxes: Vec<Box>,
    left: bool,
}

impl Boxes {
    fn tree(&mut self, class: &'static str, name: &str, node: &Node, start: u64, depth: usize) {
        if units::share(node.amount.bytes, self.whole) < self.least {
            self.left = true;
            return;
        }
        self.lay(class, name, node.amount, start, depth);
        let mut start = start;
        for (name, node) in node.by_size() {
            self.tree(class, name, node, start, depth + 1);
            start += node.amount.bytes;
        }
    }

    fn lay(&mut self, class: &'static str, name: &str, amount: Amount, start: u64, depth: usize) {
        let Amount { bytes, blocks } = amount;
        let title = format!(
            "{} in {}, {}",
            units::bytes(bytes),
            units::counted(blocks, "block"),
            units::percent(bytes, self.whole)
        );
        self.boxes.push(Box {
            class,
            shade: name
                .bytes()
                .fold(7, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
                % 4,
            name: name.to_owned(),
            title,
            depth,
            x: units::css(start, self.whole),
            y: depth * HEIGHT,
            width: units::css(bytes, self.whole),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn boxes_lie_in_the_boxes_that_called_them() {
        let flame = Flame::of(&sample::report()).expect("something is held");
        let number = |text: &str| text.trim_end_matches('%').parse::<f64>().expect("is a number");
        let span = |one: &Box| (number(&one.x), number(&one.x) + number(&one.width));
        for one in flame.boxes.iter().filter(|one| one.depth > 0) {
            let (start, end) = span(one);
            let around = flame.boxes.iter().filter(|other| other.depth + 1 == one.depth);
            let holds = |other: &Box| span(other).0 <= start + 0.01 && end <= span(other).1 + 0.01;
            assert!(around.clone().any(holds), "{}", one.name);
        }
        let fates: Vec<_> =
            flame.boxes.iter().filter(|one| one.depth == 1).map(|one| &*one.name).collect();
        let expected =
            ["definitely lost", "indirectly lost", "possibly lost", "still reachable", "live"];
        assert_eq!(fates, expected);
        assert!(Flame::of(&Report::default()).is_none());
    }

    #[test]
    fn a_large_graph_is_thinned() {
        use crate::report::model::{Leak, StackId};
        use crate::symbols::{Frame, Function};
        let mut report = sample::report();
        let like: Leak = report.leaks[0].clone();
        report.leaks.clear();
        for at in 0..20_000_u32 {
            let name = Some(format!("f{at}"));
            let function = Function { name, ..Function::default() };
            report.stacks.frames.push(Frame { functions: vec![function], ..Frame::default() });
            let last = report.stacks.frames.len() as u32 - 1;
            report.stacks.stacks.push([last].into());
            let stack = StackId(report.stacks.stacks.len() as u32 - 1);
            let lost = Amount { blocks: 1, bytes: u64::from(at) + 1 };
            report.leaks.push(Leak { stack, lost, ..like.clone() });
        }
        let flame = Flame::of(&report).expect("something is held");
        assert!(flame.boxes.len() <= MOST && flame.left);
    }
}
