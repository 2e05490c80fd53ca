;; Calls in progress where there are no tasks: a stack. An instance is not entered twice, so that there are at most as many calls as instances.

;; A call in which handles may be passed begins.
(func (export "enter") (param $caller i32) (param $async i32) (param $callee i32)
  (local $call i32)
  (local.set $call (i32.add (i32.load (i32.const 8)) (i32.const 8)))
  (if (i32.gt_u (local.get $call) (global.get $calls_last)) (then (call $trap (i32.const 8))))
  (i32.store (i32.const 8) (local.get $call))
  (i64.store (local.get $call) (i64.const 0)))

;; It has returned: what it borrowed is dropped, and what was lent to it is free again.
(func (export "exit")
  (local $call i32)
  (local.set $call (i32.load (i32.const 8)))
  (if (i32.load (local.get $call)) (then (call $trap (i32.const 6))))
  (call $release_lenders (i32.load offset=4 (local.get $call)))
  (i32.store (i32.const 8) (i32.sub (local.get $call) (i32.const 8))))
