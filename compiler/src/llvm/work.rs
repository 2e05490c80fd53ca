//! On which function a thread works.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::AtomicU64;

unsafe extern "C" {
    /// Defined in `work.cpp`.
    fn awsm_say_function(place: *const AtomicU64);
}

/// While it lives, this thread says on which function it works.
#[derive(Debug)]
pub(crate) struct Saying<'a> {
    /// It has to end on the thread on which it began.
    _place: PhantomData<(&'a AtomicU64, *const ())>,
}

/// Makes LLVM on this thread write the number of each function on which it works to `place`, [`NO_FUNCTION`](super::NO_FUNCTION) where it is none of the program's,
/// as long as the result lives.
pub(crate) fn saying_function(place: &AtomicU64) -> Saying<'_> {
    // SAFETY: `place` outlives the result, whose end makes LLVM forget it; atomics of this size are laid out in C++ as here.
    unsafe { awsm_say_function(place) };
    Saying { _place: PhantomData }
}

impl Drop for Saying<'_> {
    fn drop(&mut self) {
        // SAFETY: null stands for no reader. The value is not `Send`: this is the thread that was told the place.
        unsafe { awsm_say_function(ptr::null()) };
    }
}
