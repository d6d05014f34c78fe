#!/bin/sh
# git.sh REPOSITORY COMMITS: the history with its patches, who wrote a file's
# lines, and a copy packed anew. The repository is bare; one thread packs, as
# which delta is found depends on the threads' order.
repository=$1 commits=$2
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
copy=$(mktemp -d "${TMPDIR:-/tmp}/hw-git-XXXXXX")
trap 'rm -rf "$copy"' EXIT
git -C "$repository" log -p --stat -M -n "$commits" main | cksum
for file in $(git -C "$repository" ls-tree -r --name-only main | head -4); do
    git -C "$repository" blame main -- "$file" | cksum
done
cp -r "$repository" "$copy/bare"
git -C "$copy/bare" -c pack.threads=1 -c pack.window=6 -c gc.auto=0 gc --quiet --prune=now
git -C "$copy/bare" count-objects -v | grep -E '^(count|in-pack|packs)'
