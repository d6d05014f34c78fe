//! The name that a package gives to heapwright, by its own manifest and its workspace's.
//!
//! ```text
//!   hw = { package = "heapwright" }, or [dependencies.hw] with package = "heapwright"
//!   hw = { workspace = true }, and one of these forms in the workspace's manifest
//! ```
//!
//! The manifest is read line by line, without a parser of TOML. An inline table that spans
//! several lines is not understood.

#[derive(PartialEq)]
enum Said {
    /// The entry is about another package, or about something else.
    Other,
    Heapwright,
    /// The workspace's manifest decides.
    Workspace,
}

/// The package's manifest comes first, then those of the folders above.
pub(crate) fn name(mut manifests: impl Iterator<Item = String>) -> String {
    let own = manifests.next().unwrap_or_default();
    let own = dependencies(&own);
    let is = |said: &Said, name: &str| own.iter().any(|(other, is)| is == said && other == name);
    let found =
        own.iter().find(|(_, said)| *said == Said::Heapwright).map(|(name, _)| name.clone());
    let found = found.or_else(|| {
        let workspace = manifests.find(|text| text.contains("[workspace")).unwrap_or_default();
        let inherited = dependencies(&workspace).into_iter();
        let mut of_package = inherited.filter(|(_, said)| *said == Said::Heapwright);
        of_package.find(|(name, _)| is(&Said::Workspace, name)).map(|(name, _)| name)
    });
    found.unwrap_or_else(|| "heapwright".to_owned()).replace('-', "_")
}

fn dependencies(manifest: &str) -> Vec<(String, Said)> {
    let mut found: Vec<(String, Said)> = Vec::new();
    // The table of these lines: `all` dependencies, or `one` dependency's.
    let (mut all, mut one) = (false, None);
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.split(']').next().unwrap_or_default();
            let (before, last) = table.rsplit_once('.').unwrap_or(("", table));
            all = last.ends_with("dependencies");
            one = before.ends_with("dependencies").then(|| unquoted(last));
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match &one {
            Some(name) => found.push((name.clone(), said(&format!("{key} = {value}")))),
            None if all => {
                let (name, rest) = key.split_once('.').unwrap_or((key, ""));
                let entry =
                    if rest.is_empty() { value.to_owned() } else { format!("{rest} = {value}") };
                let is_plain = name == "heapwright" && !entry.contains("package");
                let said = if is_plain { Said::Heapwright } else { said(&entry) };
                found.push((unquoted(name), said));
            }
            None => {}
        }
    }
    found
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

/// Returns what an entry's keys and values say about a dependency.
fn said(entry: &str) -> Said {
    let entry: String = entry.chars().filter(|letter| !letter.is_whitespace()).collect();
    if entry.contains("package=\"heapwright\"") || entry.contains("package='heapwright'") {
        Said::Heapwright
    } else if entry.contains("workspace=true") {
        Said::Workspace
    } else {
        Said::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_manifest_s() {
        let named = |manifests: &[&str]| name(manifests.iter().map(|&text| text.to_owned()));
        let workspace = "[workspace.dependencies]\nheap-wright = { package = \"heapwright\" }";
        for (expected, manifests) in [
            ("heapwright", &[][..]),
            ("heapwright", &["[dependencies]\nheapwright = \"1\""]),
            ("heapwright", &["[dependencies]\nheapwright.workspace = true", workspace]),
            ("hw", &["[dependencies]\nhw = { version = \"1\", package = \"heapwright\" }"]),
            ("hw", &["[dev-dependencies]\nlibc = \"1\"\nhw = {package=\"heapwright\"} # ours"]),
            (
                "hw",
                &[
                    "[target.'cfg(unix)'.dependencies.hw]\nversion = \"1\"\npackage = \"heapwright\"",
                ],
            ),
            ("hw", &["[dependencies]\nhw.package = 'heapwright'\nhw.version = '1'"]),
            ("heap_wright", &["[dependencies]\nheap-wright.workspace = true", "", workspace]),
            ("heap_wright", &["[dependencies]\nheap-wright = { workspace = true }", workspace]),
            ("heapwright", &["[dependencies]\nother = { workspace = true }", workspace]),
            ("heapwright", &["[package]\nname = \"heapwright\"\n[features]\nx = [\"package\"]"]),
        ] {
            assert_eq!(named(manifests), expected, "{manifests:?}");
        }
    }
}
