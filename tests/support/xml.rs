//! Whether a text is well-formed XML, as far as drawings use that: elements, attributes, texts, the five entities and references to characters.

/// The names of all elements, in order.
///
/// # Errors
/// What is wrong with it.
pub fn elements(document: &str) -> Result<Vec<String>, String> {
    let (mut rest, mut open, mut names) = (document.trim_end(), Vec::<String>::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        is_text(text)?;
        if open.is_empty() && !(names.is_empty() && text.is_empty()) {
            return Err(format!("text or a second element outside of the first: {tag:.40}"));
        }
        let end = end_of_tag(tag)?;
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name => continue,
                opened => return Err(format!("</{name}> ends {opened:?}")),
            }
        }
        let (inner, is_empty) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        let name = inner.split(char::is_whitespace).next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':') {
            return Err(format!("<{inner}> has no name"));
        }
        attributes(inner[name.len()..].trim())?;
        names.push(name.to_owned());
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    if !open.is_empty() || !rest.is_empty() || names.is_empty() {
        return Err(format!("{open:?} are open at the end, before {rest:?}"));
    }
    Ok(names)
}

/// Where a tag ends: the first `>` that stands in no quotes.
fn end_of_tag(tag: &str) -> Result<usize, String> {
    let mut is_quoted = false;
    for (at, c) in tag.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return Ok(at),
            '<' if at > 0 => return Err(format!("< within {tag:.40}")),
            _ => {}
        }
    }
    Err(format!("{tag:.40} does not end"))
}

fn attributes(mut rest: &str) -> Result<(), String> {
    while !rest.is_empty() {
        let wrong = || format!("no attribute: {rest:.40}");
        let (name, value) = rest.split_once("=\"").ok_or_else(wrong)?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':') {
            return Err(wrong());
        }
        let (value, after) = value.split_once('"').ok_or_else(wrong)?;
        is_text(value)?;
        rest = after.trim_start();
    }
    Ok(())
}

fn is_text(text: &str) -> Result<(), String> {
    if let Some(c) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(format!("{c:?} in {text:.40}"));
    }
    for reference in text.split('&').skip(1) {
        let name = reference.split_once(';').map(|(name, _)| name);
        let is_known = name.is_some_and(|name| ["amp", "lt", "gt", "quot", "apos"].contains(&name) || name.starts_with('#'));
        if !is_known {
            return Err(format!("&{reference:.20} is no reference"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_formed_is_told_from_what_is_not() {
        let good = "<svg a=\"1\" b=\"x &lt; &#39; > y\"><g><title>a &amp; b</title><rect x=\"1\"/></g></svg>\n";
        assert_eq!(elements(good).unwrap(), ["svg", "g", "title", "rect"]);
        let bad = [
            "",
            "<svg>",
            "<svg></g></svg>",
            "<svg/><svg/>",
            "<svg a=1/>",
            "<svg>a & b</svg>",
            "<svg>&b;</svg>",
            "<svg><script</svg>",
            "<svg>\u{7}</svg>",
            "<svg a=\"1 />",
            "x<svg/>",
        ];
        for document in bad {
            assert!(elements(document).is_err(), "{document}");
        }
    }
}
