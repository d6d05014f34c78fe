//! Defragmentation by the program: it moves blocks out of sparse slabs, and frees their memory.
mod support;
use support::{How, Outcome, command, compile, run};

fn under(options: &str, words: &[&str]) -> Outcome {
    let program = compile("defragment.c", How::Linked, &["-pthread"]);
    run(command(&program, How::Linked).args(words).env("HEAPWRIGHT", options))
}

#[test]
fn sparse_slabs_are_emptied_under_every_cache_model() {
    let all: &[&str] = &["", "beside", "two", "dead"];
    for (model, words) in [
        ("exclusive", all),
        ("auto", &["", "two"]),
        ("shared:2", &["", "beside"]),
        ("percpu", &["", "beside", "two"]),
    ] {
        for word in words {
            under(&format!("cache={model}"), &[word]).is_fine((model, word));
        }
    }
}

#[test]
fn a_heap_profile_and_counted_calls_do_not_mind() {
    under("sample=64k", &[]).is_fine("sample");
    under("sample=64k,cache=shared:2", &["beside"]).is_fine("sample, shared");
    // Nothing is moved while each call is observed.
    for options in ["mode=debug", "stats=exit"] {
        let outcome = under(options, &["never"]);
        assert!(outcome.status.success(), "{options}: {outcome:?}");
    }
}
