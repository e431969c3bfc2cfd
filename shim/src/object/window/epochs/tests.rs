use super::*;

/// A call, by its name in MPI without `Win_`; a number is a target.
type Call = &'static str;

/// Makes a call as the bodies of MPI's calls do. Returns whether it was allowed.
fn call(epochs: &mut Epochs, call: Call) -> bool {
    let made = match call {
        "fence" => epochs.check_fence().map(|()| epochs.fence(true)),
        "last fence" => epochs.check_fence().map(|()| epochs.fence(false)),
        "start" => epochs.start(Arc::from([1])),
        "complete" => epochs.complete().map(drop),
        "post" => epochs.post(Arc::from([1])),
        "wait" => epochs.posted().map(drop).map(|()| epochs.close()),
        "lock 0" => epochs.lock(0, Locked::Shared),
        "lock 1" => epochs.lock(1, Locked::Exclusive),
        "unlock 0" => epochs.unlock(0).map(drop),
        "unlock 1" => epochs.unlock(1).map(drop),
        "lock_all" => epochs
            .check_lock_all()
            .map(|()| epochs.lock_all(Locked::Shared)),
        "unlock_all" => epochs.locked_all().map(|_| epochs.unlock_all()),
        "put 0" => epochs.access(0),
        "put 1" => epochs.access(1),
        "flush 0" => epochs.passive(0),
        "flush 1" => epochs.passive(1),
        "flush_all" => epochs.all_passive().map(drop),
        "free" => epochs.check_free(),
        _ => panic!("{call} is no call"),
    };
    if let Err(error) = &made {
        assert_eq!(error.code(), Class::RmaSync as i32, "{call}");
    }
    made.is_ok()
}

const CALLS: &[Call] = &[
    "fence",
    "last fence",
    "start",
    "complete",
    "post",
    "wait",
    "lock 0",
    "lock 1",
    "unlock 0",
    "unlock 1",
    "lock_all",
    "unlock_all",
    "put 0",
    "put 1",
    "flush 0",
    "flush 1",
    "flush_all",
    "free",
];

/// What is allowed after some calls; all else is not.
const ALLOWED: &[(&[Call], &[Call])] = &[
    (
        &[],
        &[
            "fence",
            "last fence",
            "start",
            "post",
            "lock 0",
            "lock 1",
            "lock_all",
            "free",
        ],
    ),
    (
        &["fence"],
        &[
            "fence",
            "last fence",
            "start",
            "post",
            "lock 0",
            "lock 1",
            "lock_all",
            "put 0",
            "put 1",
            "free",
        ],
    ),
    (
        &["fence", "put 0"],
        &["fence", "last fence", "put 0", "put 1", "free"],
    ),
    (
        &["fence", "put 0", "last fence"],
        &[
            "fence",
            "last fence",
            "start",
            "post",
            "lock 0",
            "lock 1",
            "lock_all",
            "free",
        ],
    ),
    // A lock after a fence says that the fence was the last one.
    (
        &["fence", "lock 0", "unlock 0"],
        &[
            "fence",
            "last fence",
            "start",
            "post",
            "lock 0",
            "lock 1",
            "lock_all",
            "free",
        ],
    ),
    (&["start"], &["complete", "post", "put 1"]),
    (&["start", "put 1"], &["complete", "post", "put 1"]),
    // What is exposed is not locked, and what is locked not exposed, as far as this process sees both.
    (&["post"], &["wait", "start", "lock 1"]),
    (&["post", "start"], &["wait", "complete", "put 1"]),
    (
        &["lock 0"],
        &["lock 1", "unlock 0", "put 0", "flush 0", "flush_all"],
    ),
    (
        &["lock 0", "lock 1", "unlock 0"],
        &[
            "lock 0",
            "unlock 1",
            "put 1",
            "flush 1",
            "flush_all",
            "post",
        ],
    ),
    (
        &["lock_all"],
        &[
            "unlock_all",
            "put 0",
            "put 1",
            "flush 0",
            "flush 1",
            "flush_all",
        ],
    ),
];

fn after(calls: &[Call]) -> Epochs {
    let mut epochs = Epochs::new(2, 0);
    for made in calls {
        assert!(call(&mut epochs, made), "{made} of {calls:?}");
    }
    epochs
}

#[test]
fn each_call_is_allowed_where_the_standard_says_so() {
    for (before, allowed) in ALLOWED {
        for next in CALLS {
            let is_allowed = call(&mut after(before), next);
            assert_eq!(
                is_allowed,
                allowed.contains(next),
                "{next} after {before:?}"
            );
        }
    }
}

/// What was refused has changed nothing.
#[test]
fn a_call_that_is_refused_leaves_the_epochs_as_they_were() {
    for (before, allowed) in ALLOWED {
        let mut epochs = after(before);
        // A refused fence, lock or free is asked for again and again; each answer is that of a fresh window.
        for refused in CALLS.iter().filter(|next| !allowed.contains(next)) {
            assert!(!call(&mut epochs, refused), "{refused} after {before:?}");
        }
        for next in CALLS.iter().filter(|next| !allowed.contains(next)) {
            assert!(!call(&mut epochs, next), "{next} after {before:?}");
        }
        let first = allowed[0];
        assert!(call(&mut epochs, first), "{first} after {before:?}");
    }
}

#[test]
fn locks_are_given_back_as_they_were_taken() {
    let mut epochs = after(&["lock 0", "lock 1"]);
    assert_eq!(epochs.all_passive().unwrap(), [0, 1]);
    assert_eq!(epochs.unlock(0).unwrap(), Locked::Shared);
    assert_eq!(epochs.all_passive().unwrap(), [1]);
    assert_eq!(epochs.unlock(1).unwrap(), Locked::Exclusive);
    assert!(epochs.all_passive().is_err());
}
