//! The file for valgrind's `dh_view.html`: DHAT's JSON, version 2.
//!
//! ```text
//! bklt, bkacc   false: lifetimes and accesses of blocks are not known
//! verb          the word for the state of blocks
//! tu, Mtu, te   the unit of time, a million of it, and the end
//! pps           tb bytes, tbk blocks, fs the stack: indexes into ftbl, innermost first
//! ftbl          frames as text; the first one is "[root]"
//! ```
//!
//! The innermost frame of each stack is the fate of its blocks, as in `[definitely-lost]`: the
//! viewer's tree begins there.

use crate::output::json::write_compact;
use crate::output::sentences;
use crate::report::calls::calls;
use crate::report::held::held;
use crate::report::model::{Amount, Process, Report};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io;

#[derive(Serialize)]
struct Object {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    mode: &'static str,
    verb: &'static str,
    bklt: bool,
    bkacc: bool,
    bu: &'static str,
    bsu: &'static str,
    bksu: &'static str,
    tu: &'static str,
    #[serde(rename = "Mtu")]
    mtu: &'static str,
    tuth: u64,
    cmd: String,
    pid: u32,
    te: u64,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

/// A "program point".
#[derive(Serialize)]
struct Point {
    tb: u64,
    tbk: u64,
    fs: Vec<usize>,
}

/// Writes the held memory in DHAT's format.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = vec!["[root]".to_owned()];
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut number = |text: String| {
        *numbers.entry(text).or_insert_with_key(|text| {
            table.push(text.clone());
            table.len() - 1
        })
    };
    // Two stacks may have the same text; the viewer needs each text once.
    let mut points: BTreeMap<Vec<usize>, Amount> = BTreeMap::new();
    for held in held(report) {
        let mut frames = vec![number(format!("[{}]", held.fate.word()))];
        for call in calls(&report.stacks, held.stack) {
            let place = match call.place() {
                place if !place.is_empty() => place,
                _ => call.module().map(|name| format!("in {name}")).unwrap_or_default(),
            };
            let place = if place.is_empty() { place } else { format!(" ({place})") };
            frames.push(number(format!("{:#x}: {}{place}", call.frame.address, call.name())));
        }
        let sum = points.entry(frames).or_default();
        sum.bytes += held.amount.bytes;
        sum.blocks += held.amount.blocks;
    }
    let point = |(fs, amount): (_, Amount)| Point { tb: amount.bytes, tbk: amount.blocks, fs };
    let object = Object {
        version: 2,
        mode: "heapwright-held",
        verb: "Held",
        bklt: false,
        bkacc: false,
        bu: "byte",
        bsu: "bytes",
        bksu: "blocks",
        tu: "µs",
        mtu: "s",
        tuth: 0,
        cmd: report.first().map(sentences::command).unwrap_or_default(),
        pid: report.first().map_or(0, |process| process.pid),
        te: report.processes.iter().map(Process::lasted).max().unwrap_or(0) / 1000,
        pps: points.into_iter().map(point).collect(),
        ftbl: table,
    };
    write_compact(out, &object)?;
    writeln!(out)
}
