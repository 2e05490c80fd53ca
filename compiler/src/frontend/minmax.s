# fmin and fmax as processors have them: a comparison and two selections, which become a minimum and a mask. Debian's wasi-libc branches on NaNs and on the
# sign of zeros, of which the C standard (7.12.12, F.10.9) demands nothing. Of two operands of which one is a NaN, the result is the other.
#
# Weak, so that a program's own definitions win; linked before wasi-libc, so that these win over that.

	.functype fminf (f32, f32) -> (f32)
	.section .text.fminf,"",@
	.weak fminf
	.type fminf,@function
fminf:
	.functype fminf (f32, f32) -> (f32)
	local.get 0
	local.get 0
	local.get 1
	local.get 0
	local.get 1
	f32.lt
	f32.select
	local.get 1
	local.get 1
	f32.ne
	f32.select
	end_function

	.functype fmaxf (f32, f32) -> (f32)
	.section .text.fmaxf,"",@
	.weak fmaxf
	.type fmaxf,@function
fmaxf:
	.functype fmaxf (f32, f32) -> (f32)
	local.get 0
	local.get 0
	local.get 1
	local.get 0
	local.get 1
	f32.gt
	f32.select
	local.get 1
	local.get 1
	f32.ne
	f32.select
	end_function

	.functype fmin (f64, f64) -> (f64)
	.section .text.fmin,"",@
	.weak fmin
	.type fmin,@function
fmin:
	.functype fmin (f64, f64) -> (f64)
	local.get 0
	local.get 0
	local.get 1
	local.get 0
	local.get 1
	f64.lt
	f64.select
	local.get 1
	local.get 1
	f64.ne
	f64.select
	end_function

	.functype fmax (f64, f64) -> (f64)
	.section .text.fmax,"",@
	.weak fmax
	.type fmax,@function
fmax:
	.functype fmax (f64, f64) -> (f64)
	local.get 0
	local.get 0
	local.get 1
	local.get 0
	local.get 1
	f64.gt
	f64.select
	local.get 1
	local.get 1
	f64.ne
	f64.select
	end_function
