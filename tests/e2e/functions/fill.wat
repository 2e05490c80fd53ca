;; Fills a gibibyte, again and again, with one instruction each time.
(module
  (memory (export "memory") 16384)
  (func (export "_start")
    (loop $again
      (memory.fill (i32.const 0) (i32.const 0xa5) (i32.const 0x40000000))
      (memory.copy (i32.const 0) (i32.const 1) (i32.const 0x3fffffff))
      (br $again))))
