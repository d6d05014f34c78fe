//! One run of a program, and the runs of a load in turns.
//!
//! The program says itself how much memory it had at its peak (VmHWM, which begins anew
//! when a program begins), so this parent's size is not in it.

use std::fs::OpenOptions;
use std::io::Write as _;

use figures::process;
use figures::record::Record;
use figures::report::Report;
use figures::turns::Turns;

use crate::options::Options;

/// The status of a load that was refused memory.
const OUT_OF_MEMORY: i32 = 3;

/// A program and its settings: what stands in a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    program: String,
    words: Vec<String>,
    environment: Vec<String>,
}

impl Variant {
    pub(crate) fn new(name: &str, program: &str) -> Self {
        let (words, environment) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), program: program.to_owned(), words, environment }
    }

    /// The same under another name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// With more words.
    pub(crate) fn with<T: Into<String>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Whether it is another collector, in a heap with a limit.
    fn is_limited_peer(&self) -> bool {
        self.program.ends_with("-bdwgc") && self.words.iter().any(|word| word.starts_with("limit="))
    }

    /// With a variable, `NAME=VALUE`.
    pub(crate) fn environment(mut self, variable: &str) -> Self {
        self.environment.push(variable.to_owned());
        self
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Well(Record),
    /// It said that there is no memory.
    OutOfMemory,
    /// Anything else, in words.
    Badly(String),
}

/// The numbers that every result has.
const NEEDED: [&str; 4] = ["wall_ns", "cpu_ns", "peak", "checksum"];

/// Runs it, for at most so many seconds.
pub(crate) fn once(options: &Options, variant: &Variant, seconds: u64) -> Result<Ended, String> {
    let Variant { program, words, environment, .. } = variant;
    let ended = process::run(&options.programs.join(program), words, environment, seconds)?;
    if ended.code == Some(OUT_OF_MEMORY) {
        return Ok(Ended::OutOfMemory);
    }
    let read = ended.well(seconds).and_then(|text| Record::result(&text, NEEDED));
    Ok(read.map_or_else(Ended::Badly, Ended::Well))
}

/// Runs the variants of a load in turns, as many rounds as were asked for.
///
/// A peer that is refused memory under a limit has missed a round, which the report says; it is
/// nothing that went wrong here, unless it misses all.
pub(crate) fn take(
    options: &Options,
    report: &mut Report,
    load: &str,
    variants: &[Variant],
) -> Result<Turns, String> {
    let mut peak = 16e6;
    let names = variants.iter().map(|variant| variant.name.as_str());
    let turns = Turns::take(names, options.rounds, |_, round, at| {
        let variant = &variants[at];
        process::warm(peak);
        let ended = once(options, variant, options.seconds)?;
        let only_misses = matches!(ended, Ended::OutOfMemory) && variant.is_limited_peer();
        let came = match ended {
            Ended::Well(run) => Ok(run),
            Ended::OutOfMemory => Err("out of memory".to_owned()),
            Ended::Badly(why) => Err(why),
        };
        match &came {
            Ok(run) => {
                peak = run.number("peak").unwrap_or_default().max(peak);
                keep(options, &format!("{load}, {}, round {}", variant.name, round + 1), run)?;
            }
            Err(why) => {
                let said = format!("{load}, {}, round {}: {why}", variant.name, round + 1);
                if only_misses { report.missed_round(said) } else { report.failed(said) }
            }
        }
        came
    });
    for variant in variants.iter().filter(|variant| variant.is_limited_peer()) {
        if turns.of(&variant.name).next().is_none() {
            report.failed(format!("{load}, {}: no round ended well", variant.name));
        }
    }
    for said in turns.disagreements() {
        report.failed(format!("{load}: {said}"));
    }
    Ok(turns)
}

/// Adds what a run printed to runs.txt.
fn keep(options: &Options, which: &str, run: &Record) -> Result<(), String> {
    let last = run.text.lines().last().unwrap_or_default();
    let file = OpenOptions::new().create(true).append(true).open(options.out.join("runs.txt"));
    let written = file.and_then(|mut file| writeln!(file, "{which}: {last}"));
    written.map_err(|e| format!("cannot write runs.txt: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peer_under_a_limit_may_run_out_of_memory() {
        let is = |program, words: &[&str]| {
            Variant::new("x", program).with(words.iter().copied()).is_limited_peer()
        };
        assert!(is("splay-bdwgc", &["threads=2", "limit=2048"]));
        assert!(!is("splay-bdwgc", &["threads=2"]));
        assert!(!is("splay-heapwright", &["limit=2048"]));
    }
}
