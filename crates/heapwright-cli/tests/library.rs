//! The library inside the command: extracted whole and once, to a place that nobody else can
//! change.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn in_cache(cache: &std::path::Path) -> Command {
    let mut command = heapwright();
    command.arg("library").env("XDG_CACHE_HOME", cache);
    command
}

fn path_from(command: &mut Command) -> PathBuf {
    let output = done(command);
    assert!(output.status.success(), "{}", stderr(&output));
    PathBuf::from(stdout(&output).trim_end())
}

#[test]
fn the_library_is_extracted_to_the_cache() {
    let folder = Folder::new();
    let path = path_from(&mut in_cache(&folder.path("")));
    let inside = path.strip_prefix(folder.path("")).expect("is in the cache");
    let parts: Vec<_> = inside.iter().map(|part| part.to_str().expect("is text")).collect();
    assert_eq!((parts[0], parts[2]), ("heapwright", "libheapwright.so"));
    let (version, hash) = parts[1].split_once('-').expect("is version-hash");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert_eq!(hash.len(), 16);
    assert!(fs::read(&path).expect("there").starts_with(b"\x7fELF"));

    let before = fs::metadata(&path).expect("there").ino();
    assert_eq!(path_from(&mut in_cache(&folder.path(""))), path);
    assert_eq!(fs::metadata(&path).expect("there").ino(), before, "extracted twice");
}

#[test]
fn a_damaged_copy_is_not_used() {
    let folder = Folder::new();
    let path = path_from(&mut in_cache(&folder.path("")));
    let whole = fs::read(&path).expect("there");
    fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    assert_eq!(path_from(&mut in_cache(&folder.path(""))), path);
    assert!(fs::read(&path).expect("there") == whole);
}

/// A home that does not exist, and that nobody can make.
const NO_HOME: &str = "/proc/no-home";

/// A user who is neither us nor root.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("there").uid() == 0
}

/// Returns a copy of the command, for another user: the target folder may be closed to users.
/// `None` if this user is not root, for only root can become another user.
fn as_nobody(folder: &Folder) -> Option<Command> {
    use std::os::unix::process::CommandExt;
    if !is_root() {
        return None;
    }
    let copy = folder.path("heapwright");
    fs::copy(env!("CARGO_BIN_EXE_heapwright"), &copy).expect("copied");
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env("HOME", NO_HOME);
    for name in ["HEAPWRIGHT", "HEAPWRIGHT_LIBRARY", "LD_PRELOAD", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    Some(command)
}

/// Makes a folder that other users can reach: the target folder may lie in a user's home.
fn public() -> (Folder, PathBuf) {
    let folder = Folder::new_in(&std::env::temp_dir());
    let path = folder.path("");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
    (folder, path)
}

#[test]
fn without_a_cache_a_folder_among_temporary_ones_is_used() {
    let (folder, base) = public();
    let mut command = match as_nobody(&folder) {
        Some(command) => command,
        None => {
            let mut command = heapwright();
            command.env_remove("XDG_CACHE_HOME").env("HOME", NO_HOME);
            command
        }
    };
    let temporary = base.join("temporary");
    fs::create_dir(&temporary).expect("made");
    // /tmp has this mode.
    fs::set_permissions(&temporary, PermissionsExt::from_mode(0o1777)).expect("set");
    command.arg("library").env("TMPDIR", &temporary);
    let path = path_from(&mut command);
    assert!(path.starts_with(&temporary), "{}", path.display());
    let ours = temporary.join(format!("heapwright-{}", fs::metadata(&path).expect("there").uid()));
    assert_eq!(fs::metadata(&ours).expect("there").mode() & 0o777, 0o755);

    // A folder that is open to others is no longer trusted. The next place is used.
    fs::set_permissions(&ours, PermissionsExt::from_mode(0o777)).expect("set");
    let elsewhere = path_from(&mut command);
    assert!(!elsewhere.starts_with(&temporary), "{}", elsewhere.display());
}

/// Root's home is closed to other users. A program that root starts may become another user.
#[test]
fn a_program_that_becomes_another_user_still_loads_it() {
    use std::os::unix::process::CommandExt;
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let mut ask = heapwright();
    let path = path_from(ask.arg("library").env_remove("XDG_CACHE_HOME"));
    let mut command = Command::new("sort");
    command.arg("/etc/passwd").uid(NOBODY).gid(NOBODY).current_dir("/");
    let output = done(command.env("LD_PRELOAD", &path).env("HEAPWRIGHT", "stats=exit"));
    assert!(output.status.success());
    let printed = stderr(&output);
    assert!(printed.starts_with("heapwright: memory of process"), "{printed}");
}

#[test]
fn many_at_once_extract_one_whole_library() {
    let folder = Folder::new();
    let children: Vec<_> = (0..16)
        .map(|_| in_cache(&folder.path("")).stdout(Stdio::piped()).spawn().expect("started"))
        .collect();
    let mut paths: Vec<_> = children
        .into_iter()
        .map(|child| stdout(&child.wait_with_output().expect("ended")))
        .collect();
    paths.dedup();
    assert_eq!(paths.len(), 1, "{paths:?}");
    let path = PathBuf::from(paths[0].trim_end());
    let beside = fs::read_dir(path.parent().expect("has one")).expect("there").count();
    assert_eq!(beside, 1, "files are left behind");
}

#[test]
fn the_printed_library_works_by_hand() {
    let path = stdout(&done(heapwright().arg("library")));
    let folder = Folder::new();
    let output = done(
        Command::new("sort")
            .arg("/etc/passwd")
            .env("LD_PRELOAD", path.trim_end())
            .env("HEAPWRIGHT", format!("stats_file={}", folder.path("s").display())),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let files: Vec<_> = fs::read_dir(folder.path("")).expect("there").flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let bytes = fs::read(files[0].path()).expect("there");
    let stats = heapwright_record::Stats::decode(&bytes).expect("is a stats file");
    assert!(stats.allocations > 0);
}

#[test]
fn a_given_library_is_used() {
    let folder = Folder::new();
    let source = "#include <unistd.h>\n__attribute__((constructor)) static void here(void) {\
                  if (write(1, \"mine\\n\", 5) != 5) _exit(9); }";
    let library = folder.compile("mine.so", &["-shared", "-fPIC"], source);
    let relative = format!("./{}", library.file_name().expect("has one").display());
    let mut flag = heapwright();
    flag.args(["run", "--library", &relative, "--", "true"]).current_dir(folder.path(""));
    assert_eq!(stdout(&done(&mut flag)), "mine\n");
    let mut variable = heapwright();
    variable.args(["run", "--", "true"]).env("HEAPWRIGHT_LIBRARY", &library);
    assert_eq!(stdout(&done(&mut variable)), "mine\n");
    let mut print = heapwright();
    print.arg("library").env("HEAPWRIGHT_LIBRARY", &library);
    assert_eq!(stdout(&done(&mut print)), format!("{}\n", text(&library)));
    let mut empty = heapwright();
    empty.args(["run", "--", "echo", "ok"]).env("HEAPWRIGHT_LIBRARY", "");
    assert_eq!(stdout(&done(&mut empty)), "ok\n");
}
