;; Waits for the time at the start of its input (i64, nanoseconds, little-endian) for its memory to change, which nobody changes.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1 1 shared)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 8))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 2048) (memory.atomic.wait32 (i32.const 128) (i32.const 0) (i64.load (i32.const 1024))))
    (i32.store (i32.const 2052) (i32.add (i32.const 1) (i32.atomic.rmw.add (i32.const 132) (i32.const 1))))
    (i32.store (i32.const 0) (i32.const 2048))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
