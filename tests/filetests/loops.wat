;; A loop without effects stays a loop.
(module
  (memory 1)
  (func $forever (export "forever") (loop (br 0)))
  (func $waiting (export "waiting") (loop (br_if 0 (i32.eqz (i32.load (i32.const 0))))))
  (func $behind (export "behind") (result i32) (loop (br 0)) (i32.const 1))
  (func $caller (export "caller") (result i32) (drop (call $behind)) (i32.const 2))
)

;; RUN: --bounds guard -O3 --emit llvm-ir
;; NOT: mustprogress
;; NOT: willreturn
;; FUNCTION: wasm[0]::forever
;; CHECK: br label
;; NOT: ret void
;; FUNCTION: wasm[1]::waiting
;; CHECK: br i1
;; FUNCTION: wasm[3]::caller
;; NOT: ret i32 2

;; RUN: --bounds guard -O3 --emit asm
;; FUNCTION: wasm[0]::forever
;; CHECK: jmp
;; NOT: ret
