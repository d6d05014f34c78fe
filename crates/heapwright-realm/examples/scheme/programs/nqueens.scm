;; Counts the ways to put n queens on a board so that no queen threatens another.
(define (one-to n)
  (let loop ((i n) (l '()))
    (if (= i 0) l (loop (- i 1) (cons i l)))))

(define (ok? row dist placed)
  (if (null? placed)
      #t
      (and (not (= (car placed) (+ row dist)))
           (not (= (car placed) (- row dist)))
           (ok? row (+ dist 1) (cdr placed)))))

(define (try-it x y z)
  (if (null? x)
      (if (null? y) 1 0)
      (+ (if (ok? (car x) 1 z)
             (try-it (append (cdr x) y) '() (cons (car x) z))
             0)
         (try-it (cdr x) (cons (car x) y) z))))

(define (nqueens n) (try-it (one-to n) '() '()))

(display (nqueens 10))
(newline)
