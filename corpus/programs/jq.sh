# ways: check leaks
# needs: jq
seq 2000 | $CHECK jq -sc 'map({a: ., b: (tostring * 2)}) | group_by(.a % 7) | map({n: length, s: (map(.b) | join(",") | length)})'
echo '{"a":[1,{"b":null}]}' | $CHECK jq -c 'paths, (.a[1].b // "x" | test("x")), @base64 "\(.a)"'
