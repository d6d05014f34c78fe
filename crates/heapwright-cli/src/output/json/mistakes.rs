//! A debug record, as one JSON object. Addresses, hashes and build-ids are text
//! in hexadecimal: a JSON number does not hold every address.
//!
//! ```text
//! format      1
//! process     {pid, parent, started, page_size, version, exe, options,
//!              command: [string]} | null
//! findings    [{kind, sentence, call, origin, region, access, value, pointer,
//!               block: address|null, size, align, offset, length, given_size,
//!               given_align, here, freed, allocated}]
//!   here, ... {thread, thread_name: string|null, sequence, ns, cut,
//!              frames: [{address, module: string|null, offset: address|null,
//!                        build_id: string|null,
//!                        functions: [{name, source, line}], each or null}]} | null
//! modules     [{id, start, end, bias, build_id, path}]       at the end
//! sites       [{key, odds, last, hits}]
//! notes       [string]
//! end         {findings, allocations, frees, peak_live_bytes, ending} | null
//! skipped     number        entries that only a newer version knows
//! problem     string|null   why the record was read no further
//! ```

use super::FORMAT;
use crate::output::mistakes::{hex, printable};
use crate::output::{Happened, Mistake, Mistakes, rfc3339};
use crate::symbols;
use heapwright_record::debug::Role;
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};

/// The object, as text.
pub(crate) fn report(mistakes: &Mistakes<'_>) -> String {
    let record = &mistakes.record;
    super::text(&Object {
        format: FORMAT,
        process: record.process.map(|process| Process {
            pid: process.pid,
            parent: process.parent,
            started: rfc3339(UNIX_EPOCH + Duration::from_nanos(process.time)),
            page_size: process.page_size,
            version: printable(process.version),
            exe: printable(process.exe),
            options: printable(process.options),
            command: mistakes.command(),
        }),
        findings: mistakes.findings.iter().map(|mistake| finding(mistakes, mistake)).collect(),
        modules: record
            .modules
            .values()
            .map(|module| Module {
                id: module.id,
                start: address(module.start),
                end: address(module.end),
                bias: address(module.bias),
                build_id: hex(module.build_id.bytes),
                path: printable(module.path),
            })
            .collect(),
        sites: record
            .sites
            .iter()
            .map(|site| Site {
                key: address(site.key),
                odds: site.odds,
                last: site.last.heading(),
                hits: site.hits,
            })
            .collect(),
        notes: record.notes.iter().map(|note| printable(*note)).collect(),
        end: record.end.map(|end| End {
            findings: end.findings,
            allocations: end.allocations,
            frees: end.frees,
            peak_live_bytes: end.peak_live_bytes,
            ending: end.ending.word(),
        }),
        skipped: record.skipped,
        problem: record.problem.map(|problem| problem.to_string()),
    })
}

fn address(value: u64) -> String {
    format!("{value:#x}")
}

fn finding(mistakes: &Mistakes<'_>, mistake: &Mistake) -> Finding {
    let found = &mistake.finding;
    let at = |role| {
        let happened = mistake.moments.iter().find(|happened| happened.role == role);
        happened.map(|happened| moment(mistakes, happened))
    };
    Finding {
        kind: found.kind.heading(),
        sentence: mistake.sentence(),
        call: found.call.word(),
        origin: found.origin.word(),
        region: found.region.word(),
        access: found.access.word(),
        value: found.value,
        pointer: address(found.pointer),
        block: (found.block != 0).then(|| address(found.block)),
        size: found.size,
        align: found.align,
        offset: found.offset,
        length: found.length,
        given_size: found.given_size,
        given_align: found.given_align,
        here: at(Role::Here),
        freed: at(Role::Freed),
        allocated: at(Role::Allocated),
    }
}

fn moment(mistakes: &Mistakes<'_>, happened: &Happened) -> Moment {
    let Happened { moment, frames, cut, .. } = happened;
    Moment {
        thread: moment.thread,
        thread_name: Some(mistakes.thread(moment.thread)).filter(|name| !name.is_empty()),
        sequence: moment.sequence,
        ns: moment.ns,
        cut: *cut,
        frames: frames
            .iter()
            .map(|frame| Frame {
                address: address(frame.address),
                module: frame.place.as_ref().map(|place| printable((&*place.path).into())),
                offset: frame.place.as_ref().map(|place| address(place.offset)),
                build_id: frame
                    .place
                    .as_ref()
                    .filter(|place| !place.build_id.is_empty())
                    .map(|place| hex(&place.build_id)),
                functions: frame.functions.iter().cloned().map(Function::from).collect(),
            })
            .collect(),
    }
}

#[derive(Serialize)]
struct Object {
    format: u32,
    process: Option<Process>,
    findings: Vec<Finding>,
    modules: Vec<Module>,
    sites: Vec<Site>,
    notes: Vec<String>,
    end: Option<End>,
    skipped: u64,
    problem: Option<String>,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    parent: u32,
    started: String,
    page_size: u32,
    version: String,
    exe: String,
    options: String,
    command: Vec<String>,
}

#[derive(Serialize)]
struct Finding {
    kind: &'static str,
    sentence: String,
    call: &'static str,
    origin: &'static str,
    region: &'static str,
    access: &'static str,
    value: u8,
    pointer: String,
    block: Option<String>,
    size: u64,
    align: u64,
    offset: i64,
    length: u64,
    given_size: u64,
    given_align: u64,
    here: Option<Moment>,
    freed: Option<Moment>,
    allocated: Option<Moment>,
}

#[derive(Serialize)]
struct Moment {
    thread: u32,
    thread_name: Option<String>,
    sequence: u64,
    ns: u64,
    cut: bool,
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    address: String,
    module: Option<String>,
    offset: Option<String>,
    build_id: Option<String>,
    functions: Vec<Function>,
}

#[derive(Serialize)]
struct Function {
    name: Option<String>,
    source: Option<String>,
    line: Option<u32>,
}

impl From<symbols::Function> for Function {
    fn from(symbols::Function { name, source, line }: symbols::Function) -> Self {
        Self { name, source, line }
    }
}

#[derive(Serialize)]
struct Module {
    id: u32,
    start: String,
    end: String,
    bias: String,
    build_id: String,
    path: String,
}

#[derive(Serialize)]
struct Site {
    key: String,
    odds: u32,
    last: &'static str,
    hits: u32,
}

#[derive(Serialize)]
struct End {
    findings: u32,
    allocations: u64,
    frees: u64,
    peak_live_bytes: u64,
    ending: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::text::mistakes::tests::example;
    use serde_json::{Value, json};

    #[test]
    fn everything_is_there_under_its_name() {
        let text = report(&example());
        assert!(text.starts_with("{\n  \"format\": 1,\n  \"process\": {\n"), "{text}");
        let object: Value = serde_json::from_str(&text).expect("is JSON");
        assert_eq!(object["process"]["command"], json!(["prog", "-x"]));
        assert_eq!(object["process"]["started"], json!("2023-11-14T22:13:20Z"));
        let finding = &object["findings"][0];
        assert_eq!(finding["kind"], json!("double-free"));
        assert_eq!(finding["sentence"], json!("free of a 40-byte block that was freed before"));
        assert_eq!(finding["block"], json!("0x70001000"));
        assert_eq!(finding["allocated"], Value::Null);
        assert_eq!(finding["freed"]["frames"], json!([]));
        assert_eq!(
            finding["here"]["frames"][0],
            json!({
                "address": "0x550010de",
                "module": "/path/prog",
                "offset": "0x10de",
                "build_id": "abcdef",
                "functions": [
                    {"name": "twice", "source": "file.c", "line": 12},
                    {"name": "main", "source": "file.c", "line": 20},
                ],
            })
        );
        assert_eq!(finding["here"]["frames"][2]["module"], Value::Null);
        assert_eq!(object["end"]["ending"], json!("exit"));
        assert_eq!(object["problem"], Value::Null);
    }
}
