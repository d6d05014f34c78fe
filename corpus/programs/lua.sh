# ways: check
# needs: lua5.4
$CHECK lua5.4 -e '
    local t = {} for i = 1, 20000 do t[i] = tostring(i) .. ("x"):rep(i % 30) end table.sort(t) print(#table.concat(t))
    print(string.format("%q %5.2f %s", "a\n", 1.5, t[1]), ("abc"):gsub("%w", "%0%0"), load("return 1 + 1")(), pcall(error, "e"))'
