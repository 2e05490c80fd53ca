;; A reactor whose initialisation fills 32 MiB, and which fills them anew for each request, so that every sandbox of it has as much for itself; replies with the last one of those bytes.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 512)
  (func (export "_initialize") (memory.fill (i32.const 1024) (i32.const 0x68) (i32.const 0x1fffc00)))
  (func (export "sledge_handle") (result i32)
    (memory.fill (i32.const 1024) (i32.const 0x69) (i32.const 0x1fffbff))
    (i32.store (i32.const 0) (i32.const 0x1ffffff))
    (i32.store (i32.const 4) (i32.const 1))
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
