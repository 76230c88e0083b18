//! Where text that was opened is closed, without recursion.

/// The end of what is open at `from` and is closed by `closer`: `)`, `}`, `]`, a backquote, or `|` for a brace between double
/// quotes. `None` if the text ends first.
pub(super) fn closing(bytes: &[u8], from: usize, closer: u8) -> Option<usize> {
    let mut open = vec![closer];
    let mut at = from;
    while let Some(byte) = bytes.get(at).copied() {
        let inside = *open.last()?;
        let next = bytes.get(at + 1).copied();
        let is_quoted = matches!(inside, b'"' | b'|');
        let closes = if inside == b'|' { b'}' } else { inside };
        at += 1;
        match (byte, next) {
            (b'\\', Some(_)) => at += 1,
            _ if byte == closes => {
                let is_case = open.len() == 1 && byte == b')' && has_open_case(&bytes[from..at]);
                if !is_case {
                    open.pop();
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ if inside == b'`' => {}
            (b'$', Some(b'(')) => {
                open.push(b')');
                at += 1;
            }
            (b'$', Some(b'{')) => {
                open.push(if is_quoted { b'|' } else { b'}' });
                at += 1;
            }
            (b'`' | b'"', _) => open.push(byte),
            (b'\'', _) if !is_quoted => {
                at += bytes[at..].iter().position(|byte| *byte == b'\'')? + 1;
            }
            (b'(', _) if inside == b')' => open.push(b')'),
            (b'[', _) if inside == b']' => open.push(b']'),
            _ => {}
        }
    }
    None
}

/// True if a parenthesis may end a pattern of `case`.
fn has_open_case(text: &[u8]) -> bool {
    if text.len() > 512 {
        return false;
    }
    let words = text.split(|byte| b" \t\n;()".contains(byte));
    let count = |words: &mut dyn Iterator<Item = &[u8]>, word: &[u8]| {
        words.filter(|it| *it == word).count()
    };
    count(&mut words.clone(), b"case") > count(&mut words.clone(), b"esac")
}
