;; A call of a typed reference needs no look at the type, and one through a table asks the host about subtypes only where the type has any.
(module
  (type $f (func (param i32) (result i32)))
  (type $open (sub (func (param i64) (result i64))))
  (table $t 4 funcref)
  (func (export "call") (param (ref null $f)) (result i32) (call_ref $f (i32.const 1) (local.get 0)))
  (func (export "tail") (param (ref null $f)) (result i32) (return_call_ref $f (i32.const 1) (local.get 0)))
  (func (export "final") (param i32) (result i32) (call_indirect $t (type $f) (i32.const 1) (local.get 0)))
  (func (export "open") (param i32) (result i64) (call_indirect $t (type $open) (i64.const 1) (local.get 0)))
)

;; RUN: -O0 --emit llvm-ir
;; FUNCTION: wasm[0]::call
;; CHECK: define weak_odr hidden tailcc i32 @"wasm[0]::call"(ptr
;; CHECK: icmp eq i64
;; CHECK: @llvm.ubsantrap(i8 11)
;; CHECK: lshr i128 %1, 96
;; CHECK: notail call tailcc i32 %
;; COUNT: 1 icmp
;; FUNCTION: wasm[1]::tail
;; CHECK: musttail call tailcc i32 %
;; FUNCTION: wasm[2]::final
;; COUNT: 3 icmp
;; COUNT: 1 notail call
;; FUNCTION: wasm[3]::open
;; COUNT: 4 icmp
;; COUNT: 2 notail call
