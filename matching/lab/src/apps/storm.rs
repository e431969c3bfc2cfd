//! Many to one, in the order that suits a list least.

use tagwire_base::named::{Named, Spec};

use super::{App, BYTES, Depth, Size, from, parameter, product, to};
use crate::traffic::Script;

pub(super) static STORM: App = App {
    named: Named {
        name: "storm",
        parameters: &[
            parameter("senders", 15, 1, 1 << 14, "Ranks that send"),
            parameter("messages", 64, 1, 1 << 12, "Messages of each"),
            BYTES,
        ],
    },
    about: "many ranks send to one, each with ascending tags, for which it has posted receives with descending ones",
    scripts,
    depth,
    size: |spec| {
        let messages = product(spec, ["senders", "messages"]);
        Size {
            messages,
            looked: messages,
        }
    },
};

fn scripts(spec: &Spec) -> Vec<Script> {
    let [senders, messages] = ["senders", "messages"].map(|name| spec.number(name));
    let bytes = u64::from(spec.number("bytes"));
    let mut target = Script::new();
    let mut requests = Vec::new();
    for tag in (0..messages).rev() {
        requests.extend((1..=senders).map(|source| target.post(from(source, tag, 0))));
    }
    target.wait(requests);
    let sender = |_| {
        let mut script = Script::new();
        let sends = (0..messages)
            .map(|tag| script.send(to(0, tag, 0, bytes)))
            .collect();
        script.wait(sends);
        script
    };
    std::iter::once(target)
        .chain((0..senders).map(sender))
        .collect()
}

/// In the order of posting the first receive is that of the last message of the first sender, all of whose messages come
/// before: the list is looked through to their tags, and so for each sender, of which ever fewer are left.
///
/// In random order a message with tag k finds those with higher tags of its own sender, and of each other one as many as have
/// not come: how many of it came before follows the negative hypergeometric distribution.
fn depth(spec: &Spec) -> Depth {
    let [senders, messages] = ["senders", "messages"].map(|name| f64::from(spec.number(name)));
    let posted = 1.0 + (messages - 1.0) * (senders + 1.0) / 4.0;
    let all = spec.number("messages");
    let mut compared = 0.0;
    for tag in 0..all {
        let above = f64::from(all - 1 - tag);
        // Of one other sender, `come` messages came before the one with this tag.
        let (mut ahead, mut same) = (0.0, 0.0);
        let mut chance = none_before(tag, all);
        for come in 0..=all {
            ahead += chance * above.min(f64::from(all - come));
            same += if come <= tag { chance } else { 0.0 };
            chance *= f64::from(tag + come + 1) / f64::from(come + 1) * f64::from(all - come)
                / f64::from(2 * all - tag - 1 - come).max(1.0);
        }
        // Of the receives with the same tag, those of half of the other senders were posted before.
        compared += above + (senders - 1.0) * (ahead + same / 2.0);
    }
    Depth {
        posted: Some(posted),
        shuffled: Some(1.0 + compared / messages),
    }
}

/// The chance that none of the other's messages comes before one with this tag, both having so many.
fn none_before(tag: u32, all: u32) -> f64 {
    let factor = |place: u32| f64::from(all - place) / f64::from(2 * all - place);
    (0..=tag).map(factor).product()
}
