//! What applications for Spin import beside WASI: a key-value store and variables, as `fermyon:spin@2.0.0` says them.

use awsm_abi::types::ValType::I32;

use super::Effect::{KvRead, KvWrite, Safe};
use super::canonical::{Lower, Lowering, Place, canonical, number};
use super::kv::component::{self as store, Fault, Form, Page, answer};
use super::kv::{self, Range};
use super::{Call, Flat, HostFunction, Stop};

const KEY_VALUE: &str = "fermyon:spin/key-value@2";
const VARIABLES: &str = "fermyon:spin/variables@2";
/// Keys that `get-keys` lists, and their bytes: it has no cursor.
const KEYS_MAX: usize = 16 << 10;
const KEYS_BYTES_MAX: usize = 4 << 20;
/// The longest name of a variable that an error repeats.
const NAME_BYTES_MAX: u64 = 1 << 10;

/// Stores of Spin.
#[derive(Debug)]
enum Spin {}

impl Form for Spin {
    const BUCKET: u32 = number(KEY_VALUE, "store");
    type Error = Error;
}

/// An `error` of the store; `store-table-full` and `access-denied` do not happen.
#[derive(Debug)]
pub(super) enum Error {
    NoSuchStore,
    Other(String),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::NoSuchStore => Error::NoSuchStore,
            other => Error::Other(other.to_string()),
        }
    }
}

impl Lower for Error {
    const SIZE: u32 = 12;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self {
            Error::NoSuchStore => {
                to.case(place, 1);
                Ok(())
            }
            Error::Other(words) => {
                to.case(place, 3);
                words.lower(to, place.plus(4))
            }
        }
    }
}

/// An `error` of variables; `provider` and `other` do not happen.
#[derive(Debug)]
enum VariableError {
    InvalidName(String),
    Undefined(String),
}

impl Lower for VariableError {
    const SIZE: u32 = 12;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self {
            VariableError::InvalidName(name) => name.lower(to, place.plus(4)),
            VariableError::Undefined(name) => {
                to.case(place, 1);
                name.lower(to, place.plus(4))
            }
        }
    }
}

/// The interfaces.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    canonical(KEY_VALUE, "[static]store.open", &[I32, I32, I32, I32], &[I32], KvRead, store::open::<Spin>),
    canonical(KEY_VALUE, "[method]store.get", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::get::<Spin>),
    canonical(KEY_VALUE, "[method]store.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, store::set::<Spin>),
    canonical(KEY_VALUE, "[method]store.delete", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete::<Spin>),
    canonical(KEY_VALUE, "[method]store.exists", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::exists::<Spin>),
    canonical(KEY_VALUE, "[method]store.get-keys", &[I32, I32, I32], &[I32], KvRead, get_keys),
    canonical(VARIABLES, "get", &[I32, I32, I32, I32], &[I32], Safe, variable),
];

/// `get-keys(self) -> result<list<string>, error>`: all of them.
fn get_keys(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let range = store::all::<Spin>(call)?;
    more_keys(call, range, Vec::new(), 0)
}

/// Lists a page, then the next.
fn more_keys(call: &mut Call<'_>, range: Range, mut all: Vec<String>, bytes: usize) -> Result<Flat, Stop> {
    kv::keys(call, range.clone(), Page::default(), move |call, page| {
        let page = match page {
            Ok(page) => page,
            Err(error) => return answer::<Spin, Vec<String>>(call, 2, Err(error)),
        };
        let (next, bytes) = (page.next().map(Box::from), bytes + page.bytes);
        all.extend(page.keys);
        match next {
            Some(_) if all.len() >= KEYS_MAX || bytes >= KEYS_BYTES_MAX => {
                answer::<Spin, Vec<String>>(call, 2, Err(Fault::ManyKeys))
            }
            // Not from here: a bucket may have any number of keys that are not UTF-8, of which none is kept. However many there are, the stack stays as it
            // is, and the deadline ends it.
            Some(after) => {
                let range = Range { after: Some(after), ..range };
                Err(call.wait(std::future::ready(()), move |call, ()| more_keys(call, range, all, bytes)))
            }
            None => answer::<Spin, _>(call, 2, Ok::<_, Fault>(all)),
        }
    })
}

/// `get(name: string) -> result<string, error>`: the function's variable of that name, or of that name in capitals.
pub(super) fn variable(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = match call.text_within(1, NAME_BYTES_MAX)? {
        Some(name) if is_name(&name) => {
            let env = call.context.ports.env();
            let value = env.variable(&name).or_else(|| env.variable(&name.to_ascii_uppercase()));
            value.ok_or_else(|| VariableError::Undefined(format!("{name:?} is not in the function's `env`")))
        }
        Some(name) => Err(VariableError::InvalidName(format!("{name:?}: small letters, digits and underscores, a letter first"))),
        None => Err(VariableError::InvalidName(format!("a name has at most {NAME_BYTES_MAX} bytes"))),
    };
    call.lower(3, value)
}

/// Whether Spin takes that for a name; small letters only.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
