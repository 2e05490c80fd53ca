//! The functions that JSONata has (<https://docs.jsonata.org/string-functions> and the pages after it), and those that AWS Step Functions adds.
//!
//! * `string`, `matching`, `encode`: strings; `number`, `aggregate`: numbers; `format_number`, `integer`, `date`, `picture`, `parse_date`: formats by XPath pictures;
//!   `array`, `object`, `higher_order`: collections; `states`: additions of AWS Step Functions.
//!
//! Arguments have been checked against the function's signature before any of these is called.

mod aggregate;
mod array;
mod date;
mod encode;
mod format_number;
mod higher_order;
mod integer;
mod matching;
mod number;
mod object;
mod parse_date;
mod picture;
mod states;
mod string;
mod words;

use std::rc::Rc;
use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::frame::Frame;
use crate::signature::Signature;
use crate::text::{self, Text};
use crate::value::Value;

/// Whose functions there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Those of AWS Step Functions: JSONata's without `$eval`, and with `$partition`, `$range`, `$hash`, `$random(seed)`, `$uuid` and `$parse`.
    #[default]
    StepFunctions,
    /// Those of jsonata-js.
    JsonataJs,
}

macro_rules! builtins {
    ($($variant:ident $name:literal $signature:literal $arity:literal,)*) => {
        /// A function of ours.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Builtin {
            $($variant,)*
        }

        impl Builtin {
            fn of(name: &str) -> Option<Builtin> {
                Some(match name {
                    $($name => Builtin::$variant,)*
                    _ => return None,
                })
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Builtin::$variant => $name,)*
                }
            }

            /// How many arguments other functions give it.
            pub(crate) fn arity(self) -> usize {
                match self {
                    $(Builtin::$variant => $arity,)*
                }
            }
        }

        static SIGNATURES: LazyLock<Vec<Option<Signature>>> = LazyLock::new(|| vec![$(Signature::parse($signature).ok(),)*]);
    };
}

builtins! {
    Sum "sum" "<a<n>:n>" 1,
    Count "count" "<a:n>" 1,
    Max "max" "<a<n>:n>" 1,
    Min "min" "<a<n>:n>" 1,
    Average "average" "<a<n>:n>" 1,
    String "string" "<x-b?:s>" 1,
    Substring "substring" "<s-nn?:s>" 3,
    SubstringBefore "substringBefore" "<s-s:s>" 2,
    SubstringAfter "substringAfter" "<s-s:s>" 2,
    Lowercase "lowercase" "<s-:s>" 1,
    Uppercase "uppercase" "<s-:s>" 1,
    Length "length" "<s-:n>" 1,
    Trim "trim" "<s-:s>" 1,
    Pad "pad" "<s-ns?:s>" 3,
    Match "match" "<s-f<s:o>n?:a<o>>" 3,
    Contains "contains" "<s-(sf):b>" 2,
    Replace "replace" "<s-(sf)(sf)n?:s>" 4,
    Split "split" "<s-(sf)n?:a<s>>" 3,
    Join "join" "<a<s>s?:s>" 2,
    FormatNumber "formatNumber" "<n-so?:s>" 3,
    FormatBase "formatBase" "<n-n?:s>" 2,
    FormatInteger "formatInteger" "<n-s:s>" 2,
    ParseInteger "parseInteger" "<s-s:n>" 2,
    Number "number" "<(nsb)-:n>" 1,
    Floor "floor" "<n-:n>" 1,
    Ceil "ceil" "<n-:n>" 1,
    Round "round" "<n-n?:n>" 2,
    Abs "abs" "<n-:n>" 1,
    Sqrt "sqrt" "<n-:n>" 1,
    Power "power" "<n-n:n>" 2,
    Random "random" "<:n>" 0,
    Boolean "boolean" "<x-:b>" 1,
    Not "not" "<x-:b>" 1,
    Map "map" "<af>" 2,
    Zip "zip" "<a+>" 0,
    Filter "filter" "<af>" 2,
    Single "single" "<af?>" 2,
    Reduce "reduce" "<afj?:j>" 3,
    Sift "sift" "<o-f?:o>" 2,
    Keys "keys" "<x-:a<s>>" 1,
    Lookup "lookup" "<x-s:x>" 2,
    Append "append" "<xx:a>" 2,
    Exists "exists" "<x:b>" 1,
    Spread "spread" "<x-:a<o>>" 1,
    Merge "merge" "<a<o>:o>" 1,
    Reverse "reverse" "<a:a>" 1,
    Each "each" "<o-f:a>" 2,
    Error "error" "<s?:x>" 1,
    Assert "assert" "<bs?:x>" 2,
    Type "type" "<x:s>" 1,
    Sort "sort" "<af?:a>" 2,
    Shuffle "shuffle" "<a:a>" 1,
    Distinct "distinct" "<x:x>" 1,
    Base64Encode "base64encode" "<s-:s>" 1,
    Base64Decode "base64decode" "<s-:s>" 1,
    EncodeUrlComponent "encodeUrlComponent" "<s-:s>" 1,
    EncodeUrl "encodeUrl" "<s-:s>" 1,
    DecodeUrlComponent "decodeUrlComponent" "<s-:s>" 1,
    DecodeUrl "decodeUrl" "<s-:s>" 1,
    Eval "eval" "<sx?:x>" 2,
    ToMillis "toMillis" "<s-s?:n>" 2,
    FromMillis "fromMillis" "<n-s?s?:s>" 3,
    Clone "clone" "<(oa)-:o>" 1,
    Now "now" "<s?s?:s>" 2,
    Millis "millis" "<:n>" 0,
    Partition "partition" "<an:a>" 2,
    Range "range" "<nnn:a>" 3,
    Hash "hash" "<s-s:s>" 2,
    RandomSeeded "random (with a seed)" "<n?:n>" 1,
    Uuid "uuid" "<:s>" 0,
    Parse "parse" "<s-:x>" 1,
}

impl Builtin {
    /// The function that a variable of this name is, unless it is bound to something else.
    pub(crate) fn named(name: &str, dialect: Dialect) -> Option<Builtin> {
        let builtin = Builtin::of(name)?;
        match (dialect, builtin) {
            (Dialect::StepFunctions, Builtin::Random) => Some(Builtin::RandomSeeded),
            (Dialect::StepFunctions, Builtin::Eval) => None,
            (
                Dialect::JsonataJs,
                Builtin::Partition | Builtin::Range | Builtin::Hash | Builtin::RandomSeeded | Builtin::Uuid | Builtin::Parse,
            ) => None,
            _ => Some(builtin),
        }
    }
}

/// The arguments of a function; what is missing is undefined.
pub(crate) struct Arguments<'a>(Vec<Value<'a>>);

impl<'a> Arguments<'a> {
    fn take(&mut self, index: usize) -> Value<'a> {
        self.0.get_mut(index).map(std::mem::take).unwrap_or_default()
    }

    fn text(&mut self, index: usize) -> Option<Text<'a>> {
        match self.take(index) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&mut self, index: usize) -> Option<f64> {
        match self.take(index) {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }
}

impl<'a> Interpreter<'a> {
    /// Calls a function after its arguments have been checked.
    pub(crate) fn builtin_checked(
        &self,
        builtin: Builtin,
        arguments: Vec<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let signature = SIGNATURES.get(builtin as usize).and_then(Option::as_ref);
        let checked = match signature {
            Some(signature) => signature.check(arguments, input, &self.meter),
            None => Ok(arguments),
        };
        let result = checked.and_then(|arguments| self.call_builtin(builtin, Arguments(arguments), input, frame));
        result.map_err(|error| error.with_token(builtin.name()))
    }

    fn call_builtin(
        &self,
        builtin: Builtin,
        mut arguments: Arguments<'a>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        use Builtin as B;
        let arguments = &mut arguments;
        match builtin {
            B::Sum | B::Count | B::Max | B::Min | B::Average => self.aggregate(builtin, arguments),
            B::String
            | B::Substring
            | B::SubstringBefore
            | B::SubstringAfter
            | B::Lowercase
            | B::Uppercase
            | B::Length
            | B::Trim => self.string_function(builtin, arguments),
            B::Pad => self.pad(arguments),
            B::Join => self.join(arguments),
            B::Match => self.match_function(arguments, frame),
            B::Contains => self.contains(arguments, frame),
            B::Replace => self.replace(arguments, frame),
            B::Split => self.split(arguments, frame),
            B::FormatNumber => self.format_number(arguments),
            B::FormatInteger => self.format_integer(arguments),
            B::ParseInteger => self.parse_integer(arguments),
            B::FormatBase | B::Number | B::Floor | B::Ceil | B::Round | B::Abs | B::Sqrt | B::Power => {
                self.number_function(builtin, arguments)
            }
            B::Random => Ok(Value::Number(self.random.borrow_mut().f64())),
            B::Boolean | B::Not => match arguments.take(0) {
                Value::Undefined => Ok(Value::Undefined),
                value => Ok(Value::Bool(self.is_true(&value)? != (builtin == B::Not))),
            },
            B::Map | B::Filter | B::Single | B::Reduce | B::Sift | B::Each => self.higher_order(builtin, arguments, frame),
            B::Sort => self.sort(arguments, frame),
            B::Zip => self.zip(arguments),
            B::Append => self.append(arguments),
            B::Reverse => self.reverse(arguments),
            B::Shuffle => self.shuffle(arguments),
            B::Distinct => self.distinct(arguments),
            B::Keys => self.keys(arguments),
            B::Lookup => match (arguments.take(0), arguments.text(1)) {
                (value, Some(key)) => self.lookup(&value, key.as_str(), 0),
                _ => Ok(Value::Undefined),
            },
            B::Exists => Ok(Value::Bool(!arguments.take(0).is_undefined())),
            B::Spread => self.spread(arguments),
            B::Merge => self.merge(arguments),
            B::Type => self.type_name(arguments),
            B::Clone => match arguments.take(0) {
                Value::Undefined => Ok(Value::Undefined),
                value => self.copied(&value, 0),
            },
            B::Error | B::Assert => self.complain(builtin, arguments),
            B::Base64Encode | B::Base64Decode => self.base64(builtin, arguments),
            B::EncodeUrlComponent | B::EncodeUrl | B::DecodeUrlComponent | B::DecodeUrl => self.url(builtin, arguments),
            B::Eval => self.eval(arguments, input, frame),
            B::ToMillis => self.to_millis(arguments),
            B::FromMillis => match arguments.number(0) {
                Some(millis) => self.format_date(millis, arguments.text(1), arguments.text(2)),
                None => Ok(Value::Undefined),
            },
            B::Now => self.format_date(self.now_ms as f64, arguments.text(0), arguments.text(1)),
            B::Millis => Ok(Value::Number(self.now_ms as f64)),
            B::Partition | B::Range | B::Hash | B::RandomSeeded | B::Uuid | B::Parse => self.states_function(builtin, arguments),
        }
    }

    /// `$error`, and `$assert` of what is not true.
    fn complain(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (code, message, default) = match builtin {
            Builtin::Error => ("D3137", arguments.text(0), "$error() was called"),
            _ if self.is_true(&arguments.take(0))? => return Ok(Value::Undefined),
            _ => ("D3141", arguments.text(1), "an assertion of $assert() failed"),
        };
        Err(Error::new(code).with_message(message.as_ref().map_or(default, Text::as_str)))
    }

    fn eval(&self, arguments: &mut Arguments<'a>, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let Some(source) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let input = match arguments.take(1) {
            Value::Undefined => input.clone(),
            focus => self.wrapped(focus)?,
        };
        self.evaluate_source(source.as_str(), input, frame)
    }

    /// A string as a value.
    pub(crate) fn string_value(&self, text: String) -> Result<Value<'a>> {
        Ok(Value::Text(text::made(&self.meter, text)?))
    }
}
