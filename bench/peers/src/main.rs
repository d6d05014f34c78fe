//! The peers: the allocators that race against heapwright, as libraries for `LD_PRELOAD`.
//!
//! Some peers are compiled here, with the flags of their projects' release builds. Others come with
//! Debian. Under a preload the program calls the peer's own `malloc`.
//!
//! The output is one line for each peer, in the form that `heapwright bench --with` takes:
//!
//! ```text
//! mimalloc=/work/libmimalloc.so
//! mimalloc-no-thp=MIMALLOC_ALLOW_THP=0 /work/libmimalloc.so
//! ```
//!
//! A missing peer is one line on stderr. [`proof`] shows that a preload took effect.

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
    /// Only these peers, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print name, version and origin as a markdown table instead
    #[arg(long)]
    versions: bool,
    /// Fail if a peer is missing
    #[arg(long)]
    strict: bool,
    /// Print the peers' names and stop
    #[arg(long)]
    list: bool,
}

impl Options {
    /// Returns the folder for libraries, made and absolute: the race changes folders.
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
