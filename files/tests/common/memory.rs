//! Files in memory, of which a call fails.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use tagwire_files::{Errno, Handle, LockKind, Mode, Storage};

/// What happens to a call that reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does less than it was asked for.
    Short,
    /// It does nothing, and is to be repeated.
    Interrupted,
    /// It fails, with half of its bytes done before.
    Failed(Errno),
}

/// When.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    #[default]
    Never,
    /// The call with this number, of all members; 0 is the first.
    Once(u64, Fault),
    /// Each call.
    Always(Fault),
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<PathBuf, Vec<u8>>,
    when: When,
    /// Reads and writes so far.
    calls: u64,
    /// What calls that failed were to read or write.
    failed: Vec<Range<u64>>,
    locks: Vec<(Range<u64>, bool, u64)>,
    handles: u64,
    /// Calls of `sync`, and one that fails.
    sync: Option<Errno>,
    /// The same of `unlock`.
    unlock: Option<Errno>,
    has_locks: bool,
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug)]
struct Open {
    memory: Memory,
    path: PathBuf,
    number: u64,
}

impl Memory {
    fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut self.0.0.lock().unwrap())
    }

    /// Sets the bytes of the one file that tests open.
    pub fn set(&self, bytes: &[u8]) {
        self.with(|state| state.files.insert(PathBuf::from("file"), bytes.to_vec()));
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.with(|state| state.files[Path::new("file")].clone())
    }

    pub fn has(&self, path: &str) -> bool {
        self.with(|state| state.files.contains_key(Path::new(path)))
    }

    /// Says which calls fail from now on.
    pub fn fail(&self, when: When) {
        self.with(|state| (state.when, state.calls) = (when, 0));
    }

    /// Returns how many calls have read or written since then.
    pub fn calls(&self) -> u64 {
        self.with(|state| state.calls)
    }

    /// Takes what calls that failed have not done.
    pub fn failed(&self) -> Vec<Range<u64>> {
        self.with(|state| std::mem::take(&mut state.failed))
    }

    /// Has the next call of `sync` fail.
    pub fn fail_sync(&self, errno: Errno) {
        self.with(|state| state.sync = Some(errno));
    }

    /// Has the next call of `unlock` fail, though the lock is given back.
    pub fn fail_unlock(&self, errno: Errno) {
        self.with(|state| state.unlock = Some(errno));
    }

    pub fn with_locks(self) -> Self {
        self.with(|state| state.has_locks = true);
        self
    }
}

impl State {
    /// Counts a call that would do `len` bytes from an offset on. Returns how many it does, and its error.
    fn call(&mut self, offset: u64, len: usize) -> (usize, Option<Errno>) {
        let number = self.calls;
        self.calls += 1;
        let fault = match self.when {
            When::Once(at, fault) if at == number => fault,
            When::Always(Fault::Interrupted) if number.is_multiple_of(2) => Fault::Interrupted,
            When::Always(fault) if fault != Fault::Interrupted => fault,
            _ => return (len, None),
        };
        match fault {
            Fault::Short => (len.div_ceil(2), None),
            Fault::Interrupted => (0, Some(Errno::INTR)),
            Fault::Failed(errno) => {
                self.failed.push(offset..offset + len as u64);
                (0, Some(errno))
            }
        }
    }
}

impl Storage for Memory {
    fn open(&self, path: &Path, mode: Mode, _: u32) -> Result<Box<dyn Handle>, Errno> {
        self.with(|state| {
            let is_there = state.files.contains_key(path);
            match (is_there, mode.contains(Mode::CREATE)) {
                (true, _) if mode.contains(Mode::EXCLUSIVE) => return Err(Errno::EXIST),
                (false, false) => return Err(Errno::NOENT),
                _ => state.files.entry(path.to_owned()).or_default(),
            };
            state.handles += 1;
            Ok(Box::new(Open {
                memory: self.clone(),
                path: path.to_owned(),
                number: state.handles,
            }) as Box<dyn Handle>)
        })
    }

    fn remove(&self, path: &Path) -> Result<(), Errno> {
        let removed = self.with(|state| state.files.remove(path));
        removed.map(drop).ok_or(Errno::NOENT)
    }
}

impl Open {
    /// Does something with the bytes of the file.
    fn on<T>(&self, body: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.memory
            .with(|state| body(state.files.entry(self.path.clone()).or_default()))
    }
}

impl Handle for Open {
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let (len, error) = self.memory.with(|state| state.call(offset, into.len()));
        if let Some(errno) = error {
            return Err(errno);
        }
        self.on(|bytes| {
            let start = bytes.len().min(offset as usize);
            let end = bytes.len().min(start + len);
            into[..end - start].copy_from_slice(&bytes[start..end]);
            Ok(end - start)
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let (len, error) = self.memory.with(|state| state.call(offset, data.len()));
        if let Some(errno) = error {
            return Err(errno);
        }
        self.on(|bytes| {
            let (start, end) = (offset as usize, offset as usize + len);
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(&data[..len]);
            Ok(len)
        })
    }

    fn size(&self) -> Result<u64, Errno> {
        Ok(self.on(|bytes| bytes.len() as u64))
    }

    fn set_size(&self, size: u64) -> Result<(), Errno> {
        self.on(|bytes| bytes.resize(size as usize, 0));
        Ok(())
    }

    fn allocate(&self, _: u64) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn sync(&self) -> Result<(), Errno> {
        self.memory
            .with(|state| state.sync.take())
            .map_or(Ok(()), Err)
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> Result<(), Errno> {
        let is_write = kind == LockKind::Write;
        let mut state = self.memory.0.0.lock().unwrap();
        if !state.has_locks {
            return Err(Errno::NOLCK);
        }
        let is_free = |state: &State| {
            !state.locks.iter().any(|(other, write, owner)| {
                let overlaps = other.start < range.end && range.start < other.end;
                overlaps && *owner != self.number && (*write || is_write)
            })
        };
        while !is_free(&state) {
            state = self.memory.0.1.wait(state).unwrap();
        }
        state.locks.push((range, is_write, self.number));
        Ok(())
    }

    fn unlock(&self, range: Range<u64>) -> Result<(), Errno> {
        let error = self.memory.with(|state| {
            let own = |lock: &(Range<u64>, bool, u64)| lock.0 == range && lock.2 == self.number;
            state.locks.retain(|lock| !own(lock));
            state.unlock.take()
        });
        self.memory.0.1.notify_all();
        error.map_or(Ok(()), Err)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }
}
