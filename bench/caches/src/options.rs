//! The command line.

use std::path::PathBuf;

use ::figures::options::{number, numbers};

use crate::figures::Bounds;
use crate::plan::{self, Scope};
use crate::setting::Setting;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
usage: caches run --programs FOLDER --ours LIBRARY --out FOLDER [options]
       caches report RESULTS.JSON [--bound-mib N]

Runs the workloads under each cache model of heapwright and under other allocators,
in turns, and prints tables and figures. FOLDER of --out gets results.json (each
run), tables.md and a plot of each workload. ci/caches.sh calls it.

  --with NAME=[VAR=VALUE ...]PATH  another allocator's library; may be repeated
  --no-glibc                       do not run without a preload
  --only A,B,...                   only these of all the settings
  --workloads A,B,...              only these of ttest1, rpc, churn, idle
  --threads A,B,...                threads of ttest1 and rpc (default: 2,40,80)
  --shared K,K,...                 shared:K besides K as it comes (default: 8,32)
  --rounds N                       (default: 10; intervals need 6)
  --percent N                      of the work (default: 100)
  --seconds N                      a run that takes longer has failed (default: 600)
  --bound-mib N                    what a shared cache may hold, for the figure
                                   (default: 4)
  --quick                          a missed figure does not matter
";

/// What to do.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Run(Run),
    Report(Report),
}

/// Run and report.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) programs: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) settings: Vec<Setting>,
    pub(crate) scope: Scope,
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    pub(crate) quick: bool,
    pub(crate) bounds: Bounds,
}

/// Report what was run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) results: PathBuf,
    pub(crate) bounds: Bounds,
}

fn parse_report(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut words = words;
    let mut bounds = Bounds::default();
    let mut results = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bound-mib" => {
                bounds.cache_mib = number(&words.next().unwrap_or_default(), &word, 1..=4096)?
            }
            _ if word.starts_with('-') || results.is_some() => {
                return Err(format!("'{word}' is not understood; caches --help says what is"));
            }
            _ => results = Some(PathBuf::from(word)),
        }
    }
    let results = results.ok_or("report needs the file that a run has written, results.json")?;
    Ok(Asked::Report(Report { results, bounds }))
}

fn parse_run(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut words = words;
    let (mut programs, mut ours, mut out) = (None, None, None);
    let mut peers = Vec::new();
    let mut shared = vec![8, 32];
    let mut only: Option<Vec<String>> = None;
    let (mut glibc, mut quick) = (true, false);
    let (mut rounds, mut seconds, mut bounds) = (10, 600, Bounds::default());
    let mut scope = Scope {
        workloads: plan::WORKLOADS.iter().collect(),
        threads: vec![2, 40, 80],
        percent: 100,
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words.next().filter(|v| !v.is_empty()).ok_or_else(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--help" | "-h" => return Ok(Asked::Help),
            "--programs" => programs = Some(PathBuf::from(value()?)),
            "--ours" => ours = Some(value()?),
            "--out" => out = Some(PathBuf::from(value()?)),
            "--with" => peers.push(Setting::peer(&value()?)?),
            "--no-glibc" => glibc = false,
            "--quick" => quick = true,
            "--only" => only = Some(value()?.split(',').map(str::to_owned).collect()),
            "--workloads" => {
                let list = value()?;
                let known = |name| {
                    plan::workload(name).ok_or_else(|| {
                        format!(
                            "--workloads: there is no '{name}'; there are ttest1, rpc, churn, idle"
                        )
                    })
                };
                scope.workloads = list.split(',').map(known).collect::<Result<_, _>>()?;
            }
            "--threads" => scope.threads = numbers(&value()?, &word, 1..=5000)?,
            "--shared" => shared = numbers(&value()?, &word, 1..=4096)?,
            "--rounds" => rounds = number(&value()?, &word, 1..=1000)?,
            "--percent" => scope.percent = number(&value()?, &word, 1..=10000)?,
            "--seconds" => seconds = number(&value()?, &word, 1..=86400)?,
            "--bound-mib" => bounds.cache_mib = number(&value()?, &word, 1..=4096)?,
            _ => return Err(format!("'{word}' is not understood; caches --help says what is")),
        }
    }
    let ours = ours.ok_or("run needs --ours, heapwright's library")?;
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let mut settings = Setting::all_ours(&ours, &shared, cpus);
    settings.append(&mut peers);
    if glibc {
        settings.push(Setting::glibc());
    }
    for (at, one) in settings.iter().enumerate() {
        if settings[..at].iter().any(|other| other.name == one.name) {
            return Err(format!("--with: there are two settings named {}", one.name));
        }
    }
    if let Some(only) = only {
        if let Some(name) = only.iter().find(|&name| !settings.iter().any(|s| s.name == *name)) {
            let names: Vec<&str> = settings.iter().map(|s| s.name.as_str()).collect();
            return Err(format!("--only: there is no '{name}'; there are {}", names.join(", ")));
        }
        settings.retain(|setting| only.contains(&setting.name));
    }
    Ok(Asked::Run(Run {
        programs: programs.ok_or("run needs --programs, the folder of the built programs")?,
        out: out.ok_or("run needs --out, a folder for what comes of it")?,
        settings,
        scope,
        rounds,
        seconds,
        quick,
        bounds,
    }))
}

/// Reads the arguments.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut words = words;
    match words.next().as_deref() {
        Some("run") => parse_run(words),
        Some("report") => parse_report(words),
        Some("--help" | "-h") => Ok(Asked::Help),
        Some(word) => Err(format!("'{word}' is no command; there are run, report and --help")),
        None => Err("needs a command: run, report or --help".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    const LEAST: &str = "run --programs /p --ours /o.so --out /out";

    fn run(more: &str) -> Run {
        match parsed(&format!("{LEAST} {more}")) {
            Ok(Asked::Run(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        parsed(line).map(|asked| format!("{asked:?}")).unwrap_err()
    }

    #[test]
    fn what_is_not_said_is_the_issue_s() {
        let run = run("");
        assert_eq!((run.rounds, run.scope.threads, run.scope.percent), (10, vec![2, 40, 80], 100));
        let names: Vec<&str> = run.settings.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            ["exclusive", "auto", "shared", "shared:8", "shared:32", "percpu", "glibc"]
        );
        assert_eq!(run.scope.workloads.len(), 4);
    }

    #[test]
    fn what_is_said() {
        let run = run("--threads 1,300,1 --shared 4 --with a=/a.so --no-glibc --workloads rpc \
                       --only exclusive,a --quick --rounds 3 --bound-mib 5");
        let names: Vec<&str> = run.settings.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["exclusive", "a"]);
        assert_eq!((run.scope.threads, run.quick, run.rounds), (vec![1, 300], true, 3));
        assert_eq!((run.scope.workloads[0].name, run.bounds.cache_mib), ("rpc", 5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(refused("").contains("needs a command"));
        assert!(refused("walk").contains("'walk' is no command"));
        assert!(refused("run").contains("--ours"));
        for (more, why) in [
            ("--threads 2,x", "--threads: 'x'"),
            ("--threads 0", "'0' is no number from 1"),
            ("--with scudo", "'scudo' is no NAME="),
            ("--with shared=/a.so", "two settings named shared"),
            ("--only sharde", "there is no 'sharde'; there are exclusive"),
            ("--workloads rcp", "there is no 'rcp'"),
            ("--rounds", "--rounds needs a value"),
            ("--fast", "'--fast' is not understood"),
        ] {
            let said = refused(&format!("{LEAST} {more}"));
            assert!(said.contains(why), "{said}");
        }
        assert!(refused("report").contains("results.json"));
        assert!(refused("report a b").contains("'b' is not understood"));
    }
}
