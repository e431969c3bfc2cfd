//! What a rank's groups go by, in lines for reports.

use crate::algorithms::Group;
use crate::selection::Choosing;
use crate::team::Team;

/// Adds a line for each operation whose algorithm the setting `coll-algorithm` names, as the group takes it; and one for each operation,
/// class of lengths and size of groups whose algorithm the rank has found by trial, with the median times of a call in the last one.
///
/// The group is that of all ranks, or another one of the rank: what trials have found is the same for all.
pub fn ways(team: &Team, out: &mut Vec<String>) {
    let group = Group {
        size: team.size(),
        has_levels: team.levels().is_some(),
    };
    let taken = Choosing::new(team.selection(), group).taken(|it| team.board.lacks(it));
    out.extend(taken.iter().map(ToString::to_string));
    team.board.found.tell(out);
}
