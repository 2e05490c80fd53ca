;; Sets 3,000 keys of the bucket "bin" that are not UTF-8: a byte 0xff, and a number of four bytes.
(module
  (import "sledge:kv" "open" (func $open (param i32 i32) (result i32)))
  (import "sledge:kv" "set" (func $set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "bin")
  (data (i32.const 32) "\ff")
  (func (export "sledge_handle") (result i32)
    (local $bucket i32) (local $count i32)
    (local.set $bucket (call $open (i32.const 16) (i32.const 3)))
    (loop $next
      (i32.store (i32.const 33) (local.get $count))
      (if (call $set (local.get $bucket) (i32.const 32) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 0))
        (then (return (i32.const 1))))
      (local.set $count (i32.add (local.get $count) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $count) (i32.const 3000))))
    (i32.const 0)))
