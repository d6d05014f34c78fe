//! A report in the form of the library's own messages on stderr, which resemble AddressSanitizer's
//! and valgrind's.
//!
//! ```text
//! ==4242==ERROR: heapwright: double-free: free of a 40-byte block that was freed before
//!     here, thread 1:
//!     #0 0x55d0c0de in twice file.c:12:5 (/path/prog+0x10de) (BuildId: abcdef)
//!          11 |     free(p);
//!     >    12 |     free(p);
//!          13 | }
//!     freed by thread 1, 3 operations earlier:
//!     #0 ...
//!     found 3 times
//!     to suppress it: double-free:twice@prog
//! ==4242==LEAK: heapwright: definitely-lost: 40 bytes in 1 block (and ...), allocated ...
//! Direct leak of 40 bytes in 1 object allocated from:
//!     #0 ...
//!
//! ==4242== prog: 17 blocks allocated, 3 freed, at most 1.5 KiB at once
//! ==4242== it exited with code 1
//! ==4242== LEAK SUMMARY:
//! ==4242==    definitely lost: 40 bytes in 1 blocks
//! ...
//! ==4242== ERROR SUMMARY: 3 errors from 1 contexts (suppressed: 0 from 0)
//! ```

use crate::output::sentences::{self, duration};
use crate::output::words::{self, hex, printable};
use crate::output::{Look, units};
use crate::process;
use crate::report::calls::look_at;
use crate::report::innermost::Innermost;
use crate::report::model::{
    Amount, Error, Fate, Growth, Leak, Path, Process, Ready, Report, StackId,
};
use crate::report::suppressions::is_main;
use crate::symbols::plumbing::is_plumbing;
use crate::symbols::{Frame, Function};
use heapwright_record::debug::{Access, Call, End, Ending, FindingKind, Reach, Role, Root, Text};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::io;

const LISTED: usize = 20;

/// The most frames behind `main` that are printed. There are three in C, and twenty in Rust.
const STARTS: usize = 1;

/// Writes one finding at a time, because there may be many.
pub(crate) fn write(report: &Report, to: &mut dyn io::Write, look: Look) -> io::Result<()> {
    let mut out = String::new();
    let mut flush = |out: &mut String| {
        out.push('\n');
        let written = to.write_all(out.as_bytes());
        out.clear();
        written
    };
    if !report.unseen.is_empty() {
        unseen(&mut out, report, look);
        flush(&mut out)?;
    }
    for error in &report.errors {
        write_error(&mut out, report, error, look);
        flush(&mut out)?;
    }
    for leak in detailed_leaks(report).take(report.wanted.most) {
        write_leak(&mut out, report, leak, look);
        flush(&mut out)?;
    }
    let groups = detailed_leaks(report).count();
    if let Some(more @ 1..) = groups.checked_sub(report.wanted.most) {
        let more = units::counted(more as u64, "smaller group");
        let _ = writeln!(out, "{more} of leaks are only in the sums (see --limit)");
        flush(&mut out)?;
    }
    for growth in &report.growths {
        write_growth(&mut out, report, growth, look);
        flush(&mut out)?;
    }
    let is_only_profiled =
        report.checks().next().is_some() && report.checks().all(|check| check.profile.is_some());
    super::profile::write(&mut out, report, look);
    if is_only_profiled {
        notes(&mut out, report);
        modules(&mut out, report);
    } else {
        summary(&mut out, report);
    }
    to.write_all(out.as_bytes())
}

pub(in crate::output) fn write_error(out: &mut String, report: &Report, error: &Error, look: Look) {
    let pid = mark(report.processes.get(error.process));
    let heading = error.finding.kind.heading();
    let sentence = words::happened(error);
    let line = format!("{pid}ERROR: heapwright: {heading}: {sentence}");
    let _ = writeln!(out, "{}", look.strong(&line));
    for happened in &error.moments {
        let _ = writeln!(out, "    {}", words::title(&error.finding, happened));
        stack(out, report, happened.stack);
    }
    if reads_zeros(error) {
        out.push_str(
            "    the program read zeros there and went on: guarded memory has no contents\n",
        );
    }
    again(out, error.times, error.processes);
    let at_fault = words::fault_stack(error);
    let (kind, block) = (heading, words::block_kind(error.finding.kind));
    ready(out, report, kind, &block, None, &words::innermost(error, at_fault), at_fault);
}

/// Returns whether a guard caught a read, after which the program went on with zeros.
fn reads_zeros(error: &Error) -> bool {
    let finding = &error.finding;
    finding.call == Call::Access && finding.access != Access::Write
}

/// Returns whether a use after free may have lost these blocks: the program then read zeros from a
/// freed block of the same place, such as a list's next node.
fn follows_a_misuse(report: &Report, leak: &Leak) -> bool {
    let is_cause = |error: &&Error| {
        error.finding.kind == FindingKind::UseAfterFree
            && error.process == leak.process
            && reads_zeros(error)
    };
    let mut causes = report.errors.iter().filter(is_cause).flat_map(|error| &error.moments);
    leak.stack != StackId::NONE
        && matches!(leak.reach, Reach::Definite | Reach::Indirect)
        && causes.any(|moment| moment.role == Role::Allocated && moment.stack == leak.stack)
}

fn again(out: &mut String, times: u64, processes: usize) {
    let mut parts = Vec::new();
    if times > 1 {
        parts.push(units::counted(times, "time"));
    }
    if processes > 1 {
        parts.push(format!("in {processes} processes"));
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "    found {}", parts.join(" "));
    }
}

fn ready(
    out: &mut String,
    report: &Report,
    kind: &str,
    block: &str,
    leak: Option<Reach>,
    innermost: &[String],
    stack: StackId,
) {
    match report.wanted.suppressions {
        Ready::None => {}
        Ready::Line => {
            if let Some(line) = words::line_for(report, kind, stack) {
                let _ = writeln!(out, "    to suppress it: {line}");
            } else if stack != StackId::NONE {
                out.push_str(
                    "    to suppress it: no function has a name here; for a block of its files: \
                     --gen-suppressions valgrind\n",
                );
            }
        }
        Ready::Block => {
            let name = format!("{kind} in {}", report.first().map(program).unwrap_or_default());
            if let Some(block) = words::block_for(report, &name, block, leak, innermost, stack) {
                let _ = write!(out, "{block}");
            }
        }
    }
}

pub(in crate::output) fn write_leak(out: &mut String, report: &Report, leak: &Leak, look: Look) {
    let pid = mark(report.processes.get(leak.process));
    let mut line = format!("{pid}LEAK: heapwright: {}: {}", leak.reach.word(), amount(leak.lost));
    if leak.indirect != Amount::default() {
        let _ = write!(line, " (and {} that only they led to)", amount(leak.indirect));
    }
    if leak.oldest_age_ns != 0 {
        let [youngest, oldest] = [leak.youngest_age_ns, leak.oldest_age_ns].map(duration);
        let ages = sentences::range(&youngest, &oldest);
        let _ = write!(line, ", allocated {ages} before the check");
    }
    let _ = writeln!(out, "{}", look.strong(&line));
    let _ = writeln!(
        out,
        "{} {} in {} allocated from:",
        words::directly(leak),
        units::counted(leak.lost.bytes, "byte"),
        units::counted(leak.lost.blocks, "object"),
    );
    if leak.stack == StackId::NONE {
        let _ = writeln!(out, "    (no stack was kept)");
    }
    stack(out, report, leak.stack);
    if let Some(path) = &leak.path {
        chain(out, report, leak, path);
    }
    if follows_a_misuse(report, leak) {
        out.push_str(
            "    may be a consequence: the program read zeros from a freed block of this place, \
             so it lost what that block led to\n",
        );
    }
    again(out, 1, leak.processes);
    let innermost = Innermost::Allocated(leak.origin).shown();
    ready(out, report, "leak", words::LEAK_BLOCK, Some(leak.reach), &innermost, leak.stack);
}

fn chain(out: &mut String, report: &Report, leak: &Leak, path: &Path) {
    let _ = write!(out, "    {}", if leak.reach == Reach::Possible { "only " } else { "" });
    let thread = path.thread.as_ref().map(|(number, name)| match &**name {
        "" => format!("thread {number}"),
        name => format!("thread {number} ({name})"),
    });
    let of_thread = thread.map(|thread| format!(" of {thread}")).unwrap_or_default();
    let root = match path.root {
        Root::Globals => {
            let variable = match &path.name {
                Some(name) => format!("global `{name}`"),
                None => format!("data at {:#x}", path.address),
            };
            match &path.module {
                Some(module) => format!("{variable} of {module}"),
                None => variable,
            }
        }
        Root::Stack => format!("the stack{of_thread} at {:#x}", path.address),
        Root::Registers => format!("the registers{of_thread}"),
        Root::ThreadLocal => format!("thread-local data{of_thread} at {:#x}", path.address),
        Root::Mapping => format!("memory that the program mapped, at {:#x}", path.address),
        Root::OtherHeap => format!("another heap, a pool or an arena, at {:#x}", path.address),
        _ => format!("something at {:#x}", path.address),
    };
    let _ = write!(out, "reachable from {root}");
    for (number, step) in path.steps.iter().enumerate() {
        let function = look_at(&report.stacks, step.stack).and_then(|call| call.function);
        let place =
            function.map(|function| format!(" allocated in {}", words::described(function)));
        let (size, offset) = (step.size, step.offset);
        let place = place.unwrap_or_default();
        let join = if number == 0 { ", via" } else { ",\n        then" };
        let _ = write!(out, "{join} a {size}-byte block (offset {offset}){place}");
    }
    out.push('\n');
}

fn write_growth(out: &mut String, report: &Report, growth: &Growth, look: Look) {
    let pid = mark(report.processes.get(growth.process));
    let (first, last) = match (growth.points.first(), growth.points.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => return,
    };
    let line = format!(
        "{pid}GROWTH: heapwright: live blocks grow by {} a second, from {} to {} in {} ({:.0} % of later counts are higher)",
        units::bytes(growth.slope.max(0.0) as u64),
        units::bytes(first.bytes),
        units::bytes(last.bytes),
        duration(last.ns.saturating_sub(first.ns)),
        // Tau: the share of pairs that rise minus the share that fall.
        (growth.tau + 1.0) * 50.0,
    );
    let _ = writeln!(out, "{}", look.strong(&line));
    let _ = writeln!(out, "Live blocks allocated from:");
    stack(out, report, growth.stack);
    ready(out, report, "growth", "Heapwright:growth", None, &[], growth.stack);
}

/// Writes a stack's frames, and the source around the innermost line. Functions that allocate for
/// others become one line, and so does a long start of a program.
pub(in crate::output) fn stack(out: &mut String, report: &Report, stack: StackId) {
    let nothing = Function::default();
    let all: Vec<(&Frame, &Function)> = report
        .stacks
        .frames(stack)
        .flat_map(|frame| match &*frame.functions {
            [] => vec![(frame, &nothing)],
            functions => functions.iter().map(|function| (frame, function)).collect(),
        })
        .collect();
    let first = all.iter().position(|(_, function)| !is_plumbing(function)).unwrap_or_default();
    if first > 1 {
        let (_, function) = all[first - 1];
        let name = function.name.as_deref().map(words::printable_text).unwrap_or_default();
        let _ =
            writeln!(out, "    #0 to #{} allocator and standard library, up to {name}", first - 1);
    }
    let (folded, mut shown) = (if first > 1 { first } else { 0 }, false);
    let position = |is: &dyn Fn(&str) -> bool| {
        all.iter().position(|(_, function)| function.name.as_deref().is_some_and(is))
    };
    let main = position(&is_main);
    // The start of Rust's threads and tests ends in a function of this name.
    let begins = position(&|name| name.contains("__rust_begin_short_backtrace"));
    let end = main.map(|main| main + 1).into_iter().chain(begins).min().unwrap_or(all.len());
    let end = if all.len() - end > STARTS { end } else { all.len() };
    for (number, (frame, function)) in all.iter().enumerate().take(end).skip(folded) {
        let _ = writeln!(out, "    #{number} {}", line(frame, function));
        if !shown {
            shown = source(out, report, function);
        }
    }
    if end < all.len() {
        let what = if main.is_some() { "program" } else { "thread" };
        let _ = writeln!(out, "    #{end} to #{} start the {what}", all.len() - 1);
    }
    if report.cut.contains(&stack) {
        let _ = writeln!(out, "    (more frames were not kept: see --frames)");
    }
}

/// Writes the lines around a function's line. Returns whether there are any.
fn source(out: &mut String, report: &Report, function: &Function) -> bool {
    let place = function.source.clone().zip(function.line);
    let Some((lines, (_, middle))) =
        place.and_then(|place| Some((report.sources.get(&place)?, place)))
    else {
        return false;
    };
    for (number, text) in lines {
        let mark = if *number == middle { '>' } else { ' ' };
        let line = format!("    {mark} {number:>5} | {text}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    true
}

fn line(frame: &Frame, function: &Function) -> String {
    let mut line = format!("{:#x}", frame.address);
    let described = words::described(function);
    if !described.is_empty() {
        let word = if function.name.is_some() { " in " } else { " " };
        let _ = write!(line, "{word}{described}");
    }
    if let Some(at) = &frame.place {
        let _ = write!(line, " ({}+{:#x})", printable(Text::from(&*at.path)), at.offset);
    }
    line
}

fn unseen(out: &mut String, report: &Report, look: Look) {
    let first = lead(report.pid());
    for line in report.unseen.iter().take(LISTED) {
        let line = format!("{first}INCOMPLETE: {line}");
        let _ = writeln!(out, "{}", look.strong(&line));
    }
    if let Some(more @ 1..) = report.unseen.len().checked_sub(LISTED) {
        let more = units::count(more as u64);
        let _ = writeln!(out, "{first}INCOMPLETE: the same of {more} more processes");
    }
}

fn notes(out: &mut String, report: &Report) {
    let first = lead(report.pid());
    for note in &report.notes {
        let _ = writeln!(out, "{first}note: {note}");
    }
}

/// Returns the leaks that are printed with their stacks, if there are not too many.
fn detailed_leaks(report: &Report) -> impl Iterator<Item = &Leak> {
    report.leaks.iter().filter(|leak| report.wanted.details.contains(&leak.reach))
}

/// Writes the build-ids of the modules in the printed stacks.
fn modules(out: &mut String, report: &Report) {
    let first = lead(report.pid());
    let errors = report.errors.iter().flat_map(|error| &error.moments).map(|moment| moment.stack);
    let leaks = detailed_leaks(report).take(report.wanted.most).map(|leak| leak.stack);
    let growths = report.growths.iter().map(|growth| growth.stack);
    let findings = errors.chain(leaks).chain(growths).flat_map(|stack| report.stacks.frames(stack));
    let has_profile = report.checks().any(|check| check.profile.is_some());
    let profiled = report.stacks.frames.iter().filter(|_| has_profile);
    let places = findings.chain(profiled).filter_map(|frame| frame.place.as_ref());
    let all: BTreeSet<_> = places.map(|place| (&place.path, &place.build_id)).collect();
    for (path, build_id) in all.into_iter().filter(|(_, build_id)| !build_id.is_empty()) {
        let path = printable(Text::from(&**path));
        let _ = writeln!(out, "{first}BuildId {}: {path}", hex(build_id));
    }
}

fn summary(out: &mut String, report: &Report) {
    notes(out, report);
    modules(out, report);
    let first = lead(report.pid());
    let listed = listed(report);
    for process in listed.iter().take(LISTED) {
        let pid = lead(process.pid);
        let _ = writeln!(out, "{pid}{}", life(process));
        let _ = writeln!(out, "{pid}{}{}", ended(process), whether_by_access(report, process));
    }
    let mut line = |text: &str| {
        let _ = writeln!(out, "{first}{text}");
    };
    if report.processes.len() > 1 {
        let ends = || report.processes.iter().filter_map(|process| process.end);
        let total =
            |of: fn(&End) -> u64| ends().fold(0_u64, |sum, end| sum.saturating_add(of(&end)));
        line(&format!(
            "{} processes in all: {} allocated, {} freed",
            units::count(report.processes.len() as u64),
            units::counted(total(|end| end.allocations), "block"),
            units::count(total(|end| end.frees)),
        ));
    }
    leak_summary(report, &mut line);
    if report.used.iter().any(|used| used.times != 0) {
        line("Suppressions used:");
        for used in report.used.iter().filter(|used| used.times != 0) {
            let mut text = format!(
                "  {:>6} {} ({}:{})",
                units::count(used.times),
                used.name,
                used.file,
                used.line
            );
            if used.amount != Amount::default() {
                let _ = write!(text, ", {}", amount(used.amount));
            }
            line(&text);
            if used.causes.len() > 1 {
                let causes = units::counted(used.causes.len() as u64, "different cause");
                line(&format!("         WARNING: it hides {causes}; one for each says more"));
            }
        }
    }
    if report.unreported.errors != 0 {
        line(&format!(
            "the report shows the first {} of {} different errors (see --limit)",
            units::count(report.errors.len() as u64),
            units::count(report.errors.len() as u64 + report.unreported.errors),
        ));
    }
    if report.unreported.leaks != 0 {
        line(&format!(
            "{} of blocks shown as one: there are so many",
            units::counted(report.unreported.leaks, "small group")
        ));
    }
    if report.unwritten != 0 {
        let were = if report.unwritten == 1 { "was a repetition" } else { "were repetitions" };
        let more = units::counted(report.unwritten, "more finding");
        line(&format!("{more} {were}, or not written to the record"));
    }
    let (times, contexts) = report.counted(&[Reach::Definite]);
    let hidden = &report.suppressed;
    let [times, contexts, hidden_times, hidden] =
        [times, contexts, hidden.times + hidden.leaks, hidden.errors + hidden.leaks]
            .map(units::count);
    line(&format!(
        "ERROR SUMMARY: {times} errors from {contexts} contexts (suppressed: {hidden_times} from \
         {hidden})"
    ));
}

/// Returns the processes to list: the only one, or those with findings or an unusual end.
fn listed(report: &Report) -> Vec<&Process> {
    let reported: HashSet<usize> = (report.errors.iter().map(|error| error.process))
        .chain(report.leaks.iter().filter(|leak| leak.is_definite()).map(|leak| leak.process))
        .chain(report.growths.iter().map(|growth| growth.process))
        .collect();
    let is_well = |process: &Process| {
        let ending = process.end.map(|end| end.ending);
        let Some(ending) = ending else { return process.became_unchecked() };
        matches!(ending, Ending::Exit | Ending::Exec | Ending::ForkChild | Ending::Signal)
    };
    let all = report.processes.iter().enumerate();
    let alone = report.processes.len() == 1;
    let is_listed =
        |at: usize, process: &Process| alone || reported.contains(&at) || !is_well(process);
    all.filter(|(at, process)| is_listed(*at, process)).map(|(_, process)| process).collect()
}

fn leak_summary(report: &Report, line: &mut dyn FnMut(&str)) {
    let checks = report.checks().filter(|check| check.is_whole());
    if checks.clone().next().is_none() && report.leaks.is_empty() {
        return;
    }
    line("LEAK SUMMARY:");
    let is_hidden = !report.wanted.details.contains(&Reach::Possible)
        && report.total(Reach::Possible) != Amount::default();
    for sum in words::leak_sums(report) {
        let more = if is_hidden && sum.contains("possibly lost") {
            " (listed by --show possible)"
        } else {
            ""
        };
        line(&format!("{sum}{more}"));
    }
    let silent: u64 = checks.map(|check| u64::from(check.silent)).sum();
    if silent != 0 {
        line(&format!(
            "{} did not report their registers: what only those lead to is possibly lost",
            units::counted(silent, "thread")
        ));
    }
}

/// Formats an amount as `40 bytes in 1 block`.
pub(in crate::output) fn amount(Amount { blocks, bytes }: Amount) -> String {
    format!("{} in {}", units::counted(bytes, "byte"), units::counted(blocks, "block"))
}

/// Returns `==4242==`, or nothing if the process's number is unknown.
fn mark(process: Option<&Process>) -> String {
    match process {
        Some(process) if process.pid != 0 => format!("=={}==", process.pid),
        _ => String::new(),
    }
}

/// Returns the beginning of a line about a process or the whole run.
fn lead(pid: u32) -> String {
    if pid == 0 { String::from("heapwright: ") } else { format!("=={pid}== ") }
}

/// Returns the command line, or other known facts.
fn program(process: &Process) -> String {
    match (&*process.command, &*process.exe) {
        ([], "") => String::from("a process"),
        ([], exe) => exe.to_owned(),
        (command, _) => command.join(" "),
    }
}

fn life(process: &Process) -> String {
    const LONGEST: usize = 120;
    let mut line = program(process);
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push_str("...");
    }
    if let Some(end) = process.end.filter(|end| end.ending != Ending::Exec) {
        let _ = write!(
            line,
            ": {} allocated, {} freed, at most {} at once",
            units::counted(end.allocations, "block"),
            units::count(end.frees),
            units::bytes(end.peak_live_bytes)
        );
    }
    line
}

/// Returns a remark if a fault ended a process that made a reported access.
fn whether_by_access(report: &Report, process: &Process) -> &'static str {
    let is_fault = matches!(
        process.fate,
        Fate::Ended(process::End::Signal { number: libc::SIGSEGV | libc::SIGBUS, .. })
    );
    let mut accesses = report.errors.iter().filter(|error| error.finding.call == Call::Access);
    let is_its = |error: &Error| report.processes[error.process].pid == process.pid;
    if is_fault && accesses.any(is_its) {
        ", at an access that was reported or behind it"
    } else {
        ""
    }
}

pub(in crate::output) fn ended(process: &Process) -> String {
    let ending = process.end.map(|end| end.ending);
    String::from(match (ending, process.fate) {
        (None, Fate::Running) => "it is still running",
        (None | Some(Ending::Exit | Ending::Abort | Ending::Signal), Fate::Ended(end)) => {
            return match end {
                process::End::Code(code) => format!("it exited with code {code}"),
                process::End::Signal { number, .. } => {
                    format!("it was ended by {}", process::signal_name(number))
                }
            };
        }
        (None, _) if process.became_unchecked() => "it became another program",
        (None, _) => "it wrote nothing at its end: it was killed, or is still running",
        (Some(Ending::Exit), _) => "it exited",
        (Some(Ending::Abort), _) => "it aborted",
        (Some(Ending::Signal), _) => {
            let signal = process.end.map_or(0, |end| end.signal);
            return format!("it was ended by {}", process::signal_name(signal.cast_signed()));
        }
        (Some(Ending::Exec), _) => "it became another program",
        (Some(Ending::ForkChild), _) => "it was a forked child that became no other program",
        (Some(_), _) => "it ended in a way that this version does not know",
    })
}
