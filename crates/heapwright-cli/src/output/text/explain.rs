//! The explanation of a process's resident memory, for people: its parts, the largest first, each
//! with a remedy.
//!
//! ```text
//! process 4242: ./server
//! 120.3 MiB resident, 71.9 MiB of it live
//!
//! partial slabs: 30.2 MiB (25.1 %)
//!     free slots in slabs that hold live blocks too; the largest:
//!          2048 bytes     12.1 MiB free    11 % in use
//!     ...
//! ```

use super::explain_record;
use super::top::heading;
use crate::live::{FRESH, Mappings, Process, Reported};
use crate::output::document::{Part, on_screen};
use crate::output::{Look, printable_text, units};
use crate::report::explained::Explained;
use crate::report::model::Report;
use heapwright_record::status::MOST;
use std::time::Duration;

/// Parts below this share of the resident memory are not explained.
const LEAST: f64 = 0.03;
/// The most size classes, mappings and call stacks in a list.
pub(super) const LISTED: usize = 5;

/// The remedy for free memory after a phase, and its price.
pub(super) const PHASE_OVER: &str = "a phase that is over: malloc_trim(0) behind it gives back what is whole pages, and costs faults";
/// The remedy for survivors, and its price.
pub(super) const SURVIVORS: &str =
    "blocks that live long among short ones: allocate those from a pool or an arena of their own";

/// Returns the explanation, with the process's heap profile if it has one.
pub(crate) fn report(
    process: &Process,
    report: &Reported,
    mappings: &Mappings,
    profile: Option<&Report>,
    look: Look,
) -> String {
    let (resident, live) = (units::bytes(process.resident), units::bytes(report.parts.live));
    let of = if report.age <= FRESH { "of it" } else { "were" };
    let mut out = vec![
        Part::heading(heading(process, Some(report))),
        Part::text_of("", format!("{resident} resident, {live} {of} live")),
    ];
    if let Some(limit) = process.limit {
        let (share, limit) = (units::percent(process.resident, limit), units::bytes(limit));
        out.push(Part::text_of("", format!("memory limit {limit}, {share} of it used")));
    }
    let mut parts = parts(process, report, mappings);
    parts.retain(|part| units::share(part.bytes, process.resident) >= LEAST);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    out.extend(parts.iter().flat_map(|part| part.said(process.resident)));
    if mappings.huge > 0 {
        let huge = units::bytes(mappings.huge);
        let text = format!(
            "\n{huge} of the heap are in huge pages: with huge_pages=never what is free in them \
             could go back page by page, at the price of more page faults"
        );
        out.push(Part::text_of("", text));
    }
    out.push(Part::text_of("", format!("\nas of {} ago", units::duration(report.age))));
    let explained = profile.and_then(|profile| Some((profile, Explained::largest(profile)?)));
    if let Some((profile, explained)) = explained {
        out.extend(explain_record::of_running(profile, &explained));
    }
    on_screen(&out, look)
}

/// A part of memory, with its explanation.
pub(super) struct Memory {
    pub(super) name: &'static str,
    pub(super) bytes: u64,
    pub(super) lines: Vec<String>,
}

impl Memory {
    /// Returns the part's name and share of a whole, and its lines.
    pub(super) fn said(&self, whole: u64) -> [Part; 2] {
        let share = units::percent(self.bytes, whole);
        let lines = self.lines.iter().map(|line| format!("  {line}"));
        [
            Part::heading(format!("{}: {} ({share})", self.name, units::bytes(self.bytes))),
            Part::listed(lines),
        ]
    }
}

fn parts(process: &Process, report: &Reported, mappings: &Mappings) -> Vec<Memory> {
    let (parts, stats) = (&report.parts, &report.stats);
    let part = |name, bytes, lines: &[&str]| Memory {
        name,
        bytes,
        lines: lines.iter().map(|&line| line.to_owned()).collect(),
    };
    let pid = process.pid;
    let mut live = part("live blocks", parts.live, &["the program holds them:"]);
    live.lines.push(format!("    {} blocks", units::count(stats.live_blocks)));
    live.lines.push(if report.age <= FRESH {
        format!(
            "where they come from: heapwright profile {pid}; whether they are lost: heapwright check"
        )
    } else {
        "the process is idle, so heapwright profile sees nothing of them: start it with the option \
         sample=512k, and explain says where they come from; or find lost ones with heapwright check"
            .to_owned()
    });

    let mut partial = part(
        "partial slabs",
        parts.partial,
        &[
            "free slots in slabs that hold live blocks too, which nobody asks for just now; the largest:",
        ],
    );
    let mut classes: Vec<_> = report.classes.iter().filter(|class| class.free > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.free));
    for class in classes.iter().take(LISTED) {
        let share = units::share(class.used, class.used + class.free) * 100.0;
        partial.lines.push(format!(
            "    {:>6} bytes {:>12} free {share:>5.0} % in use or in caches",
            class.size,
            units::bytes(class.free)
        ));
    }
    partial.lines.extend([PHASE_OVER, SURVIVORS].map(str::to_owned));
    partial.lines.push(format!("which they are: heapwright profile {pid} --figure live, the ages"));

    let threads = stats.caches_live;
    let mut caches = part("caches", parts.caches + parts.remote, &[]);
    caches.lines.push(format!(
        "free blocks in {} caches of threads and {} that threads share, and on their way home",
        units::count(threads),
        units::count(stats.caches_touched)
    ));
    caches.lines.push("cache=percpu or cache=shared:K: bounded by the CPUs and not by the threads; some nanoseconds a call".to_owned());

    let mut waiting = part(
        "waiting for purge",
        parts.waiting,
        &["free pages that go back to the kernel unless they are needed before"],
    );
    waiting.lines.push(format!("heapwright trim {pid} gives them back now"));
    waiting.lines.push(match report.facts.purge_delay_ms {
        MOST => "purge=never keeps them: purge=250..5500, the default, gives them back".to_owned(),
        ms => format!(
            "they wait for {} just now; purge=250 is shorter, and costs faults in programs that work in bursts",
            units::duration(Duration::from_millis(ms))
        ),
    });

    let metadata = part(
        "metadata",
        parts.metadata,
        &[
            "the heap's tables: some hundredths of the most that was ever in use; nothing to be done",
        ],
    );
    let pools = part(
        "pools, arenas",
        parts.pools,
        &[
            "the program's pools, arenas and collected heaps, with what is free in them: hw_pool_trim, hw_arena_trim, hw_gc_trim",
        ],
    );
    let rounding = part(
        "rounding",
        parts.rounding,
        &["between what was asked for and the slots' sizes, at most an eighth; nothing to be done"],
    );
    let mut others = part("not heapwright's", parts.not_ours, &["the largest:"]);
    for (name, bytes) in mappings.others.iter().take(LISTED) {
        others.lines.push(format!("    {:>12}  {}", units::bytes(*bytes), printable_text(name)));
    }
    others.lines.push(
        "runtimes with allocators of their own: heapwright doctor says how to have them use malloc"
            .to_owned(),
    );
    let gone = part(
        "gone since",
        report.parts.gone,
        &["the process's figures have it in some part, and it is not in memory any more"],
    );
    let unattributed = part(
        "unattributed",
        parts.unattributed,
        &["the heap has it since the process has shown its figures, and the process rests"],
    );
    vec![live, partial, caches, waiting, metadata, pools, rounding, others, unattributed, gone]
}
