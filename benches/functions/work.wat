;; A reactor: takes tens of milliseconds, as many as its input's number (u64, little-endian) of rounds, then replies with one byte.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "sledge_handle") (result i32) (local $left i64) (local $state i64)
    (i32.store (i32.const 0) (i32.const 32))
    (i32.store (i32.const 4) (i32.const 8))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $left (i64.load (i32.const 32)))
    (local.set $state (i64.const 1))
    (loop $again
      (local.set $state (i64.add (i64.mul (local.get $state) (i64.const 6364136223846793005)) (local.get $left)))
      (local.set $left (i64.sub (local.get $left) (i64.const 1)))
      (br_if $again (i64.gt_s (local.get $left) (i64.const 0))))
    (i64.store (i32.const 40) (local.get $state))
    (i32.store (i32.const 0) (i32.const 40))
    (i32.store (i32.const 4) (i32.const 1))
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
