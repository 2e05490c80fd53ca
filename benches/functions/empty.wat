;; The empty function: a reactor that does nothing, with a memory of one page.
(module
  (memory (export "memory") 1)
  (func (export "sledge_handle") (result i32) (i32.const 0)))
