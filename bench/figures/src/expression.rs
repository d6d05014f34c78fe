//! Arithmetic over the metrics of a cell, as a file of figures writes it.
//!
//! ```text
//!   sum      product + product - product ...
//!   product  atom * atom / atom ...
//!   atom     1.5   NAME   ( sum )   max ( sum , sum )
//! ```
//!
//! An expression has no value if the cell lacks one of its names.

/// A text that was read to its end, and is a correct expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    words: Vec<String>,
}

struct Reader<'a> {
    words: &'a [String],
    value: &'a dyn Fn(&str) -> Option<f64>,
}

impl Expression {
    /// Reads an expression. An error names the wrong word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut spaced = String::new();
        for character in text.chars() {
            let is_name = character.is_ascii_alphanumeric() || "._".contains(character);
            if is_name {
                spaced.push(character)
            } else {
                spaced.push_str(&format!(" {character} "))
            }
        }
        let words = spaced.split_whitespace().map(str::to_owned).collect();
        let read = Self { words };
        let mut reader = Reader { words: &read.words, value: &|_| Some(1.0) };
        reader.sum().map_err(|why| format!("'{text}': {why}"))?;
        match reader.words {
            [] => Ok(read),
            [word, ..] => Err(format!("'{text}': '{word}' is not expected")),
        }
    }

    /// Returns the value, or `None` if a name has no value or a divisor is 0.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        Reader { words: &self.words, value: of }.sum().ok()?
    }

    /// Returns the names in the expression.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
        self.words.iter().map(String::as_str).filter(is_name).filter(|word| *word != "max")
    }
}

impl Reader<'_> {
    fn take(&mut self) -> Result<&str, String> {
        let (first, rest) = self.words.split_first().ok_or("it ends too early")?;
        self.words = rest;
        Ok(first)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        let word = self.take()?;
        if word == wanted { Ok(()) } else { Err(format!("'{word}' where {wanted} is expected")) }
    }

    fn next_is(&self, word: &str) -> bool {
        self.words.first().is_some_and(|next| next == word)
    }

    fn sum(&mut self) -> Result<Option<f64>, String> {
        let mut sum = self.product()?;
        while self.next_is("+") || self.next_is("-") {
            let is_minus = self.take()? == "-";
            let next = self.product()?;
            sum = sum.zip(next).map(|(a, b)| if is_minus { a - b } else { a + b });
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Option<f64>, String> {
        let mut product = self.atom()?;
        while self.next_is("*") || self.next_is("/") {
            let is_quotient = self.take()? == "/";
            let next = self.atom()?;
            product = match (product, next) {
                (Some(_), Some(0.0)) if is_quotient => None,
                (a, b) => a.zip(b).map(|(a, b)| if is_quotient { a / b } else { a * b }),
            };
        }
        Ok(product)
    }

    fn atom(&mut self) -> Result<Option<f64>, String> {
        let word = self.take()?.to_owned();
        match word.as_str() {
            "(" => {
                let inner = self.sum()?;
                self.expect(")")?;
                Ok(inner)
            }
            "max" => {
                self.expect("(")?;
                let one = self.sum()?;
                self.expect(",")?;
                let other = self.sum()?;
                self.expect(")")?;
                Ok(one.zip(other).map(|(one, other)| one.max(other)))
            }
            _ if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((self.value)(&word)),
            _ => word.parse().map(Some).map_err(|_| format!("'{word}' is no number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let of = |name: &str| {
            [("a", 6.0), ("b_2", 2.0), ("none", 0.0)]
                .iter()
                .find(|one| one.0 == name)
                .map(|one| one.1)
        };
        Expression::parse(text).unwrap().value(&of)
    }

    #[test]
    fn products_bind_closer_than_sums() {
        assert_eq!(value("a - b_2 * 2 + 1e3 / 1000"), Some(3.0));
        assert_eq!(value("a / (b_2 + 1)"), Some(2.0));
        assert_eq!(value("max(a - 10, 0.5)"), Some(0.5));
        assert_eq!((value("a + c"), value("a / none")), (None, None));
        assert_eq!(
            Expression::parse("max(a, b) / a").unwrap().names().collect::<Vec<_>>(),
            ["a", "b", "a"]
        );
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for (text, why) in
            [("", "ends too early"), ("a b", "'b'"), ("(a", "ends too early"), ("a + %", "'%'")]
        {
            assert!(Expression::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
