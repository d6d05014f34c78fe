//! The stacks of a page: lines with names and places, and the source around the line to look at
//! first. The stacks share a budget of lines, so that browsers can open the page.

use crate::report::calls::{Call, calls};
use crate::report::model::{Report, StackId};
use askama::Template;
use askama::filters::HtmlSafe;
use std::cell::Cell;

const BUDGET: usize = 16_000;
const MOST: usize = 64;
/// The most letters of a name, because names of templates have no limit.
const LETTERS: usize = 240;

#[derive(Template)]
#[template(path = "stack.html")]
pub(crate) struct Stack {
    lines: Vec<Line>,
    left: usize,
    empty: bool,
    cut: bool,
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

struct Code {
    number: u32,
    text: String,
    marked: bool,
}

pub(super) struct Stacker<'a> {
    report: &'a Report,
    budget: Cell<usize>,
}

impl<'a> Stacker<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        Self { report, budget: Cell::new(BUDGET) }
    }

    pub(super) fn stack(&self, id: StackId) -> Stack {
        let all = calls(&self.report.stacks, id).count();
        let shown = all.min(MOST).min(self.budget.get());
        self.budget.set(self.budget.get() - shown);
        let mut lines: Vec<Line> = calls(&self.report.stacks, id)
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
        // Shows the source at the program's first call that has any, else at any call's.
        let snippets = || {
            let shown = calls(&self.report.stacks, id).take(shown).enumerate();
            shown.map(|(at, call)| (at, call.is_own(), self.snippet(&call)))
        };
        let is_there = |(_, _, snippet): &(usize, bool, Vec<Code>)| !snippet.is_empty();
        let own = snippets().find(|found| found.1 && is_there(found));
        if let Some((at, _, snippet)) = own.or_else(|| snippets().find(is_there)) {
            lines[at].snippet = snippet;
        }
        let cut = self.report.cut.contains(&id);
        Stack { empty: all == 0, cut, left: all - shown, lines }
    }

    fn snippet(&self, call: &Call<'_>) -> Vec<Code> {
        let Some((source, line)) = call.line() else { return Vec::new() };
        let lines = self.report.sources.get(&(source.to_owned(), line));
        let code = |(number, text): &(u32, String)| Code {
            number: *number,
            text: clipped(text.clone()),
            marked: *number == line,
        };
        lines.into_iter().flatten().take(9).map(code).collect()
    }
}

/// Cuts a text to [`LETTERS`] letters.
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
    use crate::report::sample;

    #[test]
    fn a_page_has_a_budget() {
        let report = sample::report();
        let stacker = Stacker::new(&report);
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
