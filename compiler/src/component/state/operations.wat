;; Operations of the host: calls of functions whose type is async and that have to wait. An operation is a record as a subtask's (see `tasks.wat`), with
;;
;;   52  its function in `entries`, which goes on with it: whether it is over
;;   56  where the caller wants a flat result
;;   64  the flat result, for a caller that waits in its call
;;
;; Address 12 holds the operation that the next call of the host may become; zero once it has.

;; `state.rs` imports `$host_wait`, `$host_look`, `$host_cancel` and `$host_close`.

;; Prepares one of an instance.
(func (export "operation begin") (param $instance i32) (result i32)
  (local $operation i32)
  (local.set $operation (call $take_small))
  (i32.store (local.get $operation) (i32.const 1))
  (i32.store offset=8 (local.get $operation) (local.get $instance))
  (i32.store offset=36 (local.get $operation) (i32.const 1))
  (i32.store (i32.const 12) (local.get $operation))
  (local.get $operation))

;; The host goes on with it.
(func (export "operation again") (param $operation i32)
  (i32.store (i32.const 12) (local.get $operation)))

;; Whether the call is over that the host has answered just now.
(func (export "operation done") (result i32)
  (local $operation i32)
  (local.set $operation (i32.load (i32.const 12)))
  (i32.store (i32.const 12) (i32.const 0))
  (i32.ne (local.get $operation) (i32.const 0)))

(func (export "operation drop") (param $operation i32)
  (call $give_small (local.get $operation)))

;; It is under way, as a subtask of its instance: what `canon lower` returns.
(func (export "operation start") (param $operation i32) (param $entry i32) (param $to i32) (result i32)
  (local $handle i32)
  (local.set $handle
    (call $insert
      (i32.load (i32.load offset=8 (local.get $operation)))
      (i32.const 0x80000001)
      (local.get $operation)
      (i32.const 0)))
  (i32.store offset=4 (local.get $operation) (local.get $handle))
  (i32.store offset=52 (local.get $operation) (local.get $entry))
  (i32.store offset=56 (local.get $operation) (local.get $to))
  (i32.or (i32.const 1) (i32.shl (local.get $handle) (i32.const 4))))

;; It is under way, and the caller waits for it in its call.
(func (export "operation run") (param $operation i32) (param $entry i32)
  (call $check_blocking)
  (i32.store offset=52 (local.get $operation) (local.get $entry))
  (call $wait_for (local.get $operation)))

;; A flat result.
(func (export "operation keep") (param $operation i32) (param $result i64)
  (i64.store offset=64 (local.get $operation) (local.get $result)))

(func (export "operation result") (param $operation i32) (result i64)
  (i64.load offset=64 (local.get $operation)))

(func (export "operation place") (param $operation i32) (result i32)
  (i32.load offset=56 (local.get $operation)))

;; Nothing of the component can run: the host says which operation goes on, or 1 where something went on that is the host's own.
(func $wait_for_host
  (local $operation i32)
  (local.set $operation (call $host_wait))
  (if (i32.eqz (local.get $operation)) (then (call $trap (i32.const 20))))
  (call $go_on_with (local.get $operation)))

;; Something of the component can run all the time: the host says whether an operation can go on, too.
(func $look_at_host
  (local $operation i32)
  (local.set $operation (call $host_look))
  (if (local.get $operation) (then (call $go_on_with (local.get $operation)))))

(func $go_on_with (param $operation i32)
  (if (i32.eq (local.get $operation) (i32.const 1)) (then (return)))
  (if (i32.ne (i32.load (local.get $operation)) (i32.const 1))
    (then
      (call $go_on_outside (local.get $operation))
      (return)))
  (if (call_indirect $entries (type $entry_run) (local.get $operation) (i32.load offset=52 (local.get $operation)))
    (then (call $progress (local.get $operation) (i32.const 2)))))

;; An operation is cancelled.
(func $cancel_operation (param $operation i32)
  (call $host_cancel (local.get $operation))
  (call $progress (local.get $operation) (i32.const 4)))
