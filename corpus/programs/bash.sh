# ways: preload
# main: bash
declare -A seen; words=()
for i in $(seq 2000); do
    word="w$((i * 7919 % 997))"; words+=("$word"); seen[$word]=$((${seen[$word]:-0} + 1))
done
echo "${#words[@]} ${#seen[@]} ${words[*]:10:5}"
(text=$(printf '%s,' "${words[@]}"); echo "${#text} ${text//w/v}" | cksum)
while read -r line; do echo "$line" | tr a-z A-Z; done <<<"$(printf 'one\ntwo\n')"
for i in 1 2 3; do (exit $i) & wait $! || echo "child $?"; done
sh -c 'kill -TERM $$'; echo "signal $?"
diff <(seq 100) <(seq 99); return 7
