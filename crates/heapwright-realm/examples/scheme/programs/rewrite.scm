;; A small theorem prover, after Boyer's. Rules rewrite a term until no rule applies. Then the
;; prover checks whether the result is a tautology.
(define rules (make-table))

(define (add-rule! left right)
  (table-set! rules (car left) (cons (cons left right) (table-ref rules (car left) '()))))

(define (variable? x) (and (symbol? x) (memq x '(a b c d e))))

(define (match pattern term bound)
  (cond ((not bound) #f)
        ((variable? pattern)
         (let ((known (assq pattern bound)))
           (cond ((not known) (cons (cons pattern term) bound))
                 ((equal? (cdr known) term) bound)
                 (else #f))))
        ((pair? pattern)
         (and (pair? term)
              (eq? (car pattern) (car term))
              (match-all (cdr pattern) (cdr term) bound)))
        (else (and (equal? pattern term) bound))))

(define (match-all patterns terms bound)
  (cond ((null? patterns) (and (null? terms) bound))
        ((null? terms) #f)
        (else (match-all (cdr patterns) (cdr terms) (match (car patterns) (car terms) bound)))))

(define (fill pattern bound)
  (cond ((variable? pattern) (let ((known (assq pattern bound))) (if known (cdr known) pattern)))
        ((pair? pattern) (cons (car pattern) (map1 (lambda (p) (fill p bound)) (cdr pattern))))
        (else pattern)))

(define (map1 f l) (if (null? l) '() (cons (f (car l)) (map1 f (cdr l)))))

(define rewrites 0)

(define (rewrite term)
  (if (not (pair? term))
      term
      (let* ((inner (cons (car term) (map1 rewrite (cdr term)))))
        (try-rules inner (table-ref rules (car inner) '())))))

(define (try-rules term left)
  (if (null? left)
      term
      (let ((bound (match (car (car left)) term '((start . start)))))
        (if bound
            (begin (set! rewrites (+ rewrites 1)) (rewrite (fill (cdr (car left)) bound)))
            (try-rules term (cdr left))))))

(define (tautology? x true false)
  (cond ((or (equal? x '(t)) (member x true)) #t)
        ((or (equal? x '(f)) (member x false)) #f)
        ((not (pair? x)) #f)
        ((eq? (car x) 'if)
         (cond ((or (equal? (cadr x) '(t)) (member (cadr x) true)) (tautology? (caddr x) true false))
               ((or (equal? (cadr x) '(f)) (member (cadr x) false)) (tautology? (cadddr x) true false))
               (else (and (tautology? (caddr x) (cons (cadr x) true) false)
                          (tautology? (cadddr x) true (cons (cadr x) false))))))
        (else #f)))

(add-rule! '(and a b) '(if a (if b (t) (f)) (f)))
(add-rule! '(or a b) '(if a (t) (if b (t) (f))))
(add-rule! '(not a) '(if a (f) (t)))
(add-rule! '(implies a b) '(if a (if b (t) (f)) (t)))
(add-rule! '(iff a b) '(and (implies a b) (implies b a)))
(add-rule! '(if (if a b c) d e) '(if a (if b d e) (if c d e)))
(add-rule! '(plus (plus a b) c) '(plus a (plus b c)))
(add-rule! '(times a (plus b c)) '(plus (times a b) (times a c)))
(add-rule! '(times (times a b) c) '(times a (times b c)))
(add-rule! '(equal (plus a b) (plus a c)) '(equal b c))
(add-rule! '(equal a a) '(t))
(add-rule! '(reverse (append a b)) '(append (reverse b) (reverse a)))
(add-rule! '(append (append a b) c) '(append a (append b c)))

(define theorem
  '(implies (and (implies (p x) (q x))
                 (and (implies (q x) (r x))
                      (and (implies (r x) (s x)) (implies (s x) (u x)))))
            (implies (p x) (u x))))

(define identities
  '(and (equal (times (plus x y) (plus z w)) (times (plus x y) (plus z w)))
        (equal (reverse (append (append x y) (append z w)))
               (append (append (reverse w) (reverse z)) (append (reverse y) (reverse x))))))

(define (repeat n f) (if (= n 1) (f) (begin (f) (repeat (- n 1) f))))

(display (repeat 6 (lambda () (tautology? (rewrite theorem) '() '()))))
(display " ")
(display (repeat 30 (lambda () (tautology? (rewrite identities) '() '()))))
(newline)
(display rewrites)
(newline)
