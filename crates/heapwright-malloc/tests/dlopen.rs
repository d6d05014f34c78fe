//! Libraries that are opened while the program runs.
mod support;
use support::{How, command, compile, compile_plugin, run};

const DYNAMIC: [How; 4] = [How::Plain, How::Preload, How::Linked, How::Archive];

#[test]
fn blocks_cross_the_border_of_a_library() {
    let plugin = compile_plugin("plugin.c", &[]);
    for how in DYNAMIC {
        let host = compile("plugin_host.c", how, &["-rdynamic", "-ldl"]);
        run(command(&host, how).arg(&plugin).arg("0")).is_fine(how);
    }
}

#[test]
fn deepbind_does_not_split_the_heap() {
    let plugin = compile_plugin("plugin.c", &[]);
    for how in DYNAMIC {
        let host = compile("plugin_host.c", how, &["-rdynamic", "-ldl"]);
        run(command(&host, how).arg(&plugin).arg("1")).is_fine(how);
    }
}

#[test]
fn the_callers_run_path_is_searched() {
    let directory = support::scratch().join("origin");
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let plugin = compile_plugin("plugin.c", &[]);
    std::fs::copy(&plugin, directory.join("liborigin_test.so")).expect("the library can be copied");
    for how in DYNAMIC {
        let host = compile("origin_host.c", how, &["-Wl,-rpath,$ORIGIN/origin", "-ldl"]);
        run(&mut command(&host, how)).is_fine(how);
    }
}
