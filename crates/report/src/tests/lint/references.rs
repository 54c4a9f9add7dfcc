//! Whether a page stands by itself.

/// References in a page to anything outside of it. Namespaces (`xmlns`) and
/// addresses in the text load nothing and are none.
pub(crate) fn references(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in ["src", "href", "srcset", "poster", "action", "data"] {
        for quote in ['"', '\''] {
            let start = format!(" {attribute}={quote}");
            for (at, _) in
                html.match_indices(&start).chain(html.match_indices(&format!(":{}", start.trim())))
            {
                let rest = &html[at..];
                let value = rest.split(quote).nth(1).unwrap_or("");
                if !is_inside(value) {
                    found.push(format!("{attribute}={value}"));
                }
            }
        }
    }
    for (at, _) in html.match_indices("url(") {
        let value = html[at + 4..].split(')').next().unwrap_or("").trim_matches(['"', '\'', ' ']);
        if !is_inside(value) {
            found.push(format!("url({value})"));
        }
    }
    for word in ["@import", "fetch(", "XMLHttpRequest", "WebSocket"] {
        if html.contains(word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// An anchor of the page or data within it.
fn is_inside(value: &str) -> bool {
    value.is_empty() || value.starts_with('#') || value.starts_with("data:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expect: &[&str]) {
        assert_eq!(references(html), expect);
    }

    #[test]
    fn only_what_leads_outside_is_a_reference() {
        check(r##"<a href="#x"><img src="data:image/png;base64,x">"##, &[]);
        check(r#"<svg xmlns="http://www.w3.org/2000/svg">see https://x.example</svg>"#, &[]);
        check("<script src='https://x.example/a.js'>", &["src=https://x.example/a.js"]);
        check(r#"<use xlink:href="b.svg"/>"#, &["href=b.svg"]);
        check("a { b: url( '//x' ) } c { d: url(#e) }", &["url(//x)"]);
        check("<style>@import 'a'</style>", &["@import"]);
    }
}
