# ways: more
# needs: swig
printf '%%module shop\n%%include "std_string.i"\n%%include "std_vector.i"\n%%template(V) std::vector<int>;\nclass A { public: A(int); virtual ~A(); std::string name(const char *); static A *make(double x = 1.5); };\n' >shop.i
$CHECK swig -c++ -python shop.i && grep -v -i version shop.py | cksum && $CHECK swig -c++ -perl shop.i && grep -c shop <shop_wrap.cxx
