//! The border to the runtime: the one exported symbol. All that is `unsafe` about a function is in here.

/// Makes a handler the entry point of a reactor: exports `sledge_handle`, which calls it.
///
/// The handler is a function or closure from the body, `&[u8]`, to a `Result` of the reply, anything that is
/// `AsRef<[u8]>`, and an error that implements `Display`. To be used once in a crate.
///
/// Exporting a symbol under its own name counts as unsafe since a second one of that name would be undefined
/// behaviour; a second use of this macro is refused by the compiler or the linker.
#[macro_export]
macro_rules! handler {
    ($handler:expr) => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub extern "C" fn sledge_handle() -> i32 {
            $crate::handle($handler)
        }
    };
}
