//! The peers: every allocator that heapwright is raced against, as a library
//! for `LD_PRELOAD`.
//!
//! Some are compiled here, from the sources that crates of Cargo's registry
//! bundle, with the flags of their projects' own release builds; some come with
//! Debian. What a preload runs is then the peer's own `malloc`, with nothing
//! between it and the program.
//!
//! The answer is one line a peer, in the form that `heapwright bench --with`
//! takes:
//!
//! ```text
//! mimalloc=/work/libmimalloc.so
//! mimalloc-no-thp=MIMALLOC_ALLOW_THP=0 /work/libmimalloc.so
//! ```
//!
//! A peer that cannot be had here is one line on stderr: a machine without
//! Debian's packages still races the others.
//!
//! One file a concept: [`peer`] (what is known of one), [`roster`] (which there are), [`compile`],
//! [`registry`], [`built`] for those that are compiled here, [`debian`] for those that are found,
//! and [`proof`] that a preload took effect.

mod built;
mod compile;
mod debian;
mod peer;
mod proof;
mod registry;
mod roster;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use peer::Peer;

/// Builds or finds the allocators that heapwright is raced against and prints one
/// line a peer for `heapwright bench --with`: NAME=[VAR=VALUE ...]PATH
#[derive(clap::Parser)]
#[command(name = "peers", after_help = "CC and CXX choose the compilers (default: cc and c++).")]
struct Options {
    /// Put built libraries there [default: peer-libraries, beside this program]
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,
    /// Only these peers, with commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print name, version and origin as a markdown table instead
    #[arg(long)]
    versions: bool,
    /// Fail if a peer cannot be had
    #[arg(long)]
    strict: bool,
    /// Print the peers' names and stop
    #[arg(long)]
    list: bool,
}

impl Options {
    /// The folder for libraries, made and absolute: the race changes folders.
    fn work_folder(&self) -> Result<PathBuf, String> {
        let folder = match &self.work {
            Some(folder) => folder.clone(),
            None => {
                let exe = std::env::current_exe().map_err(|e| e.to_string())?;
                exe.with_file_name("peer-libraries")
            }
        };
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))
    }
}

/// Gets what was asked for; false if a peer is missing.
fn run(options: &Options) -> Result<bool, String> {
    let chosen = roster::chosen(&options.only)?;
    let work = options.work_folder()?;
    let probe = proof::compile(&work)?;
    let mut peers: Vec<Peer> = Vec::new();
    let mut complete = true;
    for entry in chosen {
        match entry.get(&work).and_then(|peer| proof::check(&peer, &probe).map(|()| peer)) {
            Ok(peer) => peers.push(peer),
            Err(reason) => {
                complete = false;
                eprintln!("peers: {} is left out: {reason}", entry.name);
            }
        }
    }
    if options.versions {
        print!("{}", peer::versions(&peers));
    } else {
        for peer in &peers {
            println!("{}", peer.line());
        }
    }
    Ok(complete)
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        for entry in roster::ALL {
            println!("{:<16} {}", entry.name, entry.about);
        }
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(complete) if complete || !options.strict => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("peers: {message}");
            ExitCode::FAILURE
        }
    }
}
