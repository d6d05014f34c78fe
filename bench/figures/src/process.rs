//! One run of a program, in a process of its own.
//!
//! ```text
//!   timeout SECONDS env NAME=VALUE... PROGRAM WORD...
//! ```
//!
//! `env` sets the variables, so that a preload is neither over this process nor over `timeout`.
//! What we are preloaded with ourselves does not come through.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

/// The most that is touched before a run.
const MOST_WARMED: f64 = (3_u64 << 30) as f64;

/// How a run ended, and what it said.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Its status; 128 and a signal's number where that ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Ended {
    /// What it printed, or in words why it did not end well.
    pub fn well(self, seconds: u64) -> Result<String, String> {
        let last = self.stderr.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or_default();
        Err(match self.code {
            Some(0) => return Ok(self.stdout),
            Some(137) => format!("its {seconds} seconds were over, or it was killed"),
            Some(code) if code > 128 => format!("signal {} ended it; {last}", code - 128),
            Some(code) => format!("it ended with {code}; {last}"),
            None => "it has no status".to_owned(),
        })
    }
}

/// Runs a program with these words and variables (`NAME=VALUE`), for at most so many seconds.
pub fn run(
    program: &Path,
    words: &[String],
    environment: &[String],
    seconds: u64,
) -> Result<Ended, String> {
    let output = Command::new("timeout")
        .args(["--signal=KILL", &seconds.to_string(), "env"])
        .args(environment)
        .arg(program)
        .args(words)
        .env_remove("LD_PRELOAD")
        .env_remove("HEAPWRIGHT")
        .env_remove("GC_MARKERS")
        .output()
        .map_err(|e| format!("cannot run timeout, of coreutils: {e}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    // `timeout` ends as the program ended, by the same signal.
    let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    Ok(Ended { code, stdout, stderr })
}

/// Touches a quarter more bytes than a run was seen to take, and gives them back: the hosts of
/// virtual machines take free memory back, and whoever touches it first again pays for it.
pub fn warm(peak: f64) {
    let bytes = (peak * 1.25).min(MOST_WARMED) as usize;
    let mut memory = Vec::<u8>::with_capacity(bytes);
    memory.resize(bytes, 1);
    std::hint::black_box(&memory);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, String> {
        let words = ["-c".to_owned(), script.to_owned()];
        run(Path::new("sh"), &words, &["WORD=a b".to_owned()], 5).unwrap().well(5)
    }

    #[test]
    fn endings_are_put_in_words() {
        assert_eq!(sh("printf %s \"$WORD\""), Ok("a b".to_owned()));
        assert_eq!(sh("echo no >&2; exit 7"), Err("it ended with 7; no".to_owned()));
        assert!(sh("kill -9 $$").unwrap_err().contains("was killed"));
        assert!(sh("kill -11 $$").unwrap_err().starts_with("signal 11 ended it"));
    }
}
