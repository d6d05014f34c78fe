//! The rivals: where their sources come from, how they are built, and the proof
//! that a preload took effect.
//!
//! The sources are the ones Cargo's registry crates bundle (`libmimalloc-sys`,
//! `snmalloc-sys`), found with `cargo metadata`. They are compiled here, not by
//! the crates, because the crates make static libraries for Rust programs, and
//! a preload wrapped around those would add a jump to each call. The flags are
//! those of the projects' own release builds of their preload libraries
//! (mimalloc's `mimalloc` target, snmalloc's `snmallocshim`), so `malloc` in
//! the library *is* the peer's allocation path. `CC` and `CXX` choose the
//! compilers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An allocator in the race.
pub(crate) struct Rival {
    /// The column's title.
    pub(crate) name: String,
    /// The library for `LD_PRELOAD`; none for the C library's own malloc.
    pub(crate) preload: Option<PathBuf>,
    /// Where the sources came from, for the table's foot.
    pub(crate) origin: String,
}

impl Rival {
    /// The C library's malloc: no preload.
    pub(crate) fn glibc() -> Self {
        let version = output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
        let origin = version.unwrap_or_else(|_| "the C library".to_owned());
        Self { name: "glibc".to_owned(), preload: None, origin: origin.trim().to_owned() }
    }

    /// A library that exists already.
    pub(crate) fn preload(name: &str, path: PathBuf) -> Self {
        // The name alone: where a build lies is of no interest to a reader.
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name: name.to_owned(), origin: file, preload: Some(path) }
    }
}

/// The `bench` folder of the repository.
pub(crate) fn bench_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench").to_path_buf()
}

/// Where compiled peers and workloads go: beside this program.
pub(crate) fn work_folder() -> Result<PathBuf, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = exe.with_file_name("first-table.work");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn output(command: &mut Command) -> Result<String, String> {
    let result = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !result.status.success() {
        let errors = String::from_utf8_lossy(&result.stderr);
        return Err(format!("{command:?}: {}\n{errors}", result.status));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

fn compiler(variable: &str, default: &str) -> Command {
    Command::new(std::env::var_os(variable).unwrap_or_else(|| default.into()))
}

/// Runs a compilation unless its result, made by the same command, is there.
fn build(mut command: Command, to: &Path) -> Result<(), String> {
    let stamp = to.with_extension("command");
    let text = format!("{command:?}");
    let newest =
        command.get_args().filter_map(|a| Path::new(a).metadata().ok()?.modified().ok()).max();
    let built = to.metadata().and_then(|m| m.modified()).ok();
    if std::fs::read_to_string(&stamp).ok().as_deref() == Some(&text) && built >= newest {
        return Ok(());
    }
    eprintln!("building {}", to.display());
    command.arg("-o").arg(to);
    output(&mut command)?;
    std::fs::write(&stamp, text).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// Compiles one C file into a program of its name.
pub(crate) fn compile_c(source: &Path, work: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let program = work.join(source.file_stem().expect("a file name"));
    let mut command = compiler("CC", "cc");
    command.args(["-O2", "-pthread"]).arg(source).args(flags);
    build(command, &program)?;
    Ok(program)
}

/// The folder and version of a crate of this workspace's lock file.
fn crate_source(name: &str) -> Result<(PathBuf, String), String> {
    let manifest = bench_folder().join("Cargo.toml");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(manifest);
    let text = output(&mut command)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let packages = value["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == name)
        .ok_or_else(|| format!("{name} is not in bench/Cargo.lock"))?;
    let manifest = package["manifest_path"].as_str().ok_or("a package without a manifest")?;
    let version = package["version"].as_str().unwrap_or("?").to_owned();
    Ok((Path::new(manifest).parent().ok_or("a manifest without a folder")?.to_path_buf(), version))
}

/// mimalloc v3, as `libmimalloc-sys` bundles it.
pub(crate) fn mimalloc(work: &Path) -> Result<Rival, String> {
    let (folder, version) = crate_source("libmimalloc-sys")?;
    let root = folder.join("c_src/mimalloc/v3");
    let library = work.join("libmimalloc.so");
    let mut command = compiler("CC", "cc");
    command.args(["-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]);
    command.args(["-ftls-model=initial-exec", "-fno-builtin-malloc"]);
    command.args(["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_MALLOC_OVERRIDE"]);
    command.args(["-DMI_BUILD_RELEASE", "-DMI_CMAKE_BUILD_TYPE=release"]);
    command.arg("-I").arg(root.join("include"));
    // The sources of its shared library, each a unit of its own, as its CMake
    // file lists them.
    for file in [
        "alloc",
        "alloc-aligned",
        "alloc-posix",
        "arena",
        "arena-meta",
        "bitmap",
        "heap",
        "init",
        "libc",
        "options",
        "os",
        "page",
        "page-map",
        "random",
        "stats",
        "theap",
        "threadlocal",
        "prim/prim",
    ] {
        command.arg(root.join(format!("src/{file}.c")));
    }
    command.args(["-lpthread", "-lrt"]);
    build(command, &library)?;
    Ok(Rival {
        name: "mimalloc".to_owned(),
        origin: format!("mimalloc v3, from libmimalloc-sys {version}"),
        preload: Some(library),
    })
}

/// snmalloc, as `snmalloc-sys` bundles it.
pub(crate) fn snmalloc(work: &Path) -> Result<Rival, String> {
    let (folder, version) = crate_source("snmalloc-sys")?;
    let root = folder.join("upstream/src");
    let library = work.join("libsnmalloc.so");
    let mut command = compiler("CXX", "c++");
    command.args(["-std=gnu++20", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"]);
    command.args(["-fno-rtti", "-fomit-frame-pointer", "-ftls-model=initial-exec"]);
    command.args(["-ffunction-sections", "-w"]);
    if cfg!(target_arch = "x86_64") {
        command.args(["-mcx16", "-mprfchw"]);
    }
    command.args([
        "-DMALLOC_USABLE_SIZE_QUALIFIER=const",
        "-DSNMALLOC_CHECK_LOADS=false",
        "-DSNMALLOC_EXPORT=__attribute__((visibility(\"default\")))",
        "-DSNMALLOC_HAS_LINUX_FUTEX_H",
        "-DSNMALLOC_HAS_LINUX_RANDOM_H",
        "-DSNMALLOC_NO_REALLOCARR",
        "-DSNMALLOC_NO_REALLOCARRAY",
        "-DSNMALLOC_PAGEID=false",
        "-DSNMALLOC_PLATFORM_HAS_GETENTROPY",
        "-DSNMALLOC_PTHREAD_ATFORK_WORKS",
        "-DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT",
        "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
    ]);
    command.arg("-I").arg(&root);
    command.arg(root.join("snmalloc/override/malloc.cc"));
    command.arg(root.join("snmalloc/override/new.cc"));
    command.args(["-static-libstdc++", "-latomic"]);
    build(command, &library)?;
    Ok(Rival {
        name: "snmalloc".to_owned(),
        origin: format!("snmalloc, from snmalloc-sys {version}"),
        preload: Some(library),
    })
}

/// Runs the probe under a rival and checks that its library answers.
pub(crate) fn probe(rival: &mut Rival, probe: &Path) -> Result<(), String> {
    let mut command = Command::new(probe);
    command.env_remove("LD_PRELOAD");
    if let Some(library) = &rival.preload {
        command.env("LD_PRELOAD", library);
    }
    let text = output(&mut command)?;
    let lines: Vec<&str> = text.lines().collect();
    let [malloc, free, delete, version] = lines[..] else {
        return Err(format!("the probe printed {text:?} under {}", rival.name));
    };
    if let Some(library) = &rival.preload {
        for (symbol, file) in [("malloc", malloc), ("free", free), ("operator delete", delete)] {
            if Path::new(file).canonicalize().ok() != library.canonicalize().ok() {
                return Err(format!(
                    "the preload of {} did not take effect: {symbol} comes from {file}",
                    rival.name
                ));
            }
        }
    }
    let version: u32 = version.parse().unwrap_or(0);
    if version > 0 {
        // mi_version: major, two digits of minor, two of patch.
        let (major, minor, patch) = (version / 10000, version / 100 % 100, version % 100);
        rival.origin = format!("{} (v{major}.{minor}.{patch})", rival.origin);
    }
    Ok(())
}
