;; Joins words, splits them, and counts them in a table.
(define (number->word n)
  (let loop ((n n) (word ""))
    (if (= n 0)
        word
        (loop (quotient n 26)
              (string-append word (list->string (list (integer->char (+ 97 (modulo n 26))))))))))

(define (make-text words seed)
  (let loop ((i 0) (seed seed) (text ""))
    (if (= i words)
        text
        (loop (+ i 1)
              (modulo (+ (* seed 1103515245) 12345) 2147483648)
              (string-append text (number->word (+ 1 (modulo (quotient seed 65536) 700))) " ")))))

(define (split text)
  (let loop ((chars (string->list text)) (word '()) (words '()))
    (cond ((null? chars) (reverse words))
          ((char=? (car chars) #\space)
           (loop (cdr chars) '() (cons (list->string (reverse word)) words)))
          (else (loop (cdr chars) (cons (car chars) word) words)))))

(define table (make-table))

(define (count-words text)
  (let loop ((words (split text)))
    (if (pair? words)
        (begin
          (table-set! table (car words) (+ 1 (table-ref table (car words) 0)))
          (loop (cdr words))))))

(do ((i 0 (+ i 1)))
    ((= i 60))
  (count-words (make-text 400 (+ i 1))))

(define (most entries best)
  (cond ((null? entries) best)
        ((or (> (cdr (car entries)) (cdr best))
             (and (= (cdr (car entries)) (cdr best)) (string<? (car (car entries)) (car best))))
         (most (cdr entries) (car entries)))
        (else (most (cdr entries) best))))

(display (table-count table))
(newline)
(write (most (table->list table) (cons "" 0)))
(newline)
