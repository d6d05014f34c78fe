//! The rows: what is run. Our own workloads say in their first lines what they
//! stand for; the real programs are those every machine has, doing something
//! that allocates.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::compile_c;

/// Which geometric mean a row counts for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One of our small C programs.
    Workload,
    /// A program people use.
    Program,
}

/// One row: a command that prints the same under every allocator.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) command: Vec<String>,
    pub(crate) stdin: Option<PathBuf>,
    pub(crate) env: Vec<(&'static str, &'static str)>,
}

impl Job {
    /// Whether the output must not depend on the allocator (our workloads print
    /// their own times).
    pub(crate) fn same_output(&self) -> bool {
        self.kind == Kind::Program
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// What a command prints, trimmed; none if it cannot be run.
fn ask(program: &str, arguments: &[&str]) -> Option<String> {
    let result = Command::new(program).args(arguments).output().ok()?;
    let answer = String::from_utf8_lossy(&result.stdout).trim().to_owned();
    (result.status.success() && !answer.is_empty()).then_some(answer)
}

/// A C file of many functions: work for the compiler proper, which is called
/// without its driver's include paths, hence the declarations.
fn generated_c() -> String {
    let mut c = String::from(
        "int printf(const char *, ...);\nvoid *memset(void *, int, unsigned long);\n\
         unsigned long strlen(const char *);\n",
    );
    for i in 0..200 {
        let _ = write!(
            c,
            "struct s{i} {{ int a[{}]; char name[{}]; struct s{i} *next; }};\n\
             static int f{i}(struct s{i} *p, int n) {{\n\
               int total = {i};\n\
               for (int k = 0; k < n; k++) {{\n\
                 switch ((p->a[k % {}] + k) % 7) {{\n\
                   case 0: total += k * {i}; break;\n\
                   case 1: total ^= p->name[k % {}]; break;\n\
                   case 2: if (p->next) total += f{i}(p->next, n / 2); break;\n\
                   case 3: total = total * 31 + (int)strlen(p->name); break;\n\
                   default: p->a[k % {}] = total; }} }}\n\
               return total; }}\n\
             int g{i}(int n) {{ struct s{i} x; memset(&x, n, sizeof x); x.next = 0;\n\
               x.name[0] = 0; printf(\"{i} %d\\n\", f{i}(&x, n)); return x.a[0]; }}\n",
            i % 13 + 2,
            i % 29 + 3,
            i % 13 + 2,
            i % 29 + 3,
            i % 13 + 2,
        );
    }
    c
}

/// All rows. Programs that are not installed are left out with a word.
pub(crate) fn all(bench: &Path, work: &Path) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    let workloads: [(&'static str, &'static str, &[&str], &'static str); 8] = [
        ("pair", "pair", &[], "malloc and free of one block, at once"),
        ("batch", "batch", &[], "256 blocks, then all freed"),
        ("churn-10k", "churn", &["10000", "20000000"], "random frees, 10,000 live blocks"),
        ("churn-400k", "churn", &["400000", "8000000"], "random frees, 400,000 live blocks"),
        ("larson", "larson", &["4", "100", "40000"], "threads hand their blocks on and die"),
        ("handoff", "handoff", &["1", "8000000"], "one thread allocates, another frees"),
        ("grow", "grow", &["96", "4"], "two vectors grow to 96 MiB"),
        ("tree", "tree", &["400000", "1"], "a search tree built, walked, freed"),
    ];
    for (name, file, arguments, about) in workloads {
        let source = bench.join(format!("workloads/{file}.c"));
        let mut command = vec![text(&compile_c(&source, work, &[])?)];
        command.extend(arguments.iter().map(|&a| a.to_owned()));
        jobs.push(Job { name, about, kind: Kind::Workload, command, stdin: None, env: Vec::new() });
    }

    let programs = bench.join("workloads/programs");
    let generated = work.join("generated.c");
    std::fs::write(&generated, generated_c()).map_err(|e| e.to_string())?;
    let mut program = |name, about, command: Option<Vec<String>>, stdin, env| match command {
        Some(command) => {
            jobs.push(Job { name, about, kind: Kind::Program, command, stdin, env });
        }
        None => eprintln!("{name}: not installed; the row is left out"),
    };
    // The interpreter itself: a version manager's shim would be a shell script.
    let python = ask("python3", &["-c", "import sys; print(sys.executable)"]);
    program(
        "python3",
        "JSON and dictionaries, PYTHONMALLOC=malloc",
        python.map(|p| vec![p, text(&programs.join("objects.py"))]),
        None,
        vec![("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "1")],
    );
    let sqlite = ask("sh", &["-c", "command -v sqlite3"]);
    program(
        "sqlite3",
        "an in-memory database",
        sqlite.map(|s| vec![s, ":memory:".to_owned()]),
        Some(programs.join("query.sql")),
        Vec::new(),
    );
    // The compiler proper, not its driver.
    let cc1 = ask("gcc", &["-print-prog-name=cc1"]).filter(|path| path.starts_with('/'));
    program(
        "cc1",
        "gcc -O2 of 200 functions",
        cc1.map(|c| {
            [&c, "-quiet", "-O2", &text(&generated), "-o", "-"].map(str::to_owned).to_vec()
        }),
        None,
        Vec::new(),
    );
    let perl = ask("sh", &["-c", "command -v perl"]);
    program(
        "perl",
        "text in hashes of arrays",
        perl.map(|p| vec![p, text(&programs.join("text.pl"))]),
        None,
        vec![("PERL_HASH_SEED", "0")],
    );
    Ok(jobs)
}
