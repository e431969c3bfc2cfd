//! Files of other tools: what becomes of them, and which are refused.

use super::*;
use crate::stats::{Groups, Key, count, group::Summary, merge};
use crate::traffic::Model;

const DROP: Collectives = Collectives::Drop;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// The public samples, where they lie beside the project: they are not part of it.
fn public(name: &str) -> Option<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut found = folders.map(|folder| folder.join("shared/traces").join(name));
    let found = found.find(|folder| folder.exists());
    if found.is_none() {
        eprintln!("skipped: the public sample {name} is not here");
    }
    found
}

fn figures(scripts: &[Script], model: &str) -> Summary {
    figures_of(Key::PROGRAM, scripts, model)
}

fn figures_of(part: Key, scripts: &[Script], model: &str) -> Summary {
    let model: Model = model.parse().unwrap();
    let mut sum = Groups::new();
    for trace in model.traces(scripts, "test").unwrap() {
        merge(&mut sum, &count(&trace).unwrap());
    }
    sum[&part].summary()
}

fn receives_and_sends(scripts: &[Script]) -> Vec<(usize, usize)> {
    let both = |script: &Script| (script.receives(), script.sends());
    scripts.iter().map(both).collect()
}

#[test]
fn text_of_dumpi_becomes_steps_with_its_times() {
    let imported = ranks(&samples().join("dumpi"), dumpi::parse, DROP, false).unwrap();
    assert_eq!(receives_and_sends(&imported.scripts), [(4, 4); 3]);
    let left_out: Vec<_> = imported
        .left_out
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(left_out, [("MPI_Allreduce", 6), ("MPI_Barrier", 3)]);
    for model in ["causal", "posted", "shuffled", "random", "sendtime:L=100"] {
        let figures = figures(&imported.scripts, model);
        assert_eq!((figures.posts, figures.arrivals), (12, 12), "{model}");
        // Rank 0 receives twice from any source, all of them twice with any tag.
        assert_eq!((figures.any_source, figures.any_tag), (2, 6), "{model}");
        assert_eq!(figures.bytes.max, 128);
    }
    // The calls of a rank span 120 us, and its messages arrive after their latency.
    let span = figures(&imported.scripts, "sendtime:L=100").span_ns;
    assert!((100_000..200_000).contains(&span), "{span}");
}

/// The program's receives are what they are without; those of collectives are the library's.
#[test]
fn collectives_become_messages_of_the_library_in_exact_numbers() {
    let dumpi = ranks(
        &samples().join("dumpi"),
        dumpi::parse,
        Collectives::Expand,
        false,
    );
    let allprof = ranks(
        &samples().join("allprof"),
        allprof::parse,
        Collectives::Expand,
        false,
    );
    let (dumpi, allprof) = (dumpi.unwrap(), allprof.unwrap());
    let all = |imported: &Imported| imported.expanded.clone().into_iter().collect::<Vec<_>>();
    assert_eq!(all(&dumpi), [(Call::Barrier, 3), (Call::Allreduce, 6)]);
    assert_eq!(all(&allprof), [(Call::Bcast, 6)]);
    assert!(dumpi.left_out.is_empty() && allprof.left_out.is_empty());
    for model in ["causal", "posted", "shuffled", "random", "sendtime"] {
        // A barrier of three ranks in two steps; two reductions, each of a pair, with a message of the third there and back.
        for (imported, program, internal, bytes) in
            [(&dumpi, 12, 6 + 2 * 4, 4), (&allprof, 15, 3, 4)]
        {
            let own = figures_of(Key::INTERNAL, &imported.scripts, model);
            assert_eq!((own.posts, own.arrivals), (internal, internal), "{model}");
            assert_eq!((own.bytes.max, own.wildcard_share), (bytes, 0.0), "{model}");
            assert_eq!(figures(&imported.scripts, model).posts, program, "{model}");
        }
    }
}

/// Of one file alone nobody knows who the others are, and a group has ranks that no file names.
#[test]
fn collectives_that_cannot_be_expanded_are_left_out_or_refused_with_their_line() {
    let file = samples().join("dumpi/ring-0000.txt");
    let alone = ranks(&file, dumpi::parse, Collectives::Expand, false).unwrap();
    assert_eq!(
        (alone.expanded.len(), alone.left_out["MPI_Barrier"]),
        (0, 1)
    );
    let read = |text: &str| {
        let mut importer = Importer {
            rank: 1,
            ranks: Some(4),
            collectives: Collectives::Expand,
            ..Importer::default()
        };
        let lines = format!("{text}\nMPI_Finalize:9.0:9.5\n");
        allprof::parse(&lines, &mut importer).map(|()| importer.called)
    };
    for (line, kind, root, bytes, is_of_all) in [
        ("MPI_Barrier:5.0:0,1,4:6.0", Call::Barrier, 0, 0, true),
        ("MPI_Barrier:5.0:0,0,4:6.0", Call::Barrier, 0, 0, false),
        (
            "MPI_Bcast:5.0:99:3:2,4,4:2:0,1,4:6.0",
            Call::Bcast,
            2,
            12,
            true,
        ),
        (
            "MPI_Bcast:5.0:99:3:2,4,4:1:0,1,2:6.0",
            Call::Bcast,
            1,
            12,
            false,
        ),
        (
            "MPI_Reduce:5.0:99:98:3:2,8,8:1:3:0,1,4:6.0",
            Call::Reduce,
            3,
            24,
            true,
        ),
        (
            "MPI_Allreduce:5.0:99:98:3:2,8,8:1:0,1,4:6.0",
            Call::Allreduce,
            0,
            24,
            true,
        ),
        (
            "MPI_Allgather:5.0:99:1:2,4,4:98:5:2,4,4:0,1,4:6.0",
            Call::Allgather,
            0,
            20,
            true,
        ),
        (
            "MPI_Alltoall:5.0:99:1:2,4,4:98:5:2,4,4:0,1,4:6.0",
            Call::Alltoall,
            0,
            20,
            true,
        ),
    ] {
        let called = read(line).unwrap();
        let what = Collective {
            kind,
            root,
            context: 0,
            bytes,
            is_of_all,
        };
        assert_eq!(called.len(), 1, "{line}");
        assert_eq!((&called[0].what, called[0].line), (&what, 1), "{line}");
    }
    for (line, told) in [
        (
            "MPI_Bcast:5.0:99:3:6.0",
            "line 1: MPI_Bcast has no argument",
        ),
        (
            "MPI_Bcast:5.0:99:3:2,4,4:9:0,1,4:6.0",
            "line 1: it is of rank 9, and there are files of 4 ranks",
        ),
        ("MPI_Barrier:5.0:x,1,4:6.0", "line 1: 'x' is no number"),
    ] {
        let refused = read(line).unwrap_err();
        assert!(refused.starts_with(told), "{refused}");
    }
}

#[test]
fn lines_of_liballprof_become_steps() {
    let imported = ranks(&samples().join("allprof"), allprof::parse, DROP, false).unwrap();
    assert_eq!(receives_and_sends(&imported.scripts), [(6, 9), (9, 6)]);
    assert_eq!(imported.left_out["MPI_Bcast"], 6);
    // The message whose receive was posted second comes first.
    let figures = figures(&imported.scripts, "shuffled");
    assert_eq!(
        (figures.receives.hit_depth.max, figures.bytes.max),
        (2, 768)
    );
    let sendtime = super::tests::figures(&imported.scripts, "sendtime");
    assert_eq!(sendtime.arrivals, 15);
}

#[test]
fn a_schedule_keeps_its_dependencies() {
    let text = read(&samples().join("ring.goal")).unwrap();
    let imported = goal::parse(&text, 0).unwrap().0;
    assert_eq!(
        receives_and_sends(&imported.scripts),
        [(1, 1), (2, 1), (1, 2)]
    );
    let causal = figures(&imported.scripts, "causal");
    assert_eq!((causal.posts, causal.arrivals, causal.any_both), (4, 4, 1));
    let split = goal::parse(&text.replace("tag 5", "tag 16777221"), 8)
        .unwrap()
        .0;
    let model: Model = "posted".parse().unwrap();
    let traces = model.traces(&split.scripts, "test").unwrap();
    let message = traces[0]
        .calls
        .iter()
        .find_map(|call| call.event.message())
        .unwrap();
    assert_eq!((message.context.as_u16(), message.tag.as_i32()), (1, 5));
    // Times are none of a schedule's.
    let refused = "sendtime"
        .parse::<Model>()
        .unwrap()
        .traces(&imported.scripts, "test");
    assert!(refused.unwrap_err().to_string().contains("here are none"));
}

#[test]
fn what_is_wrong_with_a_schedule_is_told_with_its_line() {
    let whole = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3 cpu 1\n}\nrank 1 {\nb: recv 8b from 0 tag 3\n}\n";
    assert_eq!(goal::parse(whole, 0).unwrap().1, None);
    for (text, told) in [
        ("", "it has no line 'num_ranks COUNT'"),
        ("# nothing\n", "it has no line 'num_ranks COUNT'"),
        ("rubbish\n", "line 1: 'rubbish' is in no rank"),
        (
            "num_ranks 99999999999",
            "line 1: '99999999999' is no number of ranks",
        ),
        ("num_ranks 0", "line 1: '0' is no number of ranks"),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}",
            "rank 0: its operations require each other in a circle",
        ),
    ] {
        let refused = goal::parse(text, 0).unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
    for (text, told) in [
        ("num_ranks 2\nrank 2 {", "line 2: there are 2 ranks"),
        (
            "num_ranks 1\nnum_ranks 1",
            "line 2: 'num_ranks 1' is in no rank",
        ),
        (
            "num_ranks 1\nrank 0 {\nl: jump",
            "line 3: 'l: jump' is no operation",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1 requires l2",
            "line 3: no operation is called 'l1'",
        ),
        ("num_ranks 1\ncalc 5", "line 2: 'calc 5' is in no rank"),
        ("num_ranks 1\n}", "line 2: '}' is in no rank"),
        (
            "num_ranks 2\nrank 0 {\nrank 1 {",
            "line 3: rank 1 begins within rank 0",
        ),
        (
            "num_ranks 16\nrank 0 {\na: recv 8b from 99 tag 3",
            "line 3: from rank 99: there are 16 ranks",
        ),
        (
            "num_ranks 16\nrank 0 {\na: send 8b to 99 tag 3",
            "line 3: to rank 99: there are 16 ranks",
        ),
        // Cut within a line, a block, and between blocks.
        (
            "num_ranks 1\nrank 0 {\na: send 8b to 0 ta",
            "line 3: 'a: send 8b to 0 ta'",
        ),
        (
            "num_ranks 1\nrank 0 {\na: send 8b to 0 tag",
            "line 3: 'a: send 8b to 0 tag'",
        ),
        (
            "num_ranks 1\nrank 0 {\na: recv 8b",
            "line 3: 'a: recv 8b' is no operation",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1 cp",
            "line 3: 'a: calc 1 cp' is no operation",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1",
            "line 3: the file ends within rank 0",
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 1\n}\n",
            "line 5 is missing: the file ends without rank 1",
        ),
    ] {
        let (_, wrong) = goal::parse(text, 0).unwrap();
        let wrong = wrong.unwrap_or_else(|| panic!("{text}: it was accepted"));
        assert!(wrong.contains(told), "{wrong}");
    }
}

fn refused(parse: fn(&str, &mut Importer) -> Result<(), String>, text: &str) -> String {
    let mut importer = Importer {
        ranks: Some(16),
        ..Importer::default()
    };
    let refused = parse(text, &mut importer);
    refused.map_or_else(|why| why, |()| panic!("it was accepted: {text}"))
}

/// Every way to cut a text behind a line, but its last ones in which nothing is called.
fn is_refused_at_every_line(
    parse: fn(&str, &mut Importer) -> Result<(), String>,
    text: &str,
    last: &str,
) {
    assert_eq!(parse(text, &mut Importer::default()), Ok(()));
    let end = text.rfind(last).unwrap();
    for (place, _) in text.match_indices('\n').filter(|(place, _)| *place < end) {
        let why = refused(parse, &text[..place]);
        assert!(why.starts_with("line "), "{why}");
    }
}

#[test]
fn what_is_wrong_with_a_text_of_dumpi_is_told_with_its_line() {
    let begin = "MPI_Recv entering at walltime 1.5, cputime 0.1 seconds in thread 0.\n";
    let end = "MPI_Recv returning at walltime 1.6, cputime 0.1 seconds in thread 0.\n";
    let arguments = "int count=1\nMPI_Datatype datatype=9 (MPI_INT)\nint tag=3\nMPI_Comm comm=2 (MPI_COMM_WORLD)\n";
    for (text, told) in [
        (
            String::new(),
            "line 1 is missing: the file ends without MPI_Finalize",
        ),
        (
            "rubbish\n".to_owned(),
            "line 1: 'rubbish' is nothing that dumpi2ascii prints",
        ),
        (
            "MPI_Send called 1 times and ignored 0 times\n".to_owned(),
            "line 1: 'MPI_Send called 1 times and ignored 0 ti...' is nothing",
        ),
        (
            begin.replace("Recv", "Foo"),
            "line 1: MPI has no call 'MPI_Foo'",
        ),
        (
            format!("{begin}rubbish"),
            "line 2: 'rubbish' is no argument of MPI_Recv",
        ),
        (
            format!("{begin}{begin}"),
            "line 2: MPI_Recv begins within MPI_Recv",
        ),
        (
            format!("{begin}{}", end.replace("Recv", "Send")),
            "line 2: MPI_Send returns and did not begin",
        ),
        (
            format!("{begin}{arguments}{end}"),
            "line 6: MPI_Recv: it has no argument 'source'",
        ),
        (
            format!("{begin}{arguments}int source=99\n{end}"),
            "line 7: MPI_Recv: it is of rank 99, and there are files of 16 ranks",
        ),
        (
            format!("{begin}{arguments}int source=-7\n{end}"),
            "line 7: MPI_Recv: no rank has the number -7",
        ),
        (
            format!("{begin}{arguments}"),
            "line 5: the file ends within MPI_Recv",
        ),
        (
            "MPI_Recv entering at walltime 1.5".to_owned(),
            "line 1: it ends behind '1.5': the line was cut",
        ),
    ] {
        let why = refused(dumpi::parse, &text);
        assert!(why.starts_with(told), "{why}");
    }
    let text = read(&samples().join("dumpi/ring-0000.txt")).unwrap();
    is_refused_at_every_line(dumpi::parse, &text, "MPI_Finalize returning");
}

#[test]
fn what_is_wrong_with_lines_of_liballprof_is_told_with_its_number() {
    for (text, told) in [
        ("", "line 1 is missing: the file ends without MPI_Finalize"),
        (
            "# a\n# b",
            "line 3 is missing: the file ends without MPI_Finalize",
        ),
        ("rubbish", "line 1: MPI has no call 'rubbish'"),
        ("MPI_Foo:1:2", "line 1: MPI has no call 'MPI_Foo'"),
        ("MPI_Barrier", "line 1: MPI_Barrier has no times"),
        (
            "MPI_Barrier:5.0:0,0,4:4.0",
            "line 1: MPI_Barrier ends before it begins, at 4.0",
        ),
        ("# a\nMPI_Recv:1.0:2:x", "line 2: 'x' is no time"),
        (
            "MPI_Recv:1.0:2:1:2,4,4:0:3:0,1,4:9",
            "line 1: MPI_Recv has no argument 9",
        ),
        (
            "MPI_Recv:1.0:2:1:2,4,4:99:3:0,1,16:7:9.0",
            "line 1: MPI_Recv is of rank 99, and its communicator has 16",
        ),
        (
            "MPI_Send:1.0:2:1:2,4,4:16:3:0,1,99:9.0",
            "line 1: it is of rank 16, and there are files of 16 ranks",
        ),
    ] {
        let why = refused(allprof::parse, text);
        assert!(why.contains(told), "{why}");
    }
    let text = read(&samples().join("allprof/pmpi-trace-rank-0.txt")).unwrap();
    is_refused_at_every_line(allprof::parse, &text, "MPI_Finalize");
}

/// A rank's last messages of a ring are missing.
#[test]
fn what_comes_before_a_cut_is_used_with_partial_and_the_cut_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..3 {
        let name = format!("ring-000{rank}.txt");
        let text = read(&samples().join("dumpi").join(&name)).unwrap();
        let end = match rank {
            1 => text.rfind("MPI_Isend entering").unwrap(),
            _ => text.len(),
        };
        fs::write(folder.path().join(name), &text[..end]).unwrap();
    }
    let cut = ranks(folder.path(), dumpi::parse, DROP, false).unwrap_err();
    let told = cut.to_string();
    assert_eq!(cut.exit_status(), 2);
    assert!(
        told.contains("ring-0001.txt: rank 1: line ") && told.contains("--partial"),
        "{told}"
    );
    let imported = ranks(folder.path(), dumpi::parse, DROP, true).unwrap();
    assert_eq!(
        receives_and_sends(&imported.scripts),
        [(4, 4), (3, 2), (4, 4)]
    );
    assert!(imported.cut.unwrap().starts_with("rank 1: line "));
    for model in ["causal", "posted", "shuffled", "random"] {
        let figures = figures(&imported.scripts, model);
        // Rank 2 waits for the message that is missing, and neither posts nor sends its last.
        assert_eq!((figures.posts, figures.arrivals), (10, 9), "{model}");
    }
    // What has no call at all is of another kind, and two files are not of one rank.
    fs::write(folder.path().join("ring-0001.txt"), "rubbish\n").unwrap();
    assert!(ranks(folder.path(), dumpi::parse, DROP, true).is_err());
    fs::write(folder.path().join("other-0001.txt"), "rubbish\n").unwrap();
    let told = ranks(folder.path(), dumpi::parse, DROP, true).unwrap_err();
    assert!(
        told.to_string().contains("two files are of rank 1"),
        "{told}"
    );
    let file = folder.path().join("cut.goal");
    let text = read(&samples().join("ring.goal")).unwrap();
    fs::write(&file, &text[..text.find("rank 2 {").unwrap()]).unwrap();
    let told = schedule(&file, 0, false).unwrap_err().to_string();
    assert!(
        told.contains("cut.goal: line 16 is missing: the file ends without rank 2"),
        "{told}"
    );
    let imported = schedule(&file, 0, true).unwrap();
    let figures = figures(&imported.scripts, "causal");
    assert_eq!((figures.posts, figures.arrivals), (3, 2));
    let refused = ranks(&samples(), dumpi::parse, DROP, false)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("for each rank from 0"), "{refused}");
}

#[test]
fn a_rank_that_waits_for_ever_is_named_with_its_step() {
    let text = "num_ranks 2\nrank 0 {\na: recv 8b from 1 tag 3\n}\nrank 1 {\n}";
    let imported = goal::parse(text, 0).unwrap().0;
    for model in ["causal", "posted", "shuffled", "random"] {
        let model: Model = model.parse().unwrap();
        let refused = model
            .traces(&imported.scripts, "test")
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains(
                "rank 0 waits for ever in step 2 (line 3), for a message that is never sent"
            ),
            "{refused}"
        );
    }
}

/// 4 ranks with 1,440 receives, 8 pairs of source and tag, and no wildcards.
#[test]
fn the_public_sweep_has_the_figures_that_are_known_of_it() {
    let Some(folder) = public("allprof-sweep3d-2x2") else {
        return;
    };
    let imported = ranks(&folder, allprof::parse, DROP, false).unwrap();
    assert_eq!(receives_and_sends(&imported.scripts), [(1440, 1440); 4]);
    for model in ["causal", "posted", "random", "sendtime"] {
        let figures = figures(&imported.scripts, model);
        assert_eq!((figures.posts, figures.pairs), (4 * 1440, 8), "{model}");
        assert_eq!((figures.tags, figures.wildcard_share), (8, 0.0), "{model}");
    }
    // 4 broadcasts, 3 barriers and its reductions, of 4 ranks.
    let expanded = ranks(&folder, allprof::parse, Collectives::Expand, false).unwrap();
    let reductions = expanded.expanded[&Call::Allreduce] / 4;
    assert_eq!(expanded.expanded[&Call::Bcast], 4 * 4);
    assert_eq!(expanded.expanded[&Call::Barrier], 4 * 3);
    let internal = figures_of(Key::INTERNAL, &expanded.scripts, "causal");
    assert_eq!(internal.posts, 4 * 3 + 3 * 8 + reductions * 8);
}

/// The calls are those that its own file counts.
#[test]
fn the_public_text_of_dumpi_has_the_calls_that_are_known_of_it() {
    let Some(folder) = public("dumpi") else {
        return;
    };
    // One rank alone was printed as text.
    let imported = ranks(
        &folder.join("testtrace-0000.txt"),
        dumpi::parse,
        DROP,
        false,
    )
    .unwrap();
    let counts = read(&folder.join("callcounts-single.txt")).unwrap();
    let called = |name: &str| -> u64 {
        let mut lines = counts.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} called ")));
        line.unwrap().split(' ').nth(2).unwrap().parse().unwrap()
    };
    let [(receives, sends)] = receives_and_sends(&imported.scripts)[..] else {
        panic!("one rank");
    };
    assert_eq!(
        (receives as u64, sends as u64),
        (called("MPI_Recv"), called("MPI_Isend"))
    );
    for name in ["MPI_Barrier", "MPI_Allreduce"] {
        assert_eq!(imported.left_out[name], called(name), "{name}");
    }
}
