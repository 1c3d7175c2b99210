//! `Key`, which defines what can be a key, and the bytes that are hashed for it.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A key is text, a byte string or an integer. Filters hash its bytes, which are the same in every language that
/// bloomline has an interface for ([the rule](crate::format#keys-of-other-types)):
///
/// | type | bytes |
/// |---|---|
/// | `str`, `String` | UTF-8, without a terminator |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | as they are |
/// | integers of up to 64 bits, signed or not | the value in 8 bytes, little-endian, two's complement |
/// | references, `Box`, `Rc`, `Arc` and `Cow` of these | as what they point to |
///
/// So `7_u8`, `7_i64`, the line `7` with `--integers` on the command line, and the 7 of an integer column of SQL or
/// Python are one key, but `"7"` is a different key. Integers of 128 bits, floats, dates and tuples are not keys, so
/// convert each to an integer or text, in one way for every insert and lookup.
///
/// Pass a byte string of any other type, such as `bytes::Bytes`, as a slice: `filter.insert(&bytes[..])`.
///
/// # Implementing it
///
/// Implement it for a type of your own. The bytes of equal keys must be equal, each time and in every release of your
/// program.
///
/// ```
/// use bloomline::{BloomFilter, Key};
///
/// struct UserId(u64);
///
/// impl Key for UserId {
///     fn key_bytes(&self) -> impl AsRef<[u8]> {
///         self.0.to_le_bytes() // as for a plain `u64`
///     }
/// }
///
/// let mut seen = BloomFilter::with_fpr(1_000, 0.01)?;
/// seen.insert(UserId(42));
/// assert!(seen.contains(UserId(42)) && seen.contains(42));
/// # Ok::<(), bloomline::Error>(())
/// ```
///
/// The bytes of a struct are those of its fields. If several fields vary in length, put each one's length before it, or
/// `("ab", "c")` and `("a", "bc")` would be one key. Fields of a fixed length, and a single field that varies, need no
/// length:
///
/// ```
/// use bloomline::{BloomFilter, Key};
///
/// struct Visit {
///     user: u64,
///     day: u32,
///     page: String,
/// }
///
/// impl Key for Visit {
///     fn key_bytes(&self) -> impl AsRef<[u8]> {
///         [&self.user.to_le_bytes()[..], &self.day.to_le_bytes(), self.page.as_bytes()].concat()
///     }
/// }
///
/// let mut seen = BloomFilter::with_fpr(1_000, 0.01)?;
/// seen.insert(Visit { user: 42, day: 20_785, page: "/home".into() });
/// assert!(seen.contains(Visit { user: 42, day: 20_785, page: "/home".into() }));
/// assert!(!seen.contains(Visit { user: 42, day: 20_786, page: "/home".into() }));
/// # Ok::<(), bloomline::Error>(())
/// ```
///
/// `#[derive(Hash)]` does not make a key. It feeds integers in the machine's byte order and lengths in the machine's
/// word size, and the standard library may change what it feeds in any release, so a stored filter could lose its keys.
///
/// Other types do not compile:
///
/// ```compile_fail,E0277
/// bloomline::hash_key(0.1, 0);
/// ```
///
/// ```compile_fail,E0277
/// bloomline::hash_key(1_u128 << 64, 0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    label = "a key is text, a byte string or an integer of up to 64 bits",
    note = "pass a byte string of another type as a slice, `&bytes[..]`",
    note = "convert floats, dates and 128-bit integers to integers or text, in one way for every insert and lookup",
    note = "implement `bloomline::Key` for a type of your own"
)]
pub trait Key {
    /// The bytes that are hashed.
    fn key_bytes(&self) -> impl AsRef<[u8]>;
}

/// Implements [`Key`] for each type, with the bytes that the expression makes of its value.
macro_rules! keys {
    ($($(#[$attribute:meta])? [$($generics:tt)*] $key:ty, |$name:ident| $bytes:expr;)*) => {$(
        $(#[$attribute])?
        impl<$($generics)*> Key for $key {
            #[inline]
            fn key_bytes(&self) -> impl AsRef<[u8]> {
                let $name = self;
                $bytes
            }
        }
    )*};
}

keys! {
    [] [u8], |key| key;
    [const N: usize] [u8; N], |key| key;
    [] Vec<u8>, |key| key;
    [] str, |key| key;
    [] String, |key| key;
    [K: Key + ?Sized] &K, |key| (**key).key_bytes();
    [K: Key + ?Sized] &mut K, |key| (**key).key_bytes();
    [K: Key + ?Sized] Box<K>, |key| (**key).key_bytes();
    [K: Key + ?Sized] Rc<K>, |key| (**key).key_bytes();
    #[cfg(target_has_atomic = "ptr")] [K: Key + ?Sized] Arc<K>, |key| (**key).key_bytes();
    [K: Key + ToOwned + ?Sized] Cow<'_, K>, |key| (**key).key_bytes();
    // The cast extends the sign.
    [] u8, |key| (*key as u64).to_le_bytes();
    [] u16, |key| (*key as u64).to_le_bytes();
    [] u32, |key| (*key as u64).to_le_bytes();
    [] u64, |key| key.to_le_bytes();
    [] usize, |key| (*key as u64).to_le_bytes();
    [] i8, |key| (*key as u64).to_le_bytes();
    [] i16, |key| (*key as u64).to_le_bytes();
    [] i32, |key| (*key as u64).to_le_bytes();
    [] i64, |key| key.to_le_bytes();
    [] isize, |key| (*key as u64).to_le_bytes();
}
