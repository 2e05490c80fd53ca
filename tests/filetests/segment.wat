;; Mode `segment`: the first memory lies behind %gs, others are guarded as usual; only calls that leave the instance look after the register.
(module
  (import "env" "f" (func $f))
  (memory $m 1)
  (memory $n 1)
  (table 1 funcref)
  (func $load (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func $store (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func $second (export "second") (param i32) (result i32) (i32.load $n (local.get 0)))
  (func $dropped (export "dropped") (param i32) (drop (i32.load (local.get 0))))
  ;; Would be a call of memset, which knows no segments.
  (func $zero (export "zero") (param $at i32) (param $n i32)
    (loop $again
      (i32.store8 (local.get $at) (i32.const 0))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $fill (export "fill") (param i32 i32) (memory.fill (local.get 0) (i32.const 0) (local.get 1)))
  (func $direct (export "direct") (param i32) (result i32) (call $load (local.get 0)))
  (func $indirect (export "indirect") (call_indirect (i32.const 0)))
  (func $import (export "import") (call $f))
  (func $tail (export "tail") (return_call_indirect (i32.const 0)))
)

;; RUN: --bounds segment -O3 --emit llvm-ir
;; FUNCTION: wasm[1]::load
;; CHECK: load i32, ptr addrspace(256)
;; NOT: load ptr
;; FUNCTION: wasm[2]::store
;; CHECK: store i64 %2, ptr addrspace(256)
;; FUNCTION: wasm[3]::second
;; NOT: addrspace(256)
;; FUNCTION: wasm[4]::dropped
;; COUNT: 1 load volatile i32, ptr addrspace(256)
;; FUNCTION: wasm[5]::zero
;; NOT: memset
;; FUNCTION: wasm[6]::fill
;; CHECK: call void @llvm.memset.p0
;; The builtin that switches (-2147483636), before leaving and after coming back.
;; FUNCTION: wasm[7]::direct
;; NOT: -2147483636
;; FUNCTION: wasm[8]::indirect
;; COUNT: 2 i32 -2147483636
;; FUNCTION: wasm[9]::import
;; COUNT: 2 i32 -2147483636
;; FUNCTION: wasm[10]::tail
;; COUNT: 1 i32 -2147483636

;; RUN: --bounds segment -O3 --emit asm
;; FUNCTION: wasm[1]::load
;; CHECK: movl	%gs:8(%r
;; COUNT: 2 mov
