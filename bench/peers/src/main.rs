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
//! One file a concept: [`options`], [`peer`] (what is known of one), [`roster`]
//! (which there are), [`compile`], [`registry`], then a file for each peer that
//! is built, [`debian`] for those that are found, and [`proof`] that a preload
//! took effect.

mod compile;
mod debian;
mod hardened_malloc;
mod mimalloc;
mod options;
mod peer;
mod proof;
mod registry;
mod roster;
mod rpmalloc;
mod rusty_alloc;
mod snmalloc;

use std::process::ExitCode;

use clap::Parser as _;
use options::Options;
use peer::Peer;

/// Gets what was asked for; false if a peer is missing.
fn run(options: &Options) -> Result<bool, String> {
    let chosen = roster::chosen(&options.only)?;
    let work = options.work_folder()?;
    let probe = proof::compile(&work)?;
    let mut peers: Vec<Peer> = Vec::new();
    let mut complete = true;
    for entry in chosen {
        match (entry.get)(&work).and_then(|peer| proof::check(&peer, &probe).map(|()| peer)) {
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
