//! `heapwright top`, `explain PID`, `profile PID` and `trim PID`: running processes are seen,
//! explained, profiled and trimmed.

mod common;

use common::{Folder, done, heapwright, stderr, stdout};
use heapwright_record::status::{self, Answer, Order, SLOTS, Slot, Status};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[rustfmt::skip]
const PARTS: [&str; 10] = [
    "live", "rounding", "partial", "caches", "remote", "waiting", "metadata", "pools", "not_ours",
    "unattributed",
];

/// Holds 40 MB in blocks of 100 bytes to 4 kB, frees every third, and allocates now and then. With
/// an argument it forks, and prints the child's number.
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

/// Allocates 40 MB in blocks of 1000 bytes, frees all, and allocates now and then.
const FREED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *blocks[40000];
int main(void) {
    for (size_t i = 0; i < 40000; i++) blocks[i] = memset(malloc(1000), 1, 1000);
    for (size_t i = 0; i < 40000; i++) { free(blocks[i]); blocks[i] = NULL; }
    printf("0\n");
    fclose(stdout);
    for (size_t i = 0;; i = (i + 1) % 1000) {
        blocks[i] = malloc(3000);
        free(blocks[(i + 500) % 1000]);
        blocks[(i + 500) % 1000] = NULL;
        usleep(1000);
    }
}
"#;

struct Holder<'a> {
    child: Child,
    folder: &'a Path,
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

/// Returns the number behind a name in a piece of JSON.
fn number(json: &str, name: &str) -> u64 {
    let behind =
        json.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("{name} in {json}"));
    behind
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number")
}

/// Repeats a look until it holds: a loaded machine may let the process wait.
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
        let (sum, resident): (u64, u64) = (PARTS.map(part).iter().sum(), part("resident_bytes"));
        assert_eq!(sum, resident, "{json}");
        // 13,333 blocks of 2080 bytes on average; some slots are larger.
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
    for what in ["top", "trim"] {
        let output = done(&mut holder.command(&[what, &me]));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("is not on heapwright"), "{}", stderr(&output));
    }
}

/// An idle process follows no order. Both `profile` and `explain` say so.
#[test]
fn an_idle_process_is_said_to_be_idle() {
    let folder = Folder::new();
    let source = HOLDER
        .replace("    for (size_t i = 0;; i", "    for (;;) pause();\n    for (size_t i = 0;; i");
    let program = folder.compile("idle", &["-O1"], &source);
    let runtime = folder.path("");
    let holder = Holder::start(&program, &runtime, "purge=never", false);
    let output = done(&mut holder.command(&["profile", &holder.pid(), "--seconds", "0.5"]));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("allocates from now on, for 0.5 s"), "{said}");
    assert!(said.contains(" is idle: "), "{said}");
    std::thread::sleep(Duration::from_millis(600));
    let why = stdout(&done(&mut holder.command(&["explain", &holder.pid()])));
    assert!(why.contains("the process is idle, so heapwright profile sees nothing"), "{why}");
}

/// With `purge=never` the process keeps 40 MB that it has freed.
#[test]
fn a_running_process_is_trimmed() {
    let folder = Folder::new();
    let program = folder.compile("freed", &["-O1"], FREED);
    let runtime = folder.path("");
    for cache in ["exclusive", "shared:1", "percpu"] {
        let options = format!("purge=never,cache={cache}");
        let holder = Holder::start(&program, &runtime, &options, false);
        let output = done(&mut holder.command(&["trim", &holder.pid()]));
        assert_eq!(output.status.code(), Some(0), "{cache}: {}", stderr(&output));
        let said = stdout(&output);
        assert!(said.contains(" went back to the kernel; resident "), "{cache}: {said}");
        let status = std::fs::read_to_string(format!("/proc/{}/status", holder.pid()));
        let status = status.expect("there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("there");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kib < 20_000, "{cache}: {kib} KiB are resident; {said}");
    }
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

/// Waits for a profile in the command's own folder among the temporary files.
fn soon_written(files: &Path) {
    soon("a profile before the end", || {
        let folders = std::fs::read_dir(files).expect("read").flatten();
        let written = folders
            .filter_map(|folder| std::fs::read_dir(folder.path()).ok())
            .any(|mut of| of.next().is_some());
        if written { Ok(()) } else { Err("nothing is written".to_owned()) }
    });
}

#[test]
fn one_that_has_ended_has_been_profiled() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1", "-g"], HOLDER);
    let runtime = folder.path("");
    for options in ["cache=exclusive", "sample=2k"] {
        let files = folder.path(options);
        std::fs::create_dir(&files).expect("made");
        let holder = Holder::start(&program, &runtime, options, false);
        let words = ["profile", "--sample", "2k", "--seconds", "600", &holder.pid()];
        let mut profile = holder.command(&words);
        profile.env("TMPDIR", &files).stdout(Stdio::piped()).stderr(Stdio::piped());
        let profile = profile.spawn().expect("started");
        soon_written(&files);
        // The first profile is complete.
        std::thread::sleep(Duration::from_millis(300));
        drop(holder);
        let output = profile.wait_with_output().expect("ended");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{options}: {said}");
        assert!(said.contains("has ended; the profile is what it wrote "), "{options}: {said}");
        assert!(stdout(&output).contains("in kept"), "{options}: {}", stdout(&output));
    }
}

#[test]
fn one_that_rests_at_the_end_has_been_profiled() {
    let folder = Folder::new();
    // The program allocates while a file `go` exists, and then no more.
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
    soon_written(&files);
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
    let (status, slot) = shown_by(&holder);
    status.give_back(slot, status.owner(slot).expect("its own"));
    soon("seen again", || if list().contains(&holder.pid()) { Ok(()) } else { Err(list()) });
}

/// Returns the status memory of a holder, which stays attached, and its slot.
fn shown_by(holder: &Holder<'_>) -> (&'static Status, usize) {
    let list = std::fs::read_to_string("/proc/sysvipc/shm").expect("there");
    let mut lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| line[4] == holder.pid()).expect("it made one");
    let id = line[1].parse().expect("a number");
    // SAFETY: a new mapping replaces nothing.
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    assert_ne!(at.addr(), usize::MAX, "{}", std::io::Error::last_os_error());
    // SAFETY: the memory is attached for ever, and as long as a `Status`. Any bytes are valid.
    let status = unsafe { &*at.cast::<Status>() };
    let is_its =
        |&at: &usize| status.owner(at).is_some_and(|owner| owner.process == holder.child.id());
    (status, (0..SLOTS).find(is_its).expect("it has a slot"))
}

#[test]
fn nothing_that_others_can_shrink_is_mapped() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    for mode in ["mode=fast", "mode=hardened", "mode=debug"] {
        let holder = Holder::start(&program, &runtime, mode, false);
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", holder.pid())).expect("there");
        let shared = maps
            .lines()
            .filter(|line| line.split(' ').nth(1).is_some_and(|how| how.ends_with('s')));
        let names: Vec<_> = shared.filter_map(|line| line.split_whitespace().nth(5)).collect();
        assert_eq!(names, ["/SYSV00000000"], "{mode}: {maps}");
        let files = std::fs::read_dir(&runtime).expect("read").flatten();
        let files =
            files.filter(|file| file.file_name().to_string_lossy().starts_with("heapwright-"));
        assert_eq!(files.count(), 0, "{mode}");
        let mut fds =
            std::fs::read_dir(format!("/proc/{}/fd", holder.pid())).expect("read").flatten();
        assert!(fds.all(|fd| !fd.path().to_string_lossy().contains("SYSV")), "{mode}");
    }
}

#[test]
fn a_hardened_process_shows_no_address_and_takes_no_orders() {
    let folder = Folder::new();
    let program = folder.compile("holder", &["-O1"], HOLDER);
    let runtime = folder.path("");
    for mode in ["mode=hardened", "mode=hardened:full"] {
        let holder = Holder::start(&program, &runtime, mode, false);
        let json = || stdout(&done(&mut holder.command(&["top", "--json", &holder.pid()])));
        soon("shown", || {
            let json = json();
            if json.contains("\"parts\": {") && number(&json, "live") > 0 {
                Ok(())
            } else {
                Err(json)
            }
        });
        let (status, slot) = shown_by(&holder);
        let report = soon_some(|| status.slot(slot).and_then(Slot::read));
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", holder.pid())).expect("there");
        let ranges: Vec<(u64, u64)> = maps
            .lines()
            .filter_map(|line| line.split(' ').next()?.split_once('-'))
            .map(|(from, to)| {
                [from, to].map(|text| u64::from_str_radix(text, 16).expect("hex")).into()
            })
            .collect();
        // Reads all words of the slot, as any process of the user can. By chance, a time of the
        // last minute may look like an address.
        let now = now_ns();
        let words = std::ptr::from_ref(status.slot(slot).expect("there")).cast::<u64>();
        for at in 0..size_of::<Slot>() / 8 {
            // SAFETY: the word is within the slot. If it changes meanwhile, the read returns either
            // number.
            let word = unsafe { words.wrapping_add(at).read_volatile() };
            let inside =
                ranges.iter().find(|(from, to)| (*from..*to).contains(&word) && word > 1 << 40);
            let inside = inside.filter(|_| now.abs_diff(word) > 60_000_000_000);
            assert_eq!(inside, None, "{mode}: word {at} is {word:#x}");
        }
        assert_eq!((report.facts.window_at, report.facts.table_at), (0, 0), "{mode}");
        for order in [Order::Sample(4096), Order::Write, Order::Stop, Order::Trim] {
            let slot = status.slot(slot).expect("there");
            let number = slot.ask(order, u64::MAX >> 1);
            assert_eq!(soon_some(|| slot.answer_to(number)), Answer::Refused, "{mode} {order:?}");
        }
        assert_eq!(number(&json(), "sampling_bytes"), 0, "{mode}");
        let output = done(&mut holder.command(&["profile", &holder.pid(), "--seconds", "1"]));
        assert_eq!(output.status.code(), Some(125), "{mode}: {}", stderr(&output));
        assert!(stderr(&output).contains("is hardened"), "{mode}: {}", stderr(&output));
        let output = done(&mut holder.command(&["trim", &holder.pid()]));
        assert_eq!(output.status.code(), Some(1), "{mode}: {}", stderr(&output));
        assert!(stderr(&output).contains("is hardened"), "{mode}: {}", stderr(&output));
    }
}

fn soon_some<T>(mut of: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    soon("something", || {
        found = of();
        found.as_ref().map(|_| ()).ok_or_else(String::new)
    });
    found.expect("found")
}

/// Claims a slot for another process. Arguments: that process's number, its namespace, and the
/// first word of the memory. The superuser becomes another user first.
const FORGER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <unistd.h>
int main(int count, char **words) {
    if (getuid() == 0 && setuid(65534) != 0) return 1;
    int id = shmget(IPC_PRIVATE, 512 << 10, 0600);
    unsigned long *status = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    status[1] = strtoul(words[1], NULL, 10) | strtoul(words[2], NULL, 10) << 32;
    status[0] = strtoul(words[3], NULL, 10);
    printf("ready\n");
    fclose(stdout);
    pause();
}
"#;

#[test]
fn a_forged_slot_is_refused_and_named() {
    use std::os::unix::fs::MetadataExt;

    let folder = Folder::new();
    let program = folder.compile("forger", &["-O1"], FORGER);
    let namespace = std::fs::metadata("/proc/self/ns/pid").expect("there").ino() as u32;
    // The claimed process is always the superuser's.
    let words = ["1".to_owned(), namespace.to_string(), status::MAGIC.to_string()];
    let mut forger =
        Command::new(program).args(words).stdout(Stdio::piped()).spawn().expect("started");
    let mut said = String::new();
    BufReader::new(forger.stdout.take().expect("piped")).read_line(&mut said).expect("read");
    let list = done(heapwright().args(["top", "--once"]));
    let one = done(heapwright().args(["top", "1"]));
    let _ = forger.kill();
    let _ = forger.wait();
    for output in [&list, &one] {
        let said = stderr(output);
        assert!(said.contains("claims to be process 1 ("), "{said}");
        assert!(said.contains("which user 0 runs: it is not shown"), "{said}");
    }
    assert!(!stdout(&list).lines().any(|line| line.starts_with("       1 ")), "{}", stdout(&list));
    assert_eq!(one.status.code(), Some(2));
}

/// Starts as many children as its argument says. Each allocates for two seconds, to take a slot.
const CROWD: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void allocate(int seconds) {
    for (time_t until = time(NULL) + seconds; time(NULL) < until; usleep(20000))
        free(memset(malloc(300000), 1, 300000));
}
int main(int count, char **words) {
    int children = atoi(words[1]);
    free(memset(malloc(300000), 1, 300000));
    for (int child = 0; child < children; child++)
        if (fork() == 0) {
            allocate(2);
            pause();
        }
    signal(SIGTERM, SIG_IGN);
    allocate(5);
    printf("ready\n");
    fclose(stdout);
    getchar();
    kill(0, SIGTERM);
}
"#;

#[test]
fn processes_beyond_the_last_slot_are_said() {
    use std::os::unix::process::CommandExt;

    let folder = Folder::new();
    let program = folder.compile("crowd", &["-O0"], CROWD);
    let mut command = heapwright();
    command.args(["run", "--"]).arg(program).arg((SLOTS + 5).to_string()).process_group(0);
    let mut crowd = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let mut said = String::new();
    BufReader::new(crowd.stdout.take().expect("piped")).read_line(&mut said).expect("read");
    let list = done(heapwright().args(["top", "--once"]));
    drop(crowd.stdin.take());
    let _ = crowd.wait();
    let expected =
        format!("has {SLOTS} processes that show themselves; its others cannot be shown");
    assert!(stderr(&list).contains(&expected), "{}", stderr(&list));
}

#[test]
fn figures_of_before_a_burst_are_not_made_to_fit() {
    let folder = Folder::new();
    // Does slow operations first, so that it has reported; then allocates much at once, and rests.
    let program = folder.compile(
        "burst",
        &["-O1"],
        r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static char *filled(size_t size) { char *block = malloc(size); memset(block, 1, size); return block; }
int main(int count, char **words) {
    size_t size = atol(words[1]), most = (64 << 20) / size;
    char **blocks = malloc(sizeof(char *) * most);
    for (double began = now(); now() - began < 0.7;) free(filled(300000));
    for (size_t at = 0; at < most; at++) blocks[at] = filled(size);
    if (count > 2) for (size_t at = 0; at < most; at++) free(blocks[at]);
    printf("0\n");
    fclose(stdout);
    pause();
}
"#,
    );
    for words in [&["2000"][..], &["40000"], &["2000000"], &["2000", "free"], &["2000000", "free"]]
    {
        let mut burst = heapwright();
        burst.args(["run", "--"]).arg(&program).args(words);
        let mut burst = burst.stdout(Stdio::piped()).spawn().expect("started");
        let mut said = String::new();
        BufReader::new(burst.stdout.take().expect("piped")).read_line(&mut said).expect("read");
        std::thread::sleep(Duration::from_millis(700));
        let pid = burst.id().to_string();
        let explain = done(heapwright().args(["explain", "--format", "json", &pid]));
        let text = stdout(&done(heapwright().args(["explain", &pid])));
        let top = stdout(&done(heapwright().args(["top", "--once", &pid])));
        let _ = burst.kill();
        let _ = burst.wait();
        let json = stdout(&explain);
        let part = |name| number(&json, name);
        assert!(part("not_ours") < 12 << 20, "{words:?}: {json}");
        let sum: u64 = PARTS.map(part).iter().sum();
        assert_eq!(sum, part("resident_bytes") + part("gone_bytes"), "{words:?}: {json}");
        if words.len() == 1 {
            assert!(part("live") + part("unattributed") > 56 << 20, "{words:?}: {json}");
        }
        for text in [&text, &top] {
            let first = text.lines().next().unwrap_or_default();
            assert!(first.contains("(its own figures are ") && first.ends_with(" old)"), "{text}");
        }
    }
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
        (&["top", "1"], "process 1"),
        (&["profile", "4294967295"], "there is no process"),
        (&["trim"], "<PID>"),
        (&["trim", "x"], "invalid value 'x'"),
        (&["trim", "4294967295"], "there is no process"),
        (&["profile", "--seconds", "3", "true"], "running process"),
        (&["profile", "1", "--format", "junit"], "invalid value 'junit'"),
        (&["profile", "--option", "purge=0", "1"], "a program that profile starts"),
        (&["profile", "--python", "1"], "a program that profile starts"),
        (&["profile", "1", "--seconds", "x"], "invalid value 'x'"),
    ] {
        let output = done(heapwright().env("XDG_RUNTIME_DIR", folder.path("")).args(words));
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(line) && said.lines().count() == 1, "{words:?}: {said}");
    }
}

/// Returns the time by the clock of a process's reports.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
