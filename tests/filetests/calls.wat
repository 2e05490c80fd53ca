;; Calls: direct ones are direct, indirect ones check bounds, null and type; recursion stays recursion.
(module
  (type $binary (func (param i32 i32) (result i32)))
  (import "env" "host" (func $host (param i32) (result i32)))
  (table 4 4 funcref)
  (func $add (type $binary) (i32.add (local.get 0) (local.get 1)))
  (func $direct (export "direct") (param i32) (result i32) (call $recurse (local.get 0)))
  (func $indirect (export "indirect") (param i32) (result i32)
    (call_indirect (type $binary) (i32.const 1) (i32.const 2) (local.get 0)))
  (func $recurse (param i32) (result i32) (i32.add (i32.const 1) (call $recurse (local.get 0))))
  (func $to_host (export "to_host") (param i32) (result i32) (call $host (local.get 0)))
  (elem (i32.const 0) $add)
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[3]::indirect
;; 4: undefined element, 5: uninitialized element, 6: type mismatch.
;; COUNT: 1 call void @llvm.ubsantrap(i8 4)
;; COUNT: 1 call void @llvm.ubsantrap(i8 5)
;; COUNT: 1 call void @llvm.ubsantrap(i8 6)
;; CHECK: tailcc i32 %
;; Neither a loop nor removed: endless recursion uses up the stack.
;; FUNCTION: wasm[4]::recurse
;; CHECK: call fastcc i32 @"wasm[4]::recurse"
;; FUNCTION: wasm[2]::direct
;; CHECK: call fastcc i32 @"wasm[4]::recurse"
;; NOT: ubsantrap
