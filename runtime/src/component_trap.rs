//! What a component did that ends its invocation as a trap does: the component model leaves no other answer.

use std::fmt;

use awsm_abi::component::{CANONICAL, Direction, Doing, RESPOND, TRAP, Violation};
use awsm_abi::descriptor::Descriptor;

/// Why an invocation of a component trapped in a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentTrap {
    /// What the component's own glue has seen.
    Violation(Violation),
    /// What is wrong with a handle that was passed.
    Handle {
        /// The handle.
        handle: u32,
        /// What is wrong with it.
        violation: Violation,
    },
    /// An argument or the place of a result does not lie within the memory.
    OutOfBounds,
    /// An argument or the place of a result is not where its type may be.
    Unaligned,
    /// A string is not in UTF-8.
    Utf8 {
        /// Where in the string it ceases to be.
        at: usize,
    },
    /// A string is not in UTF-16.
    Utf16 {
        /// Which byte of the string is the first of what is none.
        at: usize,
    },
    /// An argument has a case that its type does not have.
    Case,
    /// What a function returns is larger than the host keeps.
    ResultTooLarge,
    /// It goes on with a call that has no more to say.
    NothingToResume,
    /// A resource is dropped while there are others that depend on it.
    HasChildren,
    /// It would have more of something than an invocation may have at once.
    TooMany {
        /// How many it may have.
        max: usize,
        /// Of what.
        what: &'static str,
    },
    /// It writes more to a stream than it was told there is room for.
    BeyondPermit,
    /// It puts more headers or trailers together than the host keeps.
    FieldsTooLarge {
        /// How many it keeps.
        fields_max: usize,
        /// Bytes of their names and values.
        bytes_max: usize,
    },
    /// It polls nothing.
    NoPollables,
    /// It goes on on a stack that it does not have, has nothing that runs on a new one, or returns on one that it started. Glue does none of it.
    NoSuchStack,
}

impl fmt::Display for ComponentTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComponentTrap::Violation(violation) => violation.message(),
            ComponentTrap::Handle { handle, violation: Violation::UnknownHandle } => {
                return write!(f, "{} {handle}", Violation::UnknownHandle.message());
            }
            ComponentTrap::Handle { handle, violation } => return write!(f, "{}: handle {handle}", violation.message()),
            ComponentTrap::OutOfBounds => "pointer out of bounds of memory",
            ComponentTrap::Unaligned => "pointer not aligned",
            ComponentTrap::Utf8 { at } => return write!(f, "invalid utf8 at byte {at} of the argument"),
            ComponentTrap::Utf16 { at } => return write!(f, "invalid utf16 at byte {at} of the argument"),
            ComponentTrap::Case => "argument has a case that its type does not have",
            ComponentTrap::ResultTooLarge => "result is larger than the host keeps",
            ComponentTrap::NothingToResume => "no call is left to go on with",
            ComponentTrap::HasChildren => "resource has children",
            ComponentTrap::TooMany { max, what } => return write!(f, "more than {} {what} at once", grouped(*max)),
            ComponentTrap::BeyondPermit => "write to a stream beyond what it had room for",
            ComponentTrap::FieldsTooLarge { fields_max, bytes_max } => {
                return write!(
                    f,
                    "more than {} HTTP fields, or more than {} bytes of them",
                    grouped(*fields_max),
                    grouped(*bytes_max)
                );
            }
            ComponentTrap::NoPollables => "empty list of pollables",
            ComponentTrap::NoSuchStack => "no such stack, or nothing to run on it",
        })
    }
}

impl ComponentTrap {
    /// What the glue has seen: with the value that was wrong, where it says that.
    #[must_use]
    pub const fn of(violation: Violation, value: Option<u32>) -> ComponentTrap {
        match (violation, value) {
            (_, None) => ComponentTrap::Violation(violation),
            (Violation::InvalidUtf8, Some(at)) => ComponentTrap::Utf8 { at: at as usize },
            (Violation::InvalidUtf16, Some(at)) => ComponentTrap::Utf16 { at: at as usize },
            (violation, Some(handle)) => ComponentTrap::Handle { handle, violation },
        }
    }

    /// What a person is told: what the component model forbids, and where it was done. `frames` are module, index and offset of each function that was being
    /// executed, innermost first; `called` is the module and name of the host function that found it.
    #[must_use]
    pub fn told(
        self,
        descriptor: &Descriptor,
        frames: impl IntoIterator<Item = (u32, u32, u32)>,
        called: (&str, &str),
    ) -> String {
        let frames: Vec<_> = frames.into_iter().collect();
        if self.is_of_result(called)
            && let Some(words) = descriptor.entered(frames.iter().copied())
        {
            return format!("{words}: {}", self.passing(Direction::Results));
        }
        let known = descriptor.component.as_ref().zip(descriptor.doing(frames));
        let Some((component, doing)) = known else { return self.to_string() };
        let words = component.words(doing);
        match doing {
            Doing::Passing(_, direction) => format!("{words}: {}", self.passing(direction)),
            Doing::Running(_) if called.0 == CANONICAL => format!("{words}: {}", self.streaming()),
            Doing::Running(_) => format!("`{}` of `{}`, called by {words}: {self}", called.1, called.0),
        }
    }

    /// Whether it may be wrong what the server gets of the component: what glue finds as it takes the result, or the host as it takes a response.
    fn is_of_result(self, called: (&str, &str)) -> bool {
        let is_found_by_glue = matches!(
            self,
            ComponentTrap::Violation(
                Violation::InvalidDiscriminant | Violation::UnalignedPointer | Violation::PointerOutOfBounds
            )
        );
        called == (CANONICAL, RESPOND) || called == (CANONICAL, TRAP) && is_found_by_glue
    }

    /// What a person is told of values that were passed in that direction.
    fn passing(self, direction: Direction) -> String {
        let word = direction.word();
        match self {
            ComponentTrap::Utf8 { at } => format!("invalid utf8 at byte {at} of the {word}"),
            ComponentTrap::Utf16 { at } => format!("invalid utf16 at byte {at} of the {word}"),
            ComponentTrap::Handle { .. } => format!("{self}, in the {word}"),
            ComponentTrap::Case => format!("{}, in the {word}", Violation::InvalidDiscriminant.message()),
            ComponentTrap::Violation(violation) if violation.is_of_value() => format!("{self}, in the {word}"),
            other => other.to_string(),
        }
    }

    /// What a person is told of what is found without a call: where it is a string, a value of a stream or future has it.
    fn streaming(self) -> String {
        match self {
            ComponentTrap::Utf8 { at } => format!("invalid utf8 at byte {at} of a string in a stream or future"),
            ComponentTrap::Utf16 { at } => format!("invalid utf16 at byte {at} of a string in a stream or future"),
            other => other.to_string(),
        }
    }

    /// What it is, for machines.
    #[must_use]
    pub const fn identifier(self) -> &'static str {
        match self {
            ComponentTrap::OutOfBounds => "memory_out_of_bounds",
            _ => "component",
        }
    }
}

/// A number as people read it: `16,384`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let group =
        |(at, digit): (usize, char)| (at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(',').into_iter().chain([digit]);
    digits.chars().enumerate().flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_says_which_handle_and_where() {
        let handle = |violation| ComponentTrap::Handle { handle: 7, violation }.to_string();
        assert_eq!(handle(Violation::UnknownHandle), "unknown handle index 7");
        assert_eq!(handle(Violation::Lent), "cannot remove owned resource while borrowed: handle 7");
        assert_eq!(ComponentTrap::Utf8 { at: 3 }.to_string(), "invalid utf8 at byte 3 of the argument");
    }

    #[test]
    fn a_limit_is_named_with_its_number() {
        let words = |max, what| ComponentTrap::TooMany { max, what }.to_string();
        assert_eq!(words(4_096, "calls to the host"), "more than 4,096 calls to the host at once");
        assert_eq!([0, 64, 999, 1_000, 65_536, 1_048_576].map(grouped), ["0", "64", "999", "1,000", "65,536", "1,048,576"]);
    }

    #[test]
    fn what_is_passed_is_an_argument_or_a_result() {
        let passing = |violation, value, direction| ComponentTrap::of(violation, value).passing(direction);
        for (violation, value, direction, message) in [
            (Violation::InvalidUtf8, Some(12), Direction::Results, "invalid utf8 at byte 12 of the result"),
            (Violation::InvalidUtf16, Some(4), Direction::Arguments, "invalid utf16 at byte 4 of the argument"),
            (Violation::InvalidUtf8, None, Direction::Arguments, "invalid utf8 encoding, in the argument"),
            (Violation::UnknownHandle, Some(7), Direction::Arguments, "unknown handle index 7, in the argument"),
            (Violation::UnalignedPointer, None, Direction::Results, "unaligned pointer, in the result"),
            (Violation::Reentered, None, Direction::Arguments, "cannot enter component instance"),
        ] {
            assert_eq!(passing(violation, value, direction), message);
        }
    }
}
