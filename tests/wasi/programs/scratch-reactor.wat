;; A reactor that adds one to the first byte of the file `kept` in its first folder, and answers with what it was. `init` does the same before all requests.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pwrite" (func $fd_pwrite (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "kept")
  ;; The buffer: 2 bytes at 200, the calls so far and the byte.
  (data (i32.const 16) "\c8\00\00\00\02\00\00\00")
  ;; The buffer: the byte.
  (data (i32.const 32) "\c9\00\00\00\01\00\00\00")
  (data (i32.const 200) "0")
  (func $must (param i32) (if (local.get 0) (then (unreachable))))
  (func $add (export "init")
    (call $must (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0)
      (i64.const 0x66) (i64.const 0) (i32.const 0) (i32.const 8)))
    (call $must (call $fd_pread (i32.load (i32.const 8)) (i32.const 32) (i32.const 1) (i64.const 0) (i32.const 24)))
    (i32.store8 (i32.const 201) (i32.add (i32.load8_u (i32.const 201)) (i32.const 1)))
    (call $must (call $fd_pwrite (i32.load (i32.const 8)) (i32.const 32) (i32.const 1) (i64.const 0) (i32.const 24)))
    (call $must (call $fd_close (i32.load (i32.const 8)))))
  (func (export "sledge_handle") (result i32)
    (call $add)
    (i32.store8 (i32.const 200) (i32.add (i32.load8_u (i32.const 200)) (i32.const 1)))
    (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8))))
