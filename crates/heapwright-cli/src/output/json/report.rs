//! A report with all known data, as one JSON object. Addresses and build-ids are text in
//! hexadecimal, because a JSON number cannot hold every address.
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
//!                           in the order of their begin; a process that executes
//!                           another program appears twice
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
//! suppressions [{name, file, line, times, blocks, bytes}]    all given ones
//! unseen      [string]: processes without a last check; then the report is incomplete
//! notes       [string]
//! stacks      [{cut, frames: [index]}]    the first is the empty one: no stack was kept
//! frames      [{address, module, offset, build_id, each or null,
//!               functions: [{name, symbol, source, line, column}, each or null]}]
//!
//! AMOUNT      {blocks, bytes}
//! earlier     live blocks earlier_ns after sampling began, from which growth is counted; null in
//!             older records, with earlier_ns, temporary_error, peak_error, growth_error
//! process     an index into processes; check: into the process's checks
//! stack       an index into stacks; frames there: into frames, innermost first
//! functions   the last is the frame's function, those before it were inlined there
//! ```

use super::{list, object};
use crate::output::words::{self, hex, printable};
use crate::output::{Look, rfc3339};
use crate::report::model::{self, Report, StackId};
use crate::symbols;
use heapwright_record::debug::{Reach, Role};
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

/// Writes the report as one JSON object.
pub(crate) fn write(report: &Report, out: &mut dyn Write, _: Look) -> io::Result<()> {
    super::write(out, report_object(report))
}

fn report_object(report: &Report) -> impl Serialize {
    object! {
        processes: list(report.processes.iter().map(process)),
        errors: list(report.errors.iter().map(|found| error(report, found))),
        leaks: list(report.leaks.iter().map(|lost| leak(report, lost))),
        growths: list(report.growths.iter().map(|growth| object! {
            stack: growth.stack,
            process: growth.process,
            slope: growth.slope,
            tau: growth.tau,
            points: &growth.points,
            suppression: words::line_for(report, "growth", growth.stack),
        })),
        summary: object! {
            errors: report.times(),
            contexts: report.errors.len() as u64 + report.unreported.errors,
            definitely_lost: report.total(Reach::Definite),
            indirectly_lost: report.total(Reach::Indirect),
            possibly_lost: report.total(Reach::Possible),
            still_reachable: report.total(Reach::Reachable),
            suppressed: object! {
                errors: report.suppressed.times,
                contexts: report.suppressed.errors,
                leaks: report.suppressed.leaks,
                lost: report.suppressed.lost,
                growths: report.suppressed.growths,
            },
            untold: object! {
                contexts: report.unreported.errors,
                errors: report.unreported.times,
                leaks: report.unreported.leaks,
            },
            unwritten: report.unwritten,
        },
        suppressions: list(report.used.iter().map(|used| object! {
            name: &used.name,
            file: &used.file,
            line: used.line,
            times: used.times,
            causes: used.causes.len(),
            blocks: used.amount.blocks,
            bytes: used.amount.bytes,
        })),
        unseen: &report.unseen,
        notes: &report.notes,
        stacks: list((0..).map(StackId).zip(&report.stacks.stacks).map(|(stack, frames)| object! {
            cut: report.cut.contains(&stack),
            frames: frames,
        })),
        frames: list(report.stacks.frames.iter().map(frame)),
    }
}

fn address(value: u64) -> String {
    format!("{value:#x}")
}

fn process(process: &model::Process) -> impl Serialize {
    object! {
        pid: process.pid,
        parent: process.parent,
        began: rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began)),
        exe: &process.exe,
        command: &process.command,
        options: &process.options,
        version: &process.version,
        end: process.end.map(|end| object! {
            findings: end.findings,
            allocations: end.allocations,
            frees: end.frees,
            peak_live_bytes: end.peak_live_bytes,
            ending: end.ending.word(),
        }),
        samples: &process.samples,
        checks: list(process.checks.iter().map(|check| object! {
            number: check.number,
            occasion: check.occasion.word(),
            ns: check.ns,
            stopped_ns: check.stopped_ns,
            took_ns: check.took_ns,
            threads: check.threads,
            silent: check.silent,
            live: check.live,
            omitted: check.omitted,
            usage: list(check.usage.iter().map(|(stack, amount)| object! {
                stack: stack,
                blocks: amount.blocks,
                bytes: amount.bytes,
            })),
            profile: check.profile.as_ref().map(profile),
        })),
        classes: list(process.classes.iter().map(|class| object! {
            slot: class.slot,
            buckets: class.buckets,
            memory: class.memory,
            live: class.live,
            bytes: class.bytes,
            freed: class.freed,
            unused: class.unused,
        })),
    }
}

fn profile(profile: &model::Profile) -> impl Serialize {
    object! {
        period: profile.period,
        peak_bytes: profile.peak_bytes,
        peak_ns: profile.peak_ns,
        lost: profile.lost,
        earlier_ns: profile.earlier_ns(),
        sites: list(profile.sites.iter().map(|site| object! {
            stack: site.stack,
            memory: site.memory.word(),
            samples: site.samples,
            live: site.live,
            live_error: site.live_error,
            allocated: site.allocated,
            allocated_error: site.allocated_error,
            temporary: site.temporary,
            temporary_error: site.more.map(|more| more.temporary_error),
            peak: site.peak,
            peak_error: site.more.map(|more| more.peak_error),
            earlier: site.more.map(|more| more.earlier),
            growth_error: site.more.map(|more| more.growth_error),
            oldest_ns: site.oldest_ns,
            youngest_ns: site.youngest_ns,
        })),
        threads: list(profile.threads.iter().map(|thread| object! {
            tid: thread.number,
            name: &thread.name,
            live: thread.live,
            allocated: thread.allocated,
        })),
        points: list(profile.points.iter().map(|point| object! {
            ns: point.ns,
            live_bytes: point.live,
            resident_bytes: point.resident,
        })),
    }
}

fn error(report: &Report, error: &model::Error) -> impl Serialize {
    let found = &error.finding;
    let at = |role| {
        let happened = error.moments.iter().find(|happened| happened.role == role)?;
        Some(object! {
            thread: happened.moment.thread,
            thread_name: Some(&*happened.thread).filter(|name| !name.is_empty()),
            sequence: happened.moment.sequence,
            ns: happened.moment.ns,
            title: words::title(found, happened),
            stack: happened.stack,
        })
    };
    object! {
        kind: found.kind.heading(),
        sentence: words::happened(error),
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

fn leak(report: &Report, leak: &model::Leak) -> impl Serialize {
    object! {
        reach: leak.reach.word(),
        origin: leak.origin.word(),
        stack: leak.stack,
        blocks: leak.lost.blocks,
        bytes: leak.lost.bytes,
        indirect: leak.indirect,
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
        path: leak.path.as_ref().map(|path| object! {
            root: path.root.word(),
            address: address(path.address),
            name: &path.name,
            module: &path.module,
            thread: path.thread.as_ref().map(|thread| thread.0),
            thread_name: path.thread.as_ref().map(|thread| &thread.1),
            steps: &path.steps,
        }),
    }
}

fn frame(frame: &symbols::Frame) -> impl Serialize {
    let place = frame.place.as_ref();
    let build_id = place.map(|place| &*place.build_id).filter(|bytes| !bytes.is_empty());
    object! {
        address: address(frame.address),
        module: place.map(|place| printable((&*place.path).into())),
        offset: place.map(|place| address(place.offset)),
        build_id: build_id.map(hex),
        functions: list(frame.functions.iter().map(function)),
    }
}

fn function(function: &symbols::Function) -> impl Serialize {
    let text = |text: &Option<String>| text.as_ref().map(|text| printable((&**text).into()));
    object! {
        name: text(&function.name),
        symbol: text(&function.symbol),
        source: text(&function.source),
        line: function.line,
        column: function.column,
    }
}
