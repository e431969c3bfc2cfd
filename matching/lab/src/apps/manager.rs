//! A manager and workers.

use tagwire_base::named::{Named, Spec};

use super::{App, BYTES, Depth, Size, anything, from, from_any, parameter, product, to};
use crate::traffic::Script;

pub(super) static FARM: App = App {
    named: Named {
        name: "farm",
        parameters: &[
            parameter("workers", 15, 1, 1 << 16, "Workers"),
            parameter("tasks", 50, 1, 1 << 20, "Tasks of each"),
            BYTES,
        ],
    },
    about: "a manager takes results from anybody, of any tag, with a receive of any source for orders that stays for ever before them",
    scripts,
    // The manager looks at the receive that stays and then at that of the results; of the workers each looks at one.
    depth: |_| Depth {
        posted: Some(1.5),
        shuffled: Some(1.5),
    },
    size: |spec| Size {
        messages: 2 * product(spec, ["workers", "tasks"]),
        looked: product(spec, ["workers"]),
    },
};

/// The tag of an order to the manager, which never comes.
const ORDER: u32 = 1 << 20;

fn scripts(spec: &Spec) -> Vec<Script> {
    let [workers, tasks] = ["workers", "tasks"].map(|name| spec.number(name));
    let bytes = u64::from(spec.number("bytes"));
    let mut manager = Script::new();
    let orders = manager.post(from_any(ORDER));
    for task in 0..tasks {
        // Results are posted for before the tasks go out, so that no result is unexpected.
        for worker in 1..=workers {
            let result = manager.post(anything());
            manager.send(to(worker, task, 0, bytes));
            manager.wait(vec![result]);
        }
    }
    manager.cancel(orders);
    let worker = |_| {
        let mut script = Script::new();
        for task in 0..tasks {
            script.receive(from(0, task, 0));
            script.compute(1000);
            let result = script.send(to(0, task, 0, bytes));
            script.wait(vec![result]);
        }
        script
    };
    std::iter::once(manager)
        .chain((0..workers).map(worker))
        .collect()
}
