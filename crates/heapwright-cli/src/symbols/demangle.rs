//! Makes readable names, by Rust's demangler, else by C++'s. A changed name fills gaps of C++'s:
//!
//! ```text
//! name      srSt8is_arrayIT_E5value    _ZN1AC2IiEEPT_ (a constructor's template)   any other gap
//! gap       no class before a member   its first parameter counts as a result
//! evasion   dttiSt8is_arrayIT_E5value  _ZN1AC2IiEEvPT_: the result `void`          the name alone
//! ```

use addr2line::demangle;
use gimli::{DW_LANG_C_plus_plus, DW_LANG_Rust};

/// The most ends of a name, and the most bytes, that are tried.
const TRIES: usize = 100;
const LONGEST: usize = 8 << 10;

pub(super) fn is_mangled(name: &str) -> bool {
    ["_Z", "__Z", "_R"].iter().any(|start| name.starts_with(start))
}

/// Returns the name in a program's source. C's names stay: to the demangler `f` is `float`.
pub(super) fn demangled(name: &str) -> String {
    if !is_mangled(name) && !name.starts_with("_GLOBAL_") {
        return name.to_owned();
    }
    let readable = demangle(name, DW_LANG_Rust).or_else(|| cxx(name));
    readable.unwrap_or_else(|| name.to_owned())
}

fn cxx(name: &str) -> Option<String> {
    let plain = |name: &str| demangle(name, DW_LANG_C_plus_plus);
    let result = |name: &str| plain(name).or_else(|| Some(members(&plain(&evaded(name))?)));
    let is_template =
        |at: usize| matches!(name.as_bytes().get(at + 1..), Some([b'1'..=b'5', b'I', ..]));
    let has_constructor = name.match_indices('C').any(|(at, _)| is_template(at));
    let whole = result(name);
    if whole.is_some() && !has_constructor || name.len() > LONGEST {
        return whole;
    }
    // The shortest beginning that names a function `f()`: some have no readable name alone.
    let mut ends = name.match_indices('E').map(|(at, _)| at + 1).take(TRIES);
    let named = |end| Some((end, result(&format!("{}v", &name[..end]))?));
    let Some((end, alone)) = ends.find_map(named) else { return whole };
    if whole.is_none() {
        return Some(alone.trim_start_matches("void ").trim_end_matches("()").to_owned());
    }
    let (function, types) = name.split_at(end);
    let is_ours = function.ends_with("EE") && !types.is_empty();
    let with_result = is_ours.then(|| result(&format!("{function}v{types}"))).flatten();
    // In a text that begins with `void `, the template is no constructor's.
    with_result.filter(|text| !text.starts_with("void ")).or(whole)
}

/// Replaces `TYPE::member` in expressions by `typeid(TYPE).member`.
fn evaded(name: &str) -> String {
    let mut pieces = name.split("sr");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_type =
            piece.starts_with(|next: char| next.is_ascii_digit() || "NSTD".contains(next));
        out.push_str(if is_type { "dtti" } else { "sr" });
        out.push_str(piece);
    }
    out
}

/// Reverts the replacement in the readable name: `(typeid (TYPE)).member`.
fn members(text: &str) -> String {
    const BEGIN: &str = "(typeid (";
    let mut out = text.to_owned();
    while let Some(begin) = out.rfind(BEGIN) {
        let inside = begin + BEGIN.len();
        let Some(length) = closing(&out[inside..]) else { break };
        let kind = out[inside..inside + length].to_owned();
        let rest = &out[inside + length..];
        let Some(member) = rest.strip_prefix(")).") else { break };
        out = format!("{}{kind}::{member}", &out[..begin]);
    }
    out
}

/// Returns the place of the closing parenthesis whose opening one precedes the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.bytes().position(|byte| match byte {
        b')' if depth == 0 => true,
        b')' => {
            depth -= 1;
            false
        }
        _ => {
            depth += u32::from(byte == b'(');
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_of_c_stay() {
        for (symbol, name) in [
            ("f", "f"),
            ("Pv", "Pv"),
            ("main", "main"),
            ("_Z1fi", "f(int)"),
            ("_ZN1AC1Ev", "A::A()"),
            ("_Zebra", "_Zebra"),
        ] {
            assert_eq!(demangled(symbol), name);
        }
    }

    /// GCC made these symbols from the headers of several versions. The names are those of binutils.
    #[test]
    fn members_of_classes_in_expressions_have_names() {
        for (symbol, name) in [
            (
                "_ZSt11make_sharedI4ItemJiEESt10shared_ptrINSt9enable_ifIXntsrSt8is_arrayIT_E5valueES4_E4typeEEDpOT0_",
                "std::shared_ptr<std::enable_if<!(std::is_array<Item>::value), Item>::type> std::make_shared<Item, int>(int&&)",
            ),
            (
                "_Z2f1I4ItemENSt9enable_ifIXntsrN3foo3barIT_EE5valueES4_E4typeEPS4_RKS5_",
                "std::enable_if<!(foo::bar<Item>::value), Item>::type f1<Item>(Item*, foo::bar<Item> const&)",
            ),
            (
                "_Z2f2I4ItemENSt9enable_ifIXaantsr2glIT_E5valuentsrSt8is_arrayIS3_E5valueES3_E4typeEPS3_S4_PSt6vectorIS3_SaIS3_EEPS9_",
                "std::enable_if<(!(gl<Item>::value))&&(!(std::is_array<Item>::value)), Item>::type f2<Item>(Item*, gl<Item>, std::vector<Item, std::allocator<Item> >*, Item**)",
            ),
        ] {
            assert_eq!(demangled(symbol), name);
        }
    }

    #[test]
    fn templates_of_constructors_have_all_parameters() {
        for (symbol, name) in [
            (
                "_ZNSt10shared_ptrI4ItemEC2IS0_vEEPT_",
                "std::shared_ptr<Item>::shared_ptr<Item, void>(Item*)",
            ),
            (
                "_ZNSt10shared_ptrI4ItemEC1ISaIvEJiEEESt20_Sp_alloc_shared_tagIT_EDpOT0_",
                "std::shared_ptr<Item>::shared_ptr<std::allocator<void>, int>(std::_Sp_alloc_shared_tag<std::allocator<void> >, int&&)",
            ),
            ("_ZN3FC1C1Ei", "FC1::FC1(int)"),
            ("_ZN3FC1IiE3addIiEEvT_", "void FC1<int>::add<int>(int)"),
        ] {
            assert_eq!(demangled(symbol), name);
        }
    }

    #[test]
    fn of_a_name_with_another_gap_the_function_is_known() {
        assert_eq!(demangled("_ZN3foo3barI4ItemEENS_4weirXzzE_ET_"), "foo::bar<Item>");
    }
}
