//! `heapwright bench`: races, also of allocators that crash, hang, are not loaded or change output.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Returns `heapwright bench FLAGS`, with heapwright and the baseline alone.
fn bench(flags: &[&str]) -> Command {
    let mut command = heapwright();
    command.args(["bench", "--rounds", "2", "--only", "heapwright"]).args(flags);
    command
}

/// Returns the same command, on a shell script.
fn on_script(flags: &[&str], script: &str) -> Command {
    let mut command = bench(flags);
    command.args(["--", "/bin/sh", "-c", script]);
    command
}

fn json(command: &mut Command) -> Value {
    let output = done(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}"))
}

fn entry<'a>(results: &'a Value, program: usize, allocator: &str) -> &'a Value {
    let entries = results["programs"][program]["results"].as_array().expect("is a list");
    let found = entries.iter().find(|entry| entry["allocator"] == allocator);
    found.unwrap_or_else(|| panic!("no {allocator} in {entries:#?}"))
}

#[track_caller]
fn refused(output: &Output, exit: i32, words: &str) {
    let printed = stderr(output);
    assert_eq!(output.status.code(), Some(exit), "{printed}");
    assert_eq!(stdout(output), "");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with("heapwright: ") && printed.contains(words), "{printed}");
}

/// Compiles a library that is no allocator. Returns `NAME=PATH` for `--with`.
fn library(folder: &Folder, name: &str, source: &str) -> String {
    let path = folder.compile(&format!("{name}.so"), &["-shared", "-fPIC"], source);
    format!("{name}={}", text(&path))
}

#[test]
fn a_command_is_raced() {
    let output = done(&mut on_script(&[], "true"));
    let printed = stdout(&output);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "heapwright bench: /bin/sh -c true, 2 allocators, 2 rounds");
    for column in ["time", "ratio to glibc", "CPU", "peak RSS", "faults"] {
        assert!(lines[2].contains(column), "{printed}");
    }
    for name in ["glibc", "heapwright"] {
        let row = lines[3..5].iter().find(|line| line.split_whitespace().next() == Some(name));
        let row = row.unwrap_or_else(|| panic!("no row of {name}: {printed}"));
        assert!(row.contains(" ms ") && row.contains(" MiB "), "{printed}");
    }
    let sentence = lines[6];
    let tie = sentence.starts_with("heapwright and glibc are a tie in time: ");
    let certain = sentence.starts_with("heapwright is ") && sentence.contains(" than glibc: ");
    assert!(tie || certain, "{printed}");
    assert!(printed.contains("\nnote: with fewer than 6 rounds"), "{printed}");
}

#[test]
fn the_page_is_complete_in_itself() {
    let folder = Folder::new();
    let path = folder.path("race.html");
    let script = "true # <script>alert(1)</script>";
    let output = done(&mut on_script(&["--format", "html", "-o", text(&path)], script));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = fs::read_to_string(&path).expect("there");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http:", "https:", "//", "src=", "<script", "@import", "url(", "<iframe"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    let mut links = page.split("href=\"").skip(1);
    assert!(links.all(|link| link.starts_with('#') || link.starts_with("data:,\"")), "{page}");
    assert!(page.contains("&#60;script&#62;alert(1)&#60;"), "the command is shown, escaped");
    for part in ["<svg", "prefers-color-scheme: dark", "name=\"viewport\"", "heapwright", "glibc"] {
        assert!(page.contains(part), "{part}");
    }
    for element in ["svg", "g", "table", "tr", "section", "figure", "details", "p", "dl"] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}

#[test]
fn what_a_command_prints_is_not_shown_and_what_it_reads_is_nothing() {
    let output = done(&mut on_script(&[], "echo loud; echo shrill >&2; cat"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stdout(&output).contains("\nloud") && stderr(&output).is_empty());
}

#[test]
fn everything_measured_is_in_the_json() {
    let mut command = bench(&["--workloads", "cfrac", "--scale", "0", "--format", "json"]);
    let results = json(&mut command);
    assert_eq!(results["schema"], "heapwright-bench/1");
    assert_eq!((&results["rounds"], &results["complete"]), (&2.into(), &true.into()));
    assert_eq!(results["baseline"], "glibc");
    assert_eq!(results["command"][0], "heapwright");
    for field in ["cpu", "kernel", "libc", "thp"] {
        assert!(results["machine"][field].is_string(), "{field}");
    }
    for field in ["cores", "memory_bytes", "page_bytes"] {
        assert!(results["machine"][field].as_u64() > Some(0), "{field}");
    }
    assert_eq!(results["allocators"][0]["library"], Value::Null);
    assert_eq!(results["allocators"][1]["library"], "libheapwright.so");
    let names: Vec<_> =
        results["programs"].as_array().expect("is a list").iter().map(|p| &p["name"]).collect();
    assert_eq!(names, ["empty", "cfrac"], "the empty program comes with any workload");
    for allocator in ["glibc", "heapwright"] {
        let entry = entry(&results, 1, allocator);
        assert_eq!((&entry["outcome"], &entry["detail"]), (&"ok".into(), &Value::Null));
        let runs = entry["runs"].as_array().expect("is a list");
        assert_eq!(runs.len(), 2);
        for run in runs {
            for field in ["wall_ns", "peak_rss_bytes", "minor_faults"] {
                assert!(run[field].as_u64() > Some(0), "{field}: {run}");
            }
            for field in ["user_ns", "system_ns", "major_faults"] {
                assert!(run[field].is_u64(), "{field}: {run}");
            }
        }
    }
    let comparisons = results["summary"]["comparisons"].as_array().expect("is a list");
    let time = comparisons.iter().find(|c| c["measure"] == "time" && c["group"] == "all");
    let time = time.expect("is there");
    assert_eq!((&time["of"], &time["programs"]), (&"heapwright".into(), &1.into()));
    let number = |field: &str| time[field].as_f64().expect("is a number");
    assert!(number("low") <= number("ratio") && number("ratio") <= number("high"));
}

#[test]
fn files_are_written_and_nothing_is_printed_when_quiet() {
    let folder = Folder::new();
    // The old contents are longer than the new ones, and must not stay behind them.
    let path = folder.file("race.json", "x".repeat(100_000));
    let output = done(&mut on_script(&["--quiet", "--format", "json", "-o", text(&path)], "true"));
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0));
    let results: Value = serde_json::from_slice(&fs::read(&path).expect("there")).expect("is JSON");
    assert_eq!(results["programs"][0]["stands_for"], "/bin/sh -c true");
}

#[test]
fn an_allocator_that_crashes_is_a_row() {
    let folder = Folder::new();
    let source =
        "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }";
    let with = library(&folder, "crasher", source);
    let flags = ["--with", &with, "--only", "crasher"];
    let output = done(&mut on_script(&flags, "true"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(
        printed.lines().any(|line| line == "crasher    crashed (signal 6, SIGABRT)"),
        "{printed}"
    );
    let results = json(&mut on_script(&[&flags[..], &["--format", "json"]].concat(), "true"));
    let crasher = entry(&results, 0, "crasher");
    assert_eq!(
        (&crasher["outcome"], &crasher["detail"]),
        (&"crashed".into(), &"signal 6, SIGABRT".into())
    );
    assert_eq!(entry(&results, 0, "heapwright")["outcome"], "ok");
}

#[test]
fn an_allocator_that_hangs_is_a_row() {
    let folder = Folder::new();
    let source = "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); }";
    let with = library(&folder, "sleeper", source);
    let flags = ["--timeout", "1", "--format", "json"];
    let begun = Instant::now();
    let mut command =
        on_script(&[&flags[..], &["--with", &with, "--only", "sleeper"]].concat(), "true");
    let results = json(&mut command);
    let sleeper = entry(&results, 0, "sleeper");
    assert_eq!(
        (&sleeper["outcome"], &sleeper["detail"]),
        (&"hung".into(), &"killed after 1 s, before main".into())
    );
    // The same for a program that hangs only under the preload.
    let results = json(&mut on_script(&flags, "[ -z \"$LD_PRELOAD\" ] || sleep 60"));
    let ours = entry(&results, 0, "heapwright");
    assert_eq!((&ours["outcome"], &ours["detail"]), (&"hung".into(), &"killed after 1 s".into()));
    assert_eq!(entry(&results, 0, "glibc")["outcome"], "ok");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_library_that_takes_no_effect_is_a_row() {
    let folder = Folder::new();
    let with = library(&folder, "nothing", "int nothing_of_malloc;");
    let mut command =
        on_script(&["--with", &with, "--only", "nothing", "--format", "json"], "true");
    let results = json(&mut command);
    let nothing = entry(&results, 0, "nothing");
    assert_eq!(nothing["outcome"], "not-taken");
    let detail = nothing["detail"].as_str().expect("is text");
    assert!(
        detail.starts_with("the preload does not take effect: malloc comes from libc"),
        "{detail}"
    );
    assert_eq!(nothing["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_static_program_takes_no_preload() {
    let folder = Folder::new();
    let program = folder.compile("static", &["-static"], "int main(void) { return 0; }");
    let output = done(bench(&["--"]).arg(&program));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    let row = "heapwright could not be preloaded (it is statically linked: no loader runs that could preload a library)";
    assert!(printed.lines().any(|line| line == row), "{printed}");
}

#[test]
fn a_program_that_fails_under_an_allocator_is_a_row() {
    let failing = "if [ -n \"$LD_PRELOAD\" ]; then echo oh >&2; exit 3; fi";
    for (script, outcome, detail) in [
        (failing, "failed", "exit 3 (0 under glibc): oh"),
        ("echo ${LD_PRELOAD:-none}", "differs", "it printed something else"),
        ("[ -z \"$LD_PRELOAD\" ] || kill -SEGV $$", "crashed", "signal 11, SIGSEGV"),
    ] {
        let results = json(&mut on_script(&["--format", "json"], script));
        let ours = entry(&results, 0, "heapwright");
        assert_eq!((&ours["outcome"], &ours["detail"]), (&outcome.into(), &detail.into()));
        assert_eq!(entry(&results, 0, "glibc")["runs"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn output_that_is_never_the_same_is_not_compared() {
    let output = done(&mut on_script(&[], "echo $$"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let note = "note: sh prints something else each time, so its output was not compared\n";
    assert!(stdout(&output).contains(note), "{}", stdout(&output));
}

#[test]
fn a_program_that_fails_by_itself_is_reported() {
    refused(
        &done(&mut on_script(&[], "echo oh >&2; exit 3")),
        1,
        "the program itself fails: sh: exit 3 under glibc: oh",
    );
    refused(
        &done(&mut on_script(&[], "kill -KILL $$")),
        1,
        "sh: it crashes under glibc (signal 9, SIGKILL)",
    );
    refused(
        &done(&mut on_script(&["--timeout", "0.2"], "sleep 60")),
        1,
        "sh: it does not end under glibc (killed after 0.2 s; see --timeout)",
    );
    refused(
        &done(bench(&["--"]).arg("no-such-program")),
        127,
        "no-such-program: command not found",
    );
    refused(&done(bench(&["--"]).arg("/etc/passwd")), 126, "/etc/passwd may not be executed");
}

#[test]
fn unknown_names_are_reported() {
    let with = |flags: &[&str]| done(heapwright().arg("bench").args(flags));
    refused(
        &with(&["--only", "nomalloc"]),
        2,
        "--only nomalloc: no such allocator here; there are glibc, heapwright",
    );
    refused(&with(&["--baseline", "nomalloc"]), 2, "--baseline nomalloc: no such allocator");
    refused(&with(&["--workloads", "cfrak"]), 2, "--workloads cfrak: there is no such workload");
    refused(&with(&["--workloads", "none"]), 2, "there is nothing to race on");
    refused(&with(&["--with", "nosuchmalloc"]), 2, "--with nosuchmalloc: no such allocator here");
    refused(&with(&["--with", "x=/nonexistent.so"]), 2, "--with x: cannot be preloaded");
    refused(&with(&["--rounds", "0"]), 2, "invalid value '0' for '--rounds <N>'");
    refused(&with(&["--timeout", "soon"]), 2, "is not a number of seconds");
    refused(
        &with(&["--format", "json", "-o", "/nonexistent/x", "--", "true"]),
        2,
        "cannot write /nonexistent/x",
    );
    let output = done(heapwright().args(["workload", "cfrak"]));
    refused(&output, 1, "there is no workload 'cfrak'");
}

#[test]
fn suites_that_are_wrong_are_reported() {
    let folder = Folder::new();
    let printed = |content: &str, words: &str| {
        let suite = folder.file("suite.toml", content);
        refused(&done(&mut bench(&["--workloads", "none", "--suite", text(&suite)])), 2, words);
    };
    printed(
        "[[program]]\nname = \"x\"\ncomand = [\"true\"]\n",
        "suite.toml:3: unknown field `comand`",
    );
    printed(
        "[[program]]\nname = \"x\"\ncommand = [\"/nope\"]\n",
        "program 'x': /nope: command not found",
    );
    printed("", "has no [[program]]");
    let twice = "[[program]]\nname = \"x\"\ncommand = [\"true\"]\n".repeat(2);
    printed(&twice, "there are two programs called 'x'");
    let missing = folder.path("missing.toml");
    let output = done(&mut bench(&["--suite", text(&missing)]));
    refused(&output, 2, "missing.toml: No such file or directory");
    let suite = folder.file("suite.toml", "[[program]]\nname = \"x\"\ncommand = [\"true\"]\n");
    let output = done(&mut bench(&["--suite", text(&suite), "--programs", "y"]));
    refused(&output, 2, "--programs y: there is no such program");
}

#[test]
fn a_suite_is_raced_with_its_surroundings() {
    let folder = Folder::new();
    folder.file("input", "words");
    fs::create_dir(folder.path("sub")).expect("made");
    let script =
        "[ \"$(cat)\" = words ] && [ \"$WORD\" = a ] && [ \"$(basename \"$PWD\")\" = sub ]";
    let suite = folder.file(
        "suite.toml",
        format!(
            "[[program]]\nname = \"surrounded\"\nstands_for = \"A <b> & c.\"\n\
             command = [\"/bin/sh\", \"-c\", '''{script}''']\nenvironment = {{ WORD = \"a\" }}\n\
             directory = \"sub\"\nstdin = \"input\"\n\
             [[program]]\nname = \"long\"\ncommand = [\"true\"]\nlong = true\n\
             [[program]]\nname = \"broken\"\ncommand = [\"false\"]\n"
        ),
    );
    let flags = ["--workloads", "none", "--suite", text(&suite), "--rounds-long", "1"];
    let chosen = ["--programs", "surrounded,long", "--format", "json"];
    let results = json(&mut bench(&[&flags[..], &chosen].concat()));
    for (program, runs) in [(0, 2), (1, 1)] {
        for allocator in ["glibc", "heapwright"] {
            let entry = entry(&results, program, allocator);
            assert_eq!(entry["outcome"], "ok", "{entry:#}");
            assert_eq!(entry["runs"].as_array().map(Vec::len), Some(runs));
        }
    }
    assert_eq!(results["programs"][0]["stands_for"], "A <b> & c.");
    assert_eq!(results["programs"][0]["kind"], "program");
    // A program that fails by itself does not keep the others from being reported.
    let output = done(&mut bench(&flags));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "heapwright: the program itself fails: broken: exit 1 under glibc\n"
    );
    assert!(stdout(&output).contains("2 allocators"), "{}", stdout(&output));
}

#[test]
fn allocators_and_workloads_are_listed() {
    let output = done(heapwright().args(["bench", "--list"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.starts_with("allocators\n  glibc"), "{printed}");
    assert!(
        printed.contains("\n  heapwright") && printed.contains("\nworkloads\n  empty"),
        "{printed}"
    );
    let shown = printed.lines().filter(|line| line.starts_with("  cfrac ")).count();
    assert_eq!(shown, 1, "{printed}");
}

#[test]
fn a_run_inherits_what_was_set_for_its_allocator_and_no_other() {
    let folder = Folder::new();
    let out = folder.path("seen");
    let with = done(heapwright().arg("library"));
    let with = format!("set=COLOUR=red {}", stdout(&with).trim());
    let script = format!(
        "echo \"${{COLOUR:-none}} ${{HEAPWRIGHT:-none}} ${{LD_PRELOAD##*/}}\" >>'{}'",
        text(&out)
    );
    let mut command = on_script(&["--with", &with, "--only", "set", "--rounds", "1"], &script);
    let output = done(command.env("HEAPWRIGHT", "purge=1").env("LD_PRELOAD", "libc.so.6"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let seen = fs::read_to_string(&out).expect("there");
    let mut lines: Vec<&str> = seen.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, ["none none ", "none purge=1 libheapwright.so", "red none libheapwright.so"]);
    assert!(stdout(&output).contains("note: LD_PRELOAD was taken out"), "{}", stdout(&output));
}

#[test]
fn option_sets_race_beside_each_other() {
    let folder = Folder::new();
    let seen = folder.path("seen");
    let (never, both) = ("heapwright:purge=never", "heapwright:purge=0,cache=percpu");
    let flags = ["--with", never, "--with", both, "--only", never, "--only", both];
    let page = folder.path("race.html");
    let script = format!("echo \"${{HEAPWRIGHT:-none}}\" >>'{}'", text(&seen));
    let outputs = ["--format", "html", "-o", text(&page)];
    let output = done(&mut on_script(&[&flags[..], &outputs].concat(), &script));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    for set in [never, both] {
        let row = printed.lines().find(|line| line.split_whitespace().next() == Some(set));
        assert!(row.is_some_and(|row| row.contains(" ms ") && row.contains("..")), "{printed}");
        assert!(printed.contains(&format!(" {set}")), "a sentence compares the two: {printed}");
    }
    let page = fs::read_to_string(&page).expect("there");
    for words in [never, both, ">purge=never</text>", "=0,cache=percpu</text>"] {
        assert!(page.contains(words), "{words}");
    }
    let seen = fs::read_to_string(&seen).expect("there");
    for options in ["none", "purge=never", "purge=0,cache=percpu"] {
        assert!(seen.lines().any(|line| line == options), "{seen}");
    }

    let workload = ["--workloads", "cfrac", "--scale", "0", "--format", "json"];
    let results = json(&mut bench(&[&flags[..], &workload].concat()));
    for (set, options) in [(never, "purge=never"), (both, "purge=0,cache=percpu")] {
        assert_eq!(entry(&results, 1, set)["outcome"], "ok");
        let all = results["allocators"].as_array().expect("is a list");
        let one = all.iter().find(|one| one["name"] == set).expect("is there");
        assert_eq!(one["environment"]["HEAPWRIGHT"], options);
        let comparisons = results["summary"]["comparisons"].as_array().expect("is a list");
        let direct = |c: &&Value| c["of"] == "heapwright" && c["against"] == set;
        let direct = comparisons.iter().find(direct).expect("is there");
        assert!(direct["low"].is_f64() && direct["high"].is_f64(), "{direct}");
    }
}

#[test]
fn an_option_set_that_is_wrong_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let ran = folder.path("ran");
    let script = format!("touch '{}'", text(&ran));
    let long = format!("heapwright:purge=1{}", ",purge=1".repeat(400));
    for (set, words) in [
        ("heapwright:purge=soon", "--with heapwright:purge=soon: the value needs milliseconds"),
        ("heapwright:purge=1,purj=2", "--with heapwright:purj=2: "),
        ("heapwright:purge", "option 'purge' is not of the form KEY=VALUE"),
        ("heapwright:", "option '' is not of the form KEY=VALUE"),
        (&long, "bytes long, and the library reads 2048"),
    ] {
        refused(&done(&mut on_script(&["--with", set], &script)), 2, words);
        assert!(!ran.exists(), "{set}");
    }
    let twice = ["--with", "heapwright:purge=0", "--with", "heapwright:purge=0"];
    let words = "--with names heapwright:purge=0 twice";
    refused(&done(&mut on_script(&twice, &script)), 2, words);
}

/// Starts a race that takes long. A file gets the pid of each program that starts.
fn long_race(folder: &Folder) -> (Child, std::path::PathBuf) {
    let pids = folder.path("pids");
    let script = format!("echo $$ >>'{}'; sleep 0.1", text(&pids));
    let mut command = on_script(&["--rounds", "1000"], &script);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    // Before the fifth round there are two warm-up runs, one to compare outputs, and eight others.
    for _ in 0..1000 {
        let runs = fs::read_to_string(&pids).map(|text| text.lines().count());
        if runs.unwrap_or_default() > 11 {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    (child, pids)
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: no pointers are involved; the child is not reaped yet.
    unsafe { libc::kill(child.id().cast_signed(), signal) };
}

fn all_gone(pids: &Path) -> bool {
    let text = fs::read_to_string(pids).expect("there");
    let mut left: Vec<&str> = text.lines().collect();
    for _ in 0..200 {
        left.retain(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = status.rsplit(')').next().unwrap_or_default().trim().chars().next();
            !matches!(state, None | Some('Z'))
        });
        if left.is_empty() {
            return true;
        }
        sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn an_interrupted_race_tells_what_it_has() {
    let folder = Folder::new();
    let (child, pids) = long_race(&folder);
    signal(&child, libc::SIGTERM);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{}", stderr(&output));
    let printed = stdout(&output);
    let heading = printed.lines().next().unwrap_or_default();
    assert!(
        heading.contains("interrupted after ") && heading.ends_with(" of 1,000 rounds"),
        "{printed}"
    );
    assert!(
        printed.contains("note: the race was interrupted: these figures are partial"),
        "{printed}"
    );
    assert!(printed.lines().filter(|line| line.contains(" ms ")).count() >= 2, "{printed}");
    assert!(all_gone(&pids));
}

#[test]
fn nothing_outlives_a_killed_race() {
    let folder = Folder::new();
    let (mut child, pids) = long_race(&folder);
    signal(&child, libc::SIGKILL);
    child.wait().expect("ended");
    assert!(all_gone(&pids));
    let runs = fs::read_to_string(&pids).expect("there").lines().count();
    sleep(Duration::from_millis(300));
    assert_eq!(fs::read_to_string(&pids).expect("there").lines().count(), runs);
}
