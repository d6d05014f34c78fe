# ways: more
# needs: z3
cat >a.smt2 <<'S'
(declare-const a Int) (declare-const b Int) (declare-fun f (Int) Int)
(assert (and (> a 10) (< (* a b) 200) (= (f a) (+ (f b) 7)) (distinct a b)))
(check-sat)
(push) (declare-const v (_ BitVec 32)) (assert (= (bvmul v #x00001eef) #x12345679)) (check-sat) (get-value (v)) (pop)
(declare-const s String) (assert (str.in_re s (re.+ (str.to_re "ab")))) (assert (> (str.len s) 5)) (check-sat)
S
$CHECK z3 a.smt2
