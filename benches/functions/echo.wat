;; A reactor: replies with its input, at most a mebibyte less some.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 17)
  (func (export "sledge_handle") (result i32) (local $bytes i32)
    (loop $again
      (i32.store (i32.const 0) (i32.add (i32.const 64) (local.get $bytes)))
      (i32.store (i32.const 4) (i32.sub (i32.const 0x10ff00) (local.get $bytes)))
      (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then (return (i32.const 1))))
      (local.set $bytes (i32.add (local.get $bytes) (i32.load (i32.const 8))))
      (br_if $again (i32.load (i32.const 8))))
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (local.get $bytes))
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
