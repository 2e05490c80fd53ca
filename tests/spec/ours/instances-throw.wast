;; An exception that comes out of another instance finds its handler's own memory (see instances.wast).

(module $T
  (tag $e (export "e"))
  (memory 1)
  (data (i32.const 0) "\15")
  (func (export "throw") (drop (i32.load8_u (i32.const 0))) (throw $e))
)
(register "T" $T)
(module $U
  (import "T" "e" (tag $e))
  (import "T" "throw" (func $throw))
  (memory 1)
  (data (i32.const 0) "\16")
  (func (export "caught") (result i32)
    (block $caught (try_table (catch $e $caught) (call $throw)))
    (i32.load8_u (i32.const 0)))
)
(assert_return (invoke $U "caught") (i32.const 0x16))
(assert_exception (invoke $T "throw"))
(assert_return (invoke $U "caught") (i32.const 0x16))
