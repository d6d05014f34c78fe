//! The explanation of a process's memory by its heap profile, for people. For a running process
//! that is sampled, this is a part of the explanation.
//!
//! ```text
//! process 4242: ./server
//! 41.5 MiB ± 4.6 MiB live after 60.00 s, 90.0 MiB resident
//!
//! live blocks of the profile: 41.5 MiB (46.1 %)
//!     the program holds them; the largest:
//!             24.0 MiB ± 3.5 MiB    1.00 s to 58.00 s old   Cache::insert  src/cache.cc:88
//!     ...
//! not live: 48.5 MiB (53.9 %)
//!     ...
//! ```
//!
//! Shares are of the resident memory if the record has it, else of live memory. Shares of temporary
//! blocks are of allocated memory.

use super::explain::{LISTED, Memory, PHASE_OVER, SURVIVORS};
use crate::output::calls::look_at;
use crate::output::document::{Part, on_screen};
use crate::output::{Look, of_process, sentences, units};
use crate::report::explained::Explained;
use crate::report::model::{Amount, Figure, Report, Sampled};

/// The share of the peak below which live bytes have fallen since.
const FALLEN: f64 = 0.9;
/// The share of the allocated bytes from which temporary blocks are mentioned.
const MUCH: f64 = 0.1;

/// Returns the whole explanation.
pub(crate) fn report(report: &Report, explained: &Explained<'_>, look: Look) -> String {
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
    let parts = parts(report, explained, "heapwright report --figure live");
    out.extend(parts.iter().flat_map(|(part, whole)| part.said(*whole)));
    if let Some(bytes) = explained.not_live() {
        let part = Memory { name: "not live", bytes, lines: not_live_lines(explained) };
        out.extend(part.said(explained.resident.unwrap_or(0)));
    }
    out.push(Part::text_of("", format!("\n{}", estimates(explained))));
    if explained.others != 0 {
        let others = match explained.others {
            1 => "1 other process has".to_owned(),
            many => format!("{} other processes have", units::count(many as u64)),
        };
        let text = format!("{others} a profile here, too, with less at the peak: name its file");
        out.push(Part::text_of("", text));
    }
    on_screen(&out, look)
}

/// Returns the profile's part of a running process's explanation.
pub(super) fn of_running(report: &Report, explained: &Explained<'_>) -> Vec<Part> {
    let since = sentences::duration(explained.check.ns);
    let mut out =
        vec![Part::heading(format!("sampled for {since}; of what it has allocated since:"))];
    let all = format!("heapwright profile {}", explained.process.pid);
    let parts = parts(report, explained, &all);
    out.extend(parts.iter().flat_map(|(part, whole)| part.said(*whole)));
    out.push(Part::text_of("", format!("\n{}", estimates(explained))));
    out
}

fn estimates(explained: &Explained<'_>) -> String {
    let period = units::round_bytes(explained.profile.period);
    format!(
        "estimates from one sample per {period} allocated, on average; ± is one standard deviation"
    )
}

fn estimate(bytes: u64, error: Option<u64>) -> String {
    let error = error.map(|error| format!(" ± {}", units::bytes(error))).unwrap_or_default();
    units::bytes(bytes) + &error
}

/// Returns each part, and its whole. `all` is the command that lists all live blocks.
fn parts(report: &Report, explained: &Explained<'_>, all: &str) -> Vec<(Memory, u64)> {
    let whole = explained.resident.unwrap_or(explained.live.bytes);
    let of = |sites: &[&Sampled], figure: Figure| -> u64 {
        sites.iter().map(|site| figure.of(site).bytes).sum()
    };
    let mut parts = Vec::new();
    let mut add = |name, bytes, whole, lines: Vec<String>| {
        if bytes != 0 {
            parts.push((Memory { name, bytes, lines }, whole));
        }
    };
    let list = |sites: &[&Sampled], figure| lines(report, explained, sites, figure);

    let holders = explained.holders();
    let mut live = vec!["the program holds them; the largest:".to_owned()];
    live.extend(list(&holders, Figure::Live));
    live.push(format!("all of them: {all}; whether they are lost: heapwright check"));
    add("live blocks of the profile", explained.live.bytes, whole, live);

    let kept = explained.kept();
    let mut lines = vec![format!(
        "of calls whose live blocks are all older than {}:",
        sentences::duration(explained.check.ns / 2)
    )];
    lines.extend(list(&kept, Figure::Live));
    lines.push(
        "what is made once and stays is no harm, unless it lies among blocks that go".to_owned(),
    );
    add("live blocks that stay", of(&kept, Figure::Live), whole, lines);

    let mixed = explained.mixed();
    let mut lines =
        vec!["of calls that free most of what they allocate within a millisecond:".to_owned()];
    lines.extend(list(&mixed, Figure::Live));
    lines.push(
        "each may keep a slab that is free otherwise; whether it does, a profile does not say"
            .to_owned(),
    );
    lines.push(SURVIVORS.to_owned());
    add("survivors among short-lived blocks", of(&mixed, Figure::Live), whole, lines);

    let grown = explained.grown();
    let since = explained.profile.earlier_ns().unwrap_or(0);
    let mut lines = vec![format!(
        "so much more is live than after {}, of calls that have grown beyond chance:",
        sentences::duration(since)
    )];
    lines.extend(list(&grown, Figure::Growth));
    lines.push("a cache without a bound, or a leak: heapwright check says whether anything leads to the blocks".to_owned());
    add("growth", of(&grown, Figure::Growth), whole, lines);

    let Amount { bytes, .. } = explained.temporary;
    if units::share(bytes, explained.allocated.bytes) >= MUCH {
        let mut lines = vec!["of what was allocated, freed within a millisecond:".to_owned()];
        lines.extend(list(&explained.temporary(), Figure::Temporary));
        lines.push("it takes time and hardly any memory: a buffer that is kept for the next time, or an arena, at the price of \
                    what they hold in between"
            .to_owned());
        add("temporary blocks", bytes, explained.allocated.bytes, lines);
    }
    parts
}

fn not_live_lines(explained: &Explained<'_>) -> Vec<String> {
    let mut lines = vec![
        "the heap's free memory, rounding and tables, and what is not heapwright's: code, stacks, files, other allocators"
            .to_owned(),
    ];
    let (peak, live) = (explained.profile.peak_bytes, explained.live.bytes);
    if (live as f64) < FALLEN * peak as f64 {
        let (fallen, peak_ns) = (units::bytes(peak - live), explained.profile.peak_ns);
        let ago = sentences::duration(explained.check.ns.saturating_sub(peak_ns));
        lines.push(format!(
            "live bytes were highest, {}, {ago} before the end, and have fallen by {fallen}",
            units::bytes(peak)
        ));
        lines.push(PHASE_OVER.to_owned());
    }
    lines.push(format!(
        "how much of it is which, a profile does not say; heapwright explain {} does while the program runs",
        explained.process.pid
    ));
    lines
}

/// Returns the largest stacks, a line each.
fn lines(
    report: &Report,
    explained: &Explained<'_>,
    sites: &[&Sampled],
    figure: Figure,
) -> Vec<String> {
    let line = |site: &&Sampled| {
        let amount = estimate(figure.of(site).bytes, figure.error(site));
        let ages = match figure {
            Figure::Live => ages(explained, site),
            _ => String::new(),
        };
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

/// Returns the ages of a stack's live blocks.
fn ages(explained: &Explained<'_>, site: &Sampled) -> String {
    let age = |ns| sentences::duration(explained.check.ns.saturating_sub(ns));
    let (youngest, oldest) = (age(site.youngest_ns), age(site.oldest_ns));
    let ages = match youngest == oldest {
        true => format!("{oldest} old"),
        false => format!("{youngest} to {oldest} old"),
    };
    format!("   {ages:<22}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn what_a_record_does_not_say_is_not_said() {
        let mut report = sample::profile();
        report.processes[0].checks[0].profile.as_mut().expect("is one").points.clear();
        let explained = Explained::largest(&report).expect("there is one");
        let text = super::report(&report, &explained, Look::PLAIN);
        assert!(
            text.contains("live after 60.00 s, the record does not say how much was resident\n")
        );
        assert!(
            text.contains("\nlive blocks of the profile: 41.5 MiB (100.0 %)\n")
                && !text.contains("\nnot live")
        );
    }
}
