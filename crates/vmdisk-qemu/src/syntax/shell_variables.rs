//! Variables of a shell script that hold the program or its options.

use std::collections::HashMap;

use super::text::Text;

/// Replaces `"${NAME[@]}"` by the words of an array, and `$NAME` by the program that the script assigns to it. Other
/// variables are kept: their values are unknown.
pub(crate) fn expand(commands: &mut [Vec<Text>], is_program: fn(&str) -> bool) {
    // `None` after a second definition: it may be of another branch of the script.
    let mut arrays: HashMap<String, Option<Vec<Text>>> = HashMap::new();
    let mut programs: HashMap<String, Option<String>> = HashMap::new();
    for words in commands.iter() {
        if let Some(name) = words[0].as_str().strip_suffix('=') {
            let values = &words[1..];
            // An array with the program in it is a command itself.
            if !values.iter().any(|word| is_program(word.as_str())) {
                let name = name.strip_suffix('+').unwrap_or(name).to_owned();
                let array = arrays.entry(name);
                array
                    .and_modify(|array| *array = None)
                    .or_insert_with(|| Some(values.to_vec()));
            }
        } else if let Some((name, value)) = assignment(words).filter(|(_, value)| is_program(value))
        {
            let program = programs.entry(name.to_owned());
            program
                .and_modify(|program| *program = None)
                .or_insert_with(|| Some(value.to_owned()));
        }
    }
    if arrays.is_empty() && programs.is_empty() {
        return;
    }
    for words in commands {
        *words = std::mem::take(words)
            .into_iter()
            .flat_map(|word| {
                let text = word.as_str();
                // Each array is used once, so that a short script has a short command.
                if let Some(Some(values)) = array_name(text).and_then(|name| arrays.remove(name)) {
                    return values;
                }
                let program = variable_name(text).and_then(|name| programs.get(name)?.as_deref());
                match program {
                    Some(program) => {
                        let place = word.whole();
                        let mut value = Text::empty(place.start);
                        value.push_escape(program, place);
                        vec![value]
                    }
                    None => vec![word],
                }
            })
            .collect();
    }
}

/// Name and value of the variable that a command assigns.
fn assignment(words: &[Text]) -> Option<(&str, &str)> {
    let word = match words {
        [word] => word,
        [keyword, word] if matches!(keyword.as_str(), "export" | "local" | "readonly") => word,
        _ => return None,
    };
    word.as_str().split_once('=')
}

/// The name in `$NAME` and `${NAME}`.
fn variable_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let braced = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    Some(braced.unwrap_or(name))
}

/// The name in `${NAME[@]}`.
fn array_name(word: &str) -> Option<&str> {
    word.strip_prefix("${")?.strip_suffix("[@]}")
}
