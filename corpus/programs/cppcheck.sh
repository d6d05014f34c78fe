# ways: more
# needs: cppcheck
printf '#include <vector>\nstruct A { int *p; A() { p = new int[4]; } ~A() { delete p; } };\nint f(int n) { int a[4]; std::vector<int> v; for (int i = 0; i <= 4; i++) a[i] = i; return a[n] + v[0]; }\n' >a.cc
$CHECK cppcheck -q --enable=all --inconclusive a.cc 2>&1 | sort; $CHECK cppcheck -q -j2 a.cc 2>&1 | sort
