//! The simplest forms of steps.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use super::{Op, Program};
use crate::{Basic, Datatype, Member, Order, Slice};

fn int() -> Datatype {
    Datatype::of(Basic::I32)
}

fn step(datatype: &Datatype, count: u64) -> Op {
    Program::of(datatype).step(count).unwrap()
}

/// A step in few words: lengths, strides and counts.
fn form(step: &Op) -> String {
    match step {
        Op::Block(block) => format!("{}+{}", block.offset, block.length),
        Op::Strided(row) => format!(
            "{}+{} x{}@{}",
            row.first.offset, row.first.length, row.count, row.stride
        ),
        Op::Strided2 { row, stride, count } => {
            format!("({}) x{count}@{stride}", form(&Op::Strided(*row)))
        }
        Op::List { offset, list } => {
            let blocks = list.blocks().iter().map(|block| form(&Op::Block(*block)));
            format!("{offset}[{}]", blocks.collect::<Vec<_>>().join(" "))
        }
        Op::Loop {
            offset,
            stride,
            count,
            body,
        } => {
            let (_, ops) = body.from(0);
            let ops: Vec<_> = ops.iter().map(form).collect();
            format!("{offset}{{{}}} x{count}@{stride}", ops.join("; "))
        }
    }
}

#[test]
fn what_is_contiguous_is_one_block() {
    let rows = int().vector(3, 4, 4).unwrap().hvector(2, 1, 48).unwrap();
    assert_eq!(form(&step(&rows, 5)), "0+480");
    let indexed = int().indexed(&[2, 0, 3, 1], &[1, 9, 3, 6]).unwrap();
    assert_eq!(form(&step(&indexed, 1)), "4+24");
    let member = |displacement| Member {
        count: 2,
        displacement,
        of: int(),
    };
    let members = Datatype::structure([member(0), member(8), member(16)]).unwrap();
    assert_eq!(form(&step(&members, 2)), "0+48");
    // The order is kept: what is in memory from the back to the front is no block.
    let back = int().indexed_block(1, &[1, 0]).unwrap();
    assert_eq!(form(&step(&back, 1)), "4+4 x2@-4");
}

#[test]
fn rows_and_rows_of_rows_are_strided() {
    let column = int().vector(10, 1, 8).unwrap();
    assert_eq!(form(&step(&column, 1)), "0+4 x10@32");
    // Neighbours that go on with the same stride are one row.
    let through = column.resized(0, 320).unwrap();
    assert_eq!(form(&step(&through, 3)), "0+4 x30@32");
    assert_eq!(
        form(&step(&through.contiguous(3).unwrap(), 2)),
        "0+4 x60@32"
    );
    let apart = column.resized(0, 1000).unwrap();
    assert_eq!(form(&step(&apart, 3)), "(0+4 x10@32) x3@1000");
    let slice = |size, length, start| Slice {
        size,
        length,
        start,
    };
    let cube = [slice(8, 2, 1), slice(8, 3, 1), slice(8, 4, 2)];
    let cube = int().subarray(&cube, Order::C).unwrap();
    assert_eq!(form(&step(&cube, 1)), "(296+16 x3@32) x2@256");
    // A dimension that is taken whole goes into the blocks.
    let slab = [slice(8, 2, 1), slice(8, 3, 1), slice(8, 8, 0)];
    let slab = int().subarray(&slab, Order::C).unwrap();
    assert_eq!(form(&step(&slab, 1)), "288+96 x2@256");
}

#[test]
fn lists_with_a_rule_become_strided() {
    let places: Vec<i64> = (0..100).map(|place| 3 * place).collect();
    let regular = int().indexed_block(2, &places).unwrap();
    assert_eq!(form(&step(&regular, 1)), "0+8 x100@12");
    let one = int().indexed_block(1, &[0, 2, 4, 6, 20, 3, 100]).unwrap();
    assert_eq!(
        form(&step(&one, 1)),
        "0{0+4 x4@8; 0[80+4 12+4 400+4]} x1@404"
    );
    let rows: Vec<i64> = (0..4).map(|row| row * 1000).collect();
    let rows = regular.hindexed_block(1, &rows).unwrap();
    assert_eq!(form(&step(&rows, 1)), "(0+8 x100@12) x4@1000");
}

#[test]
fn steps_are_taken_together_or_shared() {
    let pair = Datatype::of(Basic::F64Int);
    assert_eq!(form(&step(&pair, 1)), "0+12");
    let short = Datatype::of(Basic::ShortInt);
    assert_eq!(form(&step(&short, 1)), "0[0+2 4+4]");
    assert_eq!(form(&step(&short, 7)), "0{0[0+2 4+4]} x7@8");
    // A loop over a loop that goes on is one loop, and one of one turn is none.
    let many = short.contiguous(7).unwrap().contiguous(1).unwrap();
    assert_eq!(form(&step(&many, 3)), "0{0[0+2 4+4]} x21@8");
    let nothing = short.contiguous(0).unwrap().vector(3, 2, 5).unwrap();
    assert_eq!(form(&step(&nothing, 3)), "0+0");
}
