//! Runs the plan: one group after the other in each round, the settings of a group
//! next to each other in time, in an order that turns from round to round.
//!
//! ```text
//!   round 1   ttest1 T=2: a b c d | ttest1 T=40: a b c d | ...
//!   round 2   ttest1 T=2: b c d a | ...
//! ```
//!
//! A setting is tried with the empty program first. One that complains (a library that
//! does not know the option, or that the loader ignores) is left out, and said so:
//! it must not be taken for one that works.
//!
//! Before each run as much memory is touched and given back as the group was seen to
//! take: the hosts of virtual machines take free memory back, and whoever touches it
//! first again pays for it.

use std::collections::BTreeMap;
use std::process::Command;

use crate::line::{self, Numbers};
use crate::options::Run;
use crate::plan::{Group, UNTIMED};
use crate::results::{Commits, LeftOut, One, Results};
use crate::setting::{PER_CPU, Setting};

/// The most that is touched before a run.
const MOST_WARMED: f64 = (1u64 << 30) as f64;

struct Said {
    stdout: String,
    stderr: String,
    /// Why it did not end well.
    failed: Option<String>,
}

/// Runs a program under a setting; `env` sets the preload, so that what stands before
/// it is not under it.
fn start(asked: &Run, setting: &Setting, program: &str, words: &[String]) -> Result<Said, String> {
    let path = asked.programs.join(program);
    let output = Command::new("timeout")
        .args(["--signal=KILL", &asked.seconds.to_string(), "env"])
        .args(&setting.environment)
        .arg(&path)
        .args(words)
        .env_remove("LD_PRELOAD")
        .env_remove("HEAPWRIGHT")
        .output()
        .map_err(|e| format!("cannot run timeout, of coreutils: {e}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let failed = (!output.status.success()).then(|| {
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        match output.status.code() {
            Some(137) => format!("its {} seconds were over, or it was killed", asked.seconds),
            Some(code) if code > 128 => format!("signal {} ended it; {last}", code - 128),
            Some(code) => format!("it ended with {code}; {last}"),
            None => "a signal ended it".to_owned(),
        }
    });
    Ok(Said { stdout, stderr, failed })
}

/// Runs a program, and reads its line. Ours says nothing else unless something is wrong.
fn numbers(
    asked: &Run,
    setting: &Setting,
    program: &str,
    words: &[String],
    timed: bool,
) -> Result<Result<Numbers, String>, String> {
    let said = start(asked, setting, program, words)?;
    if let Some(why) = said.failed {
        return Ok(Err(why));
    }
    if let Some(line) = said.stderr.lines().next().filter(|_| setting.ours) {
        return Ok(Err(format!("it says: {line}")));
    }
    Ok(line::parse(&said.stdout, program, timed))
}

/// Whether the setting can be had: its reason if not.
fn why_not(asked: &Run, setting: &Setting) -> Result<Option<String>, String> {
    let said = start(asked, setting, "empty", &[])?;
    if said.failed.is_some() {
        return Ok(said.failed);
    }
    if let Some(line) = said.stderr.lines().next() {
        return Ok(Some(format!("it says: {line}")));
    }
    Ok(line::parse(&said.stdout, "empty", false).err())
}

/// Touches so many bytes and gives them back.
fn warm(bytes: f64) {
    let mut memory = Vec::<u8>::with_capacity(bytes as usize);
    memory.resize(bytes as usize, 1);
    std::hint::black_box(&memory);
}

/// The number behind a label that ends in `word`, in what `stats=exit` prints:
///
/// ```text
/// heapwright:   rseq commits     123456
/// ```
fn told(stderr: &str, word: &str) -> Option<f64> {
    stderr.lines().find_map(|line| {
        let (_, rest) = line.strip_prefix("heapwright:")?.split_once(word)?;
        rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    })
}

/// Of what per-CPU caches did, what was a restartable sequence that committed.
fn commits(asked: &Run, group: &Group, setting: &Setting) -> Result<Option<Commits>, String> {
    let mut counting = setting.clone();
    for variable in &mut counting.environment {
        if variable.starts_with("HEAPWRIGHT=") {
            variable.push_str(",stats=exit");
        }
    }
    let said = start(asked, &counting, group.workload.name, &group.arguments)?;
    let (done, fell_back) =
        (told(&said.stderr, "rseq commits"), told(&said.stderr, "rseq fallbacks"));
    let percent = match (done, fell_back) {
        (Some(done), Some(fell_back)) if done + fell_back > 0.0 => {
            done / (done + fell_back) * 100.0
        }
        _ => return Ok(None),
    };
    Ok(Some(Commits { threads: group.threads, percent }))
}

/// The processor, how many, the kernel.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    let numbers = kernel.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(kernel.len());
    format!(
        "{} processors, {}, Linux {}",
        std::thread::available_parallelism().map_or(1, |n| n.get()),
        model.map_or("of a kind that does not say", |(_, name)| name.trim()),
        &kernel[..numbers]
    )
}

/// All of it.
pub(crate) fn all(asked: &Run, plan: &[Group]) -> Result<Results, String> {
    let mut results = Results { machine: machine(), ..Results::default() };
    let bare = Setting::glibc();
    if let Some(why) = why_not(asked, &bare)? {
        let path = asked.programs.join("empty");
        return Err(format!("{} does not run: {why}", path.display()));
    }
    for setting in &asked.settings {
        match why_not(asked, setting)? {
            None => results.settings.push(setting.clone()),
            Some(why) => {
                eprintln!("{} is left out: {why}", setting.name);
                results.left_out.push(LeftOut { setting: setting.clone(), why });
            }
        }
    }
    if results.settings.is_empty() {
        return Err("none of the settings can be had".to_owned());
    }
    // What each group was seen to take.
    let mut peaks: BTreeMap<usize, f64> = BTreeMap::new();
    for round in 1..=asked.rounds {
        eprintln!("round {round} of {}", asked.rounds);
        let empty = numbers(asked, &bare, "empty", &[], false)??;
        results.empty.push(empty["anonymous_end"]);
        for (place, group) in plan.iter().enumerate().filter(|(_, g)| g.takes_part(round)) {
            let count = results.settings.len();
            for turn in 0..count {
                let setting = &results.settings[(turn + round as usize - 1) % count];
                let peak = peaks.entry(place).or_insert(16e6);
                warm((*peak * 1.25).min(MOST_WARMED));
                let name = group.workload.name;
                let came = numbers(asked, setting, name, &group.arguments, group.clock != UNTIMED)?;
                if let Ok(numbers) = &came {
                    *peak = peak.max(numbers["rss_peak"]);
                }
                if let Err(why) = &came {
                    eprintln!("{name}, {} threads, {}: {why}", group.threads, setting.name);
                }
                results.runs.push(One {
                    workload: name.to_owned(),
                    threads: group.threads,
                    clock: group.clock.to_owned(),
                    setting: setting.name.clone(),
                    round,
                    failed: came.as_ref().err().cloned(),
                    numbers: came.unwrap_or_default(),
                });
            }
        }
    }
    if let Some(setting) = results.setting(PER_CPU).cloned() {
        for group in plan.iter().filter(|g| g.workload.name == "rpc" && g.clock == UNTIMED) {
            results.commits.extend(commits(asked, group, &setting)?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_their_labels() {
        let said = "heapwright: memory of process 7 (rpc) after 12 ms\n\
                    heapwright:   rseq commits            123456\n\
                    heapwright:   rseq fallbacks               3 of them at the start\n";
        assert_eq!(told(said, "rseq commits"), Some(123_456.0));
        assert_eq!(told(said, "rseq fallbacks"), Some(3.0));
        assert_eq!(told(said, "rseq aborts"), None);
        assert_eq!(told("rpc: rseq commits 5", "rseq commits"), None);
    }

    #[test]
    fn the_machine_has_processors() {
        let words = machine();
        assert!(words.contains(" processors, ") && words.contains("Linux "), "{words}");
    }
}
