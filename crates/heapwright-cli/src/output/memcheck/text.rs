//! Memcheck's text: every line begins with `==PID== `, except in suppressions.
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
//! The sums are over all processes. The record does not count all allocated bytes, so the text
//! gives the peak of live bytes, and says so. Quiet text has only findings: scripts take every line
//! for a finding.

use super::{Entry, INTERPOSER, Paths, Style, errors, grouped, leaks, shown};
use crate::output::sentences;
use crate::output::words::{self, printable_text};
use crate::report::calls::Call;
use crate::report::model::{Amount, Report, StackId, Suppressed};
use heapwright_record::debug::End;
use std::fmt::Write as _;
use std::io;

pub(crate) fn write(report: &Report, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let pid = report.pid();
    let mut text = String::new();
    if !style.quiet {
        let command = report.first().map(sentences::command).unwrap_or_default();
        let (version, command) = (env!("CARGO_PKG_VERSION"), printable_text(&command));
        text = format!(
            "Heapwright, a memory error detector, in memcheck's words\n\
             Using heapwright {version}; see heapwright valgrind --help\nCommand: {command}\n\n"
        );
    }
    said(out, pid, &mut text)?;
    errors(report).iter().try_for_each(|error| entry(out, report, style, error))?;
    if !style.quiet {
        heap_summary(&mut text, report);
    }
    said(out, pid, &mut text)?;
    leaks(report).iter().try_for_each(|leak| entry(out, report, style, leak))?;
    if !style.quiet {
        leak_summary(&mut text, report, style);
        text.extend(report.lines().flat_map(|note| [note, "\n"]));
    }
    for used in report.used.iter().filter(|used| style.lists && used.times != 0) {
        let _ = writeln!(
            text,
            "used_suppression: {:>6} {} {}:{} suppressed: {}",
            used.times,
            used.name,
            used.file,
            used.line,
            words::as_valgrind(used.amount)
        );
    }
    if !style.quiet {
        if !style.lists {
            text += "For lists of detected and suppressed errors, rerun with: -s\n";
        }
        let (times, contexts) = style.counted(report);
        let Suppressed { errors, times: hidden, leaks, .. } = report.suppressed;
        let [times, contexts, hidden, errors] =
            [times, contexts, hidden.saturating_add(leaks), errors.saturating_add(leaks)]
                .map(grouped);
        let _ = writeln!(
            text,
            "ERROR SUMMARY: {times} errors from {contexts} contexts (suppressed: {hidden} from \
             {errors})"
        );
    }
    said(out, pid, &mut text)
}

/// Writes the text's lines, each with the pid in front, and empties the text.
fn said(out: &mut dyn io::Write, pid: u32, text: &mut String) -> io::Result<()> {
    let written = text.lines().try_for_each(|line| writeln!(out, "=={pid}== {line}"));
    text.clear();
    written
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
    text.push('\n');
    said(out, entry.pid, &mut text)?;
    // The suppression has no pid in front, so that it can be copied.
    entry.suppression.iter().try_for_each(|block| write!(out, "{block}"))
}

fn stack(text: &mut String, report: &Report, style: &Style, function: Option<&str>, id: StackId) {
    let mut word = "at";
    if let Some(function) = function {
        let address = report.stacks.frames(id).next().map_or(0, |frame| frame.address);
        let _ = writeln!(text, "   {word} 0x{address:X}: {function} (in {INTERPOSER})");
        word = "by";
    }
    for call in shown(report, id, style) {
        let line = line(&call, &style.paths);
        let _ = writeln!(text, "   {word} 0x{:X}: {line}", call.frame.address);
        word = "by";
    }
}

/// Formats a call: `main (a.c:3)`, `??? (in /usr/lib/libfoo.so)`.
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

fn heap_summary(text: &mut String, report: &Report) {
    let ends = || report.processes.iter().filter_map(|process| process.end);
    let sum = |of: fn(&End) -> u64| ends().fold(0_u64, |sum, end| sum.saturating_add(of(&end)));
    let checks = report
        .processes
        .iter()
        .filter_map(|process| process.checks.iter().rfind(|check| check.is_whole()));
    let mut live: Option<Amount> = None;
    checks.for_each(|check| *live.get_or_insert_default() += check.live);
    text.push_str("HEAP SUMMARY:\n");
    if let Some(live) = live {
        let _ = writeln!(text, "    in use at exit: {}", words::as_valgrind(live));
    }
    let _ = writeln!(
        text,
        "  total heap usage: {} allocs, {} frees, at most {} bytes at once\n",
        grouped(sum(|end| end.allocations)),
        grouped(sum(|end| end.frees)),
        grouped(sum(|end| end.peak_live_bytes)),
    );
    if live.is_some_and(|live| live.blocks == 0) {
        text.push_str("All heap blocks were freed -- no leaks are possible\n\n");
    }
}

fn leak_summary(text: &mut String, report: &Report, style: &Style) {
    if report.leaks.is_empty() && report.suppressed.leaks == 0 {
        return;
    }
    text.push_str("LEAK SUMMARY:\n");
    text.extend(words::leak_sums(report).map(|sum| sum + "\n"));
    if style.has_more {
        text.push_str("Rerun with --leak-check=full to see details of leaked memory\n");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

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
