//! `heapwright library` prints the path of the preload library.
//!
//! A service file or a script may use it: `LD_PRELOAD=$(heapwright library) program`.

use super::LibraryArg;
use crate::output;
use crate::preload;
use crate::process::Exit;
use std::os::unix::ffi::OsStrExt;

/// Print the path of the preload library, for setting LD_PRELOAD by hand.
///
/// The library lies in XDG_CACHE_HOME, ~/.cache or a folder among the temporary files. For root, it
/// lies in /var/cache, which all users can read. For a service of another user, run this command as
/// root, or install the library (packaging/install.sh).
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "Example: LD_PRELOAD=$(heapwright library) python3 script.py")]
pub(crate) struct Args {
    #[command(flatten)]
    library: LibraryArg,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let path = preload::library(args.library.given().as_deref())?;
    output::to_stdout(|out| {
        out.write_all(path.as_os_str().as_bytes())?;
        out.write_all(b"\n")
    })?;
    Ok(Exit::Code(0))
}
