//! The common part of the C library's tests: they build `libheapwright` as users get it (release,
//! alone), compile C and C++ programs, and run them.
//!
//! A global allocator needs a process of its own for each behaviour, so the tests are programs,
//! under `tests/programs`. A program prints its errors on stderr and exits with 1. Silence and 0
//! mean success. Programs without heapwright's own functions also run on the plain C library. That
//! tests the tests' expectations themselves.
//!
//! Environment, for running elsewhere or against another build:
//!
//! | variable | meaning |
//! |---|---|
//! | `HEAPWRIGHT_TEST_LIBRARY` | a directory with the library: do not build it |
//! | `HEAPWRIGHT_TEST_OBSERVING_LIBRARY` | the same, with the feature `observe` |
//! | `HEAPWRIGHT_TEST_CACHE` | the cache model, such as `shared:2`, of programs whose tests name no model or mode |
//! | `HEAPWRIGHT_TEST_MODE` | the mode, such as `hardened:full`, of programs whose tests name no model or mode |
//! | `CC`, `CXX` | the compilers, `cc` and `c++` by default |
//! | `HEAPWRIGHT_TEST_RUNNER` | an emulator of another machine, such as `qemu-aarch64 -L /usr/aarch64-linux-gnu` |
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a program may take. (A deadlock would last for ever.)
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root exists")
}

/// The tests' files, a directory per compiler: programs of another C library have the same names.
pub(crate) fn scratch() -> PathBuf {
    let compiler = std::env::var("CC").unwrap_or_default();
    let name = Path::new(&compiler).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("preload{name}"));
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    directory
}

/// The directory that holds `libheapwright.so` and `libheapwright.a`.
///
/// Another cargo builds the library once, in the release profile. It has its own target directory,
/// because the running cargo holds the lock of the tests' directory. The library is built alone,
/// because features of other members of the workspace could bring std into it.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("HEAPWRIGHT_TEST_LIBRARY") {
            return PathBuf::from(given).canonicalize().expect("HEAPWRIGHT_TEST_LIBRARY exists");
        }
        build("heapwright-malloc", "build", &[])
    })
}

/// Another library of these sources, as it is shipped: from a variable, or built.
pub(crate) fn shipped(package: &str, variable: &str) -> PathBuf {
    if let Some(given) = std::env::var_os(variable) {
        return PathBuf::from(given).canonicalize().expect("the library that is given exists");
    }
    build(package, "build", &[]).join(format!("lib{}.so", package.replace('-', "_")))
}

/// Builds a library in a target directory of its own.
fn build(package: &str, directory: &str, features: &[&str]) -> PathBuf {
    let target = scratch().join(directory);
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", package, "--target-dir"])
        .arg(&target)
        .args(features)
        .current_dir(root())
        .status()
        .expect("cargo runs");
    assert!(built.success(), "cannot build the library");
    target.join("release")
}

/// The library with the feature `observe`, which shows the debug heap's hooks to a test program.
/// `None` if only the other library was given.
pub(crate) fn observing_library() -> Option<PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let given = std::env::var_os("HEAPWRIGHT_TEST_LIBRARY").is_some();
            let directory = match std::env::var_os("HEAPWRIGHT_TEST_OBSERVING_LIBRARY") {
                Some(directory) => PathBuf::from(directory),
                None if given => return None,
                None => build("heapwright-malloc", "build-observe", &["--features", "observe"]),
            };
            Some(directory.join("libheapwright.so"))
        })
        .clone()
}

pub(crate) fn shared_library() -> PathBuf {
    library().join("libheapwright.so")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The C library's own allocator, which shows that the test itself is right.
    Plain,
    /// `LD_PRELOAD`.
    Preload,
    /// `-lheapwright`.
    Linked,
    /// `libheapwright.a`, in an otherwise dynamic program.
    Archive,
    /// `libheapwright.a`, in a program without dynamic linking.
    Static,
}

pub(crate) const ON_HEAPWRIGHT: [How; 4] = [How::Preload, How::Linked, How::Archive, How::Static];

pub(crate) const EVERY_WAY: [How; 5] =
    [How::Plain, How::Preload, How::Linked, How::Archive, How::Static];

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn compiler(name: &str) -> Command {
    let (variable, default) = if name.ends_with(".cc") { ("CXX", "c++") } else { ("CC", "cc") };
    let mut command = Command::new(std::env::var(variable).unwrap_or_else(|_| default.into()));
    // The compiler must not remove the tested calls: it knows malloc and free.
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-builtin"]);
    // The compiler warns of mistakes that the tests make on purpose.
    command.args(["-Wno-alloc-size-larger-than", "-Wno-use-after-free"]);
    command.args(["-Wno-free-nonheap-object", "-Wno-mismatched-dealloc"]);
    if name.ends_with(".cc") {
        // gcc removes pairs of new and delete, too.
        command.args(["-std=c++17", "-Wno-mismatched-new-delete", "-Wno-sized-deallocation"]);
    } else {
        command.arg("-std=gnu11");
    }
    command.arg("-I").arg(root().join("include"));
    command
}

/// Adds the cache model or the mode that all tests must run with, if any, to a test's options.
fn add_options(command: &mut Command) {
    let asked = |name: &str, option: &str| Some(format!("{option}={}", std::env::var(name).ok()?));
    let Some(mut options) =
        asked("HEAPWRIGHT_TEST_CACHE", "cache").or_else(|| asked("HEAPWRIGHT_TEST_MODE", "mode"))
    else {
        return;
    };
    if let Some((_, Some(own))) = command.get_envs().find(|(name, _)| *name == "HEAPWRIGHT") {
        let own = own.to_str().expect("options are text");
        // If a test names a model or a mode, or is about the string itself, its options stay.
        if own.contains("cache=") || own.contains("mode=") || own.len() > 1000 {
            return;
        }
        let _ = write!(options, ",{own}");
    }
    command.env("HEAPWRIGHT", options);
}

fn must(command: &mut Command) {
    let output = command.output().expect("the command can be started");
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Whether a file is newer than all files that it is made from.
fn is_fresh(made: &Path, from: &[&Path]) -> bool {
    let age = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified());
    let Ok(made) = age(made) else { return false };
    from.iter().all(|path| age(path).is_ok_and(|t| t < made))
}

pub(crate) fn compile(name: &str, how: How, flags: &[&str]) -> PathBuf {
    let library = library();
    let archive = library.join("libheapwright.a");
    let shared = library.join("libheapwright.so");
    // A preloaded program and a plain one are the same file, as for users.
    let tag = match how {
        How::Plain | How::Preload => "plain",
        How::Linked => "linked",
        How::Archive => "archive",
        How::Static => "static",
    };
    let mut tail = String::new();
    for flag in flags {
        let clean: String =
            flag.chars().filter(|c| c.is_ascii_alphanumeric()).rev().take(24).collect();
        let _ = write!(tail, "-{clean}");
    }
    let made = scratch().join(format!("{name}-{tag}{tail}"));
    let headers = ["check.h", "interrupted.h", "observe.h", "stamped.h"].map(source);
    let mut from: Vec<&Path> = headers.iter().map(PathBuf::as_path).collect();
    let source = source(name);
    from.push(&source);
    // Flags may also link a program with an installed library.
    if tag != "plain" || flags.iter().any(|flag| flag.contains("heapwright")) {
        from.extend([archive.as_path(), shared.as_path()]);
    }

    // For each program one compiler runs at a time. Compilers of several programs run at once.
    static COMPILING: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let this = COMPILING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(made.clone())
        .or_default()
        .clone();
    let _one_at_a_time = this.lock().unwrap_or_else(PoisonError::into_inner);
    if is_fresh(&made, &from) {
        return made;
    }
    let mut command = compiler(name);
    command.arg(&source).arg("-o").arg(&made);
    match how {
        How::Plain | How::Preload => {}
        How::Linked => {
            command.arg("-L").arg(library).arg("-lheapwright");
            command.arg(format!("-Wl,-rpath,{}", library.display()));
        }
        How::Archive => {
            command.arg(&archive);
        }
        How::Static => {
            command.arg("-static").arg(&archive);
        }
    }
    command.args(flags);
    must(&mut command);
    made
}

pub(crate) fn compile_plugin(name: &str, flags: &[&str]) -> PathBuf {
    compile(name, How::Plain, &[&["-shared", "-fPIC"], flags].concat())
}

pub(crate) fn command(program: impl AsRef<Path>, how: How) -> Command {
    command_with(program, how, shared_library())
}

/// As [`command`], with another library to preload.
pub(crate) fn command_with(program: impl AsRef<Path>, how: How, preload: PathBuf) -> Command {
    let mut command = match std::env::var("HEAPWRIGHT_TEST_RUNNER") {
        Ok(runner) => {
            let mut words = runner.split_whitespace();
            let mut command = Command::new(words.next().expect("the runner's name"));
            command.args(words);
            if how == How::Preload {
                // The preload is for the program, not for the emulator.
                command.arg("-E").arg(format!("LD_PRELOAD={}", preload.display()));
            }
            command.arg(program.as_ref());
            command
        }
        Err(_) => {
            let mut command = Command::new(program.as_ref());
            if how == How::Preload {
                command.env("LD_PRELOAD", preload);
            }
            command
        }
    };
    // cargo points LD_LIBRARY_PATH at libraries that it built for the tests.
    command.env_remove("HEAPWRIGHT").env_remove("LD_LIBRARY_PATH");
    if how != How::Preload {
        command.env_remove("LD_PRELOAD");
    }
    command
}

/// Makes a command start its program without some of its files.
pub(crate) fn without_files(command: &mut Command, files: &'static [i32]) {
    let close = move || {
        for &file in files {
            // SAFETY: the call takes a number. Closing a file that is not open is a harmless error.
            unsafe { libc::close(file) };
        }
        Ok(())
    };
    // SAFETY: closing is allowed between fork and exec.
    unsafe { command.pre_exec(close) };
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// The standard error, of the program or of the library in it.
    pub(crate) stderr: String,
    /// Whether the program was stopped after its time.
    pub(crate) timed_out: bool,
}

/// Runs a command to its end. After [`PATIENCE`] stops the command and all its children.
pub(crate) fn run(command: &mut Command) -> Outcome {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    add_options(command);
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let group = i32::try_from(child.id()).expect("a process id");
    let reader = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = reader(Box::new(child.stdout.take().expect("piped")));
    let stderr = reader(Box::new(child.stderr.take().expect("piped")));
    let start = Instant::now();
    let mut timed_out = false;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        if start.elapsed() > PATIENCE {
            timed_out = true;
            // SAFETY: signals the group that this function made.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            break child.wait().expect("the child can be waited for");
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let outcome = Outcome {
        status,
        stdout: stdout.join().expect("the reader ends"),
        stderr: stderr.join().expect("the reader ends"),
        timed_out,
    };
    assert!(!outcome.timed_out, "{command:?} did not end:\n{}", outcome.stderr);
    outcome
}

impl Outcome {
    /// The program ended well and printed no error.
    #[track_caller]
    pub(crate) fn is_fine(&self, what: impl std::fmt::Debug) {
        assert!(
            self.status.success() && self.stderr.is_empty(),
            "{what:?}: {}, signal {:?}\n{}{}",
            self.status,
            self.status.signal(),
            self.stdout,
            self.stderr,
        );
    }

    /// The library ended the program, with one line that contains all of these words.
    #[track_caller]
    pub(crate) fn was_refused(&self, what: impl std::fmt::Debug, words: &[&str]) {
        assert_eq!(
            self.status.signal(),
            Some(libc::SIGABRT),
            "{what:?} was not refused: {}\n{}{}",
            self.status,
            self.stdout,
            self.stderr,
        );
        self.said_one_line(what, words);
    }

    /// The library printed one line, which contains all of these words.
    #[track_caller]
    pub(crate) fn said_one_line(&self, what: impl std::fmt::Debug, words: &[&str]) {
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(
            lines.len() == 1 && lines[0].starts_with("heapwright: ") && self.stderr.ends_with('\n'),
            "{what:?}: not one line of heapwright's: {:?}",
            self.stderr,
        );
        for word in words {
            assert!(lines[0].contains(word), "{what:?}: no {word:?} in {:?}", lines[0]);
        }
    }
}

/// Compiles a program and runs it in each of these ways; all must end well.
#[track_caller]
pub(crate) fn fine(name: &str, ways: &[How]) {
    fine_with(name, ways, &[]);
}

#[track_caller]
pub(crate) fn fine_with(name: &str, ways: &[How], flags: &[&str]) {
    // With a cache model or a mode, only the ways with different thread-local variables run. Runs
    // without a model test all other ways, and the plain program has no model.
    let has_model = ["HEAPWRIGHT_TEST_CACHE", "HEAPWRIGHT_TEST_MODE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let tried = |how: &How| !has_model || matches!(how, How::Preload | How::Static);
    // (A program with none of these ways keeps its own ways.)
    let all = !ways.iter().any(tried);
    for &how in ways.iter().filter(|how| all || tried(how)) {
        let program = compile(name, how, flags);
        run(&mut command(program, how)).is_fine((name, how));
    }
}

pub(crate) fn skip(why: &str) {
    println!("skipped: {why}");
}
