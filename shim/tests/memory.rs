//! Memory that programs ask for.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{BYTE, WORLD, at, code, data, ignore, library, number, out_at, ranks, result, text};
use tagwire_shim::Process;
use tagwire_shim::abi::Info;
use tagwire_shim::call::{allocations, infos, p2p};
use tagwire_shim::error::Class;
use tagwire_shim::raw::Pointer;

fn allocated(process: &Process, bytes: i64, info: Info) -> tagwire_shim::Result<Pointer> {
    let mut start = Pointer(std::ptr::null_mut());
    allocations::alloc_mem(process, bytes, info, result(&mut start))?;
    Ok(start)
}

/// Memory is what messages are sent from and received in, as any other.
#[test]
fn memory_is_given_and_taken_back() {
    ranks(2, |process, me| {
        for bytes in [0, 1, 100, 1 << 20] {
            let start = allocated(process, bytes, Info::NULL).unwrap();
            assert!(!start.0.is_null() && start.0.addr().is_multiple_of(64));
            let other = allocated(process, bytes, Info::NULL).unwrap();
            assert_ne!(start, other);
            let room = out_at(start);
            if me == 0 {
                room.copy(data(&vec![5_u8; bytes as usize]), bytes as usize);
                p2p::send(process, room.read().of(bytes, BYTE), 1, 0, WORLD).unwrap();
            } else {
                p2p::recv(process, room.of(bytes, BYTE), 0, 0, WORLD, ignore()).unwrap();
                let got = room.read().to_vec(bytes as usize);
                assert!(got.iter().all(|byte| *byte == 5));
            }
            allocations::free_mem(process, start).unwrap();
            allocations::free_mem(process, other).unwrap();
            let again = allocations::free_mem(process, start);
            assert_eq!(code(again), Class::Base);
        }
    });
}

#[test]
fn sizes_and_alignments_are_checked() {
    ranks(1, |process, _| {
        let size = allocated(process, -1, Info::NULL);
        assert_eq!(code(size.map(drop)), Class::Arg);
        let size = allocated(process, i64::MAX, Info::NULL);
        assert_eq!(code(size.map(drop)), Class::NoMem);
        assert_eq!(
            code(allocations::free_mem(process, number(64))),
            Class::Base
        );
        let (mut info, some) = (Info::NULL, &library(process));
        infos::info_create(some, result(&mut info)).unwrap();
        let key = text(c"mpi_minimum_memory_alignment");
        for (alignment, value) in [(65536, c"65536"), (256, c"256"), (1, c"of no meaning")] {
            infos::info_set(some, info, key, text(value)).unwrap();
            let start = allocated(process, 1000, info).unwrap();
            assert!(start.0.addr().is_multiple_of(alignment));
            out_at(start).copy(data(&[1_u8; 1000]), 1000);
            allocations::free_mem(process, start).unwrap();
        }
    });
}

#[test]
fn addresses_are_those_of_the_program() {
    ranks(1, |process, _| {
        let (values, mut address) = ([1_u8, 2], 0);
        allocations::get_address(process, data(&values[1..]), result(&mut address)).unwrap();
        assert_eq!(address as usize, values.as_ptr().addr() + 1);
        // Such an address is one from MPI_BOTTOM on.
        assert_eq!(at(0).moved(address).to_vec(1), [2]);
    });
}
