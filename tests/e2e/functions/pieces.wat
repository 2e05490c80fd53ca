;; A reactor that needs whatever a sandbox can be made of: a memory that grows, pages written to here and there, a table that grows, exceptions.
;; Replies with the last byte of its memory; fails with 1 where it does not grow.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 16 64)
  (table $table 10 100000 funcref)
  (tag $tag (param i32))
  (func $write (param $at i32)
    (i32.store8 (local.get $at) (i32.const 0x67)))
  (func (export "sledge_handle") (result i32)
    (local $at i32)
    (drop (block $caught (result i32)
      (try_table (catch $tag $caught) (throw $tag (i32.const 7)))
      (unreachable)))
    (if (i32.ne (table.grow $table (ref.null func) (i32.const 50000)) (i32.const 10)) (then (return (i32.const 1))))
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const 16)) (then (return (i32.const 1))))
    (loop $next
      (call $write (local.get $at))
      (local.set $at (i32.add (local.get $at) (i32.const 0xffff)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 0x110000))))
    (call $write (i32.const 0x10ffff))
    (i32.store (i32.const 0) (i32.const 0x10ffff))
    (i32.store (i32.const 4) (i32.const 1))
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
