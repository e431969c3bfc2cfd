//! Tools of peers as carriers of `tagwire bench`. What stands in for them here prints what they print.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A client finds nobody at first, as where its server does not listen yet. A server of `bogus` transports fails.
const PERFTEST: &str = r#"#!/bin/sh
echo "$UCX_TLS $*" >> "$LOG"
case "$UCX_TLS $*" in
bogus*) echo "no such transport"; exit 255 ;;
*127.0.0.1*) ;;
*) exit 0 ;;
esac
[ -e "$LOG.listens" ] || { touch "$LOG.listens"; echo "connect() failed"; exit 1; }
echo "|   Test  | # iterations | 50.0%ile | average | overall |"
echo "   700   1.0   2.0   3.5   4.0   1000.0   6.0   7.5"
"#;

fn bench(prefix: &Path, arguments: &[&str], detail: &str) -> Output {
    let tool = format!("tool:ucx_perftest@{}{detail}", prefix.display());
    Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .args(["bench", arguments[0], "-t", &tool, "--bind", "none"])
        .args(&arguments[1..])
        .args(["--format", "json"])
        .env("LOG", prefix.join("log"))
        .output()
        .unwrap()
}

#[test]
fn the_last_line_of_a_tool_is_a_row() {
    let prefix = tempfile::tempdir().unwrap();
    fs::create_dir(prefix.path().join("bin")).unwrap();
    for (name, text) in [
        ("ucx_perftest", PERFTEST),
        ("ucx_info", "#!/bin/sh\necho '# Library version: 1.22.0'\n"),
    ] {
        let file = prefix.path().join("bin").join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (test, key, value) in [
        ("latency", "latency_us", 3.5),
        ("bandwidth", "bandwidth_mb_s", 1048.576),
        ("message-rate", "rate_msg_s", 7.5),
    ] {
        let output = bench(
            prefix.path(),
            &[test, "-m", "8,1M", "-i", "700", "--launches", "2"],
            ":tcp,self",
        );
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap();
        let sizes: Vec<_> = rows
            .iter()
            .map(|row| (row["launch"].as_u64(), row["size"].as_u64()))
            .collect();
        let expected = [(0, 8), (0, 1 << 20), (1, 8), (1, 1 << 20)];
        assert_eq!(
            sizes,
            expected.map(|(launch, size)| (Some(launch), Some(size)))
        );
        for row in rows {
            assert_eq!(row[key], value);
            assert_eq!(row["transport"], "tool:ucx_perftest:tcp,self");
            assert_eq!(row["library"], "UCX 1.22.0, ucx_perftest");
        }
    }
    let log = fs::read_to_string(prefix.path().join("log")).unwrap();
    let client = log.lines().find(|line| line.contains("127.0.0.1")).unwrap();
    assert!(
        client.starts_with("tcp,self -p ")
            && client.ends_with(" 127.0.0.1 -s 8 -n 700 -f -t tag_lat"),
        "{client}"
    );

    for (arguments, detail, reason) in [
        (&["latency", "-m", "8"][..], ":bogus", "no such transport"),
        (
            &["barrier"],
            "",
            "has no barrier; it has latency, bandwidth, message-rate, get, put",
        ),
        (&["latency", "-c"], "", "none of the other options"),
        (&["latency", "--layers"], "", "none of the other options"),
        (
            &["message-rate", "--threads", "2"],
            "",
            "two ranks of one thread",
        ),
        (
            &["latency"],
            "/nowhere",
            "say where it is installed: tool:ucx_perftest@PREFIX",
        ),
    ] {
        let refused = bench(prefix.path(), arguments, detail);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && text.contains(reason),
            "{arguments:?}: {text}"
        );
    }
}
