# fmin and fmax as processors have them: a comparison and two selections, which become a minimum and a mask. Debian's wasi-libc branches on NaNs and on the
# sign of zeros, of which the C standard (7.12.12, F.10.9) demands nothing. Of two operands of which one is a NaN, the result is the other.
#
# Weak, so that a program's own definitions win; linked before wasi-libc, so that these win over that.

	.macro	choose name, type, before
	.functype	\name (\type, \type) -> (\type)
	.section	.text.\name,"",@
	.weak	\name
	.hidden	\name
	.type	\name,@function
\name:
	.functype	\name (\type, \type) -> (\type)
	local.get	0
	local.get	0
	local.get	1
	local.get	0
	local.get	1
	\type\().\before
	\type\().select
	local.get	1
	local.get	1
	\type\().ne
	\type\().select
	end_function
	.endm

	choose	fminf, f32, lt
	choose	fmaxf, f32, gt
	choose	fmin, f64, lt
	choose	fmax, f64, gt
