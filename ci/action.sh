#!/usr/bin/env bash
# The GitHub action, as a dry run: its shell steps on a program that loses a block and on one that does not, with the
# variables and files of a runner (ci/action.py). `gh` is a file that says what it was asked for.
#
#   ci/action.sh
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command_or_package cc gcc
packages python3-yaml
the_command

# Where the action installs the command from (that this works: ci/registry.sh).
source=$(sed -n 's|.*--path "$GITHUB_ACTION_PATH/\(.*\)"|\1|p' integrations/github-action/action.yml)
[ -f "integrations/github-action/$source/Cargo.toml" ] || die "the action installs from '$source', where nothing is"

cd "$SCRATCH"
mkdir bin
ln -s "$HEAPWRIGHT_COMMAND" bin/heapwright
# Says what it was asked for; a pull request has a comment of an earlier run if there is a file `earlier`.
cat >bin/gh <<'SH'
#!/bin/sh
case "$*" in
*--paginate*) if [ -e earlier ]; then echo 55; fi ;;
*) echo "gh $*" ;;
esac
SH
chmod +x bin/gh
export PATH=$SCRATCH/bin:$PATH
printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); block = NULL; return block != NULL; }\n' >wrong.c
printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); free(block); return 0; }\n' >right.c
cc -g wrong.c -o wrong
cc -g right.c -o right

# action WANTED-EXIT-CODE INPUT...
action() {
    local wanted=$1 status=0
    shift
    rm -rf runner
    mkdir runner
    # Debian's, which has the package.
    /usr/bin/python3 "$ROOT/ci/action.py" "$ROOT/integrations/github-action/action.yml" runner "$@" >log 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { cat log; die "$*: ends with $status, not $wanted"; }
}
says() { grep -q -- "$1" "${2:-log}" || { cat log; die "nothing says '$1'"; }; }
says_not() { ! grep -q -- "$1" "${2:-log}" || { cat log; die "something says '$1'"; }; }

action 99 command='./right && ./wrong' comment=true github.event_name=pull_request github.event.number=7
says 'Result: failed with 99'
says '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
says 'in main .*wrong.c:2' runner/GITHUB_STEP_SUMMARY
says "upload-sarif@v3 {'sarif_file': '.*heapwright.sarif', 'category': 'heapwright'}"
says '^gh api .* POST repos/owner/project/issues/7/comments --field body=@.*summary.md$'
/usr/bin/python3 - runner/heapwright.*/heapwright.sarif <<'PY'
import json, sys
(result,) = json.load(open(sys.argv[1]))["runs"][0]["results"]
location = result["locations"][0]["physicalLocation"]
assert result["ruleId"] == "definitely-lost" and location["artifactLocation"]["uri"] == "wrong.c", result
PY
action 0 command=./wrong fail-on=none sarif=false comment=true github.event_name=push
says '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
says '== Upload: skipped'
says '== Comment: skipped'
says '== output exit-code: 0'
action 0 command='./right | cat; ./right' comment=true github.event_name=pull_request
says_not '^gh '
says_not '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
touch earlier
action 0 command=./right comment=true github.event_name=pull_request github.event.number=7
says '^gh api .* PATCH repos/owner/project/issues/comments/55 --field body=@.*summary.md$'
printf 'leak:main\n' >known.supp
action 0 command=./wrong options='--suppress known.supp'
action 3 command='exit 3'
action 2 command=./right fail-on=everything
says 'everything'
say "the action: a leak ends it with 99, SARIF, summary and comment; the others pass"
