//! Valgrind's options for memcheck and their meaning here.
//!
//! ```text
//! ~/.valgrindrc, VALGRIND_OPTS, ./.valgrindrc, the command line    the last one holds
//! a known option                  has its effect ([`Asked`])
//! one of NOT_DONE                 accepted; a line says what is not done
//! one of NO_EFFECT                accepted without effect, because heapwright works differently
//!                                 there (docs/valgrind.md)
//! any other                       refused in one line, before the program runs
//! ```
//!
//! A `.valgrindrc` in the current folder is read only if the user owns it and no other user can
//! write to it. The prefixes `--memcheck:` and `--heapwright:` are removed, and options for other
//! tools (`--helgrind:`) are skipped.

use super::refused;
use super::target::To;
use crate::output::memcheck::Paths;
use crate::report::model::{LEAKS, Ready, leak_kinds};
use heapwright_record::debug::Reach;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) enum Line {
    Help,
    Version,
    Install(PathBuf),
    Run(Box<Asked>),
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) program: Vec<OsString>,
    pub(super) quiet: bool,
    pub(super) lists: bool,
    pub(super) xml: bool,
    pub(super) to: To,
    /// The target of valgrind's messages beside XML. It is opened for a reader that listens;
    /// nothing is written to it.
    pub(super) messages: Option<To>,
    pub(super) comment: Option<String>,
    pub(super) children: Children,
    /// Programs that are not reported: paths with wildcards.
    pub(super) skip: Vec<String>,
    pub(super) leaks: Leaks,
    pub(super) show: Vec<Reach>,
    /// The library's value of `heuristics`, if not the default.
    pub(super) heuristics: Option<String>,
    pub(super) errors_for: Vec<Reach>,
    pub(super) error_exitcode: Option<u8>,
    pub(super) suppressions: Vec<PathBuf>,
    pub(super) ready: Ready,
    pub(super) frames: Option<u8>,
    pub(super) limit: bool,
    pub(super) mismatched: bool,
    /// Whether to leave out the blocks that this runtime library keeps.
    pub(super) c_library_frees: bool,
    pub(super) cxx_library_frees: bool,
    pub(super) below_main: bool,
    pub(super) paths: Paths,
    /// A line for each option of `NOT_DONE`.
    pub(super) not_done: Vec<String>,
}

/// The processes that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    /// The started process.
    None,
    /// The started process and its forks.
    Forked,
    /// The started process, its forks, and the programs that these execute.
    Executed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaks {
    No,
    Summary,
    Full,
}

const NO_EFFECT: [&str; 61] = [
    // heapwright does not look for uninitialised values.
    "undef-value-errors",
    "track-origins",
    "expensive-definedness-checks",
    "partial-loads-ok",
    // The debug heap keeps freed blocks and stacks, and fills memory, in its own way.
    "freelist-vol",
    "freelist-big-blocks",
    "keep-stacktraces",
    "malloc-fill",
    "free-fill",
    "redzone-size",
    "alignment",
    "leak-resolution",
    "show-realloc-size-zero",
    "realloc-zero-bytes-frees",
    // The program runs directly on the processor.
    "smc-check",
    "vex-iropt-register-updates",
    "vex-guest-max-insns",
    "vex-guest-chase",
    "vex-iropt-level",
    "vex-iropt-unroll-thresh",
    "fair-sched",
    "sim-hints",
    "kernel-variant",
    "main-stacksize",
    "max-stackframe",
    "max-threads",
    "valgrind-stacksize",
    "num-transtab-sectors",
    "avg-transtab-entry-size",
    "aspace-minaddr",
    "resync-filter",
    "sigill-diagnostics",
    "show-emwarns",
    "workaround-gcc296-bugs",
    "ignore-ranges",
    "ignore-range-below-sp",
    "soname-synonyms",
    "require-text-symbol",
    "scheduling-quantum",
    "merge-recursive-frames",
    "sanity-level",
    // heapwright neither waits for a debugger nor reads answers from standard input.
    "vgdb",
    "vgdb-poll",
    "vgdb-shadow-registers",
    "vgdb-prefix",
    "vgdb-stop-at",
    "vgdb-error",
    "input-fd",
    // Names always come from the files, demangled, with inlined functions.
    "read-inline-info",
    "read-var-info",
    "demangle",
    "keep-debuginfo",
    "dsymutil",
    "enable-debuginfod",
    "debuginfo-server",
    "extra-debuginfo-path",
    "allow-mismatched-debuginfo",
    "default-suppressions",
    // Everything is reported at the end.
    "time-stamp",
    "progress-interval",
    "stats",
];

/// The options for things that heapwright does not do, each with a line that says so.
const NOT_DONE: [(&str, &str); 3] = [
    ("track-fds", "descriptors that stay open are not reported"),
    ("exit-on-first-error", "the program runs to its end, and all errors are reported"),
    ("modify-fds", "descriptors keep their numbers"),
];

pub(super) fn parse(words: &[OsString]) -> anyhow::Result<Line> {
    if let [flag, rest @ ..] = words
        && flag == "--install"
    {
        return match rest {
            [folder] => Ok(Line::Install(folder.into())),
            _ => Err(refused("--install wants one folder")),
        };
    }
    let mut parser = Parser::new();
    let own = words.iter().take_while(|word| word.as_encoded_bytes().starts_with(b"-"));
    let is_alone =
        own.filter_map(|word| word.to_str()).any(|word| word == "--command-line-only=yes");
    if !is_alone {
        for word in inherited() {
            parser.option(&word)?;
        }
    }
    let mut rest = words;
    while let [word, after @ ..] = rest {
        let Some(text) = word.to_str().filter(|text| text.starts_with('-')) else { break };
        rest = after;
        match text {
            "--" => break,
            "-h" | "--help" | "--help-debug" | "--help-dyn-options" => return Ok(Line::Help),
            "--version" => return Ok(Line::Version),
            option => {
                if let Some(option) = for_memcheck(option) {
                    parser.option(&option)?;
                }
            }
        }
    }
    if rest.is_empty() {
        return Err(refused("no program is named"));
    }
    parser.finish(rest).map(|asked| Line::Run(Box::new(asked)))
}

/// Returns the options of files and the environment; later options win.
fn inherited() -> Vec<String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".valgrindrc"));
    let here = Path::new(".valgrindrc");
    // SAFETY: the call has no precondition.
    let user = unsafe { libc::geteuid() };
    let is_own = fs::metadata(here)
        .is_ok_and(|file| file.is_file() && file.uid() == user && file.mode() & 0o022 == 0);
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let texts = [
        home.as_deref().map(text).unwrap_or_default(),
        std::env::var("VALGRIND_OPTS").unwrap_or_default(),
        if is_own { text(here) } else { String::new() },
    ];
    let lines = texts.iter().flat_map(|text| text.lines());
    let words = lines.filter(|line| !line.trim_start().starts_with('#')).flat_map(split);
    words.filter_map(|word| for_memcheck(&word)).collect()
}

/// Splits a line into words. Quoted text is one word, without the quotes.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Removes the tool's prefix. Returns `None` for an option of another tool.
fn for_memcheck(word: &str) -> Option<String> {
    let Some((tool, option)) = word.strip_prefix("--").and_then(|rest| rest.split_once(':')) else {
        return Some(word.to_owned());
    };
    if tool.contains('=') {
        return Some(word.to_owned());
    }
    matches!(tool, "memcheck" | "heapwright").then(|| format!("--{option}"))
}

struct Parser {
    asked: Asked,
    /// Both targets may be named before `--xml` decides.
    log: Option<To>,
    xml: Option<To>,
}

impl Parser {
    fn new() -> Self {
        let asked = Asked {
            program: Vec::new(),
            quiet: false,
            lists: false,
            xml: false,
            to: To::Descriptor(2),
            messages: None,
            comment: None,
            children: Children::Forked,
            skip: Vec::new(),
            leaks: Leaks::Summary,
            show: vec![Reach::Definite, Reach::Possible],
            heuristics: None,
            errors_for: vec![Reach::Definite, Reach::Possible],
            error_exitcode: None,
            suppressions: Vec::new(),
            ready: Ready::None,
            frames: None,
            limit: true,
            mismatched: true,
            c_library_frees: true,
            cxx_library_frees: true,
            below_main: false,
            paths: Paths::Name,
            not_done: Vec::new(),
        };
        Self { asked, log: None, xml: None }
    }

    fn finish(self, program: &[OsString]) -> anyhow::Result<Asked> {
        let Self { mut asked, log, xml } = self;
        asked.program = program.to_vec();
        asked.to = match (asked.xml, xml, log) {
            (true, Some(to), messages) => {
                asked.messages = messages;
                to
            }
            (false, _, Some(to)) => to,
            (true, None, _) => {
                return Err(refused("--xml=yes wants --xml-file, --xml-fd or --xml-socket"));
            }
            (false, _, None) => To::Descriptor(2),
        };
        if asked.xml {
            // As in memcheck, XML always has all leaks: its reader chooses the leaks to show.
            asked.leaks = Leaks::Full;
        }
        Ok(asked)
    }

    fn option(&mut self, word: &str) -> anyhow::Result<()> {
        let asked = &mut self.asked;
        let unknown = || refused(&format!("'{word}' is not an option that heapwright knows"));
        match word {
            "-q" | "--quiet" => asked.quiet = true,
            "-s" => asked.lists = true,
            // Details about valgrind itself; heapwright has none.
            "-v" | "--verbose" | "-d" => {}
            _ => {
                let (name, value) = word
                    .strip_prefix("--")
                    .and_then(|rest| rest.split_once('='))
                    .ok_or_else(unknown)?;
                self.named(word, name, value)?;
            }
        }
        Ok(())
    }

    fn named(&mut self, word: &str, name: &str, value: &str) -> anyhow::Result<()> {
        let asked = &mut self.asked;
        let wrong = |use_: &str| refused(&format!("'{word}': use {use_}"));
        let yes = || match value {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(wrong("yes or no")),
        };
        match name {
            "tool" if value == "memcheck" => {}
            "tool" => return Err(refused(&format!("'{word}': memcheck is the only tool here"))),
            "quiet" => asked.quiet = yes()?,
            "verbose" => _ = yes()?,
            "show-error-list" => asked.lists = value == "all" || yes()?,
            "trace-children" => {
                if yes()? {
                    asked.children = Children::Executed;
                } else if asked.children == Children::Executed {
                    asked.children = Children::Forked;
                }
            }
            "trace-children-skip" => asked.skip.extend(value.split(',').map(str::to_owned)),
            "child-silent-after-fork" => {
                if yes()? && asked.children == Children::Forked {
                    asked.children = Children::None;
                }
            }
            "log-fd" => self.log = Some(descriptor(value).ok_or_else(|| wrong("a number"))?),
            "log-file" => self.log = Some(To::File(value.to_owned())),
            "log-socket" => self.log = Some(To::Socket(value.to_owned())),
            "xml" => asked.xml = yes()?,
            "xml-fd" => self.xml = Some(descriptor(value).ok_or_else(|| wrong("a number"))?),
            "xml-file" => self.xml = Some(To::File(value.to_owned())),
            "xml-socket" => self.xml = Some(To::Socket(value.to_owned())),
            "xml-user-comment" => asked.comment = Some(value.to_owned()),
            "num-callers" => {
                let callers: u32 = value.parse().map_err(|_| wrong("a number"))?;
                // The library keeps at most 64 frames.
                asked.frames = Some(callers.clamp(1, 64) as u8);
            }
            "error-limit" => asked.limit = yes()?,
            "error-exitcode" => {
                let code: u8 = value.parse().map_err(|_| wrong("a number from 0 to 255"))?;
                asked.error_exitcode = Some(code).filter(|code| *code != 0);
            }
            "suppressions" => asked.suppressions.push(value.into()),
            "gen-suppressions" => {
                asked.ready = match value {
                    "no" => Ready::None,
                    // `yes` does the same as `all`: nothing asks the user at each finding.
                    "yes" | "all" => Ready::Block,
                    _ => return Err(wrong("no, yes or all")),
                }
            }
            "show-below-main" => asked.below_main = yes()?,
            "fullpath-after" => match &mut asked.paths {
                Paths::After(parts) => parts.push(value.to_owned()),
                Paths::Name => asked.paths = Paths::After(vec![value.to_owned()]),
            },
            "leak-check" => {
                asked.leaks = match value {
                    "no" => Leaks::No,
                    "summary" => Leaks::Summary,
                    "yes" | "full" => Leaks::Full,
                    _ => return Err(wrong("no, summary, yes or full")),
                }
            }
            "leak-check-heuristics" => {
                let names: Vec<&str> = value.split(',').collect();
                if names.iter().any(|name| !HEURISTICS.contains(name)) {
                    return Err(wrong(&format!("{}, joined by commas", HEURISTICS.join(", "))));
                }
                asked.heuristics = Some(names.join("+")).filter(|_| !names.contains(&"all"));
            }
            "show-leak-kinds" => asked.show = leak_kinds(value).map_err(|_| wrong(KINDS))?,
            "errors-for-leak-kinds" => {
                asked.errors_for = leak_kinds(value).map_err(|_| wrong(KINDS))?;
            }
            "show-reachable" => {
                asked.show =
                    if yes()? { LEAKS.to_vec() } else { vec![Reach::Definite, Reach::Possible] };
            }
            "show-possibly-lost" => {
                let yes = yes()?;
                asked.show.retain(|reach| *reach != Reach::Possible);
                if yes {
                    asked.show.push(Reach::Possible);
                }
            }
            "run-libc-freeres" => asked.c_library_frees = yes()?,
            "run-cxx-freeres" => asked.cxx_library_frees = yes()?,
            "show-mismatched-frees" => asked.mismatched = yes()?,
            "command-line-only" => _ = yes()?,
            // These values switch nothing on; other values are not supported.
            "xtree-leak" | "wait-for-gdb" | "db-attach" | "profile-heap" | "trace-malloc"
                if value == "no" => {}
            "trace-syscalls" | "trace-signals" | "trace-symtab" | "trace-sched"
                if value == "no" => {}
            "xtree-memory" if value == "none" => {}
            "trace-children-skip-by-arg" if value.is_empty() => {}
            name if NOT_DONE.iter().any(|(known, _)| *known == name) => {
                let said = NOT_DONE.iter().find(|(known, _)| *known == name && value != "no");
                asked.not_done.extend(said.map(|(_, what)| format!("{word}: {what}")));
            }
            name if NO_EFFECT.contains(&name) => {}
            _ => return Err(refused(&format!("'{word}' is not an option that heapwright knows"))),
        }
        Ok(())
    }
}

/// The values of `--leak-check-heuristics`.
const HEURISTICS: [&str; 6] =
    ["all", "none", "stdstring", "length64", "newarray", "multipleinheritance"];

const KINDS: &str = "definite, indirect, possible, reachable, all or none, joined by commas";

fn descriptor(value: &str) -> Option<To> {
    value
        .parse()
        .ok()
        .filter(|number| (1..=i32::from(u16::MAX)).contains(number))
        .map(To::Descriptor)
}

pub(super) fn help() -> String {
    let mut taken: Vec<String> = NO_EFFECT.iter().map(|name| format!("--{name}")).collect();
    taken.sort();
    let mut lines = String::new();
    let mut length = 0;
    for option in taken {
        if length + option.len() > 76 {
            lines.push('\n');
            length = 0;
        }
        lines += if length == 0 { "  " } else { " " };
        length += option.len() + 1;
        lines += &option;
    }
    let not_done: String =
        NOT_DONE.iter().map(|(name, what)| format!("  --{name}: {what}\n")).collect();
    format!(
        "{HELP}\nTaken, with a line that says what is not done:\n{not_done}\nTaken, without effect:\n{lines}\n"
    )
}

const HELP: &str = "\
Check a program as valgrind's memcheck would be asked to; see docs/valgrind.md

usage: heapwright valgrind [options] program [arguments]
       heapwright valgrind --install DIR    leaves a program DIR/valgrind that does the same

  -h --help                      show this message
  --version                      show a version that scripts can compare
  -q --quiet                     print findings only
  -s --show-error-list=yes       print which suppressions hid something
  --tool=memcheck                the only tool there is
  --trace-children=no|yes        report what is executed, too [no]
  --trace-children-skip=P,...    but not programs of these names
  --child-silent-after-fork=no|yes   report no forked children [no]
  --log-file=FILE                write text to FILE: %p is the pid, %q{VAR} a variable, %n a number
  --log-fd=N --log-socket=HOST:PORT  write text there [2]
  --xml=yes                      write XML (protocol 4)
  --xml-file=FILE --xml-fd=N --xml-socket=HOST:PORT    to there
  --xml-user-comment=STR         copy STR into the XML
  --num-callers=N                keep N frames of each stack, at most 64 [12]
  --error-limit=no|yes           report at most 1000 different errors [yes]
  --error-exitcode=N             exit with N if there were errors [0: as the program]
  --suppressions=FILE            hide what FILE says
  --gen-suppressions=no|yes|all  print a suppression with each finding [no]
  --leak-check=no|summary|full   look for leaks when a process ends [summary]
  --show-leak-kinds=K,...        report these one by one [definite,possible]
  --errors-for-leak-kinds=K,...  these are errors [definite,possible]
  --leak-check-heuristics=H,...  which pointers into blocks keep them: all, none, stdstring,
                                 length64, newarray, multipleinheritance [all]
  --show-reachable=yes --show-possibly-lost=no    the same in earlier words
  --show-mismatched-frees=no|yes report frees by the wrong function [yes]
  --run-libc-freeres=no|yes --run-cxx-freeres=no|yes
                                 leave out what the C library (libstdc++) keeps [yes]
  --show-below-main=no|yes       report callers of main [no]
  --fullpath-after=STR           show paths of sources behind STR
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Line, String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    fn asked(words: &[&str]) -> Asked {
        match parsed(&[words, &["prog", "-q"]].concat()) {
            Ok(Line::Run(asked)) => *asked,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn what_build_systems_say_is_understood() {
        let ctest = asked(&[
            "-q",
            "--tool=memcheck",
            "--leak-check=yes",
            "--show-reachable=yes",
            "--num-callers=50",
            "--log-file=Testing/Temporary/MemoryChecker.%p.log",
        ]);
        assert!(ctest.quiet && ctest.leaks == Leaks::Full && ctest.show == LEAKS);
        assert_eq!((ctest.frames, ctest.program.len()), (Some(50), 2));
        assert!(ctest.to.is_for_each());
        let ruby = asked(&[
            "--num-callers=500",
            "--error-limit=no",
            "--trace-children=yes",
            "--undef-value-errors=no",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--xml=yes",
            "--xml-file=/tmp/x/%p.out",
            "--suppressions=a",
            "--suppressions=b",
        ]);
        assert!(ruby.xml && !ruby.limit && ruby.children == Children::Executed);
        assert_eq!((ruby.frames, ruby.suppressions.len()), (Some(64), 2));
        assert_eq!(ruby.to, To::File("/tmp/x/%p.out".into()));
        let creator = asked(&[
            "--child-silent-after-fork=yes",
            "--xml-socket=127.0.0.1:1234",
            "--log-socket=127.0.0.1:1235",
            "--xml=yes",
            "--smc-check=stack",
            "--tool=memcheck",
            "--gen-suppressions=all",
            "--track-origins=yes",
            "--leak-check=summary",
            "--show-reachable=no",
            "--errors-for-leak-kinds=all",
        ]);
        assert_eq!(creator.to, To::Socket("127.0.0.1:1234".into()));
        assert_eq!(creator.messages, Some(To::Socket("127.0.0.1:1235".into())));
        assert_eq!((creator.children, creator.leaks), (Children::None, Leaks::Full));
        let exit = asked(&["--error-exitcode=1", "--fullpath-after=", "--fullpath-after=/src/"]);
        assert_eq!(exit.error_exitcode, Some(1));
        assert_eq!(exit.paths, Paths::After(vec![String::new(), "/src/".into()]));
        for name in NO_EFFECT {
            asked(&[&format!("--{name}=1")]);
        }
    }

    #[test]
    fn what_is_not_understood_is_one_line() {
        for (words, part) in [
            (&["--tool=helgrind", "x"][..], "memcheck is the only tool here"),
            (&["--nonsense=1", "x"], "'--nonsense=1' is not an option that heapwright knows"),
            (&["--nonsense", "x"], "'--nonsense' is not an option"),
            (&["--xtree-leak=yes", "x"], "'--xtree-leak=yes' is not an option"),
            (&["--db-attach=yes", "x"], "'--db-attach=yes' is not an option"),
            (&["--leak-check=maybe", "x"], "use no, summary, yes or full"),
            (&["--show-leak-kinds=definite,lost", "x"], "use definite, indirect"),
            (&["--error-exitcode=256", "x"], "a number from 0 to 255"),
            (&["--xml=yes", "x"], "--xml=yes wants --xml-file"),
            (&["--leak-check=full"], "no program is named"),
            (&["--install"], "--install wants one folder"),
        ] {
            let line = parsed(words).expect_err("is refused");
            assert!(line.contains(part) && line.lines().count() == 1, "{part}: {line}");
        }
    }

    #[test]
    fn what_is_not_done_is_said_in_a_line_each() {
        let options = asked(&["--track-fds=yes", "--exit-on-first-error=yes", "--modify-fds=no"]);
        assert_eq!(
            options.not_done,
            [
                "--track-fds=yes: descriptors that stay open are not reported",
                "--exit-on-first-error=yes: the program runs to its end, and all errors are reported",
            ]
        );
        assert!(asked(&["--track-fds=no"]).not_done.is_empty());
    }

    #[test]
    fn what_stands_in_quotes_is_one_word() {
        for (line, words) in [
            ("--a=b  -q", &["--a=b", "-q"][..]),
            ("'--log-file=a b' \"--x=it's\"", &["--log-file=a b", "--x=it's"]),
            ("--suppressions='a b'.supp", &["--suppressions=a b.supp"]),
            ("  ", &[]),
        ] {
            assert_eq!(split(line), words);
        }
    }

    #[test]
    fn files_may_hold_options_for_other_tools() {
        assert_eq!(
            for_memcheck("--memcheck:leak-check=full").as_deref(),
            Some("--leak-check=full")
        );
        assert_eq!(for_memcheck("--cachegrind:D1=1,2,3"), None);
        assert_eq!(
            for_memcheck("--log-socket=1.2.3.4:5").as_deref(),
            Some("--log-socket=1.2.3.4:5")
        );
    }
}
