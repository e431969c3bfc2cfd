//! Datatypes by handle, and the data of messages.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU8;
use std::sync::{Arc, OnceLock};

use tagwire_layout as layout;
use tagwire_layout::{Basic, Datatype as Tree, Packer, Program, Source, Target, Unpacker};
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

use crate::abi::Datatype;
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::attributes::Attributes;
use crate::object::named::predefined;
use crate::object::table::{Kind, Table};
use crate::object::window::atomics;
use crate::raw::{In, Out, Twin};

/// Handles of predefined datatypes are from here on.
const FIRST: usize = 0x200;

/// So many of them.
const COUNT: usize = 0x100;

/// No memory of a program is in the first page.
const PAGE: i64 = 4096;

/// Where a datatype comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// It has a name in the standard.
    Named,
    /// A call asked for one of Fortran's kinds. It is predefined, too.
    Fortran(Wanted),
    /// A constructor, of one of two twins, of other datatypes.
    Made(Twin, Vec<Arc<Type>>),
}

/// What a call asks for that finds a datatype: its combiner and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) combiner: i32,
    pub(crate) arguments: Vec<i32>,
}

/// A datatype with what a program has added to it.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) tree: Tree,
    handle: Datatype,
    origin: Origin,
    program: OnceLock<Program>,
    name: Lock<Option<String>>,
    attributes: Attributes,
    use_of: Lock<Use>,
}

/// What instructions do with values of a type that has 1, 2, 4 or 8 bytes and no padding, in a byte:
///
/// ```text
///     4       3             2            1 .. 0
///     1       is compared   is integer   logarithm of the size
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word(NonZeroU8);

impl Word {
    /// Returns that of values of so many bytes, 1, 2, 4 or 8.
    pub(crate) fn new(size: usize, is_integer: bool, is_compared: bool) -> Self {
        let kinds = u8::from(is_integer) << 2 | u8::from(is_compared) << 3;
        let logarithm = (size.trailing_zeros() & 3) as u8;
        Self(NonZeroU8::MIN.saturating_add(0xf) | kinds | logarithm)
    }

    /// Returns how many bytes a value has.
    #[inline(always)]
    pub(crate) const fn size(self) -> usize {
        1 << (self.0.get() & 3)
    }

    /// Returns whether instructions add them, and change their bits.
    #[inline(always)]
    pub(crate) const fn is_integer(self) -> bool {
        self.0.get() & 4 != 0
    }

    /// Returns whether instructions compare and swap them, as far as the standard has that of the type.
    #[inline(always)]
    pub(crate) const fn is_compared(self) -> bool {
        self.0.get() & 8 != 0
    }
}

/// Who needs the handle of a datatype.
#[derive(Debug, Default)]
struct Use {
    /// Operations under way that give it to functions of the program.
    holds: usize,
    is_freed: bool,
}

/// Keeps the handle of a datatype that the program may free meanwhile.
#[derive(Debug)]
pub(crate) struct Hold {
    made: Arc<Table<Type>>,
    one: Arc<Type>,
    handle: Datatype,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut use_of = self.one.use_of.lock();
        use_of.holds -= 1;
        if use_of.holds == 0 && use_of.is_freed {
            self.made.remove(self.handle.0);
        }
    }
}

impl Drop for Type {
    /// Frees what it was made of, one after the other: a chain of duplicates is as long as the program makes it.
    fn drop(&mut self) {
        let mut made_of = self.take_made_of();
        while let Some(one) = made_of.pop() {
            if let Some(mut last) = Arc::into_inner(one) {
                made_of.append(&mut last.take_made_of());
            }
        }
    }
}

impl Type {
    fn take_made_of(&mut self) -> Vec<Arc<Self>> {
        match &mut self.origin {
            Origin::Made(_, of) => mem::take(of),
            _ => Vec::new(),
        }
    }

    fn new(tree: Tree, handle: Datatype, origin: Origin) -> Self {
        Self {
            tree,
            handle,
            origin,
            program: OnceLock::new(),
            name: Lock::default(),
            attributes: Attributes::new(),
            use_of: Lock::default(),
        }
    }

    pub(crate) const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether it is predefined: it is not freed.
    const fn is_predefined(&self) -> bool {
        !matches!(self.origin, Origin::Made(..))
    }

    /// Commits it (MPI-5.0, section 5.1.9).
    pub(crate) fn commit(&self) -> &Program {
        self.program.get_or_init(|| Program::of(&self.tree))
    }

    /// Returns its program.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` where it is not committed.
    pub(crate) fn program(&self) -> Result<&Program> {
        let program = self.program.get();
        program.ok_or_else(|| Error::new(Class::Type, "the datatype is not committed"))
    }

    pub(crate) const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn name(&self) -> Option<String> {
        let name = self.name.lock();
        name.clone()
    }

    pub(crate) fn set_name(&self, name: String) {
        let mut held = self.name.lock();
        *held = Some(name);
    }
}

/// The datatypes of a process.
#[derive(Debug)]
pub(crate) struct Types {
    predefined: Box<[Option<Arc<Type>>]>,
    /// The size of those that are contiguous; zero of others.
    sizes: [u8; COUNT],
    /// Which of these one instruction adds to, and which it compares.
    words: [Option<Word>; COUNT],
    made: Arc<Table<Type>>,
    wanted: Lock<HashMap<Wanted, Datatype>>,
}

impl Types {
    pub(crate) fn new() -> Self {
        let mut sizes = [0; COUNT];
        let mut words = [None; COUNT];
        let predefined = (0..COUNT).map(|number| {
            let (basic, name) = predefined(FIRST + number)?;
            if basic.size() == basic.extent() {
                sizes[number] = basic.size() as u8;
            }
            words[number] = atomics::word(basic);
            let one = Type::new(Tree::of(basic), Datatype(FIRST + number), Origin::Named);
            one.commit();
            one.set_name(name.to_owned());
            Some(Arc::new(one))
        });
        Self {
            predefined: predefined.collect(),
            sizes,
            words,
            made: Arc::new(Table::new(Kind::Datatype)),
            wanted: Lock::default(),
        }
    }

    /// Returns the datatype with a handle.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` where there is none.
    pub(crate) fn get(&self, handle: Datatype) -> Result<Arc<Type>> {
        let predefined = self.predefined.get(handle.0.wrapping_sub(FIRST));
        let found = match predefined {
            Some(found) => found.clone(),
            None => self.made.get(handle.0),
        };
        found.ok_or_else(|| Kind::Datatype.invalid(handle.0))
    }

    /// Takes one in that a twin of a constructor has made of others.
    pub(crate) fn enter(&self, tree: Tree, twin: Twin, of: Vec<Arc<Type>>) -> Result<Datatype> {
        self.insert(tree, Origin::Made(twin, of))
    }

    fn insert(&self, tree: Tree, origin: Origin) -> Result<Datatype> {
        let make = |handle| Type::new(tree, Datatype(handle), origin);
        let entered = self.made.insert_with(make);
        entered.map(Datatype)
    }

    /// Returns the datatype for what a call asks for: the same each time.
    pub(crate) fn wanted(&self, wanted: Wanted, make: impl FnOnce() -> Tree) -> Result<Datatype> {
        let mut known = self.wanted.lock();
        if let Some(found) = known.get(&wanted) {
            return Ok(*found);
        }
        let handle = self.insert(make(), Origin::Fortran(wanted.clone()))?;
        self.get(handle)?.commit();
        known.insert(wanted, handle);
        Ok(handle)
    }

    /// Returns a handle of a datatype that another was made of: a new one, but for a predefined datatype.
    pub(crate) fn show(&self, one: &Type) -> Result<Datatype> {
        if one.is_predefined() {
            return Ok(one.handle);
        }
        let handle = self.insert(one.tree.clone(), one.origin.clone())?;
        if let Some(program) = one.program.get() {
            let _ = self.get(handle)?.program.set(program.clone());
        }
        Ok(handle)
    }

    /// Frees one. Operations under way keep what they need of it.
    pub(crate) fn free(&self, handle: Datatype) -> Result {
        let one = self.made.find(handle.0)?;
        let mut use_of = one.use_of.lock();
        if use_of.is_freed {
            return Err(Kind::Datatype.invalid(handle.0));
        }
        use_of.is_freed = true;
        if use_of.holds == 0 {
            self.made.remove(handle.0);
        }
        Ok(())
    }

    /// Keeps the handle of a datatype valid; `None` for those that cannot be freed.
    pub(crate) fn hold(&self, handle: Datatype) -> Result<Option<Hold>> {
        if self.is_predefined(handle) {
            return Ok(None);
        }
        let one = self.made.find(handle.0)?;
        one.use_of.lock().holds += 1;
        let made = Arc::clone(&self.made);
        Ok(Some(Hold { made, one, handle }))
    }

    /// Whether it is predefined.
    pub(crate) fn is_predefined(&self, handle: Datatype) -> bool {
        self.get(handle).is_ok_and(|one| one.is_predefined())
    }

    /// Returns what a predefined datatype is; `None` for others.
    pub(crate) fn basic(&self, handle: Datatype) -> Option<Basic> {
        let found = self.predefined.get(handle.0.wrapping_sub(FIRST))?;
        found.as_ref()?.tree.basic()
    }

    /// Returns the size of a predefined datatype without padding.
    #[inline(always)]
    fn simple(&self, handle: Datatype) -> Option<usize> {
        let size = self.sizes.get(handle.0.wrapping_sub(FIRST));
        size.filter(|size| **size > 0).map(|size| *size as usize)
    }

    /// Returns what instructions do with values of a predefined datatype; `None` where there are none for it.
    #[inline(always)]
    pub(crate) fn word(&self, handle: Datatype) -> Option<Word> {
        *self.words.get(handle.0.wrapping_sub(FIRST))?
    }

    /// Returns how many bytes so many elements of a predefined datatype without padding are.
    #[inline(always)]
    pub(crate) fn simple_bytes(&self, count: i64, handle: Datatype) -> Option<usize> {
        let (count, size) = (usize::try_from(count).ok()?, self.simple(handle)?);
        count.checked_mul(size)
    }

    /// Returns data to be sent.
    #[inline(always)]
    pub(crate) fn send(&self, data: In, count: i64, handle: Datatype) -> Result<SendBuffer> {
        if let Some(bytes) = self.simple_bytes(count, handle) {
            if data.is_constant() && bytes > 0 {
                return Err(no_buffer());
            }
            return Ok(data.buffer(0, bytes));
        }
        self.send_elements(data, count, handle)
    }

    #[inline(never)]
    fn send_elements(&self, data: In, count: i64, handle: Datatype) -> Result<SendBuffer> {
        self.span(count, handle)?.send(data)
    }

    /// Returns the buffer of data that is received.
    #[inline(always)]
    pub(crate) fn recv(&self, data: Out, count: i64, handle: Datatype) -> Result<RecvBuffer> {
        if let Some(bytes) = self.simple_bytes(count, handle) {
            if data.is_constant() && bytes > 0 {
                return Err(no_buffer());
            }
            return Ok(data.buffer(0, bytes));
        }
        self.recv_elements(data, count, handle)
    }

    #[inline(never)]
    fn recv_elements(&self, data: Out, count: i64, handle: Datatype) -> Result<RecvBuffer> {
        self.span(count, handle)?.recv(data)
    }

    /// Returns what `count` elements of a datatype are. No elements of `MPI_DATATYPE_NULL` are taken, as other libraries take them.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`.
    pub(crate) fn span(&self, count: i64, handle: Datatype) -> Result<Span> {
        let count = u64::try_from(count)
            .map_err(|_| Error::new(Class::Count, format!("the count is {count}")))?;
        let one = match (count, handle) {
            (0, Datatype::NULL) => self.get(Datatype::BYTE)?,
            _ => self.get(handle)?,
        };
        let program = one.program()?.clone();
        let bytes = usize::try_from(program.packed(count)?);
        let bytes =
            bytes.map_err(|_| Error::new(Class::Count, "the data is longer than memory"))?;
        Ok(Span {
            program,
            count,
            bytes,
        })
    }
}

/// Elements of a datatype at an address that is still to be named.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) program: Program,
    pub(crate) count: u64,
    /// Of data.
    pub(crate) bytes: usize,
}

impl Span {
    /// Returns values of a type that lie as an array.
    pub(crate) fn array(basic: Basic, elements: usize) -> Self {
        Self {
            program: Program::of(&Tree::of(basic)),
            count: elements as u64,
            bytes: elements * basic.size(),
        }
    }

    /// Returns the offset of the data where it is one block.
    pub(crate) fn block(&self) -> Option<i64> {
        match self.bytes {
            0 => Some(0),
            _ => self
                .program
                .contiguous(self.count)
                .map(|block| block.offset),
        }
    }

    /// Returns the first so many bytes of the data: whole values of their type, where all have one.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` where no datatype has them: their places do not fit 64 bits.
    pub(crate) fn first(&self, bytes: usize) -> Result<Self> {
        let size = self.program.size();
        if bytes >= self.bytes || size == 0 {
            return Ok(self.clone());
        }
        let (whole, rest) = (bytes as u64 / size, bytes as u64 % size);
        if rest == 0 {
            let program = self.program.clone();
            return Ok(Self {
                program,
                count: whole,
                bytes,
            });
        }
        let element = self.program.datatype();
        let start = i64::try_from(whole).ok();
        let start = start.and_then(|whole| whole.checked_mul(element.extent()));
        let start = start.ok_or_else(|| Error::new(Class::Type, "the data is too far away"))?;
        let members = [
            layout::Member {
                count: whole,
                displacement: 0,
                of: element.clone(),
            },
            layout::Member {
                count: 1,
                displacement: start,
                of: self.part(rest)?,
            },
        ];
        let tree = Tree::structure(members)?;
        Ok(Self {
            program: Program::of(&tree),
            count: 1,
            bytes,
        })
    }

    /// Returns the first so many bytes of an element as a datatype.
    fn part(&self, bytes: u64) -> Result<Tree> {
        let uniform = self.program.signature().uniform().map(|(basic, _)| basic);
        let whole = uniform.filter(|basic| bytes.is_multiple_of(basic.size() as u64));
        let basic = whole.unwrap_or(Basic::Byte);
        let size = basic.size() as u64;
        // A block of pairs may begin or end within one, whose parts have a gap between them.
        let is_dense = size == basic.extent() as u64;
        let (mut lengths, mut places) = (Vec::new(), Vec::new());
        // How many bytes are in the blocks before, and in the values so far.
        let (mut before, mut taken) = (0, 0);
        for block in self.program.blocks(1)? {
            let end = bytes.min(before + block.length);
            while taken < end {
                let length = match is_dense {
                    true => (end - taken) / size,
                    false => 1,
                };
                lengths.push(length);
                places.push(block.offset + (taken - before) as i64);
                taken += length * size;
            }
            before += block.length;
        }
        Ok(Tree::of(basic).hindexed(&lengths, &places)?)
    }

    /// Returns the extent of an element.
    pub(crate) fn extent(&self) -> i64 {
        self.program.datatype().extent()
    }

    pub(crate) fn send(&self, data: In) -> Result<SendBuffer> {
        self.check(data)?;
        match self.block() {
            Some(offset) => Ok(data.buffer(offset, self.bytes)),
            None => Ok(SendBuffer::packed(Box::new(self.packed(data)?))),
        }
    }

    pub(crate) fn recv(&self, data: Out) -> Result<RecvBuffer> {
        self.check(data.read())?;
        match self.block() {
            Some(offset) => Ok(data.buffer(offset, self.bytes)),
            None => Ok(RecvBuffer::unpacked(Box::new(Unpacked(Lock::new(
                self.unpacker(data)?,
            ))))),
        }
    }

    /// Checks that there can be data at an address: at `MPI_BOTTOM` those of datatypes alone that have addresses as
    /// displacements.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where it would be in the first page.
    pub(crate) fn check(&self, address: In) -> Result {
        let first = self.program.datatype().true_lower();
        let start = (address.address().addr() as i64).wrapping_add(first);
        match self.bytes > 0 && (0..PAGE).contains(&start) {
            true => Err(no_buffer()),
            false => Ok(()),
        }
    }

    /// Returns the memory that the data is in.
    fn source(&self, data: In) -> Result<Source<'static>> {
        self.check(data)?;
        Ok(data.source(self.program.span(self.count)?))
    }

    /// The same, to be written.
    fn target(&self, data: Out) -> Result<Target<'static>> {
        self.check(data.read())?;
        Ok(data.target(self.program.span(self.count)?))
    }

    /// Packs the data at an address.
    pub(crate) fn pack(&self, data: In, packed: Out) -> Result {
        let mut packer = self.packer(data)?;
        // SAFETY: the promise of the value's maker; what is packed has as many bytes, and nobody else uses them meanwhile.
        packer.pack(unsafe { packed.bytes(0, self.bytes) });
        Ok(())
    }

    /// Unpacks data to an address.
    pub(crate) fn unpack(&self, packed: In, data: Out) -> Result {
        let mut unpacker = self.unpacker(data)?;
        // SAFETY: as above.
        unpacker.unpack(unsafe { packed.bytes(0, self.bytes) });
        Ok(())
    }

    /// Packs the data at an address in external32, where they have so many bytes.
    pub(crate) fn pack_external(&self, data: In, packed: Out, bytes: usize) -> Result {
        let source = self.source(data)?;
        // SAFETY: as above.
        let packed = unsafe { packed.bytes(0, bytes) };
        layout::pack_external(&self.program, self.count, source, packed)?;
        Ok(())
    }

    /// Unpacks data in external32, where they have so many bytes, to an address.
    pub(crate) fn unpack_external(&self, packed: In, bytes: usize, data: Out) -> Result {
        let target = self.target(data)?;
        // SAFETY: as above.
        let packed = unsafe { packed.bytes(0, bytes) };
        layout::unpack_external(&self.program, self.count, target, packed)?;
        Ok(())
    }

    /// Unpacks the whole values of the first so many bytes of data in external32 to an address. Returns how many bytes of memory they have.
    pub(crate) fn unpack_external_part(&self, packed: &[u8], data: Out) -> Result<u64> {
        let target = self.target(data)?;
        let program = &self.program;
        Ok(layout::unpack_external_part(
            program, self.count, target, packed,
        )?)
    }

    /// Returns the data at an address, which is packed where it goes.
    pub(crate) fn packed(&self, data: In) -> Result<Packed> {
        Ok(Packed(self.packer(data)?))
    }

    pub(crate) fn packer(&self, data: In) -> Result<Packer<'static>> {
        let source = self.source(data)?;
        Ok(Packer::new(&self.program, self.count, source)?)
    }

    pub(crate) fn unpacker(&self, data: Out) -> Result<Unpacker<'static>> {
        let target = self.target(data)?;
        Ok(Unpacker::new(&self.program, self.count, target)?)
    }
}

/// Data of a message with gaps.
pub(crate) struct Packed(Packer<'static>);

impl Pack for Packed {
    fn len(&self) -> usize {
        self.0.length() as usize
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        self.0.pack_at(offset as u64, out);
    }
}

/// Memory with gaps that a message is received in.
struct Unpacked(Lock<Unpacker<'static>>);

impl Unpacked {
    fn with<R>(&self, body: impl FnOnce(&mut Unpacker<'static>) -> R) -> R {
        body(&mut self.0.lock())
    }
}

impl Unpack for Unpacked {
    fn capacity(&self) -> usize {
        self.with(|unpacker| unpacker.length() as usize)
    }

    fn unpack(&self, offset: usize, bytes: &[u8]) {
        self.with(|unpacker| unpacker.unpack_at(offset as u64, bytes));
    }
}

/// Returns the error of an address that no data of the datatype is at.
#[cold]
pub(crate) fn no_buffer() -> Error {
    Error::new(Class::Buffer, "there is no buffer at this address")
}
