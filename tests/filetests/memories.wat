;; Two defined memories are apart, two imported ones may be one.
(module
  (import "env" "a" (memory $a 1))
  (import "env" "b" (memory $b 1))
  (memory $c 1)
  (memory $d 1)
  (func $imported (export "imported") (param i32) (result i32)
    (i32.store $a (local.get 0) (i32.const 1))
    (i32.store $b (local.get 0) (i32.const 2))
    (i32.load $a (local.get 0)))
  (func $defined (export "defined") (param i32) (result i32)
    (i32.store $c (local.get 0) (i32.const 1))
    (i32.store $d (local.get 0) (i32.const 2))
    (i32.load $c (local.get 0)))
  (func $mixed (export "mixed") (param i32) (result i32)
    (i32.store $a (local.get 0) (i32.const 1))
    (i32.store $c (local.get 0) (i32.const 2))
    (i32.load $a (local.get 0)))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::imported
;; COUNT: 2 store i32
;; CHECK: load i32
;; CHECK: ret i32 %
;; FUNCTION: wasm[1]::defined
;; COUNT: 2 store i32
;; CHECK: ret i32 1
;; FUNCTION: wasm[2]::mixed
;; COUNT: 2 store i32
;; CHECK: ret i32 1
