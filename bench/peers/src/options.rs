//! The command line.

use std::path::PathBuf;

/// Builds or finds the allocators that heapwright is raced against and prints one
/// line a peer for `heapwright bench --with`: NAME=[VAR=VALUE ...]PATH
#[derive(clap::Parser)]
#[command(name = "peers", after_help = "CC and CXX choose the compilers (default: cc and c++).")]
pub(crate) struct Options {
    /// Put built libraries there [default: peer-libraries, beside this program]
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,
    /// Only these peers, with commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Print name, version and origin as a markdown table instead
    #[arg(long)]
    pub(crate) versions: bool,
    /// Fail if a peer cannot be had
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the peers' names and stop
    #[arg(long)]
    pub(crate) list: bool,
}

impl Options {
    /// The folder for libraries, made and absolute: the race changes folders.
    pub(crate) fn work_folder(&self) -> Result<PathBuf, String> {
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
