//! The twin of text of a trace: `ns,call,matched,source,tag,context,bytes,entry`.

use std::fmt::Write as _;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::trace::{Event, HEADER, Header, Size};
use tagwire_matching::{ContextAssertions, Envelope, Pattern};

use super::{Call, Parsed, Trace};

/// The names of the columns.
const COLUMNS: &str = "ns,call,matched,source,tag,context,bytes,entry";

pub(super) fn write(trace: &Trace) -> String {
    let page = trace.header.to_page();
    let end = page.iter().position(|byte| *byte == 0);
    let head = String::from_utf8_lossy(&page[..end.unwrap_or(HEADER)]);
    let mut text = String::new();
    for line in head.lines() {
        let _ = writeln!(text, "# {line}");
    }
    let _ = writeln!(text, "{COLUMNS}");
    for call in &trace.calls {
        let _ = writeln!(text, "{}", line(call));
    }
    if trace.lost > 0 {
        let _ = writeln!(text, ",lost,,,,,,{}", trace.lost);
    }
    text
}

fn line(call: &Call) -> String {
    let Call { at, event, matched } = call;
    let matched = u8::from(*matched);
    let selected = |name: &str, pattern: &Pattern| {
        let source = pattern.source.rank();
        let source = source.map_or_else(|| "any".to_owned(), |rank| rank.to_string());
        let tag = pattern.tag.tag();
        let tag = tag.map_or_else(|| "any".to_owned(), |tag| tag.as_i32().to_string());
        let context = pattern.context.as_u16();
        format!("{at},{name},{matched},{source},{tag},{context},,")
    };
    let message = |name: &str, of: &Envelope, bytes: &str| {
        let (tag, context) = (of.tag.as_i32(), of.context.as_u16());
        format!(
            "{at},{name},{matched},{},{tag},{context},{bytes},",
            of.source
        )
    };
    match event {
        Event::Post(pattern) => selected("post", pattern),
        Event::Arrive(envelope, size) => message("arrive", envelope, &size.bytes().to_string()),
        Event::ArriveExpected(envelope) => message("arrive_expected", envelope, ""),
        Event::Expects(envelope) => message("expects", envelope, ""),
        Event::Probe(pattern) => selected("probe", pattern),
        Event::Claim(pattern) => selected("claim", pattern),
        Event::Cancel(entry) => format!("{at},cancel,{matched},,,,,{entry}"),
        Event::Discard(entry) => format!("{at},discard,{matched},,,,,{entry}"),
        Event::Promise(context, promise) => {
            let words: Vec<&str> = promises(promise)
                .into_iter()
                .filter_map(|(word, given)| given.then_some(word))
                .collect();
            let context = context.as_u16();
            format!("{at},promise,{matched},,,{context},,{}", words.join(" "))
        }
        other => unreachable!("{other:?} is no call"),
    }
}

fn promises(promise: &ContextAssertions) -> [(&'static str, bool); 3] {
    [
        ("no_any_source", promise.no_any_source),
        ("no_any_tag", promise.no_any_tag),
        ("overtaking", promise.overtaking),
    ]
}

/// Reads a text: its header, its columns, its lines.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let mut page = String::new();
    for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
        let _ = writeln!(page, "{line}");
    }
    let mut bytes = page.into_bytes();
    bytes.resize(bytes.len().max(HEADER), 0);
    let header = Header::from_page(&bytes).map_err(|error| error.to_string())?;
    let mut trace = Trace {
        header,
        calls: Vec::new(),
        lost: 0,
    };
    let lines = text.lines().enumerate();
    let mut lines = lines.skip_while(|(_, line)| line.starts_with("# "));
    match lines.next() {
        Some((_, COLUMNS)) => {}
        _ => return Err(format!("its columns are not {COLUMNS}")),
    }
    for (index, line) in lines {
        match read(line) {
            Ok(Line::Call(call)) => trace.calls.push(call),
            Ok(Line::Lost(calls)) => trace.lost = calls,
            Err(why) => return Ok((trace, Some(format!("line {}: {why}", index + 1)))),
        }
    }
    Ok((trace, None))
}

enum Line {
    Call(Call),
    Lost(u64),
}

fn read(line: &str) -> Result<Line, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [at, name, matched, source, tag, context, bytes, entry] = fields[..] else {
        let count = fields.len();
        return Err(format!("it has {count} fields, and 8 are needed"));
    };
    let bad = |field: &str, what: &str| format!("'{field}' is no {what}");
    let number = || entry.parse().map_err(|_| bad(entry, "entry"));
    if name == "lost" {
        let calls = entry.parse().map_err(|_| bad(entry, "number of calls"))?;
        return Ok(Line::Lost(calls));
    }
    let context = || {
        let number = context.parse().map_err(|_| bad(context, "context"))?;
        Ok::<_, String>(ContextId::new(number))
    };
    let rank = || {
        let rank = source.parse().ok().filter(|rank| *rank <= Rank::MAX);
        rank.map(Rank::new).ok_or_else(|| bad(source, "source"))
    };
    let one_tag = || {
        let read = tag.parse().ok().and_then(Tag::from_wire);
        read.ok_or_else(|| bad(tag, "tag"))
    };
    let message = || {
        Ok::<_, String>(Envelope {
            source: rank()?,
            tag: one_tag()?,
            context: context()?,
        })
    };
    let pattern = || {
        Ok::<_, String>(Pattern {
            source: match source {
                "any" => SourceSelector::ANY,
                _ => rank()?.into(),
            },
            tag: match tag {
                "any" => TagSelector::ANY,
                _ => one_tag()?.into(),
            },
            context: context()?,
        })
    };
    let event = match name {
        "post" => Event::Post(pattern()?),
        "arrive" => {
            let size = bytes.parse().map_err(|_| bad(bytes, "number of bytes"))?;
            Event::Arrive(message()?, Size::of(size))
        }
        "arrive_expected" => Event::ArriveExpected(message()?),
        "expects" => Event::Expects(message()?),
        "probe" => Event::Probe(pattern()?),
        "claim" => Event::Claim(pattern()?),
        "cancel" => Event::Cancel(number()?),
        "discard" => Event::Discard(number()?),
        "promise" => Event::Promise(context()?, promise(entry)?),
        other => return Err(format!("no call is called '{other}'")),
    };
    let matched = match matched {
        "0" => false,
        "1" => true,
        other => return Err(format!("'{other}' says not whether it matched: 0 or 1")),
    };
    let at = at.parse().map_err(|_| bad(at, "time"))?;
    Ok(Line::Call(Call { at, event, matched }))
}

fn promise(words: &str) -> Result<ContextAssertions, String> {
    let mut promise = ContextAssertions::default();
    for word in words.split_whitespace() {
        match word {
            "no_any_source" => promise.no_any_source = true,
            "no_any_tag" => promise.no_any_tag = true,
            "overtaking" => promise.overtaking = true,
            other => return Err(format!("'{other}' is no promise")),
        }
    }
    Ok(promise)
}
