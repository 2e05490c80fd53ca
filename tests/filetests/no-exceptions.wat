;; A module without tags pays nothing for exceptions, whatever it calls: functions return their results, and nothing is asked behind a call. Unless it
;; is to let those of other modules through.
(module
  (type $f (func (param i32) (result i32)))
  (import "host" "f" (func $import (type $f)))
  (table 1 funcref)
  (func (export "calls") (param i32) (result i32) (call $import (local.get 0)))
  (func (export "indirect") (param i32) (result i32) (call_indirect (type $f) (local.get 0) (i32.const 0)))
  (func (export "reference") (param (ref $f)) (result i32) (call_ref $f (i32.const 1) (local.get 0)))
  (func (export "try") (param i32) (result i32)
    (block $all
      (return (try_table (result i32) (catch_all $all) (call $import (local.get 0)))))
    (i32.const -1))
)

;; RUN: -O0 --emit llvm-ir
;; NOT: { i32, i64 }
;; FUNCTION: wasm[1]::calls
;; CHECK: define weak_odr hidden tailcc i32
;; CHECK: notail call tailcc i32 %
;; NOT: icmp
;; FUNCTION: wasm[2]::indirect
;; COUNT: 3 icmp
;; FUNCTION: wasm[3]::reference
;; COUNT: 1 icmp
;; CHECK: notail call tailcc i32 %
;; FUNCTION: wasm[4]::try
;; CHECK: notail call tailcc i32 %
;; NOT: icmp

;; RUN: -O0 --emit llvm-ir --foreign-exceptions
;; FUNCTION: wasm[1]::calls
;; CHECK: define weak_odr hidden tailcc { i32, i64 }
;; CHECK: notail call tailcc { i32, i64 } %
;; COUNT: 1 icmp ne i64
;; FUNCTION: wasm[4]::try
;; COUNT: 1 icmp ne i64
