//! What an engine outside of this crate is made with.
//!
//! An engine implements [`Engine`](crate::Engine) and [`FromParameters`], and is added to [`Engines`](crate::Engines) under a name. It
//! may keep its state in anything. One that keeps it in a [`Storage`] as the engines of this crate do, slots in lists whose
//! links are indices, has its cache lines counted and can be laid into memory that processes share: [`View`] is one queue
//! of a storage, with its slots, lists and searches; [`Selector`] is what a slot holds of a receive or message.
//!
//! ```
//! use tagwire_matching::kit::{self, Private, Selector};
//! use tagwire_matching::{Capacity, Cookie, Envelope, Pattern};
//! use tagwire_base::{ContextId, Rank, Tag};
//!
//! let message = Envelope {
//!     source: Rank::new(3),
//!     tag: Tag::user(42).expect("not negative"),
//!     context: ContextId::WORLD,
//! };
//! let receive = Selector::of_receive(Pattern::exact(message));
//! let mut storage = Private::<1>::new(Capacity::default());
//! let handle = kit::insert_posted(&mut storage, receive, Cookie(7)).expect("there is room");
//! let view = kit::posted(&storage);
//! view.append(0, view.head(), handle.slot());
//! let (found, looked) = view.find(0, view.first(), |entry, _| {
//!     entry.accepts(Selector::of_message(message))
//! });
//! assert_eq!((found.map(|(slot, _)| slot), looked), (Some(handle.slot()), 1));
//! ```

pub use crate::factory::Factory;
pub use crate::known::FromParameters;
pub use crate::queue::{View, insert_posted, insert_unexpected, posted, unexpected};
#[cfg(feature = "engines")]
pub use crate::storage::counting::Counting;
pub use crate::storage::{Private, Selector, Storage};
