# ways: check
# needs: g++:g++
echo 'struct A { int *p; A() : p(new int[4]()) {} ~A() { delete[] p; } } a;' >a.cc
echo 'int main() { return 0; }' >main.cc
g++ -shared -fPIC a.cc -o liba.so && g++ main.cc -Wl,--no-as-needed -L. -la -Wl,-rpath,"$PWD" -o main && $CHECK ./main
