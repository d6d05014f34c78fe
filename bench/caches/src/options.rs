//! The command line.

use std::path::PathBuf;

use ::figures::options::{Allocator, Libraries, Numbers, number, numbers};
use clap::{Args, Parser};

use crate::figures::Bounds;
use crate::plan::Scope;
use crate::setting::all_ours;

/// Runs workloads under each cache model of heapwright and under other allocators; ci/caches.sh
/// calls it
#[derive(Parser, Debug)]
#[command(name = "caches")]
pub(crate) enum Asked {
    /// Runs them in turns, and prints tables and figures
    Run(Box<Run>),
    /// Prints tables and figures of what was run
    Report(Report),
}

#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Run {
    /// The folder of the built programs
    #[arg(long)]
    pub(crate) programs: PathBuf,
    #[command(flatten)]
    pub(crate) libraries: Libraries,
    /// Do not run without a preload
    #[arg(long)]
    no_glibc: bool,
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// K,K,...: shared:K besides K as it comes
    #[arg(long, default_value = "8,32", value_parser = numbers(1..=4096_u32))]
    shared: Numbers<u32>,
    /// Intervals need 6
    #[arg(long, default_value = "10", value_parser = number(1..=1000_usize))]
    pub(crate) rounds: usize,
    /// A run that takes longer has failed
    #[arg(long, default_value = "600", value_parser = number(1..=86400_u64))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// A missed figure does not matter
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The file that a run has written, results.tsv
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

impl Run {
    /// What takes part.
    pub(crate) fn settings(&self) -> Result<Vec<Allocator>, String> {
        self.libraries.chosen(all_ours(&self.libraries.ours, &self.shared.0), !self.no_glibc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "run --programs /p --launcher /l --ours /o.so --out /out";

    fn parsed(line: &str) -> Result<Asked, String> {
        let words = ["caches"].into_iter().chain(line.split_whitespace());
        Asked::try_parse_from(words).map_err(|error| error.to_string())
    }

    fn run(more: &str) -> Run {
        match parsed(&format!("{LEAST} {more}")) {
            Ok(Asked::Run(run)) => *run,
            other => panic!("{other:?}"),
        }
    }

    fn names(run: &Run) -> Vec<String> {
        run.settings().unwrap().into_iter().map(|setting| setting.name).collect()
    }

    #[test]
    fn what_is_not_said_is_the_issue_s() {
        let run = run("");
        let scope = &run.scope;
        assert_eq!((run.rounds, &*scope.threads.0, scope.percent), (10, &[2, 40, 80][..], 100));
        assert_eq!(
            names(&run),
            ["exclusive", "auto", "shared", "shared:8", "shared:32", "percpu", "glibc"]
        );
        assert_eq!((run.scope.workloads.len(), run.bounds), (4, Bounds::default()));
    }

    #[test]
    fn what_is_said() {
        let run = run("--threads 1,300,1 --shared 4 --with a=/a.so --no-glibc --workloads rpc \
                       --only exclusive,a --quick --rounds 5 --rounds 3 --bound-mib 5");
        assert_eq!(names(&run), ["exclusive", "a"]);
        assert_eq!((&*run.scope.threads.0, run.quick, run.rounds), (&[1, 300][..], true, 3));
        assert_eq!((run.scope.workloads[0].name, run.bounds.cache_mib), ("rpc", 5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, why) in [
            ("--threads 2,x", "'x' is no number"),
            ("--with scudo", "'scudo' is no NAME="),
            ("--workloads rcp", "there is no 'rcp'"),
        ] {
            let said = parsed(&format!("{LEAST} {more}")).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        for (more, why) in [
            ("--with shared=/a.so", "there are two named shared"),
            ("--only sharde", "there is no 'sharde'; there are exclusive"),
        ] {
            assert!(run(more).settings().unwrap_err().contains(why), "{more}");
        }
    }
}
