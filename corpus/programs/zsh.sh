# ways: more
# needs: zsh
$CHECK zsh -f -c 'typeset -A a; for i in {1..3000}; do a[k$((i % 97))]+=$i; done; print ${#a} ${#a[k5]} ${(j:,:)${(ok)a}[1,5]}
    l=({a..e}{1..20}); print ${#l} ${l[(r)c7]} ${(U)l[3]} ${#${l:#a*}}; print -- *(N) =(print x)(N:h); x=$(print -l $l | sort -r | head -2); print $x
    [[ abc123 =~ "([a-z]+)([0-9]+)" ]] && print $match; zmodload zsh/mathfunc; printf "%.3f\n" $((sin(1))); exit 3'; echo $?
