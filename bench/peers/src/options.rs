//! The command line.

use std::path::PathBuf;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Builds or finds the allocators that heapwright is raced against and prints one
line a peer for `heapwright bench --with`: NAME=[VAR=VALUE ...]PATH

usage: peers [options]

  --work FOLDER   put built libraries there (default: peer-libraries, beside
                  this program)
  --only A,B,...  only these peers
  --versions      print name, version and origin as a markdown table instead
  --strict        fail if a peer cannot be had
  --list          print the peers' names and stop

CC and CXX choose the compilers (default: cc and c++).
";

/// What was asked for.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) work: Option<PathBuf>,
    pub(crate) only: Vec<String>,
    pub(crate) versions: bool,
    pub(crate) strict: bool,
}

/// What to do.
pub(crate) enum Parsed {
    Help,
    List,
    Run(Options),
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

/// Reads the arguments.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Parsed, String> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--work" => options.work = Some(value()?.into()),
            "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
            "--versions" => options.versions = true,
            "--strict" => options.strict = true,
            "--list" => return Ok(Parsed::List),
            "--help" | "-h" => return Ok(Parsed::Help),
            other => return Err(format!("unknown argument {other}; --help lists them")),
        }
    }
    Ok(Parsed::Run(options))
}
