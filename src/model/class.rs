//! The four transaction classes of the order business.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A transaction class. The order of the variants is the order of every table and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    ProductLookup,
    OrderHistory,
    OrderCreate,
    OrderCancel,
}

impl Class {
    /// Every class, in the order of tables and files.
    pub const ALL: [Self; 4] =
        [Self::ProductLookup, Self::OrderHistory, Self::OrderCreate, Self::OrderCancel];

    /// The name used in files, for example `order_create`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProductLookup => "product_lookup",
            Self::OrderHistory => "order_history",
            Self::OrderCreate => "order_create",
            Self::OrderCancel => "order_cancel",
        }
    }

    /// The one-word name used on the screen, for example `create`.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::ProductLookup => "lookup",
            Self::OrderHistory => "history",
            Self::OrderCreate => "create",
            Self::OrderCancel => "cancel",
        }
    }

    /// The name in prose, for example `order create`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ProductLookup => "product lookup",
            Self::OrderHistory => "order history",
            Self::OrderCreate => "order create",
            Self::OrderCancel => "order cancel",
        }
    }

    /// Whether the class changes data, and so is held to the write SLO.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::OrderCreate | Self::OrderCancel)
    }

    /// Its place in [`Class::ALL`].
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::ProductLookup => 0,
            Self::OrderHistory => 1,
            Self::OrderCreate => 2,
            Self::OrderCancel => 3,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// One value for each transaction class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerClass<T> {
    pub product_lookup: T,
    pub order_history: T,
    pub order_create: T,
    pub order_cancel: T,
}

impl<T> PerClass<T> {
    /// Makes the value of every class.
    pub fn from_fn(mut make: impl FnMut(Class) -> T) -> Self {
        Self {
            product_lookup: make(Class::ProductLookup),
            order_history: make(Class::OrderHistory),
            order_create: make(Class::OrderCreate),
            order_cancel: make(Class::OrderCancel),
        }
    }

    /// The values in the order of [`Class::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Class, &T)> {
        Class::ALL.into_iter().map(|class| (class, &self[class]))
    }
}

impl<T> std::ops::Index<Class> for PerClass<T> {
    type Output = T;

    fn index(&self, class: Class) -> &T {
        [&self.product_lookup, &self.order_history, &self.order_create, &self.order_cancel]
            [class.index()]
    }
}

impl<T> std::ops::IndexMut<Class> for PerClass<T> {
    fn index_mut(&mut self, class: Class) -> &mut T {
        match class {
            Class::ProductLookup => &mut self.product_lookup,
            Class::OrderHistory => &mut self.order_history,
            Class::OrderCreate => &mut self.order_create,
            Class::OrderCancel => &mut self.order_cancel,
        }
    }
}
