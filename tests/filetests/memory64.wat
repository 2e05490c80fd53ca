;; 64-bit addresses are compared with the memory's length in every bounds mode: with what is left of it behind the access, which saturates.
(module
  (memory i64 1)
  (func $load (export "load") (param i64) (result i32) (i32.load offset=8 (local.get 0)))
  (func $dropped (export "dropped") (param i64) (drop (i32.load (local.get 0))))
  (func $far (export "far") (param i64) (result i32) (i32.load offset=0xffffffffffffffff (local.get 0)))
  (func $fill (export "fill") (param i64 i64) (memory.fill (local.get 0) (i32.const 0) (local.get 1)))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::load
;; CHECK: @llvm.usub.sat.i64(i64 %
;; CHECK: ubsantrap(i8 2)
;; CHECK: load i32
;; NOT: volatile
;; FUNCTION: wasm[1]::dropped
;; CHECK: ubsantrap(i8 2)
;; No memory is that long.
;; FUNCTION: wasm[2]::far
;; CHECK: ubsantrap(i8 2)
;; NOT: load
;; FUNCTION: wasm[3]::fill
;; CHECK: @llvm.uadd.sat.i64
;; CHECK: ubsantrap(i8 2)

;; RUN: --bounds none -O0 --emit llvm-ir
;; FUNCTION: wasm[0]::load
;; CHECK: @llvm.usub.sat.i64(i64 %
;; CHECK: ubsantrap(i8 2)
