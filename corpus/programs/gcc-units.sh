# ways: leaks
# needs: gcc:gcc g++:g++
cp "$ROOT/bench/debug/rounds.c" rounds.c
printf '#include <map>\n#include <string>\nint f(std::map<int, std::string> &m) { m[1] = "x"; return m.size(); }\n' >map.cc
$CHECK gcc -O2 -Wall -c rounds.c; $CHECK g++ -O1 -c map.cc
