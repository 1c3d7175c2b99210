//! Errors to compare with, because code outside the crate cannot make one.

use std::fmt;

use bloomline::{BuildError, DecodeError, MismatchError};

/// An error as `Debug` shows it.
pub struct Shown {
    variant: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl Shown {
    pub fn new(variant: &'static str, fields: &[(&'static str, &dyn fmt::Debug)]) -> Self {
        Self { variant, fields: fields.iter().map(|(name, value)| (*name, format!("{value:?}"))).collect() }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.variant);
        for (name, value) in &self.fields {
            shown.field(name, &format_args!("{value}"));
        }
        shown.finish()
    }
}

/// `error!(DecodeError::Footer { field: "k", found: 17 })` equals that error, and a result with it.
#[allow(unused_macros, reason = "each driver uses only what it needs")]
macro_rules! error {
    ($type:ident::$variant:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        _ = |error: &$type| matches!(error, $type::$variant { $($field: _,)* .. });
        $crate::common::errors::Shown::new(
            stringify!($variant),
            &[$((stringify!($field), &$crate::common::errors::error!(@ $field $(, $value)?))),*],
        )
    }};
    (@ $field:ident) => { $field };
    (@ $field:ident, $value:expr) => { $value };
}

#[allow(unused_imports, reason = "each driver uses only what it needs")]
pub(crate) use error;

macro_rules! comparable {
    ($($error:ty),*) => {$(
        impl PartialEq<Shown> for $error {
            fn eq(&self, other: &Shown) -> bool {
                format!("{self:?}") == format!("{other:?}")
            }
        }

        impl<T> PartialEq<Shown> for Result<T, $error> {
            fn eq(&self, other: &Shown) -> bool {
                self.as_ref().is_err_and(|error| error == other)
            }
        }
    )*};
}

comparable!(DecodeError, MismatchError, BuildError);
