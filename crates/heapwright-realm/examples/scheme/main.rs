//! A small Scheme on heapwright's safe interface (`gc::Realm`): tutorial, stress test and benchmark
//! in one.
//!
//! ```text
//!   read      text to data, with places            value      the program's values
//!   expand    data to a tree of known variables    print      values to text
//!   compile   a tree to code                       primitives procedures in Rust
//!   machine   runs code, a piece at a time
//! ```
//!
//! The Scheme has closures, proper tail calls, strings, vectors, hash tables and first-class
//! continuations, and `quasiquote`, named `let`, `do` and `case`. Whole numbers have 64 bits, and
//! become real when that is too few. Strings do not change. There are no macros and no
//! `dynamic-wind`.
//!
//! ```sh
//! cargo run --release --features derive,std --example scheme            # a prompt
//! cargo run --release --features derive,std --example scheme -- FILE    # a program
//! ```
//!
//! Options before the file:
//!
//! ```text
//!   --stats                          prints what the collector did
//!   --stress                         runs a verified collection after every piece
//!   --incremental, --generations off, --compact off, --limit MIB
//!   --serve SECONDS                  calls `request` for this long, after the program has ended
//! ```
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a program, whose own memory is std's"
)]

mod compile;
mod expand;
mod machine;
mod primitives;
mod print;
mod read;
mod serve;
mod value;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use heapwright::Rootable;
use heapwright::gc::raw::{Options, STRESS, VERIFY_BARRIERS, VERIFY_HEAP};
use heapwright::gc::{Lock, Realm, Statistics};

use machine::{Machine, Progress, Root};
use read::{Failure, Reader};
use value::Value;

/// Operations between two points where the collector may run.
const PIECE: usize = 5_000;
const STRESSED_PIECE: usize = 1;

struct Ran {
    /// The value as text; empty if there is no value.
    value: String,
    /// The length of the form's text, and the line and column behind it.
    consumed: usize,
    place: (usize, usize),
}

struct Scheme {
    realm: Realm<Rootable!['gc => Root<'gc>]>,
    is_stressed: bool,
    limit: u64,
}

impl Scheme {
    fn new(options: Options, is_stressed: bool, limit: u64) -> Self {
        let mut realm = Realm::with(options, |_| Root {
            symbols: Lock::default(),
            machine: Lock::new(Machine::default()),
        });
        realm.mutate(primitives::install);
        Self { realm, is_stressed, limit }
    }

    /// Runs the first form of a text that begins at a line and a column; `None` if there is none.
    /// After each piece, calls `paused` with the collector's time.
    fn run_form(
        &mut self,
        text: &str,
        place: (usize, usize),
        paused: &mut dyn FnMut(Duration),
    ) -> Result<Option<Ran>, Failure> {
        let begun = self.realm.mutate(|mc, root| {
            let mut reader = Reader::new(text, place);
            let Some(form) = reader.read(mc, root)? else { return Ok(None) };
            let mut expander = expand::Expander::new(mc, root);
            let tree = expander.expand(form)?;
            let code = compile::compile(mc, &expander.variables, &tree);
            root.machine.borrow_mut(mc, root).begin(mc, code);
            Ok(Some((reader.consumed, reader.place())))
        })?;
        let Some((consumed, place)) = begun else { return Ok(None) };
        let mut pieces = 0u64;
        let piece = if self.is_stressed { STRESSED_PIECE } else { PIECE };
        loop {
            let mut over = Instant::now();
            let done = self.realm.mutate(|mc, root| {
                let mut machine = root.machine.borrow_mut(mc, root);
                let progress = machine.run(mc, root, piece)?;
                over = Instant::now();
                Ok(match progress {
                    Progress::Runs => None,
                    Progress::Done(Value::Unspecified) => Some(String::new()),
                    Progress::Done(value) => Some(print::written(value)),
                })
            })?;
            paused(over.elapsed());
            if self.is_stressed {
                // The collection is done when the piece is over, because of STRESS. Now and then
                // everything moves as well.
                pieces += 1;
                if pieces.is_multiple_of(4) {
                    self.realm.compact();
                }
            }
            self.stay_below_limit()?;
            if let Some(value) = done {
                return Ok(Some(Ran { value, consumed, place }));
            }
        }
    }

    fn stay_below_limit(&mut self) -> Result<(), Failure> {
        let has = |realm: &Realm<_>| {
            let told = realm.statistics();
            told.in_use_bytes + told.large_bytes
        };
        if self.limit == u64::MAX || has(&self.realm) <= self.limit {
            return Ok(());
        }
        self.realm.collect();
        if has(&self.realm) <= self.limit {
            return Ok(());
        }
        let message = format!("more than {} MiB are in use", self.limit >> 20);
        Err(Failure::new(read::At(0), message))
    }

    fn run(&mut self, text: &str) -> Result<(), Failure> {
        let (mut at, mut place) = (0, (1, 1));
        while let Some(ran) = self.run_form(&text[at..], place, &mut |_| {})? {
            (at, place) = (at + ran.consumed, ran.place);
        }
        Ok(())
    }

    fn converse(&mut self) {
        let prompts = std::io::stdin().is_terminal();
        let mut text = String::new();
        loop {
            if prompts {
                print!("{}", if text.trim().is_empty() { "> " } else { "  " });
                let _closed = std::io::stdout().flush();
            }
            if !matches!(std::io::stdin().read_line(&mut text), Ok(1..)) {
                break;
            }
            loop {
                let ended = self.run_form(&text, (1, 1), &mut |_| {});
                primitives::flush();
                match ended {
                    Ok(Some(ran)) => {
                        if !ran.value.is_empty() {
                            println!("{}", ran.value);
                        }
                        text.drain(..ran.consumed);
                    }
                    Ok(None) => {
                        text.clear();
                        break;
                    }
                    Err(failure) if failure.is_incomplete => break,
                    Err(failure) => {
                        println!("{}{}", failure.at, failure.message);
                        text.clear();
                        break;
                    }
                }
            }
        }
    }

    fn statistics(&self) -> Statistics {
        self.realm.statistics()
    }

    fn tell_statistics(&self, began: Instant) {
        let told = self.statistics();
        let time = began.elapsed().as_nanos();
        let share = (u128::from(told.pause_ns + told.sweep_ns) * 100) as f64 / time as f64;
        eprintln!(
            "{} ms, of which collections took {share:.1} %; {} collections, {} of them minor; the longest pause {:.3} ms; \
             peak {:.1} MiB, allocated {:.1} MiB",
            time / 1_000_000,
            told.cycles,
            told.minor_cycles,
            told.pause_max_ns as f64 / 1e6,
            told.peak_bytes as f64 / f64::from(1 << 20),
            told.allocated_bytes as f64 / f64::from(1 << 20),
        );
    }
}

const USAGE: &str = "usage: scheme [--stats] [--stress] [--incremental] [--generations on|off] [--compact on|off] [--limit MIB] [--serve SECONDS] [FILE]";

fn wanted(option: &str, what: &str, word: Option<String>) -> Result<u32, String> {
    let number = word.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("{option} wants a number of {what}"))
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("scheme: {message}\n{USAGE}");
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let mut options = Options { generations: true, compact: true, ..Options::new() };
    let (mut is_stressed, mut tells, mut file) = (false, false, None);
    let mut limit = u64::MAX;
    let mut serves = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--stats" => tells = true,
            "--stress" => {
                is_stressed = true;
                options.verify = VERIFY_HEAP | VERIFY_BARRIERS | STRESS;
            }
            "--incremental" => options.incremental = true,
            "--generations" => options.generations = words.next().as_deref() != Some("off"),
            "--compact" => options.compact = words.next().as_deref() != Some("off"),
            "--limit" => match wanted(&word, "MiB", words.next()) {
                Ok(mib) => limit = u64::from(mib) << 20,
                Err(message) => return refuse(&message),
            },
            "--serve" => match wanted(&word, "seconds", words.next()) {
                Ok(seconds) => serves = Some(Duration::from_secs(seconds.into())),
                Err(message) => return refuse(&message),
            },
            word if word.starts_with('-') || file.is_some() => {
                return refuse(&format!("there is no option `{word}`"));
            }
            _ => file = Some(word),
        }
    }
    let began = Instant::now();
    let mut scheme = Scheme::new(options, is_stressed, limit);
    let Some(file) = file else {
        scheme.converse();
        return ExitCode::SUCCESS;
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("scheme: {file}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut ended = scheme.run(&text);
    primitives::flush();
    if let (Ok(()), Some(time)) = (&ended, serves) {
        ended = serve::serve(&mut scheme, time);
    }
    primitives::flush();
    if tells {
        scheme.tell_statistics(began);
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{file}:{}{}", failure.at, failure.message);
            ExitCode::FAILURE
        }
    }
}
