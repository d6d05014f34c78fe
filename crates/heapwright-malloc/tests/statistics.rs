//! The statistics that a process writes at its end.
mod support;
use heapwright_record::Stats;
use support::{How, Outcome, command, compile, run};

const WAYS: [How; 4] = [How::Preload, How::Linked, How::Archive, How::Static];

fn end(how: How, end: &str, options: &str) -> Outcome {
    let program = compile("statistics_at_exit.c", how, &[]);
    run(command(&program, how).arg(end).env("HEAPWRIGHT", options))
}

fn processes(outcome: &Outcome) -> Vec<u32> {
    let mut all: Vec<u32> = outcome
        .stdout
        .lines()
        .map(|line| line.split(' ').nth(1).expect("a number").parse().expect("a number"))
        .collect();
    all.sort_unstable();
    all
}

fn reported(outcome: &Outcome) -> Vec<u32> {
    let mut all: Vec<u32> = outcome
        .stderr
        .lines()
        .inspect(|line| assert!(line.starts_with("heapwright: "), "{line}"))
        .filter_map(|line| line.strip_prefix("heapwright: memory of process "))
        .map(|rest| rest.split(' ').next().expect("a number").parse().expect("a number"))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn every_end_prints_once() {
    for how in WAYS {
        for way in
            ["return", "exit", "_exit", "_Exit", "quick_exit", "thread", "closed", "fork", "vfork"]
        {
            let outcome = end(how, way, "stats=exit");
            assert!(outcome.status.success(), "{how:?} {way}: {outcome:?}");
            assert_eq!(
                reported(&outcome),
                processes(&outcome),
                "{how:?} {way}: {}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn the_report_has_all_of_its_lines() {
    let outcome = end(How::Preload, "exit", "stats=exit");
    for words in ["resident now", "live blocks", "metadata", "allocations", "frees", "####"] {
        assert!(outcome.stderr.contains(words), "no {words:?} in {}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("(statistics_at_"), "{}", outcome.stderr);
}

#[test]
fn a_program_started_by_another_reports_for_itself() {
    let outcome = end(How::Preload, "exec", "stats=exit");
    // The same process twice: the program before the exec leaves no report.
    let processes = processes(&outcome);
    assert_eq!(processes.len(), 2);
    assert_eq!(reported(&outcome), processes[..1]);
}

#[test]
fn the_exit_status_is_kept() {
    for how in WAYS {
        assert_eq!(end(how, "status", "stats=exit").status.code(), Some(42));
        assert_eq!(end(how, "status", "").status.code(), Some(42));
    }
}

#[test]
fn nothing_is_printed_unasked() {
    for how in WAYS {
        for way in ["return", "_exit", "quick_exit", "fork", "vfork"] {
            end(how, way, "").is_fine((how, way));
        }
    }
}

#[test]
fn the_file_can_be_read() {
    let directory = support::scratch().join("stats");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    for (round, how) in WAYS.into_iter().enumerate() {
        let prefix = directory.join(format!("file{round}"));
        let outcome = end(how, "fork", &format!("stats_file={}", prefix.display()));
        outcome.is_fine(how);
        for process in processes(&outcome) {
            let bytes = std::fs::read(format!("{}.{process}", prefix.display()))
                .expect("each process wrote its file");
            let stats = Stats::decode(&bytes).expect("the file is whole");
            assert_eq!(stats.pid, u64::from(process));
            assert_eq!(stats.detailed, 1);
            assert!(stats.allocations >= 1 && stats.requested_bytes >= 100_000);
            assert!(stats.live_bytes >= 100_000 && stats.rss >= stats.rss_live);
            assert!(stats.rss_parts().abs_diff(stats.rss) <= stats.rss / 20, "{stats:?}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_is_one_line() {
    let outcome = end(How::Preload, "exit", "stats_file=/nonexistent/directory/x");
    assert!(outcome.status.success());
    outcome.said_one_line("unwritable", &["/nonexistent/directory/x.", "cannot write"]);
}
