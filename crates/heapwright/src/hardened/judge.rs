//! Reports of misuse, one line each, and their consequences.
//!
//! ```text
//!   heapwright: free(0x7f..): <what is wrong>; <what to do>; detect=-canary silences this
//! ```
//!
//! With `on_misuse=report` the process continues and loses at most the block, if its reuse is not
//! safe. Called by the other files of `hardened`, sometimes with the lock of a size class held.

use super::Extent;
use super::settings;
use super::word;
use crate::misuse;
use crate::text::Line;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    DoubleFree,
    /// Bytes behind the block's end were changed.
    Overflow,
    /// The block was changed after its free.
    WriteAfterFree,
    Maker {
        made: u16,
        given: u16,
    },
    Size(usize),
    /// The call names this other alignment.
    Alignment(usize),
}

/// Reports a mistake about a block that `call` found. Returns only if the program continues.
#[cold]
#[inline(never)]
pub(super) fn report(wrong: Wrong, call: &str, address: usize, size: usize) {
    let settings = settings::get();
    let detect = &settings.detect;
    let (wanted, silence) = match wrong {
        Wrong::DoubleFree => (detect.double_free, "double-free"),
        Wrong::Overflow => (detect.canary, "canary"),
        Wrong::WriteAfterFree => (detect.fill, "fill"),
        Wrong::Maker { .. } => (detect.mismatch, "mismatch"),
        Wrong::Size(_) | Wrong::Alignment(_) => (detect.size, "size"),
    };
    if !wanted {
        return;
    }
    let line = Line::new().text(call).text("(").address(address).text("): this ");
    let line = line.number(size).text("-byte block ");
    let line = match wrong {
        Wrong::DoubleFree => line.text("was freed before; free each block once"),
        Wrong::Overflow => {
            line.text("was written past its end; write no more bytes than were asked for")
        }
        Wrong::WriteAfterFree => {
            line.text("was written to after it was freed; do not use a block once it is freed")
        }
        Wrong::Maker { made, given } => line
            .text("was made by ")
            .text(word::maker_name(made))
            .text("; give it back by its own function, not by that of ")
            .text(word::maker_name(given)),
        Wrong::Size(told) => line
            .text("was given back as one of ")
            .number(told)
            .text(" bytes; give it back with the size it was made with"),
        Wrong::Alignment(told) => line
            .text("was given back as one aligned to ")
            .number(told)
            .text(" bytes; give it back with the alignment it was made with"),
    };
    let line = line.text("; detect=-").text(silence).text(" silences this");
    if settings.reports {
        return line.write();
    }
    misuse::end(line)
}

/// Reports a pointer given to `call` that is not a block's start, but lies in block `found` or in
/// none. Returns only if the program continues.
#[cold]
#[inline(never)]
pub(super) fn not_a_block(call: &str, address: usize, found: Option<Extent>) {
    let line = Line::new().text(call).text("(").address(address).text("): the pointer ");
    let line = match found {
        None => line.text("is not in a block"),
        Some(Extent { block, size, is_live }) => line
            .text("is ")
            .number(address - block)
            .text(" bytes into a ")
            .number(size)
            .text(if is_live { "-byte block at " } else { "-byte slot, which is free, at " })
            .address(block),
    };
    let line = line.text("; pass the address malloc returned");
    if settings::get().reports {
        return line.write();
    }
    misuse::end(line)
}
