//! The private folder in which a run's processes leave their statistics and debug records.
//!
//! The library of each process writes `PREFIX.<pid>` when the process ends. PREFIX lies in a folder
//! of the run, which is removed after the run's report. Processes that end later are not reported.
//! Only the run's user may enter the folder, with one exception.
//!
//! A server that root starts becomes another user before it serves requests. From then on that user
//! writes its records. The user may pass through the folder of records ([`Folder::for_records`]),
//! but neither list it nor make a file in it. So before root's process becomes the user, it makes a
//! folder there for the user's processes.

use crate::symbols::rights::user;
use anyhow::Context;
use heapwright_record::Stats;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{SystemTime, UNIX_EPOCH};

/// The start of the files' names.
const STEM: &str = "stats";

/// The longest name of a folder; the library takes 500 bytes in all.
const LONGEST_NAME: usize = 400;

/// The most bytes of a file, more than any version of the format has.
const LONGEST: u64 = 1 << 20;

/// The folder whose files are memory.
const IN_MEMORY: &str = "/dev/shm";

/// The most attempts to find an unused name. Safety comes from the folder's mode, not its name.
const ATTEMPTS: u32 = 100;

/// A folder that is removed on drop.
pub(crate) struct Folder {
    path: PathBuf,
}

pub(crate) struct Collected {
    /// The statistics of the started process, or why they are unreadable.
    pub(crate) main: Option<Result<Box<Stats>, String>>,
    /// The statistics of other processes, by pid.
    pub(crate) others: Vec<Stats>,
    pub(crate) unreadable: Vec<String>,
}

impl Folder {
    /// Makes a folder among the temporary files. If TMPDIR is unsuitable, makes the folder
    /// elsewhere, and prints a line once.
    pub(crate) fn new() -> anyhow::Result<Self> {
        static SAID: Once = Once::new();
        let wanted = std::env::temp_dir();
        let why = if fits_option(&wanted) {
            match Self::new_in(&wanted) {
                Ok(folder) => return Ok(folder),
                Err(error) => error,
            }
        } else {
            std::io::Error::other("its name is relative or too long, or has ',' or ';'")
        };
        for base in ["/tmp", "/var/tmp", IN_MEMORY].map(Path::new) {
            if base == wanted {
                continue;
            }
            if let Ok(folder) = Self::new_in(base) {
                // An empty variable counts as unset.
                if !wanted.as_os_str().is_empty() {
                    SAID.call_once(|| {
                        eprintln!(
                            "heapwright: TMPDIR={} cannot be used ({why}); using {}",
                            wanted.display(),
                            base.display()
                        );
                    });
                }
                return Ok(folder);
            }
        }
        Err(why).with_context(|| {
            format!(
                "cannot make a folder for the run's files in {}, /tmp, /var/tmp or {IN_MEMORY} \
                 (see TMPDIR)",
                wanted.display()
            )
        })
    }

    pub(crate) fn for_records() -> anyhow::Result<Self> {
        let folder = Self::new()?;
        for_records(&folder.path)
            .with_context(|| format!("cannot open {} to others", folder.path.display()))?;
        Ok(folder)
    }

    /// Like [`Folder::new`], but prints nothing, and tries only TMPDIR and /tmp.
    pub(crate) fn quietly() -> std::io::Result<Self> {
        Self::new_in(&std::env::temp_dir()).or_else(|_| Self::new_in(Path::new("/tmp")))
    }

    /// Makes a folder in `/dev/shm`, `/tmp` or `/var/tmp`, because the temporary folder is full.
    pub(crate) fn in_memory() -> std::io::Result<Self> {
        let bases = [IN_MEMORY, "/tmp", "/var/tmp"];
        let full = std::env::temp_dir();
        let mut made = bases.iter().map(Path::new).filter(|base| *base != full).map(Self::new_in);
        made.find(Result::is_ok).unwrap_or_else(|| Err(ErrorKind::StorageFull.into()))
    }

    fn new_in(base: &Path) -> std::io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut tries = 0;
        loop {
            let mark = now.as_nanos() + u128::from(tries);
            let path = base.join(format!("heapwright-{}-{mark:x}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < ATTEMPTS => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the value of the option `stats_file`.
    pub(crate) fn prefix(&self) -> PathBuf {
        self.path.join(STEM)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `main` is the process that was started.
    pub(crate) fn collect(&self, main: u32) -> Collected {
        let mut collected = Collected { main: None, others: Vec::new(), unreadable: Vec::new() };
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                name.strip_prefix(STEM)?.strip_prefix('.')?.parse().ok()
            })
            .collect();
        pids.sort_unstable();
        for pid in pids {
            let stats = read(&self.path.join(format!("{STEM}.{pid}")));
            match stats {
                _ if pid == main => collected.main = Some(stats.map(Box::new)),
                Ok(stats) => collected.others.push(stats),
                Err(error) => {
                    collected.unreadable.push(format!("statistics of process {pid}: {error}"));
                }
            }
        }
        collected
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A process that still writes may interfere; then one small temporary folder is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// If this is root, lets other users pass through a folder to their own files.
pub(crate) fn for_records(folder: &Path) -> std::io::Result<()> {
    match user() {
        0 => fs::set_permissions(folder, fs::Permissions::from_mode(0o711)),
        _ => Ok(()),
    }
}

/// Returns whether an option can name the folder. Options end at a comma or a semicolon, and have a
/// limited length. The name must be absolute, because the program may change its working folder.
pub(crate) fn fits_option(folder: &Path) -> bool {
    let name = folder.as_os_str().as_bytes();
    folder.is_absolute() && name.len() <= LONGEST_NAME && !name.iter().any(|b| b",;".contains(b))
}

/// Reads a file that the program may have changed.
fn read(path: &Path) -> Result<Stats, String> {
    let mut bytes = Vec::new();
    File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    Stats::decode(&bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_folder_is_private_and_goes_away() {
        let folder = Folder::new().expect("made");
        let path = folder.path.clone();
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        fs::write(folder.prefix().with_extension("1"), "x").expect("written");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn two_folders_are_two() {
        let now = Folder::new().expect("made");
        let then = Folder::new().expect("made");
        assert_ne!(now.path, then.path);
    }

    #[test]
    fn folders_that_options_cannot_name_are_avoided() {
        assert!(fits_option(Path::new("/tmp/a b")));
        for wrong in ["tmp", "/tmp/a,b", "/tmp/a;b"] {
            assert!(!fits_option(Path::new(wrong)), "{wrong}");
        }
        assert!(!fits_option(&Path::new("/").join("x".repeat(500))));
    }

    #[test]
    fn files_are_distinguished_by_pid() {
        let folder = Folder::new().expect("made");
        let put = |name: &str, bytes: &[u8]| {
            fs::write(folder.path.join(name), bytes).expect("written");
        };
        let stats = |pid| Stats { pid, rss: pid, ..Stats::zero() };
        for pid in [30_u64, 4, 100] {
            put(&format!("stats.{pid}"), &stats(pid).encode());
        }
        put("stats.7", b"rubbish of some length");
        put("stats.8", b"HWSTATS\0");
        put("stats.x", b"not of a process");
        put("other", b"not ours");
        let found = folder.collect(30);
        assert_eq!(found.main, Some(Ok(Box::new(stats(30)))));
        assert_eq!(found.others, [stats(4), stats(100)]);
        assert_eq!(
            found.unreadable,
            [
                "statistics of process 7: not a heapwright stats file",
                "statistics of process 8: the stats file is cut short"
            ]
        );
        assert_eq!(folder.collect(1).main, None);
        assert_eq!(folder.collect(7).main, Some(Err(String::from("not a heapwright stats file"))));
    }
}
