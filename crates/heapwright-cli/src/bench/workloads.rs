//! The built-in workloads as programs: this command, run as `heapwright workload NAME`.

use super::program::{Comparing, Program};
use super::results::{EMPTY, Kind};
use crate::wrong::wrong;
use anyhow::Context;
use heapwright_workloads::{ALL, Workload, find};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

pub(crate) const SUBCOMMAND: &str = "workload";

/// The word that chooses no workload.
const NONE: &str = "none";

/// Returns the named workloads or, without names, all. The empty one is among them unless the name
/// is `none`: other workloads' memory is measured above its peak.
pub(crate) fn chosen(names: &[String], scale: u32) -> anyhow::Result<Vec<Program>> {
    if names.iter().any(|name| name == NONE) {
        if names.len() > 1 {
            return Err(wrong("--workloads none stands alone".to_owned()));
        }
        return Ok(Vec::new());
    }
    if let Some(unknown) = names.iter().find(|name| find(name).is_none()) {
        return Err(wrong(format!(
            "--workloads {unknown}: there is no such workload; see 'heapwright bench --list'"
        )));
    }
    let us = std::env::current_exe().context("cannot find out where this command is")?;
    let wanted = |workload: &&Workload| {
        let name = workload.name;
        names.is_empty() || name == EMPTY || names.iter().any(|wanted| wanted == name)
    };
    Ok(ALL.iter().filter(wanted).map(|workload| program(workload, scale, &us)).collect())
}

fn program(workload: &Workload, scale: u32, us: &Path) -> Program {
    let mut arguments: Vec<OsString> = vec![SUBCOMMAND.into(), workload.name.into()];
    if scale != 1 {
        arguments.extend(["--scale".into(), scale.to_string().into()]);
    }
    // The known figures of a workload hold for scale 1.
    let known = |number: u64| (scale == 1).then_some(number);
    Program {
        name: workload.name.to_owned(),
        stands_for: workload.stands_for.to_owned(),
        kind: Kind::Workload,
        file: us.to_owned(),
        arguments,
        environment: BTreeMap::new(),
        directory: None,
        stdin: None,
        long: false,
        threads: workload.threads,
        live_bytes: known(workload.live_bytes),
        operations: known(workload.operations),
        comparing: Comparing::Always,
        refuses: None,
    }
}
