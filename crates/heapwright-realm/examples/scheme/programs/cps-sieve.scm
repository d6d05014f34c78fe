;; Finds primes by a sieve of filters. Each filter is a closure, and gets a continuation.
(define (sieve limit k)
  (define (filter-by p next)
    (lambda (n k) (if (= (modulo n p) 0) (k #f) (next n k))))
  (define (loop n test count k)
    (if (> n limit)
        (k count)
        (test n
              (lambda (prime)
                (if prime
                    (loop (+ n 1) (filter-by n test) (+ count 1) k)
                    (loop (+ n 1) test count k))))))
  (loop 2 (lambda (n k) (k #t)) 0 k))

(sieve 5000 (lambda (count) (display count) (newline)))
