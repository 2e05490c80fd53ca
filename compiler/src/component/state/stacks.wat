;; Stacks. Code that waits inside of a call keeps its stack, and what else can run has another one: the host has as many as were asked for, each with a call
;; of `stack` on it, and `$host_switch` leaves this one for another until it is left in turn. So each call goes on as soon as its own event has come.
;;
;; A switch is two crossings to the host, and a first use of a stack costs more. So a stack is left only where it has to be:
;;
;; - Where nothing else can run, what waits asks the host on its own stack.
;; - A task of an instance whose code has nothing to wait with runs on top of what waits. It is back before anything else happens.
;; - A call begins on its caller's stack unless the callee's code may wait: then it begins apart, and the caller is the next that goes on.
;;
;; A stack, 96 bytes. It stands in queues and lists as a task does:
;;
;;   0   its number at the host     36  whether a call waits on it            56  5 while it is left or waits, else 0
;;   12  the instance that it       48  next in the queue of what may run     72  next of those that wait with it, or that are idle
;;       waits to enter             52  the set for which it waits            76  whether it is in that queue
;;   32  the task that began on it
;;
;; Whether a call waits on it: 2 where one does, and what runs on top of that has been left, too.
;; Whatever makes it go on, it looks for itself whether what it waits for has come. `state.rs` has `$stack`, the one that runs; at first the host's own.

;; First of those on which nothing runs.
(global $idle (mut i32) (i32.const 0))
;; How many were started beside the first.
(global $started (mut i32) (i32.const 0))
;; A task that is to run on the stack that runs next, and the call that was in progress where it comes from.
(global $handed (mut i32) (i32.const 0))
(global $handed_call (mut i32) (i32.const 0))
;; The server's task, which ends all. Zero from when a stack has found that it is over.
(global $root (mut i32) (i32.const 0))

;; Whether a task may wait inside of a call.
(func $may_wait (param $task i32) (result i32)
  (if (i32.eqz (i32.and (i32.load offset=40 (local.get $task)) (i32.const 4))) (then (return (i32.const 0))))
  (i32.load offset=20 (i32.load offset=12 (local.get $task))))

;; Leaves this stack for another, until something leaves another for it.
(func $switch (param $to i32)
  (local $here i32)
  (local.set $here (global.get $stack))
  (global.set $stack (local.get $to))
  (call $host_switch (i32.load (local.get $to)))
  (global.set $stack (local.get $here)))

;; A stack on which nothing runs. The last one is only for a task that is none: what finds that the server's task is over.
(func $other (param $task i32) (result i32)
  (local $stack i32)
  (local.set $stack (global.get $idle))
  (if (local.get $stack)
    (then (global.set $idle (i32.load offset=72 (local.get $stack))))
    (else
      (local.set $stack (call $take_small))
      (global.set $started (i32.add (global.get $started) (i32.const 1)))
      (if
        (i32.ge_u
          (i32.add (global.get $started) (i32.ne (local.get $task) (i32.const 0)))
          (global.get $stacks_max))
        (then (call $trap (i32.const 44))))
      (i32.store (local.get $stack) (global.get $started))))
  (local.get $stack))

;; Leaves this stack for one on which a task runs.
(func $hand (param $task i32)
  (global.set $handed (local.get $task))
  (global.set $handed_call (i32.load (i32.const 8)))
  (call $switch (call $other (local.get $task))))

;; What runs on a stack where nothing waits: one task after the other. The stack that finds that the server's task is over ends the invocation, as soon as the host
;; has done what it still does: the first stack returns for that. What runs until then has other stacks. Where one of them has nothing more to run, it is idle: if it
;; ended the invocation, too, it would never be, and each task would need one more.
(func $serve
  (local $here i32) (local $next i32) (local $root i32)
  (local.set $here (global.get $stack))
  (loop $more
    (local.set $next (global.get $handed))
    (i32.store (i32.const 8) (i32.const 0))
    (global.set $context_0 (i32.const 0))
    (global.set $context_1 (i32.const 0))
    (if (local.get $next)
      (then
        (global.set $handed (i32.const 0))
        (i32.store (i32.const 8) (global.get $handed_call)))
      (else
        (local.set $root (global.get $root))
        (if (local.get $root)
          (then
            (if (i32.eq (i32.load offset=56 (local.get $root)) (i32.const 4))
              (then
                (global.set $root (i32.const 0))
                (if (i32.load (local.get $here))
                  (then
                    (drop
                      (call_indirect $entries (type $entry_run)
                        (local.get $root)
                        (i32.add (i32.load offset=28 (local.get $root)) (i32.const 3))))))
                (return)))))
        (local.set $next (call $next))))
    (if (i32.eqz (local.get $next))
      (then
        (call $ask_host)
        (br $more)))
    (if (i32.eq (i32.load offset=56 (local.get $next)) (i32.const 5))
      (then
        (i32.store offset=72 (local.get $here) (global.get $idle))
        (global.set $idle (local.get $here))
        (call $switch (local.get $next))
        (br $more)))
    (i32.store offset=32 (local.get $here) (local.get $next))
    (call $execute (local.get $next))
    (i32.store offset=32 (local.get $here) (i32.const 0))
    (br $more)))

;; What the host starts on each further stack.
(func (export "stack")
  (call $serve)
  unreachable)

(func $ask_host
  (global.set $turns (i32.const 0))
  (call $wait_for_host))

;; A call waits until this stack may run again, which may be too early. No instance is entered meanwhile.
(func $suspend
  (local $here i32) (local $next i32)
  (local $call i32) (local $context_0 i32) (local $context_1 i32) (local $may_block i32)
  (local.set $here (global.get $stack))
  ;; What runs on top of a call that waits has nothing to wait with.
  (if (i32.load offset=36 (local.get $here)) (then (call $trap (i32.const 20))))
  (i32.store offset=36 (local.get $here) (i32.const 1))
  (i32.store offset=56 (local.get $here) (i32.const 5))
  ;; What called it from another stack may return now.
  (if (i32.load offset=32 (local.get $here))
    (then (i32.store offset=8 (i32.load offset=32 (local.get $here)) (i32.const 0))))
  (local.set $call (i32.load (i32.const 8)))
  (local.set $context_0 (global.get $context_0))
  (local.set $context_1 (global.get $context_1))
  (local.set $may_block (global.get $may_block))
  (i32.store (i32.const 8) (i32.const 0))
  (global.set $context_0 (i32.const 0))
  (global.set $context_1 (i32.const 0))
  (block $done
    (loop $more
      (local.set $next (call $next))
      (br_if $done (i32.eq (local.get $next) (local.get $here)))
      (if (i32.eqz (local.get $next))
        (then
          (call $ask_host)
          (br $more)))
      (if (i32.eq (i32.load offset=56 (local.get $next)) (i32.const 5))
        (then
          (call $switch (local.get $next))
          (br $done)))
      (if (call $may_wait (local.get $next))
        (then
          (call $hand (local.get $next))
          (br $done)))
      (call $execute (local.get $next))
      ;; Where that was the server's task, and is over, a stack on which nothing waits ends the invocation. This one may still go on before that.
      (if (i32.eq (local.get $next) (global.get $root))
        (then
          (if (i32.eq (i32.load offset=56 (local.get $next)) (i32.const 4))
            (then
              (call $hand (i32.const 0))
              (br $done)))))
      (br $more)))
  (i32.store offset=36 (local.get $here) (i32.const 0))
  (i32.store offset=56 (local.get $here) (i32.const 0))
  (i32.store (i32.const 8) (local.get $call))
  (global.set $context_0 (local.get $context_0))
  (global.set $context_1 (local.get $context_1))
  (global.set $may_block (local.get $may_block)))

;; Has a task run on a stack of its own until it waits or is done, or where there is none what waits on that stack, and then goes on.
(func $run_apart (param $task i32) (param $stack i32)
  (local $waits i32) (local $here i32) (local $call i32) (local $context_0 i32) (local $context_1 i32) (local $may_block i32)
  (local.set $here (global.get $stack))
  (local.set $call (i32.load (i32.const 8)))
  (local.set $context_0 (global.get $context_0))
  (local.set $context_1 (global.get $context_1))
  (local.set $may_block (global.get $may_block))
  (i32.store offset=56 (local.get $here) (i32.const 5))
  (local.set $waits (i32.load offset=36 (local.get $here)))
  (if (local.get $waits) (then (i32.store offset=36 (local.get $here) (i32.const 2))))
  (call $may_run_first (local.get $here))
  (if (local.get $task)
    (then (call $hand (local.get $task)))
    (else (call $switch (local.get $stack))))
  (i32.store (i32.const 8) (local.get $call))
  (global.set $context_0 (local.get $context_0))
  (global.set $context_1 (local.get $context_1))
  (global.set $may_block (local.get $may_block))
  ;; A call that waits below may have been told to go on at the same time.
  (if (local.get $waits)
    (then
      (i32.store offset=36 (local.get $here) (i32.const 1))
      (call $may_run (local.get $here)))
    (else (i32.store offset=56 (local.get $here) (i32.const 0)))))

;; A stack is the next that runs.
(func $may_run_first (param $stack i32)
  (call $unqueue (local.get $stack))
  (i32.store offset=76 (local.get $stack) (i32.const 1))
  (i32.store offset=48 (local.get $stack) (global.get $run_head))
  (global.set $run_head (local.get $stack))
  (if (i32.eqz (global.get $run_tail)) (then (global.set $run_tail (local.get $stack))))
  (global.set $run_count (i32.add (global.get $run_count) (i32.const 1))))

;; A call keeps others out of an instance, and waits. Where its event has come already, it goes on before another call finds the instance closed.
(func $let_holder_go_on (param $instance i32)
  (if (i32.eqz (i32.load offset=8 (local.get $instance))) (then (return)))
  (if (i32.eqz (i32.and (i32.ne (global.get $run_count) (i32.const 0)) (global.get $may_block))) (then (return)))
  ;; On top of a call that waits nothing else does.
  (if (i32.load offset=36 (global.get $stack)) (then (return)))
  (call $may_run (global.get $stack))
  (call $suspend))

;; A synchronous call waits until it may enter an instance.
(func $wait_to_enter (param $instance i32)
  (i32.store offset=12 (global.get $stack) (local.get $instance))
  (call $wait_at_entrance (global.get $stack))
  (loop $more
    (call $suspend)
    (br_if $more
      (i32.ne (i32.or (i32.load offset=4 (local.get $instance)) (i32.load offset=8 (local.get $instance))) (i32.const 0))))
  (call $take_from_entrance (global.get $stack)))

;; The server's task is over, and something of the host's is still on its way: has something else run, or the host wait. A stack that this one is left for gives
;; way to it, as it is in the queue.
(func (export "rest")
  (local $here i32) (local $next i32)
  (local.set $here (global.get $stack))
  (i32.store offset=56 (local.get $here) (i32.const 5))
  (local.set $next (call $next))
  (if (i32.eqz (local.get $next))
    (then
      (call $ask_host)
      (return)))
  (if (i32.eq (local.get $next) (local.get $here)) (then (return)))
  (if (i32.eq (i32.load offset=56 (local.get $next)) (i32.const 5))
    (then
      (call $may_run (local.get $here))
      (call $switch (local.get $next))
      (return)))
  (if (call $may_wait (local.get $next))
    (then
      (call $may_run (local.get $here))
      (call $hand (local.get $next))
      (return)))
  (call $execute (local.get $next)))
