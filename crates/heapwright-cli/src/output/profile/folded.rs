//! Folded stacks, one on each line: the data of flame graphs.
//!
//! ```text
//! definitely-lost;main;Server::serve;Session::open;malloc 1214880
//! `- the fate     `- outermost first, inlined functions too    `- live bytes
//! ```
//!
//! `held` defines which memory counts. The fate takes the place of the outermost function, so that
//! a picture separates lost memory from memory in use. Equal lines are merged and lines are sorted,
//! so equal reports give equal files.
//!
//! In a name a `;` becomes `:`; white space, control characters and characters that XML cannot
//! contain become a space. A `_` joins a number at the end to the word before: readers would take
//! the number for a count.

use crate::report::calls::calls;
use crate::report::held::held;
use crate::report::model::Report;
use std::collections::BTreeMap;
use std::io;

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for line in lines(report) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Returns the lines without their ends.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for held in held(report).iter().filter(|held| held.amount.bytes != 0) {
        let mut frames = vec![held.fate.word().to_owned()];
        frames.extend(calls(&report.stacks, held.stack).rev().map(|call| frame(&call.name())));
        if frames.len() == 1 {
            frames.push("(no stack was kept)".to_owned());
        }
        *sums.entry(frames.join(";")).or_default() += held.amount.bytes;
    }
    sums.into_iter().map(|(stack, bytes)| format!("{stack} {bytes}")).collect()
}

fn frame(name: &str) -> String {
    let is_bad = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    let clean = name.replace(is_bad, " ").replace(';', ":");
    let words: Vec<&str> = clean.split_whitespace().collect();
    match words.split_last() {
        None => "?".to_owned(),
        Some((last, rest))
            if !rest.is_empty() && last.starts_with(|c: char| c.is_ascii_digit() || c == '.') =>
        {
            format!("{}_{last}", rest.join(" "))
        }
        Some(_) => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_place() {
        for (name, expected) in [
            ("f(a; b)", "f(a: b)"),
            ("a\nb\tc\u{85}d", "a b c d"),
            ("operator new 12", "operator new_12"),
            ("12", "12"),
            ("", "?"),
            (" ; ", ":"),
        ] {
            assert_eq!(frame(name), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_one_frame(name in "\\PC*|.*|[a-z ;0-9\\n\\t.]*") {
            let frame = frame(&name);
            assert!(!frame.is_empty() && !frame.contains([';', '\n', '\r', '\t']));
            let (stack, bytes) = (format!("main;{frame}"), 7);
            let line = format!("{stack} {bytes}");
            let (before, count) = line.rsplit_once(' ').expect("one");
            assert_eq!((before, count), (&*stack, "7"));
            // Readers would take digits here for a second count.
            let second = before.rsplit_once(' ').map_or("", |(_, word)| word);
            let is_count = |letter: char| letter.is_ascii_digit() || letter == '.';
            assert!(second.parse::<f64>().is_err() || !second.chars().all(is_count), "{line}");
        }
    }
}
