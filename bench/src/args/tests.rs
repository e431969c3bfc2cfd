use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn parse(line: &str) -> Result<BenchArgs, String> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let args = Command::try_parse_from(words)
        .map_err(|error| error.to_string())?
        .bench;
    args.check().map_err(|error| error.to_string())?;
    Ok(args)
}

#[test]
fn the_short_names_are_those_of_cluster_scripts() {
    let args =
        parse("bandwidth -n 2 -t shm -p ob1 -m 8:64 -i 10 -x 2 -W 16 -c -o out.json").unwrap();
    assert_eq!(args.size_list().as_slice(), [8, 16, 32, 64]);
    assert_eq!(
        (args.iterations, args.warmup, args.window),
        (Some(10), Some(2), Some(16))
    );
    assert!(args.validate);
}

#[test]
fn iterations_have_the_name_that_other_tools_give_them() {
    assert_eq!(parse("latency --iters 10").unwrap().iterations, Some(10));
}

#[test]
fn several_transports_by_comma_or_repeated() {
    let config = Config::defaults(&tagwire_base::Registry::new(&[tagwire_rails::SETTINGS]));
    let paths = |line: &str| parse(line).unwrap().transports(&config);
    let both = [
        TransportChoice::Ours("shm".to_owned()),
        TransportChoice::Mpi(Some("/opt/mpi".into())),
    ];
    assert_eq!(paths("latency -t shm,mpi:/opt/mpi"), both);
    assert_eq!(paths("latency -t shm -t mpi:/opt/mpi"), both);
}

#[test]
fn percentiles_have_a_default_list() {
    let list = |line: &str| parse(line).unwrap().percentiles.unwrap();
    assert_eq!(list("latency -z").as_slice(), [50.0, 90.0, 99.0, 99.9]);
    assert_eq!(list("latency -z 50,99.99").as_slice(), [50.0, 99.99]);
    assert_eq!(Percentiles::key(99.9), "p99_9_us");
    assert_eq!(Percentiles::key(50.0), "p50_us");
    assert!(
        parse("latency -z 101")
            .unwrap_err()
            .contains("no percentile")
    );
}

#[test]
fn memory_is_of_our_transports() {
    let memory = |line: &str| parse(line).map(|args| args.memory);
    assert_eq!(memory("latency"), Ok(None));
    let arena = Ok(Some(MemoryChoice::Arena));
    assert_eq!(memory("availability --memory arena"), arena);
    assert_eq!(memory("bandwidth --raw --memory arena"), arena);
    assert_eq!(
        memory("latency -t mpi --memory heap"),
        Ok(Some(MemoryChoice::Heap))
    );
    for line in [
        "latency -t mpi --memory arena",
        "partitioned --memory arena",
    ] {
        assert!(parse(line).unwrap_err().contains("--memory"), "{line}");
    }
}

#[test]
fn sizes_default_to_powers_of_two() {
    let sizes = parse("latency").unwrap().size_list();
    assert_eq!(
        (sizes.as_slice()[0], sizes.largest(), sizes.as_slice().len()),
        (1, 4 << 20, 23)
    );
    assert_eq!(
        parse("latency --posted 9").unwrap().size_list().as_slice(),
        [8]
    );
}

#[test]
fn durations_are_seconds_or_have_a_unit() {
    let timeout = |text: &str| parse(&format!("latency --timeout {text}")).unwrap().timeout;
    for text in ["1.5", "1.5s", "1500ms", "1500000us"] {
        assert_eq!(timeout(text), Some(Duration::from_millis(1500)), "{text}");
    }
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    for (line, reason) in [
        ("latency -n 0", "0 is not in 1..=65536"),
        ("latency -n 3", "latency runs on exactly 2 ranks, not on 3"),
        ("message-rate -n 3", "an even number of ranks"),
        ("ring -n 1", "at least 2 ranks"),
        ("latency -m 2T", "over 2^40"),
        ("latency -m 64:8", "goes backwards"),
        ("latency -t shn", "did you mean 'shm'?"),
        ("latency -t mpi:", "lacks the path"),
        ("latency -t shm,shm", "given twice"),
        ("latencyy", "'latency'"),
        ("latency --iteration 5", "'--iterations'"),
        ("latency -i 0", "0 is not in 1.."),
        ("latency -W 3", "--window has no meaning for latency"),
        ("ring --advise", "--advise has no meaning for ring"),
        ("ring --seconds 3", "--seconds has no meaning for ring"),
        ("latency --raw -t mpi", "transport 'mpi' has none"),
        ("latency --raw --layers", "cannot be used with"),
        ("latency --raw --posted 5", "--posted needs a pml"),
        ("latency --posted 5 --unexpected 5", "cannot be used with"),
        (
            "latency --posted 5 --wild 101",
            "--wild is in percent of the receives: not 101",
        ),
        ("latency --wild 5", "--posted"),
        ("latency --posted 5,5", "5 is given twice"),
        ("latency --position head", "--position needs a queue"),
        (
            "latency --posted 5 --position front",
            "'front' is none of head, middle, tail, shuffled, and no place, counted from 1",
        ),
        (
            "latency --posted 16,5 --position head,7",
            "--position 7 lies behind the last entry of --posted 5, which has 6 with the one that matches",
        ),
        (
            "latency --unexpected 5 --position 7",
            "--position 7 lies behind the last entry of --unexpected 5",
        ),
        ("latency --spread tags", "--spread needs a queue"),
        (
            "latency --posted 5 --spread source",
            "'source' is none of tags, sources; did you mean 'sources'?",
        ),
        (
            "latency --posted 5 --spread sources",
            "latency with --spread sources runs on at least 3 ranks, not on 2",
        ),
        (
            "latency -n 4 --posted 5 --spread tags",
            "latency runs on exactly 2 ranks, not on 4",
        ),
        (
            "multi-latency -n 2 --posted 5 --spread sources",
            "multi-latency with --spread sources runs on an even number (4 or more) of ranks, not on 2",
        ),
        (
            "latency -n 4 --posted 5 --spread tags,sources --position head",
            "--spread sources has no meaning with --position",
        ),
        (
            "latency -n 4 --posted 5 --spread sources --raw",
            "--posted needs a pml",
        ),
        (
            "bandwidth --spread sources",
            "--spread has no meaning for bandwidth",
        ),
        (
            "latency --unexpected 5 --position head --wild 5",
            "--posted",
        ),
        (
            "concurrent-latency --engine list,bins",
            "--engine takes one engine there",
        ),
        ("latency --mpiexec /bin/true", "for transport 'mpi'"),
        ("idle --seconds 0", "not between"),
        ("idle --seconds 0.5ms", "not between"),
        ("latency --timeout 5h", "a duration such as"),
        ("latency --side send", "--side has no meaning for latency"),
        ("availability --side left", "'left'"),
        ("availability --raw", "availability needs a pml"),
        ("overlap -z", "--percentiles has no meaning for overlap"),
        ("latency -p ob2", "'ob1'"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(reason), "{line}: {error}");
    }
}

#[test]
fn what_follows_a_comma_and_is_no_transport_is_a_detail() {
    let named = |text: &str| -> Result<Vec<String>, String> {
        let list: Transports = text.parse()?;
        Ok(list.0.iter().map(ToString::to_string).collect())
    };
    assert_eq!(named("shm,null").unwrap(), ["shm", "null"]);
    assert_eq!(named("mpi:/a,b,shm").unwrap(), ["mpi", "shm"]);
    assert!(named("shm,b").unwrap_err().contains("unknown transport"));
    assert!(
        named("shm:x")
            .unwrap_err()
            .contains("takes nothing after it")
    );
    assert!(
        named("shm+nul")
            .unwrap_err()
            .contains("did you mean 'null'")
    );
}
