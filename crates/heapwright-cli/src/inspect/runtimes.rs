//! Programs that keep a heap of their own above malloc.
//!
//! A preload takes effect on part of their memory only, or only after a setting. A wrong guess
//! costs no more than a remark.

struct Runtime {
    /// Prefixes of the program's name; a version may follow.
    names: &'static [&'static str],
    /// Prefixes of the names of libraries that show the runtime, too.
    libraries: &'static [&'static str],
    code: &'static str,
    text: &'static str,
}

const RUNTIMES: [Runtime; 8] = [
    Runtime {
        names: &["python"],
        libraries: &["libpython"],
        code: "python",
        text: "Python serves small objects from arenas of its own; --python (or \
               PYTHONMALLOC=malloc) has them on heapwright too",
    },
    Runtime {
        names: &["java", "javac"],
        libraries: &["libjli.so", "libjvm.so"],
        code: "jvm",
        text: "the Java heap is mapped by the JVM itself; only its native memory moves",
    },
    Runtime {
        names: &["node", "nodejs", "deno", "electron", "chrome", "chromium"],
        libraries: &["libnode.so"],
        code: "v8",
        text: "JavaScript objects live in V8's own heap; buffers and native memory move",
    },
    Runtime {
        names: &["dotnet", "mono"],
        libraries: &["libcoreclr.so", "libhostfxr.so", "libmonosgen"],
        code: "dotnet",
        text: ".NET objects live in the runtime's own heap; only native memory moves",
    },
    Runtime {
        names: &["php"],
        libraries: &["libphp"],
        code: "php",
        text: "PHP serves requests from a heap of its own; set USE_ZEND_ALLOC=0 to have it on \
               heapwright",
    },
    Runtime {
        names: &["ruby"],
        libraries: &["libruby"],
        code: "ruby",
        text: "Ruby keeps object slots in pages of its own; strings, arrays and the rest move",
    },
    Runtime {
        names: &["beam.smp", "erl"],
        libraries: &[],
        code: "erlang",
        text: "Erlang maps its heaps itself; start it with +Mea min to have them on heapwright",
    },
    Runtime {
        names: &["sbcl", "ecl", "ghc", "ocaml", "ocamlrun"],
        libraries: &["libgc.so", "libecl.so"],
        code: "collected",
        text: "its objects live in the heap of its own garbage collector; only native memory moves",
    },
];

pub(super) fn remarks<'a>(
    name: &'a str,
    needed: &'a [String],
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    RUNTIMES
        .iter()
        .filter(move |runtime| {
            runtime.names.iter().any(|known| is_version_of(name, known))
                || needed
                    .iter()
                    .any(|library| runtime.libraries.iter().any(|known| library.starts_with(known)))
        })
        .map(|runtime| (runtime.code, runtime.text))
}

/// Returns whether `name` is `known`, perhaps with a version: python3.11.
fn is_version_of(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|version| {
        version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(name: &str, needed: &[&str]) -> Vec<&'static str> {
        let needed: Vec<String> = needed.iter().map(|&library| library.to_owned()).collect();
        remarks(name, &needed).map(|(code, _)| code).collect()
    }

    #[test]
    fn runtimes_are_known_by_name_or_library() {
        assert_eq!(codes("python3.11", &[]), ["python"]);
        assert_eq!(codes("embedder", &["libpython3.11.so.1.0", "libc.so.6"]), ["python"]);
        assert_eq!(codes("java", &["libjli.so"]), ["jvm"]);
        assert_eq!(codes("pythonista", &["libc.so.6"]), [""; 0]);
        assert_eq!(codes("javascript-lint", &[]), [""; 0]);
    }
}
