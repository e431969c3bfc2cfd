//! The list of checks, and the macro that makes tests of them.

use super::{Factory, alone, cancel, failure, flow, order, peers, probes, races, random, shapes};
use crate::byte::Tier;

crate::kit! {
    /// Makes a module `$name` with one test for each check, on jobs of the
    /// [`Factory`](crate::matching::Factory) that `$factory` evaluates to.
    match_conformance($), checks of Factory:
    Core 1 peers::limits_are_consistent,
    Core 2 order::posted_receives_get_every_length,
    Core 2 order::unexpected_messages_keep_every_length,
    Core 2 order::messages_match_in_the_order_of_sending,
    Core 2 order::the_earliest_receive_wins,
    Core 2 order::the_earliest_message_is_taken,
    Core 2 order::only_ignored_bits_are_ignored,
    Core 3 order::sources_are_told_apart,
    Core 3 order::any_source_takes_from_all,
    Core 1 order::a_rank_reaches_itself,
    Core 3 random::random_runs_match_the_lists,
    Core 2 shapes::short_receives_get_what_fits,
    Core 2 shapes::long_receives_keep_the_rest,
    Core 2 shapes::synchronous_sends_end_with_the_match,
    Core 2 shapes::odd_shapes_are_sent_or_refused,
    Core 2 shapes::foreign_bits_are_refused,
    Core 2 probes::probes_see_and_leave,
    Core 2 probes::claims_take_out_of_matching,
    Core 2 probes::unknown_claims_are_refused,
    Core 2 cancel::cancelled_receives_take_nothing,
    Core 2 cancel::cancels_race_with_messages,
    Core 2 flow::floods_stay_within_bounds,
    Core 3 flow::receives_reach_behind_a_flood,
    Core 2 flow::long_messages_cost_an_envelope,
    Core 3 flow::one_full_receiver_leaves_others_alone,
    Core 3 flow::one_held_sender_leaves_others_alone,
    Cooperative 2 alone::a_sender_alone_delivers,
    Core 2 flow::idle_progress_does_nothing,
    Core 2 peers::connects_to_the_same_endpoint,
    Core 2 peers::bad_addresses_are_refused,
    Core 3 peers::peers_are_greeted_once,
    Core 3 peers::goodbyes_come_after_the_last_message,
    Core 2 peers::goodbyes_end_what_is_under_way,
    Core 2 peers::dumps_name_messages_and_peers,
    Core 3 failure::failures_are_told_once,
    Detection 3 failure::deaths_are_found,
    Core 3 failure::last_words_are_received,
    Core 3 failure::sends_to_the_dead_end,
    Core 3 failure::deaths_cut_messages_off,
    Core 2 failure::claims_of_the_dead_end,
    Core 3 failure::strangers_may_die,
    Core 3 races::each_message_is_had_once,
    Wake 2 races::messages_wake_a_sleeper,
}
