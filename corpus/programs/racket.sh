# ways: more
# needs: racket
$CHECK racket -I racket/base -e '(define h (make-hash)) (for ([i 20000]) (hash-update! h (modulo (* i 7919) 997) add1 0)) (displayln (hash-count h)) (define t (for/list ([k 3]) (thread (lambda () (for/sum ([i 10000]) i))))) (for-each thread-wait t) (displayln (string-length (format "~a" (hash->list h))))';
