;; Exports nothing that a request could call.
(module
  (memory (export "memory") 1)
  (func (export "compute") (param i32) (result i32) (local.get 0)))
