# ways: preload
# needs: git:git
# main: git
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=$PWD
git init -q -b main repo && cd repo
for i in $(seq 12); do
    for f in $(seq 15); do seq $((i * f)) $((i * f + 400)) >file$f; done
    git add -A && git commit -q -m "commit $i"
done
git branch side HEAD~4 && git checkout -q side && echo side >side && git add side && git commit -q -m side
git checkout -q main && git merge -q -m merge side
git log --stat --format='%H %s' | cksum; git rev-parse HEAD; git blame file3 | cksum
git diff HEAD~3 | cksum; git grep -c 40 | cksum
git repack -q -a -d -f --threads=2 && git gc -q --aggressive --prune=now
git fsck --full --strict --no-progress && git count-objects -v | grep -v size
git clone -q . ../clone && git -C ../clone rev-parse HEAD && git bundle create -q ../bundle main && git bundle verify -q ../bundle
git archive HEAD | cksum; git show no-such-thing
