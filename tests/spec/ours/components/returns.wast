;; How a task returns: once, before it is over, and only where a function runs that is lifted as async.

(component definition $returns
  (core func $return (canon task.return (result u32)))
  (core func $return-other (canon task.return (result s32)))
  (core module $m
    (import "" "return" (func $return (param i32)))
    (import "" "return-other" (func $return_other (param i32)))
    (func (export "once") (result i32) (call $return (i32.const 7)) (i32.const 0))
    (func (export "twice") (result i32) (call $return (i32.const 7)) (call $return (i32.const 8)) (i32.const 0))
    (func (export "never") (result i32) (i32.const 0))
    (func (export "other") (result i32) (call $return_other (i32.const 7)) (i32.const 0))
    (func (export "synchronous") (result i32) (call $return (i32.const 7)) (i32.const 7))
    (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m (with "" (instance
    (export "return" (func $return)) (export "return-other" (func $return-other))))))
  (func (export "once") async (result u32) (canon lift (core func $i "once") async (callback (core func $i "callback"))))
  (func (export "twice") async (result u32) (canon lift (core func $i "twice") async (callback (core func $i "callback"))))
  (func (export "never") async (result u32) (canon lift (core func $i "never") async (callback (core func $i "callback"))))
  (func (export "other") async (result u32) (canon lift (core func $i "other") async (callback (core func $i "callback"))))
  (func (export "synchronous") (result u32) (canon lift (core func $i "synchronous"))))

(component instance $i $returns)
(assert_return (invoke "once") (u32.const 7))
(assert_trap (invoke "twice") "`task.return` or `task.cancel` called more than once for current task")
(component instance $i $returns)
(assert_trap (invoke "never") "async-lifted export failed to produce a result")
(component instance $i $returns)
(assert_trap (invoke "other") "invalid `task.return` signature and/or options for current task")
(component instance $i $returns)
(assert_trap (invoke "synchronous") "invalid `task.return` signature and/or options for current task")
