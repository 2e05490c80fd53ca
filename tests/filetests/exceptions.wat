;; Functions that may throw return an exception or zero behind their results; a throw is a branch or a return. What cannot throw is called as if there were
;; no exceptions; functions that are reached by address return zero then.
(module
  (tag $e (param i32))
  (import "host" "f" (func $import (param i32)))
  (func $quiet (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
  (func $throws (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (throw $e (i32.const 5))))
    (local.get 0))
  (func $calls_quiet (export "calls quiet") (param i32) (result i32) (call $quiet (local.get 0)))
  (func $calls_throws (param i32) (result i32) (i32.add (call $throws (local.get 0)) (i32.const 1)))
  ;; Whatever is thrown is caught: does not throw, although it calls what does.
  (func $protects (param i32) (result i32)
    (block $all
      (return (try_table (result i32) (catch_all $all) (call $calls_throws (local.get 0)))))
    (i32.const -1))
  (func (export "main") (param i32) (result i32) (call $protects (local.get 0)))
  (func (export "import") (param i32) (call $import (local.get 0)))
  ;; Thrown and caught by one: no call, and nothing asks whether something was thrown.
  (func (export "within") (param i32) (result i32)
    (block $e (result i32)
      (try_table (result i32) (catch $e $e) (call $throws (local.get 0)))))
)

;; RUN: -O0 --emit llvm-ir
;; FUNCTION: wasm[1]::quiet
;; CHECK: define linkonce_odr hidden fastcc i32
;; FUNCTION: wasm[2]::throws
;; CHECK: define linkonce_odr hidden fastcc { i32, i64 }
;; CHECK: getelementptr
;; CHECK: ret { i32, i64 }
;; FUNCTION: wasm[3]::calls_quiet
;; CHECK: define weak_odr hidden tailcc { i32, i64 }
;; CHECK: notail call fastcc i32 @"wasm[1]::quiet"
;; NOT: icmp
;; CHECK: i64 0
;; FUNCTION: wasm[4]::calls_throws
;; CHECK: notail call fastcc { i32, i64 } @"wasm[2]::throws"
;; CHECK: icmp ne i64
;; CHECK: br i1
;; FUNCTION: wasm[5]::protects
;; CHECK: define linkonce_odr hidden fastcc i32
;; FUNCTION: wasm[6]::main
;; CHECK: notail call fastcc i32 @"wasm[5]::protects"
;; NOT: icmp
;; FUNCTION: wasm[7]::import
;; CHECK: notail call tailcc i64 %
;; CHECK: icmp ne i64
;; FUNCTION: entry[1]
;; CHECK: call tailcc { i32, i64 } %
;; CHECK: icmp ne i64
;; CHECK: @llvm.ubsantrap(i8 13)

;; RUN: -O3 --emit llvm-ir
;; FUNCTION: wasm[8]::within
;; NOT: @"wasm[2]::throws"
;; NOT: icmp eq i64
;; NOT: icmp ne i64
;; CHECK: icmp eq i32
