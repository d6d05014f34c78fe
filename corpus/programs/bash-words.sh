# ways: leaks
$CHECK bash -c 'declare -A a; for i in {1..800}; do a[k$((i * 7919 % 97))]+=" $i"; done; echo ${#a[@]}; x=$(echo sub | tr a-z A-Z); echo $x; f() { local y=$1; return 3; }; f 1; echo $?; [[ abc =~ (b)(c) ]] && echo ${BASH_REMATCH[1]}'
