;; Grows its memory until that is refused; then, if its input begins with "t", traps, else replies with the number of pages (u32).
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 32))
    (i32.store (i32.const 4) (i32.const 1))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (block $refused
      (loop $again
        (br_if $refused (i32.eq (memory.grow (i32.const 1)) (i32.const -1)))
        ;; The last byte of the new page is there.
        (i32.store8 (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 1)) (i32.const 1))
        (br $again)))
    (if (i32.eq (i32.load8_u (i32.const 32)) (i32.const 0x74)) (then (unreachable)))
    (i32.store (i32.const 16) (memory.size))
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 4))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
