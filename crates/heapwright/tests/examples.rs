//! The example programs, which `cargo test` builds. Without them nothing is tested.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "an ordinary program")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn example(name: &str) -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.parent()?.join("examples").join(name);
    path.is_file().then_some(path)
}

/// The program prints the same alone and under the preload, and the preload counts its allocations.
#[test]
fn a_program_that_links_heapwright_has_one_heap_under_the_preload() {
    let library = std::env::var_os("HEAPWRIGHT_TEST_LIBRARY").map(PathBuf::from);
    let (Some(program), Some(library)) = (example("linked"), library) else { return };
    let said = |preload: Option<PathBuf>| {
        let mut command = Command::new(&program);
        command.env("HEAPWRIGHT", "stats=exit").env_remove("LD_PRELOAD");
        command.envs(preload.map(|path| ("LD_PRELOAD", path)));
        let output = command.output().expect("it runs");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"))
    };
    let [alone, refused] = said(None);
    assert!(refused.contains("without the preloaded library"), "{refused}");
    let [under, statistics] = said(Some(library.join("libheapwright.so")));
    assert_eq!(alone, under);
    assert!(!statistics.contains("without the preloaded library"), "{statistics}");
    let count =
        statistics.split("allocations").nth(1).and_then(|rest| rest.split_whitespace().next());
    let count: u64 = count.and_then(|text| text.parse().ok()).expect("the preload counts");
    assert!(count > 160_000, "{statistics}");
}

struct Server(Child, String);

impl Server {
    fn start(program: &PathBuf, options: &str) -> Self {
        let mut command = Command::new(program);
        command.env("HEAPWRIGHT", options).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut address = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut address).expect("it says its address");
        Self(child, address.trim().to_owned())
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.1).expect("it serves");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("received");
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
        answer.split_off(head + 4)
    }

    fn end(mut self) -> String {
        self.0.kill().expect("it was there");
        let output = self.0.wait_with_output().expect("it ends");
        String::from_utf8(output.stderr).expect("text")
    }
}

#[test]
fn a_server_offers_its_heap_profile() {
    let Some(program) = example("profile_endpoint") else { return };
    let server = Server::start(&program, "");
    assert!(server.get("/page/0").starts_with(b"/page/0\n"));
    let before = server.get("/heap");
    (0..100).for_each(|page| drop(server.get(&format!("/page/{page}"))));
    let after = server.get("/heap");
    assert!(before.starts_with(b"HWDEBUG") && after.starts_with(b"HWDEBUG"));
    assert!(after.len() > before.len());
    server.end();
    // On the hardened heap, the profile causes no report of misuse.
    for options in ["mode=hardened", "mode=hardened:full"] {
        let server = Server::start(&program, options);
        for page in 0..20 {
            let path = format!("/page/{page}");
            assert!(server.get(&path).starts_with(path.as_bytes()), "{options}");
        }
        assert_eq!(server.end(), "", "{options}");
    }
}
