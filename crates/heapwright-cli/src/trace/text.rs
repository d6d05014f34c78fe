//! Traces as lines of text, in the format of memory_replay of the Android Open Source Project:
//!
//! ```text
//! <thread>: malloc <ptr> <size>
//! <thread>: calloc <ptr> <count> <size>
//! <thread>: realloc <new> <old, 0x0 for none> <size>
//! <thread>: memalign <ptr> <alignment> <size>
//! <thread>: free <ptr, 0x0 for null>
//! <thread>: thread_done 0x0
//! ```
//!
//! Newer traces have two times at the end of each line, which are ignored. Numbers may be
//! hexadecimal, with `0x`.

use super::names::{Ask, Builder, TooMany};
use super::story::Story;
use crate::output::printable_text;

/// An error in a line, and the line's number from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) why: String,
}

pub(super) fn looks_so(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = first.take(100).find(|line| !line.is_empty()).unwrap_or_default();
    let digits = first.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && first.get(digits) == Some(&b':')
}

/// Returns the story. Leaves out a last line that was cut.
pub(super) fn story(bytes: &[u8]) -> Result<Story, Wrong> {
    let mut builder = Builder::default();
    let mut whole = true;
    let mut lines = bytes.split(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if let Err(why) = apply(&mut builder, line) {
            if lines.peek().is_none() {
                whole = false;
                break;
            }
            return Err(Wrong { line: at + 1, why });
        }
    }
    let mut story = builder.story();
    story.whole = whole;
    Ok(story)
}

fn apply(builder: &mut Builder, line: &[u8]) -> Result<(), String> {
    let line = str::from_utf8(line).map_err(|_| "is no text".to_owned())?;
    let (thread, rest) = line.split_once(':').ok_or("has no colon behind a thread")?;
    let thread =
        number(thread).map_err(|_| format!("'{}' is no thread's number", shown(thread)))?;
    let mut words = rest.split_ascii_whitespace();
    let action = words.next().ok_or("has no action")?;
    let mut next = |what: &str| {
        let word = words.next().ok_or_else(|| format!("{action} has no {what}"))?;
        number(word).map_err(|()| format!("{what} '{}' of {action} is no number", shown(word)))
    };
    let applied = match action {
        "malloc" => {
            let (block, size) = (next("pointer")?, next("size")?);
            made(builder, thread, block, size, Ask::Malloc)
        }
        "calloc" => {
            let (block, count, each) = (next("pointer")?, next("count")?, next("size")?);
            let size = count.checked_mul(each);
            let size = size.ok_or_else(|| format!("{count} times {each} bytes are too many"))?;
            made(builder, thread, block, size, Ask::Calloc)
        }
        "memalign" => {
            let (block, align, size) = (next("pointer")?, next("alignment")?, next("size")?);
            if !align.is_power_of_two() {
                return Err(format!("alignment {align} is no power of two"));
            }
            let log2 = align.trailing_zeros() as u8;
            made(builder, thread, block, size, Ask::Aligned { log2, zero: false })
        }
        "realloc" => {
            let (new, old, size) = (next("new pointer")?, next("old pointer")?, next("size")?);
            realloc(builder, thread, new, old, size)
        }
        "free" => match next("pointer")? {
            0 => Ok(()),
            block => builder.freed(thread, block),
        },
        "thread_done" => builder.thread_ends(thread),
        other => {
            return Err(format!(
                "'{}' is no action; there are malloc, calloc, realloc, memalign, free and \
                 thread_done",
                shown(other)
            ));
        }
    };
    applied.map_err(|TooMany| "has a block more than can be distinguished".to_owned())
}

fn made(
    builder: &mut Builder,
    thread: u64,
    block: u64,
    size: u64,
    ask: Ask,
) -> Result<(), TooMany> {
    if block == 0 { Ok(()) } else { builder.made(thread, block, size, ask) }
}

fn realloc(
    builder: &mut Builder,
    thread: u64,
    new: u64,
    old: u64,
    size: u64,
) -> Result<(), TooMany> {
    match (new, old) {
        (0, 0) => Ok(()),
        // A size of 0 frees. Without memory the old block stays.
        (0, old) if size == 0 => builder.freed(thread, old),
        (0, _) => Ok(()),
        (new, 0) => builder.made(thread, new, size, Ask::Malloc),
        (new, old) => {
            builder.realloc_begins(thread, old);
            builder.realloc_ends(thread, new, size)
        }
    }
}

fn number(word: &str) -> Result<u64, ()> {
    let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).map_err(drop),
        None if !word.starts_with('+') => word.parse().map_err(drop),
        _ => Err(()),
    }
}

fn shown(word: &str) -> String {
    printable_text(&word.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Event, What};

    fn wrong(text: &str) -> (usize, String) {
        let wrong = story(text.as_bytes()).expect_err("is wrong");
        (wrong.line, wrong.why)
    }

    #[test]
    fn every_action_is_read() {
        let text = "\
            7: malloc 0x10 100\n\
            7: calloc 0x20 4 25\n\n\
            8: memalign 0x40 0x40 12 1000 2000\r\n\
            8: realloc 0x30 0x10 200\n\
            8: realloc 0x50 0x0 1\n\
            7: realloc 0x0 0x20 0\n\
            7: free 0x0\n\
            7: free 0x30\n\
            7: malloc 0x30 5\n\
            7: thread_done 0x0\n";
        let story = story(text.as_bytes()).expect("is right");
        let of = |thread, what| Event { thread, what };
        assert_eq!(
            story.events,
            [
                of(0, What::Malloc { block: 0, size: 100 }),
                of(0, What::Calloc { block: 1, size: 100 }),
                of(1, What::Aligned { block: 2, size: 12, log2: 6, zero: false }),
                of(1, What::Realloc { block: 0, size: 200 }),
                of(1, What::Malloc { block: 3, size: 1 }),
                of(0, What::Free { block: 1 }),
                of(0, What::Free { block: 0 }),
                of(0, What::Malloc { block: 4, size: 5 }),
                of(0, What::ThreadEnd),
            ]
        );
        assert_eq!((story.threads, story.blocks, story.unknown, story.whole), (2, 5, 0, true));
    }

    #[test]
    fn what_failed_is_left_out_and_unknown_frees_are_counted() {
        let text = "1: malloc 0x0 5\n1: realloc 0x0 0x0 5\n1: free 0x10\n1: realloc 0x20 0x30 9\n";
        let story = story(text.as_bytes()).expect("is right");
        assert_eq!(story.unknown, 2);
        assert_eq!(story.events, [Event { thread: 0, what: What::Malloc { block: 0, size: 9 } }]);
    }

    #[test]
    fn wrong_lines_are_named() {
        let good = "1: malloc 0x10 1\n";
        for (line, why) in [
            ("hello", "has no colon behind a thread"),
            ("x: free 0x10", "'x' is no thread's number"),
            ("1:", "has no action"),
            (
                "1: mallok 0x10 5",
                "'mallok' is no action; there are malloc, calloc, realloc, memalign, free and \
                 thread_done",
            ),
            ("1: malloc 0x10", "malloc has no size"),
            ("1: malloc pointer 5", "pointer 'pointer' of malloc is no number"),
            ("1: malloc 0x10 -5", "size '-5' of malloc is no number"),
            ("1: malloc 0x10 +5", "size '+5' of malloc is no number"),
            (
                "1: malloc 0x10 99999999999999999999",
                "size '99999999999999999999' of malloc is no number",
            ),
            ("1: memalign 0x10 3 5", "alignment 3 is no power of two"),
            (
                "1: calloc 0x10 0xffffffffffffffff 2",
                "18446744073709551615 times 2 bytes are too many",
            ),
            (
                "1: fr\x07ee 0x10",
                "'fr\\u{7}ee' is no action; there are malloc, calloc, realloc, memalign, free and thread_done",
            ),
        ] {
            assert_eq!(wrong(&format!("{good}{line}\n{good}")), (2, why.to_owned()), "{line}");
        }
        assert_eq!(story(b"1: malloc 0x10 1\n\xff\xfe\n").expect_err("is wrong").why, "is no text");
    }

    #[test]
    fn a_last_line_that_is_cut_is_left_out() {
        let story = story(b"1: malloc 0x10 1\n1: mal").expect("is right");
        assert_eq!((story.events.len(), story.whole), (1, false));
        assert_eq!(wrong("1: malloc 0x10 1\n1: mal\n").0, 2);
    }

    #[test]
    fn traces_look_so() {
        assert!(looks_so(b"\n  12: free 0x0\n"));
        for other in [&b""[..], b"{\"a\": 1}", b":", b"12 free", b"\x7fELF"] {
            assert!(!looks_so(other), "{other:?}");
        }
    }
}
