//! Which plan is chosen for which accesses.

use tagwire_files::{Access, Hints, Plan, Summary, Switch, View};
use tagwire_layout::{Basic, Datatype, Program};

/// Returns the summary of a member with runs of `length` bytes, `stride` bytes apart, from an offset on.
fn member(offset: u64, length: u64, stride: i64, bytes: u64) -> Summary {
    let byte = Datatype::of(Basic::Byte);
    let block = byte.contiguous(length).unwrap().resized(0, stride).unwrap();
    let view = View::new(offset, &Program::of(&byte), &Program::of(&block)).unwrap();
    Summary::of(Access::new(&view, 0), bytes).unwrap()
}

/// Returns the plans of a read and of a write.
fn plans(members: &[Summary], switch: Switch) -> (Plan, Plan) {
    let members: Vec<_> = members.iter().map(|member| member.with(switch)).collect();
    (Plan::of_reads(&members), Plan::of_writes(&members))
}

/// Returns the plan of both.
fn all(members: &[Summary], switch: Switch) -> Plan {
    let (read, write) = plans(members, switch);
    assert_eq!(read, write, "{members:?}");
    read
}

#[test]
fn summaries_say_what_accesses_are_like() {
    let one = member(10, 4, 12, 40);
    let (first, end, runs) = (10, 10 + 9 * 12 + 4, 10);
    assert_eq!(
        (one.bytes, one.first, one.end, one.runs),
        (40, first, end, runs)
    );
    assert_eq!(member(10, 4, 4, 40).runs, 1);
    assert_eq!(member(10, 4, 12, 0), member(99, 1, 7, 0));
    // Many are not counted one by one.
    let many = member(0, 8, 24, 8_000_000);
    assert_eq!((many.runs, many.bytes), (1_000_000, 8_000_000));
}

/// Short runs that lie between each other go to aggregators.
#[test]
fn interleaved_accesses_of_short_runs_are_in_two_phases() {
    let short = [member(0, 8, 16, 800), member(8, 8, 16, 800)];
    let long = [
        member(0, 8192, 16384, 81_920),
        member(8192, 8192, 16384, 81_920),
    ];
    let apart = [member(0, 8, 16, 800), member(9000, 8, 16, 800)];
    let sparse = [member(0, 8, 16_000, 800), member(8, 8, 16_000, 800)];
    let nothing = [member(0, 8, 16, 0), member(0, 8, 16, 0)];
    let with_one = [short[0], member(0, 8, 16, 0)];
    let twice = [member(0, 8, 8, 800), member(0, 8, 8, 800)];
    for (members, automatic, enabled) in [
        (short, Plan::TwoPhase, Plan::TwoPhase),
        (long, Plan::Direct, Plan::TwoPhase),
        (apart, Plan::Direct, Plan::TwoPhase),
        (sparse, Plan::Direct, Plan::TwoPhase),
        (nothing, Plan::Direct, Plan::Direct),
        (with_one, Plan::Direct, Plan::TwoPhase),
        (twice, Plan::Direct, Plan::TwoPhase),
    ] {
        assert_eq!(all(&members, Switch::Automatic), automatic, "{members:?}");
        assert_eq!(all(&members, Switch::Enable), enabled, "{members:?}");
        assert_eq!(all(&members, Switch::Disable), Plan::Direct, "{members:?}");
    }
    let one_disables = [short[0], short[1].with(Switch::Disable)];
    assert_eq!(Plan::of_reads(&one_disables), Plan::Direct);
    let one_enables = [long[0], long[1].with(Switch::Enable)];
    assert_eq!(Plan::of_writes(&one_enables), Plan::Direct);
    let overlapping = member(0, 8, 4, 800);
    assert_eq!(all(&[overlapping, short[0]], Switch::Enable), Plan::Direct);
}

/// Each member reads pages by itself, which others may do at the same time. Writes of a file exclude each other.
#[test]
fn pages_are_written_by_aggregators() {
    let pages = [
        member(0, 4096, 8192, 40_960),
        member(4096, 4096, 8192, 40_960),
    ];
    let automatic = plans(&pages, Switch::Automatic);
    assert_eq!(automatic, (Plan::Direct, Plan::TwoPhase));
    let disabled = plans(&pages, Switch::Disable);
    assert_eq!(disabled, (Plan::Direct, Plan::Direct));
}

#[test]
fn reads_of_short_runs_are_sieved() {
    let with = |sieve| Hints {
        sieve,
        ..Hints::default()
    };
    for (one, automatic) in [
        (member(0, 8, 16, 800), Plan::Sieve),
        (member(0, 8, 100_000, 800), Plan::Direct),
        (member(0, 8192, 16384, 81_920), Plan::Direct),
    ] {
        let plan = |sieve| Plan::of_read(&one, &with(sieve), true);
        assert_eq!(plan(Switch::Automatic), automatic, "{one:?}");
        assert_eq!(plan(Switch::Enable), Plan::Sieve);
        assert_eq!(plan(Switch::Disable), Plan::Direct);
        assert_eq!(
            Plan::of_read(&one, &with(Switch::Enable), false),
            Plan::Direct
        );
    }
    // Tiles of a byte and one that lies two tiles behind: the last byte of the access is before its first.
    let byte = Datatype::of(Basic::Byte);
    let tile = byte.hvector(2, 1, 5).unwrap().resized(0, 2).unwrap();
    let view = View::new(0, &Program::of(&byte), &Program::of(&tile)).unwrap();
    let back = Summary::of(Access::new(&view, 1), 2).unwrap();
    assert_eq!((back.first, back.end), (5, 3));
    let plan = Plan::of_read(&back, &with(Switch::Automatic), view.is_ordered());
    assert_eq!(plan, Plan::Direct);
    let block = member(0, 8, 8, 800);
    assert_eq!(
        Plan::of_read(&block, &with(Switch::Enable), true),
        Plan::Direct
    );
}
