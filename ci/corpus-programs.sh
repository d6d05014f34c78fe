# Building the programs of the corpus; sourced by corpus.sh and leaks.sh, after common.sh.
#
# The caller says where they go (CACHE) and with which sanitizer (SANITIZE: address, leak
# or nothing). A program is built once, under a name that has a hash of its contents, its
# flags, the compilers and this file in it.
SANITIZE=
TOOLS=$({ cat corpus/corpus.h corpus/corpus.rs corpus/reads/reads.h ci/corpus-programs.sh; cc --version; c++ --version; rustc --version; } | sha256sum)

# compile SOURCE OUT FLAGS...: one program, with -DBAD (--cfg bad) among the flags or not.
compile() {
    local source=$1 out=$2 sanitize=()
    shift 2
    case $source in
        *.rs)
            [ -z "$SANITIZE" ] || sanitize=("-Zsanitizer=$SANITIZE")
            RUSTC_BOOTSTRAP=$([ -n "$SANITIZE" ] && echo 1 || echo 0) rustc --edition 2021 -C opt-level=1 -g -A warnings \
                --crate-name corpus_program "${sanitize[@]}" "${@/#-DBAD/--cfg=bad}" -o "$out" "$source"
            ;;
        *.py.c)
            # A module, and a script that calls the function of it that is its argument. (In the script's own process:
            # nothing but Python is run.)
            local module=${out%.new.*}.module
            cc -std=gnu11 -O1 -g -w -fno-builtin "-I$PYTHON_INCLUDES" "$@" -shared -fPIC -o "$module" "$source" || return 1
            printf '#!%s -IS\nimport importlib.util as u, importlib.machinery as m, sys\npath = "%s"\n%s\n%s\n' "$PYTHON" "$module" \
                'spec = u.spec_from_file_location("reads", path, loader=m.ExtensionFileLoader("reads", path))' \
                'getattr(u.module_from_spec(spec), sys.argv[1])()' >"$out"
            chmod +x "$out"
            ;;
        *)
            local compiler=(cc -std=gnu11)
            [ "${source##*.}" = cc ] && compiler=(c++ -std=c++17)
            [ -z "$SANITIZE" ] || sanitize=("-fsanitize=$SANITIZE")
            "${compiler[@]}" -O1 -g -w -fno-builtin -I corpus "${sanitize[@]}" -o "$out" "$@" "$source" -rdynamic -ldl
            ;;
    esac
}

# built NAME PATH FLAGS PLUGIN KIND: sets PROGRAM; compiles it unless that was done.
built() {
    local name=$1 path=$2 flags=$3 plugin=$4 kind=$5 hash define=()
    [ "$flags" != - ] || flags=
    [ "$kind" = bad ] && define=(-DBAD)
    hash=$({ printf '%s\n' "$TOOLS" "$flags" "$plugin"; cat "$path"; } | sha256sum)
    kind=${SANITIZE:+$SANITIZE-}$kind
    PROGRAM=$CACHE/$name.$kind.${hash:0:12}
    [ -x "$PROGRAM" ] && return 0
    rm -f "$CACHE/$name.$kind".*
    if [ "$plugin" != - ]; then
        # shellcheck disable=SC2086
        compile "$path" "$PROGRAM.so" $flags "${define[@]}" -DPLUGIN -shared -fPIC || return 1
    fi
    # shellcheck disable=SC2086
    compile "$path" "$PROGRAM.new.$BASHPID" $flags "${define[@]}" && mv "$PROGRAM.new.$BASHPID" "$PROGRAM"
}
