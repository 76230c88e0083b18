//! Parsers of values that several commands have.

/// A name of a rule, or what it may have meant.
pub(crate) fn rule_name(name: &str) -> Result<String, String> {
    if vmdisk::rules::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let known = vmdisk::rules::RULES.iter().map(|rule| rule.name);
    Err(match vmdisk_source::nearest(name, known) {
        Some(near) => format!("there is no such rule; did you mean `{near}`?"),
        None => "there is no such rule; `vmdisk rules` lists them".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_rule_is_refused_with_what_was_meant() {
        assert_eq!(
            rule_name("cache-unsaf"),
            Err("there is no such rule; did you mean `cache-unsafe`?".to_owned())
        );
        assert_eq!(rule_name("cache-unsafe"), Ok("cache-unsafe".to_owned()));
    }
}
