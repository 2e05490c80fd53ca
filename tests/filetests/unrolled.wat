;; A loop that its producer has unrolled by two, with 32-bit indices that may wrap: where they do not, it is rolled up and vectorised.
(module
  (memory 64)
  (func (export "scale") (param $a i32) (param $b i32) (param $n i32)
    (loop $next
      (f32.store (local.get $b) (f32.mul (f32.load (local.get $a)) (f32.const 3)))
      (f32.store (i32.add (local.get $b) (i32.const 4)) (f32.mul (f32.load (i32.add (local.get $a) (i32.const 4))) (f32.const 3)))
      (local.set $a (i32.add (local.get $a) (i32.const 8)))
      (local.set $b (i32.add (local.get $b) (i32.const 8)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  ;; The second load comes before the first store, which may be to the same place: it stays there.
  (func (export "loads first") (param $a i32) (param $b i32) (param $n i32) (local $x i32) (local $y i32)
    (loop $next
      (local.set $x (i32.load (local.get $a)))
      (local.set $y (i32.load (i32.add (local.get $a) (i32.const 4))))
      (i32.store (local.get $b) (local.get $x))
      (i32.store (i32.add (local.get $b) (i32.const 4)) (local.get $y))
      (local.set $a (i32.add (local.get $a) (i32.const 12)))
      (local.set $b (i32.add (local.get $b) (i32.const 8)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  ;; One step of a chain of operations that cannot be reassociated.
  (func (export "sum") (param $a i32) (param $n i32) (result f64) (local $sum f64)
    (loop $next
      (local.set $sum (f64.add (local.get $sum) (f64.load (local.get $a))))
      (local.set $sum (f64.add (local.get $sum) (f64.load (i32.add (local.get $a) (i32.const 8)))))
      (local.set $sum (f64.add (local.get $sum) (f64.load (i32.add (local.get $a) (i32.const 16)))))
      (local.set $a (i32.add (local.get $a) (i32.const 24)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::scale
;; CHECK: ugt i64 %16, 4294967295
;; CHECK: br i1
;; COUNT: 4 load <8 x float>
;; COUNT: 4 store <8 x float>
;; NOT: shufflevector
;; FUNCTION: wasm[1]::loads first
;; COUNT: 0 load <8 x i32>
;; FUNCTION: wasm[2]::sum
;; NOT: fadd <

;; RUN: --bounds guard -O1 --emit llvm-ir
;; FUNCTION: wasm[0]::scale
;; COUNT: 2 load float
;; COUNT: 2 store float
