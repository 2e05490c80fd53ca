//! Cases that fail, and why. One that passes fails the run.

/// Names of cases: group, file, and number in the file where it has several.
pub(crate) const EXPECTED_FAILURES: &[(&str, &str)] = &[];

/// Files that are no JSON of Unicode text, and why.
pub(crate) const UNREADABLE: &[(&str, &str)] = &[
    (
        "function-encodeUrl/case002",
        "its expression holds half a surrogate pair, which is no Unicode text: no JSON parser for Unicode strings reads it",
    ),
    ("function-encodeUrlComponent/case002", "as function-encodeUrl/case002"),
];
