//! Explains a process's resident memory: its parts, the largest first, with remedies.
//!
//! ```text
//! process 4242: ./server
//! 120.3 MiB resident, 71.9 MiB of it live
//!
//! partial slabs: 30.2 MiB (25.1 %)
//!     free slots in slabs that also hold live blocks; the largest:
//!          2048 bytes     12.1 MiB free    11 % in use
//!     ...
//!
//! live blocks of the profile: 41.5 MiB (46.1 %)
//!     the program holds them; the largest:
//!             24.0 MiB ± 3.5 MiB    1.00 s to 58.00 s old   Cache::insert  src/cache.cc:88
//! not live: 48.5 MiB (53.9 %)
//! ```
//!
//! A heap profile explains a process by its stacks, alone or as the second part of the explanation
//! of a running process. Its shares are of the resident memory if the record has that, else of live
//! memory. Shares of temporary blocks are of allocated memory.

use super::document::{Document, Part};
use super::json::{Formatted, list, object};
use super::top::heading;
use super::{of_process, printable_text, sentences, units};
use crate::live::{FRESH, Mappings, Process, Reported};
use crate::report::calls::look_at;
use crate::report::explained::Explained;
use crate::report::model::{Figure, Report, Sampled};
use heapwright_record::status::{Class, MOST};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Parts below this share of the resident memory are not explained.
const LEAST: f64 = 0.03;
/// The most size classes, mappings and call stacks in a list.
const LISTED: usize = 5;
/// If less than this share of the peak is live, the text says that live bytes have fallen.
const FALLEN: f64 = 0.9;
/// The least share of temporary blocks in the allocated bytes that is mentioned.
const MUCH: f64 = 0.1;

/// The remedy for free memory after a phase, and its price.
const PHASE_OVER: &str =
    "free memory after a phase: malloc_trim(0) at its end gives back whole pages, and costs faults";
/// The remedy for survivors, and its price.
const SURVIVORS: &str =
    "blocks that live long among short ones: allocate those from a pool or an arena of their own";

struct Memory {
    name: &'static str,
    bytes: u64,
    lines: Vec<String>,
}

impl Memory {
    fn of(name: &'static str, bytes: u64) -> Self {
        Self { name, bytes, lines: Vec::new() }
    }

    fn line(self, line: impl Into<String>) -> Self {
        self.lines([line])
    }

    fn lines<L: Into<String>>(mut self, lines: impl IntoIterator<Item = L>) -> Self {
        self.lines.extend(lines.into_iter().map(Into::into));
        self
    }

    fn said(&self, whole: u64) -> [Part; 2] {
        let share = units::percent(self.bytes, whole);
        let lines = self.lines.iter().map(|line| format!("  {line}"));
        [
            Part::heading(format!("{}: {} ({share})", self.name, units::bytes(self.bytes))),
            Part::listed(lines),
        ]
    }
}

pub(crate) fn running<'a>(
    process: &'a Process,
    report: &'a Reported,
    mappings: &'a Mappings,
    profile: Option<&'a Report>,
) -> Document<'a> {
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
    let mut parts = memory(process, report, mappings);
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
    if let Some((profile, explained)) = profile.and_then(explained) {
        let since = sentences::duration(explained.check.ns);
        let heading = format!("sampled for {since}; of what it has allocated since:");
        out.push(Part::heading(heading));
        let all = format!("heapwright profile {}", explained.process.pid);
        out.extend(sampled(profile, &explained, &all));
        out.push(Part::text_of("", format!("\n{}", estimates(&explained))));
    }
    Document::plain(out, move || {
        let classes = report.classes.iter().filter(|class| class.used + class.free > 0);
        let explained = profile.and_then(explained);
        object! {
            pid: process.pid,
            resident_bytes: process.resident,
            age_seconds: report.age.as_secs_f64(),
            parts: report.parts.all().into_iter().collect::<BTreeMap<_, _>>(),
            gone_bytes: report.parts.gone,
            classes: list(classes.map(|class| object! { class =>
                size, used_bytes: class.used, free_bytes: class.free,
            })),
            others: list(mappings.others.iter().map(|(name, bytes)| {
                object! { name: name, bytes: bytes }
            })),
            huge_page_bytes: mappings.huge,
            profile: explained.map(|(profile, explained)| Formatted::of(data(profile, &explained))),
        }
    })
}

fn explained(report: &Report) -> Option<(&Report, Explained<'_>)> {
    Some((report, Explained::largest(report)?))
}

fn memory(process: &Process, report: &Reported, mappings: &Mappings) -> Vec<Memory> {
    let (parts, stats, pid) = (&report.parts, &report.stats, process.pid);
    let from = if report.age <= FRESH {
        format!(
            "where they come from: heapwright profile {pid}; whether they are lost: heapwright check"
        )
    } else {
        "the process is idle, so heapwright profile sees nothing of them: start it with the option \
         sample=512k, and explain says where they come from; or find lost ones with heapwright check"
            .to_owned()
    };
    let mut classes: Vec<_> = report.classes.iter().filter(|class| class.free > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.free));
    let class = |class: &&Class| {
        let share = units::share(class.used, class.used + class.free) * 100.0;
        let (size, free) = (class.size, units::bytes(class.free));
        format!("    {size:>6} bytes {free:>12} free {share:>5.0} % in use or in caches")
    };
    let caches = format!(
        "free blocks in {} caches of threads and {} that threads share, and on their way home",
        units::count(stats.caches_live),
        units::count(stats.caches_touched)
    );
    let delay = match report.facts.purge_delay_ms {
        MOST => "purge=never keeps them: purge=250..5500, the default, gives them back".to_owned(),
        ms => format!(
            "they wait for {} just now; purge=250 is shorter, and costs faults in programs that \
             work in bursts",
            units::duration(Duration::from_millis(ms))
        ),
    };
    let other = |(name, bytes): &(String, u64)| {
        format!("    {:>12}  {}", units::bytes(*bytes), printable_text(name))
    };
    vec![
        Memory::of("live blocks", parts.live)
            .line("the program holds them:")
            .line(format!("    {} blocks", units::count(stats.live_blocks)))
            .line(from),
        Memory::of("partial slabs", parts.partial)
            .line("free slots in slabs that also hold live blocks; the largest:")
            .lines(classes.iter().take(LISTED).map(class))
            .lines([PHASE_OVER, SURVIVORS])
            .line(format!("which they are: heapwright profile {pid} --figure live, the ages")),
        Memory::of("caches", parts.caches + parts.remote).line(caches).line(
            "cache=percpu or cache=shared:K: bounded by the CPUs and not by the threads; some \
             nanoseconds a call",
        ),
        Memory::of("waiting for purge", parts.waiting)
            .line("free pages that go back to the kernel unless they are needed before")
            .line(format!("heapwright trim {pid} gives them back now"))
            .line(delay),
        Memory::of("metadata", parts.metadata).line(
            "the heap's tables: some hundredths of the most that was ever in use; nothing to be \
             done",
        ),
        Memory::of("pools, arenas", parts.pools).line(
            "the program's pools, arenas and collected heaps, with what is free in them: \
             hw_pool_trim, hw_arena_trim, hw_gc_trim",
        ),
        Memory::of("rounding", parts.rounding).line(
            "between what was asked for and the slots' sizes, at most an eighth; nothing to be done",
        ),
        Memory::of("not heapwright's", parts.not_ours)
            .line("the largest:")
            .lines(mappings.others.iter().take(LISTED).map(other))
            .line(
                "runtimes with allocators of their own: heapwright doctor says how to have them \
                 use malloc",
            ),
        Memory::of("unattributed", parts.unattributed)
            .line("the heap has it since the process has shown its figures, and the process rests"),
        Memory::of("gone since", parts.gone)
            .line("the process's figures have it in some part, and it is not in memory any more"),
    ]
}

pub(crate) fn recorded<'a>(report: &'a Report, explained: &'a Explained<'_>) -> Document<'a> {
    let process = explained.process;
    let live = estimate(explained.live.bytes, explained.profile.error(Figure::Live));
    let after = sentences::duration(explained.check.ns);
    let resident = explained.resident.map_or_else(
        || "the record does not say how much was resident".to_owned(),
        |resident| format!("{} resident", units::bytes(resident)),
    );
    let mut out = vec![
        Part::heading(of_process(process.pid, &process.command)),
        Part::text_of("", format!("{live} live after {after}, {resident}")),
    ];
    out.extend(sampled(report, explained, "heapwright report --figure live"));
    let not_live = not_live(explained);
    out.extend(not_live.iter().flat_map(|part| part.said(explained.resident.unwrap_or(0))));
    out.push(Part::text_of("", format!("\n{}", estimates(explained))));
    if explained.others != 0 {
        let others = match explained.others {
            1 => "1 other process has".to_owned(),
            many => format!("{} other processes have", units::count(many as u64)),
        };
        let text = format!("{others} a profile here, too, with less at the peak: name its file");
        out.push(Part::text_of("", text));
    }
    Document::plain(out, || data(report, explained))
}

fn estimates(explained: &Explained<'_>) -> String {
    let period = units::round_bytes(explained.profile.period);
    format!(
        "estimates from one sample per {period} allocated, on average; ± is one standard deviation"
    )
}

fn estimate(bytes: u64, error: Option<u64>) -> String {
    units::bytes(bytes) + &sentences::off(error)
}

/// `all` is the command that lists all live blocks.
fn sampled(report: &Report, explained: &Explained<'_>, all: &str) -> Vec<Part> {
    let whole = explained.resident.unwrap_or(explained.live.bytes);
    let part = |name, sites: &[&Sampled], figure: Figure, about: &str| {
        let bytes = sites.iter().map(|site| figure.of(site).bytes).sum();
        Memory::of(name, bytes).line(about).lines(lines(report, explained, sites, figure))
    };
    let old = sentences::duration(explained.check.ns / 2);
    let since = sentences::duration(explained.profile.earlier_ns().unwrap_or(0));
    let parts = [
        part(
            "live blocks of the profile",
            &explained.holders(),
            Figure::Live,
            "the program holds them; the largest:",
        )
        .line(format!("all of them: {all}; whether they are lost: heapwright check")),
        part(
            "live blocks that stay",
            &explained.kept(),
            Figure::Live,
            &format!("of calls whose live blocks are all older than {old}:"),
        )
        .line("what is made once and stays is no harm, unless it lies among blocks that go"),
        part(
            "survivors among short-lived blocks",
            &explained.mixed(),
            Figure::Live,
            "of calls that free most of what they allocate within a millisecond:",
        )
        .line(
            "each may keep a slab that is free otherwise; whether it does, a profile does not say",
        )
        .line(SURVIVORS),
        part(
            "growth",
            &explained.grown(),
            Figure::Growth,
            &format!(
                "so much more is live than after {since}, of calls that have grown beyond chance:"
            ),
        )
        .line(
            "a cache without a bound, or a leak: heapwright check says whether anything leads to \
             the blocks",
        ),
    ];
    let known = parts.iter().filter(|part| part.bytes != 0);
    let mut said: Vec<Part> = known.flat_map(|part| part.said(whole)).collect();
    let (temporary, allocated) = (explained.temporary.bytes, explained.allocated.bytes);
    if temporary != 0 && units::share(temporary, allocated) >= MUCH {
        let about = "of what was allocated, freed within a millisecond:";
        let part = part("temporary blocks", &explained.temporary(), Figure::Temporary, about);
        let part = part.line(
            "it takes time and hardly any memory: a buffer that is kept for the next time, or an \
             arena, at the price of what they hold in between",
        );
        said.extend(part.said(allocated));
    }
    said
}

fn not_live(explained: &Explained<'_>) -> Option<Memory> {
    let mut part = Memory::of("not live", explained.not_live()?).line(
        "the heap's free memory, rounding and tables, and what is not heapwright's: code, stacks, \
         files, other allocators",
    );
    let (peak, live) = (explained.profile.peak_bytes, explained.live.bytes);
    if (live as f64) < FALLEN * peak as f64 {
        let (fallen, peak_ns) = (units::bytes(peak - live), explained.profile.peak_ns);
        let ago = sentences::duration(explained.check.ns.saturating_sub(peak_ns));
        let peak = units::bytes(peak);
        part = part
            .line(format!(
                "live bytes were highest, {peak}, {ago} before the end, and have fallen by {fallen}"
            ))
            .line(PHASE_OVER);
    }
    Some(part.line(format!(
        "how much of it is which, a profile does not say; heapwright explain {} does while the \
         program runs",
        explained.process.pid
    )))
}

fn lines(
    report: &Report,
    explained: &Explained<'_>,
    sites: &[&Sampled],
    figure: Figure,
) -> Vec<String> {
    let line = |site: &&Sampled| {
        let amount = estimate(figure.of(site).bytes, figure.error(site));
        let age = |ns| sentences::duration(explained.check.ns.saturating_sub(ns));
        let ages = sentences::ages(&age(site.youngest_ns), &age(site.oldest_ns));
        let ages = if figure == Figure::Live { format!("   {ages:<22}") } else { String::new() };
        let (name, place) = match look_at(&report.stacks, site.stack) {
            Some(call) => (call.name(), call.place()),
            None => ("no stack was kept".to_owned(), String::new()),
        };
        format!("    {amount:>23}{ages}   {name}  {place}").trim_end().to_owned()
    };
    let mut lines: Vec<String> = sites.iter().take(LISTED).map(line).collect();
    if let Some(rest @ 1..) = sites.len().checked_sub(LISTED) {
        lines.push(format!("    {:>23} in {}", "and", units::counted(rest as u64, "smaller one")));
    }
    lines
}

fn data(report: &Report, explained: &Explained<'_>) -> impl Serialize + use<> {
    let all = |sites: Vec<&Sampled>| list(sites.into_iter().map(|of| site(report, explained, of)));
    let profile = explained.profile;
    object! {
        pid: explained.process.pid,
        after_seconds: seconds(explained.check.ns),
        resident_bytes: explained.resident,
        live_bytes: explained.live.bytes,
        live_error: profile.error(Figure::Live),
        allocated_bytes: explained.allocated.bytes,
        temporary_bytes: explained.temporary.bytes,
        peak_bytes: profile.peak_bytes,
        peak_seconds: seconds(profile.peak_ns),
        period: profile.period,
        earlier_seconds: profile.earlier_ns().map(seconds),
        live: all(explained.holders()),
        kept: all(explained.kept()),
        mixed: all(explained.mixed()),
        grown: all(explained.grown()),
        temporary: all(explained.temporary()),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn site(report: &Report, explained: &Explained<'_>, site: &Sampled) -> impl Serialize + use<> {
    let call = look_at(&report.stacks, site.stack);
    let age = |ns| seconds(explained.check.ns.saturating_sub(ns));
    object! {
        function: call.map(|call| call.name()),
        place: call.map(|call| call.place()).filter(|place| !place.is_empty()),
        live_bytes: site.live.bytes,
        live_error: site.live_error,
        samples: site.samples,
        youngest_seconds: age(site.youngest_ns),
        oldest_seconds: age(site.oldest_ns),
        growth_bytes: site.growth(),
        growth_error: Figure::Growth.error(site),
        temporary_bytes: site.temporary.bytes,
        allocated_bytes: site.allocated.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Look;
    use crate::report::sample;

    #[test]
    fn what_a_record_does_not_say_is_not_said() {
        let mut report = sample::profile();
        report.processes[0].checks[0].profile.as_mut().expect("is one").points.clear();
        let explained = Explained::largest(&report).expect("there is one");
        let text = recorded(&report, &explained).text(Look::PLAIN);
        assert!(
            text.contains("live after 60.00 s, the record does not say how much was resident\n")
        );
        assert!(
            text.contains("\nlive blocks of the profile: 41.5 MiB (100.0 %)\n")
                && !text.contains("\nnot live")
        );
    }
}
