//! A report with all known data, as one JSON object.

use super::{address, list, object};
use crate::output::rfc3339;
use crate::output::words::{self, hex, printable};
use crate::report::model::{self, Report, StackId};
use crate::symbols;
use heapwright_record::debug::{Reach, Role};
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};

pub(in crate::output) fn data(report: &Report) -> impl Serialize {
    let (hidden, untold) = (&report.suppressed, &report.unreported);
    object! { report =>
        processes: list(report.processes.iter().map(process)),
        errors: list(report.errors.iter().map(|found| error(report, found))),
        leaks: list(report.leaks.iter().map(|lost| leak(report, lost))),
        growths: list(report.growths.iter().map(|growth| object! { growth =>
            stack, process, slope, tau, points,
            suppression: words::line_for(report, "growth", growth.stack),
        })),
        summary: object! {
            errors: report.times(),
            contexts: report.errors.len() as u64 + untold.errors,
            definitely_lost: report.total(Reach::Definite),
            indirectly_lost: report.total(Reach::Indirect),
            possibly_lost: report.total(Reach::Possible),
            still_reachable: report.total(Reach::Reachable),
            suppressed: object! { hidden =>
                errors: hidden.times, contexts: hidden.errors, leaks, lost, growths,
            },
            untold: object! { untold => contexts: untold.errors, errors: untold.times, leaks },
            unwritten: report.unwritten,
        },
        suppressions: list(report.used.iter().map(|used| object! { used =>
            name, file, line, times, causes: used.causes.len(),
            blocks: used.amount.blocks, bytes: used.amount.bytes,
        })),
        unseen, notes,
        stacks: list((0..).map(StackId).zip(&report.stacks.stacks).map(|(stack, frames)| object! {
            cut: report.cut.contains(&stack),
            frames: frames,
        })),
        frames: list(report.stacks.frames.iter().map(frame)),
    }
}

fn process(process: &model::Process) -> impl Serialize {
    object! { process =>
        pid, parent,
        began: rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began)),
        exe, command, options, version,
        end: process.end.as_ref().map(|end| object! { end =>
            findings, allocations, frees, peak_live_bytes, ending: end.ending.word(),
        }),
        samples,
        checks: list(process.checks.iter().map(|check| object! { check =>
            number, occasion: check.occasion.word(), ns, stopped_ns, took_ns, threads, silent, live,
            omitted,
            usage: list(check.usage.iter().map(|(stack, amount)| object! { amount =>
                stack: stack, blocks, bytes,
            })),
            profile: check.profile.as_ref().map(profile),
        })),
        classes: list(process.classes.iter().map(|class| object! { class =>
            slot, buckets, memory, live, bytes, freed, unused,
        })),
    }
}

fn profile(profile: &model::Profile) -> impl Serialize {
    object! { profile =>
        period, peak_bytes, peak_ns, lost, earlier_ns: profile.earlier_ns(),
        sites: list(profile.sites.iter().map(|site| object! { site =>
            stack, memory: site.memory.word(), samples, live, live_error, allocated,
            allocated_error, temporary,
            temporary_error: site.more.map(|more| more.temporary_error),
            peak, peak_error: site.more.map(|more| more.peak_error),
            earlier: site.more.map(|more| more.earlier),
            growth_error: site.more.map(|more| more.growth_error),
            oldest_ns, youngest_ns,
        })),
        threads: list(profile.threads.iter().map(|thread| object! { thread =>
            tid: thread.number, name, live, allocated,
        })),
        points: list(profile.points.iter().map(|point| object! { point =>
            ns, live_bytes: point.live, resident_bytes: point.resident,
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
    object! { error =>
        kind: found.kind.heading(),
        sentence: words::happened(error),
        times, process, processes,
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
    object! { leak =>
        reach: leak.reach.word(), origin: leak.origin.word(), stack,
        blocks: leak.lost.blocks, bytes: leak.lost.bytes, indirect,
        block: address(leak.block), size,
        oldest_ns, youngest_ns, oldest_age_ns, youngest_age_ns, process, processes, check,
        suppression: words::line_for(report, "leak", leak.stack),
        path: leak.path.as_ref().map(|path| object! { path =>
            root: path.root.word(), address: address(path.address), name, module,
            thread: path.thread.as_ref().map(|thread| thread.0),
            thread_name: path.thread.as_ref().map(|thread| &thread.1),
            steps,
        }),
    }
}

fn frame(frame: &symbols::Frame) -> impl Serialize + use<> {
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

fn function(function: &symbols::Function) -> impl Serialize + use<> {
    let text = |text: &Option<String>| text.as_ref().map(|text| printable((&**text).into()));
    object! {
        name: text(&function.name),
        symbol: text(&function.symbol),
        source: text(&function.source),
        line: function.line,
        column: function.column,
    }
}
