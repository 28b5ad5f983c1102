//! Reading a tree by its schema: each reader takes a key, checks type and range, and reports what
//! is wrong with the key's path and line. What could not be read is `None`, and reported.

use rust_decimal::Decimal;

use super::{
    problem::{Place, Problems, did_you_mean},
    tree::{Node, Table, Value, may_hold_a_secret, quoted},
};
use crate::model::Money;

/// The allowed range of a number with a fraction.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    /// `from` itself is not allowed.
    pub(super) above: bool,
    pub(super) unit: &'static str,
}

impl Span {
    pub(super) const fn from_to(from: f64, to: f64, unit: &'static str) -> Self {
        Self { from, to, above: false, unit }
    }

    pub(super) const fn above_to(from: f64, to: f64, unit: &'static str) -> Self {
        Self { from, to, above: true, unit }
    }

    fn allows(&self, number: f64) -> bool {
        number <= self.to && if self.above { number > self.from } else { number >= self.from }
    }

    fn words(&self) -> String {
        let above = if self.above { "above " } else { "" };
        with_unit(&format!("{above}{} to {}", self.from, self.to), self.unit)
    }
}

/// The allowed range of a whole number.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) unit: &'static str,
}

impl Whole {
    fn words(&self) -> String {
        with_unit(&format!("{} to {}", self.from, self.to), self.unit)
    }
}

fn with_unit(range: &str, unit: &str) -> String {
    if unit.is_empty() { range.to_owned() } else { format!("{range} {unit}") }
}

/// The largest amount of money that a plan may name: far above any budget, and exact.
const MOST_MONEY: u64 = 10_000_000;

/// One value of a plan and the path of its key.
#[derive(Clone)]
pub(super) struct Item<'a> {
    pub(super) node: &'a Node,
    pub(super) path: String,
    problems: &'a Problems,
}

impl<'a> Item<'a> {
    pub(super) fn report(&self, text: impl Into<String>) {
        self.problems.add(self.node.place, self.path.clone(), text);
    }

    fn not_allowed(&self, allowed: &str) {
        let is_number = matches!(self.node.value, Value::Integer(_) | Value::Float(_));
        let is_duration = self.path.ends_with("_s") && is_number;
        let may_be_secret = self.path.contains("password") && !is_duration;
        let found = if may_be_secret {
            // The password itself may stand where its place should.
            "a value that is not shown".to_owned()
        } else {
            self.node.value.found()
        };
        self.report(format!("found {found}, allowed: {allowed}"));
    }

    pub(super) fn number(&self, span: &Span) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "far inside the range of every Span")]
        let number = match &self.node.value {
            Value::Integer(integer) => Some(*integer as f64),
            Value::Float(text) => text.parse().ok(),
            _ => None,
        };
        let allowed = number.filter(|n: &f64| n.is_finite() && span.allows(*n));
        if allowed.is_none() {
            self.not_allowed(&format!("a number, {}", span.words()));
        }
        // Minus zero is zero.
        allowed.map(|n| n + 0.0)
    }

    pub(super) fn whole(&self, range: &Whole) -> Option<u64> {
        let allowed = match &self.node.value {
            Value::Integer(integer) => {
                u64::try_from(*integer).ok().filter(|n| (range.from..=range.to).contains(n))
            }
            _ => None,
        };
        if allowed.is_none() {
            let words = range.words();
            match self.node.value {
                Value::Integer(_) => self.not_allowed(&words),
                _ => self.not_allowed(&format!("a whole number, {words}")),
            }
        }
        allowed
    }

    /// A text on one line, not empty.
    pub(super) fn text(&self, allowed: &str) -> Option<String> {
        let text = self.node.as_text();
        let fits = text.filter(|t| !t.trim().is_empty() && !t.chars().any(char::is_control));
        if fits.is_none() {
            self.not_allowed(allowed);
        }
        fits.map(ToOwned::to_owned)
    }

    pub(super) fn choice(&self, allowed: &[&'static str]) -> Option<&'static str> {
        let words = one_of(allowed);
        let text = self.text(&words)?;
        let chosen = allowed.iter().find(|a| **a == text).copied();
        if chosen.is_none() {
            let hint = did_you_mean(&text, allowed.iter().copied());
            self.report(format!("found {}, allowed: {words}{hint}", quoted(&text)));
        }
        chosen
    }

    /// An exact decimal number from 0, written as a number or as text.
    pub(super) fn decimal(&self, most: Decimal, unit: &str) -> Option<Decimal> {
        let number = match &self.node.value {
            Value::Integer(integer) => Decimal::try_from_i128_with_scale(*integer, 0).ok(),
            Value::Float(text) | Value::Text(text) => {
                Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
            }
            _ => None,
        };
        let allowed = number.filter(|n| *n >= Decimal::ZERO && *n <= most);
        if allowed.is_none() {
            let range = with_unit(&format!("0 to {most}"), unit);
            self.not_allowed(&format!("a decimal number (12.5 or \"12.5\"), {range}"));
        }
        allowed.map(|n| n.normalize())
    }

    pub(super) fn money(&self) -> Option<Money> {
        self.decimal(Decimal::from(MOST_MONEY), "USD").map(Money::new)
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.node.value {
            Value::Boolean(flag) => Some(flag),
            _ => {
                self.not_allowed("true or false");
                None
            }
        }
    }

    /// The entries of a list, each with its own path: its index, or what `label` calls it.
    pub(super) fn entries(
        &self,
        allowed: &str,
        label: impl Fn(&Node) -> Option<String>,
    ) -> Option<Vec<Self>> {
        let Value::List(list) = &self.node.value else {
            self.not_allowed(allowed);
            return None;
        };
        let entry = |(index, node): (usize, &'a Node)| {
            let path = label(node).map_or_else(
                || format!("{}[{index}]", self.path),
                |label| format!("{}.{label}", self.path),
            );
            Item { node, path, problems: self.problems }
        };
        Some(list.iter().enumerate().map(entry).collect())
    }

    /// A value below this one, for tables whose keys are the operator's own.
    pub(super) fn child(&self, key: &str, node: &'a Node) -> Self {
        Self { node, path: format!("{}.{key}", self.path), problems: self.problems }
    }

    /// The table that the value is, its keys checked against the known ones.
    pub(super) fn section(&self, keys: &[&'static str]) -> Option<Section<'a>> {
        let Value::Table(table) = &self.node.value else {
            self.not_allowed(&format!("a table with {}", keys.join(", ")));
            return None;
        };
        let section = Section {
            table,
            place: self.node.place,
            path: self.path.clone(),
            problems: self.problems,
        };
        section.refuse_unknown(keys);
        Some(section)
    }
}

/// `"a" or "b"`, as messages have it.
pub(super) fn one_of(words: &[&str]) -> String {
    words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" or ")
}

/// A table of a plan.
pub(super) struct Section<'a> {
    table: &'a Table,
    place: Place,
    path: String,
    problems: &'a Problems,
}

impl<'a> Section<'a> {
    /// The whole plan.
    pub(super) fn root(
        root: &'a Node,
        keys: &[&'static str],
        problems: &'a Problems,
    ) -> Option<Self> {
        Item { node: root, path: String::new(), problems }.section(keys)
    }

    fn refuse_unknown(&self, keys: &[&'static str]) {
        for (key, node) in self.table {
            if keys.contains(&key.as_str()) {
                continue;
            }
            let hint = did_you_mean(key, keys.iter().copied());
            let text = format!("found an unknown key, allowed: {}{hint}", keys.join(", "));
            let shown = if may_hold_a_secret(key) && key != "password" { "?" } else { key };
            self.problems.add(node.place, self.path_of(shown), text);
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where the section itself stands.
    pub(super) fn report(&self, text: impl Into<String>) {
        self.problems.add(self.place, self.path.clone(), text);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reports at a key's own place, or the section's where the plan leaves the key out.
    pub(super) fn report_at(&self, key: &str, text: impl Into<String>) {
        let place = self.table.get(key).map_or(self.place, |node| node.place);
        self.problems.add(place, self.path_of(key), text);
    }

    pub(super) fn item(&self, key: &str) -> Option<Item<'a>> {
        let node = self.table.get(key)?;
        Some(Item { node, path: self.path_of(key), problems: self.problems })
    }

    /// Like [`Self::item`], and reports the key when the plan leaves it out.
    pub(super) fn required(&self, key: &str, allowed: &str) -> Option<Item<'a>> {
        let item = self.item(key);
        if item.is_none() {
            self.report_at(key, format!("found nothing, allowed: {allowed}"));
        }
        item
    }

    /// A number, or its default where the plan leaves it out.
    pub(super) fn number_or(&self, key: &str, span: &Span, default: f64) -> Option<f64> {
        self.item(key).map_or(Some(default), |item| item.number(span))
    }

    pub(super) fn whole_or(&self, key: &str, range: &Whole, default: u64) -> Option<u64> {
        self.item(key).map_or(Some(default), |item| item.whole(range))
    }

    /// Reports each of these keys that is there; `why` says with what it is allowed.
    pub(super) fn refuse(&self, keys: &[&str], why: &str) {
        for key in keys.iter().filter(|key| self.has(key)) {
            self.report_at(
                key,
                format!("found a key that has no effect here, allowed: only {why}"),
            );
        }
    }
}
