;; A server for an endless series of requests. Sessions begin, grow, are trimmed and end; memory
;; must not grow. `scheme --serve SECONDS server.scm` calls `request` with 0, 1, ...

(define session-count 20000)
(define sessions (make-vector session-count #f))
(define words (make-table))

(define seed 42)
(define (random below)
  (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
  (modulo (quotient seed 65536) below))

(define (index-of text char from)
  (let loop ((i from))
    (cond ((= i (string-length text)) i)
          ((char=? (string-ref text i) char) i)
          (else (loop (+ i 1))))))

;; The parts of a text between the marks.
(define (split text mark)
  (let loop ((from 0) (parts '()))
    (let* ((to (index-of text mark from)) (parts (cons (substring text from to) parts)))
      (if (= to (string-length text))
          (reverse parts)
          (loop (+ to 1) parts)))))

;; "a=1&b=2" as a list of pairs.
(define (parse-query query)
  (let loop ((parts (split query #\&)) (all '()))
    (if (null? parts)
        all
        (let ((both (split (car parts) #\=)))
          (loop (cdr parts)
                (cons (cons (string->symbol (car both)) (if (pair? (cdr both)) (cadr both) "")) all))))))

(define (first-of list count)
  (if (or (= count 0) (null? list))
      '()
      (cons (car list) (first-of (cdr list) (- count 1)))))

(define (repeat text times)
  (let loop ((i 0) (all ""))
    (if (= i times) all (loop (+ i 1) (string-append all text)))))

;; A session: its name, the number of its visits, and its last messages.
(define (session-of id)
  (or (vector-ref sessions id)
      (let ((fresh (vector (string-append "user-" (number->string id)) 0 '())))
        (vector-set! sessions id fresh)
        fresh)))

(define (visit session query keep)
  (vector-set! session 1 (+ 1 (vector-ref session 1)))
  (vector-set! session 2
    (first-of (cons (list (vector-ref session 1) (cdr (assoc 'page query)) (cdr (assoc 'text query)))
                    (vector-ref session 2))
              keep))
  (table-set! words (cdr (assoc 'page query)) (+ 1 (table-ref words (cdr (assoc 'page query)) 0))))

(define (render session)
  (let loop ((entries (first-of (vector-ref session 2) 5)) (page (string-append "<h1>" (vector-ref session 0) "</h1>")))
    (if (null? entries)
        page
        (loop (cdr entries)
              (string-append page "<p>" (number->string (car (car entries))) " "
                             (cadr (car entries)) ": " (cadr (cdr (car entries))) "</p>")))))

;; Ends random sessions. Their memory lies between the memory of other sessions.
(define (forget-some count)
  (do ((i 0 (+ i 1))) ((= i count))
    (vector-set! sessions (random session-count) #f)))

(define (request n)
  (let* ((season (modulo (quotient n 30000) 4))
         (text (repeat "all work and no play " (+ 1 (random (if (= season 0) 12 4)))))
         (query (parse-query (string-append "page=" (number->string (random 500)) "&lang=en&text=" text)))
         (session (session-of (random session-count))))
    (visit session query (if (= season 1) 12 6))
    (if (= (modulo n 100) 0)
        (forget-some (if (= season 3) 400 60)))
    (string-length (render session))))

;; Makes a few requests, so that this file also runs as a program.
(define (serve n sum)
  (if (= n 300) sum (serve (+ n 1) (+ sum (request n)))))
(display (serve 0 0))
(newline)
