;; Replies with what it finds in its memory, globals and table (36 bytes), then with its input; then leaves dirt everywhere. Every sandbox
;; must find what the module says:
;;
;;   0 global         4 a global that the start function sets      8 first of the data segment    12 a word of untouched memory
;;  16 last word of the memory's first size    20 size of the memory in pages    24 size of the table    28 whether its last element is null
;;  32 a word of a page that it has just grown by
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3 20)
  (global $initial (mut i32) (i32.const 0x11111111))
  (global $started (mut i32) (i32.const 0))
  (table $table 4 8 funcref)
  (elem (table $table) (i32.const 0) func $start)
  (data (i32.const 100000) "\22\22\22\22")
  (data $passive "\33\33\33\33")
  (func $start (global.set $started (i32.add (global.get $started) (i32.const 1))))
  (start $start)
  (func (export "_start") (local $bytes i32)
    (i32.store (i32.const 64) (global.get $initial))
    (i32.store (i32.const 68) (global.get $started))
    (i32.store (i32.const 72) (i32.load (i32.const 100000)))
    (i32.store (i32.const 76) (i32.load (i32.const 70000)))
    (i32.store (i32.const 80) (i32.load (i32.const 196604)))
    (i32.store (i32.const 84) (memory.size))
    (i32.store (i32.const 88) (table.size $table))
    (i32.store (i32.const 92) (ref.is_null (table.get $table (i32.const 3))))
    (drop (memory.grow (i32.const 1)))
    (i32.store (i32.const 96) (i32.load (i32.const 200000)))
    (loop $read
      (i32.store (i32.const 0) (i32.add (i32.const 100) (local.get $bytes)))
      (i32.store (i32.const 4) (i32.const 4096))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (local.set $bytes (i32.add (local.get $bytes) (i32.load (i32.const 8))))
      (br_if $read (i32.load (i32.const 8))))
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.add (i32.const 36) (local.get $bytes)))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))

    (global.set $initial (i32.const -1))
    (global.set $started (i32.const -1))
    ;; A passive segment that was dropped is dropped for this sandbox only.
    (memory.init $passive (i32.const 32) (i32.const 0) (i32.const 4))
    (data.drop $passive)
    (drop (memory.grow (i32.const 5)))
    (memory.fill (i32.const 0) (i32.const 0xee) (i32.shl (memory.size) (i32.const 16)))
    (drop (table.grow $table (ref.null func) (i32.const 2)))
    (table.fill $table (i32.const 0) (ref.func $start) (table.size $table))))
