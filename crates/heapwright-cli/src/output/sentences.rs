//! Sentences about the contents of a report, for all formats for people.

use super::{units, words};
use crate::report::model::{Amount, Error, Figure, Growth, Happened, Leak, Path, Process};
use crate::trace::Facts;
use heapwright_record::debug::{Finding, Occasion, Reach, Root};
use std::fmt::Write;
use std::time::Duration;

/// The words for a figure of a heap profile.
pub(super) struct FigureWords {
    pub(super) title: &'static str,
    pub(super) label: &'static str,
    /// The sentence if no stack has the figure.
    pub(super) none: &'static str,
    /// The title of the column beside the figure.
    pub(super) extra: &'static str,
    /// The state of a stack's blocks.
    pub(super) is: &'static str,
    /// The whole of which a stack has a share.
    pub(super) whole: &'static str,
}

impl FigureWords {
    pub(super) fn of(figure: Figure) -> Self {
        let freed = "freed within a millisecond";
        let none_freed = "No sampled block was freed within a millisecond.";
        let grows = "No stack has more live bytes than earlier.";
        let (no_live, nothing) = ("No sampled block is live.", "No block was sampled.");
        let [title, label, none, extra, is, whole] = match figure {
            Figure::Live => ["Live", "live", no_live, "oldest", "live", "what is live"],
            Figure::Growth => ["Growth", "growth", grows, "was", "grown by", "what has grown"],
            Figure::Temporary => [
                "Temporary",
                freed,
                none_freed,
                "of allocated",
                "freed within 1 ms",
                "what is freed so soon",
            ],
            Figure::Peak => {
                ["Peak", "at the peak", nothing, "live now", "live at the peak", "the peak"]
            }
            Figure::Allocated => {
                ["Allocated", "allocated", nothing, "temporary", "allocated", "all"]
            }
        };
        Self { title, label, none, extra, is, whole }
    }
}

/// Formats an amount: `1.2 MiB in 155 blocks`.
pub(crate) fn amount(amount: Amount) -> String {
    format!("{} in {}", units::bytes(amount.bytes), units::counted(amount.blocks, "block"))
}

/// Formats an estimate, with one standard deviation if known: `1.2 MiB ± 0.1 MiB in 155 blocks`.
pub(super) fn estimate(amount: Amount, error: Option<u64>, noun: &str) -> String {
    let (bytes, blocks) = (units::bytes(amount.bytes), units::counted(amount.blocks, noun));
    format!("{bytes}{} in {blocks}", off(error))
}

/// Formats a deviation, if known: ` ± 0.1 MiB`.
pub(super) fn off(error: Option<u64>) -> String {
    error.map(|error| format!(" ± {}", units::bytes(error))).unwrap_or_default()
}

/// Formats ages: `2.00 s to 58.00 s old`.
pub(super) fn ages(youngest: &str, oldest: &str) -> String {
    if youngest == oldest { format!("{oldest} old") } else { format!("{youngest} to {oldest} old") }
}

/// Returns `0.4 to 0.9 ms`, or one duration if both read the same.
pub(super) fn range(least: &str, most: &str) -> String {
    let number = match (least.split_once(' '), most.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => least,
    };
    if least == most { most.to_owned() } else { format!("{number} to {most}") }
}

/// Returns `process 42 and 3 others`.
pub(super) fn processes(first: &Process, all: usize) -> String {
    let others = |others| format!(" and {}", units::counted(others as u64, "other"));
    let others = all.checked_sub(2).map(|more| others(more + 1)).unwrap_or_default();
    format!("process {}{others}", first.pid)
}

pub(super) fn lost_samples(lost: u64) -> Option<String> {
    let samples = (lost != 0).then(|| units::counted(lost, "sample"))?;
    Some(format!("{samples} are missing: there was no memory for their records"))
}

/// Returns a sentence about an error and its count, without a full stop.
pub(super) fn error(error: &Error) -> String {
    words::happened(error) + &again(error.times, error.processes)
}

/// Returns the line above a stack: `freed by thread 1, 3 operations earlier`.
pub(super) fn moment(finding: &Finding, happened: &Happened) -> String {
    words::title(finding, happened).trim_end_matches(':').to_owned()
}

/// Returns the fate of blocks: `definitely lost`.
pub(super) fn fate(reach: Reach) -> String {
    reach.word().replace('-', " ")
}

/// Returns `1.2 MiB in 155 blocks are definitely lost, and 88.9 KiB in 310 blocks with them`.
pub(super) fn leak(leak: &Leak) -> String {
    let is = if leak.lost.blocks == 1 { "is" } else { "are" };
    let mut line = format!("{} {is} {}", amount(leak.lost), fate(leak.reach));
    if leak.indirect != Amount::default() {
        let with = if leak.lost.blocks == 1 { "it" } else { "them" };
        let _ = write!(line, ", and {} with {with}", amount(leak.indirect));
    }
    line + &again(1, leak.processes)
}

/// Returns `grows by 61.3 KiB a second, to 4.5 MiB in 277 blocks`.
pub(super) fn growth(growth: &Growth) -> String {
    let mut line = format!("grows by {}", slope(growth.slope));
    if let Some(last) = growth.points.last() {
        let last = Amount { blocks: last.blocks, bytes: last.bytes };
        let _ = write!(line, ", to {}", amount(last));
    }
    line
}

/// Formats a slope: `61.3 KiB a second`.
pub(super) fn slope(slope: f64) -> String {
    // A negative or unbounded slope counts as zero or as the limit.
    format!("{} a second", units::bytes(slope.clamp(0.0, 1e18) as u64))
}

/// Returns the root of a chain of pointers: `cache+0x10 in shop`.
pub(super) fn root(path: &Path) -> String {
    let mut line = match (&path.name, path.root) {
        (Some(name), _) => name.clone(),
        (None, Root::Globals) => format!("data at {:#x}", path.address),
        (None, Root::Stack) => "the stack".to_owned(),
        (None, Root::Registers) => "the registers".to_owned(),
        (None, Root::ThreadLocal) => "a thread-local variable".to_owned(),
        (None, Root::Mapping) => format!("mapped memory at {:#x}", path.address),
        (None, Root::OtherHeap) => format!("another heap's memory at {:#x}", path.address),
        (None, _) => format!("memory at {:#x}", path.address),
    };
    if let Some((number, name)) = &path.thread {
        let _ = write!(line, " of thread {number}");
        if !name.is_empty() {
            let _ = write!(line, " ({name})");
        }
    }
    if let Some(module) = &path.module {
        let _ = write!(line, " in {}", module.rsplit('/').next().unwrap_or(module));
    }
    line
}

/// Returns the command line of a process, or its file.
pub(super) fn command(process: &Process) -> String {
    if process.command.is_empty() {
        return process.exe.clone();
    }
    quoted(&process.command)
}

/// Quotes words for a shell.
pub(super) fn quoted(words: &[String]) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./=:,+@%^".contains(letter);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

pub(super) fn occasion(occasion: Occasion) -> &'static str {
    match occasion {
        Occasion::Exit => "at the end",
        Occasion::Signal => "asked for by a signal",
        Occasion::Call => "asked for by the program",
        Occasion::Time => "when it was time",
        Occasion::Profile => "a heap profile",
        _ => "for a reason that is not known",
    }
}

/// Formats a duration: `2.10 s`.
pub(super) fn duration(ns: u64) -> String {
    units::duration(Duration::from_nanos(ns))
}

/// Formats how often a finding was made: `, 17 times, in 2 processes`.
fn again(times: u64, processes: usize) -> String {
    let mut line = String::new();
    if times > 1 {
        let _ = write!(line, ", {} times", units::count(times));
    }
    if processes > 1 {
        let _ = write!(line, ", in {processes} processes");
    }
    line
}

/// Describes a trace: `2 threads, 1,200 operations, peak live 2.0 MiB, 1.9 % of frees on another
/// thread`.
pub(crate) fn recorded(facts: &Facts) -> String {
    let mut text = format!(
        "{}, {}, peak live {} in {}",
        units::counted(facts.threads, "thread"),
        units::counted(facts.operations, "operation"),
        units::bytes(facts.peak_live_bytes),
        units::counted(facts.peak_live_blocks, "block"),
    );
    if facts.threads > 1 {
        let share = units::percent(facts.cross_thread_frees, facts.frees);
        text.push_str(&format!(", {share} of frees on another thread"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn commands_are_quoted() {
        let report = sample::report();
        assert_eq!(
            command(&report.processes[0]),
            "'bin/shop server' --listen=:8080 '--motd=<b>hi</b> & \"bye\"'"
        );
        let words = ["--rounds=5", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"--rounds=5 'it'\''s' ''");
        let bare = Process { exe: "/bin/x".into(), ..Process::default() };
        assert_eq!(command(&bare), "/bin/x");
    }

    #[test]
    fn a_line_says_what_matters() {
        let mut facts = Facts {
            threads: 1,
            operations: 1200,
            frees: 1000,
            cross_thread_frees: 19,
            peak_live_bytes: 2 << 20,
            peak_live_blocks: 1,
            ..Facts::default()
        };
        assert_eq!(recorded(&facts), "1 thread, 1,200 operations, peak live 2.0 MiB in 1 block");
        facts.threads = 2;
        assert_eq!(
            recorded(&facts),
            "2 threads, 1,200 operations, peak live 2.0 MiB in 1 block, 1.9 % of frees on another \
             thread"
        );
    }
}
