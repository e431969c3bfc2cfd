//! The text that people and cluster scripts read: header lines that begin with `#`, then
//! `size value ...` with the main value first, as OSU's benchmarks print it.

use std::fmt::Write;

use super::{Report, quantity_of_row};

use crate::args::Percentiles;
use crate::environment::{Machine, is_foreign};
use crate::judgement::{Change, NOTABLE, Sense, Verdict, is_row_disturbed};
use crate::line_transfer::{AFTER, BEFORE};
use crate::load::OTHERS;
use crate::record::{Quantity, Row, Series};
use crate::stats::Summary;
use crate::suite::TestName;

/// What a table's columns show.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    quantity: Quantity,
    /// One row of each series.
    series: Vec<Row>,
    launches: u32,
    percentiles: Vec<f64>,
    /// Secondary quantities of the first series.
    others: Vec<Quantity>,
}

impl Table {
    /// The columns for these rows.
    pub(crate) fn of(report: &Report, percentiles: Option<&Percentiles>) -> Self {
        let series: Vec<Row> = report.series().into_iter().cloned().collect();
        let has = |key: &str| series.iter().any(|row| row.figures.named(key).is_some());
        let quantity = quantity_of_row(&report.test, has);
        let others = Quantity::ALL
            .into_iter()
            .filter(|other| *other != quantity)
            .filter(|other| {
                let shown = if is_wide(quantity) {
                    &series[..]
                } else {
                    series.get(..1).unwrap_or(&[])
                };
                shown
                    .iter()
                    .any(|row| row.figures.named(&other.key()).is_some())
            })
            .collect();
        Self {
            quantity,
            series,
            launches: report.environment.launches,
            percentiles: percentiles.map_or_else(Vec::new, |list| list.as_slice().to_vec()),
            others,
        }
    }

    /// Returns the line that names the columns; before it one for each series, where there are several.
    pub(crate) fn header(&self) -> String {
        self.legend() + &head(&self.blocks().concat())
    }

    /// Names each series beside its number.
    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let named = self.names().into_iter().zip(1..);
        named
            .map(|(name, number)| format!("# Series {number}: {name}\n"))
            .collect()
    }

    /// What each series is called.
    fn names(&self) -> Vec<String> {
        let by = |row: &Row| (row.series.transport.clone(), row.series.library.clone());
        let one = self.series.iter().all(|row| by(row) == by(&self.series[0]));
        let name = |row: &Row| {
            let side = side(row);
            let is_told = one && row.series.layer.is_none() && side.is_some();
            let parts = [(!is_told).then(|| label(row, one)), side];
            let parts = parts.into_iter().flatten();
            let parts = parts.chain(self.queue(row));
            let parts: Vec<String> = parts.chain(self.circumstances(row)).collect();
            parts.join(" ")
        };
        self.series.iter().map(name).collect()
    }

    /// Which engine matched, and what lay ahead, where series over one transport differ by them alone.
    fn queue(&self, row: &Row) -> Vec<String> {
        let ahead = |number: Option<u32>, queue: &str| number.map(|it| format!("{queue}:{it}"));
        let of = |row: &Row| {
            [
                row.series.engine.clone(),
                ahead(row.series.posted, "posted"),
                ahead(row.series.unexpected, "unexpected"),
                ahead(row.series.wild, "wild"),
                row.series.position.map(|position| position.to_string()),
                row.series.spread.map(|spread| spread.to_string()),
            ]
        };
        let own = of(row);
        let differs = |place: usize| {
            let mut all = self.series.iter();
            all.any(|one| {
                // With the same queue and engine it would be the same series.
                let alike = Series {
                    engine: row.series.engine.clone(),
                    posted: row.series.posted,
                    unexpected: row.series.unexpected,
                    wild: row.series.wild,
                    position: row.series.position,
                    spread: row.series.spread,
                    ..one.series.clone()
                };
                alike == row.series && of(one)[place] != own[place]
            })
        };
        let told = (0..own.len()).filter(|place| differs(*place));
        told.filter_map(|place| own[place].clone()).collect()
    }

    /// The titles of ratios to the first series, one for each of the others, as one word.
    fn ratios(&self) -> Vec<String> {
        let names: Vec<String> = self
            .names()
            .iter()
            .map(|name| name.replace(' ', "-"))
            .collect();
        let ratio = |name: &String| format!("{}/{name}", names[0]);
        names.iter().skip(1).map(ratio).collect()
    }

    /// What else distinguishes a series of partitioned operations: computation, noise, caches.
    fn circumstances(&self, row: &Row) -> Vec<String> {
        let cache = |row: &Row| match (&row.series.cache, row.series.cold_cache) {
            (Some(cache), _) => cache.clone(),
            (None, true) => "cold".to_owned(),
            (None, false) => "hot".to_owned(),
        };
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let of = |row: &Row| [or(&row.series.compute), or(&row.series.noise), cache(row)];
        let own = of(row).into_iter().enumerate();
        let varies = |place: usize| {
            let first = of(&self.series[0]);
            let mut all = self
                .series
                .iter()
                .filter(|row| row.series.partitions.is_some());
            all.any(|row| of(row)[place] != first[place])
        };
        let told = own.filter(|(place, _)| varies(*place));
        told.map(|(_, text)| text).collect()
    }

    /// The columns that belong together: those of each series, and what is told of the first one alone.
    fn blocks(&self) -> Vec<Vec<Column>> {
        let figure = |series: usize, title: &str, key: String, digits| Column {
            title: match self.series.len() {
                1 => title.to_owned(),
                _ => format!("{} {title}", series + 1),
            },
            series,
            value: Value::Figure(key, digits),
        };
        let of = |series, quantity: Quantity| {
            figure(series, quantity.title, quantity.key(), digits(quantity))
        };
        let others = |series| self.others.iter().map(move |&other| of(series, other));
        let ratios = self.ratios();
        let stem = self.quantity.stem;
        let of_series = |series: usize| {
            let spread = format!("{stem}_spread_pct");
            let mut columns = vec![
                of(series, self.quantity),
                figure(series, "Spread (%)", spread, 1),
            ];
            if self.launches > 1 {
                let in_run = format!("{stem}_in_run_spread_pct");
                columns.push(figure(series, "In run (%)", in_run, 1));
            }
            if is_wide(self.quantity) {
                columns.extend(others(series));
            } else if series > 0 {
                columns.push(Column {
                    title: ratios[series - 1].clone(),
                    series,
                    value: Value::Ratio(self.quantity.key()),
                });
            }
            columns
        };
        let mut blocks: Vec<Vec<Column>> = (0..self.series.len()).map(of_series).collect();
        let mut more = Vec::new();
        if !is_wide(self.quantity) {
            more.extend(others(0));
        }
        let percentiles = self.percentiles.iter();
        more.extend(percentiles.map(|&p| figure(0, &format!("p{p} (us)"), Percentiles::key(p), 3)));
        if !more.is_empty() {
            blocks.push(more);
        }
        blocks
    }

    /// Returns the line of one size. `rows` holds each series' row for it, as far as there is one.
    pub(crate) fn line(&self, size: u64, rows: &[Option<&Row>]) -> String {
        line(size, &self.blocks().concat(), rows)
    }

    /// Returns the whole table of a report, from its summary. A table that is wider than `width` letters goes on below
    /// itself, with its other series; many series have a line for each size and series.
    pub(crate) fn of_summary(&self, report: &Report, width: Option<usize>) -> String {
        let mut sizes: Vec<u64> = Vec::new();
        for row in &report.summary {
            if !sizes.contains(&row.size) {
                sizes.push(row.size);
            }
        }
        let find = |size: u64, series: &Row| {
            let mut rows = report.summary.iter();
            rows.find(|row| row.size == size && row.series == series.series)
        };
        let rows = |size| {
            let series = self.series.iter();
            series.map(|series| find(size, series)).collect()
        };
        let rows: Vec<_> = sizes.iter().map(|&size| (size, rows(size))).collect();
        if self.series.len() > MANY {
            return self.by_lines(&rows);
        }
        let mut text = self.legend();
        for columns in parts(self.blocks(), width.unwrap_or(usize::MAX)) {
            text += &head(&columns);
            let lines = rows.iter().map(|(size, rows)| line(*size, &columns, rows));
            text.extend(lines);
        }
        text
    }

    /// A line for each size and series, with the series' name last. The best one of a size is marked.
    fn by_lines(&self, sizes: &[(u64, Vec<Option<&Row>>)]) -> String {
        let names = self.names();
        let ratio = (!is_wide(self.quantity)).then(|| names[0].replace(' ', "-"));
        let one = Self {
            series: self.series[..1].to_vec(),
            percentiles: Vec::new(),
            ..self.clone()
        };
        let mut columns = one.blocks().concat();
        for column in &mut columns {
            column.series = 1;
        }
        columns.extend(ratio.map(|first| Column {
            title: format!("{first}/own"),
            series: 1,
            value: Value::Ratio(self.quantity.key()),
        }));
        let named = |text: &str, name: &str| format!("{} {name}\n", text.trim_end_matches('\n'));
        let mut text = named(&head(&columns), " Series");
        for (size, rows) in sizes {
            let best = self.best(rows);
            for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.is_some()) {
                let mark = if best == Some(place) { '*' } else { ' ' };
                let line = line(*size, &columns, &[rows[0], *row]);
                text += &named(&line, &format!("{mark}{}", names[place]));
            }
        }
        text + "# * is better than all others of its size, beyond the noise\n"
    }

    /// The place of the row that is better than all others, beyond the noise; none where other load ran beside one of them.
    fn best(&self, rows: &[Option<&Row>]) -> Option<usize> {
        let sense = Sense::from(self.quantity);
        let (least, greatest) = self.quantity.bounds();
        let estimate = |row: &Row| {
            let median = row.figures.named(&self.quantity.key())?;
            let bound = |key: &str| row.figures.named(key).unwrap_or(median);
            Some(Summary {
                median,
                min: bound(&least),
                max: bound(&greatest),
            })
        };
        let there = || {
            rows.iter()
                .enumerate()
                .filter_map(|(place, row)| Some((place, (*row)?)))
        };
        let is_disturbed =
            |row: &Row| is_row_disturbed(|key| row.figures.named(key), row.series.oversubscribed);
        if there().any(|(_, row)| is_disturbed(row)) {
            return None;
        }
        let all: Vec<(usize, Summary)> = there()
            .filter_map(|(place, row)| Some((place, estimate(row)?)))
            .collect();
        let (place, best) = *all.iter().reduce(|best, other| {
            match sense.is_better(other.1.median, best.1.median) {
                true => other,
                false => best,
            }
        })?;
        let is_behind = |(other, own): &(usize, Summary)| {
            *other == place || Change::of(sense, best, *own, NOTABLE).verdict == Verdict::Worse
        };
        (all.len() > 1 && all.iter().all(is_behind)).then_some(place)
    }
}

/// From more series on each has lines of its own.
const MANY: usize = 3;

/// A column of a table.
#[derive(Debug, Clone)]
struct Column {
    title: String,
    /// The place of the series that it is of.
    series: usize,
    value: Value,
}

/// What a column shows.
#[derive(Debug, Clone)]
enum Value {
    /// The figure of a key, with so many digits.
    Figure(String, usize),
    /// That of the first series over its own.
    Ratio(String),
}

impl Column {
    fn cell(&self, rows: &[Option<&Row>]) -> String {
        let figure = |series: usize, key: &str| rows[series].and_then(|row| row.figures.named(key));
        let text = match &self.value {
            Value::Figure(key, digits) => {
                figure(self.series, key).map(|value| format!("{value:.digits$}"))
            }
            Value::Ratio(key) => figure(0, key)
                .zip(figure(self.series, key))
                .map(|(first, own)| format!("{:.3}", first / own)),
        };
        text.unwrap_or_else(|| "-".to_owned())
    }

    fn width(&self) -> usize {
        self.title.len().max(14)
    }
}

/// Which columns stand beside each other in lines of `width` letters: whole blocks, one at least.
fn parts(blocks: Vec<Vec<Column>>, width: usize) -> Vec<Vec<Column>> {
    let (mut parts, mut used) = (vec![Vec::new()], FIRST_COLUMN);
    for block in blocks {
        let own: usize = block.iter().map(|column| 1 + column.width()).sum();
        let last = parts.last_mut().expect("one at least");
        if !last.is_empty() && used + own > width {
            parts.push(block);
            used = FIRST_COLUMN;
        } else {
            last.extend(block);
        }
        used += own;
    }
    parts
}

/// Whether each series shows its secondary quantities, instead of its ratio to the first one.
fn is_wide(quantity: Quantity) -> bool {
    const WIDE: [Quantity; 8] = [
        Quantity::TIME,
        Quantity::THROUGHPUT,
        Quantity::ITER,
        Quantity::PARTITIONED_OVERHEAD,
        Quantity::OVERHEAD_PAPER,
        Quantity::SHORT,
        Quantity::ITERATION,
        Quantity::PASSES,
    ];
    quantity.is_share() || WIDE.contains(&quantity)
}

const fn digits(quantity: Quantity) -> usize {
    if quantity.less_is_better { 3 } else { 2 }
}

/// What the computing rank does in a series, and when the receive was posted.
fn side(row: &Row) -> Option<String> {
    if let Some(unit) = &row.series.unit {
        let helper = row.series.progress.as_deref();
        return Some(helper.unwrap_or(unit).to_owned());
    }
    if let Some(label) = row.series.device.label() {
        return Some(label);
    }
    if let Some(label) = row.series.pattern.label(row.series.policy.as_deref()) {
        return Some(label);
    }
    if let (Some(partitions), Some(policy)) = (row.series.partitions, &row.series.policy) {
        let double = if row.series.buffers.is_some() {
            "*2"
        } else {
            ""
        };
        return Some(format!("{policy}{double}/{partitions}"));
    }
    let side = row.series.side.as_ref()?;
    Some(match &row.series.receive {
        Some(receive) => format!("{side}-{receive}"),
        None => side.clone(),
    })
}

/// A series' short name: one word, for scripts that split.
/// Layers are told by their names alone where `one` transport has them all.
fn label(row: &Row, one: bool) -> String {
    let carrier = carrier(row);
    match &row.series.layer {
        Some(layer) if one => layer.clone(),
        Some(layer) => format!("{layer}/{carrier}"),
        None => carrier,
    }
}

/// What carried a series' messages, in one word.
fn carrier(row: &Row) -> String {
    match &row.series.library {
        Some(library) if row.is_foreign() => {
            // "MPICH Version: 5.0.2" becomes "MPICH-5.0.2", "Open MPI v5.0.11, package: ..." "Open-MPI-5.0.11".
            let words = library.split_whitespace();
            let words = words.filter(|word| !word.contains("ersion"));
            let mut short = Vec::new();
            for word in words.take(5) {
                let word = word.trim_end_matches(',');
                let number = word.trim_start_matches('v');
                let is_version = number.starts_with(|letter: char| letter.is_ascii_digit());
                short.push(if is_version { number } else { word });
                if is_version {
                    break;
                }
            }
            let kind = row.series.transport.split(':').next();
            format!("{}:{}", kind.unwrap_or_default(), short.join("-"))
        }
        Some(library) => format!("{}({})", row.series.transport, library.replace(' ', "-")),
        None => row.series.transport.clone(),
    }
}

/// The width of the sizes.
const FIRST_COLUMN: usize = 10;

/// The line that names columns.
fn head(columns: &[Column]) -> String {
    cells("# Size", columns, |column| column.title.clone())
}

/// The line of a size.
fn line(size: u64, columns: &[Column], rows: &[Option<&Row>]) -> String {
    cells(&size.to_string(), columns, |column| column.cell(rows))
}

/// A line whose cells stand below their titles.
fn cells(first: &str, columns: &[Column], cell: impl Fn(&Column) -> String) -> String {
    let mut line = format!("{first:<FIRST_COLUMN$}");
    for column in columns {
        let width = column.width();
        let _ = write!(line, " {:>width$}", cell(column));
    }
    line.push('\n');
    line
}

/// The header lines: everything that a reader must know before the figures.
pub(crate) fn preamble(report: &Report) -> String {
    let environment = &report.environment;
    let mut text = format!("# Tagwire bench {}\n", report.test);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "# {name}: {value}");
    };
    line("Command", &report.command);
    line(
        "Version",
        &version(
            &environment.version,
            &environment.commit,
            &environment.profile,
        ),
    );
    for used in &environment.transports {
        line("Transport", &format!("{} ({})", used.transport, used.why));
        if let Some(provider) = &used.provider {
            line("Provider", provider);
        }
        if let Some(pml) = &used.pml {
            let engine = used
                .engine
                .as_deref()
                .map_or_else(String::new, |e| format!(", engine {e}"));
            line("Pml", &format!("{pml}{engine}"));
        }
        if used.pml.is_none() && !is_foreign(&used.transport) {
            line("Pml", "none: the bare transport");
        }
        if let Some(library) = &used.library {
            let file = used.file.as_deref().unwrap_or("?");
            line("Library", &format!("{library} ({file})"));
        }
    }
    line(
        "Machine",
        &machine(&environment.machine, environment.other.is_some()),
    );
    if let Some(name) = environment.tcp_congestion() {
        line("TCP", &format!("congestion control {name}"));
    }
    line("Ranks", &ranks(report));
    if let Some(other) = &environment.other {
        line("Other machine", &machine(&other.machine, true));
        line(
            "Other version",
            &version(&other.version, &other.commit, &other.profile),
        );
        line("Other ranks", &format!("bound: {}", other.binding));
        for used in &other.transports {
            let library = used.library.as_deref().unwrap_or("none");
            let file = used
                .file
                .as_deref()
                .map_or_else(String::new, |file| format!(" ({file})"));
            line(
                "Other library",
                &format!("{}: {library}{file}", used.transport),
            );
        }
    }
    let source = environment
        .machine
        .clock_source
        .as_deref()
        .unwrap_or("unknown");
    line(
        "Clock",
        &format!("{source}, {} ns a look", environment.machine.clock_cost_ns),
    );
    line("Seed", &environment.seed.to_string());
    for (name, value) in &environment.settings {
        line("Setting", &format!("{name} = {value}"));
    }
    if report.rows.iter().any(|row| row.series.profiled) {
        line("Profile", "on; each call takes two looks at the clock more");
    }
    if let Some(memory) = report
        .rows
        .iter()
        .find_map(|row| row.series.memory.as_deref())
    {
        line("Memory", memory);
    }
    if let Some(device) = report
        .rows
        .iter()
        .find_map(|row| row.series.device.producer.as_deref())
    {
        line("Device", device);
    } else if let Some(cache) = cache(report) {
        line("Cache", &cache);
    }
    if report.rows.iter().any(|row| row.series.nonblocking) {
        line(
            "Form",
            "nonblocking; each operation is started and waited for",
        );
    }
    if report.rows.iter().any(|row| row.series.validated) {
        line("Validation", "on; times include filling and checking");
    }
    text
}

fn version(version: &str, commit: &str, profile: &str) -> String {
    match profile {
        "" => format!("{version} (commit {commit})"),
        profile => format!("{version} (commit {commit}, profile {profile})"),
    }
}

/// Which buffers the operations of a collective had.
fn cache(report: &Report) -> Option<String> {
    let test: TestName = report.test.parse().ok()?;
    test.has_option("cache-bytes").then_some(())?;
    let fresh = report
        .rows
        .iter()
        .find_map(|row| row.series.cache.as_deref());
    Some(match fresh.and_then(|cache| cache.split_once(':')) {
        Some((_, bytes)) => {
            format!("fresh, other buffers each time; they come again after {bytes}")
        }
        None => "hot, the same buffers each time".to_owned(),
    })
}

/// The lines behind the table: what else ran, what failed, what makes the figures doubtful.
pub(crate) fn closing(report: &Report) -> String {
    let mut text = load(report).map_or_else(String::new, |load| format!("# Load: {load}\n"));
    text += &line_transfer(report);
    for row in &report.rows {
        text += &error_line(row);
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "# Warning: {}", warning.to_text());
    }
    text
}

/// What a cache line took between the CPUs of the first two ranks; nothing where that is not known.
fn line_transfer(report: &Report) -> String {
    let names = [BEFORE, AFTER];
    let of_row = |row: &Row| names.map(|name| row.figures.named(name));
    let times = report.measured().flat_map(of_row).flatten();
    let times: Vec<f64> = times.collect();
    let (Some(least), Some(most), Some((placing, _))) = (
        times.iter().copied().reduce(f64::min),
        times.iter().copied().reduce(f64::max),
        report.placing(),
    ) else {
        return String::new();
    };
    let placing = placing.name();
    format!("# Line transfer: {least:.0} to {most:.0} ns, {placing}\n")
}

/// Why a row has no figures; nothing where it has.
fn error_line(row: &Row) -> String {
    let Some(error) = &row.error else {
        return String::new();
    };
    let launch = row.sampling.launch.unwrap_or(0);
    let line = error.lines().collect::<Vec<_>>().join(" ");
    format!(
        "# Error: {}, launch {launch}, size {}: {line}\n",
        row.series.transport, row.size
    )
}

/// How many ranks are named one by one.
const NAMED_RANKS: usize = 8;

/// What each rank went through in all rows together.
fn load(report: &Report) -> Option<String> {
    let mut ranks: Vec<(f64, Option<f64>, Option<u64>)> = Vec::new();
    for loads in report.rows.iter().filter_map(|row| row.load.as_ref()) {
        ranks.resize(ranks.len().max(loads.len()), (0.0, Some(0.0), Some(0)));
        for ((measured, wait, switches), load) in ranks.iter_mut().zip(loads) {
            *measured += load.measured_ms;
            *wait = wait.zip(load.run_queue_wait_ms).map(|(sum, own)| sum + own);
            *switches = switches
                .zip(load.involuntary_switches)
                .map(|(sum, own)| sum + own);
        }
    }
    let told = ranks.iter().enumerate().filter_map(|(rank, load)| {
        let (measured, Some(wait), Some(switches)) = *load else {
            return None;
        };
        let pct = (100.0 * wait / measured.max(1e-6)).min(100.0);
        Some(format!("rank {rank} {pct:.1} % ({switches})"))
    });
    let told: Vec<String> = told.take(NAMED_RANKS).collect();
    let mut parts = Vec::new();
    if !told.is_empty() {
        parts.push(format!(
            "measured time in wait for a CPU (involuntary switches): {}",
            told.join(", ")
        ));
    }
    let others = report.rows.iter();
    let others = others.filter_map(|row| row.figures.named(OTHERS));
    if let Some(most) = others.reduce(f64::max) {
        parts.push(format!("others had up to {most:.1} % of a rank's CPUs"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A machine in words; by its name where it is one of several.
fn machine(machine: &Machine, is_named: bool) -> String {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let flag = |is: Option<bool>| is.map_or("unknown", |is| if is { "on" } else { "off" });
    let guest = if machine.virtual_machine == Some(true) {
        " (virtual)"
    } else {
        ""
    };
    let governors = match machine.governors.join(",") {
        none if none.is_empty() => "unknown".to_owned(),
        some => some,
    };
    let name = match is_named {
        true => format!("{}: ", or(&machine.host)),
        false => String::new(),
    };
    format!(
        "{name}{}{guest}, CPUs {} (allowed {}), {} NUMA nodes, SMT {}, governor {governors}, kernel {}",
        or(&machine.cpu_model),
        or(&machine.cpus_online),
        or(&machine.cpus_allowed),
        machine.numa_nodes,
        flag(machine.smt),
        or(&machine.kernel),
    )
}

fn ranks(report: &Report) -> String {
    let environment = &report.environment;
    let launches = match environment.launches {
        1 => String::new(),
        launches => format!(", {launches} launches of each job in random order, medians"),
    };
    format!(
        "{}, bound: {}{launches}",
        environment.ranks, environment.binding
    )
}
