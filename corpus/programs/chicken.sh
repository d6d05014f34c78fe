# ways: more
# needs: chicken-bin
$CHECK csi -q -e '(let loop ((i 0) (l (quote ()))) (if (< i 20000) (loop (+ i 1) (cons (number->string i) l)) (print (length l) (apply + (map string-length l)))))';
