//! Lines that people type, and what they are in the words of `tagwire run`.

use super::*;

fn asked(line: &str) -> Result<Asked, String> {
    let all = crate::cli::command(&tagwire::settings::registry());
    let run = all.find_subcommand("run").unwrap();
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    translate(run, &words)
}

/// Returns the programs as lines, and the notes.
fn job(line: &str) -> (Vec<String>, Vec<String>) {
    match asked(line) {
        Ok(Asked::Job(job)) => {
            let words = |program: &Vec<OsString>| program.join(OsStr::new(" "));
            let lines = job.programs.iter().map(words);
            let lines = lines.map(|line| line.into_string().unwrap());
            (lines.collect(), job.notes)
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn synonyms_are_taken() {
    for (line, same) in [
        ("-n 2 ./a -n 3 -V", "--ranks 2 -- ./a -n 3 -V"),
        ("-np 2 -- a", "--ranks 2 -- a"),
        ("--np=2 a", "--ranks 2 -- a"),
        ("-c 2 a", "--ranks 2 -- a"),
        ("-n2 a", "--ranks 2 -- a"),
        ("-n 2 -wdir /tmp a", "--ranks 2 --wdir /tmp -- a"),
        ("-n 2 -wd /tmp a", "--ranks 2 --wdir /tmp -- a"),
        ("-n 2 -x A=b=c -x D a", "--ranks 2 -x A=b=c -x D -- a"),
        ("-n 2 -env A b a", "--ranks 2 -x A=b -- a"),
        ("-n 2 -genv A b -genv C=d a", "--ranks 2 -x A=b -x C=d -- a"),
        ("-n 2 -l a", "--ranks 2 --tag-output -- a"),
        ("-n 2 -prepend-rank a", "--ranks 2 --tag-output -- a"),
        (
            "-n 2 --output tag,dir=d a",
            "--ranks 2 --tag-output --output-dir d -- a",
        ),
        (
            "-n 2 --output-filename d a",
            "--ranks 2 --output-dir d -- a",
        ),
        ("-n 2 -timeout 5 a", "--ranks 2 --timeout 5 -- a"),
        ("-n 2 --bind-to core a", "--ranks 2 --bind core -- a"),
        (
            "-n 2 -bind-to core:overload-allowed a",
            "--ranks 2 --bind core -- a",
        ),
        ("-n 2 -bind-to user:0,1 a", "--ranks 2 --bind 0,1 -- a"),
        ("-n 2 --cpu-list 0-3 a", "--ranks 2 --bind 0-3 -- a"),
        ("-n 2 -s all a", "--ranks 2 --stdin all -- a"),
        ("-n 2 --stdin none a", "--ranks 2 --stdin none -- a"),
        (
            "-n 2 -disable-auto-cleanup a",
            "--ranks 2 --on-failure continue -- a",
        ),
        (
            "-n 2 -t shm --coll-check on a",
            "--ranks 2 --transport shm --coll-check on -- a",
        ),
        ("-n 2 -host localhost,localhost:4 a", "--ranks 2 -- a"),
        ("-ppn 2 a", "--ranks 2 -- a"),
        (
            "-n 8 -ppn 2 -genvall --oversubscribe --allow-run-as-root a",
            "--ranks 8 -- a",
        ),
        ("-n 8 -soft 2,5:7 a", "--ranks 7 -- a"),
    ] {
        assert_eq!(job(line), (vec![same.to_owned()], Vec::new()), "{line}");
    }
}

#[test]
fn what_has_no_effect_is_said_once() {
    let line =
        "-n 2 --mca btl self --mca pml ob1 --map-by core --bind-to socket --report-bindings a";
    let said = "--mca, --map-by, --bind-to socket, --report-bindings: no effect here";
    assert_eq!(
        job(line),
        (vec!["--ranks 2 -- a".to_owned()], vec![said.to_owned()])
    );
    let said = "1 rank of a, since there is no -n";
    assert_eq!(
        job("a"),
        (vec!["--ranks 1 -- a".to_owned()], vec![said.to_owned()])
    );
}

#[test]
fn several_programs_have_their_own_ranks_folders_and_variables() {
    let line = "-l -genv G g -n 1 -wdir d -env A b a -n 7 : -l -n 2 -env A c b x";
    let programs = [
        "--ranks 1 -x G=g --tag-output --wdir d -x A=b -- a -n 7",
        "--ranks 2 -x G=g -x A=c -- b x",
    ];
    assert_eq!(
        job(line),
        (programs.map(str::to_owned).to_vec(), Vec::new())
    );
}

#[test]
fn what_is_not_understood_is_named_whole() {
    for (line, said) in [
        (
            "-n 2 -gneev A b a",
            "-gneev is not known here, did you mean '--genv'?: 'mpiexec --help' lists the options",
        ),
        (
            "-n 2 -timeuot 5 a",
            "-timeuot is not known here, did you mean '--timeout'?: 'mpiexec --help' lists the options",
        ),
        (
            "-n 2 -outfile-pattern o-%r a",
            "-outfile-pattern is not known here: '--output-dir DIR' writes what rank N says to DIR/rank-N.txt",
        ),
        (
            "-n 2 -envnone a",
            "-envnone is not known here: ranks have this command's environment: 'env -i NAME=VALUE mpiexec ...' starts it with less",
        ),
        ("-n 2 -host", "-host: its value is missing"),
        ("-n 2 -env A", "-env: its value is missing"),
        ("-n 2 -l=3 a", "-l takes no value"),
        ("-n 2", "which program? mpiexec -n N PROGRAM [ARGUMENTS]"),
        ("-n 2 a :", "':' number 1: a program is missing beside it"),
        (
            "-n 4 -soft 5:9 a",
            "-soft 5:9: no number of at most 4 ranks in it",
        ),
        (
            "-n 4 -arch vax a",
            &format!("-arch vax: this host is {}", env::consts::ARCH),
        ),
        (
            "-n 2 -host node-that-is-not a",
            "-host names 'node-that-is-not', which is not this host: ranks are started here; other hosts bring theirs by --listen and --connect ('mpiexec --help'), or start the program by srun or prterun",
        ),
    ] {
        assert_eq!(asked(line), Err(said.to_owned()), "{line}");
    }
    assert_eq!(asked("-n 2 --help a"), Ok(Asked::Help));
    for line in ["-V", "--version", "-version"] {
        assert_eq!(asked(line), Ok(Asked::Version), "{line}");
    }
}

#[test]
fn the_numbers_of_soft_are_triplets() {
    for (soft, most, largest_of) in [
        ("4", 9, Some(4)),
        ("4", 3, None),
        ("2,5:7", 9, Some(7)),
        ("2,5:7", 6, Some(6)),
        ("2,5:7", 4, Some(2)),
        ("1:10:3", 9, Some(7)),
        ("10:1:-3", 9, Some(7)),
        ("10:1:-3", 10, Some(10)),
        ("10:3:-4", 5, None),
        ("0", 5, None),
        ("x", 5, None),
        ("1:2147483647", 5, Some(5)),
        ("1:5:0", 5, None),
    ] {
        assert_eq!(largest(soft, most), largest_of, "{soft} of at most {most}");
    }
}

#[test]
fn a_file_may_have_the_programs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "# two\n-n 1 \\\n  a b\n\n-n 2 c\n").unwrap();
    let line = format!("-configfile {}", file.path().display());
    let programs = ["--ranks 1 -- a b", "--ranks 2 -- c"].map(str::to_owned);
    assert_eq!(job(&line), (programs.to_vec(), Vec::new()));
    let alone = asked(&format!("-n 2 {line}"));
    assert_eq!(
        alone,
        Err("--configfile stands alone: the file has all programs".to_owned())
    );
    std::fs::write(file.path(), &line).unwrap();
    assert!(asked(&line).unwrap_err().ends_with("a --configfile in it"));
}
