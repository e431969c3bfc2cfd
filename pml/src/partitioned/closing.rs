//! Channels that close.

use crate::messenger::Messenger;

/// Closes a channel by `close`, which may take the rank's progress.
pub(super) fn close(messenger: &Messenger, driven: bool, close: impl Fn() -> bool) -> bool {
    close()
        || driven && {
            messenger.nudge();
            close()
        }
}
