//! One run of a program.
//!
//! The program says itself how much memory it had at its peak (VmHWM, which begins anew
//! when a program begins), so this parent's size is not in it.

use std::process::Command;

use crate::line::{self, Fields};
use crate::options::Options;

/// The most that is touched before a run.
const MOST_WARMED: u64 = 3 << 30;

/// The status of a load that was refused memory.
const OUT_OF_MEMORY: i32 = 3;

/// A program and what it is told: what stands in a row of a table.
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

    /// With a variable, `NAME=VALUE`.
    pub(crate) fn environment(mut self, variable: &str) -> Self {
        self.environment.push(variable.to_owned());
        self
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Well(Run),
    /// It said that there is no memory.
    OutOfMemory,
    /// Anything else, in words.
    Badly(String),
}

/// What a run that ended well printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) fields: Fields,
    pub(crate) text: String,
}

impl Run {
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.fields.get(name).map(|&number| number as f64)
    }
}

/// Runs it, for at most so many seconds.
pub(crate) fn once(options: &Options, variant: &Variant, seconds: u64) -> Result<Ended, String> {
    // (`env` sets the variables, so that a preload is not under `timeout` too.)
    let output = Command::new("timeout")
        .args(["--signal=KILL", &seconds.to_string(), "env"])
        .args(&variant.environment)
        .arg(options.programs.join(&variant.program))
        .args(&variant.words)
        .env_remove("LD_PRELOAD")
        .env_remove("HEAPWRIGHT")
        .env_remove("GC_MARKERS")
        .output()
        .map_err(|e| format!("cannot run timeout, of coreutils: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(match output.status.code() {
        Some(0) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match line::result(&text) {
                Ok(fields) => Ended::Well(Run { fields, text }),
                Err(why) => Ended::Badly(why),
            }
        }
        Some(OUT_OF_MEMORY) => Ended::OutOfMemory,
        Some(137) => Ended::Badly(format!("its {seconds} seconds were over, or it was killed")),
        Some(code) if code > 128 => Ended::Badly(format!("signal {} ended it; {last}", code - 128)),
        Some(code) => Ended::Badly(format!("it ended with {code}; {last}")),
        None => Ended::Badly("a signal ended it".to_owned()),
    })
}

/// Touches so many bytes and gives them back: the hosts of virtual machines take free memory
/// back, and whoever touches it first again pays for it.
pub(crate) fn warm(bytes: u64) {
    let bytes = bytes.min(MOST_WARMED) as usize;
    let mut memory = Vec::<u8>::with_capacity(bytes);
    memory.resize(bytes, 1);
    std::hint::black_box(&memory);
}

/// The processor, how many, the kernel.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    let numbers = kernel.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(kernel.len());
    format!(
        "{} processors, {}, Linux {}",
        std::thread::available_parallelism().map_or(1, |n| n.get()),
        model.map_or("of a kind that does not say", |(_, name)| name.trim()),
        &kernel[..numbers]
    )
}
