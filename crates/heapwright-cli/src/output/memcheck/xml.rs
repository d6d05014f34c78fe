//! Valgrind's XML, protocol 4 for memcheck, by its `xml-output-protocol4.txt`.
//!
//! ```text
//! valgrindoutput
//!   protocolversion protocoltool preamble pid ppid tool logfilequalifier* usercomment? args
//!   status RUNNING, error*, status FINISHED, error* (leaks), errorcounts, suppcounts
//! error   unique tid kind what|xwhat stack (auxwhat stack?)* suppression?
//! frame   ip obj? fn? dir? file? line?
//! ```
//!
//! There is one document for a report, with the first process's pid. It is written after the end of
//! the process, so both statuses come together. A stack without frames gets one with address 0.

use super::{Entry, INTERPOSER, Style, UNNAMED, errors, leaks, shown};
use crate::output::xml::escaped;
use crate::report::calls::Call;
use crate::report::model::Report;
use askama::Template;
use std::io;
use std::time::Duration;

type Element = (&'static str, String);

#[derive(Template)]
#[template(path = "memcheck.xml", escape = "none")]
struct Output<'a> {
    report: &'a Report,
    style: &'a Style,
    pid: u32,
    parent: u32,
    /// This command's line and the program's: each with its element, the program, the arguments.
    args: [(&'static str, String, Vec<String>); 2],
    errors: Vec<Error<'a>>,
    leaks: Vec<Error<'a>>,
    begin: String,
    end: String,
}

#[derive(Template)]
#[template(path = "memcheck-error.xml", escape = "none")]
struct Error<'a> {
    unique: String,
    entry: &'a Entry,
    /// Sentences and the frames of their stacks; the first sentence is empty.
    stacks: Vec<(&'a str, Vec<Vec<Element>>)>,
    suppression: Vec<Element>,
}

pub(crate) fn write(report: &Report, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let first = report.first();
    let command = first.map_or_else(Vec::new, |process| match &*process.command {
        [] => vec![process.exe.clone()],
        words => words.to_vec(),
    });
    let line = |name, words: &[String]| {
        let (program, arguments) = words
            .split_first()
            .map_or((String::new(), &[][..]), |split| (split.0.clone(), split.1));
        (name, program, arguments.to_vec())
    };
    let (errors, leaks) = (errors(report), leaks(report));
    let error = |(number, entry)| Error::of(report, style, number, entry);
    let checks = first.map(|process| &*process.checks).unwrap_or_default();
    let end = checks.iter().map(|check| check.ns).max().unwrap_or_default();
    let output = Output {
        report,
        style,
        pid: report.pid(),
        parent: first.map_or(0, |process| process.parent),
        args: [line("vargv", &style.command), line("argv", &command)],
        leaks: (errors.len()..).zip(&leaks).map(error).collect(),
        errors: (0..).zip(&errors).map(error).collect(),
        begin: time(Duration::ZERO),
        end: time(Duration::from_nanos(end)),
    };
    writeln!(out, "{}", output.render().map_err(io::Error::other)?)
}

/// Formats a time as days, hours, minutes and seconds: `00:00:01:02.345`.
fn time(time: Duration) -> String {
    let (all, millis) = (time.as_secs(), time.subsec_millis());
    let (days, hours, minutes, seconds) = (all / 86_400, all / 3600 % 24, all / 60 % 60, all % 60);
    format!("{days:02}:{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

impl<'a> Error<'a> {
    fn of(report: &Report, style: &Style, number: usize, entry: &'a Entry) -> Self {
        let stack = |id| shown(report, id, style).map(|call| frame(&call)).collect::<Vec<_>>();
        let address = report.stacks.frames(entry.stack).next().map_or(0, |frame| frame.address);
        let interposed = entry.function.map(|function| {
            let function = [("obj", INTERPOSER.to_owned()), ("fn", function.to_owned())];
            [vec![("ip", format!("0x{address:X}"))], function.into()].concat()
        });
        let mut frames: Vec<_> = interposed.into_iter().chain(stack(entry.stack)).collect();
        if frames.is_empty() {
            frames.push(vec![("ip", "0x0".to_owned())]);
        }
        let more = entry.more.iter().map(|(sentence, id)| (&**sentence, stack(*id)));
        Self {
            unique: format!("{number:#x}"),
            entry,
            stacks: std::iter::once(("", frames)).chain(more).collect(),
            suppression: entry.suppression.as_deref().map(suppression).unwrap_or_default(),
        }
    }
}

fn frame(call: &Call<'_>) -> Vec<Element> {
    let mut frame = vec![("ip", format!("0x{:X}", call.frame.address))];
    let place = call.frame.place.as_ref();
    frame.extend(place.map(|place| ("obj", String::from_utf8_lossy(&place.path).into_owned())));
    let name = call.function.and_then(|function| function.name.clone());
    frame.extend(name.map(|name| ("fn", name)));
    if let Some(source) = call.source() {
        let (folder, file) = source.rsplit_once('/').unwrap_or(("", source));
        frame.extend((!folder.is_empty()).then(|| ("dir", folder.to_owned())));
        frame.push(("file", file.to_owned()));
        frame.extend(call.line().map(|(_, line)| ("line", line.to_string())));
    }
    frame
}

/// Returns a suppression of valgrind's text format as elements.
fn suppression(block: &str) -> Vec<Element> {
    let mut lines = block.lines().map(str::trim).filter(|line| !matches!(*line, "{" | "}"));
    let name = lines.next().unwrap_or_default();
    // In XML valgrind writes this name without brackets.
    let name = if name == UNNAMED { UNNAMED.trim_matches(['<', '>']) } else { name };
    let kind = lines.next().unwrap_or_default();
    let line = |line: &str| match line.split_once(':') {
        Some(("match-leak-kinds", kinds)) => {
            ("skaux", format!("match-leak-kinds: {}", kinds.trim()))
        }
        Some(("fun", name)) => ("fun", name.to_owned()),
        Some(("obj", name)) => ("obj", name.to_owned()),
        _ => ("obj", "*".to_owned()),
    };
    let named = [("sname", name.to_owned()), ("skind", kind.to_owned())];
    named.into_iter().chain(lines.map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::memcheck::protocol;
    use crate::report::model::{Ready, Wanted};
    use crate::report::sample;
    use heapwright_record::debug::Reach;

    #[test]
    fn the_protocol_is_read_strictly() {
        let details = vec![Reach::Definite];
        let wanted = Wanted { details, suppressions: Ready::Block, ..Wanted::default() };
        let mut out = Vec::new();
        let report = Report { wanted, ..sample::report() };
        write(&report, &Style::default(), &mut out).expect("is written");
        let right = String::from_utf8(out).expect("is text");
        assert_eq!(protocol::check(&right), Ok(()));
        for (from, to) in [
            ("<?xml version=\"1.0\"?>", "<?xml version=\"1.1\"?>"),
            ("<protocolversion>4<", "<protocolversion>6<"),
            ("<ppid>4000</ppid>\n", ""),
            ("<tool>memcheck</tool>", "<tool name=\"memcheck\"/>"),
            ("<state>RUNNING<", "<state>FINISHED<"),
            ("  <tid>2</tid>\n", ""),
            ("<kind>InvalidRead<", "<kind>InvalidRead2<"),
            ("<kind>InvalidRead<", "<kind>Leak_PossiblyLost<"),
            ("<what>Invalid read", "<what>Invalid\nread"),
            ("<unique>0x1<", "<unique>0x0<"),
            ("<unique>0x0<", "<unique>0<"),
            ("<leakedbytes>", "<leakedbytes>-"),
            ("<leakedblocks>", "<leakedblocks>many"),
            ("<frame>\n      <ip>", "<frame>\n      <at>0</at>\n      <ip>"),
            ("    <sframe>", "    ...<sframe>"),
            ("<![CDATA[", ""),
            ("<errorcounts>", "<errorcounts><pair><count>1</count><unique>0x99</unique></pair>"),
            ("<suppcounts>", "<suppcounts>none"),
            ("</valgrindoutput>", "&nbsp;</valgrindoutput>"),
            ("</valgrindoutput>\n", ""),
        ] {
            let wrong = right.replacen(from, to, 1);
            assert!(wrong != right, "{from}");
            assert!(protocol::check(&wrong).is_err(), "{from} -> {to}");
        }
    }

    #[test]
    fn times_are_days_to_milliseconds() {
        assert_eq!(time(Duration::from_millis(93_784_005)), "01:02:03:04.005");
    }
}
