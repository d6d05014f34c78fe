//! The status files: found, mapped, and looked through.

use super::process;
use crate::wrong::wrong;
use anyhow::Context;
use heapwright_record::status::{FILE_BYTES, File, Owner, PROFILE_NAME, Report};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::rc::Rc;

/// What a status file's name begins with; the user's number follows.
const STEM: &str = "heapwright-";

/// A status file, mapped.
struct Mapped {
    at: NonNull<File>,
    file: OwnedFd,
    folder: PathBuf,
}

impl Mapped {
    /// Maps a file, if it is one: of one user, for that user alone.
    fn open(path: &Path, user: u32) -> Option<Self> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .ok()?;
        let about = file.metadata().ok()?;
        let is_private = about.permissions().mode() & 0o077 == 0 && about.uid() == user;
        // The first page has memory: to read another one of a file without would give it some.
        if !(about.is_file()
            && is_private
            && about.len() >= FILE_BYTES as u64
            && about.blocks() > 0)
        {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the open file replaces nothing.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                FILE_BYTES,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        let folder = path.parent()?.to_owned();
        let mapped = Self { at: NonNull::new(at.cast())?, file: file.into(), folder };
        mapped.get().is_of_this_version().then_some(mapped)
    }

    fn get(&self) -> &File {
        // SAFETY: mapped as long as this lives, and long enough (unless its user cuts it, which ends us, as with any mapped file); any
        // bytes are a file, whose words are atomics.
        unsafe { self.at.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `open`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), FILE_BYTES) };
    }
}

/// All status files that may be read.
pub(crate) struct Files {
    files: Vec<Rc<Mapped>>,
    namespace: u32,
}

/// One process's part of a file.
#[derive(Clone)]
pub(crate) struct Slot {
    file: Rc<Mapped>,
    index: usize,
    owner: Owner,
}

impl Files {
    /// Opens those of this user, or of all users, for the superuser.
    pub(crate) fn open() -> Self {
        // SAFETY: no preconditions.
        let user = unsafe { libc::geteuid() };
        let mut folders = BTreeSet::from([PathBuf::from("/dev/shm")]);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        folders.extend(runtime.filter(|folder| folder.is_absolute()));
        folders.insert(PathBuf::from(format!("/run/user/{user}")));
        if user == 0 {
            folders.extend(entries(Path::new("/run/user")));
        }
        let mut files = Vec::new();
        for path in folders.iter().flat_map(|folder| entries(folder)) {
            let name = path.file_name().and_then(|name| name.to_str());
            let of = name.and_then(|name| name.strip_prefix(STEM)?.parse::<u32>().ok());
            if let Some(of) = of.filter(|&of| user == 0 || of == user) {
                files.extend(Mapped::open(&path, of).map(Rc::new));
            }
        }
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino() as u32);
        Self { files, namespace }
    }

    /// The slots that processes have.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let here = self.namespace;
        self.files.iter().flat_map(move |file| {
            (0..file.get().allocated()).filter_map(move |index| {
                let owner = file.get().owner(index)?;
                (owner.namespace == here).then(|| Slot { file: Rc::clone(file), index, owner })
            })
        })
    }

    /// The slot of a process; an error says why there is none.
    pub(crate) fn slot_of(&self, process: u32) -> anyhow::Result<Slot> {
        let is_its = |slot: &Slot| slot.owner.process == process && !slot.is_stale();
        if let Some(slot) = self.slots().find(is_its) {
            return Ok(slot);
        }
        let folder = PathBuf::from(format!("/proc/{process}"));
        let about =
            fs::metadata(&folder).map_err(|_| wrong(format!("there is no process {process}")))?;
        let maps = fs::read(folder.join("maps")).with_context(|| {
            format!("cannot look at process {process}, which user {} runs", about.uid())
        })?;
        let has_library = maps.windows(13).any(|window| window == b"libheapwright");
        Err(wrong(if has_library {
            format!(
                "process {process} does not show itself: it has not allocated yet, has the option publish=no, or is \
                 set-uid or in a container"
            )
        } else {
            format!("process {process} is not on heapwright: start it by `heapwright run`")
        }))
    }
}

/// What is in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

impl Slot {
    /// Whose it is.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The slot in the file, if it is still its owner's.
    pub(super) fn get(&self) -> Option<&heapwright_record::status::Slot> {
        let is_its = self.file.get().owner(self.index) == Some(self.owner);
        self.file.get().slot(self.index).filter(|_| is_its)
    }

    /// What the process shows, and says that it is looked at for the next seconds.
    pub(crate) fn read(&self) -> Option<Report> {
        const SECONDS: u64 = 5;
        let slot = self.get()?;
        slot.watch(now_ns() + SECONDS * 1_000_000_000);
        // One that is written just now is soon whole.
        (0..1000).find_map(|_| slot.read())
    }

    /// Whether its process has ended, or has become another program, which has no slot. (One that is not to be known is
    /// as it says.)
    pub(super) fn is_stale(&self) -> bool {
        let pid = self.owner.process;
        // SAFETY: the signal 0 is none.
        let is_there = unsafe { libc::kill(pid.cast_signed(), 0) } == 0
            || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
        if !is_there {
            return true;
        }
        let Some(slot) = self.get() else { return true };
        let mapped_at = || slot.read().map(|report| report.facts.mapped_at);
        let before = mapped_at();
        let is_another = before.is_some_and(|at| !process::has_mapped(pid, at));
        // The program that it has become may just have taken the slot anew.
        is_another && mapped_at() == before
    }

    /// Gives the slot back, if it is stale.
    pub(crate) fn clear_if_stale(&self) {
        if self.is_stale() {
            self.file.get().give_back(self.index, self.owner);
        }
    }

    /// Where the process writes its heap profile to when it is ordered to.
    pub(super) fn profile_path(&self, user: u32) -> PathBuf {
        let [before, between, behind] = PROFILE_NAME;
        let name = format!("{before}{user}{between}{}{behind}", self.owner.process);
        self.file.folder.join(name)
    }

    /// Locks it for giving orders, until the descriptor is closed. False: another command has it.
    pub(super) fn lock(&self) -> bool {
        let start = File::bytes_of(self.index) as libc::off_t;
        let length = (File::bytes_of(1) - File::bytes_of(0)) as libc::off_t;
        let lock = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: start,
            l_len: length,
            l_pid: 0,
        };
        // SAFETY: a descriptor, and a struct that is read.
        unsafe { libc::fcntl(self.file.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) == 0 }
    }
}

/// Nanoseconds of the monotonic clock, which all processes share.
pub(super) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
