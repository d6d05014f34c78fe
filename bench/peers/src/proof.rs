//! The proof that a preload took effect: a C program under it prints the file of each allocation
//! function.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{self, output};
use crate::peer::Peer;
use crate::registry;

pub(crate) fn compile(work: &Path) -> Result<PathBuf, String> {
    let program = work.join("probe");
    let mut command = compile::c();
    command.args(["-O1", "-w"]).arg(registry::bench_folder().join("peers/probe.c")).arg("-ldl");
    compile::build(command, &program)?;
    Ok(program)
}

/// Runs the program under a peer, whose library must define every C function. C++ operators may be
/// missing: the C++ library has its own, which call malloc.
pub(crate) fn check(peer: &Peer, probe: &Path) -> Result<(), String> {
    let mut command = Command::new(probe);
    command.env("LD_PRELOAD", &peer.library).envs(peer.environment.iter().copied());
    let text =
        output(&mut command).map_err(|e| format!("a small program does not run under it: {e}"))?;
    let library = peer.library.canonicalize().map_err(|e| e.to_string())?;
    judge(&text, &|file| Path::new(file).canonicalize().is_ok_and(|path| path == library))
}

fn judge(text: &str, is_library: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let mut seen = false;
    for line in text.lines() {
        let (name, file) = line.split_once(' ').ok_or("the probe printed something else")?;
        let is_cxx_of_none = name.starts_with("_Z") && file == "nowhere";
        if !is_library(file) && !is_cxx_of_none {
            return Err(format!("the preload did not take effect: {name} comes from {file}"));
        }
        seen = true;
    }
    if seen { Ok(()) } else { Err("the probe printed nothing".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_from_elsewhere_is_enough() {
        let ours = |file: &str| file == "/lib/a.so";
        assert_eq!(judge("malloc /lib/a.so\nfree /lib/a.so\n", &ours), Ok(()));
        let refused = judge("malloc /lib/a.so\nfree /lib/libc.so.6\n", &ours).unwrap_err();
        assert!(refused.contains("free comes from /lib/libc.so.6"), "{refused}");
        assert_eq!(judge("malloc /lib/a.so\n_Znwm nowhere\n", &ours), Ok(()));
        assert!(judge("malloc nowhere\n", &ours).is_err());
        assert!(judge("", &ours).is_err());
    }
}
