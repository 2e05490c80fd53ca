//! Types in the text format of components: those that have to have a name are declared, and exported by it.

use sledge_tests::canonical::{Flat, Type};
use std::fmt::Write as _;

/// Where types are declared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the type of an instance.
    Instance,
    /// In a component.
    Component,
}

/// Declares types. The same types in the same order get the same names.
pub(super) struct Types {
    place: Place,
    pub(super) declared: String,
    count: u32,
}

impl Types {
    pub(super) fn new(place: Place) -> Types {
        Types { place, declared: String::new(), count: 0 }
    }

    /// The parameters and result of a function.
    pub(super) fn function(&mut self, params: &[Type], result: Option<&Type>) -> String {
        let mut text = String::new();
        for (index, ty) in params.iter().enumerate() {
            let _ = write!(text, "(param \"p{index}\" {}) ", self.ty(ty));
        }
        if let Some(ty) = result {
            let _ = write!(text, "(result {})", self.ty(ty));
        }
        text
    }

    /// How many were declared so far.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn ty(&mut self, ty: &Type) -> String {
        let all = |this: &mut Types, types: &[Type]| types.iter().map(|ty| this.ty(ty)).collect::<Vec<_>>();
        let labels = |count: u32| (0..count).map(|index| format!(" \"c{index}\"")).collect::<String>();
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::S8 => "s8".to_owned(),
            Type::U8 => "u8".to_owned(),
            Type::S16 => "s16".to_owned(),
            Type::U16 => "u16".to_owned(),
            Type::S32 => "s32".to_owned(),
            Type::U32 => "u32".to_owned(),
            Type::S64 => "s64".to_owned(),
            Type::U64 => "u64".to_owned(),
            Type::F32 => "f32".to_owned(),
            Type::F64 => "f64".to_owned(),
            Type::Char => "char".to_owned(),
            Type::String => "string".to_owned(),
            Type::Own => "(own $r)".to_owned(),
            Type::Borrow => "(borrow $r)".to_owned(),
            Type::List(element) => format!("(list {})", self.ty(element)),
            Type::Fixed(element, count) => format!("(list {} {count})", self.ty(element)),
            Type::Map(key, value) => format!("(map {} {})", self.ty(key), self.ty(value)),
            Type::Tuple(fields) => format!("(tuple {})", all(self, fields).join(" ")),
            Type::Option(some) => format!("(option {})", self.ty(some)),
            Type::Result(ok, err) => {
                let ok = ok.as_ref().map_or_else(String::new, |ty| format!(" {}", self.ty(ty)));
                let err = err.as_ref().map_or_else(String::new, |ty| format!(" (error {})", self.ty(ty)));
                format!("(result{ok}{err})")
            }
            Type::Record(fields) => {
                let fields = all(self, fields).into_iter().enumerate();
                let fields: String = fields.map(|(index, ty)| format!(" (field \"f{index}\" {ty})")).collect();
                self.named(&format!("(record{fields})"))
            }
            Type::Variant(cases) => {
                let cases = cases.iter().enumerate().map(|(index, ty)| {
                    let ty = ty.as_ref().map_or_else(String::new, |ty| format!(" {}", self.ty(ty)));
                    format!(" (case \"c{index}\"{ty})")
                });
                let cases: String = cases.collect();
                self.named(&format!("(variant{cases})"))
            }
            Type::Enum(count) => self.named(&format!("(enum{})", labels(*count))),
            Type::Flags(count) => self.named(&format!("(flags{})", labels(*count))),
        }
    }

    fn named(&mut self, ty: &str) -> String {
        let number = self.count;
        self.count += 1;
        let _ = match self.place {
            Place::Instance => {
                writeln!(self.declared, "(type $d{number} {ty}) (export \"t{number}\" (type $t{number} (eq $d{number})))")
            }
            Place::Component => {
                writeln!(self.declared, "(type $d{number} {ty}) (export $t{number} \"t{number}\" (type $d{number}))")
            }
        };
        format!("$t{number}")
    }
}

/// A core function's parameters and results.
pub(super) fn core(params: &[Flat], results: &[Flat]) -> String {
    let results: String = results.iter().map(|flat| format!(" (result {})", flat.name())).collect();
    let params = params.iter().enumerate().map(|(index, flat)| format!(" (param $p{index} {})", flat.name()));
    params.collect::<String>() + &results
}
