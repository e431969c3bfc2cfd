//! Time of packing and unpacking by shape, beside what a program would write by hand.
//!
//! | shape | by hand |
//! |---|---|
//! | every second value of 8 bytes | a loop over slices |
//! | every second block of 256 bytes or 4 KiB | a copy of each slice |
//! | a struct of an `int` and a `double` | a loop over both fields |
//! | set-up: one value | nothing |
//!
//! The memory of all of them is the same. `cargo bench -p tagwire-layout-bench --bench packing`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tagwire_layout::{Basic, Datatype, Member, Packer, Program, Source, Target, Unpacker};

/// How many bytes are packed.
const LENGTH: usize = 32 * 1024;

/// Every second block of some bytes.
fn every_second(block: usize) -> Program {
    let count = (LENGTH / block) as u64;
    let stride = 2 * block as i64;
    let vector = Datatype::of(Basic::Byte).hvector(count, block as u64, stride);
    Program::of(&vector.expect("a short type"))
}

fn by_hand<const BLOCK: usize>(memory: &[u8], out: &mut [u8]) {
    let blocks = memory.as_chunks::<BLOCK>().0.chunks(2);
    for (out, two) in out.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks) {
        *out = two[0];
    }
}

fn by_hand_back<const BLOCK: usize>(bytes: &[u8], memory: &mut [u8]) {
    let blocks = memory.as_chunks_mut::<BLOCK>().0.chunks_mut(2);
    for (block, two) in bytes.as_chunks::<BLOCK>().0.iter().zip(blocks) {
        two[0] = *block;
    }
}

fn strided<const BLOCK: usize>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("blocks of {BLOCK}"));
    group.throughput(Throughput::Bytes(LENGTH as u64));
    let program = every_second(BLOCK);
    let (mut memory, mut packed) = (vec![1_u8; 2 * LENGTH], vec![2_u8; LENGTH]);
    group.bench_function(BenchmarkId::new("pack", "by hand"), |bencher| {
        bencher.iter(|| by_hand::<BLOCK>(black_box(&memory), black_box(&mut packed)));
    });
    group.bench_function(BenchmarkId::new("pack", "program"), |bencher| {
        bencher.iter(|| pack(&program, black_box(&memory), black_box(&mut packed)));
    });
    group.bench_function(BenchmarkId::new("unpack", "by hand"), |bencher| {
        bencher.iter(|| by_hand_back::<BLOCK>(black_box(&packed), black_box(&mut memory)));
    });
    group.bench_function(BenchmarkId::new("unpack", "program"), |bencher| {
        bencher.iter(|| unpack(&program, black_box(&packed), black_box(&mut memory)));
    });
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| black_box(&mut packed[..]).copy_from_slice(black_box(&memory[..LENGTH])));
    });
    group.finish();
}

fn pack(program: &Program, memory: &[u8], out: &mut [u8]) -> usize {
    let packer = Packer::new(black_box(program), 1, Source::of(memory));
    packer.expect("within the memory").pack(out)
}

fn unpack(program: &Program, bytes: &[u8], memory: &mut [u8]) -> usize {
    let unpacker = Unpacker::new(black_box(program), 1, Target::of(memory));
    unpacker.expect("within the memory").unpack(bytes)
}

/// An `int` and a `double`, as C has them.
fn structs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("struct of int and double");
    let count = LENGTH / 12;
    group.throughput(Throughput::Bytes(12 * count as u64));
    let member = |displacement, basic| Member {
        count: 1,
        displacement,
        of: Datatype::of(basic),
    };
    let members = [member(0, Basic::I32), member(8, Basic::F64)];
    let datatype = Datatype::structure(members).expect("a short type");
    let program = Program::of(&datatype.contiguous(count as u64).expect("a short type"));
    let (memory, mut packed) = (vec![1_u8; 16 * count], vec![2_u8; 12 * count]);
    group.bench_function("by hand", |bencher| {
        bencher.iter(|| {
            let elements = black_box(&memory).as_chunks::<16>().0;
            let out = black_box(&mut packed).as_chunks_mut::<12>().0;
            for (out, element) in out.iter_mut().zip(elements) {
                out[..4].copy_from_slice(&element[..4]);
                out[4..].copy_from_slice(&element[8..]);
            }
        });
    });
    group.bench_function("program", |bencher| {
        bencher.iter(|| pack(&program, black_box(&memory), black_box(&mut packed)));
    });
    group.finish();
}

fn set_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one value");
    let (memory, mut packed) = (vec![1_u8; 2 * LENGTH], [2_u8; 8]);
    for (name, program) in [
        ("strided", every_second(8)),
        ("double", Program::of(&Datatype::of(Basic::F64))),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| pack(&program, black_box(&memory), black_box(&mut packed)));
        });
    }
    group.finish();
}

fn all(criterion: &mut Criterion) {
    strided::<4>(criterion);
    strided::<8>(criterion);
    strided::<24>(criterion);
    strided::<100>(criterion);
    strided::<256>(criterion);
    strided::<4096>(criterion);
    structs(criterion);
    set_up(criterion);
}

criterion_group!(packing, all);
criterion_main!(packing);
