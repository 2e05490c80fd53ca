//! `#[tokio::main]` of a function: it hands its future over, and returns while that goes on.
//!
//! What it is told (`flavor`, `worker_threads`) has no meaning here, but for `crate` and `start_paused`.

use proc_macro::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

/// Runs an asynchronous `main`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(&arguments.into_iter().collect::<Vec<_>>(), item.into_iter().collect())
        .unwrap_or_else(|why| format!("::core::compile_error!({why:?});").parse().expect("it is an error in Rust's words"))
}

fn expand(arguments: &[TokenTree], item: Vec<TokenTree>) -> Result<TokenStream, &'static str> {
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let mut tokens = item;
    let Some(TokenTree::Group(body)) = tokens.pop() else { return Err("#[tokio::main] is for functions with a body") };
    let at = tokens.iter().position(|token| is(token, "async"));
    let at = at.ok_or("the `async` keyword is missing from the function declaration")?;
    tokens.remove(at);
    let function = tokens.iter().position(|token| is(token, "fn")).ok_or("#[tokio::main] is for functions")?;
    let arrow = tokens[function..].windows(2).position(
        |pair| matches!(pair, [TokenTree::Punct(dash), TokenTree::Punct(head)] if dash.as_char() == '-' && head.as_char() == '>'),
    );
    let returned: Vec<TokenTree> = match arrow {
        Some(arrow) => tokens.drain(function + arrow..).skip(2).collect(),
        None => vec![TokenTree::Group(Group::new(Delimiter::Parenthesis, TokenStream::new()))],
    };
    let is_main = matches!(tokens.get(function + 1), Some(TokenTree::Ident(name)) if name.to_string() == "main");
    let tokio = root(arguments)?;
    let returned: TokenStream = returned.into_iter().collect();
    let future: TokenStream =
        [TokenTree::Ident(Ident::new("async", Span::call_site())), TokenTree::Group(body)].into_iter().collect();
    // A `main` says its status, whatever it returns. Another function has to return what it says that it returns.
    let rest: TokenStream = if is_main {
        format!("-> ::std::process::ExitCode {{ let body = {{ #F }}; {tokio}::__sledge::main::<#R>(body) }}")
    } else {
        format!("-> #R {{ let body = {{ #F }}; {tokio}::runtime::Runtime::new().expect(\"a runtime\").block_on(body) }}")
    }
    .replace("#R", &format!("({returned})"))
    .parse()
    .map_err(|_| "what #[tokio::main] makes is no Rust")
    .map(|rest: TokenStream| put(rest, &future))?;
    tokens.extend(rest);
    Ok(tokens.into_iter().collect())
}

/// Puts the future, with its own places in the source, in the place of `#F`.
fn put(tokens: TokenStream, future: &TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash)
                if hash.as_char() == '#' && matches!(tokens.peek(), Some(TokenTree::Ident(f)) if f.to_string() == "F") =>
            {
                tokens.next();
                out.extend(future.clone());
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), put(group.stream(), future));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// The path of tokio: `crate = "path"`, or `crate = path`.
fn root(arguments: &[TokenTree]) -> Result<String, &'static str> {
    let equals = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '=');
    let position = arguments
        .windows(2)
        .position(|pair| matches!(&pair[0], TokenTree::Ident(word) if word.to_string() == "crate") && equals(&pair[1]));
    let Some(position) = position else { return Ok("::tokio".to_owned()) };
    let value: Vec<TokenTree> = arguments[position + 2..]
        .iter()
        .take_while(
            |token| !matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',' && punct.spacing() == Spacing::Alone),
        )
        .cloned()
        .collect();
    match &value[..] {
        [TokenTree::Literal(text)] => Ok(text.to_string().trim_matches('"').to_owned()),
        [] => Err("`crate` has no value"),
        path => Ok(path.iter().cloned().collect::<TokenStream>().to_string()),
    }
}
