//! A debug record, in the shape in which the library itself tells of mistakes
//! on stderr, and in which tools know them from sanitizers.
//!
//! ```text
//! ==4242==ERROR: heapwright: double-free: free of a 40-byte block that was freed before
//!     here, thread 1:
//!     #0 0x55d0c0de in twice file.c:12 (/path/prog+0x10de) (BuildId: abcdef)
//!     freed by thread 1, 3 operations earlier:
//!     #0 ...
//!
//! ==4242== prog: 1 finding, 17 blocks allocated, 3 freed, at most 1.5 KiB at once
//! ==4242== it ended by exit
//! ```

use crate::output::mistakes::{hex, printable};
use crate::output::{Look, Mistake, Mistakes, units};
use crate::symbols::{Frame, Function};
use heapwright_record::debug::{Ending, Text};
use std::fmt::Write;

/// The whole record.
pub(crate) fn report(mistakes: &Mistakes<'_>, look: Look) -> String {
    let mut out = String::new();
    let record = &mistakes.record;
    let pid = record.process.map_or_else(|| String::from("?"), |process| process.pid.to_string());
    for mistake in &mistakes.findings {
        finding(&mut out, mistakes, mistake, &pid, look);
        out.push('\n');
    }
    let mut line = |text: &str| {
        let _ = writeln!(out, "=={pid}== {text}");
    };
    for note in &record.notes {
        line(&format!("note: {}", printable(*note)));
    }
    line(&summary(mistakes));
    line(ended(record.end.map(|end| end.ending)));
    if record.skipped != 0 {
        let entries = units::counted(record.skipped, "entry").replace("entrys", "entries");
        line(&format!("{entries} of a newer version left out"));
    }
    if let Some(problem) = record.problem {
        line(&format!("the record is damaged: {problem}"));
    }
    out
}

fn finding(out: &mut String, mistakes: &Mistakes<'_>, mistake: &Mistake, pid: &str, look: Look) {
    let heading = mistake.finding.kind.heading();
    let heading = format!("=={pid}==ERROR: heapwright: {heading}: {}", mistake.sentence());
    let _ = writeln!(out, "{}", look.strong(&heading));
    for happened in &mistake.moments {
        let name = mistakes.thread(happened.moment.thread);
        let _ = writeln!(out, "    {}", mistake.title(happened.role, &name));
        let mut number = 0;
        for frame in &happened.frames {
            for line in lines(frame) {
                let _ = writeln!(out, "    #{number} {line}");
                number += 1;
            }
        }
        if happened.cut {
            let _ = writeln!(out, "    (more frames were not kept)");
        }
    }
}

/// A frame, in as many lines as functions are in it.
fn lines(frame: &Frame) -> Vec<String> {
    let mut place = String::new();
    if let Some(at) = &frame.place {
        let _ = write!(place, " ({}+{:#x})", printable(Text::from(&*at.path)), at.offset);
        if !at.build_id.is_empty() {
            let _ = write!(place, " (BuildId: {})", hex(&at.build_id));
        }
    }
    let nothing = [Function::default()];
    let functions = if frame.functions.is_empty() { &nothing[..] } else { &frame.functions };
    functions
        .iter()
        .map(|function| {
            let mut line = format!("{:#x}", frame.address);
            if let Some(name) = &function.name {
                let _ = write!(line, " in {}", printable(Text::from(&**name)));
            }
            if let Some(source) = &function.source {
                let _ = write!(line, " {}", printable(Text::from(&**source)));
                if let Some(number) = function.line {
                    let _ = write!(line, ":{number}");
                }
            }
            line + &place
        })
        .collect()
}

/// Who it was, and what was found.
fn summary(mistakes: &Mistakes<'_>) -> String {
    let record = &mistakes.record;
    let command = mistakes.command().join(" ");
    let exe = record.process.map(|process| printable(process.exe)).unwrap_or_default();
    let mut line = match (&*command, &*exe) {
        ("", "") => String::from("a process"),
        ("", exe) => exe.to_owned(),
        (command, _) => command.to_owned(),
    };
    let found = match mistakes.findings.len() {
        0 => String::from("no findings"),
        number => units::counted(number as u64, "finding"),
    };
    let _ = write!(line, ": {found}");
    if let Some(end) = record.end {
        let all = u64::from(end.findings);
        if all > mistakes.findings.len() as u64 {
            let _ = write!(line, " of {} kept", units::count(all));
        }
        let _ = write!(
            line,
            ", {} allocated, {} freed, at most {} at once",
            units::counted(end.allocations, "block"),
            units::count(end.frees),
            units::bytes(end.peak_live_bytes)
        );
    }
    line
}

fn ended(ending: Option<Ending>) -> &'static str {
    match ending {
        None => "it did not say how it ended: it was killed, or is still running",
        Some(Ending::Exit) => "it ended by exit",
        Some(Ending::Abort) => "it ended by abort",
        Some(Ending::Exec) => "it became another program",
        Some(Ending::ForkChild) => "it was a forked child that became no other program",
        Some(_) => "it ended in a way that this version does not know",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::output::Happened;
    use crate::record::Record;
    use crate::symbols::Place;
    use heapwright_record::debug::{
        Call, End, Finding, FindingKind, Moment, Problem, Process, Role, Thread,
    };

    /// One double free, with one stack.
    pub(crate) fn example() -> Mistakes<'static> {
        let moment = |stack, sequence| Moment { stack, thread: 1, sequence, ns: 5 };
        let finding = Finding {
            kind: FindingKind::DoubleFree,
            call: Call::Free,
            pointer: 0x7000_1000,
            block: 0x7000_1000,
            size: 40,
            here: moment(1, 20),
            freed: moment(0, 17),
            allocated: Moment::default(),
            ..Finding::default()
        };
        let function = |name: &str, line| Function {
            name: Some(name.into()),
            source: Some("file.c".into()),
            line: Some(line),
        };
        let place = |offset| Place {
            path: b"/path/prog".to_vec(),
            offset,
            build_id: vec![0xab, 0xcd, 0xef],
        };
        let frames = vec![
            Frame {
                address: 0x5500_10de,
                place: Some(place(0x10de)),
                functions: vec![function("twice", 12), function("main", 20)],
            },
            Frame { address: 0x5500_2000, place: Some(place(0x2000)), functions: Vec::new() },
            Frame { address: 0x99, place: None, functions: Vec::new() },
        ];
        let happened = |role, moment, frames| Happened { role, moment, frames, cut: false };
        let process = Process {
            pid: 4242,
            parent: 1,
            time: 1_700_000_000_000_000_000,
            page_size: 4096,
            version: "0.1.0".into(),
            exe: "/path/prog".into(),
            options: "mode=debug".into(),
            command: "prog\0-x\0".into(),
        };
        let end = End {
            findings: 1,
            allocations: 17,
            frees: 3,
            peak_live_bytes: 1536,
            ending: Ending::Exit,
        };
        Mistakes {
            record: Record { process: Some(process), end: Some(end), ..Record::default() },
            findings: vec![Mistake {
                finding,
                moments: vec![
                    happened(Role::Here, finding.here, frames),
                    happened(Role::Freed, finding.freed, Vec::new()),
                ],
            }],
        }
    }

    #[test]
    fn a_finding_is_told_as_the_library_tells_it() {
        assert_eq!(
            report(&example(), Look::PLAIN),
            "\
==4242==ERROR: heapwright: double-free: free of a 40-byte block that was freed before
    here, thread 1:
    #0 0x550010de in twice file.c:12 (/path/prog+0x10de) (BuildId: abcdef)
    #1 0x550010de in main file.c:20 (/path/prog+0x10de) (BuildId: abcdef)
    #2 0x55002000 (/path/prog+0x2000) (BuildId: abcdef)
    #3 0x99
    freed by thread 1, 3 operations earlier (no stack was kept)

==4242== prog -x: 1 finding, 17 blocks allocated, 3 freed, at most 1.5 KiB at once
==4242== it ended by exit
"
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut mistakes = example();
        let thread = Thread { number: 1, tid: 7, name: "worker\n\x1b[31m".into() };
        mistakes.record.threads.insert(1, thread);
        mistakes.record.end = None;
        mistakes.record.problem = Some(Problem::Checksum(99));
        mistakes.record.skipped = 2;
        mistakes.record.notes = vec!["hello".into()];
        mistakes.findings[0].moments[0].cut = true;
        let text = report(&mistakes, Look::PLAIN);
        for line in [
            "    here, thread 1 (worker\\n\\u{1b}[31m):",
            "    (more frames were not kept)",
            "==4242== note: hello",
            "==4242== prog -x: 1 finding",
            "==4242== it did not say how it ended: it was killed, or is still running",
            "==4242== 2 entries of a newer version left out",
            "==4242== the record is damaged: checksum at byte 99 does not match",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let nothing = Mistakes { record: Record::default(), findings: Vec::new() };
        assert_eq!(
            report(&nothing, Look::PLAIN).lines().next(),
            Some("==?== a process: no findings")
        );
    }
}
