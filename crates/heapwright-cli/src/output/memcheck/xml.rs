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
//! the process, so both statuses come at once. Readers expect at least one frame in a stack: if
//! none was kept, there is one with address 0.

use super::{Entry, INTERPOSER, Style, UNNAMED, errors, leaks, shown};
use crate::output::xml::escaped;
use crate::report::calls::Call;
use crate::report::model::{Report, StackId};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// Writes the whole document.
pub(crate) fn write(report: &Report, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = String::new();
    head(&mut text, report, style);
    let (errors, leaks) = (errors(report), leaks(report));
    status(&mut text, "RUNNING", Duration::ZERO);
    let mut unique = 0..;
    for (number, error) in unique.by_ref().zip(&errors) {
        write_error(&mut text, report, style, number, error);
    }
    let checks = report.first().map(|process| &*process.checks).unwrap_or_default();
    let end = checks.iter().map(|check| check.ns).max().unwrap_or_default();
    status(&mut text, "FINISHED", Duration::from_nanos(end));
    for (number, leak) in (errors.len()..).zip(&leaks) {
        write_error(&mut text, report, style, number, leak);
    }
    text.push_str("<errorcounts>\n");
    for (number, error) in errors.iter().enumerate() {
        let count = error.times;
        let pair = format!("<count>{count}</count>\n    <unique>{number:#x}</unique>");
        let _ = writeln!(text, "  <pair>\n    {pair}\n  </pair>");
    }
    text.push_str("</errorcounts>\n\n<suppcounts>\n");
    for used in report.used.iter().filter(|used| used.times != 0) {
        let (count, name) = (used.times, escaped(&used.name));
        let pair = format!("<count>{count}</count>\n    <name>{name}</name>");
        let _ = writeln!(text, "  <pair>\n    {pair}\n  </pair>");
    }
    text.push_str("</suppcounts>\n\n</valgrindoutput>\n");
    out.write_all(text.as_bytes())
}

fn head(text: &mut String, report: &Report, style: &Style) {
    let first = report.first();
    text.push_str(
        "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n\
         <protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n\n<preamble>\n",
    );
    let version = env!("CARGO_PKG_VERSION");
    element(
        text,
        2,
        "line",
        &format!("Heapwright {version}, in the format of valgrind's memcheck"),
    );
    let notes = report.lines().map(|note| &**note);
    notes.for_each(|note| element(text, 2, "line", note));
    text.push_str("</preamble>\n\n");
    let (pid, parent) = first.map_or((0, 0), |process| (process.pid, process.parent));
    let _ = writeln!(text, "<pid>{pid}</pid>\n<ppid>{parent}</ppid>\n<tool>memcheck</tool>");
    for (variable, value) in &style.qualifiers {
        text.push_str("<logfilequalifier>\n");
        element(text, 2, "var", variable);
        element(text, 2, "value", value);
        text.push_str("</logfilequalifier>\n");
    }
    if let Some(comment) = &style.comment {
        let _ = writeln!(text, "<usercomment>{comment}</usercomment>");
    }
    text.push_str("\n<args>\n");
    words(text, "vargv", &style.command);
    let command = first.map(|process| match &*process.command {
        [] => vec![process.exe.clone()],
        words => words.to_vec(),
    });
    words(text, "argv", &command.unwrap_or_default());
    text.push_str("</args>\n\n");
}

fn words(text: &mut String, name: &str, words: &[String]) {
    let _ = writeln!(text, "  <{name}>");
    for (at, word) in words.iter().enumerate() {
        element(text, 4, if at == 0 { "exe" } else { "arg" }, word);
    }
    if words.is_empty() {
        element(text, 4, "exe", "");
    }
    let _ = writeln!(text, "  </{name}>");
}

fn element(text: &mut String, indent: usize, name: &str, value: &str) {
    let _ = writeln!(text, "{:indent$}<{name}>{}</{name}>", "", escaped(value));
}

/// Writes `<time>00:00:01:02.345 </time>`: days, hours, minutes, seconds.
fn status(text: &mut String, state: &str, time: Duration) {
    let (all, millis) = (time.as_secs(), time.subsec_millis());
    let (days, hours, minutes, seconds) = (all / 86_400, all / 3600 % 24, all / 60 % 60, all % 60);
    let _ = writeln!(
        text,
        "<status>\n  <state>{state}</state>\n  \
         <time>{days:02}:{hours:02}:{minutes:02}:{seconds:02}.{millis:03} </time>\n</status>\n"
    );
}

fn write_error(text: &mut String, report: &Report, style: &Style, unique: usize, entry: &Entry) {
    let _ = writeln!(
        text,
        "<error>\n  <unique>{unique:#x}</unique>\n  <tid>{}</tid>\n  <kind>{}</kind>",
        entry.thread, entry.kind
    );
    match entry.leaked {
        Some(leaked) => {
            text.push_str("  <xwhat>\n");
            element(text, 4, "text", &entry.what);
            element(text, 4, "leakedbytes", &leaked.bytes.to_string());
            element(text, 4, "leakedblocks", &leaked.blocks.to_string());
            text.push_str("  </xwhat>\n");
        }
        None => element(text, 2, "what", &entry.what),
    }
    stack(text, report, style, entry.function, entry.stack);
    for (sentence, id) in &entry.more {
        element(text, 2, "auxwhat", sentence);
        if *id != StackId::NONE {
            stack(text, report, style, None, *id);
        }
    }
    if let Some(block) = &entry.suppression {
        suppression(text, block);
    }
    text.push_str("</error>\n\n");
}

fn stack(text: &mut String, report: &Report, style: &Style, function: Option<&str>, id: StackId) {
    text.push_str("  <stack>\n");
    let mut frames = 0;
    if let Some(function) = function {
        let address = report.stacks.frames(id).next().map_or(0, |frame| frame.address);
        let _ = writeln!(text, "    <frame>\n      <ip>0x{address:X}</ip>");
        element(text, 6, "obj", INTERPOSER);
        element(text, 6, "fn", function);
        text.push_str("    </frame>\n");
        frames += 1;
    }
    for call in shown(report, id, style) {
        frame(text, &call);
        frames += 1;
    }
    if frames == 0 {
        text.push_str("    <frame>\n      <ip>0x0</ip>\n    </frame>\n");
    }
    text.push_str("  </stack>\n");
}

fn frame(text: &mut String, call: &Call<'_>) {
    let _ = writeln!(text, "    <frame>\n      <ip>0x{:X}</ip>", call.frame.address);
    if let Some(place) = &call.frame.place {
        element(text, 6, "obj", &String::from_utf8_lossy(&place.path));
    }
    if let Some(name) = call.function.and_then(|function| function.name.as_deref()) {
        element(text, 6, "fn", name);
    }
    if let Some(source) = call.source() {
        let (folder, file) = source.rsplit_once('/').unwrap_or(("", source));
        if !folder.is_empty() {
            element(text, 6, "dir", folder);
        }
        element(text, 6, "file", file);
        if let Some((_, line)) = call.line() {
            element(text, 6, "line", &line.to_string());
        }
    }
    text.push_str("    </frame>\n");
}

/// Writes a suppression of valgrind's text format as elements.
fn suppression(text: &mut String, block: &str) {
    let mut lines = block.lines().map(str::trim).filter(|line| !matches!(*line, "{" | "}"));
    text.push_str("  <suppression>\n");
    let name = lines.next().unwrap_or_default();
    // In XML valgrind writes this name without brackets.
    let name = if name == UNNAMED { UNNAMED.trim_matches(['<', '>']) } else { name };
    element(text, 4, "sname", name);
    element(text, 4, "skind", lines.next().unwrap_or_default());
    for line in lines {
        match line.split_once(':') {
            Some(("match-leak-kinds", kinds)) => {
                element(text, 4, "skaux", &format!("match-leak-kinds: {}", kinds.trim()));
            }
            Some((kind @ ("fun" | "obj"), name)) => {
                let _ = writeln!(text, "    <sframe> <{kind}>{}</{kind}> </sframe>", escaped(name));
            }
            _ => text.push_str("    <sframe> <obj>*</obj> </sframe>\n"),
        }
    }
    // The suppression must not contain the end of the section.
    let raw = block.replace("]]>", "]] >");
    let _ = writeln!(text, "    <rawtext>\n<![CDATA[\n{raw}]]>\n    </rawtext>\n  </suppression>");
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
        let mut text = String::new();
        status(&mut text, "RUNNING", Duration::from_millis(93_784_005));
        assert!(text.contains("<time>01:02:03:04.005 </time>"), "{text}");
    }
}
