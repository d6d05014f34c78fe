# ways: more
# needs: gnuplot-nox
$CHECK gnuplot -e 'set term dumb 60 20; set samples 200; plot sin(x) / x, [0:10] x ** 2 / 50; set term svg; set out "a.svg"; splot x * y; fit_limit = 1e-6; f(x) = a * x + b; print 1'; wc -l <a.svg;
