;; Explicit checks that need not be made: those that one before implies, and those of loops.
(module
  (import "env" "f" (func $f))
  (memory 1)
  ;; The widest first: it implies the others, also behind a call, since memories never shrink.
  (func $fields (export "fields") (param i32) (result i32)
    (i32.store offset=12 (local.get 0) (i32.const 1))
    (i32.store offset=8 (local.get 0) (i32.const 2))
    (call $f)
    (i32.add
      (i32.load offset=4 (local.get 0))
      (i32.load (i32.add (local.get 0) (i32.const 8)))))
  ;; The widest last: checked first, and where that fails one after the other.
  (func $growing (export "growing") (param i32)
    (i32.store (local.get 0) (i32.const 1))
    (i32.store offset=4 (local.get 0) (i32.const 2))
    (i32.store offset=8 (local.get 0) (i32.const 3))
    (i32.store offset=12 (local.get 0) (i32.const 4)))
  ;; What the host sees does not come too early.
  (func $between (export "between") (param i32)
    (i32.store (local.get 0) (i32.const 1))
    (call $f)
    (i32.store offset=4 (local.get 0) (i32.const 2)))
  ;; Nothing is known of what lies before the first byte.
  (func $before (export "before") (param i32) (result i32)
    (i32.store offset=12 (local.get 0) (i32.const 1))
    (i32.load (i32.sub (local.get 0) (i32.const 4))))
  (func $sum (export "sum") (param $at i32) (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  ;; No bound of the iterations is known before.
  (func $scan (export "scan") (param $at i32) (result i32)
    (loop $again
      (br_if $again (i32.load8_u (local.tee $at (i32.add (local.get $at) (i32.const 1))))))
    (local.get $at))
)

;; RUN: --bounds software -O3 --emit llvm-ir
;; FUNCTION: wasm[1]::fields
;; COUNT: 1 ubsantrap
;; The four stores have become one; the copy has four traps, the widest of which is certain there.
;; FUNCTION: wasm[2]::growing
;; CHECK: icmp
;; CHECK: store <4 x i32>
;; COUNT: 4 icmp
;; COUNT: 4 ubsantrap
;; FUNCTION: wasm[3]::between
;; COUNT: 2 icmp
;; COUNT: 2 ubsantrap
;; FUNCTION: wasm[4]::before
;; COUNT: 2 ubsantrap
;; A version without checks, vectorised, beside the one with them.
;; FUNCTION: wasm[5]::sum
;; CHECK: load <8 x i32>, ptr
;; COUNT: 1 ubsantrap
;; FUNCTION: wasm[6]::scan
;; COUNT: 1 ubsantrap
;; COUNT: 1 load i8

;; In other modes there is nothing to drop.
;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[1]::fields
;; NOT: ubsantrap
