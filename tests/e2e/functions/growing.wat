;; A reactor: grows its memory by a page, fills that, and replies with its last byte.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "sledge_handle") (result i32)
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const 2)) (then (return (i32.const 1))))
    (memory.fill (i32.const 0x20000) (i32.const 0x67) (i32.const 0x10000))
    (i32.store (i32.const 0) (i32.const 0x2ffff))
    (i32.store (i32.const 4) (i32.const 1))
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
