# ways: more
# needs: gforth
$CHECK gforth -e ': fib dup 2 < if drop 1 else dup 1- recurse swap 2 - recurse + then ; 20 fib . 1000 allocate throw dup 2000 resize throw free throw cr bye';
