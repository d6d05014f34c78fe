//! What a debug record is told from: the record, and its stacks with names.

use crate::record::Record;
use crate::symbols::Frame;
use heapwright_record::debug::{Finding, Moment, Role, Text, Words};
use std::fmt::Write;

/// A whole record.
pub(crate) struct Mistakes<'a> {
    pub(crate) record: Record<'a>,
    /// Its findings.
    pub(crate) findings: Vec<Mistake>,
}

/// A finding.
pub(crate) struct Mistake {
    pub(crate) finding: Finding,
    /// Those of its moments of which something is known.
    pub(crate) moments: Vec<Happened>,
}

/// A moment, and its stack.
pub(crate) struct Happened {
    pub(crate) role: Role,
    pub(crate) moment: Moment,
    /// Innermost first; none where no stack was kept.
    pub(crate) frames: Vec<Frame>,
    /// There were more.
    pub(crate) cut: bool,
}

impl Mistake {
    /// What happened, in one sentence.
    pub(super) fn sentence(&self) -> String {
        let mut line = Line::default();
        self.finding.sentence(&mut line);
        line.0
    }

    /// What stands above a stack.
    pub(super) fn title(&self, role: Role, name: &str) -> String {
        let mut line = Line::default();
        self.finding.title(role, name, &mut line);
        line.0
    }
}

impl Mistakes<'_> {
    /// The name of a thread, or nothing.
    pub(super) fn thread(&self, number: u32) -> String {
        let thread = self.record.threads.get(&number);
        thread.map(|thread| printable(thread.name)).unwrap_or_default()
    }

    /// The words of the command line.
    pub(super) fn command(&self) -> Vec<String> {
        let Some(process) = &self.record.process else { return Vec::new() };
        let command = process.command;
        let words = command.bytes.strip_suffix(b"\0").unwrap_or(command.bytes);
        if words.is_empty() {
            return Vec::new();
        }
        words.split(|&byte| byte == 0).map(|word| printable(word.into())).collect()
    }
}

/// Bytes of a record for a screen: what would move the cursor is spelt out.
pub(super) fn printable(text: Text<'_>) -> String {
    let mut out = String::new();
    for letter in String::from_utf8_lossy(text.bytes).chars() {
        if letter.is_control() {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    if text.cut {
        out.push_str("...");
    }
    out
}

/// `abcdef01`.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Default)]
struct Line(String);

impl Words for Line {
    fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }
    fn number(&mut self, number: u64) {
        let _ = write!(self.0, "{number}");
    }
    fn address(&mut self, address: u64) {
        let _ = write!(self.0, "{address:#x}");
    }
}
