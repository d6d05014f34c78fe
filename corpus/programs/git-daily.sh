# ways: check leaks
# needs: git:git
$CHECK git init -q r && cd r && git config user.email a@b && git config user.name x
for i in 1 2 3; do seq $((i * 500)) >f; $CHECK git add . && $CHECK git commit -qm "$i"; done
$CHECK git log --stat -p --graph | wc -l; $CHECK git gc -q; $CHECK git blame f | tail -1 | wc -c; $CHECK git clone -q . ../q; $CHECK git grep -c 77
