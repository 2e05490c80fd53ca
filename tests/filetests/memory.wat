;; Loads and stores: one instruction where the memory is guarded, a comparison before it where it is not; and none that gets lost.
(module
  (memory 1)
  (func $load (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func $store (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func $dropped (export "dropped") (param i32) (drop (i32.load (local.get 0))))
  (func $same (export "same") (param i32) (i32.store (local.get 0) (i32.load (local.get 0))))
  (func $sum (export "sum") (param $at i32) (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (func $forwarded (export "forwarded") (param i32) (result i32)
    (i32.store (local.get 0) (i32.const 1))
    (i32.store offset=4 (local.get 0) (i32.const 2))
    (i32.load (local.get 0)))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::load
;; CHECK: zext i32 %1 to i64
;; CHECK: load i32, ptr
;; NOT: icmp
;; NOT: ubsantrap
;; FUNCTION: wasm[1]::store
;; CHECK: store i64 %2, ptr
;; NOT: icmp
;; A value that nobody needs: the access stays, for its trap.
;; FUNCTION: wasm[2]::dropped
;; COUNT: 1 load volatile i32
;; FUNCTION: wasm[3]::same
;; COUNT: 1 load volatile i32
;; A rolled loop is vectorised.
;; FUNCTION: wasm[4]::sum
;; CHECK: load <8 x i32>, ptr
;; NOT: ubsantrap
;; The memory's base is loaded once: stores to the memory do not change it. A loaded value that is known is not loaded again.
;; FUNCTION: wasm[5]::forwarded
;; COUNT: 1 load ptr
;; COUNT: 2 store i32
;; NOT: load i32
;; CHECK: ret i32 1

;; The index is zero-extended by a 32-bit move; index and offset fold into the address.
;; RUN: --bounds guard -O3 --emit asm
;; FUNCTION: wasm[0]::load
;; CHECK: movl	%esi, %e
;; CHECK: movl	8(%r
;; COUNT: 3 mov
;; FUNCTION: wasm[2]::dropped
;; CHECK: (%r

;; RUN: --bounds software -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::load
;; CHECK: add nuw nsw i64
;; CHECK: icmp ugt i64
;; CHECK: call void @llvm.ubsantrap(i8 2)
;; CHECK: load i32, ptr
;; FUNCTION: wasm[2]::dropped
;; COUNT: 1 call void @llvm.ubsantrap(i8 2)
;; FUNCTION: wasm[5]::forwarded
;; COUNT: 2 icmp ugt i64
