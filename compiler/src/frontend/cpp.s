# What C++ needs that Debian's libraries lack.
#
# Weak, so that definitions in other libraries win.

# Destroys an object of a thread at its end. libc++abi has it with threads only. A function runs in one thread, which ends with the program.
	.functype	__cxa_atexit (i32, i32, i32) -> (i32)
	.section	.text.__cxa_thread_atexit,"",@
	.weak	__cxa_thread_atexit
	.hidden	__cxa_thread_atexit
	.type	__cxa_thread_atexit,@function
__cxa_thread_atexit:
	.functype	__cxa_thread_atexit (i32, i32, i32) -> (i32)
	local.get	0
	local.get	1
	local.get	2
	call	__cxa_atexit
	end_function

# Divisions of 128 bits, which std::format does, are compiled with a stack protector. wasi-libc has none.
	.section	.text.__stack_chk_fail,"",@
	.weak	__stack_chk_fail
	.hidden	__stack_chk_fail
	.type	__stack_chk_fail,@function
__stack_chk_fail:
	.functype	__stack_chk_fail () -> ()
	unreachable
	end_function

	.type	__stack_chk_guard,@object
	.section	.data.__stack_chk_guard,"",@
	.weak	__stack_chk_guard
	.hidden	__stack_chk_guard
	.p2align	2
__stack_chk_guard:
	.int32	0x5bd1e995
	.size	__stack_chk_guard, 4
