//! A component that uses what Spin offers beside WASI 0.3, for the end-to-end tests: each line of the request's body is an operation, each line of the response
//! what came of it.

use std::fmt::Write as _;

use wasip3::exports::http::handler::Guest;
use wasip3::http::types::{ErrorCode, Fields, Request, Response};
use wit_bindgen::StreamResult;
use wasip3::{spawn_local, wit_future, wit_stream};

mod bindings {
    wit_bindgen::generate!({
        path: [
            "../store/wit/deps/spin3-key-value.wit",
            "../store/wit/deps/spin3-variables.wit",
            "wit/world.wit",
        ],
        world: "test:spin/all",
        generate_all,
    });
}

use bindings::spin::key_value::key_value::Store;
use bindings::spin::variables::variables;

wasip3::http::service::export!(Function);

struct Function;

impl Guest for Function {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let (_, verdict) = wit_future::new(|| Ok(()));
        let (body, _trailers) = Request::consume_body(request, verdict);
        let text = String::from_utf8(body.collect().await).expect("text");
        let mut reply = String::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let said = match words.as_slice() {
                ["variable", name] => format!("{:?}", variables::get((*name).to_owned()).await),
                [name, operation @ ..] => in_store(name, operation).await,
                [] => String::new(),
            };
            writeln!(reply, "{said}").expect("to a string");
        }
        let (mut writer, reader) = wit_stream::new();
        let (_, no_trailers) = wit_future::new(|| Ok(None));
        let (response, _sent) = Response::new(Fields::new(), Some(reader), no_trailers);
        spawn_local(async move {
            writer.write_all(reply.into_bytes()).await;
        });
        Ok(response)
    }
}

async fn in_store(name: &str, operation: &[&str]) -> String {
    let store = match Store::open(name.to_owned()).await {
        Ok(store) => store,
        Err(error) => return format!("{error:?}"),
    };
    let key = |key: &str| key.to_owned();
    match *operation {
        ["get", name] => {
            let value = store.get(key(name)).await;
            format!("{:?}", value.map(|value| value.map(|value| String::from_utf8(value).expect("text"))))
        }
        ["set", name, value] => format!("{:?}", store.set(key(name), value.as_bytes().to_vec()).await),
        ["delete", name] => format!("{:?}", store.delete(key(name)).await),
        ["exists", name] => format!("{:?}", store.exists(key(name)).await),
        ["fill", count] => {
            let count = count.parse().expect("a number");
            for i in 0..count {
                store.set(format!("k{i:06}"), Vec::new()).await.expect("room");
            }
            format!("{count}")
        }
        // How many, the first, the last, how it ended; so many are read at a time.
        ["list", at_a_time] => {
            let (mut keys, end) = store.get_keys().await;
            let (mut all, at_a_time) = (Vec::new(), at_a_time.parse().expect("a number"));
            loop {
                let (result, some) = keys.read(Vec::with_capacity(at_a_time)).await;
                all.extend(some);
                if result == StreamResult::Dropped {
                    break;
                }
            }
            format!("{} {:?} {:?} {:?}", all.len(), all.first(), all.last(), end.await)
        }
        // Some are left in the stream.
        ["first"] => {
            let (mut keys, end) = store.get_keys().await;
            let (_, first) = keys.read(Vec::with_capacity(1)).await;
            drop(keys);
            format!("{first:?} {:?}", end.await)
        }
        _ => "unknown".to_owned(),
    }
}
