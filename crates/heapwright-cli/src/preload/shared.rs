//! The memory that the processes of one check share (option `rules`).
//!
//! ```text
//!   rules, 1 MiB     unwind rules that processes have read from tables
//!   spill, 16 MiB    entries of records that no file takes      --collect-->  record.PID
//! ```
//!
//! The file has no name. Processes find it under /proc while the command lives; later each process
//! reads its tables itself. The file is sealed: a truncated file would fault in each process that
//! has mapped it.
//!
//! The spill (`heapwright_record::spill`) has entries that a process could not write to its file:
//! the process is another user or in a `chroot`, the disk is full, or the file is gone. After the
//! run [`Shared::collect`] adds these entries to the process's record.
//!
//! Every process of the run can write to the spill, also one of root's that became another user's.
//! Then root's command gives these records to that user, and reads them with the user's rights.

use crate::statistics::{Folder, for_records};
use crate::symbols::rights::user;
use heapwright_record::debug::HEADER;
use heapwright_record::spill::{self, BYTES, Kind, OFFSET};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown, symlink};
use std::path::{Path, PathBuf};

pub(crate) struct Shared(File);

/// Records that did not fit on their folder's disk, each with the link to it in that folder.
pub(crate) struct Elsewhere {
    folder: Folder,
    records: Vec<(PathBuf, PathBuf)>,
}

impl Elsewhere {
    /// Replaces each link by as much of its record as fits.
    pub(crate) fn bring_back(&self) -> io::Result<()> {
        let bring = |(record, link): &(PathBuf, PathBuf)| {
            let mut record = File::open(record)?;
            // (The program may have removed the link.)
            let _gone = fs::remove_file(link);
            let mut copy = File::options().write(true).create_new(true).mode(0o600).open(link)?;
            io::copy(&mut record, &mut copy)?;
            // (Some file systems have no owners.)
            let _owned = fchown(&copy, Some(record.metadata()?.uid()), None);
            Ok(())
        };
        self.records.iter().map(bring).fold(Ok(()), io::Result::and)
    }
}

#[derive(Default)]
struct Spilled {
    next: Vec<u8>,
    again: Vec<u8>,
    /// Whether other entries follow `again`. Later repetitions come from a copy of the process.
    is_repeated: bool,
}

impl Shared {
    /// Returns `None` without memory, or if the kernel has no such files.
    pub(crate) fn new() -> Option<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends in NUL.
        let file = unsafe { libc::memfd_create(c"heapwright-shared".as_ptr(), flags) };
        if file < 0 {
            return None;
        }
        // SAFETY: the descriptor was just made, and only this call knows it.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len((OFFSET + BYTES) as u64).ok()?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is open, and the call takes only numbers.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0;
        sealed.then_some(Self(file))
    }

    /// Returns the option with the file's path.
    pub(crate) fn option(&self) -> String {
        format!("rules=/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Adds the spill's entries to the records in a folder, which is made again if it is gone, and
    /// empties the spill. Records that do not fit on the folder's disk go to another folder, which
    /// is returned. Prints a line for each record that cannot be written.
    pub(crate) fn collect(&self, records: &Path, stem: &str) -> Option<Elsewhere> {
        let mut elsewhere: Option<Elsewhere> = None;
        for (pid, spilled) in self.take().unwrap_or_default() {
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(records);
            let path = records.join(format!("{stem}.{pid}"));
            let file = [path.clone()].into_iter().chain(of_users(records, stem, pid));
            let known = file.into_iter().find(|path| has_entries(path));
            let given_to = user_of(records, stem);
            let written = spilled.add_to(known.as_deref(), &path, given_to).or_else(|_| {
                let Elsewhere { folder, records } = match &mut elsewhere {
                    Some(elsewhere) => elsewhere,
                    place => {
                        let folder = Folder::in_memory()?;
                        place.insert(Elsewhere { folder, records: Vec::new() })
                    }
                };
                for_records(folder.path())?;
                let copy = folder.path().join(format!("{stem}.{pid}"));
                let known = known.as_deref().unwrap_or(&path);
                let is_known = has_entries(known);
                if is_known {
                    fs::copy(known, &copy)?;
                }
                spilled.add_to(is_known.then_some(copy.as_path()), &copy, given_to)?;
                let _ = fs::remove_file(known);
                symlink(&copy, known).map(|()| records.push((copy, known.to_owned())))
            });
            if let Err(error) = written {
                eprintln!("heapwright: the record of process {pid} cannot be written: {error}");
            }
        }
        elsewhere
    }

    fn take(&self) -> io::Result<BTreeMap<u32, Spilled>> {
        let mut all: BTreeMap<u32, Spilled> = BTreeMap::new();
        let mut used = [0; 8];
        self.0.read_exact_at(&mut used, OFFSET as u64)?;
        if used == [0; 8] {
            return Ok(all);
        }
        let mut spill = vec![0; BYTES];
        self.0.read_exact_at(&mut spill, OFFSET as u64)?;
        for (pid, kind, bytes) in spill::blocks(&spill) {
            let spilled = all.entry(pid).or_default();
            match kind {
                Kind::Next => {
                    spilled.is_repeated |= !spilled.again.is_empty();
                    spilled.next.extend_from_slice(bytes);
                }
                Kind::Again if spilled.is_repeated => {}
                Kind::Again => spilled.again.extend_from_slice(bytes),
            }
        }
        // The blocks are cleared first, and then their number.
        let used = usize::try_from(u64::from_ne_bytes(used)).unwrap_or(usize::MAX);
        let end = used.saturating_add(1).saturating_mul(spill::BLOCK).min(BYTES);
        spill[..end].fill(0);
        self.0.write_all_at(&spill[8..end], OFFSET as u64 + 8)?;
        self.0.write_all_at(&[0; 8], OFFSET as u64)?;
        Ok(all)
    }
}

impl Spilled {
    /// Adds to the process's record `known`, or makes a record at `path`. Gives the record to the
    /// user `given_to` if it is the command's own file.
    fn add_to(&self, known: Option<&Path>, path: &Path, given_to: Option<u32>) -> io::Result<()> {
        let mut options = File::options();
        options.append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let (file, length) = match known {
            Some(known) => {
                let file = options.open(known)?;
                let length = file.metadata()?.len();
                (file, length)
            }
            None => (options.create(true).mode(0o600).open(path)?, 0),
        };
        let write = |mut file: &File| {
            if known.is_none() {
                file.write_all(&HEADER)?;
                file.write_all(&self.again)?;
            }
            file.write_all(&self.next)
        };
        write(&file).inspect_err(|_| {
            let _ = file.set_len(length);
        })?;
        let about = file.metadata()?;
        if given_to.is_some() && about.uid() == user() && about.nlink() == 1 {
            fchown(&file, given_to, None)?;
        }
        Ok(())
    }
}

fn has_entries(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0)
}

/// Returns the files that processes of other users may have for a process.
fn of_users(records: &Path, stem: &str, pid: u32) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(records.join(format!("{stem}.users")));
    let name = format!("process.{pid}");
    folders.into_iter().flatten().flatten().map(move |folder| folder.path().join(&name))
}

/// Returns the user that a process of root became in this run.
fn user_of(records: &Path, stem: &str) -> Option<u32> {
    let folders = fs::read_dir(records.join(format!("{stem}.users")));
    let mut names = folders.into_iter().flatten().flatten().map(|folder| folder.file_name());
    names.find_map(|name| name.to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::spill::word;

    fn put(shared: &Shared, pid: u32, kind: Kind, bytes: &[u8]) {
        let mut used = [0; 8];
        shared.0.read_exact_at(&mut used, OFFSET as u64).expect("read");
        let block = u64::from_ne_bytes(used) + 1;
        let at = OFFSET as u64 + block * spill::BLOCK as u64;
        shared.0.write_all_at(&word(pid, bytes.len(), kind).to_ne_bytes(), at).expect("written");
        shared.0.write_all_at(bytes, at + 8).expect("written");
        shared.0.write_all_at(&block.to_ne_bytes(), OFFSET as u64).expect("written");
    }

    #[test]
    fn entries_go_on_in_their_file_or_begin_it() {
        let folder = Folder::quietly().expect("made");
        let shared = Shared::new().expect("made");
        let record = |pid: u32| folder.path().join(format!("record.{pid}"));
        fs::write(record(1), "file").expect("written");
        for pid in [1, 2] {
            put(&shared, pid, Kind::Next, b"+next");
            put(&shared, pid, Kind::Again, b"+again");
            put(&shared, pid, Kind::Next, b"+last");
            // A second copy of the process repeats the entries.
            put(&shared, pid, Kind::Again, b"+again");
        }
        assert!(shared.collect(folder.path(), "record").is_none());
        assert_eq!(fs::read(record(1)).expect("read"), b"file+next+last");
        let made = [&HEADER[..], b"+again+next+last"].concat();
        assert_eq!(fs::read(record(2)).expect("read"), made);
        assert!(shared.take().expect("read").is_empty());
        put(&shared, 3, Kind::Next, b"x");
        fs::remove_dir_all(folder.path()).expect("removed");
        assert!(shared.collect(folder.path(), "record").is_none());
        assert!(record(3).exists() && !record(1).exists());
    }
}
