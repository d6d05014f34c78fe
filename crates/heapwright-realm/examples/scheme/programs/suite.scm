;; The interpreter's own suite. Each line says which result it must have. The suite prints the
;; number of right results, and each wrong one.
(define right 0)
(define wrong 0)
(define (check name got wanted)
  (if (equal? got wanted)
      (set! right (+ right 1))
      (begin
        (set! wrong (+ wrong 1))
        (display name) (display ": ") (write got) (display ", not ") (write wanted) (newline))))

(define (map-of f l) (if (null? l) '() (cons (f (car l)) (map-of f (cdr l)))))
(define (for-all f l) (if (pair? l) (begin (f (car l)) (for-all f (cdr l)))))

;; Numbers.
(check "sum" (+ 1 2 3) 6)
(check "no sum" (+) 0)
(check "negated" (- 5) -5)
(check "mixed" (+ 1 0.5) 1.5)
(check "whole quotient" (/ 12 4) 3)
(check "real quotient" (/ 1 4) 0.25)
(check "modulo" (list (modulo -7 3) (modulo 7 -3) (remainder -7 3) (quotient -7 3)) '(2 -2 -1 -2))
(check "too large" (> (* 4000000000000 4000000000000) 1e24) #t)
(check "order" (list (< 1 2 3) (< 1 3 2) (>= 3 3 1)) '(#t #f #t))
(check "least" (list (min 3 1 2) (max 3 1 2) (abs -4) (sqrt 49)) '(1 3 4 7))

;; Lists.
(check "dotted" '(1 . (2 . (3 . ()))) '(1 2 3))
(check "append" (append '(1) '(2 3) '() '(4)) '(1 2 3 4))
(check "shared tail" (let ((tail '(2))) (eq? (cdr (append '(1) tail)) tail)) #t)
(check "paths" (list (cadr '(1 2)) (cddr '(1 2 3)) (caddr '(1 2 3)) (caar '((1)))) '(2 (3) 3 1))
(check "assoc" (list (assoc "b" '(("a" . 1) ("b" . 2))) (assq 'c '((a 1)))) '(("b" . 2) #f))
(check "member" (list (memv 2 '(1 2 3)) (member '(x) '((y) (x))) (memq 'z '())) '((2 3) ((x)) #f))
(check "set-cdr!" (let ((p (list 1 2))) (set-cdr! p '(9)) (set-car! p 8) p) '(8 9))
(check "reverse" (reverse '(1 (2) 3)) '(3 (2) 1))

;; Control.
(check "and, or" (list (and) (and 1 2) (and 1 #f 2) (or) (or #f 3) (or #f #f)) '(#t 2 #f #f 3 #f))
(check "cond" (map-of (lambda (x) (cond ((< x 0) 'less) ((= x 0) 'none) (else 'more))) '(-1 0 1)) '(less none more))
(check "arrow" (cond ((assv 2 '((1 . a) (2 . b))) => cdr) (else 'none)) 'b)
(check "case" (list (case 3 ((1 2) 'low) ((3 4) 'high) (else 'none)) (case 9 ((1) 1) (else 'other))) '(high other))
(check "when" (list (when #t 1 2) (unless #f 3 4)) '(2 4))
(check "do" (do ((i 0 (+ i 1)) (l '() (cons i l))) ((= i 3) l)) '(2 1 0))
(check "named let" (let loop ((i 0) (sum 0)) (if (> i 10) sum (loop (+ i 1) (+ sum i)))) 55)
(check "let*" (let* ((x 1) (y (+ x 1)) (x 5)) (list x y)) '(5 2))
(check "letrec" (letrec ((even? (lambda (n) (if (= n 0) #t (odd? (- n 1)))))
                         (odd? (lambda (n) (if (= n 0) #f (even? (- n 1))))))
                  (even? 1001)) #f)
(check "shadowed" (let ((if list)) (if 1 2 3)) '(1 2 3))

;; Procedures.
(check "rest" ((lambda (a . rest) (list a rest)) 1 2 3) '(1 (2 3)))
(check "all rest" ((lambda rest rest)) '())
(check "apply" (apply + 1 2 '(3 4)) 10)
(define (counter)
  (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(check "counters" (let ((a (counter)) (b (counter))) (a) (a) (list (a) (b))) '(3 1))
(define (inner x)
  (define y (* x 2))
  (define (add z) (+ x y z))
  (set! y (+ y 1))
  (add 100))
(check "inner definitions" (inner 5) 116)
(check "deep" (let loop ((n 300)) (if (= n 0) 0 (+ 1 (loop (- n 1))))) 300)
(check "tail" (let loop ((n 1000)) (if (= n 0) 'done (loop (- n 1)))) 'done)
(define (ping n) (if (= n 0) 'ping (pong (- n 1))))
(define (pong n) (if (= n 0) 'pong (apply ping (list (- n 1)))))
(check "tail by apply" (ping 301) 'pong)
(check "shared place"
       (let* ((x 1) (get (lambda () x)) (put (lambda (v) (set! x v)))) (put 7) (list x (get)))
       '(7 7))
(check "captured by two levels" (((lambda (x) (lambda (y) (set! x (+ x y)) x)) 3) 4) 7)

;; Continuations.
(check "escape" (+ 1 (call/cc (lambda (k) (+ 10 (k 1))))) 2)
(check "again"
       (let ((count 0) (saved #f))
         (let ((n (call/cc (lambda (k) (set! saved k) 0))))
           (set! count (+ count 1))
           (if (< n 3) (saved (+ n 1)) (list n count))))
       '(3 4))
(define (generator items)
  (define return #f)
  (define (next)
    (for-all (lambda (item) (call/cc (lambda (k) (set! next (lambda () (k #f))) (return item)))) items)
    (return 'end))
  (lambda () (call/cc (lambda (k) (set! return k) (next)))))
(check "generator" (let ((g (generator '(1 2)))) (let* ((a (g)) (b (g)) (c (g))) (list a b c))) '(1 2 end))

;; Strings, characters, symbols.
(check "strings" (list (string-append "ab" "" "cd") (substring "hello" 1 3) (string-length "äöü")) '("abcd" "el" 3))
(check "characters" (list (string-ref "abc" 1) (string-ref "äöü" 2) (list->string (string->list "xyz"))) '(#\b #\ü "xyz"))
(check "symbols" (list (eq? 'a (string->symbol "a")) (symbol->string 'long-name)) '(#t "long-name"))
(check "numbers in strings" (list (number->string 12) (string->number "1.5") (string->number "x")) '("12" 1.5 #f))
(check "order of strings" (list (string<? "a" "b") (string=? "a" "a")) '(#t #t))
(check "escapes" (string-length "a\"\\\n") 4)

;; Vectors and tables.
(define v (make-vector 5 'x))
(vector-set! v 2 '(1 2))
(check "vector" (list (vector-ref v 2) (vector-length v) (vector->list v)) '((1 2) 5 (x x (1 2) x x)))
(check "literal" #(1 (2) "3") (vector 1 '(2) "3"))
(define t (make-table))
(define (fill-table i)
  (if (< i 100)
      (begin (table-set! t (list i (number->string i)) (make-vector 3 i)) (fill-table (+ i 1)))))
(fill-table 0)
(check "table" (list (table-count t) (vector-ref (table-ref t '(77 "77")) 1) (table-ref t 'none 'no)) '(100 77 no))
(table-delete! t '(77 "77"))
(check "deleted" (list (table-ref t '(77 "77")) (table-count t)) '(#f 99))

;; Quotation.
(check "quasi" (let ((x 1) (l '(2 3))) `(a ,x ,@l (b ,(+ x 1)) . c)) '(a 1 2 3 (b 2) . c))
(check "quasi in quasi" `(1 `(2 ,(3 ,(+ 1 3)))) '(1 `(2 ,(3 4))))
(check "quasi vector" `#(1 ,(+ 1 1)) #(1 2))

(display right) (display " right, ") (display wrong) (display " wrong") (newline)
