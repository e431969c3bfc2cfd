//! `kill -9` of rank 1 in a collective: it strikes itself at a given point, or the test strikes it at any.

use std::process::Command;
use std::time::{Duration, Instant};

use tagwire::{
    Allgather, Allreduce, Alltoall, Barrier, Broadcast, Combine, Context, Error, Request, Scope,
    Session, Sum,
};

use crate::{Outcome, say, sleep_until_killed};

const VICTIM: u32 = 1;
/// The design says one second after the death. Here more, for machines that do ten other things.
const SOON: Duration = Duration::from_secs(10);
/// Many pieces, and too long for any buffer on the way.
const LONG: usize = 1 << 20;

type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Ends this process at once.
fn strike() -> ! {
    let process = std::process::id().to_string();
    let _ = Command::new("kill").args(["-9", &process]).status();
    sleep_until_killed()
}

/// Does one operation `len` numbers long.
fn one(world: Context<'_>, what: &str, len: usize) -> Result {
    let size = world.size()? as usize;
    let (mut own, mut all) = (vec![1u64; len], vec![1u64; len * size]);
    match what {
        "barrier" => world.barrier(),
        "broadcast" => world.broadcast(&mut own, VICTIM),
        "broadcast-from-0" => world.broadcast(&mut own, 0),
        "reduce" => world.reduce(&mut own, Sum, 0),
        "reduce-to-it" => world.reduce(&mut own, Sum, VICTIM),
        "allreduce" => world.allreduce(&mut own, Sum),
        "scan" => world.scan(&mut own, Sum),
        "reduce-scatter" => world.reduce_scatter(&all, &mut own, Sum),
        "gather" => world.gather(&own, &mut all, 0),
        "scatter" => world.scatter(&all, &mut own, VICTIM),
        "allgather" => world.allgather(&own, &mut all),
        "alltoall" => world.run(Alltoall::in_place(&mut all)),
        other => panic!("no collective '{other}'"),
    }
}

const ALL: [&str; 12] = [
    "barrier",
    "broadcast",
    "broadcast-from-0",
    "reduce",
    "reduce-to-it",
    "allreduce",
    "scan",
    "reduce-scatter",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
];

/// Does all operations until one fails; the test kills the victim while it does. Returns when that one began.
fn any(world: Context<'_>) -> Result<Instant> {
    for round in 0usize.. {
        for what in ALL {
            // In a few hundred rounds the death falls into each.
            let len = [1, 100, 5000, 40_000][round % 4];
            let began = Instant::now();
            if let Err(error) = one(world, what, len) {
                check(&error);
                return Ok(began);
            }
        }
        if round == 20 {
            say(world.rank()?, "ready");
        }
    }
    unreachable!("the victim dies")
}

/// One rank alone does not come to the operation: its death comes first.
fn absent(world: Context<'_>, what: &str) -> Result<Instant> {
    let began = Instant::now();
    if world.rank()? == VICTIM {
        // The others wait for it by now, at least mostly.
        std::thread::sleep(Duration::from_millis(20));
        strike();
    }
    // Who only gives may be done before anybody dies: it finds out with the next.
    let ended = one(world, what, LONG).and_then(|()| world.barrier());
    check(&ended.unwrap_err());
    Ok(began)
}

/// The victim strikes in the middle of a reduction: when it combines the numbers of one block of several.
fn within(world: Context<'_>, what: &str, len: usize) -> Result<Instant> {
    let me = world.rank()?;
    let combine = move |left: u64, right: u64| {
        // The number at a place in the middle says so.
        match me == VICTIM && left.max(right) >= 1 << 32 {
            true => strike(),
            false => left + right,
        }
    };
    let sum = Combine::ordered(combine);
    let mut data = vec![1; len];
    data[len / 2] = 1 << 32;
    let began = Instant::now();
    let ended = match what {
        "allreduce" => world.allreduce(&mut data, &sum),
        "reduce" => world.reduce(&mut data, &sum, VICTIM),
        _ => world.scan(&mut data, &sum),
    };
    let ended = ended.and_then(|()| world.barrier());
    check(&ended.unwrap_err());
    Ok(began)
}

/// The victim strikes after some steps of a nonblocking operation.
fn amid(world: Context<'_>, what: &str, steps: usize) -> Result<Instant> {
    let size = world.size()? as usize;
    let (mut own, mut all) = (vec![1u64; LONG], vec![1u64; LONG * size]);
    let is_victim = world.rank()? == VICTIM;
    let began = Instant::now();
    let ended = world.session().try_scope(|scope| {
        let mut request = start(world, scope, what, &mut own, &mut all)?;
        for _ in 0..if is_victim { steps } else { 0 } {
            match request.test() {
                Ok(_) => strike(),
                Err(open) => request = open,
            }
        }
        if is_victim {
            strike();
        }
        request.wait().map(|_| ())
    });
    let ended = ended.and_then(|()| world.barrier());
    check(&ended.unwrap_err());
    Ok(began)
}

fn start<'scope, 'env>(
    world: Context<'_>,
    scope: &'scope Scope<'scope, 'env>,
    what: &str,
    own: &'env mut [u64],
    all: &'env mut [u64],
) -> Result<Request<'scope, 'env>> {
    match what {
        "broadcast" => scope.start(&world, Broadcast::new(own, VICTIM)),
        "allreduce" => scope.start(&world, Allreduce::in_place(own, Sum)),
        "allgather" => scope.start(&world, Allgather::new(own, all)),
        "alltoall" => scope.start(&world, Alltoall::in_place(all)),
        _ => scope.start(&world, Barrier::new()),
    }
}

/// The error names who died.
fn check(error: &Error) {
    let text = error.to_string();
    assert!(text.contains(&format!("rank {VICTIM}")), "{text}");
}

/// Rank 1 dies; the others' operations end soon, and they go on without it.
pub fn run(arguments: &[String]) -> Outcome {
    let session = Session::open()?;
    let world = session.world();
    // The group has its board, where it gets one.
    for _ in 0..6 {
        one(world, "allreduce", 3)?;
    }
    let (how, what) = (arguments[0].as_str(), arguments.get(1));
    let what = what.map_or("", String::as_str);
    let number = arguments.get(2).map_or(Ok(0), |text| text.parse())?;
    let began = match how {
        "any" => any(world)?,
        "absent" => absent(world, what)?,
        "within" => within(world, what, number)?,
        "amid" => amid(world, what, number)?,
        other => return Err(format!("no way to die '{other}'").into()),
    };
    let took = began.elapsed();
    assert!(took < SOON, "{what} took {took:?}");
    let left: Vec<_> = (0..session.size()).filter(|rank| *rank != VICTIM).collect();
    let rest = world.subset(&left)?;
    for what in ["allreduce", "alltoall", "barrier"] {
        one(rest, what, 1000)?;
    }
    let mut count = [1];
    rest.allreduce(&mut count, Sum)?;
    assert_eq!(count, [left.len() as u64]);
    say(session.rank(), "went on");
    session.close()?;
    Ok(())
}
