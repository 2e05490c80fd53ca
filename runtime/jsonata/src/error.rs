//! Why an expression cannot be parsed or evaluated.
//!
//! The codes are JSONata's, by which its documentation and tests name errors: `S` for syntax, `T` for types, `D` for what is found during evaluation; `U` for limits of ours.

use std::fmt::{self, Display};

/// Characters of a value that an error quotes.
const QUOTED_MAX: usize = 200;
/// Characters of a message of `$error` or `$assert`: as many as a cause in Amazon States Language has.
const MESSAGE_MAX: usize = 32_768;

/// What is wrong, and where.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{code}: {message}{place}", code = .0.code, message = .0.message(), place = Place(.0.position))]
pub struct Error(Box<Details>);

pub(crate) type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone)]
struct Details {
    code: &'static str,
    position: Option<u32>,
    token: Option<String>,
    value: Option<String>,
    index: Option<usize>,
}

struct Place(Option<u32>);

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(position) => write!(f, " (at character {position})"),
            None => Ok(()),
        }
    }
}

impl Error {
    pub(crate) fn new(code: &'static str) -> Error {
        Error(Box::new(Details { code, position: None, token: None, value: None, index: None }))
    }

    pub(crate) fn at(mut self, position: u32) -> Error {
        self.0.position.get_or_insert(position);
        self
    }

    pub(crate) fn with_token(mut self, token: impl Display) -> Error {
        if self.0.token.is_none() {
            self.0.token = Some(quote(&token));
        }
        self
    }

    pub(crate) fn with_value(mut self, value: impl Display) -> Error {
        self.0.value = Some(quote(&value));
        self
    }

    /// What the expression itself says is wrong.
    pub(crate) fn with_message(mut self, message: &str) -> Error {
        self.0.value = Some(message.chars().take(MESSAGE_MAX).collect());
        self
    }

    pub(crate) fn with_index(mut self, index: usize) -> Error {
        self.0.index = Some(index);
        self
    }

    /// JSONata's code, such as `T2001`; `D1011` for too deep an evaluation, `D1012` for too many steps, `U1002` for too much memory.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Where in the source: characters before the place, if it is known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position.map(|position| position as usize)
    }

    /// The token, operator or function that it is about, if there is one.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.0.token.as_deref()
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn message(&self) -> String {
        self.0.message()
    }

    /// Whether a limit ended the evaluation, and not what the expression says.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.0.code, "D1011" | "D1012" | "D2014" | "U1001" | "U1002" | "U1003")
    }
}

fn quote(value: &impl Display) -> String {
    let text = value.to_string();
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

impl Details {
    fn message(&self) -> String {
        let template = template(self.code);
        let index = self.index.map(|index| index.to_string());
        let mut message = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            message.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            message.push_str(match name {
                "token" => self.token.as_deref().unwrap_or("?"),
                "index" => index.as_deref().unwrap_or("?"),
                _ => self.value.as_deref().unwrap_or("?"),
            });
            rest = after;
        }
        message.push_str(rest);
        message
    }
}

fn template(code: &str) -> &'static str {
    match code.as_bytes().first() {
        Some(b'S') => syntax(code),
        Some(b'T') => types(code),
        Some(b'U') => limits(code),
        _ if code.starts_with("D3") => functions(code),
        _ => dynamic(code),
    }
}

fn syntax(code: &str) -> &'static str {
    match code {
        "S0101" => "this string has no closing quote",
        "S0102" => "the number {token} is out of range",
        "S0103" => "\\{token} is no escape sequence; write \\\\ for a backslash",
        "S0104" => "\\u takes four hexadecimal digits that make a Unicode character; a surrogate needs its other half",
        "S0105" => "this quoted name has no closing backquote (`)",
        "S0106" => "this comment has no closing */",
        "S0201" => "unexpected {token}",
        "S0202" => "expected {value}, found {token}",
        "S0203" => "the expression ends where {value} is expected",
        "S0204" => "unknown operator {token}",
        "S0207" => "the expression ends where a value is expected",
        "S0208" => "parameter {value} of a function must be a variable, such as $x",
        "S0209" => "a predicate cannot follow a grouping; put the grouping in parentheses",
        "S0210" => "a step can have one grouping only",
        "S0211" => "{token} cannot begin a value",
        "S0212" => "the left side of := must be a variable, such as $x",
        "S0213" => "the literal {value} cannot be a step of a path",
        "S0214" => "the right side of {token} must be a variable, such as $x",
        "S0215" => "@ must come before the predicates of its step",
        "S0216" => "@ must come before the order-by of its step",
        "S0217" => "% refers to a parent that this expression does not have",
        "S0301" => "a regular expression cannot be empty",
        "S0302" => "this regular expression has no closing /",
        "S0303" => "this regular expression is malformed: {value}",
        "S0401" => "in a signature, only functions and arrays have type parameters",
        "S0402" => "in a signature, a choice cannot hold types with parameters",
        _ => "syntax error",
    }
}

fn types(code: &str) -> &'static str {
    match code {
        "T0410" => "argument {index} of function {token} does not match the function's signature",
        "T0411" => "the context value does not match argument {index} of function {token}",
        "T0412" => "argument {index} of function {token} must be an array of {value}",
        "T1003" => "the key of an object must be a string; it is {value}",
        "T1005" => "attempt to call something that is no function; is ${token} meant?",
        "T1006" => "attempt to call something that is no function",
        "T1007" => "attempt to partially apply something that is no function; is ${token} meant?",
        "T1008" => "attempt to partially apply something that is no function",
        "T1010" => "the matcher that function {token} was given does not return a match",
        "T2001" => "the left side of {token} must be a number",
        "T2002" => "the right side of {token} must be a number",
        "T2003" => "the left side of .. must be an integer",
        "T2004" => "the right side of .. must be an integer",
        "T2006" => "the right side of ~> must be a function",
        "T2007" => "order-by cannot compare a number with a string",
        "T2008" => "order-by compares numbers or strings only",
        "T2009" => "both sides of {token} must have the same type",
        "T2010" => "both sides of {token} must be numbers or strings",
        "T2011" => "the update of a transform must be an object; it is {value}",
        "T2012" => "the deletion of a transform must be a string or an array of strings; it is {value}",
        "T2013" => "$clone, which a transform uses, is no function here",
        _ => "type error",
    }
}

fn dynamic(code: &str) -> &'static str {
    match code {
        "D1001" => "a number is out of range: {value}",
        "D1002" => "cannot negate {value}, which is no number",
        "D1004" => "a regular expression that matches an empty string cannot be repeated",
        "D1009" => "two keys of an object are the same: {value}",
        "D1011" => "the evaluation nests too deeply; make recursive functions tail-recursive",
        "D1012" => "the evaluation takes more than {value} steps; look for an endless loop",
        "D2014" => "the range has {value} elements; at most 10 million are allowed",
        _ => "the evaluation failed",
    }
}

fn limits(code: &str) -> &'static str {
    match code {
        "U1001" => "the expression is too long or nests too deeply; at most {value} are allowed",
        "U1002" => "the evaluation needs more than {value} bytes of memory",
        "U1003" => "JSON nests too deeply; at most {value} levels are allowed",
        "U1004" => "the result holds a function, which JSON cannot represent",
        _ => "a limit was reached",
    }
}

fn functions(code: &str) -> &'static str {
    match code {
        "D3001" => "cannot make a string of a number that is out of range",
        "D3010" => "the pattern of $replace cannot be empty",
        "D3011" => "the limit of $replace cannot be negative",
        "D3012" => "the replacement function of $replace must return a string",
        "D3020" => "the limit of $split cannot be negative",
        "D3030" => "cannot make a number of {value}",
        "D3040" => "the limit of $match cannot be negative",
        "D3050" => "the function of $reduce must take two arguments or more",
        "D3060" => "$sqrt cannot take the negative number {value}",
        "D3061" => "the result of $power is out of range: {value}",
        "D3070" => "without a function, $sort takes an array of numbers or an array of strings",
        "D3080" => "a picture has two sub-pictures at most",
        "D3081" => "a sub-picture has one decimal separator at most",
        "D3082" => "a sub-picture has one percent sign at most",
        "D3083" => "a sub-picture has one per-mille sign at most",
        "D3084" => "a sub-picture cannot have both a percent and a per-mille sign",
        "D3085" => "the mantissa of a sub-picture needs a digit",
        "D3086" => "a sub-picture cannot have other characters between its digits",
        "D3087" => "a grouping separator cannot be next to the decimal separator",
        "D3088" => "a grouping separator cannot end the integer part",
        "D3089" => "two grouping separators cannot be adjacent",
        "D3090" => "in the integer part, optional digits come before mandatory digits",
        "D3091" => "in the fractional part, mandatory digits come before optional digits",
        "D3092" => "a sub-picture with a percent or per-mille sign cannot have an exponent",
        "D3093" => "an exponent consists of one or more mandatory digits",
        "D3100" => "the radix of $formatBase must be from 2 to 36; it is {value}",
        "D3110" => "$toMillis takes an ISO 8601 timestamp, not {value}",
        "D3120" => "$eval cannot parse its argument: {value}",
        "D3121" => "$eval cannot evaluate its argument: {value}",
        "D3130" => "integers cannot be formatted or parsed by the picture {value}",
        "D3131" => "all digits of a picture must be of the same family",
        "D3132" => "{value} is no component of a date and time picture",
        "D3133" => "only months and days have names, not component {value}",
        "D3134" => "a time zone has four digits at most",
        "D3135" => "a date and time picture has no closing bracket ]",
        "D3136" => "the picture lacks components that a timestamp needs",
        "D3137" | "D3141" => "{value}",
        "D3138" => "$single found more than one match",
        "D3139" => "$single found no match",
        "D3140" => "{token} takes a well-formed URL, not {value}",
        "D3150" => "$partition takes a size of one or more",
        "D3151" => "$range takes a step that is not zero",
        "D3152" => "$hash knows MD5, SHA-1, SHA-256, SHA-384 and SHA-512, not {value}",
        "D3153" => "$parse takes JSON: {value}",
        "D3154" => "an option of $formatNumber must be a single character or a string: {value}",
        _ => "a function failed",
    }
}
