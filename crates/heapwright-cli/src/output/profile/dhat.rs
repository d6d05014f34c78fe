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

use super::Numbered;
use crate::output::json::{list, object, write_compact};
use crate::output::sentences;
use crate::report::calls::calls;
use crate::report::held::held;
use crate::report::model::{Amount, Process, Report};
use std::collections::BTreeMap;
use std::io;

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = Numbered::default();
    table.number("[root]".to_owned());
    // Two stacks may have the same text; the viewer needs each text once.
    let mut points: BTreeMap<Vec<usize>, Amount> = BTreeMap::new();
    for held in held(report) {
        let mut frames = vec![table.number(format!("[{}]", held.fate.word()))];
        for call in calls(&report.stacks, held.stack) {
            let place = match call.place() {
                place if !place.is_empty() => place,
                _ => call.module().map(|name| format!("in {name}")).unwrap_or_default(),
            };
            let place = if place.is_empty() { place } else { format!(" ({place})") };
            let frame = format!("{:#x}: {}{place}", call.frame.address, call.name());
            frames.push(table.number(frame));
        }
        let sum = points.entry(frames).or_default();
        sum.bytes += held.amount.bytes;
        sum.blocks += held.amount.blocks;
    }
    let object = object! {
        #[serde(rename = "dhatFileVersion")]
        version: 2,
        mode: "heapwright-held",
        verb: "Held",
        bklt: false,
        bkacc: false,
        bu: "byte",
        bsu: "bytes",
        bksu: "blocks",
        tu: "µs",
        #[serde(rename = "Mtu")]
        mtu: "s",
        tuth: 0,
        cmd: report.first().map(sentences::command).unwrap_or_default(),
        pid: report.first().map_or(0, |process| process.pid),
        te: report.processes.iter().map(Process::lasted).max().unwrap_or(0) / 1000,
        pps: list(points.into_iter().map(|(stack, amount)| object! {
            tb: amount.bytes, tbk: amount.blocks, fs: stack,
        })),
        ftbl: table.all,
    };
    write_compact(out, &object)?;
    writeln!(out)
}
