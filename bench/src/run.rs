//! What a test does on its ranks, and what it has there.

use std::ops::Deref;

use crate::args::names::name_of;
use crate::args::{self, BenchArgs, MemoryChoice};
use crate::body::Traffic;
use crate::buffer::Memory;
use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::load::Load;
use crate::measure::{Effort, Sample, Stage};
use crate::plan::{Layer, Plan};
use crate::port::partitioned::PartitionedPort;
use crate::port::profiled::Profiled;
use crate::port::remote::RemotePort;
use crate::port::window::Windows;
use crate::port::{Endpoint, Port};
use crate::record::{Figures, Row, Sampling, Series};
use crate::suite::{self, Chosen, TestName};
use crate::units::Unit;

pub(crate) mod staged;

/// A test with what a command asks of it alone, as a job's plan has it; and what it does on its ranks.
pub(crate) trait Test {
    /// Returns what `args` ask of the test.
    fn of(args: &BenchArgs) -> Self
    where
        Self: Sized;

    /// Whether several threads of a rank communicate, where those of `--threads` and of units do not.
    fn any_thread(&self) -> bool {
        false
    }

    /// Whether ranks write into each other's memory beside their messages.
    fn has_rma(&self, test: TestName) -> bool {
        let _ = test;
        false
    }

    /// Refuses a number of ranks that the test cannot use.
    fn check_ranks(&self, plan: &Plan, ranks: u32) -> Result<()> {
        let (test, wanted) = (plan.test, plan.ranks);
        match plan.callers.unit {
            None => args::check_ranks(test, false, ranks),
            Some(_) if ranks == wanted => Ok(()),
            Some(unit) => args::usage(format!("{test} on {unit} has {wanted} ranks, not {ranks}")),
        }
    }

    /// Returns what runs its blocks over a port, where that is all that it measures.
    ///
    /// # Errors
    /// [`Error::Usage`] for a test of another kind.
    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>>
    where
        Self: Sized,
    {
        let _ = port;
        Err(Error::Usage(format!("{} needs a pml", plan.test)))
    }

    /// Returns how many iterations there are: OSU's numbers, which are lower for tests with windows.
    fn effort(&self, plan: &Plan) -> Effort {
        Effort::of(plan, (100, 10), (20, 2))
    }

    /// Returns what a sample means in the quantities of the test.
    fn figures(sample: &Sample) -> Figures
    where
        Self: Sized,
    {
        sample.latency()
    }

    /// Adds what each row reports of the test beside what all have.
    fn label(&self, plan: &Plan, row: &mut Row) {
        let _ = (plan, row);
    }

    /// Measures over what matches messages.
    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()>
    where
        Self: Sized,
    {
        self.measure_port(ports.own, run)
    }

    /// Measures over one port, which with `--profile` keeps account of its calls.
    fn measure_port<P: PartitionedPort>(&self, port: &P, run: &mut Run<'_>) -> Result<()>
    where
        Self: Sized,
    {
        let stage = self.stage(run.plan(), port)?;
        staged::measure(self, run, vec![(run.plan().layers[0], stage)])
    }

    /// Measures over what has one-sided operations: the bare transport, or a foreign library.
    fn measure_bare<P: RemotePort>(&self, port: &P, run: &mut Run<'_>) -> Result<()>
    where
        Self: Sized,
    {
        let stage = self.stage(run.plan(), port)?;
        staged::measure(self, run, vec![(run.plan().layers[0], stage)])
    }
}

/// Generates what a job calls of its test.
macro_rules! dispatch {
    ($($module:ident :: $test:ident,)*) => {
        impl Deref for Chosen {
            type Target = dyn Test;

            fn deref(&self) -> &(dyn Test + 'static) {
                match self {
                    $(Self::$test(test) => test,)*
                }
            }
        }

        impl Chosen {
            /// Returns the test that `args` ask for.
            pub(crate) fn of(args: &BenchArgs) -> Self {
                $(if args.test.is_of(suite::$module::TESTS) {
                    return Self::$test(Test::of(args));
                })*
                unreachable!("a test is one of its file")
            }

            /// Measures over what matches messages.
            pub(crate) fn measure<P: PartitionedPort>(
                &self,
                ports: Ports<'_, P>,
                run: &mut Run<'_>,
            ) -> Result<()> {
                match self {
                    $(Self::$test(test) => test.measure(ports, run),)*
                }
            }

            /// Measures over a port that keeps account of its calls.
            pub(crate) fn measure_profiled<P: PartitionedPort>(
                &self,
                port: &Profiled<'_, P>,
                run: &mut Run<'_>,
            ) -> Result<()> {
                match self {
                    $(Self::$test(test) => test.measure_port(port, run),)*
                }
            }

            /// Measures over the bare transport, or over a foreign library.
            pub(crate) fn measure_bare<P: RemotePort>(
                &self,
                port: &P,
                run: &mut Run<'_>,
            ) -> Result<()> {
                match self {
                    $(Self::$test(test) => test.measure_bare(port, run),)*
                }
            }

            /// Returns what runs the test's blocks over the port of one of several layers.
            pub(crate) fn stage<'p, P: Port>(
                &self,
                plan: &Plan,
                port: &'p P,
            ) -> Result<Box<dyn Stage + 'p>> {
                match self {
                    $(Self::$test(test) => test.stage(plan, port),)*
                }
            }

            /// Measures at several layers, whose blocks alternate.
            pub(crate) fn measure_layers(
                &self,
                run: &mut Run<'_>,
                layers: Vec<(Layer, Box<dyn Stage + '_>)>,
            ) -> Result<()> {
                match self {
                    $(Self::$test(test) => staged::measure(test, run, layers),)*
                }
            }
        }
    };
}

suite::each!(dispatch);

/// Takes what rank 0 has to say.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Message) -> Result<()>;

/// What carries the messages of a test.
#[derive(Debug)]
pub(crate) struct Ports<'a, P> {
    pub own: &'a P,
    /// A session at level single of the same process, for tests that compare both.
    pub single: Option<&'a P>,
}

/// A rank's part in a test: what it is to do, and what it has to say.
pub(crate) struct Run<'a> {
    pub port: &'a dyn Endpoint,
    /// What writes into the memory of other ranks.
    pub windows: Option<&'a dyn Windows>,
    plan: &'a Plan,
    used: &'a Used,
    sink: Sink<'a>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        port: &'a dyn Endpoint,
        plan: &'a Plan,
        used: &'a Used,
        sink: Sink<'a>,
    ) -> Self {
        Self {
            port,
            windows: None,
            plan,
            used,
            sink,
        }
    }

    pub(crate) const fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// What communicates at once.
    pub(crate) fn unit(&self) -> Unit {
        self.plan.callers.unit.unwrap_or(Unit::processes(1))
    }

    /// How many callers this process has.
    pub(crate) fn callers(&self) -> u32 {
        if self.unit().is_threads() {
            self.unit().count
        } else {
            1
        }
    }

    /// Whether this is rank 0, which leads and reports.
    pub(crate) fn leads(&self) -> bool {
        self.port.rank().as_u32() == 0
    }

    /// The message sizes.
    pub(crate) fn sizes(&self) -> Result<Vec<usize>> {
        self.plan.lengths()
    }

    /// What validation draws its patterns from; `None` without.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.plan.checked()
    }

    /// The buffers of a caller for messages of at most `largest` bytes, one at a time.
    pub(crate) fn traffic(
        &self,
        thread: u32,
        largest: usize,
        seed: Option<u64>,
    ) -> Result<Traffic> {
        let memory = |len| self.plan.buffers(self.port, len);
        Traffic::new(self.port.rank(), thread, largest, 1, seed, memory)
    }

    /// The buffers of the caller of a number, or of one for a port that carries nothing, where nothing is checked.
    pub(crate) fn traffic_of(&self, number: Option<u32>) -> Result<Traffic> {
        let seed = number.and_then(|_| self.seed());
        self.traffic(number.unwrap_or(0), self.plan.largest()?, seed)
    }

    /// A row of a layer and a size with everything but figures.
    pub(crate) fn row_at(&self, layer: Layer, size: usize) -> Row {
        row(self.plan, self.used, layer, self.port.size(), size)
    }

    /// The same of the first layer, with what ranks saw of the machine meanwhile.
    pub(crate) fn row(&self, size: usize, load: &Load) -> Row {
        let mut row = self.row_at(self.plan.layers[0], size);
        load.add_to_row(&mut row);
        row
    }

    /// Reports a row.
    pub(crate) fn emit(&mut self, row: Row) -> Result<()> {
        (self.sink)(Message::Row(Box::new(row)))
    }
}

fn row(plan: &Plan, used: &Used, layer: Layer, ranks: u32, size: usize) -> Row {
    let (pml, engine) = match layer {
        Layer::Pml => (used.pml.clone(), used.engine.clone()),
        Layer::Cm => (Some("cm".to_owned()), used.engine_of_cm.clone()),
        Layer::Raw | Layer::Mpi => (None, None),
    };
    let series = Series {
        transport: used.transport.clone(),
        library: used.library.clone(),
        provider: used.provider.clone(),
        pml,
        engine,
        layer: plan
            .layers
            .contains(&Layer::Raw)
            .then(|| layer.name(used.pml.as_deref())),
        ranks,
        memory: plan.memory.map(name_of),
        validated: plan.validate,
        profiled: plan.profile,
        ..Series::default()
    };
    let sampling = Sampling {
        launch: Some(plan.launch),
        ..Sampling::default()
    };
    let mut row = Row {
        size: size as u64,
        series,
        sampling,
        ..Row::default()
    };
    plan.callers.label(plan.threads, &mut row);
    plan.own.label(plan, &mut row);
    row
}

impl Plan {
    /// The message sizes, in bytes of this machine's address space.
    pub(crate) fn lengths(&self) -> Result<Vec<usize>> {
        self.largest()?;
        // All sizes fit where the largest does.
        let sizes = self.sizes.iter();
        Ok(sizes
            .filter_map(|&size| usize::try_from(size).ok())
            .collect())
    }

    /// What validation draws its patterns from; `None` without.
    pub(crate) fn checked(&self) -> Option<u64> {
        self.validate.then_some(self.seed)
    }

    /// Memory for messages, from where the plan says.
    pub(crate) fn buffers(&self, port: &dyn Endpoint, len: usize) -> Result<Memory> {
        if self.memory != Some(MemoryChoice::Arena) || len == 0 {
            return Memory::new(len);
        }
        let memory = port.allocate(len)?;
        let needed = len as u64;
        memory.map(Memory::of).ok_or(Error::Arena { needed })
    }

    /// The buffers of a thread for `window` messages at once.
    pub(crate) fn traffic(&self, port: &dyn Endpoint, thread: u32, window: u32) -> Result<Traffic> {
        let (largest, window) = (self.largest()?, window as usize);
        let memory = |len| self.buffers(port, len);
        Traffic::new(port.rank(), thread, largest, window, self.checked(), memory)
    }
}
