//! A profile for pprof, and every tool that reads its files: profile.proto (`perftools.profiles`)
//! in gzip, as heap profilers write it.
//!
//! ```text
//! Profile   1 sample_type  2 sample   3 mapping  4 location  5 function
//!           6 string_table 9 time     10 length  11 period type  12 period
//!           13 comment  14 default type
//! Sample    1 locations, innermost first   2 values: blocks, bytes   3 labels
//! Mapping   1 id  2 start  3 limit  4 offset  5 file  6 build-id  7.. what it has
//! Location  1 id  2 mapping  3 address  4 lines, innermost function first
//! Line      1 function  2 line              Function  1 id  2 name  4 file
//! ```
//!
//! Sample types are `inuse_objects/count` and `inuse_space/bytes`. A heap profile has
//! `alloc_objects/count` and `alloc_space/bytes` before them, as in Go, and the mean distance of
//! samples as the period. For the peak, temporary blocks and growth, that word replaces `inuse`, as
//! in `peak_space`. Every sample has the labels `reach` (the fate of the blocks) and `pid`.
//!
//! The profile's addresses are not a process's. Files follow each other in order of appearance,
//! each at a round address, and a place is its file's start plus its offset. So profiles of two
//! runs are comparable, wherever the kernel put the libraries. A place in no file keeps its
//! address. The place of a call is the byte before the return address, as usual in pprof. The
//! program's own file is the first: pprof takes its name for the profile. Functions have no
//! `system_name`: pprof then keeps templates and arguments.

use super::Numbered;
use super::proto::Message;
use crate::output::sentences;
use crate::output::words::hex;
use crate::report::calls::{Call, of_frame};
use crate::report::held::held;
use crate::report::model::{Amount, Figure, Report};
use crate::symbols::{Frame, Place};
use flate2::{Compression, GzBuilder};
use std::collections::HashMap;
use std::io::{self, Write};

/// Equal reports give equal files.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    gzip.write_all(&profile(report))?;
    gzip.finish().map(drop)
}

fn profile(report: &Report) -> Vec<u8> {
    let mut tables = Tables::default();
    tables.text("");
    let held = held(report);
    let places = held.iter().flat_map(|held| report.stacks.frames(held.stack));
    let is_program =
        |place: &&Place| report.first().is_some_and(|first| place.path == first.exe.as_bytes());
    let mut places = places.filter_map(|frame| frame.place.as_ref());
    if let Some(program) = places.find(is_program) {
        tables.file(program);
    }
    // Locations come before mappings: they determine the sizes of files.
    let places: Vec<Vec<u64>> = held
        .iter()
        .map(|held| report.stacks.frames(held.stack).map(|frame| tables.location(frame)).collect())
        .collect();
    let mut out = Message::default();
    let has_allocated = held.iter().any(|held| held.allocated != Amount::default());
    let allocated = [("alloc_objects", "count"), ("alloc_space", "bytes")];
    let (objects, space) = match report.wanted.figure {
        Figure::Peak if has_allocated => ("peak_objects", "peak_space"),
        Figure::Temporary if has_allocated => ("temporary_objects", "temporary_space"),
        Figure::Growth if has_allocated => ("growth_objects", "growth_space"),
        _ => ("inuse_objects", "inuse_space"),
    };
    let in_use = [(objects, "count"), (space, "bytes")];
    let kinds = allocated.iter().filter(|_| has_allocated).chain(&in_use);
    for (kind, unit) in kinds {
        out.message(1, &tables.value_type(kind, unit));
    }
    for (held, places) in held.iter().zip(places) {
        let mut sample = Message::default();
        sample.numbers(1, places);
        let allocated = [held.allocated.blocks, held.allocated.bytes];
        let in_use = [held.amount.blocks, held.amount.bytes];
        sample.numbers(2, allocated.into_iter().filter(|_| has_allocated).chain(in_use));
        let pid = report.processes.get(held.process).map_or(0, |process| process.pid);
        let [reach, word, of] = ["reach", held.fate.word(), "pid"].map(|text| tables.text(text));
        sample.message(3, &Message::of(&[(1, reach), (2, word)]));
        sample.message(3, &Message::of(&[(1, of), (3, pid.into())]));
        out.message(2, &sample);
    }
    tables.mappings(&mut out);
    tables.locations(&mut out);
    if let Some(first) = report.first() {
        out.number(9, first.began);
        let last = first.checks.last().map_or(0, |check| check.ns);
        out.number(10, last);
        let comment = tables.text(&sentences::command(first));
        out.numbers(13, [comment]);
    }
    let default = tables.text(space);
    out.number(14, default);
    if let Some(profile) = report.checks().find_map(|check| check.profile.as_ref()) {
        out.message(11, &tables.value_type("space", "bytes"));
        out.number(12, profile.period);
    }
    for text in &tables.texts.all {
        out.bytes(6, text.as_bytes());
    }
    out.finish()
}

/// The objects of a profile, numbered from 1; text 0 is empty.
#[derive(Default)]
struct Tables<'a> {
    texts: Numbered<String>,
    files: Vec<File<'a>>,
    file_numbers: HashMap<(&'a [u8], &'a [u8]), usize>,
    frames: Vec<&'a Frame>,
    frame_numbers: HashMap<*const Frame, u64>,
}

struct File<'a> {
    place: &'a Place,
    /// The offset behind the last known place.
    end: u64,
    /// Whether places have names, lines, or inlined functions.
    names: bool,
    lines: bool,
    inlined: bool,
}

impl<'a> Tables<'a> {
    fn text(&mut self, text: &str) -> u64 {
        self.texts.number(text.to_owned()) as u64
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        Message::of(&[(1, self.text(kind)), (2, self.text(unit))])
    }

    /// Returns a frame's number. A report has each frame once, so its address in memory is its key.
    fn location(&mut self, frame: &'a Frame) -> u64 {
        if let Some(place) = &frame.place {
            let file = self.file(place);
            let file = &mut self.files[file];
            file.end = place.offset.saturating_add(1).max(file.end);
            file.names |= frame.functions.iter().any(|function| function.name.is_some());
            file.lines |= frame.functions.iter().any(|function| function.line.is_some());
            file.inlined |= frame.functions.len() > 1;
        }
        let next = self.frames.len() as u64 + 1;
        let number = *self.frame_numbers.entry(frame).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        number
    }

    fn file(&mut self, place: &'a Place) -> usize {
        let next = self.files.len();
        let key = (&*place.path, &*place.build_id);
        let file = *self.file_numbers.entry(key).or_insert(next);
        if file == next {
            self.files.push(File { place, end: 0, names: false, lines: false, inlined: false });
        }
        file
    }

    fn mappings(&mut self, out: &mut Message) {
        let files = std::mem::take(&mut self.files);
        for ((number, start), file) in (1..).zip(starts(&files)).zip(&files) {
            let path = self.text(&String::from_utf8_lossy(&file.place.path));
            let build_id = self.text(&hex(&file.place.build_id));
            let (names, lines) = (file.names.into(), file.lines.into());
            let known = [(7, names), (8, lines), (9, lines), (10, file.inlined.into())];
            let range = [(1, number), (2, start), (3, start.saturating_add(file.end))];
            let named = [(5, path), (6, build_id)];
            let mapping = Message::of(&[&range[..], &named, &known].concat());
            out.message(3, &mapping);
        }
        self.files = files;
    }

    fn locations(&mut self, out: &mut Message) {
        let starts = starts(&self.files);
        let mut functions = Numbered::default();
        for (number, frame) in (1..).zip(self.frames.clone()) {
            let mut location = Message::default();
            location.number(1, number);
            let file = frame.place.as_ref().map(|place| (self.file(place), place.offset));
            let address = match file {
                Some((file, offset)) => {
                    location.number(2, file as u64 + 1);
                    starts[file].saturating_add(offset.saturating_sub(1))
                }
                None => frame.address.saturating_sub(1),
            };
            location.number(3, address);
            let known =
                |call: &Call<'_>| call.function.is_some_and(|function| function.name.is_some());
            for call in of_frame(frame).filter(known) {
                let name = self.text(&call.name());
                let source = self.text(call.source().unwrap_or_default());
                let function = functions.number((name, source)) as u64 + 1;
                let line = call.line().map_or(0, |(_, line)| line.into());
                location.message(4, &Message::of(&[(1, function), (2, line)]));
            }
            out.message(4, &location);
        }
        for (number, (name, source)) in (1..).zip(functions.all) {
            out.message(5, &Message::of(&[(1, number), (2, name), (4, source)]));
        }
    }
}

fn starts(files: &[File<'_>]) -> Vec<u64> {
    const ROUND: u64 = 1 << 32;
    let mut next = ROUND;
    let start = |file: &File<'_>| {
        let start = next;
        next = next.saturating_add(file.end.div_ceil(ROUND).saturating_mul(ROUND));
        start
    };
    files.iter().map(start).collect()
}

/// Lists a file's fields, a message a line: texts quoted, messages braced, numbers bracketed.
#[cfg(test)]
pub(in crate::output) fn fields(file: &[u8]) -> String {
    use super::proto::read::{Value, fields, packed};
    fn message(bytes: &[u8], within: &[u64]) -> String {
        let field = |(number, value): (u64, Value)| match (value, within, number) {
            (Value::Number(value), ..) => format!("{number}: {value}"),
            (Value::Bytes(text), [], 6) => format!("6: {:?}", String::from_utf8_lossy(&text)),
            (Value::Bytes(list), [2], 1 | 2) | (Value::Bytes(list), [], 13) => {
                format!("{number}: {:?}", packed(&list))
            }
            (Value::Bytes(inner), ..) => {
                format!("{number}: {{{}}}", message(&inner, &[within, &[number]].concat()))
            }
        };
        let all: Vec<String> = fields(bytes).into_iter().map(field).collect();
        all.join(if within.is_empty() { "\n" } else { ", " })
    }
    let mut out = Vec::new();
    io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut out).expect("is gzip");
    message(&out, &[]) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use std::process;

    /// If Go is installed, its pprof must understand the file.
    #[test]
    fn pprof_reads_it() {
        let folder = crate::statistics::Folder::quietly().expect("is made");
        let file = folder.path().join("held.pb.gz");
        let mut out = std::fs::File::create(&file).expect("is made");
        write(&sample::report(), &mut out).expect("is written");
        let run = process::Command::new("go")
            .args(["tool", "pprof", "-top", "-cum", "-symbolize=none"])
            .arg(&file)
            .env("PPROF_TMPDIR", folder.path())
            .output();
        let Ok(run) = run else { return eprintln!("skipped: there is no go") };
        let (text, errors) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        if !run.status.success() && errors.starts_with("go:") {
            return eprintln!("skipped: this go has no pprof");
        }
        assert!(run.status.success(), "{errors}");
        assert!(text.contains("Session::open") && text.contains("Type: inuse_space"), "{text}");
    }
}
