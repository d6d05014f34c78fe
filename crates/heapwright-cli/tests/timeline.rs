//! `heapwright run --timeline` and `heapwright heap --timeline`, on a real program.

mod common;

use common::{Folder, done, heapwright, run, stderr, stdout, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the Lisp of the tutorial, linked with the command's library.
fn toy(folder: &Folder) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = stdout(&done(heapwright().arg("library"))).trim().to_owned();
    let program = folder.path("toy");
    let output = done(
        Command::new("cc")
            .args(["-std=c99", "-O1", "-I"])
            .arg(root.join("include"))
            .arg(root.join("docs/toy-vm/toy.c"))
            .arg("-o")
            .arg(&program)
            .args([&library, "-pthread"]),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    program
}

fn events(json: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(json).expect("is JSON");
    all["traceEvents"].as_array().expect("is a list").clone()
}

fn count(events: &[Value], phase: &str, end: &str) -> usize {
    let is =
        |of: &&Value| of["ph"] == phase && of["name"].as_str().is_some_and(|n| n.ends_with(end));
    events.iter().filter(is).count()
}

/// Checks that spans nest on each thread, and that work in a stopped world lies in a pause.
fn nest(events: &[Value]) {
    let mut spans: Vec<(i64, f64, f64, &str)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let number = |name: &str| event[name].as_f64().expect("a number");
            let name = event["name"].as_str().expect("a name");
            let thread = event["tid"].as_i64().expect("a thread");
            (thread, number("ts"), number("ts") + number("dur"), name)
        })
        .collect();
    // Outer spans come first. Times are in microseconds, exact to the nanosecond.
    spans.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(b.2.total_cmp(&a.2)));
    let mut around: Vec<(i64, f64, f64, &str)> = Vec::new();
    for span in spans {
        around.retain(|outer| outer.0 == span.0 && outer.2 > span.1 + 0.0005);
        assert!(around.last().is_none_or(|outer| span.2 <= outer.2 + 0.0005), "{span:?}");
        if ["mark", "roots", "weak", "move"].contains(&span.3) {
            assert!(around.iter().any(|outer| outer.3.ends_with("pause")), "{span:?}");
        }
        around.push(span);
    }
}

#[test]
fn a_programs_collections_are_drawn() {
    let folder = Folder::new();
    let toy = toy(&folder);
    let file = folder.path("toy.json");
    for words in [&["generations", "moving"][..], &[], &["small", "stress", "at-once"]] {
        let program: Vec<&str> = [text(&toy), "stats"].iter().chain(words).copied().collect();
        let output = done(run(&["--timeline", text(&file)], &program).current_dir(folder.path("")));
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).ends_with("0 files are open\n"), "the program's own");
        let events = events(&std::fs::read_to_string(&file).expect("written"));
        let said = stderr(&output);
        let number = |before: &str| -> usize {
            let text = said.split_once(before).expect("is said").0;
            text.split_whitespace()
                .next_back()
                .and_then(|word| word.parse().ok())
                .expect("a number")
        };
        // The program collects a little more after it has printed its counts.
        let (collections, pauses) = (number(" collections"), number(" pauses"));
        let drawn = count(&events, "b", " collection");
        assert!((collections..collections + 10).contains(&drawn), "{drawn}, counted {collections}");
        assert_eq!(drawn, count(&events, "e", " collection"));
        let drawn = count(&events, "X", "pause");
        assert!((pauses..pauses + 20).contains(&drawn), "{drawn}, counted {pauses} pauses");
        for name in ["mark", "roots", "weak", "to safepoint"] {
            assert!(count(&events, "X", name) > 0, "{name}");
        }
        assert_eq!(count(&events, "X", "move") > 0, words.contains(&"moving"));
        nest(&events);
        let process = &events[0];
        assert_eq!((&process["ph"], &process["name"]), (&"M".into(), &"process_name".into()));
        assert_eq!(process["args"]["name"], text(&toy));
    }
}

#[test]
fn a_time_line_that_a_program_left_is_drawn_afterwards() {
    let folder = Folder::new();
    let toy = toy(&folder);
    let prefix = format!("timeline={}", folder.path("left").display());
    let output =
        done(run(&["--option", &prefix], &[text(&toy), "small"]).current_dir(folder.path("")));
    assert!(output.status.success(), "{}", stderr(&output));
    let left: Vec<PathBuf> = std::fs::read_dir(folder.path(""))
        .expect("is read")
        .map(|entry| entry.expect("is read").path())
        .filter(|path| text(path).contains("left."))
        .collect();
    let [left] = &left[..] else { panic!("{left:?}") };
    let drawn = done(heapwright().args(["heap", "--timeline"]).arg(left));
    assert_eq!((drawn.status.code(), &*stderr(&drawn)), (Some(0), ""));
    assert!(count(&events(&stdout(&drawn)), "X", " pause") > 0);
    let bytes = std::fs::read(left).expect("is read");
    let cut = folder.file("cut.7", &bytes[..bytes.len() - 9]);
    let file = folder.path("cut.json");
    let drawn = done(heapwright().args(["heap", "--timeline", "-o"]).args([&file, &cut]));
    assert_eq!(drawn.status.code(), Some(1));
    assert!(stderr(&drawn).contains("in the middle of an event"), "{}", stderr(&drawn));
    assert!(count(&events(&std::fs::read_to_string(&file).expect("written")), "X", " pause") > 0);
    let other = folder.file("other", "rubbish of some length");
    let refused = done(heapwright().args(["heap", "--timeline"]).arg(&other));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("not a time line of heapwright"), "{}", stderr(&refused));
}

/// The library prints a line if it cannot write the time line, as for its other files.
#[test]
fn a_time_line_that_cannot_be_written_is_a_line() {
    let folder = Folder::new();
    let toy = toy(&folder);
    let option = "timeline=/nonexistent/folder/left";
    let output = done(&mut run(&["--option", option], &[text(&toy), "small"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    let line = "heapwright: cannot write the time line: look at the folder of option timeline\n";
    assert_eq!(said.matches(line).count(), 1, "{said}");
}

/// Collects, forks, and collects in both processes.
const FORKS: &str = r#"
#include <heapwright_gc.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    hw_gc_runtime runtime = { .size = sizeof runtime };
    hw_gc_heap *heap = hw_gc_create(NULL, &runtime);
    hw_gc_mutator *mutator = hw_gc_attach(heap);
    for (int n = 0; n < 3; n++) hw_gc_collect(mutator);
    pid_t child = fork();
    for (int n = 0; n < (child == 0 ? 4 : 2); n++) hw_gc_collect(mutator);
    if (child == 0) _exit(0);
    return waitpid(child, NULL, 0) != child;
}
"#;

#[test]
fn each_process_draws_its_own_though_one_ends_without_a_word() {
    let folder = Folder::new();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let library = stdout(&done(heapwright().arg("library"))).trim().to_owned();
    // The library precedes the source on the command line, and is linked all the same.
    let (include, library) = (format!("-I{}", include.display()), format!("-Wl,{library}"));
    let program = folder.compile("forks", &[&include, "-Wl,--no-as-needed", &library], FORKS);
    let file = folder.path("forks.json");
    let output = done(&mut run(&["--timeline", text(&file)], &[text(&program)]));
    assert!(output.status.success(), "{}", stderr(&output));
    let events = events(&std::fs::read_to_string(&file).expect("written"));
    let names: Vec<_> = events.iter().filter(|event| event["ph"] == "M").collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut drawn: Vec<usize> = names
        .iter()
        .map(|name| {
            let own: Vec<Value> =
                events.iter().filter(|event| event["pid"] == name["pid"]).cloned().collect();
            let threads: std::collections::HashSet<_> =
                own[1..].iter().map(|e| &e["tid"]).collect();
            // The first thread of a process has the process's number, in the child as well.
            assert_eq!(threads.into_iter().collect::<Vec<_>>(), [&name["pid"]]);
            count(&own, "b", " collection")
        })
        .collect();
    drawn.sort_unstable();
    assert_eq!(drawn, [4, 5]);
}

#[test]
fn a_program_without_a_collected_heap_has_an_empty_one() {
    let folder = Folder::new();
    let file = folder.path("true.json");
    let output = done(&mut run(&["--timeline", text(&file)], &["true"]));
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).starts_with("heapwright: the time line is empty: true"),
        "{}",
        stderr(&output)
    );
    assert!(events(&std::fs::read_to_string(&file).expect("written")).is_empty());
    let twice = done(&mut run(&["--timeline", text(&file), "--option", "timeline=/x"], &["true"]));
    assert_eq!(twice.status.code(), Some(2));
}
