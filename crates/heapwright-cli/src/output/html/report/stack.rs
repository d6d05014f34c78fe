//! The stacks of a page: lines with names and places, and the source around the one to
//! look at first. All stacks of a page share a budget of lines: behind its end a stack is
//! only counted, so that a page stays one that opens.

use super::Source;
use crate::output::calls::{Call, calls, first_look};
use crate::report::model::{StackId, Stacks};
use askama::Template;
use askama::filters::HtmlSafe;
use std::cell::Cell;
use std::ptr;

/// Lines in all.
const BUDGET: usize = 24_000;
/// Lines of one stack.
const MOST: usize = 64;
/// Letters of a name: those of templates grow without bound.
const LETTERS: usize = 240;

/// A stack.
#[derive(Template)]
#[template(path = "report/stack.html")]
pub(super) struct Stack {
    lines: Vec<Line>,
    left: usize,
    empty: bool,
}

impl HtmlSafe for Stack {}

struct Line {
    number: usize,
    name: String,
    place: String,
    module: String,
    class: &'static str,
    inlined: bool,
    snippet: Vec<Code>,
}

/// A line of a source.
struct Code {
    number: u32,
    text: String,
    marked: bool,
}

/// Makes them.
pub(super) struct Stacker<'a> {
    stacks: &'a Stacks,
    source: &'a Source<'a>,
    budget: Cell<usize>,
}

impl<'a> Stacker<'a> {
    pub(super) fn new(stacks: &'a Stacks, source: &'a Source<'a>) -> Self {
        Self { stacks, source, budget: Cell::new(BUDGET) }
    }

    pub(super) fn stack(&self, id: StackId) -> Stack {
        let first = first_look(self.stacks, id).map(|call| ptr::from_ref(call.frame));
        let first = |call: &Call<'_>| first == Some(ptr::from_ref(call.frame)) && call.is_own();
        let all = calls(self.stacks, id).count();
        let shown = all.min(MOST).min(self.budget.get());
        self.budget.set(self.budget.get() - shown);
        let mut lines: Vec<Line> = calls(self.stacks, id)
            .take(shown)
            .enumerate()
            .map(|(number, call)| Line {
                number,
                name: clipped(call.name()),
                place: clipped(call.place()),
                module: clipped(call.module().unwrap_or_default()),
                class: if call.is_own() { "own" } else { "other" },
                inlined: call.inlined,
                snippet: Vec::new(),
            })
            .collect();
        let mut look = calls(self.stacks, id).take(shown).enumerate();
        if let Some((at, call)) = look.find(|(_, call)| first(call)) {
            lines[at].snippet = self.snippet(&call);
        }
        Stack { empty: all == 0, left: all - shown, lines }
    }

    fn snippet(&self, call: &Call<'_>) -> Vec<Code> {
        let Some((source, line)) = call.line() else { return Vec::new() };
        let lines = (self.source)(source, line).unwrap_or_default();
        let code = |(number, text): (u32, String)| Code {
            number,
            text: clipped(text),
            marked: number == line,
        };
        lines.into_iter().take(9).map(code).collect()
    }
}

/// A text that is not too long.
pub(super) fn clipped(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(LETTERS) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn the_source_stands_at_the_line_to_look_at() {
        let report = sample::report();
        let source = |_: &str, line: u32| Some(vec![(line - 1, "{".into()), (line, "<b>".into())]);
        let stack = Stacker::new(&report.stacks, &source).stack(sample::SESSION);
        let at: Vec<_> = stack.lines.iter().filter(|line| !line.snippet.is_empty()).collect();
        assert_eq!((at.len(), &*at[0].name), (1, "Session::open"));
        let html = stack.to_string();
        assert!(html.contains("&#60;b&#62;") && !html.contains("<b>"), "{html}");
    }

    #[test]
    fn a_page_has_a_budget() {
        let report = sample::report();
        let stacker = Stacker::new(&report.stacks, &|_, _| None);
        stacker.budget.set(7);
        let left = [sample::CACHE, sample::CACHE, sample::CACHE].map(|id| stacker.stack(id).left);
        assert_eq!(left, [0, 5, 6]);
        assert!(stacker.stack(StackId::NONE).empty);
    }

    #[test]
    fn long_names_are_clipped() {
        assert_eq!(clipped("é".repeat(1000)).chars().count(), LETTERS + 1);
        assert_eq!(clipped("short".into()), "short");
    }
}
