//! Accumulates (MPI-5.0, section 12.3.4): changes of values in windows, each atomic.
//!
//! Few values that are mapped are changed by instructions. All else is done under a lock of the target's values: in place where they
//! lie as an array, else in a copy, by the kernels of reductions.

use tagwire_layout::{Basic, Operation};

use crate::abi::{Datatype, Op, Request, Win};
use crate::call::windows::on_win;
use crate::call::windows::transfers::{Completion, received, target};
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Span, Word, no_buffer};
use crate::object::operation::predefined;
use crate::object::request::DONE;
use crate::object::window::Window;
use crate::object::window::accesses::{At, Parts};
use crate::object::window::atomics::{self, Change, FEW, Step};
use crate::object::window::delegated::Delegate;
use crate::object::window::delegation::MOST;
use crate::object::window::elsewhere::Epoch;
use crate::object::window::exchange::{BYTES, What};
use crate::object::window::memory::copy;
use crate::object::window::waits::count_passing;
use crate::process::Process;
use crate::raw::{Elements, In, Out, Place, Ref, StagingBuffer};

/// Bytes of values elsewhere that are changed at a time.
const PIECE: usize = MOST;

/// `MPI_NO_OP`.
const NO_OP: Op = Op(0x3d);

/// A change of values, with its ends: origin and result have as many values as the target.
struct Update {
    /// What is read before, where more values are returned than are changed.
    before: Option<Box<Self>>,
    op: Op,
    change: Change,
    elements: usize,
    /// None where nothing is read: of `MPI_NO_OP`.
    origin: Option<(Span, In)>,
    /// Where what was there goes.
    result: Option<(Span, Out)>,
    target: Span,
}

/// Returns the operation of a call.
///
/// # Errors
/// `MPI_ERR_OP` where it is not predefined.
fn operation(op: Op) -> Result<Operation> {
    predefined(op).ok_or_else(|| {
        let text = "accumulates take predefined operations alone";
        Error::new(Class::Op, text)
    })
}

/// Checks the operation of an accumulate that reads nothing of the target.
///
/// # Errors
/// `MPI_ERR_OP` where it is `MPI_NO_OP`, which changes nothing (MPI-5.0, section 12.3.4).
fn check_changing(op: Op) -> Result {
    match op {
        NO_OP => {
            let text = "MPI_NO_OP is an operation of accumulates that return what was there";
            Err(Error::new(Class::Op, text))
        }
        _ => Ok(()),
    }
}

/// Returns the type of all values of elements, and how many of them there are.
///
/// # Errors
/// `MPI_ERR_TYPE` where they are of several.
fn uniform(span: &Span) -> Result<(Basic, usize)> {
    let (basic, _) = span.program.signature().uniform().ok_or_else(|| {
        let text = "an accumulate takes datatypes of one predefined type";
        Error::new(Class::Type, text)
    })?;
    Ok((basic, span.bytes / basic.size()))
}

/// Returns whether elements lie as an array of values without padding. That of pairs is the program's: it is not written, nor read
/// behind the last value.
fn is_array(span: &Span) -> bool {
    let layout = span.program.layout();
    layout.is_some_and(|layout| layout.size() == layout.extent())
}

/// Returns a copy of elements, as an array.
fn unfolded(basic: Basic, elements: usize, span: &Span, data: In) -> Result<StagingBuffer> {
    let unfolded = StagingBuffer::new(elements * basic.extent());
    copy(
        (span, data),
        (&Span::array(basic, elements), unfolded.address()),
    )?;
    Ok(unfolded)
}

impl Update {
    /// Returns the change that a call wants.
    ///
    /// # Errors
    /// `MPI_ERR_OP`, `MPI_ERR_TYPE`, `MPI_ERR_COUNT`; `MPI_ERR_TRUNCATE` where the origin has more data than the target, or the
    /// target more than the result.
    fn new(
        process: &Process,
        origin: Elements<In>,
        result: Option<Elements<Out>>,
        place: Place,
        op: Op,
    ) -> Result<Self> {
        let operation = operation(op)?;
        let whole = process.types.span(place.count, place.datatype)?;
        let basic = match whole.bytes {
            0 => Basic::Byte,
            _ => uniform(&whole)?.0,
        };
        let is_read = !matches!(operation, Operation::NoOp);
        let given = process.types.span(origin.count, origin.datatype);
        let target = match is_read {
            true => received(whole.clone(), given.as_ref().map_or(0, |given| given.bytes))?,
            false => whole.clone(),
        };
        let before = match result {
            // What is returned past the last value that is changed; the change returns the others once more.
            Some(result) if target.bytes < whole.bytes => {
                let all = Self::new(process, origin, Some(result), place, NO_OP)?;
                Some(Box::new(all))
            }
            _ => None,
        };
        let elements = target.bytes / basic.size();
        let change = match elements {
            0 => Change::new(Operation::NoOp, basic)?,
            _ => Change::new(operation, basic)?,
        };
        let end = |of: Elements<Out>| {
            let span = process.types.span(of.count, of.datatype)?;
            let span = received(span, target.bytes)?;
            span.check(of.address.read())?;
            if span.bytes > 0 && uniform(&span)?.0 != basic {
                let text = "the values are of other types at the target";
                return Err(Error::new(Class::Type, text));
            }
            Ok(span)
        };
        let origin = match is_read {
            true => Some((end(origin.into())?, origin.address)),
            false => None,
        };
        let result = match result {
            Some(result) => Some((end(result)?, result.address)),
            None => None,
        };
        Ok(Self {
            before,
            op,
            change,
            elements,
            origin,
            result,
            target,
        })
    }

    /// Does it where the values are.
    fn run(&self, window: &Window, member: usize, displacement: i64) -> Result {
        if let Some(before) = &self.before {
            before.run(window, member, displacement)?;
        }
        match window.place(member, displacement, &self.target)? {
            At::Nowhere => Ok(()),
            At::Here(at) => match self.simple(at) {
                Some((origin, result)) => window.short_way(member, || {
                    self.change.apply(at, origin, result, self.elements);
                }),
                None => self.here(window, member, at),
            },
            At::There(_, offset) if self.asks(window, member, offset)? => Ok(()),
            At::There(_, offset) if self.delegates(window, member, offset)? => Ok(()),
            At::There(parts, offset) => window.long_way(member, || match self.pieces() {
                None => self.there(window, member, &parts, offset),
                Some(pieces) => pieces.iter().try_for_each(|(start, piece)| {
                    piece.there(window, member, &parts, offset + start)
                }),
            }),
        }
    }

    /// Has a target on another host do it, where its values lie as an array. Returns whether it does.
    fn delegates(&self, window: &Window, member: usize, offset: i64) -> Result<bool> {
        let Some(delegate) = Delegate::of(window, member) else {
            return Ok(false);
        };
        let basic = self.change.basic;
        let Some(position) = self.array_position() else {
            // What was asked for before comes first.
            window.flush(member)?;
            return Ok(false);
        };
        let what = What::Change(self.op, basic);
        let ask = |update: &Self, start: i64| {
            let origin = update.origin.as_ref().map(|(span, data)| (span, *data));
            let result = update.result.as_ref().map(|(span, room)| (span, *room));
            let place = (offset + position + start, update.elements as u64);
            delegate.change(what, place, origin, result)
        };
        match self.pieces() {
            Some(pieces) => {
                let mut pieces = pieces.iter();
                pieces.try_for_each(|(start, piece)| ask(piece, *start - position))?;
            }
            None if self.target.bytes > MOST => {
                window.flush(member)?;
                return Ok(false);
            }
            None => ask(self, 0)?,
        }
        Ok(true)
    }

    /// Returns where the values of the target begin, where they lie as an array.
    fn array_position(&self) -> Option<i64> {
        let is_predefined = self.target.program.datatype().basic() == Some(self.change.basic);
        match is_predefined {
            true => Some(0),
            false => self.target.block(),
        }
    }

    /// Asks the target to change one value. Returns whether it has.
    fn asks(&self, window: &Window, member: usize, offset: i64) -> Result<bool> {
        let basic = self.change.basic;
        let (Some(word), 1) = (atomics::word(basic), self.elements) else {
            return Ok(false);
        };
        // Where each value is at its address.
        let block = |span: &Span| span.block().unwrap_or_default();
        let Some(position) = self.target.block() else {
            return Ok(false);
        };
        let mut data = [0; BYTES];
        if let Some((span, from)) = &self.origin {
            Out::over(&mut data).copy(from.moved(block(span)), word.size());
        }
        let what = What::Change(self.op, basic);
        let Some(old) =
            window
                .elsewhere()
                .ask(member, offset + position, what, &data, Epoch::Passive)?
        else {
            return Ok(false);
        };
        if let Some((span, room)) = &self.result {
            room.moved(block(span)).copy(In::over(&old), word.size());
        }
        Ok(true)
    }

    /// Returns the parts of many values that lie as arrays without padding, and where each begins at the target: what of them is under
    /// way stays in the caches. `None` of few values, and of others.
    fn pieces(&self) -> Option<Vec<(i64, Self)>> {
        let (basic, size) = (self.change.basic, self.change.basic.size());
        let first = self.target.block()?;
        let are_arrays = size == basic.extent()
            && self.origin.as_ref().is_none_or(|(span, _)| is_array(span))
            && self.result.as_ref().is_none_or(|(span, _)| is_array(span));
        if !are_arrays || self.target.bytes <= PIECE {
            return None;
        }
        let most = PIECE / size;
        let pieces = (0..self.elements).step_by(most).map(|start| {
            let elements = most.min(self.elements - start);
            let offset = (start * size) as i64;
            let origin = self.origin.as_ref().map(|(_, data)| data.moved(offset));
            let result = self.result.as_ref().map(|(_, room)| room.moved(offset));
            let piece = Self {
                before: None,
                op: self.op,
                change: self.change.clone(),
                elements,
                origin: origin.map(|data| (Span::array(basic, elements), data)),
                result: result.map(|room| (Span::array(basic, elements), room)),
                target: Span::array(basic, elements),
            };
            (first + offset, piece)
        });
        Some(pieces.collect())
    }

    /// Does it in a copy of what is elsewhere, which it writes back.
    fn there(&self, window: &Window, member: usize, parts: &Parts, offset: i64) -> Result {
        let there = window
            .accesses()
            .fetch(member, parts, (&self.target, offset))?;
        let (packed, basic) = (there.address(), self.change.basic);
        let values = Span::array(basic, self.elements);
        match basic.size() == basic.extent() {
            // Packed values are an array.
            true => self.change_array(&values, packed)?,
            false => {
                let unfolded = StagingBuffer::new(self.elements * basic.extent());
                values.unpack(packed.read(), unfolded.address())?;
                self.change_array(&values, unfolded.address())?;
                values.pack(unfolded.address().read(), packed)?;
            }
        }
        match self.origin.is_some() {
            true => {
                let to = (&self.target, offset);
                window.accesses().store(member, parts, to, packed.read())
            }
            false => Ok(()),
        }
    }

    /// Returns the addresses of origin and result, where few values are changed that all lie as arrays, and have instructions.
    fn simple(&self, at: Out) -> Option<(In, Option<Out>)> {
        let is_short = self.elements <= FEW && self.change.has_instructions(at);
        let are_arrays = is_short
            && is_array(&self.target)
            && self.origin.as_ref().is_none_or(|(span, _)| is_array(span))
            && self.result.as_ref().is_none_or(|(span, _)| is_array(span));
        are_arrays.then(|| {
            let origin = self
                .origin
                .as_ref()
                .map_or_else(|| at.read(), |(_, data)| *data);
            (origin, self.result.as_ref().map(|(_, room)| *room))
        })
    }

    /// Does it under the lock of the member's values, at an address of this process.
    fn here(&self, window: &Window, member: usize, at: Out) -> Result {
        window.long_way(member, || match is_array(&self.target) {
            true => self.change_array(&self.target, at),
            false => {
                let basic = self.change.basic;
                let values = unfolded(basic, self.elements, &self.target, at.read())?;
                let as_array = Span::array(basic, self.elements);
                self.change_array(&as_array, values.address())?;
                match self.origin.is_some() {
                    true => copy((&as_array, values.address().read()), (&self.target, at)),
                    false => Ok(()),
                }
            }
        })
    }

    /// Changes values that lie as an array.
    fn change_array(&self, values: &Span, at: Out) -> Result {
        if let Some((span, room)) = &self.result {
            copy((values, at.read()), (span, *room))?;
        }
        let Some((span, data)) = &self.origin else {
            return Ok(());
        };
        if matches!(self.change.operation, Operation::Replace) {
            return copy((span, *data), (values, at));
        }
        let basic = self.change.basic;
        let bytes = self.elements * basic.extent();
        // In place where it lies so, and is other memory.
        let in_place = is_array(span) && data.is_disjoint(bytes, at, bytes);
        match in_place {
            true => self.change.combine_at(at, *data, bytes),
            false => {
                let operand = unfolded(basic, self.elements, span, *data)?;
                self.change.combine_at(at, operand.address().read(), bytes);
            }
        }
        Ok(())
    }
}

/// Changes values of a target.
fn update(
    process: &Process,
    win: Win,
    place: Place,
    by: Completion,
    make: impl FnOnce() -> Result<Update>,
) -> Result {
    on_win(process, win, |window| {
        let Some(target) = target(window, place.rank, by)? else {
            return Ok(());
        };
        let update = make()?;
        update.run(window, target, place.displacement)
    })
}

/// The short form of `MPI_Accumulate`, of one value.
#[inline(always)]
pub fn try_accumulate(
    process: &Process,
    origin: Elements<In>,
    place: Place,
    op: Op,
    win: Win,
) -> Option<()> {
    if (origin.count, place.count) != (1, 1) || origin.datatype != place.datatype {
        return None;
    }
    let (kind, at) = ((origin.datatype, op), (place.rank, place.displacement));
    let data = origin.address;
    let are_there = !data.is_constant() && op != NO_OP;
    try_change(process, kind, at, win, are_there, |step, word, at| {
        step.apply(word, at, data, None);
    })
}

/// `MPI_Accumulate`, where its short form does nothing.
pub fn accumulate(
    process: &Process,
    origin: Elements<In>,
    place: Place,
    op: Op,
    win: Win,
) -> Result {
    update(process, win, place, Completion::Epoch, || {
        check_changing(op)?;
        Update::new(process, origin, None, place, op)
    })
}

/// The short form of `MPI_Get_accumulate`, of one value.
#[inline(always)]
pub fn try_get_accumulate(
    process: &Process,
    origin: Elements<In>,
    result: Elements<Out>,
    place: Place,
    op: Op,
    win: Win,
) -> Option<()> {
    let are_alike = [origin.datatype, result.datatype] == [place.datatype; 2];
    if (origin.count, result.count, place.count) != (1, 1, 1) || !are_alike {
        return None;
    }
    let (kind, at) = ((place.datatype, op), (place.rank, place.displacement));
    let (data, old) = (origin.address, result.address);
    let are_there = !data.is_constant() && !old.is_constant();
    try_change(process, kind, at, win, are_there, |step, word, at| {
        step.apply(word, at, data, Some(old));
    })
}

/// `MPI_Get_accumulate`, where its short form does nothing.
pub fn get_accumulate(
    process: &Process,
    origin: Elements<In>,
    result: Elements<Out>,
    place: Place,
    op: Op,
    win: Win,
) -> Result {
    update(process, win, place, Completion::Epoch, || {
        Update::new(process, origin, Some(result), place, op)
    })
}

/// `MPI_Raccumulate`. It has ended when it returns.
pub fn raccumulate(
    process: &Process,
    origin: Elements<In>,
    place: Place,
    op: Op,
    win: Win,
    request: Ref<Request>,
) -> Result {
    request.set(Request::NULL);
    update(process, win, place, Completion::Request, || {
        check_changing(op)?;
        Update::new(process, origin, None, place, op)
    })?;
    on_win(process, win, count_passing)?;
    request.set(DONE);
    Ok(())
}

/// `MPI_Rget_accumulate`. It has ended when it returns.
pub fn rget_accumulate(
    process: &Process,
    origin: Elements<In>,
    result: Elements<Out>,
    place: Place,
    op: Op,
    win: Win,
    request: Ref<Request>,
) -> Result {
    request.set(Request::NULL);
    update(process, win, place, Completion::Request, || {
        Update::new(process, origin, Some(result), place, op)
    })?;
    on_win(process, win, |window| {
        count_passing(window)?;
        let member = window.member(place.rank)?;
        let delegate = member.and_then(|member| Delegate::of(window, member));
        delegate.map_or(Ok(()), Delegate::finish)
    })?;
    request.set(DONE);
    Ok(())
}

/// Returns what a predefined datatype is.
///
/// # Errors
/// `MPI_ERR_TYPE` where it is not predefined.
fn value(process: &Process, datatype: Datatype) -> Result<Basic> {
    let one = process.types.get(datatype)?;
    one.tree.basic().ok_or_else(|| {
        let text = "the datatype is not predefined";
        Error::new(Class::Type, text)
    })
}

/// Has `change` change one value of mapped memory by an instruction: the fast path of the thread that initialized MPI. `None`, with
/// nothing done, where anything stands in its way, errors too.
// Of a closure of each caller an instance is made that has one caller, so that all of it is inlined.
#[inline(always)]
fn try_change(
    process: &Process,
    (datatype, op): (Datatype, Op),
    (rank, displacement): (i32, i64),
    win: Win,
    are_there: bool,
    change: impl FnOnce(Step, Word, Out),
) -> Option<()> {
    let word = process.types.word(datatype)?;
    let step = Step::of(op, word)?;
    process.shortcuts.find(win, |window| {
        let (to, at) = window.mapped(rank, displacement, word.size())?;
        if !are_there || !atomics::is_aligned(word, at) {
            return None;
        }
        let _way = window.quick_way(to)?;
        change(step, word, at);
        Some(())
    })
}

/// The short form of `MPI_Fetch_and_op`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
#[inline(always)]
pub fn try_fetch_and_op(
    process: &Process,
    origin: In,
    result: Out,
    datatype: Datatype,
    rank: i32,
    displacement: i64,
    op: Op,
    win: Win,
) -> Option<()> {
    let (kind, at) = ((datatype, op), (rank, displacement));
    let are_there = !origin.is_constant() && !result.is_constant();
    try_change(process, kind, at, win, are_there, |step, word, at| {
        step.apply(word, at, origin, Some(result));
    })
}

/// `MPI_Fetch_and_op`, where its short form does nothing.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn fetch_and_op(
    process: &Process,
    origin: In,
    result: Out,
    datatype: Datatype,
    rank: i32,
    displacement: i64,
    op: Op,
    win: Win,
) -> Result {
    let place = Place {
        rank,
        displacement,
        count: 1,
        datatype,
    };
    on_win(process, win, |window| {
        let Some(target) = target(window, rank, Completion::Epoch)? else {
            return Ok(());
        };
        let change = Change::new(operation(op)?, value(process, datatype)?)?;
        let is_read = !matches!(change.operation, Operation::NoOp);
        if result.is_constant() || is_read && origin.is_constant() {
            return Err(no_buffer());
        }
        let size = change.basic.size() as i64;
        if let At::Here(at) = window.place_of(target, displacement, (0, size))?
            && change.has_instructions(at)
        {
            return window.short_way(target, || change.apply(at, origin, Some(result), 1));
        }
        let (origin, result) = (origin.of(1, datatype), result.of(1, datatype));
        Update::new(process, origin, Some(result), place, op)?.run(window, target, displacement)
    })
}

/// The short form of `MPI_Compare_and_swap`, of mapped memory: that of the thread that initialized MPI. `None`, with nothing done, where
/// anything stands in its way, errors too.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
#[inline(always)]
pub fn try_compare_and_swap(
    process: &Process,
    origin: In,
    compare: In,
    result: Out,
    datatype: Datatype,
    rank: i32,
    displacement: i64,
    win: Win,
) -> Option<()> {
    let word = process.types.word(datatype)?;
    let is_nowhere = origin.is_constant() || compare.is_constant() || result.is_constant();
    process.shortcuts.find(win, |window| {
        let (to, at) = window.mapped(rank, displacement, word.size())?;
        if is_nowhere || !word.is_compared() || !atomics::is_aligned(word, at) {
            return None;
        }
        let _way = window.quick_way(to)?;
        atomics::compare_and_swap(word, at, compare, origin, result);
        Some(())
    })
}

/// `MPI_Compare_and_swap`, where its short form does nothing.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn compare_and_swap(
    process: &Process,
    origin: In,
    compare: In,
    result: Out,
    datatype: Datatype,
    rank: i32,
    displacement: i64,
    win: Win,
) -> Result {
    on_win(process, win, |window| {
        let Some(target) = target(window, rank, Completion::Epoch)? else {
            return Ok(());
        };
        let basic = value(process, datatype)?;
        atomics::check_compared(basic)?;
        if origin.is_constant() || compare.is_constant() || result.is_constant() {
            return Err(no_buffer());
        }
        let bytes = basic.size();
        let span = Span::array(basic, 1);
        let at = window.place(target, displacement, &span)?;
        let values = (compare, origin, result);
        if let (At::Here(at), Some(word)) = (&at, atomics::word(basic))
            && atomics::is_aligned(word, *at)
        {
            return window.short_way(target, || {
                atomics::compare_and_swap(word, *at, compare, origin, result);
            });
        }
        match at {
            At::Nowhere => Ok(()),
            At::Here(at) => window.long_way(target, || {
                atomics::swap_alone(bytes, at, compare, origin, result);
                Ok(())
            }),
            At::There(_, offset) if asks_to_swap(window, (target, offset), basic, values)? => {
                Ok(())
            }
            At::There(_, offset) if let Some(delegate) = Delegate::of(window, target) => {
                delegate.compare_and_swap((basic, offset), (compare, origin), (&span, result))
            }
            At::There(parts, offset) => window.long_way(target, || {
                let there = window.accesses().fetch(target, &parts, (&span, offset))?;
                let found = there.address().read();
                let is_equal = found.to_vec(bytes) == compare.to_vec(bytes);
                result.copy(found, bytes);
                match is_equal {
                    true => window
                        .accesses()
                        .store(target, &parts, (&span, offset), origin),
                    false => Ok(()),
                }
            }),
        }
    })
}

/// Asks the target to compare and swap. Returns whether it has.
fn asks_to_swap(
    window: &Window,
    (target, offset): (usize, i64),
    basic: Basic,
    (compare, origin, result): (In, In, Out),
) -> Result<bool> {
    let Some(word) = atomics::word(basic) else {
        return Ok(false);
    };
    let mut data = [0; BYTES];
    let room = Out::over(&mut data);
    room.copy(compare, word.size());
    room.moved(8).copy(origin, word.size());
    let what = What::CompareSwap(basic);
    let asked = window.elsewhere();
    let old = asked.ask(target, offset, what, &data, Epoch::Passive)?;
    if let Some(old) = &old {
        result.copy(In::over(old), word.size());
    }
    Ok(old.is_some())
}
