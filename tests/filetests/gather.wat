;; Elements by their indices: gathered only where that is faster than one element at a time.
(module
  (memory 64)
  (func (export "sum") (param $from i32) (param $which i32) (param $end i32) (result i64) (local $sum i64)
    (loop $next
      (local.set $sum (i64.add (local.get $sum)
        (i64.load (i32.add (local.get $from) (i32.load (local.get $which))))))
      (br_if $next (i32.ne (local.tee $which (i32.add (local.get $which) (i32.const 4))) (local.get $end))))
    (local.get $sum))
)

;; RUN: --bounds guard -O3 --emit asm --cpu znver4
;; FUNCTION: wasm[0]::sum
;; NOT: gather

;; RUN: --bounds guard -O3 --emit asm --cpu icelake-server
;; FUNCTION: wasm[0]::sum
;; CHECK: gather
