//! A report, as one JSON object: everything that is known. Addresses and build-ids
//! are text in hexadecimal, because a JSON number does not hold every address.
//!
//! ```text
//! format      1
//! processes   [{pid, parent, began: time, exe, command: [string], options, version,
//!               end: {findings, allocations, frees, peak_live_bytes, ending} | null,
//!               samples: [{ns, blocks, bytes}],
//!               checks: [{number, occasion, ns, stopped_ns, took_ns: number|null,
//!                         threads, silent, live: AMOUNT, omitted: AMOUNT,
//!                         usage: [{stack, blocks, bytes}],
//!                         profile: {period, peak_bytes, peak_ns, lost, earlier_ns,
//!                                   sites: [{stack, samples, live: AMOUNT, live_error,
//!                                            allocated: AMOUNT, allocated_error,
//!                                            temporary: AMOUNT, temporary_error,
//!                                            peak: AMOUNT, peak_error,
//!                                            earlier: AMOUNT, growth_error,
//!                                            oldest_ns, youngest_ns}],
//!                                   points: [{ns, live_bytes, resident_bytes: number|null}],
//!                                   threads: [{tid, name, live: AMOUNT,
//!                                              allocated: AMOUNT}]} | null}],
//!               classes: [{slot, buckets, memory, live, bytes, freed, unused}]}]
//!                           in the order in which they began; one that executes
//!                           another program is two
//! errors      [{kind, sentence, times, process, processes, call, origin, region,
//!               access, value, pointer, block: address|null, size, align, offset,
//!               length, given_size, given_align, suppression: string|null,
//!               here, freed, allocated: {thread, thread_name: string|null, sequence,
//!                                        ns, title, stack} | null}]
//! leaks       [{reach, origin, stack, blocks, bytes, indirect: AMOUNT, block, size,
//!               oldest_ns, youngest_ns, oldest_age_ns, youngest_age_ns, process,
//!               processes, check, suppression: string|null,
//!               path: {root, address, name, module, thread, thread_name,
//!                      steps: [{size, offset, stack}]} | null}]
//! growths     [{stack, process, slope, tau, points: [{ns, blocks, bytes}],
//!               suppression: string|null}]       slope: bytes a second
//! summary     {errors, contexts, definitely_lost, indirectly_lost, possibly_lost,
//!              still_reachable, suppressed: {errors, contexts, leaks, lost, growths},
//!              untold: {contexts, errors, leaks}, unwritten}
//! suppressions [{name, file, line, times, blocks, bytes}]    all that were given
//! unseen      [string]: processes that had no last look; then the report is incomplete
//! notes       [string]
//! stacks      [{cut, frames: [index]}]    the first is the empty one: no stack was kept
//! frames      [{address, module, offset, build_id, each or null,
//!               functions: [{name, symbol, source, line, column}, each or null]}]
//!
//! AMOUNT      {blocks, bytes}
//! earlier     what was live earlier_ns after sampling began, which growth is counted from. It is null in records of
//!             older versions, as are earlier_ns, temporary_error, peak_error and growth_error
//! process     an index into processes; check: into the process's checks
//! stack       an index into stacks; frames there: into frames, innermost first
//! functions   the last is the frame's function, those before it were inlined there
//! ```

use super::FORMAT;
use crate::output::words::{self, hex, printable};
use crate::output::{Look, rfc3339};
use crate::report::model::{self, Amount, Report, StackId};
use crate::symbols;
use heapwright_record::debug::{Reach, Role};
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

/// Writes the object.
pub(crate) fn write(report: &Report, out: &mut dyn Write, _: Look) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &object(report))?;
    out.write_all(b"\n")
}

fn object(report: &Report) -> Object<'_> {
    Object {
        format: FORMAT,
        processes: report.processes.iter().map(process).collect(),
        errors: report.errors.iter().map(|found| error(report, found)).collect(),
        leaks: report.leaks.iter().map(|lost| leak(report, lost)).collect(),
        growths: report
            .growths
            .iter()
            .map(|growth| Growth {
                stack: growth.stack.0,
                process: growth.process,
                slope: growth.slope,
                tau: growth.tau,
                points: growth.points.iter().map(Sample::from).collect(),
                suppression: words::line_for(report, "growth", growth.stack),
            })
            .collect(),
        summary: Summary {
            errors: report.times(),
            contexts: report.errors.len() as u64 + report.unreported.errors,
            definitely_lost: report.total(Reach::Definite).into(),
            indirectly_lost: report.total(Reach::Indirect).into(),
            possibly_lost: report.total(Reach::Possible).into(),
            still_reachable: report.total(Reach::Reachable).into(),
            suppressed: Suppressed {
                errors: report.suppressed.times,
                contexts: report.suppressed.errors,
                leaks: report.suppressed.leaks,
                lost: report.suppressed.lost.into(),
                growths: report.suppressed.growths,
            },
            untold: Untold {
                contexts: report.unreported.errors,
                errors: report.unreported.times,
                leaks: report.unreported.leaks,
            },
            unwritten: report.unwritten,
        },
        suppressions: report
            .used
            .iter()
            .map(|used| Used {
                name: &used.name,
                file: &used.file,
                line: used.line,
                times: used.times,
                causes: used.causes.len(),
                blocks: used.amount.blocks,
                bytes: used.amount.bytes,
            })
            .collect(),
        unseen: &report.unseen,
        notes: &report.notes,
        stacks: report
            .stacks
            .stacks
            .iter()
            .enumerate()
            .map(|(at, frames)| Stack { cut: report.cut.contains(&StackId(at as u32)), frames })
            .collect(),
        frames: report.stacks.frames.iter().map(Frame::from).collect(),
    }
}

fn address(value: u64) -> String {
    format!("{value:#x}")
}

fn process(process: &model::Process) -> Process<'_> {
    Process {
        pid: process.pid,
        parent: process.parent,
        began: rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began)),
        exe: &process.exe,
        command: &process.command,
        options: &process.options,
        version: &process.version,
        end: process.end.map(|end| End {
            findings: end.findings,
            allocations: end.allocations,
            frees: end.frees,
            peak_live_bytes: end.peak_live_bytes,
            ending: end.ending.word(),
        }),
        samples: process.samples.iter().map(Sample::from).collect(),
        checks: process
            .checks
            .iter()
            .map(|check| Check {
                number: check.number,
                occasion: check.occasion.word(),
                ns: check.ns,
                stopped_ns: check.stopped_ns,
                took_ns: check.took_ns,
                threads: check.threads,
                silent: check.silent,
                live: check.live.into(),
                omitted: check.omitted.into(),
                usage: check
                    .usage
                    .iter()
                    .map(|(stack, amount)| Usage {
                        stack: stack.0,
                        blocks: amount.blocks,
                        bytes: amount.bytes,
                    })
                    .collect(),
                profile: check.profile.as_ref().map(profile),
            })
            .collect(),
        classes: process
            .classes
            .iter()
            .map(|class| Class {
                slot: class.slot,
                buckets: class.buckets,
                memory: class.memory,
                live: class.live,
                bytes: class.bytes,
                freed: class.freed,
                unused: class.unused,
            })
            .collect(),
    }
}

fn profile(profile: &model::Profile) -> Profile {
    let site = |site: &model::Sampled| Site {
        stack: site.stack.0,
        memory: site.memory.word(),
        samples: site.samples,
        live: site.live.into(),
        live_error: site.live_error,
        allocated: site.allocated.into(),
        allocated_error: site.allocated_error,
        temporary: site.temporary.into(),
        temporary_error: site.more.map(|more| more.temporary_error),
        peak: site.peak.into(),
        peak_error: site.more.map(|more| more.peak_error),
        earlier: site.more.map(|more| more.earlier.into()),
        growth_error: site.more.map(|more| more.growth_error),
        oldest_ns: site.oldest_ns,
        youngest_ns: site.youngest_ns,
    };
    let point = |point: &model::ProfilePoint| Point {
        ns: point.ns,
        live_bytes: point.live,
        resident_bytes: point.resident,
    };
    let thread = |thread: &model::SampledThread| Thread {
        tid: thread.number,
        name: thread.name.clone(),
        live: thread.live.into(),
        allocated: thread.allocated.into(),
    };
    Profile {
        period: profile.period,
        peak_bytes: profile.peak_bytes,
        peak_ns: profile.peak_ns,
        lost: profile.lost,
        earlier_ns: profile.earlier_ns(),
        sites: profile.sites.iter().map(site).collect(),
        points: profile.points.iter().map(point).collect(),
        threads: profile.threads.iter().map(thread).collect(),
    }
}

fn error<'r>(report: &Report, error: &'r model::Error) -> Error<'r> {
    let found = &error.finding;
    let at = |role| {
        let happened = error.moments.iter().find(|happened| happened.role == role)?;
        Some(Moment {
            thread: happened.moment.thread,
            thread_name: Some(&*happened.thread).filter(|name| !name.is_empty()),
            sequence: happened.moment.sequence,
            ns: happened.moment.ns,
            title: words::title(found, happened),
            stack: happened.stack.0,
        })
    };
    Error {
        kind: found.kind.heading(),
        sentence: words::sentence(found),
        times: error.times,
        process: error.process,
        processes: error.processes,
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
        suppression: words::line_for(report, found.kind.heading(), words::fault_stack(error)),
        here: at(Role::Here),
        freed: at(Role::Freed),
        allocated: at(Role::Allocated),
    }
}

fn leak<'r>(report: &Report, leak: &'r model::Leak) -> Leak<'r> {
    Leak {
        reach: leak.reach.word(),
        origin: leak.origin.word(),
        stack: leak.stack.0,
        blocks: leak.lost.blocks,
        bytes: leak.lost.bytes,
        indirect: leak.indirect.into(),
        block: address(leak.block),
        size: leak.size,
        oldest_ns: leak.oldest_ns,
        youngest_ns: leak.youngest_ns,
        oldest_age_ns: leak.oldest_age_ns,
        youngest_age_ns: leak.youngest_age_ns,
        process: leak.process,
        processes: leak.processes,
        check: leak.check,
        suppression: words::line_for(report, "leak", leak.stack),
        path: leak.path.as_ref().map(|path| Path {
            root: path.root.word(),
            address: address(path.address),
            name: path.name.as_deref(),
            module: path.module.as_deref(),
            thread: path.thread.as_ref().map(|thread| thread.0),
            thread_name: path.thread.as_ref().map(|thread| &*thread.1),
            steps: path
                .steps
                .iter()
                .map(|step| Step { size: step.size, offset: step.offset, stack: step.stack.0 })
                .collect(),
        }),
    }
}

#[derive(Serialize)]
struct Object<'r> {
    format: u32,
    processes: Vec<Process<'r>>,
    errors: Vec<Error<'r>>,
    leaks: Vec<Leak<'r>>,
    growths: Vec<Growth>,
    summary: Summary,
    suppressions: Vec<Used<'r>>,
    unseen: &'r [String],
    notes: &'r [String],
    stacks: Vec<Stack<'r>>,
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Process<'r> {
    pid: u32,
    parent: u32,
    began: String,
    exe: &'r str,
    command: &'r [String],
    options: &'r str,
    version: &'r str,
    end: Option<End>,
    samples: Vec<Sample>,
    checks: Vec<Check>,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct End {
    findings: u32,
    allocations: u64,
    frees: u64,
    peak_live_bytes: u64,
    ending: &'static str,
}

#[derive(Serialize)]
struct Sample {
    ns: u64,
    blocks: u64,
    bytes: u64,
}

impl From<&model::Sample> for Sample {
    fn from(sample: &model::Sample) -> Self {
        Self { ns: sample.ns, blocks: sample.blocks, bytes: sample.bytes }
    }
}

/// Blocks and their bytes.
#[derive(Serialize)]
pub(super) struct Held {
    blocks: u64,
    bytes: u64,
}

impl From<Amount> for Held {
    fn from(amount: Amount) -> Self {
        Self { blocks: amount.blocks, bytes: amount.bytes }
    }
}

#[derive(Serialize)]
struct Check {
    number: u32,
    occasion: &'static str,
    ns: u64,
    stopped_ns: u64,
    took_ns: Option<u64>,
    threads: u32,
    silent: u32,
    live: Held,
    omitted: Held,
    usage: Vec<Usage>,
    profile: Option<Profile>,
}

#[derive(Serialize)]
struct Profile {
    period: u64,
    peak_bytes: u64,
    peak_ns: u64,
    lost: u64,
    earlier_ns: Option<u64>,
    sites: Vec<Site>,
    threads: Vec<Thread>,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    ns: u64,
    live_bytes: u64,
    resident_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Site {
    stack: u32,
    memory: &'static str,
    samples: u64,
    live: Held,
    live_error: u64,
    allocated: Held,
    allocated_error: u64,
    temporary: Held,
    temporary_error: Option<u64>,
    peak: Held,
    peak_error: Option<u64>,
    earlier: Option<Held>,
    growth_error: Option<u64>,
    oldest_ns: u64,
    youngest_ns: u64,
}

#[derive(Serialize)]
struct Thread {
    tid: u32,
    name: String,
    live: Held,
    allocated: Held,
}

#[derive(Serialize)]
struct Usage {
    stack: u32,
    blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Class {
    slot: u64,
    buckets: u64,
    memory: u64,
    live: u64,
    bytes: u64,
    freed: u64,
    unused: u64,
}

#[derive(Serialize)]
struct Error<'r> {
    kind: &'static str,
    sentence: String,
    times: u64,
    process: usize,
    processes: usize,
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
    suppression: Option<String>,
    here: Option<Moment<'r>>,
    freed: Option<Moment<'r>>,
    allocated: Option<Moment<'r>>,
}

#[derive(Serialize)]
struct Moment<'r> {
    thread: u32,
    thread_name: Option<&'r str>,
    sequence: u64,
    ns: u64,
    title: String,
    stack: u32,
}

#[derive(Serialize)]
struct Leak<'r> {
    reach: &'static str,
    origin: &'static str,
    stack: u32,
    blocks: u64,
    bytes: u64,
    indirect: Held,
    block: String,
    size: u64,
    oldest_ns: u64,
    youngest_ns: u64,
    oldest_age_ns: u64,
    youngest_age_ns: u64,
    process: usize,
    processes: usize,
    check: usize,
    suppression: Option<String>,
    path: Option<Path<'r>>,
}

#[derive(Serialize)]
struct Path<'r> {
    root: &'static str,
    address: String,
    name: Option<&'r str>,
    module: Option<&'r str>,
    thread: Option<u32>,
    thread_name: Option<&'r str>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    size: u64,
    offset: u64,
    stack: u32,
}

#[derive(Serialize)]
struct Growth {
    stack: u32,
    process: usize,
    slope: f64,
    tau: f64,
    points: Vec<Sample>,
    suppression: Option<String>,
}

#[derive(Serialize)]
struct Summary {
    errors: u64,
    contexts: u64,
    definitely_lost: Held,
    indirectly_lost: Held,
    possibly_lost: Held,
    still_reachable: Held,
    suppressed: Suppressed,
    untold: Untold,
    unwritten: u64,
}

#[derive(Serialize)]
struct Suppressed {
    errors: u64,
    contexts: u64,
    leaks: u64,
    lost: Held,
    growths: u64,
}

#[derive(Serialize)]
struct Untold {
    contexts: u64,
    errors: u64,
    leaks: u64,
}

#[derive(Serialize)]
struct Used<'r> {
    name: &'r str,
    file: &'r str,
    line: u32,
    times: u64,
    causes: usize,
    blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Stack<'r> {
    cut: bool,
    frames: &'r [u32],
}

#[derive(Serialize)]
struct Frame {
    address: String,
    module: Option<String>,
    offset: Option<String>,
    build_id: Option<String>,
    functions: Vec<Function>,
}

impl From<&symbols::Frame> for Frame {
    fn from(frame: &symbols::Frame) -> Self {
        let place = frame.place.as_ref();
        let build_id = place.map(|place| &*place.build_id).filter(|bytes| !bytes.is_empty());
        Self {
            address: address(frame.address),
            module: place.map(|place| printable((&*place.path).into())),
            offset: place.map(|place| address(place.offset)),
            build_id: build_id.map(hex),
            functions: frame.functions.iter().map(Function::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct Function {
    name: Option<String>,
    symbol: Option<String>,
    source: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

impl From<&symbols::Function> for Function {
    fn from(function: &symbols::Function) -> Self {
        let text = |text: &Option<String>| text.as_ref().map(|text| printable((&**text).into()));
        Self {
            name: text(&function.name),
            symbol: text(&function.symbol),
            source: text(&function.source),
            line: function.line,
            column: function.column,
        }
    }
}
