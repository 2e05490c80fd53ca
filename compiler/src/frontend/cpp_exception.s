# The tag of C++'s exceptions: whatever throws or catches one refers to it, and clang defines it nowhere.
	.globl	__cpp_exception
	.tagtype	__cpp_exception i32
__cpp_exception:
