;; Nobody else sees a sandbox's memory: atomic operators are plain accesses behind a check of the alignment, which is their sum's.
(module
  (memory 1 1 shared)
  (func $add (export "add") (param i32 i32) (result i32) (i32.atomic.rmw.add offset=8 (local.get 0) (local.get 1)))
  (func $byte (export "byte") (param i32) (result i32) (i32.atomic.load8_u offset=3 (local.get 0)))
  (func $odd (export "odd") (param i32) (result i64) (i64.atomic.load offset=3 (local.get 0)))
  (func $dropped (export "dropped") (param i32) (drop (i32.atomic.rmw.or (local.get 0) (i32.const 0))))
  (func $wait (export "wait") (param i32 i32) (result i32) (memory.atomic.wait32 (local.get 0) (local.get 1) (i64.const -1)))
  (func $fence (export "fence") (atomic.fence))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; FUNCTION: wasm[0]::add
;; CHECK: and i32 %1, 3
;; CHECK: ubsantrap(i8 12)
;; CHECK: load i32
;; CHECK: store i32
;; NOT: atomicrmw
;; One byte is always aligned.
;; FUNCTION: wasm[1]::byte
;; NOT: ubsantrap
;; CHECK: load i8
;; FUNCTION: wasm[2]::odd
;; CHECK: and i32 %1, 7
;; CHECK: icmp eq i32 %4, 5
;; CHECK: ubsantrap(i8 12)
;; CHECK: load i64
;; What changes nothing, and what nobody needs, is accessed all the same.
;; FUNCTION: wasm[3]::dropped
;; CHECK: load volatile i32
;; The host is asked only where the value is the expected one.
;; FUNCTION: wasm[4]::wait
;; CHECK: load i32
;; CHECK: icmp
;; CHECK: phi i32
;; FUNCTION: wasm[5]::fence
;; COUNT: 1 fence
;; CHECK: entry:
;; CHECK: ret void

;; RUN: --bounds software -O3 --emit llvm-ir
;; The load and the store are checked once.
;; FUNCTION: wasm[0]::add
;; CHECK: ubsantrap(i8 12)
;; CHECK: ubsantrap(i8 2)
;; CHECK: store i32
