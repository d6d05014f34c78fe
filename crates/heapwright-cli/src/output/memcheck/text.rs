//! Memcheck's text: every line begins with `==PID== `.
//!
//! ```text
//! ==42== Invalid write of size 1 (found later, here)
//! ==42==    at 0x10916E: main (a.c:3)
//! ==42==  Address 0x4a4104a is 0 bytes after a block of size 10 alloc'd
//! ==42==    at 0x109161: main (a.c:3)
//! ==42==
//! ==42== HEAP SUMMARY, leaks, LEAK SUMMARY, ERROR SUMMARY
//! ```
//!
//! The sums are those of all processes of the report. Bytes allocated in all are not
//! counted; the most at once are, and said so. Quiet text has findings only: scripts take any
//! line of it for one.

use super::{Entry, INTERPOSER, Paths, Style, errors, grouped, leaks, shown};
use crate::output::calls::Call;
use crate::output::sentences;
use crate::output::words::printable_text;
use crate::report::model::{Amount, Report, StackId};
use heapwright_record::debug::{End, Reach};
use std::fmt::Write as _;
use std::io;

/// The whole report.
pub(crate) fn write(report: &Report, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let pid = report.first().map_or(0, |process| process.pid);
    if !style.quiet {
        let command = report.first().map(sentences::command).unwrap_or_default();
        lines(
            out,
            pid,
            &[
                "Heapwright, a memory error detector, in memcheck's words",
                &format!(
                    "Using heapwright {}; see heapwright valgrind --help",
                    env!("CARGO_PKG_VERSION")
                ),
                &format!("Command: {}", printable_text(&command)),
                "",
            ],
        )?;
    }
    for error in errors(report) {
        entry(out, report, style, &error)?;
    }
    if !style.quiet {
        heap_summary(out, report, pid)?;
    }
    for leak in leaks(report) {
        entry(out, report, style, &leak)?;
    }
    if !style.quiet {
        leak_summary(out, report, style, pid)?;
        report.lines().try_for_each(|note| lines(out, pid, &[note]))?;
    }
    if style.lists {
        for used in report.used.iter().filter(|used| used.times != 0) {
            let Amount { blocks, bytes } = used.amount;
            let place = format!("{}:{}", used.file, used.line);
            lines(
                out,
                pid,
                &[&format!(
                    "used_suppression: {:>6} {} {place} suppressed: {} bytes in {} blocks",
                    used.times,
                    used.name,
                    grouped(bytes),
                    grouped(blocks)
                )],
            )?;
        }
    }
    if style.quiet {
        return Ok(());
    }
    if !style.lists {
        lines(out, pid, &["For lists of detected and suppressed errors, rerun with: -s"])?;
    }
    let (times, contexts) = style.counted(report);
    lines(
        out,
        pid,
        &[&format!(
            "ERROR SUMMARY: {} errors from {} contexts (suppressed: {} from {})",
            grouped(times),
            grouped(contexts),
            grouped(report.suppressed.times.saturating_add(report.suppressed.leaks)),
            grouped(report.suppressed.errors.saturating_add(report.suppressed.leaks)),
        )],
    )
}

fn lines(out: &mut dyn io::Write, pid: u32, lines: &[&str]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "=={pid}== {line}"))
}

fn entry(out: &mut dyn io::Write, report: &Report, style: &Style, entry: &Entry) -> io::Result<()> {
    let mut text = entry.what.clone();
    text.push('\n');
    stack(&mut text, report, style, entry.function, entry.stack);
    for (sentence, id) in &entry.more {
        let _ = writeln!(text, " {sentence}");
        stack(&mut text, report, style, None, *id);
    }
    if entry.times > 1 {
        let _ = writeln!(text, " found {} times", grouped(entry.times));
    }
    let all: Vec<&str> = text.lines().chain([""]).collect();
    lines(out, entry.pid, &all)?;
    // To be copied: without the pid.
    entry.suppression.iter().try_for_each(|block| write!(out, "{block}"))
}

fn stack(text: &mut String, report: &Report, style: &Style, function: Option<&str>, id: StackId) {
    let mut word = "at";
    if let Some(function) = function {
        let address = report.stacks.frames(id).next().map_or(0, |frame| frame.address);
        let _ = writeln!(text, "   {word} {:#X}: {function} (in {INTERPOSER})", Hex(address));
        word = "by";
    }
    for call in shown(report, id, style) {
        let _ = writeln!(
            text,
            "   {word} {:#X}: {}",
            Hex(call.frame.address),
            line(&call, &style.paths)
        );
        word = "by";
    }
}

/// An address as valgrind prints it: `0x10916E`.
struct Hex(u64);

impl std::fmt::UpperHex for Hex {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "0x{:X}", self.0)
    }
}

/// `main (a.c:3)`, `??? (in /usr/lib/libfoo.so)`.
fn line(call: &Call<'_>, paths: &Paths) -> String {
    let name = call.function.and_then(|function| function.name.as_deref());
    let name = name.map_or_else(|| "???".to_owned(), printable_text);
    let place = match (call.source(), call.line(), &call.frame.place) {
        (_, Some((source, line)), _) => format!(" ({}:{line})", path(source, paths)),
        (Some(source), ..) => format!(" ({})", path(source, paths)),
        (.., Some(place)) => format!(" (in {})", crate::output::printable((&*place.path).into())),
        _ => String::new(),
    };
    name + &place
}

fn path(source: &str, paths: &Paths) -> String {
    let short = match paths {
        Paths::Name => source.rsplit('/').next().unwrap_or(source),
        Paths::After(parts) => {
            let after = |part: &String| Some(&source[source.find(&**part)? + part.len()..]);
            parts.iter().filter(|part| !part.is_empty()).find_map(after).unwrap_or(source)
        }
    };
    printable_text(short)
}

fn heap_summary(out: &mut dyn io::Write, report: &Report, pid: u32) -> io::Result<()> {
    let ends = || report.processes.iter().filter_map(|process| process.end);
    let sum = |of: fn(&End) -> u64| ends().fold(0_u64, |sum, end| sum.saturating_add(of(&end)));
    let checks = report.processes.iter().filter_map(|process| {
        process
            .checks
            .iter()
            .rev()
            .find(|check| check.occasion.follows() && check.took_ns.is_some())
    });
    let mut live: Option<Amount> = None;
    checks.for_each(|check| *live.get_or_insert_default() += check.live);
    lines(out, pid, &["HEAP SUMMARY:"])?;
    if let Some(Amount { blocks, bytes }) = live {
        lines(
            out,
            pid,
            &[&format!(
                "    in use at exit: {} bytes in {} blocks",
                grouped(bytes),
                grouped(blocks)
            )],
        )?;
    }
    lines(
        out,
        pid,
        &[
            &format!(
                "  total heap usage: {} allocs, {} frees, at most {} bytes at once",
                grouped(sum(|end| end.allocations)),
                grouped(sum(|end| end.frees)),
                grouped(sum(|end| end.peak_live_bytes)),
            ),
            "",
        ],
    )?;
    if live.is_some_and(|live| live.blocks == 0) {
        lines(out, pid, &["All heap blocks were freed -- no leaks are possible", ""])?;
    }
    Ok(())
}

fn leak_summary(
    out: &mut dyn io::Write,
    report: &Report,
    style: &Style,
    pid: u32,
) -> io::Result<()> {
    if report.leaks.is_empty() && report.suppressed.leaks == 0 {
        return Ok(());
    }
    lines(out, pid, &["LEAK SUMMARY:"])?;
    for (words, amount) in [
        ("   definitely lost", report.total(Reach::Definite)),
        ("   indirectly lost", report.total(Reach::Indirect)),
        ("     possibly lost", report.total(Reach::Possible)),
        ("   still reachable", report.total(Reach::Reachable)),
        ("        suppressed", report.suppressed.lost),
    ] {
        let Amount { blocks, bytes } = amount;
        let line = format!("{words}: {} bytes in {} blocks", grouped(bytes), grouped(blocks));
        lines(out, pid, &[&line])?;
    }
    if style.has_more {
        lines(out, pid, &["Rerun with --leak-check=full to see details of leaked memory"])?;
    }
    lines(out, pid, &[""])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    fn text(style: &Style) -> String {
        let mut out = Vec::new();
        write(&sample::report(), style, &mut out).expect("is written");
        String::from_utf8(out).expect("is text")
    }

    #[test]
    fn quiet_is_findings_only() {
        let text = text(&Style { quiet: true, ..Style::default() });
        assert!(text.starts_with("==4242== Invalid read") && !text.contains("SUMMARY"), "{text}");
    }

    #[test]
    fn paths_are_as_long_as_asked_for() {
        let after = |parts: &[&str]| Paths::After(parts.iter().map(|&part| part.into()).collect());
        let source = "/home/ada/shop/src/main.cc";
        assert_eq!(path(source, &Paths::Name), "main.cc");
        assert_eq!(path(source, &after(&[""])), source);
        assert_eq!(path(source, &after(&["/x/", "shop/"])), "src/main.cc");
    }
}
