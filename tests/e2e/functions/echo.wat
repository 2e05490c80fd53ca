;; Copies its input to its output, a piece at a time.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func $write (param $at i32) (param $bytes i32)
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $bytes)))
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (local.get $bytes))
        (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then (unreachable)))
        (local.set $at (i32.add (local.get $at) (i32.load (i32.const 8))))
        (local.set $bytes (i32.sub (local.get $bytes) (i32.load (i32.const 8))))
        (br $again))))
  (func (export "_start")
    (loop $again
      (i32.store (i32.const 0) (i32.const 1024))
      (i32.store (i32.const 4) (i32.const 65536))
      (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then (unreachable)))
      (call $write (i32.const 1024) (i32.load (i32.const 8)))
      (br_if $again (i32.load (i32.const 8))))))
