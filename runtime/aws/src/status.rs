//! Words with few values that requests and answers share.

use serde::{Serialize, Serializer};

/// An enumeration whose values are words of the protocol.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $value,)* }

        impl $name {
            /// Every value, in the order in which AWS lists them in errors.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            /// The word of the protocol.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

words! {
    /// How an execution stands.
    ExecutionStatus {
        /// It ended with an output.
        Succeeded = "SUCCEEDED",
        /// It took longer than its definition allows.
        TimedOut = "TIMED_OUT",
        /// A redrive of it waits to begin.
        PendingRedrive = "PENDING_REDRIVE",
        /// It was stopped.
        Aborted = "ABORTED",
        /// It ended with an error.
        Failed = "FAILED",
        /// It runs.
        Running = "RUNNING",
    }
}

words! {
    /// Whether executions have been redriven.
    RedriveFilter {
        /// Those that were redriven.
        Redriven = "REDRIVEN",
        /// Those that were not.
        NotRedriven = "NOT_REDRIVEN",
    }
}

words! {
    /// Whether an execution can be redriven.
    RedriveStatus {
        /// It can.
        Redrivable = "REDRIVABLE",
        /// It cannot.
        NotRedrivable = "NOT_REDRIVABLE",
    }
}

words! {
    /// How much an answer tells.
    IncludedData {
        /// Everything; the default.
        AllData = "ALL_DATA",
        /// Neither definitions nor inputs and outputs.
        MetadataOnly = "METADATA_ONLY",
    }
}

words! {
    /// The type of a state machine.
    MachineType {
        /// Durable executions.
        Standard = "STANDARD",
        /// Short executions without a durable history.
        Express = "EXPRESS",
    }
}
