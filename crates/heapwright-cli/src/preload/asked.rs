//! Reports the library's complaints about options of the command line.
//!
//! The library reports a bad option on stderr and ignores it, because a word in an environment must
//! not stop a program. On the command line it is a mistake, reported before the program runs. Only
//! the library knows its options, so the command starts itself again with the library and the
//! options, and reads the complaints.
//!
//! ```text
//! heapwright: option "purge=soon": the value needs milliseconds, such as 250 ... (ignored)
//! ```

use super::environment::Options;
use super::preload_variable;
use crate::wrong::wrong;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Options that name files which a process writes, or shares with others. The second process gets
/// [`NO_FILE`] instead.
const FILES: [&str; 6] = ["stats_file", "trace", "timeline", "record", "profile", "rules"];
const NO_FILE: &str = "/dev/null/x";

const LONGEST_PATH: usize = 500;

const SUBCOMMAND: &str = "probe";

/// Refuses options of the command line that the library does not accept. `flag` is the word before
/// each of them.
pub(crate) fn refuse_bad(
    library: &Path,
    options: &Options,
    given: &[String],
    flag: &str,
) -> anyhow::Result<()> {
    let Some(value) = options.value()? else { return Ok(()) };
    if given.is_empty() {
        return Ok(());
    }
    let harmless: Vec<String> = split(&value.to_string_lossy()).map(without_files).collect();
    let asked = Command::new("/proc/self/exe")
        .arg(SUBCOMMAND)
        .env("LD_PRELOAD", preload_variable(library, None))
        .env("HEAPWRIGHT", OsStr::from_bytes(harmless.join(",").as_bytes()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    // If the second process cannot be run, the library in the program reports bad options.
    let Ok(asked) = asked else { return Ok(()) };
    let stderr = String::from_utf8_lossy(&asked.stderr);
    for option in given.iter().flat_map(|text| split(text)) {
        // If another option disables an option, the complaint about it names only its key.
        let key = option.split_once('=').map_or(option, |(key, _)| key);
        let begins =
            [&*without_files(option), key].map(|of| format!("heapwright: option \"{of}\": "));
        let why = |line: &'_ str| {
            begins.iter().find_map(|begin| line.strip_prefix(begin)).map(str::to_owned)
        };
        if let Some(why) = stderr.lines().find_map(why) {
            let why = why.strip_suffix(" (ignored)").unwrap_or(&why);
            return Err(wrong(format!("{flag}{option}: {why}")));
        }
    }
    clash(&stderr, &value.to_string_lossy(), given)
        .map_or(Ok(()), |why| Err(wrong(flag.to_owned() + &why)))
}

/// Finds a complaint about an option that the user has not given. Returns the complaint, with the
/// given option that disables this option or stands for it.
fn clash(stderr: &str, all: &str, given: &[String]) -> Option<String> {
    let inherited = [std::env::var("HEAPWRIGHT").unwrap_or_default()];
    stderr.lines().find_map(|line| {
        let (own, why) = line.strip_prefix("heapwright: option \"")?.split_once("\": ")?;
        let (own, why) = (own.split('=').next()?, why.strip_suffix(" (ignored)").unwrap_or(why));
        if sets(&inherited, own) || sets(given, own) {
            return None;
        }
        let is_named = |option: &&str| {
            let key = option.split('=').next().unwrap_or_default();
            why.contains(&format!("{key}="))
        };
        match given.iter().flat_map(|text| split(text)).find(is_named) {
            Some(option) => Some(format!("{option}: this command sets option {own}, which {why}")),
            None if sets(&[all.to_owned()], own) => None,
            None => Some(format!("{}: its option {own} {why}", given.join(","))),
        }
    })
}

/// Returns whether any of the options given on the command line sets `key`.
pub(crate) fn sets(given: &[String], key: &str) -> bool {
    let mut all = given.iter().flat_map(|text| split(text));
    all.any(|option| option.split_once('=').is_some_and(|(name, _)| name.trim_end() == key))
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';']).map(str::trim).filter(|option| !option.is_empty())
}

/// Returns the option, with its file replaced by a file that cannot be written.
fn without_files(option: &str) -> String {
    match option.split_once('=') {
        Some((key, path))
            if FILES.contains(&key) && !path.is_empty() && path.len() <= LONGEST_PATH =>
        {
            format!("{key}={NO_FILE}")
        }
        _ => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_found_in_strings_of_several() {
        let given = ["purge=1, mode=debug".to_owned(), "stats=exit;on_misuse=abort".to_owned()];
        assert!(sets(&given, "mode") && sets(&given, "on_misuse") && sets(&given, "purge"));
        assert!(!sets(&given, "misuse") && !sets(&given, "debug") && !sets(&[], "mode"));
    }

    #[test]
    fn a_clash_names_what_the_user_has_given() {
        let complaint = |key: &str| {
            format!("heapwright: option \"{key}\": has no effect without mode=debug (ignored)\n")
        };
        let given = ["purge=5,mode=fast".to_owned()];
        let all = "traces=12,purge=5,mode=fast";
        let said =
            "mode=fast: this command sets option traces, which has no effect without mode=debug";
        assert_eq!(clash(&complaint("traces=12"), all, &given).as_deref(), Some(said));
        let profile = ["profile=/x".to_owned()];
        let said = "profile=/x: its option sample has no effect without mode=debug";
        assert_eq!(
            clash(&complaint("sample"), "traces=1,profile=/x", &profile).as_deref(),
            Some(said)
        );
        for other in
            [clash(&complaint("purge"), all, &given), clash(&complaint("traces"), all, &profile)]
        {
            assert_eq!(other, None);
        }
    }

    #[test]
    fn nothing_is_written_while_the_library_is_asked() {
        let all: Vec<_> = split("stats=exit, trace=/tmp/t;record=,profile=p,purge,rules=r")
            .map(without_files)
            .collect();
        assert_eq!(
            all,
            [
                "stats=exit",
                "trace=/dev/null/x",
                "record=",
                "profile=/dev/null/x",
                "purge",
                "rules=/dev/null/x"
            ]
        );
    }
}
