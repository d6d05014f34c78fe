//! Describes the differences between two runs: their ends, output, files and findings.

use crate::output;
use crate::process::{self, End};
use crate::report::model::{Report, StackId};
use heapwright_record::debug::Role;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The bytes shown of a line, and how many of these precede the first difference.
const SHOWN: u64 = 48;
const BEFORE: u64 = 24;

const PIECE: u64 = 1 << 16;

pub(super) struct Run {
    pub(super) end: End,
    pub(super) was_late: bool,
    /// The run's outputs and compared files: the name of each, and a copy of its bytes.
    pub(super) streams: Vec<(String, PathBuf)>,
    /// The run's findings: a key that is the same in each run, and a description.
    pub(super) found: BTreeMap<String, String>,
}

/// Returns a short description of each difference. The value of `one` precedes that of `other`.
pub(super) fn differences(one: &Run, other: &Run) -> io::Result<Vec<String>> {
    let mut parts = Vec::new();
    if ended(one) != ended(other) {
        parts.push(format!("it {} or {}", ended(one), ended(other)));
    }
    for ((name, path), (_, other_path)) in one.streams.iter().zip(&other.streams) {
        if let Some(difference) = first_difference(path, other_path)? {
            parts.push(format!("{name} differs in {difference}"));
        }
    }
    let found_there = other.found.iter().filter(|(key, _)| !one.found.contains_key(*key));
    let not_there = one.found.iter().filter(|(key, _)| !other.found.contains_key(*key));
    if let Some((_, words)) = found_there.chain(not_there).next() {
        parts.push(format!("one of the two has {words}"));
    }
    Ok(parts)
}

fn ended(run: &Run) -> String {
    match run.end {
        _ if run.was_late => "does not end".to_owned(),
        End::Signal { number: libc::SIGXCPU, .. } => "computes without end".to_owned(),
        End::Code(code) => format!("exits with code {code}"),
        End::Signal { number, .. } => format!("is ended by {}", process::signal_name(number)),
    }
}

/// Describes the first byte that differs: `line 3, byte 17: "len 4" or "len 9"`.
fn first_difference(one: &Path, other: &Path) -> io::Result<Option<String>> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let Some((at, line, begin)) = first_byte(&mut one, &mut other)? else { return Ok(None) };
    let from = begin.max(at.saturating_sub(BEFORE));
    let (one, other) = (shown(&mut one, from, at)?, shown(&mut other, from, at)?);
    Ok(Some(format!("line {line}, byte {at}: {one} or {other}")))
}

/// Returns the offset of the first byte that differs, its line (from 1), and that line's offset.
fn first_byte(one: &mut File, other: &mut File) -> io::Result<Option<(u64, u64, u64)>> {
    let (mut mine, mut its) = (Vec::new(), Vec::new());
    let (mut at, mut line, mut begin) = (0, 1, 0);
    loop {
        mine.clear();
        its.clear();
        one.by_ref().take(PIECE).read_to_end(&mut mine)?;
        other.by_ref().take(PIECE).read_to_end(&mut its)?;
        let same = if mine == its {
            mine.len()
        } else {
            mine.iter().zip(&its).take_while(|(byte, other)| byte == other).count()
        };
        let ends = mine[..same].iter().zip(at..).filter(|(byte, _)| **byte == b'\n');
        for (_, end) in ends {
            (line, begin) = (line + 1, end + 1);
        }
        at += same as u64;
        if mine != its {
            return Ok(Some((at, line, begin)));
        }
        if mine.is_empty() {
            return Ok(None);
        }
    }
}

/// Quotes the line's bytes from offset `from`. The byte at `at` differs.
fn shown(file: &mut File, from: u64, at: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes)?;
    let differs = usize::try_from(at - from).unwrap_or(usize::MAX);
    if bytes.len() <= differs {
        return Ok("nothing more".to_owned());
    }
    // The byte that differs may itself be the line's end.
    let end = bytes.iter().skip(differs).position(|&byte| byte == b'\n');
    let is_cut = end.is_none() && bytes.len() as u64 == SHOWN;
    bytes.truncate(end.map_or(bytes.len(), |end| differs + end));
    let mut text = String::from("\"");
    for letter in bytes.escape_ascii() {
        text.push(char::from(letter));
    }
    let _ = write!(text, "\"{}", if is_cut { "..." } else { "" });
    Ok(text.replace("\\'", "'"))
}

/// Returns the findings, by their keys. If other stacks identify a fault, its key omits the stack
/// that noticed it, which may depend on chance.
pub(super) fn found(report: &Report) -> BTreeMap<String, String> {
    let stack_key = |stack: StackId| {
        let places = report.stacks.frames(stack).map(|frame| match &frame.place {
            Some(place) => format!("{}+{:x}", String::from_utf8_lossy(&place.path), place.offset),
            None => String::new(),
        });
        places.collect::<Vec<_>>().join(" ")
    };
    let all = report.errors.iter().map(|error| {
        let about = error
            .moments
            .iter()
            .filter(|happened| happened.role != Role::Here || error.moments.len() == 1);
        let stacks: Vec<String> = about.map(|happened| stack_key(happened.stack)).collect();
        let kind = error.finding.kind.heading();
        let place = report.stacks.frames(output::fault_stack(error)).flat_map(output::frame).next();
        let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
        let said = format!("{kind} ({}{place})", output::sentence(&error.finding));
        (format!("{kind} {}", stacks.join(" | ")), said)
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(one: &str, other: &str) -> Option<String> {
        let folder = crate::statistics::Folder::quietly().expect("made");
        let paths = ["one", "other"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], one).expect("written");
        std::fs::write(&paths[1], other).expect("written");
        first_difference(&paths[0], &paths[1]).expect("read")
    }

    #[test]
    fn the_first_difference_is_told_with_its_line() {
        for (one, other, words) in [
            ("a\nb\nlen 4\n", "a\nb\nlen 9\nmore", "line 3, byte 8: \"len 4\" or \"len 9\""),
            ("a\n", "a\nb", "line 2, byte 2: nothing more or \"b\""),
            ("", "x", "line 1, byte 0: nothing more or \"x\""),
            ("ab\nc", "abc", "line 1, byte 2: \"ab\" or \"abc\""),
            ("\x1b\"'", "z", "line 1, byte 0: \"\\x1b\\\"'\" or \"z\""),
        ] {
            assert_eq!(difference(one, other).as_deref(), Some(words));
        }
        let long = "x".repeat(1000);
        let (one, other) = (format!("{long}1{long}"), format!("{long}2{long}"));
        let said = difference(&one, &other).expect("they differ");
        let (before, behind) = ("x".repeat(24), "x".repeat(23));
        assert_eq!(
            said,
            format!("line 1, byte 1000: \"{before}1{behind}\"... or \"{before}2{behind}\"...")
        );
        assert_eq!(difference("same\n", "same\n"), None);
        let pages = "0123456789abcde\n".repeat(10_000);
        assert_eq!(difference(&pages, &pages), None);
        let said = difference(&format!("{pages}a"), &format!("{pages}b"));
        assert_eq!(said.as_deref(), Some("line 10001, byte 160000: \"a\" or \"b\""));
    }

    #[test]
    fn ends_and_findings_are_compared() {
        let run = |end, found: &[&str]| Run {
            end,
            was_late: false,
            streams: Vec::new(),
            found: found.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect(),
        };
        let crash = End::Signal { number: libc::SIGSEGV, core_dumped: false };
        let well = run(End::Code(0), &["a"]);
        let said = differences(&well, &run(crash, &["a"])).expect("compared");
        assert_eq!(said, ["it exits with code 0 or is ended by SIGSEGV"]);
        let said = differences(&well, &run(End::Code(0), &["a", "b"])).expect("compared");
        assert_eq!(said, ["one of the two has b"]);
        assert!(differences(&well, &run(End::Code(0), &["a"])).expect("compared").is_empty());
    }
}
