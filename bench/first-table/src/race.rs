//! The runs: interleaved, each through the launcher, each checked.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::jobs::Job;
use crate::peers::Rival;

/// What one run cost.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) rss_kib: f64,
    /// The unit and the value the workload printed about itself.
    pub(crate) own: Option<(String, f64)>,
}

/// Runs every job under every rival `rounds` times; `runs[job][rival][round]`.
pub(crate) fn race(
    jobs: &[Job],
    rivals: &[Rival],
    rounds: usize,
    launcher: &Path,
    work: &Path,
) -> Result<Vec<Vec<Vec<Run>>>, String> {
    let mut runs = vec![vec![Vec::new(); rivals.len()]; jobs.len()];
    let mut expected: Vec<Option<Vec<u8>>> = vec![None; jobs.len()];
    let watched = std::io::stderr().is_terminal();
    for round in 0..rounds {
        for (j, job) in jobs.iter().enumerate() {
            if watched {
                eprint!("\rround {} of {rounds}: {:<12}", round + 1, job.name);
                let _ = std::io::stderr().flush();
            }
            for turn in 0..rivals.len() {
                let r = (turn + round + j) % rivals.len();
                let (run, printed) = once(job, &rivals[r], launcher, work)?;
                if job.same_output() {
                    match &expected[j] {
                        None => expected[j] = Some(printed),
                        Some(first) if *first == printed => {}
                        Some(_) => {
                            return Err(format!(
                                "{} printed something else under {}",
                                job.name, rivals[r].name
                            ));
                        }
                    }
                }
                runs[j][r].push(run);
            }
        }
    }
    if watched {
        eprintln!("\r{:<40}", "");
    }
    Ok(runs)
}

fn once(job: &Job, rival: &Rival, launcher: &Path, work: &Path) -> Result<(Run, Vec<u8>), String> {
    let report = work.join("report");
    let failed = |why: String| format!("{} under {}: {why}", job.name, rival.name);
    let mut command = Command::new(launcher);
    command.arg(&report).args(&job.command).current_dir(work);
    command.env_remove("LD_PRELOAD").env_remove("HEAPWRIGHT").envs(job.env.iter().copied());
    command.stdin(match &job.stdin {
        Some(path) => File::open(path).map_err(|e| failed(e.to_string()))?.into(),
        None => Stdio::null(),
    });
    if let Some(library) = &rival.preload {
        command.env("LD_PRELOAD", library);
    }
    let result = command.output().map_err(|e| failed(e.to_string()))?;
    let text = std::fs::read_to_string(&report).map_err(|e| failed(e.to_string()))?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [wall_ns, user_us, system_us, rss_kib, code, signal] = numbers[..] else {
        return Err(failed(format!("the launcher reported {text:?}")));
    };
    if code != 0.0 || signal != 0.0 {
        let errors = String::from_utf8_lossy(&result.stderr).into_owned();
        return Err(failed(format!("exit code {code}, signal {signal}\n{errors}")));
    }
    let printed = String::from_utf8_lossy(&result.stdout);
    let own = (!job.same_output())
        .then(|| {
            let (unit, value) = printed.trim().split_once(' ')?;
            Some((unit.to_owned(), value.parse().ok()?))
        })
        .flatten();
    let cpu_ms = (user_us + system_us) / 1e3;
    Ok((Run { wall_ms: wall_ns / 1e6, cpu_ms, rss_kib, own }, result.stdout))
}
