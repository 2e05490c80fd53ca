//! Signals: none comes to a function.

use std::future::pending;
use std::io;

/// Never comes.
///
/// # Errors
/// None.
pub async fn ctrl_c() -> io::Result<()> {
    pending().await
}

/// Signals of Unix, for programs that name them without asking where they are.
pub mod unix {
    use std::io;
    use std::task::{Context, Poll};

    /// A kind of signal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SignalKind(i32);

    macro_rules! kinds {
        ($($name:ident = $number:expr),*) => {
            impl SignalKind {
                /// One by its number.
                pub const fn from_raw(number: i32) -> SignalKind {
                    SignalKind(number)
                }

                /// Its number.
                pub const fn as_raw_value(&self) -> i32 {
                    self.0
                }

                $(#[allow(missing_docs)] pub const fn $name() -> SignalKind { SignalKind($number) })*
            }
        };
    }

    // Linux's numbers.
    kinds!(
        hangup = 1,
        interrupt = 2,
        quit = 3,
        user_defined1 = 10,
        user_defined2 = 12,
        pipe = 13,
        alarm = 14,
        terminate = 15,
        child = 17,
        io = 29,
        window_change = 28
    );

    /// What listens for one.
    #[derive(Debug)]
    pub struct Signal(());

    /// Listens for one, which never comes.
    ///
    /// # Errors
    /// None.
    pub fn signal(_: SignalKind) -> io::Result<Signal> {
        Ok(Signal(()))
    }

    impl Signal {
        /// Never comes.
        pub async fn recv(&mut self) -> Option<()> {
            std::future::pending().await
        }

        /// Never comes.
        pub fn poll_recv(&mut self, _: &mut Context<'_>) -> Poll<Option<()>> {
            Poll::Pending
        }
    }
}
