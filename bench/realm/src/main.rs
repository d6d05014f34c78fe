//! heapwright's safe interface of the collected heap (`heapwright::gc::Realm`) beside other ways
//! to share values in safe Rust: tracing collectors and reference counts.
//!
//! ```text
//!   loads    the work, and the operations that a peer must have for it
//!   peers    each with its own node types, and the functions that a load calls
//!     |
//!   here     one load with one peer; it prints one line:
//!
//!   result wall_ns=12345678 peak_kib=4096 base_kib=2048 checksum=123
//! ```
//!
//! heapwright adds its collector's counts: `collector_ns`, `cycles`, `minor_cycles`. All peers
//! allocate from the system's allocator (heapwright's realm has its own pages), and compute the
//! same number from the same random keys.

mod loads;
mod peers;

use std::process::ExitCode;

use clap::Parser;
use figures::options::number;
use loads::{Load, Sizes};

/// Runs one load with one peer; ci/gc.sh realm calls it
#[derive(Parser, Debug)]
#[command(name = "realm")]
struct Asked {
    /// binary-trees, gcbench or splay
    #[arg(value_parser = load)]
    load: Load,
    /// heapwright, gc-arena, gc, dumpster or rc
    #[arg(value_parser = peers::NAMES)]
    peer: String,
    /// NAME=VALUE: depth=D (binary-trees, gcbench), size=N and rounds=N (splay) and, for
    /// heapwright, most=KIB, the greatest size of the heap
    settings: Vec<String>,
}

fn load(name: &str) -> Result<Load, String> {
    Load::named(name).ok_or_else(|| {
        format!("there is no load '{name}': {}", Load::ALL.map(Load::name).join(", "))
    })
}

fn here(asked: &Asked) -> Result<String, String> {
    let Sizes { mut depth, mut size, mut rounds } = asked.load.sizes();
    let mut most_kib: usize = 0;
    for word in &asked.settings {
        match word.split_once('=') {
            Some(("depth", text)) => depth = number(0..=28)(text)?,
            Some(("size", text)) => size = number(0..=10_000_000)(text)?,
            Some(("rounds", text)) => rounds = number(0..=10_000_000)(text)?,
            Some(("most", text)) => most_kib = number(0..=usize::MAX >> 10)(text)?,
            _ => return Err(format!("'{word}' is no setting of a run")),
        }
    }
    let base_kib = peak_kib();
    let sizes = Sizes { depth, size, rounds };
    let done = peers::run(&asked.peer, asked.load, sizes, most_kib << 10);
    let done = done.ok_or("there is no such peer")?;
    let (wall, peak) = (done.wall.as_nanos(), done.peak_kib);
    let collector = done.collector.map_or(String::new(), |collector| {
        format!(
            " collector_ns={} cycles={} minor_cycles={}",
            collector.ns, collector.cycles, collector.minor_cycles
        )
    });
    Ok(format!(
        "result wall_ns={wall} peak_kib={peak} base_kib={base_kib}{collector} checksum={}",
        done.checksum
    ))
}

/// Returns the peak of resident memory, which starts anew with a program.
fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    number.expect("the kernel says how much was resident")
}

fn main() -> ExitCode {
    figures::options::main(|asked: Asked| {
        println!("{}", here(&asked)?);
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_computes_the_same() {
        for load in Load::ALL {
            let checksums = peers::NAMES.map(|peer| {
                let settings = ["depth=6", "size=50", "rounds=3"].map(str::to_owned).into();
                let said = here(&Asked { load, peer: peer.to_owned(), settings }).unwrap();
                said.split_once("checksum=").unwrap().1.to_owned()
            });
            assert!(checksums.iter().all(|sum| *sum == checksums[0]), "{load:?}: {checksums:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let of = |words: &str| {
            let words = ["realm"].into_iter().chain(words.split(' '));
            here(&Asked::try_parse_from(words).map_err(|error| error.to_string())?)
        };
        assert!(of("splat rc").unwrap_err().contains("no load 'splat'"));
        assert!(of("splay arc").unwrap_err().contains("'arc'"));
        assert!(of("splay rc deep=3").unwrap_err().contains("'deep=3'"));
    }
}
