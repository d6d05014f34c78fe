//! `heapwright top` and `heapwright profile PID`: processes that run are seen, and profiled, from outside.

mod common;

use common::{Folder, done, heapwright, stderr, stdout};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Holds 40 MB in blocks of 100 bytes to 40 kB, of which every third is free again, and goes on allocating now and then until it
/// is killed. With an argument it forks, and says who its child is.
const HOLDER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *blocks[20000];
__attribute__((noinline)) void *kept(size_t size) { void *block = malloc(size); memset(block, 1, size); return block; }
int main(int count, char **words) {
    for (size_t i = 0; i < 20000; i++) blocks[i] = kept(100 + i % 100 * 40);
    for (size_t i = 0; i < 20000; i += 3) { free(blocks[i]); blocks[i] = NULL; }
    int child = count > 1 ? fork() : -1;
    if (child != 0) { printf("%d\n", child); fclose(stdout); }
    for (size_t i = 0;; i = (i + 3) % 19998) {
        free(blocks[i]);
        blocks[i] = kept(2000);
        usleep(1000);
    }
}
"#;

/// A holder that runs, with a place of its own for its status file.
struct Holder<'a> {
    child: Child,
    folder: &'a Path,
    /// What it said.
    forked: u32,
}

impl<'a> Holder<'a> {
    fn start(program: &Path, folder: &'a Path, options: &str, forks: bool) -> Self {
        let mut command = heapwright();
        command.args(["run", "--option", options, "--"]).arg(program);
        if forks {
            command.arg("fork");
        }
        let mut child =
            command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).spawn().expect("started");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said).expect("read");
        Self { child, folder, forked: said.trim().parse().unwrap_or(0) }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = heapwright();
        command.env("XDG_RUNTIME_DIR", self.folder).args(words);
        command
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.forked > 1 && self.forked < i32::MAX as u32 {
            let _ = Command::new("kill").args(["-9", &self.forked.to_string()]).status();
        }
    }
}

/// The number behind a name in a piece of JSON.
fn number(json: &str, name: &str) -> u64 {
    let behind =
        json.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("{name} in {json}"));
    behind
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number")
}

/// Looks until something holds: a loaded machine may let the process wait.
fn soon(what: &str, mut holds: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    loop {
        match holds() {
            Ok(()) => return,
            Err(why) if began.elapsed() > Duration::from_secs(20) => panic!("{what}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[test]
fn the_parts_of_a_process_add_up() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "purge=never", false);
    soon("seen", || {
        let output = done(&mut holder.command(&["top", "--json", &holder.pid()]));
        let json = stdout(&output);
        if !output.status.success() || !json.contains("\"parts\": {") {
            return Err(json + &stderr(&output));
        }
        let part = |name| number(&json, name);
        let names = [
            "live", "rounding", "partial", "caches", "remote", "waiting", "metadata", "pools",
            "not_ours",
        ];
        let (sum, resident): (u64, u64) = (names.map(part).iter().sum(), part("resident_bytes"));
        assert_eq!(sum, resident, "{json}");
        // 13,333 blocks of 2080 bytes on average, and some slots are larger.
        let (live, partial) = (part("live"), part("partial"));
        let is_right = (26_000_000..34_000_000).contains(&live) && partial > 5_000_000;
        if is_right { Ok(()) } else { Err(json) }
    });
    let why = stdout(&done(&mut holder.command(&["explain", &holder.pid()])));
    for wanted in ["\nlive blocks: ", "\npartial slabs: ", " free ", "\nas of "] {
        assert!(why.contains(wanted), "{wanted} in {why}");
    }
    let why = stdout(&done(&mut holder.command(&["explain", "--format", "json", &holder.pid()])));
    assert!(why.contains("\"classes\": [") && number(&why, "free_bytes") < 1 << 30, "{why}");
    let list = stdout(&done(&mut holder.command(&["top", "--once"])));
    assert!(list.starts_with("     PID RESIDENT     LIVE"), "{list}");
    assert!(
        list.lines().any(|line| line.contains(&holder.pid()) && line.contains("holder")),
        "{list}"
    );
    let one = stdout(&done(&mut holder.command(&["top", "--once", &holder.pid()])));
    for wanted in ["live blocks", "partial slabs", "not heapwright's", "never", "purge=never"] {
        assert!(one.contains(wanted), "{wanted} in {one}");
    }
    let metrics = stdout(&done(&mut holder.command(&["top", "--prometheus"])));
    let wanted = format!(
        "heapwright_resident_bytes{{pid=\"{}\",command=\"holder\",part=\"live\"}} ",
        holder.pid()
    );
    assert!(metrics.contains(&wanted), "{metrics}");
}

#[test]
fn children_are_seen_and_the_dead_are_not() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    let mut holder = Holder::start(&program, &runtime, "cache=auto", true);
    let child = holder.forked.to_string();
    let list = |holder: &Holder<'_>| stdout(&done(&mut holder.command(&["top", "--once"])));
    let has = |list: &str, pid: &str| {
        list.lines().any(|line| line.trim_start().starts_with(&format!("{pid} ")))
    };
    soon("both", || {
        let list = list(&holder);
        let both = has(&list, &holder.pid()) && has(&list, &child);
        if both { Ok(()) } else { Err(list) }
    });
    holder.child.kill().expect("killed");
    holder.child.wait().expect("ended");
    let after = list(&holder);
    assert!(!has(&after, &holder.pid()) && has(&after, &child), "{after}");
    let output = done(&mut holder.command(&["top", &holder.pid()]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is no process"), "{}", stderr(&output));
}

#[test]
fn who_does_not_want_to_is_not_seen() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "publish=no", false);
    let output = done(&mut holder.command(&["top", &holder.pid()]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("does not show itself"), "{}", stderr(&output));
    let output = done(&mut holder.command(&["profile", &holder.pid(), "--seconds", "1"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let me = std::process::id().to_string();
    let output = done(&mut holder.command(&["top", &me]));
    assert!(stderr(&output).contains("is not on heapwright"), "{}", stderr(&output));
}

#[test]
fn a_running_process_is_profiled() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1", "-g"], HOLDER);
    let runtime = folder.path("");
    for cache in ["cache=exclusive", "cache=shared:2", "cache=percpu"] {
        let holder = Holder::start(&program, &runtime, cache, false);
        let profile = |words: &[&str]| {
            let pid = holder.pid();
            done(&mut holder.command(&[&["profile", "--sample", "2k", &pid][..], words].concat()))
        };
        let output = profile(&["--seconds", "1", "--figure", "allocated"]);
        assert_eq!(output.status.code(), Some(0), "{cache}: {}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("heap profile of ") && text.contains("in kept"), "{cache}: {text}");
        // It has ended with the command.
        soon("off", || {
            let json = stdout(&done(&mut holder.command(&["top", "--json", &holder.pid()])));
            if number(&json, "sampling_bytes") == 0 { Ok(()) } else { Err(json) }
        });
        let file = folder.path("out.folded");
        let name = file.to_str().expect("is text");
        let output = profile(&["--seconds", "0.5", "--format", "folded", "-o", name]);
        assert_eq!(output.status.code(), Some(0), "{cache}: {}", stderr(&output));
        assert!(std::fs::read_to_string(&file).expect("written").contains("kept"), "{cache}");
    }
}

#[test]
fn one_that_rests_at_the_end_has_been_profiled() {
    let folder = Folder::new();
    // Allocates while there is a file `go`, and then nothing any more.
    let program = folder.compile(
        "rester",
        &["-O1", "-g"],
        r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void *kept(void) { return malloc(1000); }
int main(int count, char **words) {
    printf("0\n");
    fclose(stdout);
    while (access(words[1], F_OK) == 0) { kept(); usleep(1000); }
    unlink(words[2]);
    pause();
}
"#,
    );
    let runtime = folder.path("");
    let (go, resting, files) = (folder.path("go"), folder.path("busy"), folder.path("files"));
    std::fs::create_dir(&files).expect("made");
    for file in [&go, &resting] {
        std::fs::write(file, "").expect("written");
    }
    let mut rester = heapwright();
    rester.args(["run", "--"]).arg(program).args([&go, &resting]);
    let mut rester =
        rester.env("XDG_RUNTIME_DIR", &runtime).stdout(Stdio::null()).spawn().expect("started");
    let pid = rester.id().to_string();
    soon("seen", || {
        let mut top = heapwright();
        let list = done(top.args(["top", "--once"]).env("XDG_RUNTIME_DIR", &runtime));
        if stdout(&list).contains(&pid) { Ok(()) } else { Err(stdout(&list)) }
    });
    let mut profile = heapwright();
    profile.args(["profile", "--sample", "1k", "--seconds", "600", &pid]);
    profile.env("XDG_RUNTIME_DIR", &runtime).env("TMPDIR", &files);
    let profile = profile.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    // The command keeps what the process writes in a folder of its own among the temporary files.
    soon("a profile before the end", || {
        let folders = std::fs::read_dir(&files).expect("read").flatten();
        let written = folders
            .filter_map(|folder| std::fs::read_dir(folder.path()).ok())
            .any(|mut of| of.next().is_some());
        if written { Ok(()) } else { Err("nothing is written".to_owned()) }
    });
    std::fs::remove_file(&go).expect("removed");
    soon("rest", || if resting.exists() { Err("it is busy".to_owned()) } else { Ok(()) });
    let interrupted = Command::new("kill").args(["-INT", &profile.id().to_string()]).status();
    assert!(interrupted.expect("run").success());
    let output = profile.wait_with_output().expect("ended");
    let _ = rester.kill();
    let _ = rester.wait();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("allocates nothing just now"), "{}", stderr(&output));
    assert!(stdout(&output).contains("in kept"), "{}", stdout(&output));
}

#[test]
fn one_that_debugs_is_seen() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "mode=debug", false);
    soon("seen", || {
        let list = stdout(&done(&mut holder.command(&["top", "--once"])));
        let line = list.lines().find(|line| line.contains(&holder.pid())).unwrap_or_default();
        if line.contains(" debug ") && !line.contains(" - ") || line.contains("M") {
            Ok(())
        } else {
            Err(list)
        }
    });
    let output = done(&mut holder.command(&["profile", &holder.pid(), "--seconds", "0.5"]));
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("mode=debug"), "{}", stderr(&output));
}

#[test]
fn a_slot_that_was_taken_by_mistake_is_taken_anew() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "cache=auto", false);
    let list = || stdout(&done(&mut holder.command(&["top", "--once"])));
    soon("seen", || if list().contains(&holder.pid()) { Ok(()) } else { Err(list()) });
    // All owners' words are zero: nobody has a slot.
    let file = std::fs::read_dir(&runtime).expect("read").flatten().map(|entry| entry.path());
    let file = file.filter(|path| path.to_string_lossy().contains("heapwright-")).last();
    let file = std::fs::File::options().write(true).open(file.expect("there")).expect("opened");
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096 - 64], 64).expect("written");
    soon("seen again", || if list().contains(&holder.pid()) { Ok(()) } else { Err(list()) });
}

#[test]
fn one_that_samples_already_goes_on() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1", "-g"], HOLDER);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "sample=64k", false);
    let output = done(&mut holder.command(&["profile", &holder.pid(), "--seconds", "0.3"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("samples already"), "{}", stderr(&output));
    let json = stdout(&done(&mut holder.command(&["top", "--json", &holder.pid()])));
    assert_eq!(number(&json, "sampling_bytes"), 64 << 10, "{json}");
    // Its profile is a part of its explanation.
    let why = stdout(&done(&mut holder.command(&["explain", &holder.pid()])));
    for part in
        ["\npartial slabs: ", "\nsampled for ", "\nlive blocks of the profile: ", "   kept  "]
    {
        assert!(why.contains(part), "{part} in {why}");
    }
    let json = stdout(&done(&mut holder.command(&["explain", "--format", "json", &holder.pid()])));
    assert!(json.contains("\"profile\": {"), "{json}");
    assert!(json.contains("\"function\": \"kept\""), "{json}");
}

#[test]
fn mistakes_are_one_line() {
    let folder = Folder::new();
    for (words, line) in [
        (&["top", "x"][..], "invalid value 'x'"),
        (&["top", "--interval", "0"], "0.1 to 3600"),
        (&["top", "--sort", "size"], "resident"),
        (&["top", "--json", "--prometheus"], "cannot be used with"),
        (&["top", "4294967295"], "there is no process"),
        (&["profile", "4294967295"], "there is no process"),
        (&["profile", "--seconds", "3", "true"], "running process"),
        (&["profile", "1", "--format", "junit"], "finds no mistakes"),
        (&["profile", "1", "--seconds", "x"], "invalid value 'x'"),
    ] {
        let output = done(heapwright().env("XDG_RUNTIME_DIR", folder.path("")).args(words));
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(line) && said.lines().count() == 1, "{words:?}: {said}");
    }
}
