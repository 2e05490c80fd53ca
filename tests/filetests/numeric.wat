;; Arithmetic that traps says why; arithmetic that does not has no check.
(module
  (func $div_s (export "div_s") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func $div_by_3 (export "div_by_3") (param i32) (result i32) (i32.div_s (local.get 0) (i32.const 3)))
  (func $dropped (export "dropped") (param i64 i64) (drop (i64.rem_u (local.get 0) (local.get 1))))
  (func $trunc (export "trunc") (param f64) (result i32) (i32.trunc_f64_s (local.get 0)))
  (func $trunc_sat (export "trunc_sat") (param f64) (result i32) (i32.trunc_sat_f64_s (local.get 0)))
  (func $add (export "add") (param f64 f64 f64) (result f64) (f64.add (f64.mul (local.get 0) (local.get 1)) (local.get 2)))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; 7: integer divide by zero, 8: integer overflow, 9: invalid conversion to integer.
;; FUNCTION: wasm[0]::div_s
;; COUNT: 1 call void @llvm.ubsantrap(i8 7)
;; COUNT: 1 call void @llvm.ubsantrap(i8 8)
;; CHECK: sdiv i32
;; FUNCTION: wasm[1]::div_by_3
;; NOT: ubsantrap
;; FUNCTION: wasm[2]::dropped
;; COUNT: 1 call void @llvm.ubsantrap(i8 7)
;; NOT: urem
;; FUNCTION: wasm[3]::trunc
;; COUNT: 1 call void @llvm.ubsantrap(i8 8)
;; COUNT: 1 call void @llvm.ubsantrap(i8 9)
;; FUNCTION: wasm[4]::trunc_sat
;; NOT: ubsantrap
;; Not fused: a product is rounded.
;; FUNCTION: wasm[5]::add
;; CHECK: fmul double
;; CHECK: fadd double
;; NOT: fma
;; NOT: fmul fast
;; NOT: fadd fast

;; RUN: --bounds guard -O3 --emit asm
;; FUNCTION: wasm[5]::add
;; CHECK: vmulsd
;; CHECK: vaddsd
;; NOT: vfmadd
