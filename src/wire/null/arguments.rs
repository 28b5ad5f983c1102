//! The values that a statement is given: those in its text, and those bound to its parameters.

/// A value in a statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    /// A parameter, counted from 0.
    Parameter(usize),
}

/// What stands in a text: parameters, whole numbers, and lists of both, each with its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    values: Vec<(usize, Value)>,
}

impl Arguments {
    /// Reads a text anew. `ARRAY[…]` and `{…}` are lists, one argument each; quotes are passed
    /// over, since what is in them is read as well.
    pub(super) fn read(&mut self, text: &[u8]) {
        self.values.clear();
        let mut scan = Scan { text, at: 0 };
        let (mut place, mut depth, mut after_array) = (0, 0_u32, false);
        while let Some(token) = scan.next() {
            let was_after_array = std::mem::take(&mut after_array);
            match token {
                Token::Value(value) => {
                    self.values.push((place, value));
                    place += usize::from(depth == 0);
                }
                Token::Word(word) => after_array = word.eq_ignore_ascii_case(b"array"),
                // Behind a type's name brackets say that it is an array's type.
                Token::Open(b'[') if !was_after_array && depth == 0 => {}
                Token::Open(_) => depth += 1,
                Token::Close if depth > 0 => {
                    depth -= 1;
                    place += usize::from(depth == 0);
                }
                Token::Close => {}
            }
        }
    }

    /// The values of an argument: one, or those of a list that is written out.
    pub(super) fn of(&self, argument: usize) -> impl Iterator<Item = Value> + '_ {
        self.values.iter().filter(move |(place, _)| *place == argument).map(|(_, value)| *value)
    }
}

enum Token<'a> {
    Value(Value),
    Word(&'a [u8]),
    Open(u8),
    Close,
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let start = self.at;
            let first = *self.text.get(start)?;
            self.at += 1;
            match first {
                b'[' | b'{' => return Some(Token::Open(first)),
                b']' | b'}' => return Some(Token::Close),
                b'$' | b'-' => {
                    let digits = self.take_while(|c| c.is_ascii_digit());
                    let number = number(&self.text[start + 1..start + 1 + digits]);
                    match number {
                        Some(number) if first == b'-' => {
                            return Some(Token::Value(Value::Number(-number)));
                        }
                        Some(number) => {
                            let index = usize::try_from(number - 1).unwrap_or_default();
                            return Some(Token::Value(Value::Parameter(index)));
                        }
                        None => {}
                    }
                }
                c if c.is_ascii_digit() => {
                    self.take_while(|c| c.is_ascii_digit());
                    if let Some(number) = number(&self.text[start..self.at]) {
                        return Some(Token::Value(Value::Number(number)));
                    }
                }
                c if c.is_ascii_alphabetic() || c == b'_' => {
                    self.take_while(|c| c.is_ascii_alphanumeric() || c == b'_');
                    return Some(Token::Word(&self.text[start..self.at]));
                }
                _ => {}
            }
        }
    }

    /// Steps over bytes; how many they were.
    fn take_while(&mut self, holds: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|&c| holds(c)) {
            self.at += 1;
        }
        self.at - start
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The values bound to a portal's parameters, as they came.
#[derive(Debug, Default)]
pub(super) struct Bound {
    bytes: Vec<u8>,
    values: Vec<BoundValue>,
}

#[derive(Clone, Copy, Debug)]
struct BoundValue {
    binary: bool,
    start: usize,
    end: usize,
}

impl Bound {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.values.clear();
    }

    pub(super) fn push(&mut self, binary: bool, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.values.push(BoundValue { binary, start, end: self.bytes.len() });
    }

    /// A parameter that is a whole number.
    pub(super) fn number(&self, parameter: usize) -> Option<i64> {
        let (binary, bytes) = self.get(parameter)?;
        if binary { binary_number(bytes) } else { number(bytes) }
    }

    /// Appends the elements of a parameter that is an array of whole numbers; appends nothing for
    /// any other.
    pub(super) fn elements(&self, parameter: usize, to: &mut Vec<i64>) {
        match self.get(parameter) {
            Some((true, bytes)) => binary_elements(bytes, to),
            Some((false, bytes)) => {
                to.extend(bytes.split(|c| matches!(c, b'{' | b',' | b'}')).filter_map(number));
            }
            None => {}
        }
    }

    fn get(&self, parameter: usize) -> Option<(bool, &[u8])> {
        let value = self.values.get(parameter)?;
        Some((value.binary, &self.bytes[value.start..value.end]))
    }
}

fn binary_number(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a, b] => Some(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}

/// An array's binary form: dimensions, a flag, the element type, length and lower bound of each
/// dimension, then each element with its length.
fn binary_elements(bytes: &[u8], to: &mut Vec<i64>) {
    const HEADER: usize = 12;
    const DIMENSION: usize = 8;
    let Some((dimensions, _)) = bytes.split_first_chunk() else { return };
    if u32::from_be_bytes(*dimensions) != 1 {
        return;
    }
    let mut rest = bytes.get(HEADER + DIMENSION..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk() {
        // A null has the length -1.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or_default();
        let Some(element) = after.get(..length) else { return };
        to.extend(binary_number(element));
        rest = &after[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::{Value::*, *};

    fn read(text: &str, argument: usize) -> Vec<Value> {
        let mut arguments = Arguments::default();
        arguments.read(text.as_bytes());
        arguments.of(argument).collect()
    }

    #[test]
    fn the_arguments_of_a_text_are_told_apart_in_every_spelling() {
        assert_eq!(read("$1", 0), [Parameter(0)]);
        assert_eq!(read("'42'::int8 AND a2 = -7", 0), [Number(42)]);
        assert_eq!(read("'42'::int8 AND a2 = -7", 1), [Number(-7)]);
        for list in ["ARRAY[3,$2]::bigint[])", "'{3,4}')", "array[3, 4]"] {
            assert_eq!(read(list, 0).len(), 2, "{list}");
            assert_eq!(read(list, 0)[0], Number(3), "{list}");
            assert_eq!(read(list, 1), [], "{list}");
        }
        assert_eq!(read("ARRAY[]::bigint[], 5", 0), []);
        assert_eq!(read("ARRAY[]::bigint[], 5", 1), [Number(5)]);
        assert_eq!(read("($2::bigint[])[array_position($1::bigint[], x)]", 1), [Parameter(0)]);
        assert_eq!(read("99999999999999999999", 0), []);
    }

    #[test]
    fn bound_values_are_read_in_either_format() {
        let mut bound = Bound::default();
        bound.push(false, b"17");
        bound.push(true, &18_i64.to_be_bytes());
        bound.push(true, &19_i32.to_be_bytes());
        bound.push(true, &20_i16.to_be_bytes());
        bound.push(false, b"no number");
        let numbers: Vec<_> = (0..6).map(|at| bound.number(at)).collect();
        assert_eq!(numbers, [Some(17), Some(18), Some(19), Some(20), None, None]);
        let array = [1_u32, 0, 20, 2, 1].map(u32::to_be_bytes).concat();
        let element = |n: i64| [&8_u32.to_be_bytes()[..], &n.to_be_bytes()].concat();
        bound.clear();
        bound.push(true, &[array, element(5), element(-6)].concat());
        bound.push(false, b"{7,-8}");
        bound.push(true, b"\0\0");
        let mut found = Vec::new();
        (0..4).for_each(|at| bound.elements(at, &mut found));
        assert_eq!(found, [5, -6, 7, -8]);
    }
}
