//! Datatypes by handle, and the data of messages.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_layout::{Basic, Datatype as Tree, Packer, Program, Unpacker};
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

use crate::abi::Datatype;
use crate::attributes::Attributes;
use crate::error::{Class, Error, Result};
use crate::raw::{In, Out};
use crate::table::{Kind, Table};

/// Handles of predefined datatypes are from here on.
const FIRST: usize = 0x200;

/// So many of them.
const COUNT: usize = 0x100;

/// A datatype with what a program has added to it.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) tree: Tree,
    program: OnceLock<Program>,
    name: Mutex<Option<String>>,
    attributes: Attributes,
    use_of: Mutex<Use>,
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
        let mut use_of = self.one.use_of();
        use_of.holds -= 1;
        if use_of.holds == 0 && use_of.is_freed {
            self.made.remove(self.handle.0);
        }
    }
}

impl Type {
    fn new(tree: Tree) -> Self {
        Self {
            tree,
            program: OnceLock::new(),
            name: Mutex::default(),
            attributes: Attributes::new(),
            use_of: Mutex::default(),
        }
    }

    fn use_of(&self) -> MutexGuard<'_, Use> {
        self.use_of.lock().unwrap_or_else(PoisonError::into_inner)
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
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        name.clone()
    }

    pub(crate) fn set_name(&self, name: String) {
        let mut held = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(name);
    }
}

/// The datatypes of a process.
#[derive(Debug)]
pub(crate) struct Types {
    predefined: Box<[Option<Arc<Type>>]>,
    /// The size of those that are contiguous; zero of others.
    sizes: [u8; COUNT],
    made: Arc<Table<Type>>,
}

impl Types {
    pub(crate) fn new() -> Self {
        let mut sizes = [0; COUNT];
        let predefined = (0..COUNT).map(|number| {
            let (basic, name) = predefined(FIRST + number)?;
            if basic.size() == basic.extent() {
                sizes[number] = basic.size() as u8;
            }
            let one = Type::new(Tree::of(basic));
            one.commit();
            one.set_name(name.to_owned());
            Some(Arc::new(one))
        });
        Self {
            predefined: predefined.collect(),
            sizes,
            made: Arc::new(Table::new(Kind::Datatype)),
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
        found.ok_or_else(|| invalid(handle))
    }

    /// Takes a new one in.
    pub(crate) fn enter(&self, tree: Tree) -> Result<Datatype> {
        let entered = self.made.insert_with(|_| Type::new(tree));
        entered
            .map(Datatype)
            .ok_or_else(|| Error::new(Class::Other, "too many datatypes"))
    }

    /// Frees one. Operations under way keep what they need of it.
    pub(crate) fn free(&self, handle: Datatype) -> Result {
        let one = self.made.get(handle.0).ok_or_else(|| invalid(handle))?;
        let mut use_of = one.use_of();
        if use_of.is_freed {
            return Err(invalid(handle));
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
        let one = self.made.get(handle.0).ok_or_else(|| invalid(handle))?;
        one.use_of().holds += 1;
        let made = Arc::clone(&self.made);
        Ok(Some(Hold { made, one, handle }))
    }

    /// Whether it is one of the standard's.
    pub(crate) fn is_predefined(&self, handle: Datatype) -> bool {
        let found = self.predefined.get(handle.0.wrapping_sub(FIRST));
        matches!(found, Some(Some(_)))
    }

    /// Returns the size of a predefined datatype without padding.
    #[inline]
    fn simple(&self, handle: Datatype) -> Option<usize> {
        let size = self.sizes.get(handle.0.wrapping_sub(FIRST));
        size.filter(|size| **size > 0).map(|size| *size as usize)
    }

    /// Returns how many bytes so many elements of a predefined datatype without padding are.
    #[inline]
    pub(crate) fn simple_bytes(&self, count: i64, handle: Datatype) -> Option<usize> {
        let (count, size) = (usize::try_from(count).ok()?, self.simple(handle)?);
        count.checked_mul(size)
    }

    /// Returns data to be sent.
    #[inline]
    pub(crate) fn send(&self, data: In, count: i64, handle: Datatype) -> Result<SendBuffer> {
        if let Some(bytes) = self.simple_bytes(count, handle) {
            if data.is_constant() && bytes > 0 {
                return Err(no_buffer());
            }
            return Ok(data.buffer(0, bytes));
        }
        if data.is_in_place() {
            return Err(no_buffer());
        }
        self.span(count, handle)?.send(data)
    }

    /// Returns room for data that is received.
    #[inline]
    pub(crate) fn recv(&self, room: Out, count: i64, handle: Datatype) -> Result<RecvBuffer> {
        if let Some(bytes) = self.simple_bytes(count, handle) {
            if room.is_constant() && bytes > 0 {
                return Err(no_buffer());
            }
            return Ok(room.buffer(0, bytes));
        }
        if room.is_in_place() {
            return Err(no_buffer());
        }
        self.span(count, handle)?.recv(room)
    }

    /// Returns what `count` elements of a datatype are.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`.
    pub(crate) fn span(&self, count: i64, handle: Datatype) -> Result<Span> {
        let count = u64::try_from(count)
            .map_err(|_| Error::new(Class::Count, format!("the count is {count}")))?;
        let one = self.get(handle)?;
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

    /// Returns the extent of an element.
    pub(crate) fn extent(&self) -> i64 {
        self.program.datatype().extent()
    }

    pub(crate) fn send(&self, data: In) -> Result<SendBuffer> {
        match self.block() {
            Some(offset) => Ok(data.buffer(offset, self.bytes)),
            None => Ok(SendBuffer::packed(Box::new(Packed(self.packer(data)?)))),
        }
    }

    pub(crate) fn recv(&self, room: Out) -> Result<RecvBuffer> {
        match self.block() {
            Some(offset) => Ok(room.buffer(offset, self.bytes)),
            None => Ok(RecvBuffer::unpacked(Box::new(Unpacked(Mutex::new(
                self.unpacker(room)?,
            ))))),
        }
    }

    /// Checks that there can be data at an address: at `MPI_BOTTOM` those of derived datatypes alone.
    fn check(&self, is_in_place: bool, is_constant: bool) -> Result {
        let is_basic = self.program.datatype().basic().is_some();
        match self.bytes > 0 && (is_in_place || is_constant && is_basic) {
            true => Err(no_buffer()),
            false => Ok(()),
        }
    }

    pub(crate) fn packer(&self, data: In) -> Result<Packer<'static>> {
        self.check(data.is_in_place(), data.is_constant())?;
        let span = self.program.span(self.count)?;
        Ok(Packer::new(&self.program, self.count, data.source(span))?)
    }

    pub(crate) fn unpacker(&self, room: Out) -> Result<Unpacker<'static>> {
        self.check(room.is_in_place(), room.is_constant())?;
        let span = self.program.span(self.count)?;
        Ok(Unpacker::new(&self.program, self.count, room.target(span))?)
    }
}

/// Data of a message with gaps.
struct Packed(Packer<'static>);

impl Pack for Packed {
    fn len(&self) -> usize {
        self.0.length() as usize
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        self.0.pack_at(offset as u64, out);
    }
}

/// Room for a message with gaps.
struct Unpacked(Mutex<Unpacker<'static>>);

impl Unpacked {
    fn with<R>(&self, body: impl FnOnce(&mut Unpacker<'static>) -> R) -> R {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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

#[cold]
fn invalid(handle: Datatype) -> Error {
    let what = match handle {
        Datatype::NULL => "the datatype is MPI_DATATYPE_NULL".to_owned(),
        Datatype(number) => format!("{number:#x} is no datatype"),
    };
    Error::new(Class::Type, what)
}

/// Returns the predefined datatype with a number, and its name (MPI-5.0, appendix A.1.1).
fn predefined(number: usize) -> Option<(Basic, &'static str)> {
    Some(match number {
        0x201 => (Basic::I64, "MPI_AINT"),
        0x202 => (Basic::I64, "MPI_COUNT"),
        0x203 => (Basic::I64, "MPI_OFFSET"),
        0x207 => (Basic::Byte, "MPI_PACKED"),
        0x208 => (Basic::I16, "MPI_SHORT"),
        0x209 => (Basic::I32, "MPI_INT"),
        0x20a => (Basic::Long, "MPI_LONG"),
        0x20b => (Basic::I64, "MPI_LONG_LONG"),
        0x20c => (Basic::U16, "MPI_UNSIGNED_SHORT"),
        0x20d => (Basic::U32, "MPI_UNSIGNED"),
        0x20e => (Basic::UnsignedLong, "MPI_UNSIGNED_LONG"),
        0x20f => (Basic::U64, "MPI_UNSIGNED_LONG_LONG"),
        0x210 => (Basic::F32, "MPI_FLOAT"),
        0x212 => (Basic::Complex32, "MPI_C_FLOAT_COMPLEX"),
        0x213 => (Basic::Complex32, "MPI_CXX_FLOAT_COMPLEX"),
        0x214 => (Basic::F64, "MPI_DOUBLE"),
        0x216 => (Basic::Complex64, "MPI_C_DOUBLE_COMPLEX"),
        0x217 => (Basic::Complex64, "MPI_CXX_DOUBLE_COMPLEX"),
        0x218 => (Basic::Logical32, "MPI_LOGICAL"),
        0x219 => (Basic::I32, "MPI_INTEGER"),
        0x21a => (Basic::F32, "MPI_REAL"),
        0x21b => (Basic::Complex32, "MPI_COMPLEX"),
        0x21c => (Basic::F64, "MPI_DOUBLE_PRECISION"),
        0x21d => (Basic::Complex64, "MPI_DOUBLE_COMPLEX"),
        0x21e => (Basic::Char, "MPI_CHARACTER"),
        0x220 => (Basic::LongDouble, "MPI_LONG_DOUBLE"),
        0x224 => (Basic::ComplexLongDouble, "MPI_C_LONG_DOUBLE_COMPLEX"),
        0x225 => (Basic::ComplexLongDouble, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
        0x228 => (Basic::F32Int, "MPI_FLOAT_INT"),
        0x229 => (Basic::F64Int, "MPI_DOUBLE_INT"),
        0x22a => (Basic::LongInt, "MPI_LONG_INT"),
        0x22b => (Basic::TwoInt, "MPI_2INT"),
        0x22c => (Basic::ShortInt, "MPI_SHORT_INT"),
        0x22d => (Basic::LongDoubleInt, "MPI_LONG_DOUBLE_INT"),
        0x230 => (Basic::TwoF32, "MPI_2REAL"),
        0x231 => (Basic::TwoF64, "MPI_2DOUBLE_PRECISION"),
        0x232 => (Basic::TwoInt, "MPI_2INTEGER"),
        0x238 => (Basic::Bool, "MPI_C_BOOL"),
        0x239 => (Basic::Bool, "MPI_CXX_BOOL"),
        0x23c => (Basic::WideChar, "MPI_WCHAR"),
        0x240 => (Basic::I8, "MPI_INT8_T"),
        0x241 => (Basic::U8, "MPI_UINT8_T"),
        0x243 => (Basic::Char, "MPI_CHAR"),
        0x244 => (Basic::I8, "MPI_SIGNED_CHAR"),
        0x245 => (Basic::U8, "MPI_UNSIGNED_CHAR"),
        0x247 => (Basic::Byte, "MPI_BYTE"),
        0x248 => (Basic::I16, "MPI_INT16_T"),
        0x249 => (Basic::U16, "MPI_UINT16_T"),
        0x250 => (Basic::I32, "MPI_INT32_T"),
        0x251 => (Basic::U32, "MPI_UINT32_T"),
        0x258 => (Basic::I64, "MPI_INT64_T"),
        0x259 => (Basic::U64, "MPI_UINT64_T"),
        0x2c0 => (Basic::Logical8, "MPI_LOGICAL1"),
        0x2c1 => (Basic::I8, "MPI_INTEGER1"),
        0x2c8 => (Basic::Logical16, "MPI_LOGICAL2"),
        0x2c9 => (Basic::I16, "MPI_INTEGER2"),
        0x2d0 => (Basic::Logical32, "MPI_LOGICAL4"),
        0x2d1 => (Basic::I32, "MPI_INTEGER4"),
        0x2d2 => (Basic::F32, "MPI_REAL4"),
        0x2d8 => (Basic::Logical64, "MPI_LOGICAL8"),
        0x2d9 => (Basic::I64, "MPI_INTEGER8"),
        0x2da => (Basic::F64, "MPI_REAL8"),
        0x2db => (Basic::Complex32, "MPI_COMPLEX8"),
        0x2e0 => (Basic::Logical128, "MPI_LOGICAL16"),
        0x2e1 => (Basic::I128, "MPI_INTEGER16"),
        0x2e3 => (Basic::Complex64, "MPI_COMPLEX16"),
        _ => return None,
    })
}
