# ways: more
# needs: pari-gp
$CHECK gp -q -f <<<'print(factor(2^101-1)); print(#select(isprime,[1..20000])); m=matrix(20,20,i,j,i^j%17); print(matrank(m)," ",polroots(x^5-x-1)[1]); v=vector(3000,i,Str(i)); print(#Set(v)); quit'
