//! A heap profile, for people: the sites that allocate a process's memory, the largest first.
//!
//! ```text
//! ==4242== heap profile of ./server after 3.20 s, one sample per 512 KiB allocated, on average
//! ==4242==      live   12.3 MiB ± 0.4 MiB in 1,234 blocks
//! ==4242== allocated   1.2 GiB ± 24.0 MiB in 12,345 blocks, 80.1 % of the bytes freed within 1 ms
//! ==4242==      peak   20.1 MiB after 1.20 s
//! ==4242==    growth   +2.1 MiB ± 0.2 MiB since 1.07 s
//! ==4242== blocks and bytes are estimates, ± is one standard deviation
//!
//! live: 5.1 MiB ± 0.3 MiB in 500 blocks (41.5 % of what is live), 10 samples, 0.10 s to 3.00 s old
//!     #0 0x55d0c0de in insert table.c:12
//!     ...
//! ```
//!
//! A share is of all bytes of the reported figure. Sites beyond `--limit` share one line. Sites of
//! pools, arenas and collected heaps count segments, chunks and pages.

use super::report::stack;
use crate::output::sentences::{self, FigureWords, duration, estimate, off};
use crate::output::{Look, units};
use crate::report::model::{Check, Figure, Profile, Profiled, Report, Sampled};
use std::fmt::Write;

const THREADS: usize = 10;

/// Writes the last profile of each process that has one, the largest allocation first.
pub(super) fn write(out: &mut String, report: &Report, look: Look) {
    let mut profiles = report.profiles();
    let all = profiles.len();
    profiles.retain(|one| !one.profile.sites.is_empty());
    for (number, one) in profiles.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        write_one(out, report, one, look);
    }
    if let Some(rest @ 1..) = all.checked_sub(profiles.len()) {
        let first = report.first().map_or(0, |first| first.pid);
        let rest = match rest {
            1 if all == 1 => "the program".to_owned(),
            rest => units::counted(rest as u64, "process"),
        };
        let _ =
            writeln!(out, "=={first}== {rest} allocated too little for a sample (see --sample)");
    }
}

fn write_one(out: &mut String, report: &Report, one: &Profiled<'_>, look: Look) {
    let Profiled { process, check, profile } = one;
    let pid = process.pid;
    let mut say = |text: &str| {
        let _ = writeln!(out, "=={pid}== {text}");
    };
    let what = sentences::command(process);
    let (after, period) = (duration(check.ns), units::round_bytes(profile.period));
    say(&look.strong(&format!(
        "heap profile of {what} after {after}, one sample per {period} allocated, on average"
    )));
    let live = profile.total(|site| site.live);
    let allocated = profile.total(|site| site.allocated);
    let temporary = profile.total(|site| site.temporary);
    let error = |figure| profile.error(figure);
    say(&format!("     live   {}", estimate(live, error(Figure::Live), "block")));
    say(&format!(
        "allocated   {}, {} of the bytes freed within 1 ms",
        estimate(allocated, error(Figure::Allocated), "block"),
        units::percent(temporary.bytes, allocated.bytes)
    ));
    say(&format!(
        "     peak   {} after {}",
        units::bytes(profile.peak_bytes),
        duration(profile.peak_ns)
    ));
    if let (Some(growth), Some(since)) = (profile.growth(), profile.earlier_ns()) {
        let growth = units::difference(growth);
        let off = off(error(Figure::Growth));
        say(&format!("   growth   {growth}{off} since {}", duration(since)));
    }
    say("blocks and bytes are estimates, ± is one standard deviation");
    sentences::lost_samples(profile.lost).iter().for_each(|lost| say(lost));
    sites(out, report, check, profile, look);
    threads(out, profile);
}

fn sites(out: &mut String, report: &Report, check: &Check, profile: &Profile, look: Look) {
    let figure = report.wanted.figure;
    let words = FigureWords::of(figure);
    let total = profile.total(|site| figure.of(site)).bytes;
    let mut sites: Vec<&Sampled> =
        profile.sites.iter().filter(|site| figure.of(site).bytes != 0).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(figure.of(site).bytes));
    let most = report.wanted.sites;
    if sites.is_empty() {
        let none = match figure {
            Figure::Temporary => "no sampled block was freed within 1 ms",
            Figure::Growth if profile.earlier_ns().is_none() => {
                "the record does not say what was live earlier: its library is of an older version"
            }
            Figure::Growth => "no stack has more live bytes than earlier",
            _ => "no sampled block is live",
        };
        let _ = writeln!(out, "\n{none}");
    }
    for site in sites.iter().take(most) {
        let bytes = figure.of(site);
        let share = format!("{} of {}", units::percent(bytes.bytes, total), words.whole);
        let bytes = estimate(bytes, figure.error(site), site.noun());
        let mut heading = format!("\n{}: {bytes} ({share})", words.is);
        if figure == Figure::Live {
            let samples = units::counted(site.samples, "sample");
            let age = |ns| duration(check.ns.saturating_sub(ns));
            let ages = sentences::ages(&age(site.youngest_ns), &age(site.oldest_ns));
            heading += &format!(", {samples}, {ages}");
        }
        let _ = writeln!(out, "{}", look.strong(&heading));
        if report.stacks.frames(site.stack).next().is_none() {
            let _ = writeln!(out, "    (no stack was kept)");
        }
        stack(out, report, site.stack);
    }
    if let Some(rest) = sites.get(most..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|site| figure.of(site).bytes).sum();
        let (rest, share) =
            (units::counted(rest.len() as u64, "smaller site"), units::percent(bytes, total));
        let _ = writeln!(out, "\n{rest}: {} ({share})", units::bytes(bytes));
    }
}

fn threads(out: &mut String, profile: &Profile) {
    if profile.threads.len() < 2 {
        return;
    }
    let mut threads: Vec<_> = profile.threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse((thread.live.bytes, thread.allocated.bytes)));
    let _ = writeln!(out, "\nby thread:");
    for thread in threads.iter().take(THREADS) {
        let _ = writeln!(
            out,
            "    {:>10} live, {:>10} allocated   {} {}",
            units::bytes(thread.live.bytes),
            units::bytes(thread.allocated.bytes),
            thread.number,
            thread.name
        );
    }
    if let Some(rest) = threads.len().checked_sub(THREADS).filter(|rest| *rest != 0) {
        let _ = writeln!(out, "    and {}", units::counted(rest as u64, "more thread"));
    }
}
