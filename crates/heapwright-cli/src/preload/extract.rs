//! Extracts an embedded file to a place where a loader can map it, or the kernel can run it.
//!
//! ```text
//! $XDG_CACHE_HOME/heapwright/<version>-<hash>/libheapwright.so
//! /var/cache/heapwright/<version>-<hash>/libheapwright.so          root only
//! $HOME/.cache/heapwright/<version>-<hash>/libheapwright.so
//! $TMPDIR/heapwright-<uid>/<version>-<hash>/libheapwright.so
//! /tmp/heapwright-<uid>/..., /var/tmp/heapwright-<uid>/...
//! ```
//!
//! The library of `check` and the launcher lie beside this file. The first suitable place is used.
//!
//! A program that loads the library runs its code, so no other user may be able to change files in
//! the place. Each use verifies every folder from the root down, in this order. A folder must be
//! root's or ours (or that of the overflow user, who may be root, in a user namespace). Neither its
//! group nor other users may write to it, unless it is sticky. So no other user can rename a
//! verified folder, and paths stay valid. Our own folders belong to us. A place must also allow
//! mapping code (no `noexec` mount), and have a path that LD_PRELOAD can carry.
//!
//! All users may read our folders and files, under any umask: a program may become another user
//! before it starts the next program. Only root can become any user, and root's home is closed, so
//! root's place is /var/cache.
//!
//! An existing file is used if its bytes are right, and replaced otherwise. Comparing two megabytes
//! takes a good part of a small check, so each file is compared once. Then a small file beside it
//! (`.seen`) has the compared file's inode and ctime, which no user can set. A new file is written
//! under a name of its own and then renamed. So no program maps half a library, programs keep the
//! old file that they mapped, and processes may extract at the same time, even in other pid
//! namespaces.

use super::embedded::{self, Embedded};
use super::unfit_for_ld_preload;
use anyhow::{Context, bail, ensure};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// All may read, only we may write.
const MODE: u32 = 0o755;

/// The most names to try beside a file. Others belong to processes that write it now, or that were
/// killed meanwhile.
const ATTEMPTS: u32 = 100;

#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The folder that must exist, or be made: the user's cache folder, or /tmp.
    base: PathBuf,
    name: String,
    /// Whether the base may belong to another user, and must exist already.
    shared: bool,
}

/// Extracts the file if needed.
pub(super) fn extracted(file: &Embedded) -> anyhow::Result<PathBuf> {
    // SAFETY: takes no arguments and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let variable = |name: &str| std::env::var_os(name);
    let places = places(
        variable("XDG_CACHE_HOME").as_deref(),
        variable("HOME").as_deref(),
        variable("TMPDIR").as_deref(),
        uid,
    );
    let mut complaints = Vec::new();
    for place in places {
        match place.hold(file, uid) {
            Ok(path) => return Ok(path),
            Err(error) => complaints.push(format!("{error:#}")),
        }
    }
    bail!(
        "there is no place to extract {} to: {}; set XDG_CACHE_HOME to a folder of yours",
        file.name,
        complaints.join("; ")
    )
}

fn places(
    cache: Option<&OsStr>,
    home: Option<&OsStr>,
    temporary: Option<&OsStr>,
    uid: u32,
) -> Vec<Place> {
    // The XDG specification says to ignore a relative XDG_CACHE_HOME. A loader cannot use a
    // relative HOME or TMPDIR either.
    let absolute =
        |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let place = |base, shared| Place { base, name: String::from("heapwright"), shared };
    let chosen = absolute(cache);
    let of_home = absolute(home).map(|home| home.join(".cache")).filter(|_| chosen.is_none());
    let of_system = (uid == 0).then(|| PathBuf::from("/var/cache"));
    let of_user = chosen
        .map(|base| place(base, false))
        .into_iter()
        .chain(of_system.map(|base| place(base, true)))
        .chain(of_home.map(|base| place(base, false)));
    let mut shared: Vec<PathBuf> = absolute(temporary).into_iter().collect();
    for folder in ["/tmp", "/var/tmp"].map(PathBuf::from) {
        if !shared.contains(&folder) {
            shared.push(folder);
        }
    }
    let shared = shared.into_iter().map(|base| Place {
        base,
        name: format!("heapwright-{uid}"),
        shared: true,
    });
    of_user.chain(shared).collect()
}

impl Place {
    fn hold(&self, file: &Embedded, uid: u32) -> anyhow::Result<PathBuf> {
        let ours = self.prepare_base(uid)?.join(&self.name);
        let folder = ours.join(format!("{}-{}", env!("CARGO_PKG_VERSION"), embedded::HASH));
        let path = folder.join(file.name);
        if let Some(culprit) = unfit_for_ld_preload(path.as_os_str()) {
            bail!("{}: LD_PRELOAD cannot carry {culprit:?} in a path", self.base.display());
        }
        make_ours(&ours, uid)?;
        make_ours(&folder, uid)?;
        allows_code(&folder)?;
        if !holds(&path, file.bytes, uid) {
            write_whole(&path, file.bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(path)
    }

    /// Makes the base if needed, and verifies that no other user can replace files in it. Returns
    /// its path without links.
    fn prepare_base(&self, uid: u32) -> anyhow::Result<PathBuf> {
        let shown = self.base.display();
        ensure!(
            !self.shared || has_id(uid),
            "in {shown}, other users' files look like ours in this user namespace"
        );
        if !self.shared && !self.base.exists() {
            // Leaves no files under a foreign owner (sudo keeps HOME), and makes no home folder for
            // an account without one (/nonexistent).
            let above = self.base.ancestors().find(|path| path.exists());
            let above = above.filter(|path| path.parent().is_some());
            let owner = above.and_then(|path| fs::metadata(path).ok()).map(|meta| meta.uid());
            ensure!(owner == Some(uid), "{shown} does not exist, and we do not own its parent");
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.base)
                .with_context(|| format!("cannot make {shown}"))?;
        }
        let base = fs::canonicalize(&self.base).with_context(|| format!("{shown}"))?;
        let mut folders: Vec<&Path> = base.ancestors().collect();
        folders.reverse();
        for folder in folders {
            only_we_may_change(folder, uid)?;
        }
        let meta = fs::symlink_metadata(&base).with_context(|| format!("{shown}"))?;
        ensure!(self.shared || meta.uid() == uid, "{shown} belongs to another user");
        Ok(base)
    }
}

/// Refuses a folder in which a user other than root and this one can rename something. The caller
/// knows that no such user can rename the folder itself.
fn only_we_may_change(folder: &Path, uid: u32) -> anyhow::Result<()> {
    let shown = folder.display();
    let meta = fs::symlink_metadata(folder).with_context(|| format!("{shown}"))?;
    ensure!(meta.is_dir(), "{shown} is not a folder");
    let is_known = [0, uid].contains(&meta.uid()) || Some(meta.uid()) == nobody();
    ensure!(is_known, "{shown} belongs to another user");
    let is_sticky = meta.mode() & 0o1000 != 0;
    ensure!(is_sticky || meta.mode() & 0o002 == 0, "any user may rename files in {shown}");
    ensure!(is_sticky || meta.mode() & 0o020 == 0, "the group of {shown} may rename files in it");
    Ok(())
}

/// Returns the user id that stands for all users who are unknown in this user namespace. Root may
/// be one of them.
fn nobody() -> Option<u32> {
    let users = fs::read_to_string("/proc/self/uid_map").ok()?;
    let is_whole = users.split_whitespace().eq(["0", "0", "4294967295"]);
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
    number.trim().parse().ok().filter(|_| !is_whole)
}

/// Returns whether this user namespace has an id for us. If not, we have the overflow user's, as all
/// unknown users have.
fn has_id(uid: u32) -> bool {
    let Ok(users) = fs::read_to_string("/proc/self/uid_map") else { return true };
    users.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (first, count) = (numbers.next().unwrap_or(0), numbers.nth(1).unwrap_or(0));
        (first..first + count).contains(&u64::from(uid))
    })
}

/// Makes or checks a folder of ours that all users may read. The caller knows that no other user
/// can rename anything in its parent.
fn make_ours(folder: &Path, uid: u32) -> anyhow::Result<()> {
    let shown = folder.display();
    match DirBuilder::new().mode(MODE).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {shown}"));
        }
        _ => {}
    }
    let meta = fs::symlink_metadata(folder).with_context(|| format!("{shown}"))?;
    ensure!(meta.is_dir(), "{shown} is not a folder");
    ensure!(meta.uid() == uid, "{shown} belongs to another user");
    ensure!(meta.mode() & 0o022 == 0, "{shown} is open to other users");
    readable(folder, &meta)
}

fn readable(path: &Path, meta: &fs::Metadata) -> anyhow::Result<()> {
    if meta.mode() & 0o777 == MODE {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))
        .with_context(|| format!("cannot let other users read {}", path.display()))
}

/// Returns whether a file has exactly these bytes, and all may read it.
fn holds(path: &Path, bytes: &[u8], uid: u32) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    // A process that could open the file for writing once may still have it open.
    let was_open = meta.mode() & 0o022 != 0 || meta.nlink() != 1;
    if !meta.is_file() || meta.uid() != uid || meta.len() != bytes.len() as u64 || was_open {
        return false;
    }
    let (seen, mark) = (path.with_extension("seen"), mark_of(&meta));
    if fs::read(&seen).is_ok_and(|found| found == mark.as_bytes()) {
        return true;
    }
    if !fs::read(path).is_ok_and(|found| found == bytes) || readable(path, &meta).is_err() {
        return false;
    }
    // Two changes within one tick of the kernel's clock have the same time. Without a mark, the
    // bytes are compared again.
    if is_settled(&meta) && meta.mode() & 0o777 == MODE {
        let _ = write_whole(&seen, mark.as_bytes());
    }
    true
}

/// Returns a text that changes with a file's bytes, its mode and its owner.
fn mark_of(meta: &fs::Metadata) -> String {
    let (dev, ino, len) = (meta.dev(), meta.ino(), meta.len());
    format!("{dev} {ino} {len} {}.{:09}\n", meta.ctime(), meta.ctime_nsec())
}

fn is_settled(meta: &fs::Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).is_ok_and(|now| now.saturating_sub(meta.ctime()) > 2)
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (beside, mut file) = create_beside(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(MODE)))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn create_beside(path: &Path) -> std::io::Result<(PathBuf, fs::File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut tries = 0;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut beside = OsString::from(path);
        beside.push(format!(".{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(MODE).open(&beside) {
            Ok(file) => return Ok((PathBuf::from(beside), file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < ATTEMPTS => {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Refuses a mount from which code cannot be mapped.
fn allows_code(folder: &Path) -> anyhow::Result<()> {
    let name = CString::new(folder.as_os_str().as_bytes())?;
    let mut mount = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the name ends in NUL and the result's place is writable.
    let result = unsafe { libc::statvfs(name.as_ptr(), mount.as_mut_ptr()) };
    if result == 0 {
        // SAFETY: zeroed is a valid statvfs, and the call has filled it since.
        let mount = unsafe { mount.assume_init() };
        ensure!(mount.f_flag & libc::ST_NOEXEC == 0, "{} is mounted noexec", folder.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Folder;
    use std::os::unix::fs::symlink;

    const THE_LIBRARY: Embedded = Embedded { name: "libheapwright.so", bytes: b"the library" };
    const X: Embedded = Embedded { name: "x", bytes: b"x" };

    fn uid() -> u32 {
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::geteuid() }
    }

    fn place(folder: &Folder) -> Place {
        let base = folder.path().join("cache");
        Place { base, name: String::from("heapwright"), shared: false }
    }

    /// Counts files, except marks: a fast machine writes none.
    fn files(folder: &Path) -> usize {
        let all = fs::read_dir(folder).expect("there").flatten().map(|entry| entry.path());
        all.filter(|path| path.extension().is_none_or(|end| end != "seen")).count()
    }

    fn list(places: &[Place]) -> Vec<String> {
        places.iter().map(|p| p.base.join(&p.name).display().to_string()).collect()
    }

    #[test]
    fn the_users_cache_comes_before_shared_folders() {
        let os = |text: &'static str| Some(OsStr::new(text));
        assert_eq!(
            list(&places(os("/c"), os("/home/u"), os("/t"), 7)),
            ["/c/heapwright", "/t/heapwright-7", "/tmp/heapwright-7", "/var/tmp/heapwright-7"]
        );
        assert_eq!(
            list(&places(os("relative"), os("/home/u"), os("/tmp"), 7)),
            ["/home/u/.cache/heapwright", "/tmp/heapwright-7", "/var/tmp/heapwright-7"]
        );
        assert_eq!(
            list(&places(os(""), os(""), None, 7)),
            ["/tmp/heapwright-7", "/var/tmp/heapwright-7"]
        );
    }

    #[test]
    fn roots_place_is_one_that_all_users_reach() {
        let os = |text: &'static str| Some(OsStr::new(text));
        assert_eq!(
            list(&places(None, os("/root"), os("/tmp"), 0))[..2],
            ["/var/cache/heapwright", "/root/.cache/heapwright"]
        );
        assert_eq!(
            list(&places(os("/c"), None, None, 0))[..2],
            ["/c/heapwright", "/var/cache/heapwright"]
        );
    }

    #[test]
    fn a_damaged_file_is_replaced_and_a_good_one_left_alone() {
        let scratch = Folder::new().expect("made");
        let path = place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert_eq!(fs::read(&path).expect("there"), b"the library");
        let inode = fs::metadata(&path).expect("there").ino();
        place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert_eq!(fs::metadata(&path).expect("there").ino(), inode);
        fs::write(&path, b"something else").expect("written");
        place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert_eq!(fs::read(&path).expect("there"), b"the library");
        assert_eq!(files(path.parent().expect("has one")), 1, "a file was left behind");
    }

    #[test]
    fn what_was_seen_to_be_right_is_not_read_again_until_it_changes() {
        let scratch = Folder::new().expect("made");
        let path = place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        let seen = path.with_extension("seen");
        assert!(!seen.exists(), "a file that was just written may yet change without a trace");
        let mark = |path: &Path| mark_of(&fs::symlink_metadata(path).expect("there"));
        // The file counts as verified, so other bytes of the same length are not noticed.
        fs::write(&path, b"the_library").expect("written");
        fs::write(&seen, mark(&path)).expect("written");
        assert!(holds(&path, THE_LIBRARY.bytes, uid()));
        // Waits for a tick of the kernel's clock, so that a change has a time of its own.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("set");
        assert!(!holds(&path, THE_LIBRARY.bytes, uid()));
        place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert_eq!(fs::read(&path).expect("there"), b"the library");
        assert!(!holds(&path, b"another length", uid()));
    }

    #[test]
    fn a_link_in_the_librarys_place_is_replaced_not_followed() {
        let scratch = Folder::new().expect("made");
        let path = place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        let other = scratch.path().join("other");
        fs::write(&other, b"the library").expect("written");
        fs::remove_file(&path).expect("removed");
        symlink(&other, &path).expect("linked");
        place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert!(fs::symlink_metadata(&path).expect("there").is_file());
    }

    #[test]
    fn places_others_could_change_are_refused() {
        let scratch = Folder::new().expect("made");
        let place = place(&scratch);
        fs::create_dir(&place.base).expect("made");
        let ours = place.base.join("heapwright");
        let complaint = || format!("{:#}", place.hold(&X, uid()).expect_err("is refused"));

        symlink("/tmp", &ours).expect("linked");
        assert_eq!(complaint(), format!("{} is not a folder", ours.display()));
        fs::remove_file(&ours).expect("removed");

        fs::create_dir(&ours).expect("made");
        fs::set_permissions(&ours, PermissionsExt::from_mode(0o777)).expect("opened");
        assert_eq!(complaint(), format!("{} is open to other users", ours.display()));
        fs::set_permissions(&ours, PermissionsExt::from_mode(0o755)).expect("closed");
        place.hold(&X, uid()).expect("held");

        // The place's folder, and the folder above it. A sticky folder is as good as a closed one.
        for folder in [&*place.base, scratch.path()] {
            let set =
                |mode| fs::set_permissions(folder, PermissionsExt::from_mode(mode)).expect("set");
            set(0o777);
            assert_eq!(complaint(), format!("any user may rename files in {}", folder.display()));
            set(0o775);
            assert_eq!(
                complaint(),
                format!("the group of {} may rename files in it", folder.display())
            );
            set(0o1777);
            place.hold(&X, uid()).expect("held");
            set(0o755);
        }
    }

    #[test]
    fn a_file_that_others_could_write_is_replaced() {
        let scratch = Folder::new().expect("made");
        let path = place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        let inode = || fs::metadata(&path).expect("there").ino();
        for mode in [0o775, 0o757] {
            let before = inode();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("set");
            place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
            assert_ne!(inode(), before, "{mode:o}");
        }
        let before = inode();
        fs::hard_link(&path, scratch.path().join("other")).expect("linked");
        place(&scratch).hold(&THE_LIBRARY, uid()).expect("held");
        assert_ne!(inode(), before);
    }

    #[test]
    fn everybody_may_read_what_only_we_may_write() {
        let scratch = Folder::new().expect("made");
        let place =
            Place { base: scratch.path().to_owned(), name: String::from("h-1"), shared: true };
        let path = place.hold(&X, uid()).expect("held");
        let folders = [scratch.path().join("h-1"), path.parent().expect("one").to_owned()];
        let modes = || {
            let all = folders.iter().chain([&path]);
            all.map(|path| fs::metadata(path).expect("there").mode() & 0o777).collect::<Vec<_>>()
        };
        assert_eq!(modes(), [0o755; 3]);
        // Files closed by an earlier version or a umask are opened.
        for path in folders.iter().chain([&path]) {
            fs::set_permissions(path, PermissionsExt::from_mode(0o700)).expect("set");
        }
        place.hold(&X, uid()).expect("held");
        assert_eq!(modes(), [0o755; 3]);
        fs::set_permissions(&folders[0], PermissionsExt::from_mode(0o775)).expect("set");
        place.hold(&X, uid()).expect_err("is refused");
    }

    #[test]
    fn threads_may_extract_at_once() {
        let bytes: &[u8] = &[7; 1 << 20];
        for _ in 0..10 {
            let scratch = Folder::new().expect("made");
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            let path = place(&scratch).hold(&Embedded { name: "x", bytes }, uid());
                            fs::read(path.expect("held")).expect("readable") == bytes
                        })
                    })
                    .collect();
                assert!(threads.into_iter().all(|thread| thread.join().expect("ended")));
            });
            let folder = fs::read_dir(place(&scratch).base.join("heapwright")).expect("there");
            let all = folder.flatten().map(|entry| files(&entry.path()));
            assert_eq!(all.sum::<usize>(), 1, "files are left behind");
        }
    }

    #[test]
    fn a_place_of_another_user_is_refused() {
        let scratch = Folder::new().expect("made");
        let complaint = place(&scratch).hold(&X, uid() + 1).expect_err("is refused");
        let base = scratch.path().join("cache");
        assert_eq!(
            complaint.to_string(),
            format!("{} does not exist, and we do not own its parent", base.display())
        );
        assert!(!base.exists());
    }
}
