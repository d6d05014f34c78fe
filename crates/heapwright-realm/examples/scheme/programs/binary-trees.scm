;; Makes, counts and drops trees, beside one tree that stays.
(define (make depth)
  (if (= depth 0)
      (cons '() '())
      (cons (make (- depth 1)) (make (- depth 1)))))

(define (check tree)
  (if (null? (car tree))
      1
      (+ 1 (check (car tree)) (check (cdr tree)))))

(define (iterate count depth)
  (let loop ((i 0) (sum 0))
    (if (= i count) sum (loop (+ i 1) (+ sum (check (make depth)))))))

(define (expt2 n) (if (= n 0) 1 (* 2 (expt2 (- n 1)))))

(define (run n)
  (let ((long (make n)))
    (display (list 'stretch (check (make (+ n 1)))))
    (newline)
    (do ((depth 4 (+ depth 4)))
        ((> depth n))
      (let ((count (expt2 (+ 4 (- n depth)))))
        (display (list count depth (iterate count depth)))
        (newline)))
    (display (list 'long (check long)))
    (newline)))

(run 14)
