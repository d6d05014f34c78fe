//! Reads a record's file from beginning to end, in pieces.
//!
//! A record may be as large as the disk, but little of it is kept: its entries pass through a
//! buffer of a megabyte. [`Fetch`] reads the report's stacks again later, from their places.
//!
//! A record counts as written by the owner of its file. If a process of root became another user,
//! that user's records lie in `STEM.users/UID/`, and only files of that user count there.

use crate::symbols::rights::user;
use anyhow::{Context, ensure};
use heapwright_record::Problem;
use heapwright_record::debug::{Entry, HEADER_BYTES, MOST_FRAMES, Reader};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PIECE: usize = 1 << 20;

/// The longest entry; writers of this format stay far below.
const LONGEST_ENTRY: usize = 64 << 20;

/// The advice for a file that is no record.
pub(super) const WHAT_IS_ONE: &str = "records are what 'heapwright check --keep FOLDER' and the library's options record= and profile= leave";

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) problem: Option<Problem>,
    /// The number of entries that only a newer version knows.
    pub(super) skipped: u64,
}

pub(super) fn open(path: &Path) -> anyhow::Result<(File, u32)> {
    // In the folder for another user's records, a link may lead anywhere.
    let user = user_of(path);
    let link = if user.is_some() { libc::O_NOFOLLOW } else { 0 };
    let look = if user.is_some() { fs::symlink_metadata } else { fs::metadata };
    let metadata = look(path)?;
    ensure!(!metadata.is_dir(), "it is a folder");
    ensure!(metadata.is_file(), "it is not a file");
    let file = File::options().read(true).custom_flags(link | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "it is not a file");
    let owner = metadata.uid();
    ensure!(user.is_none_or(|user| user == owner), "it is not of the user whose folder it is in");
    Ok((file, owner))
}

/// Returns the user for whose records the file's folder was made.
fn user_of(path: &Path) -> Option<u32> {
    let folder = path.parent()?;
    let is_of_users = folder.parent()?.extension()? == USERS;
    folder.file_name()?.to_str()?.parse().ok().filter(|_| is_of_users)
}

/// The end of the name of a folder for other users' records.
const USERS: &str = "users";

fn folders_of_users(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let within = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    within(folder)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == USERS))
        .flat_map(move |path| within(&path).map(|entry| entry.path()))
        .filter(|path| path.symlink_metadata().is_ok_and(|about| about.is_dir()))
}

/// Returns whether a user's record belongs to the run of `folder`. The user must be this command's,
/// or have a folder in `folder` that a process of the run made. The latter counts only if no other
/// user can write to `folder`, because such a user could have made the inner folder.
pub(super) fn is_of_run(folder: &Path, owner: u32) -> bool {
    let is_private = || {
        fs::metadata(folder).is_ok_and(|about| about.uid() == user() && about.mode() & 0o022 == 0)
    };
    owner == user()
        || is_private()
            && folders_of_users(folder)
                .any(|path| path.file_name().is_some_and(|name| *name == *owner.to_string()))
}

/// Passes each entry and its offset in the file to `each`, and the number of bytes read since the
/// last time to `progress`.
pub(super) fn read(
    mut file: File,
    progress: &dyn Fn(u64),
    each: &mut dyn FnMut(Entry<'_>, u64),
) -> anyhow::Result<Reading> {
    let mut buffer = Vec::new();
    let mut whole = fill(&mut file, &mut buffer, PIECE)?;
    let mut at = HEADER_BYTES as u64;
    Reader::new(buffer.get(..HEADER_BYTES).unwrap_or(&buffer))?;
    buffer.drain(..HEADER_BYTES);
    let mut read = Reading::default();
    loop {
        let mut reader = Reader::resume(&buffer, at);
        while let Some(entry) = reader.next() {
            each(entry, reader.began());
        }
        read.skipped += reader.skipped();
        let used = (reader.position() - at) as usize;
        progress(reader.position() - at);
        at = reader.position();
        match reader.problem() {
            Some(problem) if problem.is_cut() && !whole && buffer.len() < LONGEST_ENTRY => {}
            problem => {
                read.problem = problem;
                if problem.is_some() || whole {
                    return Ok(read);
                }
            }
        }
        buffer.drain(..used);
        let room = if used == 0 { buffer.len() * 2 } else { PIECE };
        whole = fill(&mut file, &mut buffer, room)?;
    }
}

/// Returns whether the file ended.
fn fill(file: &mut File, buffer: &mut Vec<u8>, length: usize) -> std::io::Result<bool> {
    let wanted = length.saturating_sub(buffer.len());
    let came = file.take(wanted as u64).read_to_end(buffer)?;
    Ok(came < wanted)
}

/// Returns the file itself, or all records in the folder.
pub(super) fn records(argument: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !argument.is_dir() {
        return Ok(vec![argument.to_owned()]);
    }
    fs::read_dir(argument).with_context(|| reading(argument))?;
    let mut found: Vec<PathBuf> = std::iter::once(argument.to_owned())
        .chain(folders_of_users(argument))
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| begins_as_one(path))
        .collect();
    ensure!(
        !found.is_empty(),
        "{}: there is no debug record in this folder; {WHAT_IS_ONE}",
        reading(argument)
    );
    found.sort_unstable_by_key(|path| {
        let number = path.extension().and_then(|pid| pid.to_str()?.parse::<u32>().ok());
        (number, path.clone())
    });
    Ok(found)
}

fn begins_as_one(path: &Path) -> bool {
    let mut header = [0; HEADER_BYTES];
    // A record with such a name is being written, or its process was killed while it wrote.
    let is_half = path.extension().is_some_and(|extension| extension == "new");
    let opened = if is_half { None } else { open(path).ok() };
    opened.is_some_and(|(mut file, _)| file.read_exact(&mut header).is_ok())
        && Reader::new(&header).is_ok()
}

pub(super) fn reading(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// Reads stacks again from several records.
#[derive(Default)]
pub(super) struct Fetch {
    open: Option<(u32, File)>,
}

impl Fetch {
    /// Returns the return addresses, and whether the stack was cut. `None` if the file has changed.
    pub(super) fn stack(
        &mut self,
        records: &[PathBuf],
        record: u32,
        at: u64,
    ) -> Option<(Vec<u64>, bool)> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != record) {
            self.open = Some((record, open(records.get(record as usize)?).ok()?.0));
        }
        let (_, file) = self.open.as_ref()?;
        let mut bytes = [0; 64 + 8 * MOST_FRAMES];
        let mut length = 0;
        while let Ok(came @ 1..) = file.read_at(&mut bytes[length..], at + length as u64) {
            length += came;
        }
        match Reader::resume(&bytes[..length], at).next()? {
            Entry::Stack(stack) => Some((stack.frames.iter().collect(), stack.frames.cut())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::Fault;
    use heapwright_record::debug::{Encoder, HEADER, Note};

    fn long(entries: usize) -> Vec<u8> {
        let text = vec![b'x'; 3000];
        let mut buffer = vec![0; 4000];
        let mut bytes = HEADER.to_vec();
        for _ in 0..entries {
            let note = Note { bytes: text[..].into() };
            bytes.extend_from_slice(Encoder::new(&mut buffer).entry(&note.into()));
        }
        bytes
    }

    #[test]
    fn a_file_of_many_pieces_is_read_to_its_end() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let path = scratch.path().join("record");
        for (entries, cut) in [(0, 0), (1, 0), (1000, 0), (1000, 1)] {
            let bytes = long(entries);
            fs::write(&path, &bytes[..bytes.len() - cut]).expect("written");
            let (mut count, mut last) = (0, 0);
            let read = read(open(&path).expect("is there").0, &|_| (), &mut |_, at| {
                assert!(at == 16 || at == last + 3016);
                (count, last) = (count + 1, at);
            })
            .expect("is a record");
            assert_eq!((count, read.problem.is_some()), (entries - cut, cut != 0));
        }
        // A length beyond the end costs no more than the file.
        let mut bytes = long(2);
        bytes[16 + 4..16 + 8].fill(0x7f);
        fs::write(&path, &bytes).expect("written");
        let file = open(&path).expect("is there").0;
        let read = read(file, &|_| (), &mut |_, _| panic!("nothing is good")).expect("a record");
        assert_eq!(read.problem.map(|problem| problem.fault()), Some(Fault::EndsWithin(16)));
    }
}
