;; Tasks, subtasks and waitable sets of the asynchronous canonical ABI (Concurrency.md and CanonicalABI.md of the component model), for components that use
;; them. All of it lies in the state's memory, as handle tables do.
;;
;; A task with a callback gives the stack back when it waits: it is a record, and waiting costs nothing. What waits inside of a call (a call that is lowered
;; as synchronous, `waitable-set.wait`, a synchronous read) keeps its stack, see `stacks.wat`. Where nothing is ready, the host is asked; where that waits for
;; nothing either, that is a deadlock.
;;
;; Records come from free lists of two sizes. A task, 256 bytes; its first words are those of every call in progress:
;;
;;   0   how many borrowed handles are left      28  its first function in `entries`        56  where it is: 0 runs, 1 waits to be entered, 2 waits for
;;   4   first lender                            32  type of its result                         its set, 3 has yielded, 4 is over
;;   8   the call that was in progress           36  options of `task.return`               60  where the caller wants its result
;;   12  its instance's record                   40  flags, see below                       64  flat result for a synchronous caller, 8 bytes
;;   16  context slot 0 (of a synchronous call:  44  its subtask at the caller, or zero     72  next of those that wait with it
;;   20  and 1             the caller's slots)   48  next in the queue of what may run      76  whether it is in that queue
;;   24  state                                   52  the set for which it waits             80  parameters as they were lowered, 8 bytes each
;;   224 record of the instance that calls       228 the stack that waits for its result
;;   232 its stack, while it waits in a call that is told of its cancellation
;;
;; Where it is, also: 5 a stack that waits, 6 it is to learn that it is cancelled.
;; State: 0 starting, 1 started, 2 to be cancelled, 3 told so, 4 resolved.
;; Flags: 1 it is lifted as async; 2 no other such task of the instance runs meanwhile; 4 its function's type is async; 8 the starter still needs the record.
;;
;; What can be waited for (a waitable), 96 bytes:
;;
;;   0   kind: 1 subtask, 2 and 3 readable and writable end of a stream, 4 and 5 of a future
;;   4   its handle        12  its set or zero          20, 24  next and previous of those of its set that have an event
;;   8   its instance      16  whether it has an event  28      the stack that waits for it in a call, or zero
;;   32  of a subtask: its task while that is not resolved; 36 state, 40 whether its cancellation was asked for, 44 whether its end was told, 48 lenders;
;;       of an end: see `streams.wat`
;;
;; A waitable set, 96 bytes: 0 how many it has, 4 how many tasks wait for it, 8 and 12 first and last with an event, 16 first task or stack that waits.
;;
;; An instance, 32 bytes: 0 its handle table, 4 backpressure, 8 which call may run alone, 12 and 16 first and last task or stack that waits to enter it,
;; 20 whether its code may wait inside of a call.

(type $entry_run (func (param i32) (result i32)))
(type $entry_callback (func (param i32 i32 i32) (result i32)))

(global $run_head (mut i32) (i32.const 0))
(global $run_tail (mut i32) (i32.const 0))
(global $run_count (mut i32) (i32.const 0))
(global $free_small (mut i32) (i32.const 0))
;; How often something has run since the host was asked.
(global $turns (mut i32) (i32.const 0))
(global $free_large (mut i32) (i32.const 0))
(global $context_0 (mut i32) (i32.const 0))
(global $context_1 (mut i32) (i32.const 0))
;; The task that an adapter has prepared, and starts next.
(global $prepared (export "prepared") (mut i32) (i32.const 0))
;; An event in the making: code, and what it says of which waitable.
(global $event_1 (export "event 1") (mut i32) (i32.const 0))
(global $event_2 (export "event 2") (mut i32) (i32.const 0))

(func (export "context get 0") (result i32) (global.get $context_0))
(func (export "context get 1") (result i32) (global.get $context_1))
(func (export "context set 0") (param i32) (global.set $context_0 (local.get 0)))
(func (export "context set 1") (param i32) (global.set $context_1 (local.get 0)))

;; Records, all zero.
(func $take_small (result i32)
  (local $at i32)
  (local.set $at (global.get $free_small))
  (if (i32.eqz (local.get $at)) (then (return (call $allocate (i32.const 96)))))
  (global.set $free_small (i32.load (local.get $at)))
  (memory.fill (local.get $at) (i32.const 0) (i32.const 96))
  (local.get $at))

(func $give_small (param $at i32)
  (i32.store (local.get $at) (global.get $free_small))
  (global.set $free_small (local.get $at)))

(func $take_large (result i32)
  (local $at i32)
  (local.set $at (global.get $free_large))
  (if (i32.eqz (local.get $at)) (then (return (call $allocate (i32.const 256)))))
  (global.set $free_large (i32.load (local.get $at)))
  (memory.fill (local.get $at) (i32.const 0) (i32.const 256))
  (local.get $at))

(func $give_large (param $at i32)
  (i32.store (local.get $at) (global.get $free_large))
  (global.set $free_large (local.get $at)))

;; ---- Calls in progress ----

;; An instance is not entered by what it has called itself.
(func $check_entry (param $instance i32)
  (local $call i32)
  (local.set $call (i32.load (i32.const 8)))
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $call)))
      (if (i32.eq (i32.load offset=12 (local.get $call)) (local.get $instance)) (then (call $trap (i32.const 8))))
      (local.set $call (i32.load offset=8 (local.get $call)))
      (br $more))))

;; A synchronous call of a function that is lifted as synchronous begins. `$async`: its type is async.
(func (export "enter") (param $caller i32) (param $async i32) (param $callee i32)
  (local $call i32) (local $instance i32)
  (local.set $instance (call $instance_at (local.get $callee)))
  (call $check_entry (local.get $instance))
  (if (i32.and
        (i32.ne (local.get $async) (i32.const 0))
        (i32.ne (i32.or (i32.load offset=4 (local.get $instance)) (i32.load offset=8 (local.get $instance))) (i32.const 0)))
    (then (call $wait_to_enter (local.get $instance))))
  (local.set $call (call $take_small))
  (i32.store offset=8 (local.get $call) (i32.load (i32.const 8)))
  (i32.store offset=12 (local.get $call) (local.get $instance))
  (i32.store offset=16 (local.get $call) (global.get $context_0))
  (i32.store offset=20 (local.get $call) (global.get $context_1))
  (i32.store offset=44 (local.get $call) (local.get $async))
  (if (local.get $async) (then (i32.store offset=8 (local.get $instance) (local.get $call))))
  (global.set $context_0 (i32.const 0))
  (global.set $context_1 (i32.const 0))
  (i32.store (i32.const 8) (local.get $call)))

;; A call of a destructor that another instance defines begins. That may be in the middle of a call: a child drops what its parent has given to it. The rest is as
;; above, where it is not called: that is on the way of every call.
(func (export "enter destructor") (param $callee i32)
  (local $call i32)
  (local.set $call (call $take_small))
  (i32.store offset=8 (local.get $call) (i32.load (i32.const 8)))
  (i32.store offset=12 (local.get $call) (call $instance_at (local.get $callee)))
  (i32.store offset=16 (local.get $call) (global.get $context_0))
  (i32.store offset=20 (local.get $call) (global.get $context_1))
  (global.set $context_0 (i32.const 0))
  (global.set $context_1 (i32.const 0))
  (i32.store (i32.const 8) (local.get $call)))

;; It has returned.
(func (export "exit")
  (local $call i32)
  (local.set $call (i32.load (i32.const 8)))
  (if (i32.load (local.get $call)) (then (call $trap (i32.const 6))))
  (call $release_lenders (i32.load offset=4 (local.get $call)))
  (i32.store (i32.const 8) (i32.load offset=8 (local.get $call)))
  (global.set $context_0 (i32.load offset=16 (local.get $call)))
  (global.set $context_1 (i32.load offset=20 (local.get $call)))
  (if (i32.load offset=44 (local.get $call)) (then (call $leave (i32.load offset=12 (local.get $call)))))
  (call $give_small (local.get $call)))

;; Another call may run in an instance.
(func $leave (param $instance i32)
  (i32.store offset=8 (local.get $instance) (i32.const 0))
  (call $admit (local.get $instance)))

;; The first that waits to enter an instance may try.
(func $admit (param $instance i32)
  (local $task i32)
  (local.set $task (i32.load offset=12 (local.get $instance)))
  (if (i32.and (i32.ne (local.get $task) (i32.const 0)) (i32.eqz (i32.load offset=4 (local.get $instance))))
    (then (call $may_run (local.get $task)))))

;; ---- What may run ----

(func $may_run (param $task i32)
  (if (i32.load offset=76 (local.get $task)) (then (return)))
  (i32.store offset=76 (local.get $task) (i32.const 1))
  (i32.store offset=48 (local.get $task) (i32.const 0))
  (if (global.get $run_tail)
    (then (i32.store offset=48 (global.get $run_tail) (local.get $task)))
    (else (global.set $run_head (local.get $task))))
  (global.set $run_tail (local.get $task))
  (global.set $run_count (i32.add (global.get $run_count) (i32.const 1))))

(func $pop (result i32)
  (local $task i32)
  (local.set $task (global.get $run_head))
  (global.set $run_head (i32.load offset=48 (local.get $task)))
  (if (i32.eqz (global.get $run_head)) (then (global.set $run_tail (i32.const 0))))
  (global.set $run_count (i32.sub (global.get $run_count) (i32.const 1)))
  (i32.store offset=76 (local.get $task) (i32.const 0))
  (local.get $task))

;; A task or stack is not in the queue any more, if it was.
(func $unqueue (param $task i32)
  (local $at i32) (local $before i32)
  (if (i32.eqz (i32.load offset=76 (local.get $task))) (then (return)))
  (local.set $at (global.get $run_head))
  (block $found
    (loop $more
      (br_if $found (i32.eq (local.get $at) (local.get $task)))
      (local.set $before (local.get $at))
      (local.set $at (i32.load offset=48 (local.get $at)))
      (br $more)))
  (if (local.get $before)
    (then (i32.store offset=48 (local.get $before) (i32.load offset=48 (local.get $task))))
    (else (global.set $run_head (i32.load offset=48 (local.get $task)))))
  (if (i32.eq (global.get $run_tail) (local.get $task)) (then (global.set $run_tail (local.get $before))))
  (global.set $run_count (i32.sub (global.get $run_count) (i32.const 1)))
  (i32.store offset=76 (local.get $task) (i32.const 0)))

;; The first that can run, which leaves the queue: a task, or a stack that goes on. Zero where there is none.
(func $next (result i32)
  (local $count i32) (local $task i32) (local $where i32)
  (if (i32.eqz (global.get $run_count)) (then (return (i32.const 0))))
  ;; Tasks that yield to each other do not keep the host from going on.
  (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
  (if (i32.ge_u (global.get $turns) (i32.const 32)) (then (call $look)))
  (local.set $count (global.get $run_count))
  (loop $more
    (if (i32.eqz (local.get $count)) (then (return (i32.const 0))))
    (local.set $count (i32.sub (local.get $count) (i32.const 1)))
    (local.set $task (call $pop))
    (local.set $where (i32.load offset=56 (local.get $task)))
    (if (i32.eq (local.get $where) (i32.const 5)) (then (return (local.get $task))))
    (if (i32.eqz (local.get $where)) (then (br $more)))
    (if (i32.eq (local.get $where) (i32.const 4))
      (then
        (call $give_large (local.get $task))
        (br $more)))
    (if (i32.eq (local.get $where) (i32.const 1))
      (then
        (br_if $more (call $is_held_up (local.get $task)))
        (return (local.get $task))))
    ;; Without an event it waits with its set again.
    (if (i32.eq (local.get $where) (i32.const 2))
      (then
        (if (i32.eqz (i32.load offset=8 (i32.load offset=52 (local.get $task))))
          (then
            (call $wait_with_set (local.get $task))
            (br $more)))))
    (if (i32.load offset=8 (i32.load offset=12 (local.get $task)))
      (then
        (call $may_run (local.get $task))
        (br $more)))
    (return (local.get $task)))
  (i32.const 0))

(func $look
  (global.set $turns (i32.const 0))
  (call $look_at_host))

;; Runs a task on this stack: it begins, or goes on, until it is over or waits.
(func $execute (param $task i32)
  (local $where i32) (local $code i32)
  (local.set $where (i32.load offset=56 (local.get $task)))
  (if (i32.eqz (local.get $where))
    (then
      (call $begin (local.get $task))
      (return)))
  (if (i32.eq (local.get $where) (i32.const 1))
    (then
      (call $take_from_entrance (local.get $task))
      ;; The next at the entrance need not wait until this one is over.
      (call $admit (i32.load offset=12 (local.get $task)))
      (call $begin (local.get $task))
      (return)))
  (if (i32.eq (local.get $where) (i32.const 2))
    (then (local.set $code (call $take_event_of_set (i32.load offset=52 (local.get $task)))))
    (else
      (global.set $event_1 (i32.const 0))
      (global.set $event_2 (i32.const 0))
      (if (i32.eq (local.get $where) (i32.const 6)) (then (local.set $code (i32.const 6))))))
  (call $stop_waiting (local.get $task))
  (call $call_back (local.get $task) (local.get $code)))

;; A task that runs alone in its instance, or not.
(func $is_held_up (param $task i32) (result i32)
  (local $instance i32) (local $flags i32)
  (local.set $flags (i32.load offset=40 (local.get $task)))
  (if (i32.eqz (i32.and (local.get $flags) (i32.const 4))) (then (return (i32.const 0))))
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (if (i32.load offset=4 (local.get $instance)) (then (return (i32.const 1))))
  (i32.and
    (i32.ne (i32.and (local.get $flags) (i32.const 2)) (i32.const 0))
    (i32.ne (i32.load offset=8 (local.get $instance)) (i32.const 0))))

(func $wait_at_entrance (param $task i32)
  (local $instance i32) (local $tail i32)
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (i32.store offset=56 (local.get $task) (i32.const 1))
  (i32.store offset=72 (local.get $task) (i32.const 0))
  (local.set $tail (i32.load offset=16 (local.get $instance)))
  (if (local.get $tail)
    (then (i32.store offset=72 (local.get $tail) (local.get $task)))
    (else (i32.store offset=12 (local.get $instance) (local.get $task))))
  (i32.store offset=16 (local.get $instance) (local.get $task)))

(func $take_from_entrance (param $task i32)
  (local $instance i32) (local $at i32) (local $before i32)
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (local.set $at (i32.load offset=12 (local.get $instance)))
  (block $found
    (loop $more
      (br_if $found (i32.eq (local.get $at) (local.get $task)))
      (local.set $before (local.get $at))
      (local.set $at (i32.load offset=72 (local.get $at)))
      (br $more)))
  (if (local.get $before)
    (then (i32.store offset=72 (local.get $before) (i32.load offset=72 (local.get $task))))
    (else (i32.store offset=12 (local.get $instance) (i32.load offset=72 (local.get $task)))))
  (if (i32.eq (i32.load offset=16 (local.get $instance)) (local.get $task))
    (then (i32.store offset=16 (local.get $instance) (local.get $before))))
  (i32.store offset=56 (local.get $task) (i32.const 0)))

;; ---- A task's life ----

(func (export "task new")
  (param $instance i32) (param $entries i32) (param $flags i32) (param $type i32) (param $options i32) (result i32)
  (local $task i32)
  (local.set $task (call $take_large))
  (i32.store offset=12 (local.get $task) (local.get $instance))
  (i32.store offset=28 (local.get $task) (local.get $entries))
  (i32.store offset=32 (local.get $task) (local.get $type))
  (i32.store offset=36 (local.get $task) (local.get $options))
  ;; The starter needs the record.
  (i32.store offset=40 (local.get $task) (i32.or (local.get $flags) (i32.const 8)))
  (local.get $task))

;; Begins, or waits to be entered. `$apart`: where it may wait in a call, it begins on a stack of its own, so that its caller goes on when it does.
(func $try (param $task i32) (param $apart i32)
  (local $waits i32)
  (local.set $waits (call $is_kept_out (local.get $task)))
  (if (i32.and (local.get $waits) (local.get $apart))
    (then
      (call $let_holder_go_on (i32.load offset=12 (local.get $task)))
      (local.set $waits (call $is_kept_out (local.get $task)))))
  (if (local.get $waits)
    (then (call $wait_at_entrance (local.get $task)))
    (else
      (if (i32.and (local.get $apart) (call $may_wait (local.get $task)))
        (then (call $run_apart (local.get $task) (i32.const 0)))
        (else (call $begin (local.get $task)))))))

(func $is_kept_out (param $task i32) (result i32)
  (i32.and
    (i32.ne (i32.and (i32.load offset=40 (local.get $task)) (i32.const 4)) (i32.const 0))
    (i32.or
      (call $is_held_up (local.get $task))
      (i32.ne (i32.load offset=12 (i32.load offset=12 (local.get $task))) (i32.const 0)))))

(func $begin (param $task i32)
  (local $call i32) (local $context_0 i32) (local $context_1 i32) (local $may_block i32) (local $instance i32)
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (call $check_entry (local.get $instance))
  (local.set $call (i32.load (i32.const 8)))
  (local.set $context_0 (global.get $context_0))
  (local.set $context_1 (global.get $context_1))
  (local.set $may_block (global.get $may_block))
  (if (i32.eq (i32.and (i32.load offset=40 (local.get $task)) (i32.const 6)) (i32.const 6))
    (then (i32.store offset=8 (local.get $instance) (local.get $task))))
  (i32.store offset=24 (local.get $task) (i32.const 1))
  (if (i32.load offset=44 (local.get $task)) (then (call $progress (i32.load offset=44 (local.get $task)) (i32.const 1))))
  (i32.store offset=8 (local.get $task) (local.get $call))
  (i32.store (i32.const 8) (local.get $task))
  (global.set $context_0 (i32.const 0))
  (global.set $context_1 (i32.const 0))
  (global.set $may_block (i32.ne (i32.and (i32.load offset=40 (local.get $task)) (i32.const 4)) (i32.const 0)))
  (call $after
    (local.get $task)
    (call_indirect $entries (type $entry_run) (local.get $task) (i32.load offset=28 (local.get $task))))
  (i32.store (i32.const 8) (local.get $call))
  (global.set $context_0 (local.get $context_0))
  (global.set $context_1 (local.get $context_1))
  (global.set $may_block (local.get $may_block)))

;; Goes on with an event: its code, and `event 1` and `event 2`.
(func $call_back (param $task i32) (param $code i32)
  (local $call i32) (local $context_0 i32) (local $context_1 i32) (local $may_block i32)
  (local.set $call (i32.load (i32.const 8)))
  (local.set $context_0 (global.get $context_0))
  (local.set $context_1 (global.get $context_1))
  (local.set $may_block (global.get $may_block))
  (i32.store offset=8 (i32.load offset=12 (local.get $task)) (local.get $task))
  (i32.store offset=8 (local.get $task) (local.get $call))
  (i32.store (i32.const 8) (local.get $task))
  (global.set $context_0 (i32.load offset=16 (local.get $task)))
  (global.set $context_1 (i32.load offset=20 (local.get $task)))
  (global.set $may_block (i32.const 1))
  (call $after
    (local.get $task)
    (call_indirect $entries (type $entry_callback)
      (local.get $code)
      (global.get $event_1)
      (global.get $event_2)
      (i32.add (i32.load offset=28 (local.get $task)) (i32.const 2))))
  (i32.store (i32.const 8) (local.get $call))
  (global.set $context_0 (local.get $context_0))
  (global.set $context_1 (local.get $context_1))
  (global.set $may_block (local.get $may_block)))

;; What its function or callback has returned: 0 it is over, 1 it yields, 2 it waits for the set whose handle is above.
(func $after (param $task i32) (param $code i32)
  (local $instance i32) (local $what i32) (local $set i32) (local $is_alone i32)
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (local.set $is_alone (i32.eq (i32.and (i32.load offset=40 (local.get $task)) (i32.const 6)) (i32.const 6)))
  (loop $again
    (local.set $what (i32.and (local.get $code) (i32.const 15)))
    (if (i32.gt_u (local.get $what) (i32.const 2)) (then (call $trap (i32.const 23))))
    (if (i32.eqz (local.get $what))
      (then
        (if (i32.lt_u (i32.load offset=24 (local.get $task)) (i32.const 4)) (then (call $trap (i32.const 21))))
        (i32.store offset=56 (local.get $task) (i32.const 4))
        (if (local.get $is_alone) (then (call $leave (local.get $instance))))
        (if (i32.eqz (i32.and (i32.load offset=40 (local.get $task)) (i32.const 8)))
          (then (call $give_task (local.get $task))))
        (return)))
    (if (i32.eq (local.get $what) (i32.const 2))
      (then
        (local.set $set
          (call $record (i32.load (local.get $instance)) (i32.const 0x80000002) (i32.shr_u (local.get $code) (i32.const 4))))))
    (if (i32.eq (i32.load offset=24 (local.get $task)) (i32.const 2))
      (then
        (i32.store offset=24 (local.get $task) (i32.const 3))
        (local.set $code
          (call_indirect $entries (type $entry_callback)
            (i32.const 6)
            (i32.const 0)
            (i32.const 0)
            (i32.add (i32.load offset=28 (local.get $task)) (i32.const 2))))
        (br $again))))
  (i32.store offset=16 (local.get $task) (global.get $context_0))
  (i32.store offset=20 (local.get $task) (global.get $context_1))
  (call $leave (local.get $instance))
  (if (i32.eq (local.get $what) (i32.const 1))
    (then
      (i32.store offset=56 (local.get $task) (i32.const 3))
      (call $may_run (local.get $task))
      (return)))
  (i32.store offset=56 (local.get $task) (i32.const 2))
  (i32.store offset=52 (local.get $task) (local.get $set))
  (i32.store offset=4 (local.get $set) (i32.add (i32.load offset=4 (local.get $set)) (i32.const 1)))
  (if (i32.load offset=8 (local.get $set))
    (then (call $may_run (local.get $task)))
    (else (call $wait_with_set (local.get $task)))))

;; A task that is over.
(func $give_task (param $task i32)
  (if (i32.eqz (i32.load offset=76 (local.get $task))) (then (call $give_large (local.get $task)))))

(func $wait_with_set (param $task i32)
  (local $set i32)
  (local.set $set (i32.load offset=52 (local.get $task)))
  (i32.store offset=72 (local.get $task) (i32.load offset=16 (local.get $set)))
  (i32.store offset=16 (local.get $set) (local.get $task)))

;; It waits for its set, or for its turn, no more.
(func $stop_waiting (param $task i32)
  (local $set i32)
  (if (i32.eq (i32.load offset=56 (local.get $task)) (i32.const 2))
    (then
      (local.set $set (i32.load offset=52 (local.get $task)))
      (i32.store offset=4 (local.get $set) (i32.sub (i32.load offset=4 (local.get $set)) (i32.const 1)))
      (call $leave_set (local.get $set) (local.get $task))))
  (i32.store offset=52 (local.get $task) (i32.const 0))
  (i32.store offset=56 (local.get $task) (i32.const 0)))

;; A task or stack is not among those that wait for a set any more, if it was.
(func $leave_set (param $set i32) (param $task i32)
  (local $at i32) (local $before i32)
  (local.set $at (i32.load offset=16 (local.get $set)))
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $at)))
      (if (i32.eq (local.get $at) (local.get $task))
        (then
          (if (local.get $before)
            (then (i32.store offset=72 (local.get $before) (i32.load offset=72 (local.get $at))))
            (else (i32.store offset=16 (local.get $set) (i32.load offset=72 (local.get $at)))))
          (br $done)))
      (local.set $before (local.get $at))
      (local.set $at (i32.load offset=72 (local.get $at)))
      (br $more))))

;; The task that runs, for `task.return`, if it may return that.
;; `$mask`: which of the options matter.
(func (export "task returning") (param $type i32) (param $options i32) (param $mask i32) (result i32)
  (local $task i32)
  (local.set $task (i32.load (i32.const 8)))
  (if (i32.eqz (local.get $task)) (then (call $trap (i32.const 47))))
  (if (i32.eqz (i32.and (i32.load offset=40 (local.get $task)) (i32.const 1))) (then (call $trap (i32.const 47))))
  (if (i32.ne (i32.load offset=32 (local.get $task)) (local.get $type)) (then (call $trap (i32.const 22))))
  (if (i32.and (i32.xor (i32.load offset=36 (local.get $task)) (local.get $options)) (local.get $mask))
    (then (call $trap (i32.const 22))))
  (if (i32.ge_u (i32.load offset=24 (local.get $task)) (i32.const 4)) (then (call $trap (i32.const 46))))
  (if (i32.load (local.get $task)) (then (call $trap (i32.const 6))))
  (local.get $task))

;; Its result is where it belongs; or it was cancelled: `$state` is that of a subtask.
(func $resolve (export "task resolve") (param $task i32) (param $state i32)
  (local $subtask i32)
  (if (i32.load (local.get $task)) (then (call $trap (i32.const 6))))
  (i32.store offset=24 (local.get $task) (i32.const 4))
  (if (i32.load offset=228 (local.get $task)) (then (call $may_run (i32.load offset=228 (local.get $task)))))
  (local.set $subtask (i32.load offset=44 (local.get $task)))
  (if (i32.eqz (local.get $subtask)) (then (return)))
  (i32.store offset=44 (local.get $task) (i32.const 0))
  (i32.store offset=32 (local.get $subtask) (i32.const 0))
  (i32.store offset=48 (local.get $subtask) (i32.load offset=4 (local.get $task)))
  (i32.store offset=4 (local.get $task) (i32.const 0))
  (call $progress (local.get $subtask) (local.get $state)))

(func $progress (param $subtask i32) (param $state i32)
  (i32.store offset=36 (local.get $subtask) (local.get $state))
  (call $notify (local.get $subtask)))

;; task.cancel
(func (export "task cancel")
  (local $task i32)
  (local.set $task (i32.load (i32.const 8)))
  (if (i32.eqz (local.get $task)) (then (call $trap (i32.const 29))))
  (if (i32.eqz (i32.and (i32.load offset=40 (local.get $task)) (i32.const 1))) (then (call $trap (i32.const 29))))
  (if (i32.ne (i32.load offset=24 (local.get $task)) (i32.const 3)) (then (call $trap (i32.const 29))))
  (call $resolve (local.get $task) (i32.const 4)))

;; A call that is lowered as asynchronous: what `canon lower` returns. Adapters of several functions share it.
(func (export "task start") (param funcref i32 i32 i32) (result i32)
  (local $task i32) (local $caller i32) (local $subtask i32) (local $handle i32)
  (local.set $task (global.get $prepared))
  (local.set $caller (i32.load offset=224 (local.get $task)))
  (call $try (local.get $task) (i32.const 1))
  (if (i32.ge_u (i32.load offset=24 (local.get $task)) (i32.const 4))
    (then
      (call $finish (local.get $task))
      (return (i32.const 2))))
  (local.set $subtask (call $take_small))
  (local.set $handle (call $insert (i32.load (local.get $caller)) (i32.const 0x80000001) (local.get $subtask) (i32.const 0)))
  (i32.store (local.get $subtask) (i32.const 1))
  (i32.store offset=4 (local.get $subtask) (local.get $handle))
  (i32.store offset=8 (local.get $subtask) (local.get $caller))
  (i32.store offset=32 (local.get $subtask) (local.get $task))
  (i32.store offset=36 (local.get $subtask) (i32.ne (i32.load offset=24 (local.get $task)) (i32.const 0)))
  (i32.store offset=44 (local.get $task) (local.get $subtask))
  (i32.store offset=40 (local.get $task) (i32.and (i32.load offset=40 (local.get $task)) (i32.const -9)))
  (i32.or (i32.load offset=36 (local.get $subtask)) (i32.shl (local.get $handle) (i32.const 4))))

;; A call that is lowered as synchronous. Its flat result is in the record, which the caller then gives back by `task finish`. What is lifted as synchronous
;; returns before its caller goes on; what is lifted as async may return and wait then.
(func (export "task run") (param $task i32)
  (call $check_blocking)
  (call $try (local.get $task) (i32.and (i32.load offset=40 (local.get $task)) (i32.const 1)))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (i32.load offset=24 (local.get $task)) (i32.const 4)))
      (i32.store offset=228 (local.get $task) (global.get $stack))
      (call $suspend)
      (br $more)))
  (i32.store offset=228 (local.get $task) (i32.const 0)))

;; Runs what there is until a task of the server is over. Its record stays.
(func (export "task complete") (param $task i32)
  (global.set $root (local.get $task))
  (call $try (local.get $task) (i32.const 0))
  (call $serve))

;; The starter does not need the record of a resolved task any more.
(func $finish (export "task finish") (param $task i32)
  (call $release_lenders (i32.load offset=4 (local.get $task)))
  (i32.store offset=4 (local.get $task) (i32.const 0))
  (i32.store offset=40 (local.get $task) (i32.and (i32.load offset=40 (local.get $task)) (i32.const -9)))
  (if (i32.eq (i32.load offset=56 (local.get $task)) (i32.const 4)) (then (call $give_task (local.get $task)))))

;; Traps where the task must not wait in a call: its function's type is not async.
(func $check_blocking (export "check blocking")
  (if (i32.eqz (global.get $may_block)) (then (call $trap (i32.const 19)))))

;; Whether the task that runs learns now that it is to be cancelled.
(func $is_cancelled (result i32)
  (local $task i32)
  (local.set $task (i32.load (i32.const 8)))
  (if (i32.eqz (local.get $task)) (then (return (i32.const 0))))
  (if (i32.eqz (i32.and (i32.load offset=40 (local.get $task)) (i32.const 1))) (then (return (i32.const 0))))
  (if (i32.ne (i32.load offset=24 (local.get $task)) (i32.const 2)) (then (return (i32.const 0))))
  (i32.store offset=24 (local.get $task) (i32.const 3))
  (i32.const 1))

;; Has the task that runs wait in a call that is told of its cancellation, on that stack; zero where it does so no more.
(func $expect_cancellation (param $stack i32)
  (local $task i32)
  (local.set $task (i32.load (i32.const 8)))
  (if (i32.eqz (local.get $task)) (then (return)))
  (if (i32.and (i32.load offset=40 (local.get $task)) (i32.const 1))
    (then (i32.store offset=232 (local.get $task) (local.get $stack)))))

;; thread.yield
(func (export "yield") (param $cancellable i32) (result i32)
  (if (local.get $cancellable) (then (if (call $is_cancelled) (then (return (i32.const 1))))))
  (if (global.get $may_block)
    (then
      (if (global.get $run_count)
        (then
          (if (local.get $cancellable) (then (call $expect_cancellation (global.get $stack))))
          (call $may_run (global.get $stack))
          (call $suspend)
          (if (local.get $cancellable) (then (call $expect_cancellation (i32.const 0)))))
        (else
          (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
          (if (i32.ge_u (global.get $turns) (i32.const 32)) (then (call $look)))))))
  (if (result i32) (local.get $cancellable) (then (call $is_cancelled)) (else (i32.const 0))))

;; backpressure.inc and .dec
(func (export "backpressure inc") (param $instance i32)
  (local $count i32)
  (local.set $count (i32.add (i32.load offset=4 (local.get $instance)) (i32.const 1)))
  (if (i32.eq (local.get $count) (i32.const 0x10000)) (then (call $trap (i32.const 28))))
  (i32.store offset=4 (local.get $instance) (local.get $count)))

(func (export "backpressure dec") (param $instance i32)
  (local $count i32)
  (local.set $count (i32.sub (i32.load offset=4 (local.get $instance)) (i32.const 1)))
  (if (i32.lt_s (local.get $count) (i32.const 0)) (then (call $trap (i32.const 28))))
  (i32.store offset=4 (local.get $instance) (local.get $count))
  (call $admit (local.get $instance)))

;; ---- Waitables and their sets ----

;; What a handle of that type stands for.
(func $record (param $table i32) (param $type i32) (param $handle i32) (result i32)
  (i32.load offset=4 (call $entry (local.get $table) (local.get $type) (local.get $handle))))

;; Ends a handle, and says what it stood for.
(func $remove (param $table i32) (param $type i32) (param $handle i32) (result i32)
  (local $entry i32) (local $record i32)
  (local.set $entry (call $entry (local.get $table) (local.get $type) (local.get $handle)))
  (local.set $record (i32.load offset=4 (local.get $entry)))
  (call $free (local.get $table) (local.get $handle) (local.get $entry))
  (local.get $record))

;; The waitable of a handle.
(func $waitable (param $table i32) (param $handle i32) (result i32)
  (local $type i32) (local $entry i32)
  (if (i32.ge_u
        (i32.sub (local.get $handle) (i32.const 1))
        (i32.sub (i32.load offset=4 (local.get $table)) (i32.const 1)))
    (then (call $trap (i32.const 2))))
  (local.set $entry
    (i32.add (i32.load offset=12 (local.get $table)) (i32.shl (local.get $handle) (i32.const 4))))
  (local.set $type (i32.load (local.get $entry)))
  (if (i32.eqz (local.get $type)) (then (call $trap (i32.const 2))))
  (if (i32.and
        (i32.ne (local.get $type) (i32.const 0x80000001))
        (i32.lt_u (local.get $type) (i32.const 0x81000000)))
    (then (call $trap (i32.const 3))))
  (i32.load offset=4 (local.get $entry)))

;; A waitable has an event.
(func $notify (param $waitable i32)
  (if (i32.load offset=16 (local.get $waitable)) (then (return)))
  (i32.store offset=16 (local.get $waitable) (i32.const 1))
  (if (i32.load offset=28 (local.get $waitable)) (then (call $may_run (i32.load offset=28 (local.get $waitable)))))
  (if (i32.load offset=12 (local.get $waitable)) (then (call $set_gains (local.get $waitable)))))

;; The set of a waitable that has an event learns of it.
(func $set_gains (param $waitable i32)
  (local $set i32) (local $last i32)
  (local.set $set (i32.load offset=12 (local.get $waitable)))
  (local.set $last (i32.load offset=12 (local.get $set)))
  (i32.store offset=20 (local.get $waitable) (i32.const 0))
  (i32.store offset=24 (local.get $waitable) (local.get $last))
  (if (local.get $last)
    (then (i32.store offset=20 (local.get $last) (local.get $waitable)))
    (else (i32.store offset=8 (local.get $set) (local.get $waitable))))
  (i32.store offset=12 (local.get $set) (local.get $waitable))
  (call $wake_one (local.get $set)))

;; The first that waits for a set which has an event may take it.
(func $wake_one (param $set i32)
  (local $task i32)
  (local.set $task (i32.load offset=16 (local.get $set)))
  (if (local.get $task)
    (then
      (i32.store offset=16 (local.get $set) (i32.load offset=72 (local.get $task)))
      (call $may_run (local.get $task)))))

;; The set of a waitable forgets that it had an event.
(func $set_loses (param $waitable i32)
  (local $set i32) (local $next i32) (local $previous i32)
  (local.set $set (i32.load offset=12 (local.get $waitable)))
  (local.set $next (i32.load offset=20 (local.get $waitable)))
  (local.set $previous (i32.load offset=24 (local.get $waitable)))
  (if (local.get $previous)
    (then (i32.store offset=20 (local.get $previous) (local.get $next)))
    (else (i32.store offset=8 (local.get $set) (local.get $next))))
  (if (local.get $next)
    (then (i32.store offset=24 (local.get $next) (local.get $previous)))
    (else (i32.store offset=12 (local.get $set) (local.get $previous)))))

;; Takes the event of a waitable: its code, with `event 1` and `event 2`.
(func $take_event (param $waitable i32) (result i32)
  (local $kind i32)
  (i32.store offset=16 (local.get $waitable) (i32.const 0))
  (if (i32.load offset=12 (local.get $waitable)) (then (call $set_loses (local.get $waitable))))
  (global.set $event_1 (i32.load offset=4 (local.get $waitable)))
  (local.set $kind (i32.load (local.get $waitable)))
  (if (i32.eq (local.get $kind) (i32.const 1))
    (then
      (global.set $event_2 (i32.load offset=36 (local.get $waitable)))
      (if (i32.ge_u (global.get $event_2) (i32.const 2))
        (then
          (i32.store offset=44 (local.get $waitable) (i32.const 1))
          (call $release_lenders (i32.load offset=48 (local.get $waitable)))
          (i32.store offset=48 (local.get $waitable) (i32.const 0)))))
    (else (call $end_event (local.get $waitable))))
  (local.get $kind))

(func $take_event_of_set (param $set i32) (result i32)
  (call $take_event (i32.load offset=8 (local.get $set))))

;; Waits for a waitable's event in a call.
(func $wait_for (param $waitable i32)
  (if (i32.load offset=16 (local.get $waitable)) (then (return)))
  (i32.store offset=28 (local.get $waitable) (global.get $stack))
  (loop $more
    (call $suspend)
    (br_if $more (i32.eqz (i32.load offset=16 (local.get $waitable)))))
  (i32.store offset=28 (local.get $waitable) (i32.const 0)))

;; A waitable leaves its set, if it has one.
(func $part (param $waitable i32)
  (local $set i32)
  (local.set $set (i32.load offset=12 (local.get $waitable)))
  (if (i32.eqz (local.get $set)) (then (return)))
  (if (i32.load offset=16 (local.get $waitable)) (then (call $set_loses (local.get $waitable))))
  (i32.store offset=12 (local.get $waitable) (i32.const 0))
  (i32.store (local.get $set) (i32.sub (i32.load (local.get $set)) (i32.const 1))))

;; waitable.join
(func (export "join") (param $instance i32) (param $handle i32) (param $set i32)
  (local $waitable i32)
  (local.set $waitable (call $waitable (i32.load (local.get $instance)) (local.get $handle)))
  (if (i32.load offset=28 (local.get $waitable)) (then (call $trap (i32.const 32))))
  (if (local.get $set)
    (then
      (local.set $set (call $record (i32.load (local.get $instance)) (i32.const 0x80000002) (local.get $set)))))
  (call $part (local.get $waitable))
  (if (i32.eqz (local.get $set)) (then (return)))
  (i32.store offset=12 (local.get $waitable) (local.get $set))
  (i32.store (local.get $set) (i32.add (i32.load (local.get $set)) (i32.const 1)))
  (if (i32.load offset=16 (local.get $waitable)) (then (call $set_gains (local.get $waitable)))))

;; waitable-set.new
(func (export "set new") (param $instance i32) (result i32)
  (call $insert (i32.load (local.get $instance)) (i32.const 0x80000002) (call $take_small) (i32.const 0)))

;; waitable-set.wait: the event's code, with `event 1` and `event 2`.
(func (export "set wait") (param $instance i32) (param $set i32) (param $cancellable i32) (result i32)
  (local $is_cancelled i32)
  (call $check_blocking)
  (local.set $set (call $record (i32.load (local.get $instance)) (i32.const 0x80000002) (local.get $set)))
  (i32.store offset=4 (local.get $set) (i32.add (i32.load offset=4 (local.get $set)) (i32.const 1)))
  (block $done
    (loop $more
      (if (local.get $cancellable) (then (local.set $is_cancelled (call $is_cancelled))))
      (br_if $done (i32.or (local.get $is_cancelled) (i32.load offset=8 (local.get $set))))
      (i32.store offset=52 (global.get $stack) (local.get $set))
      (call $wait_with_set (global.get $stack))
      (if (local.get $cancellable) (then (call $expect_cancellation (global.get $stack))))
      (call $suspend)
      (if (local.get $cancellable) (then (call $expect_cancellation (i32.const 0))))
      (call $leave_set (local.get $set) (global.get $stack))
      (br $more)))
  (i32.store offset=4 (local.get $set) (i32.sub (i32.load offset=4 (local.get $set)) (i32.const 1)))
  (if (result i32) (local.get $is_cancelled)
    (then
      ;; An event for which it was woken is for another now.
      (if (i32.load offset=8 (local.get $set)) (then (call $wake_one (local.get $set))))
      (call $cancelled))
    (else (call $take_event_of_set (local.get $set)))))

(func $cancelled (result i32)
  (global.set $event_1 (i32.const 0))
  (global.set $event_2 (i32.const 0))
  (i32.const 6))

;; waitable-set.poll
(func (export "set poll") (param $instance i32) (param $set i32) (param $cancellable i32) (result i32)
  (local.set $set (call $record (i32.load (local.get $instance)) (i32.const 0x80000002) (local.get $set)))
  (if (local.get $cancellable) (then (if (call $is_cancelled) (then (return (call $cancelled))))))
  (if (i32.load offset=8 (local.get $set)) (then (return (call $take_event_of_set (local.get $set)))))
  (global.set $event_1 (i32.const 0))
  (global.set $event_2 (i32.const 0))
  (i32.const 0))

;; waitable-set.drop
(func (export "set drop") (param $instance i32) (param $handle i32)
  (local $set i32)
  (local.set $set (call $remove (i32.load (local.get $instance)) (i32.const 0x80000002) (local.get $handle)))
  (if (i32.or (i32.load (local.get $set)) (i32.load offset=4 (local.get $set))) (then (call $trap (i32.const 24))))
  (call $give_small (local.get $set)))

;; subtask.drop
(func (export "subtask drop") (param $instance i32) (param $handle i32)
  (local $subtask i32)
  (local.set $subtask (call $remove (i32.load (local.get $instance)) (i32.const 0x80000001) (local.get $handle)))
  (if (i32.eqz (i32.load offset=44 (local.get $subtask))) (then (call $trap (i32.const 25))))
  (call $part (local.get $subtask))
  (call $give_small (local.get $subtask)))

;; subtask.cancel: the subtask's state, or -1 where that is to be waited for.
(func (export "subtask cancel") (param $instance i32) (param $async i32) (param $handle i32) (result i32)
  (local $subtask i32)
  (if (i32.eqz (local.get $async)) (then (call $check_blocking)))
  (local.set $subtask (call $record (i32.load (local.get $instance)) (i32.const 0x80000001) (local.get $handle)))
  (if (i32.or (i32.load offset=44 (local.get $subtask)) (i32.load offset=40 (local.get $subtask)))
    (then (call $trap (i32.const 42))))
  (if (i32.and (i32.eqz (local.get $async)) (i32.ne (i32.load offset=12 (local.get $subtask)) (i32.const 0)))
    (then (call $trap (i32.const 26))))
  (if (i32.lt_u (i32.load offset=36 (local.get $subtask)) (i32.const 2))
    (then
      (i32.store offset=40 (local.get $subtask) (i32.const 1))
      (if (i32.load offset=32 (local.get $subtask))
        (then (call $request_cancellation (i32.load offset=32 (local.get $subtask))))
        (else (call $cancel_operation (local.get $subtask))))
      (if (i32.lt_u (i32.load offset=36 (local.get $subtask)) (i32.const 2))
        (then
          (if (local.get $async) (then (return (i32.const -1))))
          ;; What it has told before is not what is waited for.
          (loop $more
            (i32.store offset=16 (local.get $subtask) (i32.const 0))
            (call $wait_for (local.get $subtask))
            (br_if $more (i32.lt_u (i32.load offset=36 (local.get $subtask)) (i32.const 2))))))))
  (drop (call $take_event (local.get $subtask)))
  (i32.load offset=36 (local.get $subtask)))

(func $request_cancellation (param $task i32)
  (local $where i32) (local $instance i32) (local $set i32)
  (local.set $where (i32.load offset=56 (local.get $task)))
  (local.set $instance (i32.load offset=12 (local.get $task)))
  (if (i32.eqz (i32.load offset=24 (local.get $task)))
    (then
      (call $take_from_entrance (local.get $task))
      (i32.store offset=56 (local.get $task) (i32.const 4))
      (call $resolve (local.get $task) (i32.const 3))
      (call $give_task (local.get $task))
      (call $admit (local.get $instance))
      (return)))
  (if (i32.and (i32.ne (local.get $where) (i32.const 2)) (i32.ne (local.get $where) (i32.const 3)))
    (then
      (i32.store offset=24 (local.get $task) (i32.const 2))
      (if (i32.load offset=232 (local.get $task))
        (then (call $tell_in_call (i32.load offset=232 (local.get $task)) (local.get $instance))))
      (return)))
  ;; What stays in the queue would be made to wait for a set for which it waits already.
  (call $unqueue (local.get $task))
  (local.set $set (i32.load offset=52 (local.get $task)))
  (call $stop_waiting (local.get $task))
  ;; An event for which it was in the queue is for another now.
  (if (local.get $set)
    (then (if (i32.load offset=8 (local.get $set)) (then (call $wake_one (local.get $set))))))
  (i32.store offset=24 (local.get $task) (i32.const 3))
  (i32.store offset=56 (local.get $task) (i32.const 6))
  (if (i32.or (i32.load offset=8 (local.get $instance)) (call $is_entered (local.get $instance)))
    (then
      ;; It learns of this when the instance is free.
      (call $may_run (local.get $task))
      (return)))
  (if (call $may_wait (local.get $task))
    (then (call $run_apart (local.get $task) (i32.const 0)))
    (else (call $execute (local.get $task)))))

;; A task of an instance that waits on a stack goes on, and finds that it is cancelled: at once, unless the instance is entered or code runs on top of what waits there.
(func $tell_in_call (param $stack i32) (param $instance i32)
  (if (i32.or
        (i32.or
          (i32.eq (local.get $stack) (global.get $stack))
          (i32.ne (i32.load offset=36 (local.get $stack)) (i32.const 1)))
        (call $is_entered (local.get $instance)))
    (then (call $may_run (local.get $stack)))
    (else
      (call $unqueue (local.get $stack))
      (call $run_apart (i32.const 0) (local.get $stack)))))

;; Whether a call of an instance is in progress.
(func $is_entered (param $instance i32) (result i32)
  (local $call i32)
  (local.set $call (i32.load (i32.const 8)))
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $call)))
      (if (i32.eq (i32.load offset=12 (local.get $call)) (local.get $instance)) (then (return (i32.const 1))))
      (local.set $call (i32.load offset=8 (local.get $call)))
      (br $more)))
  (i32.const 0))

;; ---- Error contexts: the message is not kept, as the specification permits. ----

(func (export "error new") (param $instance i32) (result i32)
  (call $insert (i32.load (local.get $instance)) (i32.const 0x80000003) (i32.const 0) (i32.const 0)))

(func (export "error check") (param $instance i32) (param $handle i32)
  (drop (call $record (i32.load (local.get $instance)) (i32.const 0x80000003) (local.get $handle))))

(func $error_transfer (param $from i32) (param $to i32) (param $handle i32) (result i32)
  (drop (call $record (i32.load (local.get $from)) (i32.const 0x80000003) (local.get $handle)))
  (call $insert (i32.load (local.get $to)) (i32.const 0x80000003) (i32.const 0) (i32.const 0)))

(func (export "error drop") (param $instance i32) (param $handle i32)
  (drop (call $remove (i32.load (local.get $instance)) (i32.const 0x80000003) (local.get $handle))))
