;; Counts to the number at the start of its input (u64, little-endian), then replies with the input.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start") (local $bytes i32)
    (loop $read
      (i32.store (i32.const 0) (i32.add (i32.const 1024) (local.get $bytes)))
      (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (local.set $bytes (i32.add (local.get $bytes) (i32.load (i32.const 8))))
      (br_if $read (i32.load (i32.const 8))))
    (i64.store (i32.const 16) (i64.const 0))
    (block $done
      (loop $count
        (br_if $done (i64.ge_u (i64.load (i32.const 16)) (i64.load (i32.const 1024))))
        (i64.store (i32.const 16) (i64.add (i64.load (i32.const 16)) (i64.const 1)))
        ;; What has no formula: otherwise a compiler sees how far this counts, and leaves the counting out.
        (i64.store (i32.const 24)
          (i64.xor (i64.mul (i64.load (i32.const 24)) (i64.const 6364136223846793005)) (i64.load (i32.const 16))))
        (br $count)))
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (local.get $bytes))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
