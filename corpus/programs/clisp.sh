# ways: more
# needs: clisp
$CHECK clisp -q -norc -x '(let ((h (make-hash-table :test (quote equal)))) (dotimes (i 3000) (incf (gethash (format nil "~R" (mod i 97)) h 0) i)) (print (hash-table-count h)) (gc) (print (loop for k being the hash-keys of h maximize (length k))))'
