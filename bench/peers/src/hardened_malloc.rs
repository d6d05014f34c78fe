//! hardened_malloc of GrapheneOS, its two configurations.
//!
//! No registry has it, so its sources must be here: `HARDENED_MALLOC` names a folder with a checkout of
//! <https://github.com/GrapheneOS/hardened_malloc>. The flags are those of its Makefile, the defines those of
//! its `config/*.mk`, with two changes: the code is for any machine of the kind and not for this one
//! (`-march=native` is no peer's), and where the compiler does not know C23's words, headers define them.

use std::path::{Path, PathBuf};

use crate::compile::{self, output};
use crate::peer::Peer;

/// `config/default.mk`.
pub(crate) fn full(work: &Path) -> Result<Peer, String> {
    build(work, "hardened_malloc", "default")
}

/// `config/light.mk`.
pub(crate) fn light(work: &Path) -> Result<Peer, String> {
    build(work, "hardened_malloc-light", "light")
}

const SOURCES: [&str; 6] = ["chacha", "h_malloc", "memory", "pages", "random", "util"];

fn build(work: &Path, name: &'static str, configuration: &str) -> Result<Peer, String> {
    let root: PathBuf = std::env::var_os("HARDENED_MALLOC")
        .ok_or("HARDENED_MALLOC does not name a checkout of github.com/GrapheneOS/hardened_malloc")?
        .into();
    let file = root.join(format!("config/{configuration}.mk"));
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let defines = defines(&text);

    let mut shared: Vec<String> =
        ["-D_GNU_SOURCE", "-pipe", "-O3", "-flto", "-fPIC", "-w"].map(str::to_owned).into();
    shared
        .extend(["-fvisibility=hidden", "-fno-plt", "-fstack-clash-protection"].map(str::to_owned));
    shared.push("-fstack-protector-strong".to_owned());
    if cfg!(target_arch = "x86_64") {
        shared.push("-fcf-protection".to_owned());
    }
    shared.push(format!("-I{}", root.join("include").display()));
    shared.extend(defines);

    let operators = work.join(format!("{name}-new.o"));
    let mut command = compile::cxx();
    command
        .args(["-std=c++17", "-fsized-deallocation", "-c"])
        .args(&shared)
        .arg(root.join("new.cc"));
    compile::build(command, &operators)?;

    let library = work.join(format!("lib{name}.so"));
    let mut command = compile::c();
    command.args([
        "-std=c2x",
        "-include",
        "stdalign.h",
        "-include",
        "stdbool.h",
        "-include",
        "assert.h",
    ]);
    command.args(&shared);
    command.args(SOURCES.map(|source| root.join(format!("{source}.c"))));
    command.arg(operators).args(["-lstdc++", "-shared"]);
    command.arg("-Wl,-O1,--as-needed,-z,defs,-z,relro,-z,now,-z,nodlopen,-z,text");
    compile::build(command, &library)?;

    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(&root).args(["log", "-1", "--format=%h of %cs"]);
    let version = output(&mut git).map_or("unknown".to_owned(), |text| text.trim().to_owned());
    Ok(Peer {
        name,
        environment: Vec::new(),
        library,
        version,
        origin: format!("GitHub, GrapheneOS/hardened_malloc, configuration {configuration}"),
    })
}

/// What its Makefile makes of a configuration: `CONFIG_SLAB_CANARY := true` is `-DSLAB_CANARY=true`, but some
/// keep their first word, and some are the build's own.
fn defines(configuration: &str) -> Vec<String> {
    const WHOLE: [&str; 7] = [
        "SEAL_METADATA",
        "EXTENDED_SIZE_CLASSES",
        "LARGE_SIZE_CLASSES",
        "CLASS_REGION_SIZE",
        "STATS",
        "SELF_INIT",
        "LABEL_MEMORY",
    ];
    const OF_THE_BUILD: [&str; 4] = ["WERROR", "NATIVE", "CXX_ALLOCATOR", "UBSAN"];
    configuration
        .lines()
        .filter_map(|line| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once(":=")?;
            let (name, value) = (name.trim(), value.split('#').next()?.trim());
            if OF_THE_BUILD.contains(&name) {
                return None;
            }
            let first = if WHOLE.contains(&name) { "CONFIG_" } else { "" };
            Some(format!("-D{first}{name}={value}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_as_its_makefile_does() {
        let text = "CONFIG_WERROR := true\nCONFIG_SLAB_CANARY := true\nCONFIG_STATS := false\n\
            CONFIG_REGION_QUARANTINE_SKIP_THRESHOLD := 33554432 # 32MiB\n# a remark\n";
        let expected = [
            "-DSLAB_CANARY=true",
            "-DCONFIG_STATS=false",
            "-DREGION_QUARANTINE_SKIP_THRESHOLD=33554432",
        ];
        assert_eq!(defines(text), expected);
    }
}
