//! The ring against a queue.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use proptest::prelude::*;
use tagwire_base::Time;

use crate::message::{AmHeader, Payload};
use crate::post::Class;
use crate::shm::ring::{Consumer, Place, Pop, Producer, RingMemory, RingState};
use crate::shm::room::{Size, Table, Words};

/// Eight slots, twelve lines, and 64 lines of room, in private memory.
struct Toy {
    slots: [[AtomicU64; 3]; 8],
    credit: AtomicU64,
    payload_state: AtomicU64,
    /// Granted, consumed, left.
    words: [AtomicU64; 3],
    inline: RefCell<[[u8; 40]; 8]>,
    payload: RefCell<[u8; 768]>,
    room: RefCell<[u8; 4096]>,
}

impl RingMemory for Rc<Toy> {
    type Word = AtomicU64;
    const SLOTS: u32 = 8;
    const CONTROL_SLOTS: u32 = 2;
    const PAYLOAD: u32 = 768;
    const MAX_SEND: u32 = 256;
    const ROOMS: Table = [0, 1024, 2048, 4096];
    const LONG: usize = 100;
    const ROOMY: usize = 180;

    fn room(&self) -> Option<Words<'_, AtomicU64>> {
        let [grant, credit, left] = &self.words;
        Some(Words {
            grant,
            credit,
            left,
            most: Size(3),
        })
    }

    fn slot(&self, index: usize) -> &[AtomicU64; 3] {
        &self.slots[index]
    }

    fn credit(&self) -> &AtomicU64 {
        &self.credit
    }

    fn payload_state(&self) -> &AtomicU64 {
        &self.payload_state
    }

    fn write(&self, place: Place, data: &[u8]) {
        match place {
            Place::Inline(index) => {
                self.inline.borrow_mut()[index][..data.len()].copy_from_slice(data);
            }
            Place::Bulk(start) => {
                self.payload.borrow_mut()[start..start + data.len()].copy_from_slice(data);
            }
            Place::Room(start) => {
                self.room.borrow_mut()[start..start + data.len()].copy_from_slice(data);
            }
        }
    }

    fn read<R>(&self, place: Place, len: usize, look: impl FnOnce(Payload<'_>) -> R) -> R {
        match place {
            Place::Inline(index) => look(Payload::from_slice(&self.inline.borrow()[index][..len])),
            Place::Bulk(start) => look(Payload::from_slice(
                &self.payload.borrow()[start..start + len],
            )),
            Place::Room(start) => {
                look(Payload::from_slice(&self.room.borrow()[start..start + len]))
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Send {
        control: bool,
        in_pieces: bool,
        len: usize,
    },
    Take,
    Settle,
    /// The consumer lets the room grow; takes it back; frees it, if the producer has left it.
    Grow,
    Withdraw,
    Free,
    /// The producer looks what it has.
    Look,
    /// The producer looks whether to leave the payload ring, after so many seconds; the consumer frees one that was left.
    Rest(u64),
    FreePayload,
}

fn operation() -> impl Strategy<Value = Operation> {
    let send = |lens: std::ops::RangeInclusive<usize>| {
        (any::<bool>(), any::<bool>(), lens).prop_map(|(control, in_pieces, len)| Operation::Send {
            // Packed data is never a control message.
            control: control && !in_pieces,
            in_pieces,
            len,
        })
    };
    prop_oneof![
        3 => send(0..=40),
        3 => send(41..=256),
        5 => Just(Operation::Take),
        1 => Just(Operation::Settle),
        1 => Just(Operation::Grow),
        1 => Just(Operation::Withdraw),
        1 => Just(Operation::Free),
        1 => Just(Operation::Look),
        1 => (0_u64..6).prop_map(Operation::Rest),
        1 => Just(Operation::FreePayload),
    ]
}

fn check(operations: &[Operation]) -> Result<(), TestCaseError> {
    let memory: Rc<Toy> = Rc::new(Toy {
        slots: Default::default(),
        credit: AtomicU64::new(0),
        payload_state: AtomicU64::new(0),
        inline: RefCell::new([[0; 40]; 8]),
        payload: RefCell::new([0; 768]),
        words: Default::default(),
        room: RefCell::new([0; 4096]),
    });
    let mut producer = Producer::new(Rc::clone(&memory));
    let mut consumer = Consumer::new(Rc::clone(&memory));
    let (mut size, mut is_withdrawn) = (Size::NONE, false);
    let mut oracle: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
    let (mut number, mut now) = (0, Time::default());
    for operation in operations {
        match operation {
            Operation::Send {
                control,
                in_pieces,
                len,
            } => {
                let class = if *control {
                    Class::Control
                } else {
                    Class::Data
                };
                let data: Vec<u8> = (0..*len).map(|i| (i as u64 + number) as u8).collect();
                let header = AmHeader([number, !number]);
                let sent = match in_pieces {
                    false => producer.push(class, header, &data),
                    true => producer.push_in_pieces(header, data.len(), |offset, piece| {
                        piece.copy_from_slice(&data[offset..offset + piece.len()]);
                    }),
                };
                let room = if *control { 8 } else { 6 };
                prop_assert!(!sent || oracle.len() < room, "over the limit");
                // Less than a quarter of the slots may be missing from the credits.
                if *len <= 40 && oracle.len() + 1 < room {
                    prop_assert!(sent, "refused with {} of {room} in use", oracle.len());
                }
                if oracle.is_empty() {
                    prop_assert!(sent, "an empty ring refused {len} bytes");
                }
                if sent {
                    oracle.push_back((number, data));
                    number += 1;
                }
            }
            Operation::Take => {
                prop_assert_eq!(consumer.is_ready(), !oracle.is_empty());
                let popped = consumer.pop(|header, payload| (header.0, payload.to_vec()));
                match (popped, oracle.pop_front()) {
                    (Pop::Empty, None) => {}
                    (Pop::Message((header, data)), Some(expected)) => {
                        prop_assert_eq!(header[1], !header[0]);
                        prop_assert_eq!((header[0], data), expected);
                    }
                    (popped, expected) => {
                        prop_assert!(false, "{popped:?} where {expected:?} was due");
                    }
                }
            }
            Operation::Grow if size < Size(3) && !is_withdrawn => {
                size = size.next();
                consumer.grow_room(size);
            }
            Operation::Withdraw if size != Size::NONE => {
                is_withdrawn = true;
                consumer.withdraw_room();
            }
            Operation::Free if is_withdrawn => {
                if consumer.leaves_room() {
                    // Whoever read it still would find this.
                    memory.room.borrow_mut().fill(0xee);
                    (size, is_withdrawn) = (Size::NONE, false);
                }
            }
            Operation::Grow | Operation::Withdraw | Operation::Free => {}
            Operation::Look => producer.look_at_room(),
            Operation::Rest(seconds) => {
                now = now + Duration::from_secs(*seconds);
                producer.look_after(now);
            }
            Operation::FreePayload => {
                // As above.
                let free = || memory.payload.borrow_mut().fill(0xee);
                prop_assert!(consumer.free_payload(free).is_ok());
            }
            Operation::Settle => {
                consumer.settle();
                prop_assert_eq!(producer.uncredited() as usize, oracle.len());
            }
        }
        prop_assert!(consumer.stamp_is_sane());
        prop_assert!(producer.credit_is_sane());
    }
    Ok(())
}

#[test]
fn states_come_back() {
    for value in [0, 1, 77, 1 << 31, u32::MAX] {
        let state = RingState {
            head: value,
            position: !value,
            offset: value.rotate_left(7),
        };
        assert_eq!(RingState::unpack(state.pack()), state);
    }
}

proptest! {
    #[test]
    fn is_a_bounded_queue(operations in prop::collection::vec(operation(), 0..400)) {
        check(&operations)?;
    }
}
