use super::super::wire::{Hello, VERSION};
use super::*;

const SECRET: [u8; 32] = [9; 32];

/// A key space whose connections are numbered by the test.
struct Game {
    keys: KeySpace,
    next_id: u32,
}

impl Game {
    fn new(size: u32) -> Self {
        Self {
            keys: KeySpace::new(size, JobSecret::from_bytes(SECRET), NONCE),
            next_id: 0,
        }
    }

    fn ask(&mut self, client: u64, request: Request) -> (RequestId, Verdict) {
        self.next_id += 1;
        let id = RequestId(self.next_id);
        (id, self.keys.handle(ClientId(client), id, request, None))
    }

    fn hello(&mut self, client: u64, rank: u32) {
        assert_eq!(self.come(client, Who::Rank(rank), SECRET), Verdict::Keep);
    }

    /// Says hello and proves to know this secret. The challenge is not among what is heard, and neither is what came before.
    fn come(&mut self, client: u64, who: Who, secret: [u8; 32]) -> Verdict {
        let hello = Hello::of(who).unwrap();
        let secret = JobSecret::from_bytes(secret);
        let before = self.keys.take_outbox();
        let (_, verdict) = self.ask(client, Request::Hello(hello.clone()));
        assert_eq!(verdict, Verdict::Keep);
        let [Reply::Challenge(challenge)] = self.heard(client)[..] else {
            panic!("no challenge");
        };
        self.keys.outbox = before;
        let proof = hello.proof(&secret, &challenge);
        let (id, verdict) = self.ask(client, Request::Proof(proof));
        for message in &self.keys.outbox {
            if let (true, Reply::Granted(grant, proof)) = (message.id == id, &message.reply) {
                let is_own = hello.is_answered(proof, &secret, (&challenge, grant));
                assert!(is_own, "the store proves as much");
            }
        }
        verdict
    }

    /// What went to `client` since the last call, replies to the others being dropped.
    fn heard(&mut self, client: u64) -> Vec<Reply> {
        let outbox = self.keys.take_outbox();
        outbox
            .into_iter()
            .filter(|m| m.client == ClientId(client))
            .map(|m| m.reply)
            .collect()
    }
}

/// What a welcome says beside its proof.
fn welcome(replies: &[Reply]) -> (u32, u32) {
    match replies {
        [Reply::Granted(Grant::Welcome { size, round, .. }, _)] => (*size, *round),
        other => panic!("no welcome: {other:?}"),
    }
}

/// What a place says beside its proof.
fn place(replies: &[Reply]) -> (u32, u32) {
    match replies {
        [Reply::Granted(Grant::Place { first, size }, _)] => (*first, *size),
        other => panic!("no place: {other:?}"),
    }
}

fn get(rank: u32, key: &str) -> Request {
    Request::Get {
        rank,
        key: key.to_owned(),
    }
}

fn put(key: &str, value: &[u8]) -> Request {
    Request::Put {
        key: key.to_owned(),
        value: value.to_vec(),
    }
}

fn refusal(replies: &[Reply]) -> &str {
    match replies {
        [Reply::Refused(why)] => why,
        other => panic!("no refusal: {other:?}"),
    }
}

/// What a process of the next version is told.
const OTHER_VERSION: &str = "the job's store has version 7 of what ranks say to each other, and who comes has version 8: all hosts need the same Tagwire";

#[test]
fn strangers_are_refused_whatever_they_ask() {
    let mut game = Game::new(2);
    let (_, verdict) = game.ask(1, get(0, "a"));
    assert_eq!(verdict, Verdict::Close);
    assert_eq!(refusal(&game.heard(1)), "the first message must be a hello");
    for (rank, secret, why) in [
        (0, [0; 32], "wrong job secret"),
        (2, SECRET, "there is no rank 2 in a job of 2"),
    ] {
        assert_eq!(game.come(1, Who::Rank(rank), secret), Verdict::Close);
        assert_eq!(refusal(&game.heard(1)), why);
    }
    for who in [Who::Rank(0), of_host(1)] {
        let hello = Hello {
            version: VERSION + 1,
            ..Hello::of(who).unwrap()
        };
        assert_eq!(game.ask(1, Request::Hello(hello)).1, Verdict::Close);
        assert_eq!(refusal(&game.heard(1)), OTHER_VERSION);
    }
    game.hello(1, 0);
    game.heard(1);
    assert_eq!(game.come(2, Who::Rank(0), SECRET), Verdict::Close);
    assert_eq!(refusal(&game.heard(2)), "rank 0 is connected already");
    // A member says no second hello.
    let proof = hello_of(0).proof(&JobSecret::from_bytes(SECRET), &NONCE);
    for request in [Request::Hello(hello_of(1)), Request::Proof(proof)] {
        assert_eq!(game.ask(1, request).1, Verdict::Close);
        assert_eq!(refusal(&game.heard(1)), "a second hello");
    }
}

const NONCE: Nonce = Nonce::from_bytes([3; Nonce::LEN]);

fn hello_of(rank: u32) -> Hello {
    Hello::of(Who::Rank(rank)).unwrap()
}

/// A proof is good for the connection that was challenged for it, and once.
#[test]
fn a_proof_of_another_connection_is_none() {
    let mut game = Game::new(2);
    let secret = JobSecret::from_bytes(SECRET);
    let hello = hello_of(0);
    let _ = game.ask(1, Request::Hello(hello.clone()));
    let [Reply::Challenge(overheard)] = game.heard(1)[..] else {
        panic!("no challenge");
    };
    assert!(game.keys.is_challenged(ClientId(1)));
    assert!(!game.keys.is_member(ClientId(1)));
    let proof = hello.proof(&secret, &overheard);
    let _ = game.ask(2, Request::Hello(hello.clone()));
    let [Reply::Challenge(own)] = game.heard(2)[..] else {
        panic!("no challenge");
    };
    assert_ne!(own, overheard);
    assert_eq!(game.ask(2, Request::Proof(proof)).1, Verdict::Close);
    assert_eq!(refusal(&game.heard(2)), "wrong job secret");
    // The store's own proof is not one of who comes.
    let _ = game.ask(3, Request::Hello(hello.clone()));
    let [Reply::Challenge(nonce)] = game.heard(3)[..] else {
        panic!("no challenge");
    };
    let of_store = hello.answer(&secret, &nonce, &Grant::Place { first: 0, size: 2 });
    assert_eq!(game.ask(3, Request::Proof(of_store)).1, Verdict::Close);
    assert_eq!(refusal(&game.heard(3)), "wrong job secret");
    // A proof that nobody asked for, and a hello where a proof was.
    assert_eq!(game.ask(4, Request::Proof(proof)).1, Verdict::Close);
    assert_eq!(refusal(&game.heard(4)), "the first message must be a hello");
    let _ = game.ask(5, Request::Hello(hello.clone()));
    assert_eq!(game.ask(5, Request::Hello(hello)).1, Verdict::Close);
    let heard = game.heard(5);
    assert_eq!(refusal(&heard[1..]), "the second message must be a proof");
    // Who goes is forgotten.
    game.keys.disconnected(ClientId(1));
    assert!(!game.keys.is_challenged(ClientId(1)));
}

#[test]
fn a_get_waits_and_a_newer_request_replaces_it() {
    let mut game = Game::new(2);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = game.ask(1, get(1, "a"));
    assert_eq!(welcome(&game.heard(1)), (2, 0));
    let (second, _) = game.ask(1, get(1, "b"));
    let _ = game.ask(2, put("a", b"1"));
    assert_eq!(game.heard(1), [], "the request for 'a' was given up");
    let _ = game.ask(2, put("b", b"2"));
    let outbox = game.keys.take_outbox();
    let answer = outbox
        .iter()
        .find(|message| message.client == ClientId(1))
        .unwrap();
    assert_eq!(
        (answer.id, &answer.reply),
        (second, &Reply::Value(b"2".to_vec()))
    );
}

#[test]
fn a_rank_that_ended_answers_no_get() {
    let mut game = Game::new(3);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = game.ask(2, put("a", b"1"));
    let _ = game.ask(1, get(1, "b"));
    game.heard(1);
    game.keys.ended(Rank::new(1));
    let heard = game.heard(1);
    assert_eq!(heard[0], Reply::Failed(Rank::new(1)));
    assert_eq!(refusal(&heard[1..]), "rank 1 ended without putting key 'b'");
    let _ = game.ask(1, get(1, "a"));
    assert_eq!(
        game.heard(1),
        [Reply::Value(b"1".to_vec())],
        "what it had put stays"
    );
    game.keys.ended(Rank::new(1));
    assert_eq!(game.heard(1), [], "an end is told once");
}

#[test]
fn fences_count_calls_and_fail_with_the_dead() {
    let mut game = Game::new(3);
    (0..3).for_each(|rank| game.hello(u64::from(rank), rank));
    let _ = game.ask(0, Request::Fence);
    let _ = game.ask(0, Request::Fence);
    let _ = game.ask(1, Request::Fence);
    game.heard(0);
    let _ = game.ask(2, Request::Fence);
    // Rank 0 gave its first call up; the second one still waits for the others.
    let done: Vec<ClientId> = game
        .keys
        .take_outbox()
        .into_iter()
        .inspect(|message| assert_eq!(message.reply, Reply::Done))
        .map(|message| message.client)
        .collect();
    assert_eq!(done.len(), 2);
    assert!(!done.contains(&ClientId(0)));
    game.keys.ended(Rank::new(2));
    let heard = game.heard(0);
    assert_eq!(
        refusal(&heard[1..]),
        "rank 2 ended without reaching the fence"
    );
}

#[test]
fn one_that_leaves_after_a_fence_does_not_break_it() {
    let mut game = Game::new(2);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = game.ask(2, Request::Fence);
    assert_eq!(game.ask(2, Request::Leave).1, Verdict::Close);
    game.heard(1);
    let _ = game.ask(1, Request::Fence);
    assert_eq!(game.heard(1), [Reply::Done]);
}

/// Who has reached a fence and left is not missed there while others are still to come.
#[test]
fn a_fence_waits_for_the_living_though_one_that_reached_it_left() {
    let mut game = Game::new(3);
    (0..3).for_each(|rank| game.hello(u64::from(rank), rank));
    let _ = game.ask(1, Request::Fence);
    let _ = game.ask(1, Request::Leave);
    let _ = game.ask(0, Request::Fence);
    let heard = game.heard(0);
    assert_eq!(heard.last(), Some(&Reply::Left(Rank::new(1))), "{heard:?}");
    let _ = game.ask(2, Request::Fence);
    assert_eq!(game.heard(0), [Reply::Done]);
}

#[test]
fn a_second_stay_sees_nothing_of_the_first() {
    let mut game = Game::new(2);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = game.ask(1, put("a", b"old"));
    let _ = game.ask(2, put("a", b"old"));
    let _ = game.ask(1, Request::Leave);
    assert_eq!(game.heard(2).last(), Some(&Reply::Left(Rank::new(0))));
    game.hello(3, 0);
    let _ = game.ask(3, get(1, "a"));
    assert_eq!(welcome(&game.heard(3)), (2, 1), "rank 1 has yet to come");
    let _ = game.ask(2, Request::Leave);
    assert_eq!(game.heard(3), [], "the first stay's goodbye is no news");
    assert!(
        !game.keys.rounds.contains_key(&0),
        "nobody can be in the first round any more"
    );
    game.hello(4, 1);
    let _ = game.ask(4, put("a", b"new"));
    assert_eq!(game.heard(3), [Reply::Value(b"new".to_vec())]);
    game.keys.disconnected(ClientId(4));
    assert_eq!(game.heard(3), [Reply::Failed(Rank::new(1))]);
}

/// What only a rank that has ended could have read goes with it.
#[test]
fn the_end_of_a_rank_frees_what_nobody_reads_any_more() {
    let mut game = Game::new(2);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = game.ask(1, put("a", b"old"));
    let _ = game.ask(1, Request::Leave);
    assert!(game.keys.rounds.contains_key(&0), "rank 1 may read it");
    game.keys.ended(Rank::new(1));
    assert!(!game.keys.rounds.contains_key(&0));
    assert_eq!(game.keys.members[0].kept, 0);
    game.keys.ended(Rank::new(0));
    assert!(game.keys.rounds.is_empty());
}

#[test]
fn newcomers_hear_of_those_that_are_gone() {
    let mut game = Game::new(4);
    game.hello(1, 1);
    let _ = game.ask(1, Request::Leave);
    game.keys.ended(Rank::new(1));
    game.keys.ended(Rank::new(2));
    game.hello(3, 3);
    assert_eq!(
        game.heard(3)[1..],
        [Reply::Left(Rank::new(1)), Reply::Failed(Rank::new(2))],
        "an end after a goodbye is no failure"
    );
}

#[test]
fn one_rank_cannot_fill_the_store() {
    let mut game = Game::new(1);
    game.hello(1, 0);
    game.heard(1);
    let value = vec![0; super::super::wire::MAX_VALUE];
    let mut kept = 0;
    loop {
        let _ = game.ask(1, put(&format!("key {kept}"), &value));
        match game.heard(1).remove(0) {
            Reply::Done => kept += 1,
            reply => {
                assert!(matches!(reply, Reply::Refused(_)));
                break;
            }
        }
        assert!(kept * value.len() <= MAX_BYTES_PER_RANK);
    }
    let _ = game.ask(1, put("key 0", b"small"));
    assert_eq!(
        game.heard(1),
        [Reply::Done],
        "a replaced value gives its room back"
    );
    let _ = game.ask(1, put("one more", &value[..value.len() / 2]));
    assert_eq!(game.heard(1), [Reply::Done]);
}

#[test]
fn one_rank_cannot_fill_the_store_by_coming_and_going() {
    let mut game = Game::new(2);
    let value = vec![0; super::super::wire::MAX_VALUE];
    let mut stays = 0;
    let refused = loop {
        if game.come(1, Who::Rank(0), SECRET) == Verdict::Close {
            break game.heard(1);
        }
        let _ = game.ask(1, put("key", &value));
        let _ = game.ask(1, Request::Leave);
        game.heard(1);
        stays += 1;
        assert!(stays * value.len() <= 2 * MAX_BYTES_PER_RANK, "no bound");
    };
    assert!(refusal(&refused).contains("joined and left"), "{refused:?}");
    // The other one comes as far: what it cannot read any more is forgotten.
    for _ in 0..stays {
        game.hello(2, 1);
        let _ = game.ask(2, Request::Leave);
    }
    assert!(game.keys.rounds.is_empty());
    assert!(game.keys.members.iter().all(|member| member.kept == 0));
    game.hello(1, 0);
}

#[test]
fn in_a_store_of_one_session_each_rank_has_one_stay() {
    let mut game = Game::new(2);
    game.keys.allow_one_stay();
    game.hello(1, 0);
    game.hello(2, 1);
    assert_eq!(game.ask(2, Request::Leave).1, Verdict::Close);
    game.keys.ended(Rank::new(0));
    let _ = game.heard(1);
    for (client, rank) in [(3, 1), (4, 0)] {
        let verdict = game.come(client, Who::Rank(rank), SECRET);
        assert_eq!(verdict, Verdict::Close);
        let said = game.heard(client);
        assert!(matches!(&said[..], [Reply::Later(_)]), "{said:?}");
    }
}

fn of_host(ranks: u32) -> Who {
    Who::Host {
        ranks,
        name: "node-2".to_owned(),
    }
}

#[test]
fn hosts_have_the_next_ranks_and_no_more_than_are_left() {
    let mut game = Game::new(6);
    game.keys.keep_first(2);
    assert_eq!(game.come(1, of_host(3), SECRET), Verdict::Keep);
    assert_eq!(place(&game.heard(1)), (2, 6));
    for ranks in [0, 2, u32::MAX] {
        assert_eq!(game.come(2, of_host(ranks), SECRET), Verdict::Close);
        assert!(refusal(&game.heard(2)).contains("1 of the job's 6 are left"));
    }
    assert_eq!(game.come(2, of_host(1), [0; 32]), Verdict::Close);
    assert_eq!(refusal(&game.heard(2)), "wrong job secret");
    assert_eq!(game.come(3, of_host(1), SECRET), Verdict::Keep);
    assert_eq!(place(&game.heard(3)), (5, 6));
    assert_eq!(game.keys.take_reports(), [Report::Came(3), Report::Came(1)]);
    // A host says what ends there, and nothing else.
    for (client, request) in [
        (1, put("a", b"b")),
        (3, Request::Ended { rank: 4, status: 0 }),
        (
            3,
            Request::Ended {
                rank: u32::MAX,
                status: 0,
            },
        ),
    ] {
        assert_eq!(game.ask(client, request).1, Verdict::Close);
    }
    assert!(game.keys.take_reports().is_empty());
}

#[test]
fn a_host_reports_its_ranks_and_its_loss_the_rest() {
    let mut game = Game::new(4);
    game.keys.keep_first(1);
    let _ = game.come(9, of_host(3), SECRET);
    game.hello(1, 0);
    game.hello(2, 1);
    let _ = (game.keys.take_reports(), game.heard(1));
    assert_eq!(
        game.ask(9, Request::Ended { rank: 1, status: 3 }).1,
        Verdict::Keep
    );
    let _ = game.ask(9, Request::Ended { rank: 1, status: 0 });
    assert_eq!(
        game.keys.take_reports(),
        [Report::Ended(Rank::new(1), 3)],
        "once"
    );
    assert_eq!(game.heard(1), [Reply::Failed(Rank::new(1))]);
    game.keys.end_hosts(3);
    assert_eq!(game.heard(9), [Reply::End { status: 3 }]);
    game.keys.disconnected(ClientId(9));
    let lost = Report::HostLost("node-2".to_owned(), vec![Rank::new(2), Rank::new(3)]);
    assert_eq!(game.keys.take_reports(), [lost]);
    assert_eq!(
        game.heard(1),
        [2, 3].map(|rank| Reply::Failed(Rank::new(rank)))
    );
}

/// A second hello would replace the ranks that the first one answers for: nobody would hear of their end.
#[test]
fn a_host_that_says_hello_again_is_lost_with_its_ranks() {
    for again in [of_host(1), Who::Rank(2)] {
        let mut game = Game::new(4);
        game.keys.keep_first(1);
        assert_eq!(game.come(9, of_host(2), SECRET), Verdict::Keep);
        let _ = (game.keys.take_reports(), game.heard(9));
        let hello = Hello::of(again).unwrap();
        assert_eq!(game.ask(9, Request::Hello(hello)).1, Verdict::Close);
        assert!(refusal(&game.heard(9)).contains("nothing else"));
        game.keys.disconnected(ClientId(9));
        let lost = vec![Rank::new(1), Rank::new(2)];
        let lost = Report::HostLost("node-2".to_owned(), lost);
        assert_eq!(game.keys.take_reports(), [lost]);
    }
}

#[test]
fn an_abort_is_reported() {
    let mut game = Game::new(2);
    game.hello(1, 1);
    let _ = game.heard(1);
    let _ = game.ask(1, Request::Abort { status: 7 });
    assert_eq!(game.heard(1), [Reply::Done]);
    assert_eq!(game.keys.take_reports(), [Report::Abort(Rank::new(1), 7)]);
}
