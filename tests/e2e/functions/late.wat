;; Streams: counts for a while, writes `now`, and then never ends.
(module
  (import "sledge:http" "stream" (func $stream (param i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "now")
  (func (export "_start")
    (if (call $stream (i64.const -1)) (then unreachable))
    (loop $count
      (i64.store (i32.const 24) (i64.add (i64.load (i32.const 24)) (i64.const 1)))
      ;; What has no formula: otherwise a compiler leaves the counting out.
      (i64.store (i32.const 32)
        (i64.xor (i64.mul (i64.load (i32.const 32)) (i64.const 6364136223846793005)) (i64.load (i32.const 24))))
      (br_if $count (i64.lt_u (i64.load (i32.const 24)) (i64.const 20_000_000))))
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 3))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop (br 0))))
