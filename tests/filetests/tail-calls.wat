;; Tail calls give up their caller's frame at every level; what makes them or is reached by address has the convention that all modules share,
;; in which nothing is passed on the stack. Functions that only direct calls reach have the faster one.
(module
  (table 2 funcref)
  (elem (i32.const 0) $pointed)
  (func $direct (export "direct") (param i32) (result i32) (return_call $callee (local.get 0)))
  (func $callee (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 5))))
    (return_call $callee (i32.sub (local.get 0) (i32.const 1))))
  (func $indirect (export "indirect") (param i32) (result i32)
    (return_call_indirect (param i32) (result i32) (local.get 0) (i32.const 0)))
  (func $pointed (param i32) (result i32) (local.get 0))
  (func $many (export "many") (param i64 i64 i64 i64 i64 i64 i64) (result i64)
    (return_call $many (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 0)))
  (func $results (export "results") (param i64) (result i64 i64 i64 i64)
    (return_call $results (i64.add (local.get 0) (i64.const 1))))
  (func $plain (param i64 i64 i64 i64 i64 i64 i64) (result i64)
    (i64.add (local.get 6) (call $plain (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 0))))
  (func $uses_plain (export "uses plain") (result i64)
    (call $plain (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7)))
)

;; RUN: -O0 --emit llvm-ir
;; FUNCTION: wasm[0]::direct
;; CHECK: musttail call tailcc i32 @"wasm[1]::callee"
;; CHECK: ret i32
;; FUNCTION: wasm[2]::indirect
;; CHECK: musttail call tailcc i32 %
;; CHECK: ret i32
;; FUNCTION: wasm[4]::many
;; Two of the seven parameters find no register.
;; CHECK: tailcc i64 @"wasm[4]::many"(ptr
;; COUNT: 2 load i64
;; COUNT: 2 store i64
;; CHECK: musttail call tailcc i64 @"wasm[4]::many"(ptr %0, i64 %2, i64 %3, i64 %4, i64 %5, i64 %
;; FUNCTION: wasm[5]::results
;; CHECK: musttail call tailcc void @"wasm[5]::results"(ptr %0, ptr %1, i64
;; FUNCTION: wasm[6]::plain
;; CHECK: notail call fastcc i64 @"wasm[6]::plain"(ptr %0, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, i64 %7, i64 %1)

;; RUN: -O3 --emit asm
;; FUNCTION: wasm[1]::callee
;; NOT: callq
;; FUNCTION: wasm[4]::many
;; NOT: callq
;; CHECK: jmp
