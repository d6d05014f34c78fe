//! The command line: its subcommands, and reports of mistakes in it.
//!
//! A mistake is reported in one line on stderr: the problem, and where to find help. A wrong
//! command line ends every subcommand with exit code 2. If a subcommand that runs programs fails
//! itself (`run`, `check`, `bench`, ...), the code is 125, as in `env` and `timeout`. The table is
//! in docs/command.md.

use crate::commands::{
    bench, cargo, check, checked, diff, docs, doctor, explain, findings, heap, library, profile,
    record, replay, report, run, top, trim, valgrind, workload,
};
use crate::output;
use crate::process::Exit;
use crate::wrong::Wrong;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

/// Run programs on heapwright, and see how they use memory.
#[derive(Parser)]
#[command(name = "heapwright", version)]
#[command(after_help = "\
Environment:
  HEAPWRIGHT          options for the library, e.g. \"purge=250\"
  HEAPWRIGHT_LIBRARY  the preload library to use instead of the built-in one

Try: heapwright check -- ./program
     heapwright run --stats -- python3 -c 'print(sum(range(9)))'
     heapwright bench --rounds 5 -- python3 -c 'print(sum(range(9)))'")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Check(check::Args),
    Valgrind(valgrind::Args),
    Cargo(cargo::Args),
    #[command(hide = true)]
    CargoRunner(cargo::RunnerArgs),
    Profile(profile::Args),
    Top(top::Args),
    Trim(trim::Args),
    Explain(explain::Args),
    Findings(findings::Args),
    Bench(bench::Args),
    Doctor(doctor::Args),
    Report(report::Args),
    Diff(diff::Args),
    Heap(heap::Args),
    Record(record::Args),
    Replay(replay::Args),
    Library(library::Args),
    #[command(hide = true)]
    Workload(workload::Args),
    #[command(hide = true)]
    Probe(workload::ProbeArgs),
    #[command(hide = true)]
    Completions(docs::CompletionsArgs),
    #[command(hide = true)]
    Man(docs::ManArgs),
}

pub(crate) const MISUSE: u8 = 2;

pub(crate) fn run() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return complain(&error),
    };
    let (result, own_failure) = match cli.command {
        Command::Run(args) => (run::run(args), 125),
        Command::Check(args) => (check::run(&args), checked::COULD_NOT),
        Command::Valgrind(args) => (valgrind::run(&args), checked::COULD_NOT),
        Command::Cargo(args) => (cargo::run(&args), checked::COULD_NOT),
        Command::CargoRunner(args) => (cargo::runner(&args), checked::COULD_NOT),
        Command::Profile(args) => (profile::run(&args), checked::COULD_NOT),
        Command::Top(args) => (top::run(&args), 1),
        Command::Trim(args) => (trim::run(&args), 1),
        Command::Explain(args) => (explain::run(&args), 1),
        Command::Findings(args) => (findings::run(&args), 1),
        Command::Bench(args) => (bench::run(&args), bench::OWN_FAILURE),
        Command::Doctor(args) => (doctor::run(&args), doctor::COULD_NOT),
        Command::Report(args) => (report::run(&args), report::COULD_NOT),
        Command::Diff(args) => (diff::run(&args), diff::COULD_NOT),
        Command::Heap(args) => (heap::run(&args), heap::COULD_NOT),
        Command::Record(args) => (record::run(&args), 125),
        Command::Replay(args) => (replay::run(&args), replay::OWN_FAILURE),
        Command::Library(args) => (library::run(&args), 1),
        Command::Workload(args) => (workload::run(&args), 1),
        Command::Probe(args) => (workload::probe(&args), 1),
        Command::Completions(args) => (docs::completions(&args), 1),
        Command::Man(args) => (docs::man(&args), 1),
    };
    let exit = result.unwrap_or_else(|error| {
        eprintln!("heapwright: {error:#}");
        Exit::Code(if error.is::<Wrong>() { MISUSE } else { own_failure })
    });
    output::remove_unwritten();
    exit
}

pub(crate) fn complain(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe (`heapwright --help | head -1`) is not an error.
            let _ = error.print();
            Exit::Code(0)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Code(MISUSE)
        }
        _ => {
            let word = std::env::args_os().nth(1).unwrap_or_default();
            eprintln!("heapwright: {}", one_line(error, &word.to_string_lossy()));
            Exit::Code(MISUSE)
        }
    }
}

/// Returns the parser's first paragraph, its best guess, and the command for the help of `word`.
fn one_line(error: &clap::Error, word: &str) -> String {
    let commands = Cli::command();
    let is_shown = |one: &&clap::Command| !one.is_hide_set();
    let help = match commands.find_subcommand(word).filter(is_shown) {
        Some(found) => format!("; see 'heapwright {} --help'", found.get_name()),
        None => "; see 'heapwright --help'".to_owned(),
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(now) = renamed(argument)
    {
        return format!("{argument} was removed: use {now}{help}");
    }
    let rendered = error.render().to_string();
    let first = rendered.split("\n\n").next().unwrap_or_default();
    let mut line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(rest) = line.strip_prefix("error: ") {
        line = rest.to_owned();
    }
    let guesses =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let guess = guesses.iter().find_map(|&kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(many) => many.first().cloned(),
        _ => None,
    });
    if let Some(guess) = guess {
        line.push_str(&format!("; did you mean '{guess}'?"));
    }
    line + &help
}

/// Returns the present name of an argument of earlier versions.
fn renamed(argument: &str) -> Option<&'static str> {
    match argument {
        "--json" => Some("--format json, and -o FILE for a file"),
        "--html" => Some("--format html -o FILE"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(arguments: &[&str]) -> String {
        let all = ["heapwright"].iter().chain(arguments);
        one_line(&Cli::try_parse_from(all).err().expect("is a mistake"), arguments[0])
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn mistakes_are_one_line() {
        assert_eq!(
            mistake(&["run", "--stat", "ls"]),
            "unexpected argument '--stat' found; did you mean '--stats'?; see 'heapwright run --help'"
        );
        assert_eq!(
            mistake(&["run"]),
            "the following required arguments were not provided: <CMD>...; see 'heapwright run --help'"
        );
        assert_eq!(
            mistake(&["docter"]),
            "unrecognized subcommand 'docter'; did you mean 'doctor'?; see 'heapwright --help'"
        );
        for subcommand in ["run", "check", "doctor", "report", "diff", "heap", "bench", "replay"] {
            assert_eq!(
                mistake(&[subcommand, "--json", "x", "y"]),
                format!(
                    "--json was removed: use --format json, and -o FILE for a file; see \
                     'heapwright {subcommand} --help'"
                )
            );
        }
        assert_eq!(
            mistake(&["bench", "--html", "x.html"]),
            "--html was removed: use --format html -o FILE; see 'heapwright bench --help'"
        );
        for wrong in [&["library", "extra"][..], &["run", "--output"], &["--nope"]] {
            assert_eq!(mistake(wrong).lines().count(), 1);
        }
    }

    #[test]
    fn the_programs_own_options_are_left_to_it() {
        for line in [
            &["heapwright", "run", "ls", "--stats", "-o"][..],
            &["heapwright", "run", "--", "ls", "--stats", "-o"],
        ] {
            let cli = Cli::try_parse_from(line).expect("parses");
            let Command::Run(args) = cli.command else { panic!("not run") };
            assert_eq!(args.program.command, ["ls", "--stats", "-o"]);
            assert!(!args.stats);
        }
        let line = ["heapwright", "bench", "--rounds", "3", "--", "ls", "--rounds", "-o"];
        let Command::Bench(args) = Cli::try_parse_from(line).expect("parses").command else {
            panic!("not bench")
        };
        assert_eq!(args.command, ["ls", "--rounds", "-o"]);
    }

    #[test]
    fn a_race_is_on_a_command_or_on_a_suite() {
        assert_eq!(
            mistake(&["bench", "--suite", "x.toml", "--", "ls"]),
            "the argument '--suite <FILE>' cannot be used with '[CMD]...'; see 'heapwright bench \
             --help'"
        );
        assert_eq!(
            mistake(&["bench", "--programs", "x"]),
            "the following required arguments were not provided: --suite <FILE>; see 'heapwright bench \
             --help'"
        );
        // The last value counts, so that users of a script can add their own options.
        let line = ["heapwright", "bench", "--rounds", "3", "--rounds", "5"];
        assert!(Cli::try_parse_from(line).is_ok());
    }
}
